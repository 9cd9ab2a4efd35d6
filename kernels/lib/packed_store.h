/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores of 16-bit results whose rows follow each other without a gap: ldd is n, and the block has
 * whole rows. The results are then one line of memory. The warps put them into shared memory in
 * the order of D, and the block stores the line by aligned words of 16 bytes, whatever n is. Stores
 * row by row, of pairs, take four times the instructions (lib/mma_store.h).
 */
#ifndef TGL_PACKED_STORE_H
#define TGL_PACKED_STORE_H

#include "lib/mma_store.h"

#if D_HAS_16_BITS

#define PACKED_BYTES (BM * BN * 2 + 16)

/* cols: the number of columns of the block's results. */
static __device__ __forceinline__ bool is_one_line(const struct tgl_gemm_args *args,
                                                   const struct epilogue_operands *with, int cols)
{
    return args->ldd == args->n && cols == args->n && epilogue_only_scales(args, with) &&
           !has_scaled_groups(args, with);
}

/* Where the line is put in shared memory: at the same distance from a multiple of 16 bytes. */
static __device__ __forceinline__ unsigned short *packed_place(char *shared, const element_d *line)
{
    return (unsigned short *)(shared + (unsigned long long)line % 16);
}

/* Puts a warp's results, scaled and rounded, into shared memory. to: the place of the first one.
 * rows, cols: the number of rows and columns of D from the warp's first ones on. */
static __device__ __forceinline__ void pack_results(const struct tgl_gemm_args *args,
                                                    const struct epilogue_operands *with,
                                                    unsigned short *to, accumulate_t (*acc)[NT][4],
                                                    int rows, int cols)
{
    const int lane = (int)threadIdx.x % 32, in_col = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        const int row = i * 8 + lane / 4;
        unsigned short *line = to + row * args->n + in_col;
        const bool is_word = (unsigned long long)line % 4 == 0;
        if (row >= rows) continue;
#pragma unroll
        for (int j = 0; j < NT; j++) {
            const int left = cols - j * 8 - in_col;
            const float *pair = &acc[i / 2][j][i % 2 * 2];
            const unsigned word =
                to_d_pair(ALPHA(args, with) * pair[0], ALPHA(args, with) * pair[1]);
            if (left > 1 && is_word) {
                *(unsigned *)(line + j * 8) = word;
            } else {
                if (left > 0) line[j * 8] = (unsigned short)word;
                if (left > 1) line[j * 8 + 1] = (unsigned short)(word >> 16);
            }
        }
    }
}

/* Stores eight elements. The simulator reports stores that go beyond the end of a row, so that
 * there they are stored one by one. */
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

/* By all threads: stores a line of `count` elements. packed: packed_place(). */
static __device__ __forceinline__ void store_packed(element_d *line, const unsigned short *packed,
                                                    int count)
{
    const int skip = (int)((unsigned long long)line % 16 / 2); /* elements of a word before it */
    element_d *to = line - skip;
    const unsigned short *from = packed - skip;
    for (int at = (int)threadIdx.x * 8; at < skip + count; at += THREADS * 8) {
        if (at >= skip && at + 8 <= skip + count) {
            store_word(to + at, *(const uint4 *)(from + at));
            continue;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (at + i >= skip && at + i < skip + count) to[at + i].bits = from[at + i];
    }
}

#else
#define PACKED_BYTES 0
#endif

#endif
