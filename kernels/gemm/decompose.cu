/* SPDX-License-Identifier: Apache-2.0
 *
 * A pre-pass: FP32 matrices become two words of f16 for each element (lib/decompose_args.h),
 * K-major with lines on 16 bytes, as TMA reads them. The one or two jobs of a launch are matrices
 * of any alignment; TRANSPOSED: their lines are columns in memory.
 *
 *   load      A block takes a few whole lines, or a cluster does, each block a part of K. A thread
 *             has 32 elements in registers: from a line eight float4; from columns float4 in eight
 *             successive rows, which are eight successive elements of four lines. So no word has to
 *             be exchanged between threads. Longer lines are read twice, the second time from L2 as
 *             a rule.
 *   maxima    The largest |x| of each line, as a bit pattern: patterns are ordered as the numbers,
 *             Inf and NaN last. Threads, warps and then the blocks of a cluster combine theirs.
 *   words     The scale of each line, the words, and for each panel of lines its state and its list
 *             of elements that two words do not hold. Blocks add to a counter of the panel, which
 *             is zero before, and the last one copies it into the panel.
 *
 * Elements are listed in no order, but the reader sorts the list; whether it is full depends only
 * on the matrix.
 */
#include "lib/cluster.h"
#include "lib/half.h"
#include "lib/launch_order.h"
#include "lib/words.h"

#ifndef TRANSPOSED_0
#define TRANSPOSED_0 0 /* of the first job */
#endif
#ifndef TRANSPOSED_1
#define TRANSPOSED_1 0 /* of the second */
#endif
#ifndef THREADS
#define THREADS 256 /* or 512 */
#endif
#ifndef STRIP
#define STRIP 8 /* lines of a block that are columns in memory: 8, 16 or 32 */
#endif

#define WARPS       (THREADS / 32)
#define BLOCKS      (1024 / THREADS) /* of an SM: 64 registers for each thread */
#define INFINITY_IS 0x7f800000u      /* the pattern of Inf; those of NaNs are above */

#if STRIP % 8 != 0 || STRIP > 32 || THREADS / 32 > 32
#error "the lines of a block"
#endif

typedef struct tgl_decompose_job job_t;

/* ---- The work of a block --------------------------------------------------------------------- */

/* Lines [line, line + count) of a matrix, and elements [first, end) of each. */
struct work {
    const float *from; /* the matrix */
    unsigned short *hi, *lo;
    int *exponents;
    struct tgl_panel *panel;
    struct tgl_panel_counter *counter;
    int line, count, first, end, part;
};

/* False: a block that only completes a cluster. */
static __device__ __forceinline__ bool find_work(const job_t *job, int block, struct work *w)
{
    const int parts = job->parts, down = (job->lines + job->block_lines - 1) / job->block_lines;
    const int group = block / parts, matrix = group / down;
    if (matrix >= job->count) return false;
    w->part = block - group * parts;
    w->line = (group - matrix * down) * job->block_lines;
    w->count = job->lines - w->line < job->block_lines ? job->lines - w->line : job->block_lines;
    w->first = w->part * job->part;
    w->end = job->length - w->first < job->part ? job->length : w->first + job->part;
    const long long words = job->lines * job->pitch;
    const long long panel = (long long)matrix * (job->padded_lines / TGL_PANEL_LINES) +
                            w->line / TGL_PANEL_LINES;
    w->from = job->from + matrix * job->stride;
    w->hi = job->to + matrix * 2 * words;
    w->lo = w->hi + words;
    w->exponents = job->exponents + (long long)matrix * job->padded_lines;
    w->panel = &job->panels[panel];
    w->counter = &job->counters[panel];
    return true;
}

/* Of a thread: element number e, 0 <= e < 32, belongs to line `line` + e % 4 if the lines are
 * columns in memory, or else to line `line`. */
struct place {
    int line, k;  /* of element 0 */
    int distance; /* along K, from four elements to the next four */
    int slot;     /* the number of `line` in the block */
};

static __device__ __forceinline__ int line_of(const struct place *at, int e, const bool transposed)
{
    return at->line + (transposed ? e % 4 : 0);
}

static __device__ __forceinline__ int k_of(const struct place *at, int e, const bool transposed)
{
    return at->k + e / 4 * at->distance + (transposed ? 0 : e % 4);
}

/* Elements of a line that the block takes at a time. */
static __device__ __forceinline__ int step_of(const job_t *job, const bool transposed)
{
    return transposed ? THREADS * 32 / STRIP : THREADS * 32 / job->block_lines;
}

static __device__ __forceinline__ struct place place_of(const job_t *job, const struct work *w,
                                                        int first, const bool transposed)
{
    const int thread = (int)threadIdx.x;
    struct place at;
    if (transposed) {
        at.slot = thread % (STRIP / 4) * 4;
        at.k = first + thread / (STRIP / 4) * 8;
        at.distance = 1;
    } else {
        const int threads = THREADS / job->block_lines; /* of a line: a power of two */
        at.slot = thread / threads;
        at.k = first + thread % threads * 4;
        at.distance = threads * 4;
    }
    at.line = w->line + at.slot;
    return at;
}

/* ---- Loading --------------------------------------------------------------------------------- */

/* The thread's elements; zeros outside of the lines. */
static __device__ __forceinline__ void load(float *x, const job_t *job, const struct work *w,
                                            const struct place *at, const bool transposed)
{
    const long long down = transposed ? job->ld : 1, right = transposed ? 1 : job->ld;
    const float *from = w->from + at->k * down + at->line * right;
    const int lines = w->line + w->count;
    const bool in_fours = transposed ? job->ld % 4 == 0 && w->count % 4 == 0 : w->end % 4 == 0;
    if (in_fours && (unsigned long long)from % 16 == 0) {
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

/* ---- Maxima ---------------------------------------------------------------------------------- */

static __device__ __forceinline__ unsigned larger(unsigned x, unsigned y)
{
    return x > y ? x : y;
}

static __device__ __forceinline__ unsigned pattern(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

/* The maximum of lanes that differ in the bits of their number from `low` up to below `high`. */
static __device__ __forceinline__ unsigned lanes_maximum(unsigned x, int low, int high)
{
    for (int i = high / 2; i >= low; i /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, i));
    return x;
}

/* most[j] becomes the larger of it and the thread's elements, of line j if transposed. */
static __device__ __forceinline__ void add_maxima(unsigned *most, const float *x,
                                                  const bool transposed)
{
#pragma unroll
    for (int e = 0; e < 32; e++)
        most[transposed ? e % 4 : 0] = larger(most[transposed ? e % 4 : 0], pattern(x[e]));
}

struct maxima {
    unsigned of_warps[WARPS][TGL_BLOCK_LINES_MAX];
    float of_block[TGL_BLOCK_LINES_MAX], of_line[TGL_BLOCK_LINES_MAX]; /* patterns */
};

/* Writes the maxima of the warp. Returns the number of warps that share a line. */
static __device__ __forceinline__ int write_maxima(struct maxima *to, const unsigned *most,
                                                   const job_t *job, const struct place *at,
                                                   const bool transposed)
{
    const int thread = (int)threadIdx.x, lane = thread % 32;
    if (transposed) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const unsigned all = lanes_maximum(most[j], STRIP / 4, 32);
            if (lane < STRIP / 4) to->of_warps[thread / 32][at->slot + j] = all;
        }
        return WARPS;
    }
    const int threads = THREADS / job->block_lines; /* of a line */
    const unsigned all = lanes_maximum(most[0], 1, threads < 32 ? threads : 32);
    if (threads >= 32) {
        if (lane == 0) to->of_warps[thread % threads / 32][at->slot] = all;
        return threads / 32;
    }
    if (thread % threads == 0) to->of_warps[0][at->slot] = all;
    return 1;
}

/* The maximum of the line with the thread's number, in threads below block_lines: over all blocks
 * of the line. After it maxima->of_line has all of them. */
static __device__ __forceinline__ unsigned combine_maxima(struct maxima *maxima, const job_t *job,
                                                          int warps)
{
    const int line = (int)threadIdx.x;
    const bool is_own = line < job->block_lines;
    unsigned all = 0;
    __syncthreads();
    for (int i = 0; is_own && i < warps; i++)
        all = larger(all, maxima->of_warps[i][line]);
    if (job->parts == 1) {
        if (is_own) maxima->of_line[line] = __uint_as_float(all);
        __syncthreads();
        return all;
    }
    if (is_own) maxima->of_block[line] = __uint_as_float(all);
    cluster_sync();
    for (int i = 0; is_own && i < job->parts; i++)
        all = larger(all, __float_as_uint(cluster_load(&maxima->of_block[line], i)));
    if (is_own) maxima->of_line[line] = __uint_as_float(all);
    cluster_sync(); /* no block ends while others read its maxima */
    return all;
}

/* s of a line whose largest element has this pattern; 0 of a line of zeros, or with Inf or NaN. */
static __device__ __forceinline__ int exponent_of(unsigned most)
{
    if (most == 0 || most >= INFINITY_IS) return 0;
    /* Of a denormal number, the place of its first bit; else the exponent field. */
    const int exponent = most >> 23 ? (int)(most >> 23) - 127 : 31 - __clz((int)most) - 149;
    return TGL_TOP_EXPONENT - exponent;
}

/* By one thread for each line: what the reader of the words has to know of it. */
static __device__ __forceinline__ void record_line(const struct work *w, int line, unsigned most)
{
    const int s = exponent_of(most);
    const unsigned state =
        (most >= INFINITY_IS ? TGL_PANEL_NOT_FINITE : 0) |
        (s > TGL_MODEST_EXPONENT || s < -TGL_MODEST_EXPONENT ? TGL_PANEL_WIDE : 0);
    w->exponents[line] = s;
    if (state) {
        atomicOr(&w->counter->state, state);
        __threadfence(); /* before the block counts itself */
    }
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* The words of two elements. Bit i of the result: two words cannot represent x[i]. */
static __device__ __forceinline__ unsigned split_two(const float *x, struct scale scale,
                                                     unsigned *hi, unsigned *lo)
{
    float y[2], rest[2];
    unsigned below = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        y[i] = scaled(x[i], scale);
        const bool is_below = is_below_words(x[i], y[i]);
        below |= (unsigned)is_below << i;
        if (is_below) y[i] = 0.0f;
    }
    *hi = floats_to_f16(y[0], y[1]);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const struct f16 word = {(unsigned short)(*hi >> 16 * i)};
        rest[i] = (y[i] - f16_to_float(word)) * (float)(1 << TGL_WORD_EXPONENT);
    }
    *lo = floats_to_f16(rest[0], rest[1]);
    return below;
}

/* Writes the words of the thread's elements of one line. Bit e of the result: element e is to be
 * listed. */
static __device__ __forceinline__ unsigned split_line(const float *x, const job_t *job,
                                                      const struct work *w, const struct place *at,
                                                      const struct maxima *maxima)
{
    const unsigned most = __float_as_uint(maxima->of_line[at->slot]);
    const struct scale scale = scale_of(exponent_of(most));
    const long long to = at->line * job->pitch + at->k;
    const bool is_inside = at->line < w->line + w->count;
    unsigned below = 0;
#pragma unroll
    for (int e = 0; e < 32; e += 4) {
        uint2 hi, lo;
        below |= split_two(&x[e], scale, &hi.x, &lo.x) << e;
        below |= split_two(&x[e + 2], scale, &hi.y, &lo.y) << (e + 2);
        if (!is_inside || k_of(at, e, false) >= w->end) continue;
        *(uint2 *)&w->hi[to + e / 4 * at->distance] = hi;
        *(uint2 *)&w->lo[to + e / 4 * at->distance] = lo;
    }
    return most < INFINITY_IS ? below : 0;
}

/* The same for lines that are columns in memory: four of them. */
static __device__ __forceinline__ unsigned split_columns(const float *x, const job_t *job,
                                                         const struct work *w,
                                                         const struct place *at,
                                                         const struct maxima *maxima)
{
    unsigned below = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const unsigned most = __float_as_uint(maxima->of_line[at->slot + j]);
        const struct scale scale = scale_of(exponent_of(most));
        const long long to = (at->line + j) * job->pitch + at->k;
        unsigned hi[4], lo[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float two[2] = {x[8 * i + j], x[8 * i + 4 + j]};
            const unsigned bits = split_two(two, scale, &hi[i], &lo[i]);
            if (most < INFINITY_IS)
                below |= (bits & 1) << (8 * i + j) | (bits >> 1) << (8 * i + 4 + j);
        }
        if (at->line + j >= w->line + w->count || at->k >= w->end) continue;
        *(uint4 *)&w->hi[to] = make_uint4(hi[0], hi[1], hi[2], hi[3]);
        *(uint4 *)&w->lo[to] = make_uint4(lo[0], lo[1], lo[2], lo[3]);
    }
    return below;
}

/* Adds the thread's elements e with bit e of `below` to the list of the panel; all lanes of a warp
 * call it. */
static __device__ __forceinline__ void list_below(const job_t *job, const struct work *w,
                                                  const struct place *at, unsigned below,
                                                  const bool transposed)
{
    const int lane = (int)threadIdx.x % 32;
    int before = 0; /* elements of lower lanes, and this one's */
    for (unsigned bits = below; bits; bits &= bits - 1)
        before++;
    const int own = before;
#pragma unroll
    for (int i = 1; i < 32; i *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, before, i);
        if (lane >= i) before += other;
    }
    const int all = __shfl_sync(0xffffffffu, before, 31);
    if (all == 0) return;
    unsigned first = 0;
    if (lane == 0) {
        first = atomicAdd(&w->counter->count, (unsigned)all);
        __threadfence(); /* before the block counts itself */
    }
    first = __shfl_sync(0xffffffffu, first, 0) + (unsigned)(before - own);
    for (int e = 0; e < 32 && first < TGL_LISTED_MAX; e++) {
        if (!(below >> e & 1)) continue;
        const int line = line_of(at, e, transposed), k = k_of(at, e, transposed);
        struct tgl_listed *to = &w->panel->listed[first];
        to->line = line % TGL_PANEL_LINES;
        to->k = k;
        to->value = w->from[transposed ? k * job->ld + line : line * job->ld + k];
        first++;
    }
}

/* Counts the block at its panel. The last one completes the panel and leaves its counter zero. */
static __device__ __forceinline__ void finish_panel(const job_t *job, const struct work *w)
{
    const int lines = job->lines - w->line / TGL_PANEL_LINES * TGL_PANEL_LINES;
    const int groups = (lines < TGL_PANEL_LINES ? lines + job->block_lines - 1 : TGL_PANEL_LINES) /
                       job->block_lines;
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (atomicAdd(&w->counter->finished, 1u) + 1 != (unsigned)(groups * job->parts)) return;
    __threadfence();
    w->panel->state = atomicExch(&w->counter->state, 0u);
    w->panel->count = atomicExch(&w->counter->count, 0u);
    atomicExch(&w->counter->finished, 0u);
}

/* ---- The kernel ------------------------------------------------------------------------------ */

static __device__ __forceinline__ void decompose_lines(const job_t *job, int block,
                                                       struct maxima *maxima,
                                                       const bool transposed)
{
    struct work w;
    if (!find_work(job, block, &w)) return;
    const int step = step_of(job, transposed);
    float x[32];
    unsigned most[4] = {0, 0, 0, 0};
    struct place at;
    /* From the last step to the first one, whose elements stay in registers. */
    for (int p = (w.end - w.first - 1) / step * step; p >= 0; p -= step) {
        at = place_of(job, &w, w.first + p, transposed);
        load(x, job, &w, &at, transposed);
        add_maxima(most, x, transposed);
    }
    const int warps = write_maxima(maxima, most, job, &at, transposed);
    const unsigned all = combine_maxima(maxima, job, warps);
    if (w.part == 0 && (int)threadIdx.x < w.count) record_line(&w, w.line + (int)threadIdx.x, all);
    for (int p = w.first;;) {
        const unsigned below = transposed ? split_columns(x, job, &w, &at, maxima)
                                          : split_line(x, job, &w, &at, maxima);
        list_below(job, &w, &at, below, transposed);
        p += step;
        if (p >= w.end) break;
        at = place_of(job, &w, p, transposed);
        load(x, job, &w, &at, transposed);
    }
    finish_panel(job, &w);
}

__global__ void __launch_bounds__(THREADS, BLOCKS) decompose(const struct tgl_decompose_args args)
{
    __shared__ struct maxima maxima;
    wait_for_earlier_launches();
    let_later_launches_start();
    if (args.alpha_at && *args.alpha_at == 0) return;
    const int block = (int)blockIdx.x;
    if (block < args.first_blocks)
        decompose_lines(&args.jobs[0], block, &maxima, TRANSPOSED_0);
    else
        decompose_lines(&args.jobs[1], block - args.first_blocks, &maxima, TRANSPOSED_1);
}
