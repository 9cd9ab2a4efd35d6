/* SPDX-License-Identifier: Apache-2.0
 *
 * Scale factors of rows of A and of columns of B (SCALE_LINE) in gemm/wgmma.cu. A consumer copies
 * the factors of a unit's rows and columns into shared memory while it multiplies the unit. The
 * epilogue reads them there. When it read them from global memory, a product of 4096 cubed in e4m3
 * took 1.2 times as long as one with a single factor for each matrix
 * (bench/results/h200/scaled.csv of commit 712796dc).
 */
#ifndef TGL_WGMMA_LINE_SCALES_H
#define TGL_WGMMA_LINE_SCALES_H

#include "lib/async_copy.h"
#include "lib/epilogue.h"
#include "lib/wgmma_units.h"

#if STAGED_FACTORS

/* Rows of the left tile for which a consumer keeps factors: all rows of the tile if the consumer's
 * rows are not adjacent. */
#define LEFT_FACTORS (TAKES_TURNS ? BM : WM)
/* The first of these rows. */
#define FIRST_FACTOR_ROW(u, group) ((u)->left + (TAKES_TURNS ? 0 : CONSUMER_ROW(group)))

/* A consumer's factors of one unit. */
struct line_factors {
    float left[LEFT_FACTORS];
    float right[BN];
};

/* Called by all threads of a consumer: requests copies of the factors of `count` lines of an
 * operand from line `first` on. extent: the number of lines of the operand. Lines behind its last
 * one get the factor of the last one. */
static __device__ __forceinline__ void request_factors(float *to, const float *factors,
                                                       const int count, int first, int extent)
{
#pragma unroll
    for (int i = (int)threadIdx.x % 128; i < count; i += 128) {
        const int line = first + i < extent ? first + i : extent - 1;
        async_copy_float(&to[i], &factors[line], true);
    }
}

/* Called by all threads of a consumer: sets `count` factors to 1. A thread sets those that it has
 * copied. */
static __device__ __forceinline__ void set_to_one(float *to, const int count)
{
    for (int i = (int)threadIdx.x % 128; i < count; i += 128)
        to[i] = 1;
}

/* Called by all threads of a consumer before they multiply the unit: requests its factors. They are
 * NULL if the host knows that alpha is 0. */
static __device__ __forceinline__ void request_line_factors(struct line_factors *to,
                                                            const struct tgl_gemm_args *args,
                                                            const struct unit *u, int group)
{
    const int left = FIRST_FACTOR_ROW(u, group);
    ASYNC_WAIT(0);      /* a unit that was not stored has not waited for its copies */
    CONSUMER_BARRIER(); /* all threads have read the factors of the previous unit */
#if SCALE_A == SCALE_LINE
    if (args->scale_a)
        request_factors(EXCHANGED ? to->right : to->left, SCALES_OF(args, a, u->batch),
                        EXCHANGED ? BN : LEFT_FACTORS, EXCHANGED ? u->right : left, args->m);
#endif
#if SCALE_B == SCALE_LINE
    if (args->scale_b)
        request_factors(EXCHANGED ? to->left : to->right, SCALES_OF(args, b, u->batch),
                        EXCHANGED ? LEFT_FACTORS : BN, EXCHANGED ? left : u->right, args->n);
#endif
    async_commit();
}

/* Called by all threads of a consumer: waits for the factors, and lets the epilogue use them. If
 * alpha is 0, the factors of A and B are ignored, even if they are Inf or NaN. */
static __device__ __forceinline__ void use_line_factors(struct epilogue_operands *with,
                                                        const struct tgl_gemm_args *args,
                                                        struct line_factors *factors,
                                                        const struct unit *u, int group)
{
    const float *left = factors->left - FIRST_FACTOR_ROW(u, group);
    const float *right = factors->right - u->right;
    ASYNC_WAIT(0);
    if (ALPHA(args, with) == 0) {
        set_to_one(factors->left, LEFT_FACTORS);
        set_to_one(factors->right, BN);
    }
    CONSUMER_BARRIER();
    with->factors_a = EXCHANGED ? right : left;
    with->factors_b = EXCHANGED ? left : right;
}

#else

struct line_factors {
    char none;
};

#endif

#endif
