/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the sums of a warp of gemm/mma.cu or gemm/batch_mma.cu to D. 16 rows at a time pass
 * through shared memory. Neighbouring lanes then store neighbouring groups of four or eight
 * results, or neighbouring single results (16-bit types: pairs) if the rows of D are unaligned.
 */
#ifndef TGL_MMA_STORE_H
#define TGL_MMA_STORE_H

#include "lib/epilogue.h"
#include "lib/mma_tiles.h"

/* PITCH: elements from one row of shared memory to the next. With this pitch the pairs of sums that
 * lanes store in four rows are in different banks. COLUMN(col): the position of column `col` in a
 * row. Lanes read four sums of f64 as two pairs, so the second pair of each four columns is in the
 * second half of the row. */
#define PITCH       (WN + 8)
#define COLUMN(col) (ACCUMULATE == TYPE_F64 ? (col) / 2 % 2 * (WN / 2 + 4) + (col) / 4 * 2 : (col))

/* Stores two neighbouring sums of a row to shared memory. */
static __device__ __forceinline__ void leave_pair(accumulate_t *to, const accumulate_t *sums)
{
#if ACCUMULATE == TYPE_F64
    *(double2 *)to = make_double2(sums[0], sums[1]);
#elif ACCUMULATE == TYPE_I32
    *(uint2 *)to = make_uint2(sums[0], sums[1]);
#else
    *(float2 *)to = make_float2(sums[0], sums[1]);
#endif
}

/* Reads four neighbouring sums of a row. */
static __device__ __forceinline__ void take_four(accumulate_t *sums, const accumulate_t *from)
{
#if ACCUMULATE == TYPE_F64
    const double2 low = *(const double2 *)from, high = *(const double2 *)(from + COLUMN(2));
    sums[0] = low.x, sums[1] = low.y, sums[2] = high.x, sums[3] = high.y;
#elif ACCUMULATE == TYPE_I32
    const uint4 v = *(const uint4 *)from;
    sums[0] = v.x, sums[1] = v.y, sums[2] = v.z, sums[3] = v.w;
#else
    const float4 v = *(const float4 *)from;
    sums[0] = v.x, sums[1] = v.y, sums[2] = v.z, sums[3] = v.w;
#endif
}

/* If D := alpha * sums, D is aligned to 16 bytes, and n and ldd are multiples of GROUP, a lane
 * stores GROUP neighbouring results, 16 bytes (F64: twice 16), at once. This takes a third of the
 * instructions of epilogue_store4(). */
#define GROUP             (D_HAS_16_BITS ? 8 : 4)
#define HAS_SCALED_GROUPS (!D_HAS_8_BITS && !HAS_LINE_SCALES && VALUE == ACCUMULATE && !AMAX)

#if HAS_SCALED_GROUPS

static __device__ __forceinline__ bool has_scaled_groups(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with)
{
    return epilogue_only_scales(args, with) && (unsigned long long)with->D % 16 == 0 &&
           args->ldd % GROUP == 0 && args->n % GROUP == 0;
}

/* Stores GROUP results. `to` points to a type that is aligned to 16 bytes: with a type of lower
 * alignment NVRTC 13.0 stores 4 bytes at a time. */
static __device__ __forceinline__ void store_group(uint4 *to, const accumulate_t *v)
{
#if D_HAS_16_BITS
    unsigned w[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        w[i] = to_d_pair((float)v[2 * i], (float)v[2 * i + 1]);
    *to = make_uint4(w[0], w[1], w[2], w[3]);
#else
    store_four_of_d((element_d *)to, v);
#endif
}

/* Does what store_rows() does, if has_scaled_groups(). */
static __device__ __forceinline__ void store_scaled_rows(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with,
                                                         const accumulate_t *own, int row, int col)
{
    enum { GROUPS_OF_ROW = WN / GROUP, ROWS_AT_ONCE = 32 / GROUPS_OF_ROW };
    const int lane = (int)(threadIdx.x % 32u);
    const int in_row = lane / GROUPS_OF_ROW, in_col = lane % GROUPS_OF_ROW * GROUP;
    const int rows_left = col + in_col < args->n ? args->m - row - in_row : 0;
    const long long line = args->ldd / GROUP * (GROUP * (int)sizeof(element_d) / 16);
    uint4 *to = (uint4 *)(with->D + col + in_col) + (row + in_row) * line;
#pragma unroll
    for (int r = 0; r < 16; r += ROWS_AT_ONCE) {
        accumulate_t v[GROUP];
#pragma unroll
        for (int i = 0; i < GROUP; i += 4)
            take_four(v + i, own + (in_row + r) * PITCH + COLUMN(in_col + i));
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            v[i] *= ALPHA(args, with);
        if (r < rows_left) store_group(to + r * line, v);
    }
}

#endif

/* Stores 16 rows of a warp's results, the first of which is D[row][col]. own: the sums of these
 * rows in shared memory. */
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

#if HAS_SCALED_GROUPS
/* D := alpha * sums in 16 unaligned rows (see store_unaligned_rows()). Elements of 16 bits are
 * stored in pairs, as by epilogue_store_pair(); others are stored one by one. */
#if D_HAS_16_BITS
static __device__ __forceinline__ void store_scaled_elements(const struct tgl_gemm_args *args,
                                                             const struct epilogue_operands *with,
                                                             const accumulate_t *own, int row,
                                                             int col)
{
    enum { PAIRS = WN / 2 }; /* pairs of results in a row */
    const int lane = (int)(threadIdx.x % 32u), cols_left = args->n - col;
#pragma unroll 4
    for (int i = 0; i < 16 * PAIRS; i += 32) {
        const int in_row = (i + lane) / PAIRS, pair = (i + lane) % PAIRS;
        const accumulate_t *line = own + in_row * PITCH;
        element_d *d = with->D + (row + in_row) * args->ldd + col;
        const int skip = (int)((unsigned long long)d / sizeof *d % 2);
        const int first = (2 * pair - skip) & (WN - 1), second = 2 * pair - skip + 1;
        const float low = ALPHA(args, with) * line[first], high = ALPHA(args, with) * line[second];
        const unsigned word = to_d_pair(low, high);
        if (row + in_row >= args->m) continue;
        if (first < second && second < cols_left) {
            *(unsigned *)(d + first) = word;
        } else {
            if (first < cols_left) d[first].bits = (unsigned short)word;
            if (second < cols_left) d[second].bits = (unsigned short)(word >> 16);
        }
    }
}
#else
static __device__ __forceinline__ void store_scaled_elements(const struct tgl_gemm_args *args,
                                                             const struct epilogue_operands *with,
                                                             const accumulate_t *own, int row,
                                                             int col)
{
    enum { ROWS_AT_ONCE = WN < 32 ? 32 / WN : 1 };
    const int lane = (int)(threadIdx.x % 32u), in_row = lane / WN, in_col = lane % WN;
    const int rows_left = args->m - row - in_row, cols_left = args->n - col - in_col;
    const accumulate_t *from = own + in_row * PITCH + COLUMN(in_col - in_col % 2) + in_col % 2;
    element_d *to = with->D + (row + in_row) * args->ldd + col + in_col;
#pragma unroll 4
    for (int r = 0; r < 16; r += ROWS_AT_ONCE)
#pragma unroll
        for (int c = 0; c < WN; c += 32)
            if (r < rows_left && c < cols_left)
                to[r * args->ldd + c] =
                    to_d(ALPHA(args, with) * from[r * PITCH + COLUMN(c) - COLUMN(0)]);
}
#endif
#endif

/* As store_rows(), for unaligned rows: ROWS_ARE_ON_16_BYTES() is false. Neighbouring lanes store
 * neighbouring elements, so that one instruction fills each 32-byte sector. If each lane stored its
 * four elements one by one, four instructions would write to each sector. */
static __device__ __forceinline__ void store_unaligned_rows(const struct tgl_gemm_args *args,
                                                            const struct epilogue_operands *with,
                                                            const accumulate_t *own, int row,
                                                            int col)
{
    const int lane = (int)threadIdx.x % 32;
#if HAS_SCALED_GROUPS
    if (epilogue_only_scales(args, with)) {
        store_scaled_elements(args, with, own, row, col);
        return;
    }
#endif
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

/* Waits until all lanes have read the previous rows, then puts 16 rows of sums into shared
 * memory. */
static __device__ __forceinline__ void leave_rows(accumulate_t *own, accumulate_t (*acc)[4])
{
    const int lane = (int)threadIdx.x % 32;
    accumulate_t *to = own + lane / 4 * PITCH + COLUMN(lane % 4 * 2);
    __syncwarp();
#pragma unroll
    for (int j = 0; j < NT; j++) {
        leave_pair(to + COLUMN(j * 8), &acc[j][0]);
        leave_pair(to + COLUMN(j * 8) + 8 * PITCH, &acc[j][2]);
    }
    __syncwarp();
}

/* Stores a warp's results, the first of which is D[row][col]. own: 16 rows of shared memory that
 * only this warp uses. */
static __device__ __forceinline__ void store_results(const struct tgl_gemm_args *args,
                                                     const struct epilogue_operands *with,
                                                     accumulate_t *own, accumulate_t (*acc)[NT][4],
                                                     int row, int col)
{
#if HAS_SCALED_GROUPS
    if (has_scaled_groups(args, with)) {
#pragma unroll
        for (int i = 0; i < MT; i++) {
            leave_rows(own, acc[i]);
            store_scaled_rows(args, with, own, row + i * 16, col);
        }
        return;
    }
#endif
    const bool is_aligned = ROWS_ARE_ON_16_BYTES(args, with);
#pragma unroll
    for (int i = 0; i < MT; i++) {
        leave_rows(own, acc[i]);
        if (is_aligned)
            store_rows(args, with, own, row + i * 16, col);
        else
            store_unaligned_rows(args, with, own, row + i * 16, col);
    }
}

#endif
