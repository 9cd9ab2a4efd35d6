/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the sums of slices (groups of warps that divide the K of a tile among them) and of split-K
 * tiles of gemm/dmma.cu, and stores the results to D. Each lane stores pairs of adjacent columns
 * from registers. The four lanes of a row store 64 bytes at once, contiguous or in two ranges of 32
 * bytes. In a tile of D^T, the lanes of eight rows of the tile do so.
 */
#ifndef TGL_DMMA_STORE_H
#define TGL_DMMA_STORE_H

#include "lib/dmma_tiles.h"
#include "lib/epilogue.h"
#include "lib/named_barrier.h"
#include "lib/wgmma_units.h"

#define SUMS (MT * NT * 4) /* sums of a thread */

#define SLICES_BARRIER() named_barrier(2, CONSUMER_THREADS)
#include "lib/slice_sums.h"

#define SUM_THREADS SLICE_THREADS
#if SETS_REGISTERS
#define SUM_ROOM CONSUMER_REGISTERS
#endif
#define SUM_SLICES           SLICES
#define LAST_BLOCK_BARRIER() named_barrier(1, CONSUMER_THREADS)
#define OTHER_REGISTERS      56
#include "lib/split_units.h"

/* ---- Results --------------------------------------------------------------------------------- */

/* to[][] := the warp's sums of rows 16 * number to 16 * number + 15. Registers cannot be indexed by
 * a variable, so a comparison selects the rows. In return, the code that stores rows exists only
 * once. */
static __device__ __forceinline__ void select_rows(double (*to)[4], double (*acc)[NT][4],
                                                   int number)
{
#pragma unroll
    for (int i = 0; i < MT; i++)
        if (i == 0 || i == number)
#pragma unroll
            for (int e = 0; e < NT * 4; e++)
                to[e / 4][e % 4] = acc[i][e / 4][e % 4];
}

/* Stores two neighbours of a row: D[row][col] and, if it exists, D[row][col + 1]. aligned: the pair
 * is aligned to 16 bytes in C and D. */
static __device__ __forceinline__ void store_pair(const struct tgl_gemm_args *args,
                                                  const struct epilogue_operands *with,
                                                  const double *sums, int row, int col,
                                                  bool aligned)
{
    double *d = with->D + row * args->ldd + col;
    const double *c = BESIDE(args, with, d, row, col);
    if (aligned && col + 1 < args->n) {
        double2 v = make_double2(0, 0);
        if (BETA(args, with) != 0) v = *(const double2 *)c;
        v.x = epilogue(args, with, sums[0], v.x, row, col);
        v.y = epilogue(args, with, sums[1], v.y, row, col + 1);
        *(double2 *)d = v;
    } else {
        epilogue_store(args, with, sums[0], row, col);
        if (col + 1 < args->n) epilogue_store(args, with, sums[1], row, col + 1);
    }
}

/* Whether all pairs of C and D are aligned to 16 bytes. */
static __device__ __forceinline__ bool has_aligned_pairs(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with)
{
    bool aligned = (unsigned long long)with->D % 16 == 0 && args->ldd % 2 == 0;
#if SEPARATE_D
    aligned = aligned && (unsigned long long)with->C % 16 == 0 && args->ldc % 2 == 0;
#endif
    return aligned;
}

/* Stores the results of sums[0] and sums[1], two neighbours in a row of the tile, of which the
 * second may be outside of D. row, col: the position of sums[0] in D, or in D^T if EXCHANGED. */
static __device__ __forceinline__ void store_pair_of_tile(const struct tgl_gemm_args *args,
                                                          const struct epilogue_operands *with,
                                                          const double *sums, int row, int col,
                                                          bool aligned)
{
#if EXCHANGED
    (void)aligned;
    epilogue_store(args, with, sums[0], col, row);
    if (col + 1 < args->m) epilogue_store(args, with, sums[1], col + 1, row);
#else
    store_pair(args, with, sums, row, col, aligned);
#endif
}

/* Stores a warp's sums. The first one is in row `row` and column `col` of D, or of D^T if
 * EXCHANGED. */
static __device__ __forceinline__ void
dmma_store_sums(const struct tgl_gemm_args *args, double (*acc)[NT][4], int batch, int row, int col)
{
    double *D = (double *)args->D +
                batch * args->stride_d; /* not D_OF(): this kernel has no batches of pointers */
    const struct epilogue_operands with = epilogue_operands(args, D, batch);
    const bool aligned = has_aligned_pairs(args, &with);
    const int lane = (int)threadIdx.x % 32;
#pragma unroll 1
    for (int i = 0; i < MT && row < left_extent(args); i++, row += 16) {
        double of_rows[NT][4];
        select_rows(of_rows, acc, i);
#pragma unroll
        for (int p = 0; p < 8; p++) {
            const int to_row = row + ROW(lane / 4, p / 4);
            const int to_col = col + PAIR_COLUMN(lane % 4, p % 4);
            double pair[2];
            take_pair(pair, of_rows, p / 4, p % 4);
            if (to_row < left_extent(args) && to_col < right_extent(args))
                store_pair_of_tile(args, &with, pair, to_row, to_col, aligned);
        }
    }
}

#endif
