/* SPDX-License-Identifier: Apache-2.0
 *
 * The operands of one problem of a batch, by the element types of the kernel, and the scalars of a
 * run. With DEVICE_SCALARS alpha and beta are in memory that earlier launches may have written:
 * these functions are called after wait_for_earlier_launches() or start_after_earlier_launches().
 */
#ifndef TGL_OPERANDS_H
#define TGL_OPERANDS_H

#include "lib/element.h"
#include "lib/gemm_args.h"

/* ---- Matrices -------------------------------------------------------------------------------- */

/* X of number `batch`, an int or a long long. Macros: with functions, which have one type for
 * `batch`, ptxas arrives at other orders of the kernels' main loops. */
#define MATRIX_OF(args, X, x, batch, type)                                                         \
    ((args)->X##_array ? (type *)(args)->X##_array[batch]                                          \
                       : (type *)(args)->X + (batch) * (args)->stride_##x)
#define A_OF(args, batch) MATRIX_OF(args, A, a, batch, const element_a)
#define B_OF(args, batch) MATRIX_OF(args, B, b, batch, const element_b)
#define C_OF(args, batch) MATRIX_OF(args, C, c, batch, const element_c)
#define D_OF(args, batch) MATRIX_OF(args, D, d, batch, element_d)

/* ---- Scalars --------------------------------------------------------------------------------- */

#if ACCUMULATE == TYPE_F64
#define SCALAR_MEMBER f64
#else
#define SCALAR_MEMBER f32
#endif

/* 0 if k is 0: D := beta*C then, whatever alpha is. The host sees to that for its own scalars. */
static __device__ __forceinline__ accumulate_t alpha_of(const struct tgl_gemm_args *args)
{
#if DEVICE_SCALARS
    const accumulate_t alpha = args->k > 0 ? *(const accumulate_t *)args->alpha_at : 0;
    return alpha == 0 ? 0 : alpha; /* -0 becomes 0, as on the host */
#else
    return args->alpha.SCALAR_MEMBER;
#endif
}

static __device__ __forceinline__ accumulate_t beta_of(const struct tgl_gemm_args *args)
{
#if DEVICE_SCALARS
    return args->beta_at ? *(const accumulate_t *)args->beta_at : 0;
#else
    return args->beta.SCALAR_MEMBER;
#endif
}

/* Whether A and B may be read: not if alpha, which only the device knows, is 0. A NaN is not 0.
 * With scalars of the host, which then gives a k of 0, the answer is a constant. */
static __device__ __forceinline__ bool has_product(const struct tgl_gemm_args *args)
{
#if DEVICE_SCALARS
    return alpha_of(args) != 0;
#else
    (void)args;
    return true;
#endif
}

/* k, or 0 without a product. A macro, as above. */
#if DEVICE_SCALARS
#define DEPTH_OF(args) (has_product(args) ? (args)->k : 0)
#else
#define DEPTH_OF(args) ((args)->k)
#endif

#endif
