/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the results of gemm/simt.cu with UNALIGNED_D: rows of D need not begin at multiples of 16
 * bytes. A line is a row of the block's tile of D. If each thread stored its groups of four
 * elements by scalar stores, each store of a warp would touch four times the sectors that its
 * results occupy. Therefore the lines of a tile pass through shared memory, and each store of a
 * warp writes to the same aligned 128 bytes.
 */
#ifndef TGL_SIMT_LINES_H
#define TGL_SIMT_LINES_H

#include "lib/simt_results.h"

#if UNALIGNED_D

#define WARPS_N (BN / WN)

/* LINES_OF_WARP: lines that a warp stores between two barriers. PIECES: stores per line. Each store
 * has 32 adjacent elements, and all but the first begin at a multiple of 128 bytes. */
enum { LINES_OF_WARP = 4 * LANES_M / WARPS_N, PIECES = BN / 32 + 1 };

#if 4 * LANES_M % WARPS_N || BN % 32
#error "UNALIGNED_D: warps store equally many lines of D, BN % 32 is 0"
#endif

/* Stores a tile of which this block has the complete sums, four lines of each thread at a time.
 * shared: room for the lines, in place of the tiles of A and B. row, col: the thread's first row
 * and column in the block's tile. All elements of a line, in shared memory and in C, are loaded
 * before its first store, because the compiler does not move loads across stores. */
static __device__ __forceinline__ void store_lines(const struct tgl_gemm_args *args, float *shared,
                                                   float (*acc)[TN], const struct simt_place *at,
                                                   int row, int col)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int tile_row = at->row - row, tile_col = at->col - col, own_line = row % WM;
    const int col_from = max(0, at->first_col - tile_col), col_to = min(BN, args->n - tile_col);
    /* Group g of four lines is shifted by g % PAD floats: the threads of one column of the warp
     * then write to different banks. */
    float *to_shared =
        shared + (row / WM * 4 * LANES_M + own_line) * (BN + PAD) + own_line / 4 % PAD + col;
    ASYNC_WAIT(0); /* the copies issued past the last tile write zeros: wait for them */
#pragma unroll
    for (int i = 0; i < TM; i += 4) {
        __syncthreads(); /* the tiles, or the previous lines, have been read */
#pragma unroll
        for (int e = 0; e < 4 * TN; e++)
            to_shared[e / TN * (BN + PAD) + e % TN / 4 * 4 * LANES_N + e % 4] =
                acc[i + e / TN][e % TN];
        __syncthreads();
#pragma unroll 1
        for (int l = 0; l < LINES_OF_WARP; l++) {
            const int line = warp % WARPS_N * LINES_OF_WARP + l;
            const int to_row = tile_row + warp / WARPS_N * WM + i * LANES_M + line;
            if (to_row < at->first_row || to_row >= args->m) continue;
            const float *from = &shared[(warp / WARPS_N * 4 * LANES_M + line) * (BN + PAD) +
                                        (unsigned)line / 4 % PAD];
            element_d *to = &at->with.D[to_row * args->ldd + tile_col];
            const element_c *c_row = BESIDE(args, &at->with, to, to_row, tile_col);
            const int first = lane - (int)((unsigned long long)to / sizeof(element_d) % 32);
            accumulate_t sums[PIECES], old[PIECES];
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                const int c = first + 32 * p;
                sums[p] = from[min(max(c, 0), BN - 1)];
                old[p] = BETA(args, &at->with) != 0 && c >= col_from && c < col_to
                             ? from_c(c_row[c])
                             : 0;
            }
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                const int c = first + 32 * p;
                if (c >= col_from && c < col_to)
                    to[c] = to_d(epilogue(args, &at->with, sums[p], old[p], to_row, tile_col + c));
            }
        }
    }
}

#endif

#endif
