/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of a warp of gemm/mma.cu and gemm/batch_mma.cu: 16 rows at a time pass through shared
 * memory, so that neighbouring lanes store neighbouring groups of four, or single elements if D is
 * unaligned.
 */
#ifndef TGL_MMA_STORE_H
#define TGL_MMA_STORE_H

#include "lib/epilogue.h"
#include "lib/mma_tiles.h"

/* The pitch of the buffer through which a warp passes its results to the epilogue: pairs of results
 * in four rows are in different banks. Lanes read f64 as two pairs, so the second pair of each four
 * columns is in the second half of the row. */
#define PITCH       (WN + 8)
#define COLUMN(col) (ACCUMULATE == TYPE_F64 ? (col) / 2 % 2 * (WN / 2 + 4) + (col) / 4 * 2 : (col))

/* Stores two adjacent results of a row. */
static __device__ __forceinline__ void leave_pair(accumulate_t *to, const accumulate_t *sums)
{
#if ACCUMULATE == TYPE_F64
    *(double2 *)to = make_double2(sums[0], sums[1]);
#else
    *(float2 *)to = make_float2(sums[0], sums[1]);
#endif
}

static __device__ __forceinline__ void take_four(accumulate_t *sums, const accumulate_t *from)
{
#if ACCUMULATE == TYPE_F64
    const double2 low = *(const double2 *)from, high = *(const double2 *)(from + COLUMN(2));
    sums[0] = low.x, sums[1] = low.y, sums[2] = high.x, sums[3] = high.y;
#else
    const float4 v = *(const float4 *)from;
    sums[0] = v.x, sums[1] = v.y, sums[2] = v.z, sums[3] = v.w;
#endif
}

/* Stores 16 rows of a warp's results from shared memory, the first of which is D[row][col]. */
static __device__ __forceinline__ void store_rows(const struct tgl_gemm_args *args,
                                                  const struct epilogue_operands *with,
                                                  const accumulate_t *own, int row, int col)
{
    enum { FOURS_OF_ROW = WN / 4 };
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int f = 0; f < 16 * FOURS_OF_ROW; f += 32) {
        const int in_row = (f + lane) / FOURS_OF_ROW, in_col = (f + lane) % FOURS_OF_ROW * 4;
        accumulate_t sums[4];
        take_four(sums, own + in_row * PITCH + COLUMN(in_col));
        if (row + in_row < args->m && col + in_col < args->n)
            epilogue_store4(args, with, sums, row + in_row, col + in_col, 0, args->n - col - in_col,
                            true);
    }
}

/* The same for rows that do not begin at multiples of 16 bytes. If each lane stored four elements
 * one by one, each sector of 32 bytes would be written by four instructions. */
static __device__ __forceinline__ void store_unaligned_rows(const struct tgl_gemm_args *args,
                                                            const struct epilogue_operands *with,
                                                            const accumulate_t *own, int row,
                                                            int col)
{
    const int lane = (int)threadIdx.x % 32;
#if D_HAS_16_BITS
#pragma unroll 4
    for (int i = 0; i < 16 * WN / 2; i += 32) {
        const int in_row = (i + lane) / (WN / 2), pair = (i + lane) % (WN / 2);
        if (row + in_row < args->m)
            epilogue_store_pair(args, with, own + in_row * PITCH, WN, pair, row + in_row, col, 0,
                                args->n - col);
    }
#else
#pragma unroll 4
    for (int i = 0; i < 16 * WN; i += 32) {
        const int in_row = (i + lane) / WN, in_col = (i + lane) % WN, in_pair = in_col % 2;
        if (row + in_row < args->m && col + in_col < args->n)
            epilogue_store(args, with, own[in_row * PITCH + COLUMN(in_col - in_pair) + in_pair],
                           row + in_row, col + in_col);
    }
#endif
}

/* Stores a warp's results, the first of which is D[row][col]. own: 16 rows in shared memory, which
 * this warp alone uses. */
static __device__ __forceinline__ void store_results(const struct tgl_gemm_args *args,
                                                     const struct epilogue_operands *with,
                                                     accumulate_t *own, accumulate_t (*acc)[NT][4],
                                                     int row, int col)
{
    const int lane = (int)threadIdx.x % 32;
    const bool is_aligned = ROWS_ARE_ON_16_BYTES(args, with);
    accumulate_t *to = own + lane / 4 * PITCH + COLUMN(lane % 4 * 2);
#pragma unroll
    for (int i = 0; i < MT; i++) {
        __syncwarp(); /* the 16 rows before have been read */
#pragma unroll
        for (int j = 0; j < NT; j++) {
            leave_pair(to + COLUMN(j * 8), &acc[i][j][0]);
            leave_pair(to + COLUMN(j * 8) + 8 * PITCH, &acc[i][j][2]);
        }
        __syncwarp();
        if (is_aligned)
            store_rows(args, with, own, row + i * 16, col);
        else
            store_unaligned_rows(args, with, own, row + i * 16, col);
    }
}

#endif
