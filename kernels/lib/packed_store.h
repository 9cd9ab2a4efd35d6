/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores 16-bit results whose rows follow each other without a gap: ldd is n, and the block has
 * whole rows. The results are then one contiguous range of memory, called a line here. The warps
 * put them into shared memory in the order of D, and the block stores the line by aligned words of
 * 16 bytes, whatever n is. Stores of pairs, row by row (lib/mma_store.h), take four times the
 * instructions.
 */
#ifndef TGL_PACKED_STORE_H
#define TGL_PACKED_STORE_H

#include "lib/mma_store.h"

#if D_HAS_16_BITS

#define PACKED_BYTES (BM * BN * 2 + 16)

/* Whether store_packed() stores the block's results: if they are one line, the epilogue only
 * scales, and rows of D cannot be stored 16 bytes at a time (has_scaled_groups()). cols: the number
 * of columns of the block's results. */
static __device__ __forceinline__ bool is_one_line(const struct tgl_gemm_args *args,
                                                   const struct epilogue_operands *with, int cols)
{
    return args->ldd == args->n && cols == args->n && epilogue_only_scales(args, with) &&
           !has_scaled_groups(args, with);
}

/* Where the line is put in shared memory: as many bytes behind a multiple of 16 as it is in D, so
 * that aligned words of one are aligned words of the other. */
static __device__ __forceinline__ unsigned short *packed_place(char *shared, const element_d *line)
{
    return (unsigned short *)(shared + (unsigned long long)line % 16);
}

/* Puts 8 columns of a warp's results into shared memory, scaled and rounded. A lane has two columns
 * of every eighth row. j: the columns are 8 * j to 8 * j + 7 of the warp. to: the place of the
 * lane's first result. pitch: elements from there to its result 8 rows below. rows, cols: how many
 * rows and columns of D exist from the lane's first result on. is_word: `to` is a multiple of 4
 * bytes, in all rows or in none. */
static __device__ __forceinline__ void pack_columns(unsigned short *to, int pitch, float alpha,
                                                    accumulate_t (*acc)[NT][4], const int j,
                                                    int rows, int cols, bool is_word)
{
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        const accumulate_t *pair = &acc[i / 2][j][i % 2 * 2];
        const unsigned word = to_d_pair(alpha * (float)pair[0], alpha * (float)pair[1]);
        unsigned short *at = to + i * pitch;
        if (i * 8 >= rows) continue;
        if (is_word && cols > 1) {
            *(unsigned *)at = word;
        } else {
            if (cols > 0) at[0] = (unsigned short)word;
            if (cols > 1) at[1] = (unsigned short)(word >> 16);
        }
    }
}

/* Puts a warp's results into shared memory. to: the place of the first one. rows, cols: how many
 * rows and columns of D exist from the warp's first ones on. */
static __device__ __forceinline__ void pack_results(const struct tgl_gemm_args *args,
                                                    const struct epilogue_operands *with,
                                                    unsigned short *to, accumulate_t (*acc)[NT][4],
                                                    int rows, int cols)
{
    const int lane = (int)threadIdx.x % 32, in_row = lane / 4, in_col = lane % 4 * 2;
    const int pitch = 8 * args->n;
    const float alpha = (float)ALPHA(args, with);
    to += in_row * args->n + in_col;
    const bool is_word = (unsigned)(unsigned long long)to % 4 == 0;
#pragma unroll
    for (int j = 0; j < NT; j++) {
        if (j * 8 >= cols) break;
        if (j * 8 + 8 > cols)
            pack_columns(to + j * 8, pitch, alpha, acc, j, rows - in_row, cols - j * 8 - in_col,
                         is_word);
        else if (is_word)
            pack_columns(to + j * 8, pitch, alpha, acc, j, rows - in_row, 2, true);
        else
            pack_columns(to + j * 8, pitch, alpha, acc, j, rows - in_row, 2, false);
    }
}

/* Stores eight elements of the line, which may be in two rows of D. The simulator reports a store
 * that crosses the end of a row, so there the elements are stored one by one. */
static __device__ __forceinline__ void store_word(element_d *to, uint4 word)
{
#ifdef TGL_SIM
    const unsigned pairs[] = {word.x, word.y, word.z, word.w};
    for (int i = 0; i < 8; i++)
        to[i].bits = (unsigned short)(pairs[i / 2] >> i % 2 * 16);
#else
    *(uint4 *)to = word;
#endif
}

/* Called by all threads: stores a line of `count` elements. packed: packed_place(). */
static __device__ __forceinline__ void store_packed(element_d *line, const unsigned short *packed,
                                                    int count)
{
    const int skip = (int)((unsigned long long)line % 16 / 2); /* elements before the line in its
                                                                  first word */
    const int end = skip + count, i = (int)threadIdx.x;
    element_d *to = line - skip;
    const unsigned short *from = packed - skip;
    for (int word = i + (skip > 0); word < end / 8; word += THREADS)
        store_word(to + word * 8, *(const uint4 *)(from + word * 8));
    if (i >= 8) return; /* eight threads store the elements of the first and of the last word */
    if (skip > 0 && i >= skip && i < end) to[i].bits = from[i];
    if (end / 8 * 8 + i < end && (skip == 0 || end >= 8)) {
        to[end / 8 * 8 + i].bits = from[end / 8 * 8 + i];
    }
}

#else
#define PACKED_BYTES 0
#endif

#endif
