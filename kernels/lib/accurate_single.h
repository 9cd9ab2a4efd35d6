/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of gemm/accurate.cu in single lines. A line is a row of op(A) or a column of op(B); it is
 * single if exactly one of its elements is not 0. Its words are 0, and its entry among the
 * exponents has the k of that element (lib/decompose_args.h). A sum in a single line is one
 * product. It is computed from the FP32 elements, as FFMA computes it, and replaces what unscale()
 * and add_listed() have made of it. At the place where two single lines meet, both give the same
 * product.
 *
 * No thread waits for another one here: each sets its own sums.
 */
#ifndef TGL_ACCURATE_SINGLE_H
#define TGL_ACCURATE_SINGLE_H

#include "lib/accurate_tiles.h"

/* Sets the sums of those of the thread's two rows that are single. */
static __device__ __forceinline__ void set_single_rows(float *sum, const struct tgl_gemm_args *args,
                                                       const struct lines *lines,
                                                       const struct unit *u, int group)
{
    const float *A = A_OF(args, u->batch), *B = B_OF(args, u->batch);
    const struct fragment f = fragment_of(group);
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const int row = at_most(u->left + f.row + 8 * j, args->m - 1);
        const int k = lines->left_exponents[row] - TGL_SINGLE_LINE;
        if (k < 0) continue;
        const float value = element_of_a(args, A, row, k);
        /* The elements of op(B) are loaded into the registers of the sums, so that all loads are in
         * flight together. */
#pragma unroll
        for (int i = 0; i < ACC; i++)
            if (i / 2 % 2 == j)
                sum[i] = element_of_b(args, B, k,
                                      at_most(u->right + f.col + i / 4 * 8 + i % 2, args->n - 1));
#pragma unroll
        for (int i = 0; i < ACC; i++)
            if (i / 2 % 2 == j) sum[i] = fmaf(value, sum[i], 0.0f);
    }
}

/* Sets the thread's sums in single columns. singles: masks of the tile's single columns. */
static __device__ __forceinline__ void
set_single_columns(float *sum, const struct tgl_gemm_args *args, const struct lines *lines,
                   const struct unit *u, int group, const unsigned *singles)
{
    const float *A = A_OF(args, u->batch), *B = B_OF(args, u->batch);
    const struct fragment f = fragment_of(group);
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < BN / 32; i++)
        any |= singles[i];
    if (any == 0) return;
#pragma unroll 1
    for (int first = 0; first < BN; first += 32) {
        unsigned own = singles[first / 32] & 0x03030303u << f.col; /* the thread's columns */
#pragma unroll 1
        for (; own != 0; own &= own - 1) {
            const int at = first + __ffs((int)own) - 1;
            const int col = at_most(u->right + at, args->n - 1);
            const int k = lines->right_exponents[col] - TGL_SINGLE_LINE;
            const float value = element_of_b(args, B, k, col);
            float met[2]; /* the elements of op(A) that `value` multiplies, in the thread's rows */
#pragma unroll
            for (int j = 0; j < 2; j++)
                met[j] = element_of_a(args, A, at_most(u->left + f.row + 8 * j, args->m - 1), k);
#pragma unroll
            for (int i = 0; i < ACC; i++)
                if (i / 4 == at / 8 && i % 2 == at % 2) sum[i] = fmaf(met[i / 2 % 2], value, 0.0f);
        }
    }
}

#endif
