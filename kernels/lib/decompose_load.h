/* SPDX-License-Identifier: Apache-2.0
 *
 * Which lines and elements a block and a thread of gemm/decompose.cu work on, and how the thread
 * loads them. A line is a row of op(A) or a column of op(B). The kernel defines THREADS and STRIP
 * (the lines of a block if lines are columns in memory) first. The functions' parameter `pairs`:
 * the matrix is read from a complex one (lib/complex_pairs.h).
 */
#ifndef TGL_DECOMPOSE_LOAD_H
#define TGL_DECOMPOSE_LOAD_H

#include "lib/complex_pairs.h"
#include "lib/opaque.h"
#include "lib/words.h"

typedef struct tgl_decompose_job job_t;

/* ---- The work of a block --------------------------------------------------------------------- */

/* A block's work: lines [line, line + count) of matrix number `matrix`, and elements [first, end)
 * of each line. part: the block's number among the blocks that process parts of these lines. */
struct decompose_work {
    int matrix, line, count, first, end, part;
};

/* x / power, where power is a power of two, without the instructions of a division. */
static __device__ __forceinline__ int divided(int x, int power)
{
    return x >> (31 - __clz(power));
}

/* Sets *w to the work of block number `block`. Returns false if the block has none: the number of
 * blocks is rounded up to whole clusters. */
static __device__ __forceinline__ bool find_work(const job_t *job, int block,
                                                 struct decompose_work *w)
{
    const int down = divided(job->lines + job->block_lines - 1, job->block_lines);
    const int group = divided(block, job->parts);
    w->matrix = group / down;
    w->part = block - group * job->parts;
    w->line = (group - w->matrix * down) * job->block_lines;
    w->count = job->lines - w->line < job->block_lines ? job->lines - w->line : job->block_lines;
    w->first = w->part * job->part;
    w->end = job->length - w->first < job->part ? job->length : w->first + job->part;
    return w->matrix < job->count;
}

static __device__ __forceinline__ const float *matrix_of(const job_t *job,
                                                         const struct decompose_work *w)
{
    return job->from + w->matrix * job->stride;
}

/* The address of a matrix's hi words. Its lo words follow them. */
static __device__ __forceinline__ unsigned short *words_of(const job_t *job,
                                                           const struct decompose_work *w)
{
    return job->to + w->matrix * 2 * job->words;
}

/* The number of the block's panel (TGL_PANEL_LINES lines) among the panels of all matrices. */
static __device__ __forceinline__ long long panel_of(const job_t *job,
                                                     const struct decompose_work *w)
{
    return (long long)w->matrix * (job->padded_lines / TGL_PANEL_LINES) + w->line / TGL_PANEL_LINES;
}

/* Where a thread's 32 elements are. If the lines are contiguous, all elements are in `line`. If the
 * lines are columns in memory (transposed), element e is in `line` + e % 4. line_of() and k_of()
 * compute the line and the k of element e. */
struct decompose_place {
    int line, k;  /* the line and k of element 0 */
    int distance; /* elements along K from four of the thread's elements to the next four */
    int slot;     /* the index of `line` among the lines of the block */
};

static __device__ __forceinline__ int line_of(const struct decompose_place *at, int e,
                                              const bool transposed)
{
    return at->line + (transposed ? e % 4 : 0);
}

static __device__ __forceinline__ int k_of(const struct decompose_place *at, int e,
                                           const bool transposed)
{
    return at->k + e / 4 * at->distance + (transposed ? 0 : e % 4);
}

/* The number of threads that hold parts of the same contiguous line: a power of two. */
static __device__ __forceinline__ int threads_of(const job_t *job)
{
    return divided(THREADS, job->block_lines);
}

static __device__ __forceinline__ struct decompose_place
decompose_place_of(const job_t *job, const struct decompose_work *w, int step,
                   const bool transposed)
{
    const int thread = opaque((int)threadIdx.x);
    struct decompose_place at;
    if (transposed) {
        at.slot = thread % (STRIP / 4) * 4;
        at.k = w->first + step * (32 * THREADS / STRIP) + thread / (STRIP / 4) * 8;
        at.distance = 1;
    } else {
        const int threads = threads_of(job);
        at.slot = divided(thread, threads);
        at.k = w->first + step * 32 * threads + (thread & (threads - 1)) * 4;
        at.distance = threads * 4;
    }
    at.line = w->line + at.slot;
    return at;
}

/* ---- Loading --------------------------------------------------------------------------------- */

#if PAIRS
/* Loads the thread's elements of B' (lib/complex_pairs.h), with zeros outside of the lines. A
 * complex row in memory is two lines of B' or, if transposed, two successive k of all lines. */
static __device__ __forceinline__ void load_pairs(float *x, const job_t *job,
                                                  const struct decompose_work *w,
                                                  const struct decompose_place *at,
                                                  const bool transposed)
{
    const int lines = w->line + w->count;
    const float *from = matrix_of(job, w) + (transposed ? at->k / 2 * job->ld + at->line
                                                        : at->line / 2 * job->ld + at->k);
    const bool allows_float4 =
        transposed ? job->ld % 4 == 0 && w->count % 4 == 0 : job->ld % 4 == 0 && w->end % 4 == 0;
    const bool is_aligned = allows_float4 && (unsigned long long)from % 16 == 0;
#pragma unroll
    for (int e = 0; e < 32; e += 4) {
        const float *four = &from[transposed ? e / 8 * job->ld : (long long)(e / 4) * at->distance];
        const bool is_inside = at->line < lines && k_of(at, e, transposed) < w->end;
        const bool has_second = transposed ? at->line + 2 < lines : k_of(at, e + 2, false) < w->end;
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (is_aligned && is_inside) {
            v = *(const float4 *)four;
        } else if (is_inside) {
            v.x = four[0], v.y = four[1];
            if (has_second) v.z = four[2], v.w = four[3];
        }
        /* pair_part() and pair_element() depend on the parities of k and line only. at->k is even,
         * and with `transposed` so is at->line. */
        const int k = transposed ? e / 4 : 0, line = transposed ? 0 : at->line;
        const bool is_swapped = pair_part(k, line) != 0;
        const float parts[4] = {is_swapped ? v.y : v.x, is_swapped ? v.x : v.y,
                                is_swapped ? v.w : v.z, is_swapped ? v.z : v.w};
#pragma unroll
        for (int j = 0; j < 4; j++)
            x[e + j] =
                pair_element(parts[j], k + (transposed ? 0 : j), line + (transposed ? j : 0));
    }
}
#endif

/* Loads the thread's elements; zeros outside of the lines. */
static __device__ __forceinline__ void load_lines(float *x, const job_t *job,
                                                  const struct decompose_work *w,
                                                  const struct decompose_place *at,
                                                  const bool transposed)
{
    const long long down = transposed ? job->ld : 1, right = transposed ? 1 : job->ld;
    const float *from = matrix_of(job, w) + at->k * down + at->line * right;
    const int lines = w->line + w->count;
    const bool allows_float4 = transposed ? job->ld % 4 == 0 && w->count % 4 == 0 : w->end % 4 == 0;
    if (allows_float4 && (unsigned long long)from % 16 == 0) {
#pragma unroll
        for (int e = 0; e < 32; e += 4) {
            const bool is_inside = at->line < lines && k_of(at, e, transposed) < w->end;
            const float4 v = is_inside ? *(const float4 *)&from[e / 4 * at->distance * down]
                                       : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            x[e] = v.x, x[e + 1] = v.y, x[e + 2] = v.z, x[e + 3] = v.w;
        }
        return;
    }
#pragma unroll
    for (int e = 0; e < 32; e++) {
        const bool is_inside =
            line_of(at, e, transposed) < lines && k_of(at, e, transposed) < w->end;
        x[e] = is_inside ? from[e / 4 * at->distance * down + e % 4] : 0.0f;
    }
}

/* Loads the thread's elements; zeros outside of the lines. */
static __device__ __forceinline__ void load_elements(float *x, const job_t *job,
                                                     const struct decompose_work *w,
                                                     const struct decompose_place *at,
                                                     const bool transposed, const bool pairs)
{
#if PAIRS
    if (pairs) {
        load_pairs(x, job, w, at, transposed);
        return;
    }
#endif
    load_lines(x, job, w, at, transposed);
}

/* Returns element number e of the thread, read from memory again. */
static __device__ __forceinline__ float element_of(const job_t *job, const struct decompose_work *w,
                                                   const struct decompose_place *at, int e,
                                                   const bool transposed, const bool pairs)
{
    const long long line = line_of(at, e, transposed), k = k_of(at, e, transposed);
    const float *from = matrix_of(job, w);
#if PAIRS
    if (pairs) {
        const int row = (int)(transposed ? k : line), col = (int)(transposed ? line : k);
        const float *pair = &from[row / 2 * job->ld + col / 2 * 2];
        return pair_element(pair[pair_part((int)k, (int)line)], (int)k, (int)line);
    }
#endif
    return from[transposed ? k * job->ld + line : line * job->ld + k];
}

#endif
