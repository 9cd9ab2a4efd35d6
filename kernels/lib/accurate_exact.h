/* SPDX-License-Identifier: Apache-2.0
 *
 * Units of gemm/accurate.cu that FFMA computes from the FP32 operands themselves. A unit is a tile
 * of D, with all of its K. A consumer is a warpgroup that multiplies: it computes 64 rows of the
 * tile, in steps of EXACT_K. The tiles of op(A) and op(B) of a step use the shared
 * memory in which its warps later store their results (`chunks` of lib/accurate_tiles.h).
 */
#ifndef TGL_ACCURATE_EXACT_H
#define TGL_ACCURATE_EXACT_H

#include "lib/accurate_tiles.h"
#include "lib/shuffle.h"

/* The depth (K) of the tiles in shared memory: a tile of op(A) has 64 rows, a tile of op(B) BN
 * columns. */
#define EXACT_K 4
#if EXACT_K * (64 + BN) > 4 * 16 * 40
#error "BN: tiles of EXACT_K must fit into the chunks of a consumer"
#endif

/* The number of elements of op(A) and of op(B) that each thread loads. */
#define EXACT_LEFTS  (EXACT_K * 64 / 128)
#define EXACT_RIGHTS (EXACT_K * BN / 128)

/* Returns the place of the thread's element number i in a tile that is EXACT_K deep and has `edge`
 * rows of op(A) or columns of op(B). In the result, `row` is the row of op(A) or the column of
 * op(B), and `col` is the k. thread: the thread's number in the consumer. is_along_k: the operand
 * is K-major. */
static __device__ __forceinline__ struct fragment place_of(int thread, int i, const int edge,
                                                           const bool is_along_k)
{
    const int at = i * 128 + thread;
    struct fragment f;
    f.row = is_along_k ? at / EXACT_K : at % edge;
    f.col = is_along_k ? at % EXACT_K : at / edge;
    return f;
}

/* to[] := the thread's elements of the tiles that begin at k = first; 0 where a tile
 * extends beyond the matrices. group: the consumer's number. depth: K of the product. */
static __device__ __forceinline__ void bring(float *to, const struct tgl_gemm_args *args,
                                             const float *A, const float *B, const struct unit *u,
                                             int group, int first, int depth)
{
    const int thread = opaque((int)threadIdx.x % 128);
#pragma unroll
    for (int i = 0; i < EXACT_LEFTS; i++) {
        const struct fragment f = place_of(thread, i, 64, A_ALONG_K);
        const int row = u->left + group * WM + f.row, p = first + f.col;
        to[i] = row < args->m && p < depth ? element_of_a(args, A, row, p) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < EXACT_RIGHTS; i++) {
        const struct fragment f = place_of(thread, i, BN, B_ALONG_K);
        const int col = u->right + f.row, p = first + f.col;
        to[EXACT_LEFTS + i] = col < args->n && p < depth ? element_of_b(args, B, p, col) : 0.0f;
    }
}

/* Puts the thread's elements into the tiles: left[k][row], right[k][column]. */
static __device__ __forceinline__ void put(float *left, float *right, const float *from)
{
    const int thread = opaque((int)threadIdx.x % 128);
#pragma unroll
    for (int i = 0; i < EXACT_LEFTS; i++) {
        const struct fragment f = place_of(thread, i, 64, A_ALONG_K);
        left[f.col * 64 + f.row] = from[i];
    }
#pragma unroll
    for (int i = 0; i < EXACT_RIGHTS; i++) {
        const struct fragment f = place_of(thread, i, BN, B_ALONG_K);
        right[f.col * BN + f.row] = from[EXACT_LEFTS + i];
    }
}

/* sum := the thread's sums of a unit, computed by FFMA. room: the consumer's shared memory for the
 * two tiles. */
static __device__ __forceinline__ void multiply_exactly(float *sum,
                                                        const struct tgl_gemm_args *args,
                                                        const struct unit *u, int group, int depth,
                                                        float *room)
{
    const float *A = A_OF(args, u->batch), *B = B_OF(args, u->batch);
    const struct fragment f = fragment_of(group);
    float *left = room, *right = room + EXACT_K * 64;
    float next[EXACT_LEFTS + EXACT_RIGHTS];
#pragma unroll
    for (int i = 0; i < ACC; i++)
        sum[i] = 0.0f;
    bring(next, args, A, B, u, group, 0, depth);
#pragma unroll 1
    for (int first = 0; first < depth; first += EXACT_K) {
        consumer_barrier(group); /* the previous tiles have been read */
        put(left, right, next);
        consumer_barrier(group);
        bring(next, args, A, B, u, group, first + EXACT_K, depth);
#pragma unroll 1
        for (int k = 0; k < at_most(EXACT_K, depth - first); k++) {
            const float *a = &left[k * 64 + f.row - group * WM];
            const float rows[2] = {a[0], a[8]};
#pragma unroll
            for (int i = 0; i < ACC; i += 4) {
                const float2 b = *(const float2 *)&right[k * BN + f.col + i / 4 * 8];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i + j] = fmaf(rows[j / 2], j % 2 == 0 ? b.x : b.y, sum[i + j]);
            }
        }
    }
    consumer_barrier(group);
}

/* Whether a sum of any thread of the consumer is Inf or NaN. votes: shared memory, one int for each
 * warp of the consumer. */
static __device__ __forceinline__ bool has_overflowed(const float *sum, int *votes, int group)
{
    const float float_max = 3.40282347e38f; /* FLT_MAX */
    int own = 0;
#pragma unroll
    for (int i = 0; i < ACC; i++)
        own |= !(fabsf(sum[i]) <= float_max);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        own |= shuffle_xor(own, lanes);
    consumer_barrier(group); /* all threads have read the memory that `votes` overwrites */
    if (threadIdx.x % 32 == 0) votes[threadIdx.x / 32 % 4] = own;
    consumer_barrier(group);
    return (votes[0] | votes[1] | votes[2] | votes[3]) != 0;
}

#endif
