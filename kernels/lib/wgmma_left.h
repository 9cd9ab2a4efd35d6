/* SPDX-License-Identifier: Apache-2.0
 *
 * Left tiles of TF32 that are M-major. wgmma reads only K-major TF32 from shared memory, but it
 * also takes the left operand from registers. The threads of a consumer therefore load M-major
 * tiles into registers.
 *
 * TMA writes such a tile as columns of 32 rows. A column has BK lines of 128 bytes, one for each k,
 * with a swizzle of 128 bytes: the 16-byte chunk c of the line of k is at chunk c ^ k % 8.
 *
 *     chunk     0      1      2      3      4      5      6      7       rows of the column
 *     k = 0   0..3   4..7   8..11  12..15 16..19 20..23 24..27 28..31
 *     k = 1   4..7   0..3   12..15 8..11  20..23 16..19 28..31 24..27
 *     ...
 *
 * Register 0 of a wgmma's fragment is the element (row, k) = (lane / 4, lane % 4). If a warp loaded
 * registers 0 together, lanes of k = 0 and k = 1 would read the same banks. Lanes with an odd lane
 * % 4 therefore load their elements of k + 4 first: then the 32 lanes read all eight chunks.
 */
#ifndef TGL_WGMMA_LEFT_H
#define TGL_WGMMA_LEFT_H

#include "lib/wgmma_tiles.h"

#if WGMMA_LEFT_IN_REGISTERS

#define LEFT_COLUMN_BYTES (LINE(BM) * 128) /* bytes of a column of 32 rows */
#define LEFT_GROUP_BYTES  (8 * 128)        /* bytes of 8 k of a column, the depth of a wgmma */

/* The offset of an element in a column. row: below 32; k: below 8. */
static __device__ __forceinline__ unsigned left_place(unsigned row, unsigned k)
{
    return k * 128 + (row / 4 ^ k) * 16 + row % 4 * 4;
}

/* fragment[] := the left registers of one wgmma: 64 rows from `row` on, and the 8 k whose lines
 * begin at `tile`. */
static __device__ __forceinline__ void load_left_fragment(unsigned *fragment,
                                                          const unsigned char *tile, int row)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const unsigned is_odd = lane & 1, k = lane % 4 + 4 * is_odd;
    const unsigned char *column = tile + (row / 32 + (int)warp / 2) * LEFT_COLUMN_BYTES;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const unsigned at = warp % 2 * 16 + lane / 4 + 8 * (unsigned)i;
        const unsigned first = *(const unsigned *)(column + left_place(at, k));
        const unsigned second = *(const unsigned *)(column + left_place(at, k ^ 4));
        fragment[i] = is_odd ? second : first;
        fragment[i + 2] = is_odd ? first : second;
    }
}

/* fragments[][] := the left registers of all wgmmas of a stage, for rows [row, row + WM) of the
 * tile. */
static __device__ __forceinline__ void load_left_stage(unsigned (*fragments)[K_STEPS][4],
                                                       const unsigned char *tile, int row)
{
#pragma unroll
    for (int i = 0; i < M_STEPS; i++)
#pragma unroll
        for (int k = 0; k < K_STEPS; k++)
            load_left_fragment(fragments[i][k], tile + k * LEFT_GROUP_BYTES, row + i * 64);
}

/* Calls wgmma_hold_left() for all fragments of a stage. Called after the wait for their wgmmas. */
static __device__ __forceinline__ void hold_left_stage(unsigned (*fragments)[K_STEPS][4])
{
#pragma unroll
    for (int i = 0; i < M_STEPS * K_STEPS; i++)
        wgmma_hold_left(fragments[i / K_STEPS][i % K_STEPS]);
}

#endif

#endif
