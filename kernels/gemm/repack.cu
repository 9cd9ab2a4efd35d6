/* SPDX-License-Identifier: Apache-2.0
 *
 * A pre-pass that copies matrices of any alignment so that TMA can read the copies. A line is a
 * contiguous row of the copy, and begins at a multiple of 16 bytes. A launch has one or two jobs,
 * each a matrix or a batch of matrices. TRANSPOSED_0, TRANSPOSED_1: the lines of the first or
 * second job are columns of the source in memory. ROUND_TF32: FP32 elements are rounded to TF32, to
 * nearest.
 *
 *   lines        A warp writes a part of a line, 16 bytes per thread at a time. For these 16 bytes
 *                a thread reads the two aligned 16-byte words that contain them. At the ends of a
 *                line, where such a word may lie outside of the matrix, it reads single elements.
 *   transposed   A block moves 64 x 64 elements through shared memory.
 *
 * Every thread issues all its loads before it uses the first one. The latency of these loads, which
 * come from memory, is most of the time of a launch.
 */
#include "lib/launch_order.h"
#include "lib/repack_args.h"
#include "lib/unaligned.h"

#ifndef ELEMENT_BYTES
#define ELEMENT_BYTES 2 /* 1, 2 or 4 */
#endif
#ifndef ROUND_TF32
#define ROUND_TF32 0
#endif
#ifndef INTEGER_ALPHA
#define INTEGER_ALPHA 0 /* 1: alpha_at is the address of an int32, not of a float */
#endif
#ifndef TRANSPOSED_0
#define TRANSPOSED_0 0 /* 1: the lines of the first job are columns in memory */
#endif
#ifndef TRANSPOSED_1
#define TRANSPOSED_1 0 /* 1: the lines of the second job are columns in memory */
#endif

#if ROUND_TF32 && ELEMENT_BYTES != 4
#error "ROUND_TF32: ELEMENT_BYTES is 4"
#endif

#define THREADS    256
#define WARPS      (THREADS / 32)
#define PER_VECTOR (16 / ELEMENT_BYTES)    /* elements in 16 bytes */
#define PER_LANE   4                       /* 16-byte vectors that a lane writes */
#define TILE       64                      /* edge of a transposed tile */
#define PER_WORD   (4 / ELEMENT_BYTES)     /* elements of a 32-bit word, which is one store */
#define WORDS      (TILE / PER_WORD)       /* 32-bit words in a line of a tile */
#define ROWS       (TILE * TILE / THREADS) /* rows of a tile from which a thread loads an element */

#if ELEMENT_BYTES == 4
typedef unsigned element;
#elif ELEMENT_BYTES == 1
typedef unsigned char element;
#else
typedef unsigned short element;
#endif

#if INTEGER_ALPHA
#define ALPHA_IS_0(at) (*(const int *)(at) == 0)
#else
#define ALPHA_IS_0(at) (*(const float *)(at) == 0)
#endif

#if ROUND_TF32
#include "lib/mma.h"
#define rounded(bits) round_to_tf32(bits)
#else
#define rounded(bits) (bits)
#endif

/* Returns 16 bytes of a line from element `first` on, read element by element; zeros past the
 * line's end. */
static __device__ __forceinline__ uint4 read_end(const element *line, int first, int length)
{
    unsigned w[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < PER_VECTOR; i++)
        if (first + i < length)
            w[i * ELEMENT_BYTES / 4] |= (unsigned)line[first + i] << i * ELEMENT_BYTES % 4 * 8;
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/* Copies a warp's part of a line. along, down: the block's position in the result, counted in
 * blocks along a line and from line to line. */
static __device__ __forceinline__ void
copy_lines(const struct tgl_repack_job *job, const element *from, element *to, int along, int down)
{
    const int number = down * WARPS + (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    if (number >= job->lines) return;
    const element *line = from + number * job->ld;
    uint4 *result = (uint4 *)(to + number * job->pitch);
    const int vectors = (job->length + PER_VECTOR - 1) / PER_VECTOR;
    const int first = along * 32 * PER_LANE + lane;
    /* A vector is the 16 bytes that a thread writes. In the source it begins at byte `skip` of an
     * aligned 16-byte word, behind `before` elements. reach: elements from the vector's beginning
     * to the end of the last aligned word that contains a part of it. */
    const int skip = (int)((unsigned long long)line % 16), before = skip / ELEMENT_BYTES;
    const int reach = skip == 0 ? PER_VECTOR : 2 * PER_VECTOR - before;
    const uint4 zero = make_uint4(0, 0, 0, 0);
    uint4 low[PER_LANE], high[PER_LANE];
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        const int at = (first + i * 32) * PER_VECTOR;
        const bool is_inside = at >= before && at <= job->length - reach;
        const uint4 *words = (const uint4 *)((const char *)(line + at) - skip);
        low[i] = is_inside ? words[0] : zero;
        high[i] = is_inside && skip != 0 ? words[1] : zero;
    }
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        const int at = (first + i * 32) * PER_VECTOR;
        const bool is_inside = at >= before && at <= job->length - reach;
        if (first + i * 32 >= vectors) continue;
        const uint4 v =
            is_inside ? join_words(low[i], high[i], skip) : read_end(line, at, job->length);
        result[first + i * 32] = make_uint4(rounded(v.x), rounded(v.y), rounded(v.z), rounded(v.w));
    }
}

#if TRANSPOSED_0 || TRANSPOSED_1
/* to[l * pitch + p] := from[p * ld + l] for a tile of TILE x TILE elements. along, down: the tile's
 * position in the result, in tiles. */
static __device__ __forceinline__ void transpose_tile(const struct tgl_repack_job *job,
                                                      const element *from, element *to, int along,
                                                      int down)
{
    __shared__ element tile[TILE][TILE + 1];
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int line = down * TILE, p = along * TILE;
    element v[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int row = p + y + i * (THREADS / TILE);
        v[i] = line + x < job->lines && row < job->length ? from[row * job->ld + line + x] : 0;
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        tile[y + i * (THREADS / TILE)][x] = v[i];
    __syncthreads();
    const int first = (int)threadIdx.x % WORDS * PER_WORD, start = (int)threadIdx.x / WORDS;
#pragma unroll
    for (int i = 0; i < TILE; i += THREADS / WORDS) {
        const int l = start + i;
        if (line + l >= job->lines || p + first >= job->length) continue;
        unsigned word = 0;
#pragma unroll
        for (int e = 0; e < PER_WORD; e++)
            word |= (unsigned)rounded(tile[first + e][l]) << e * (8 * ELEMENT_BYTES);
        *(unsigned *)&to[(line + l) * job->pitch + p + first] = word;
    }
}
#endif

static __device__ __forceinline__ void do_job(const struct tgl_repack_job *job, int block,
                                              const bool transposed)
{
    const int in_matrix = job->blocks_along * job->blocks_down;
    const int matrix = block / in_matrix, in_it = block - matrix * in_matrix;
    const int down = in_it / job->blocks_along, along = in_it - down * job->blocks_along;
    const element *from = (const element *)job->from + matrix * job->stride_from;
    element *to = (element *)job->to + matrix * job->stride_to;
#if TRANSPOSED_0 || TRANSPOSED_1
    if (transposed)
        transpose_tile(job, from, to, along, down);
    else
#endif
        copy_lines(job, from, to, along, down);
    (void)transposed;
}

__global__ void __launch_bounds__(THREADS) repack(const struct tgl_repack_args args)
{
    wait_for_earlier_launches();
    let_later_launches_start();
    if (args.alpha_at && ALPHA_IS_0(args.alpha_at)) return;
    const int block = (int)blockIdx.x;
    if (block < args.first_blocks)
        do_job(&args.jobs[0], block, TRANSPOSED_0);
    else
        do_job(&args.jobs[1], block - args.first_blocks, TRANSPOSED_1);
}
