/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrices of one problem of a batch, with the element types of the kernel, their scale
 * factors, and alpha and beta. With DEVICE_SCALARS alpha and beta are in memory that earlier
 * launches may have written. A kernel therefore calls these functions after
 * wait_for_earlier_launches() or start_after_earlier_launches().
 */
#ifndef TGL_OPERANDS_H
#define TGL_OPERANDS_H

#include "lib/element.h"
#include "lib/gemm_args.h"

/* ---- Matrices -------------------------------------------------------------------------------- */

/* The address of matrix X of problem number `batch`, an int or a long long. These are macros
 * because functions would have one type for `batch`, and ptxas would order the main loops of the
 * kernels differently. */
#define MATRIX_OF(args, X, x, batch, type)                                                         \
    ((args)->X##_array ? (type *)(args)->X##_array[batch]                                          \
                       : (type *)(args)->X + (batch) * (args)->stride_##x)
#define A_OF(args, batch) MATRIX_OF(args, A, a, batch, const element_a)
#define B_OF(args, batch) MATRIX_OF(args, B, b, batch, const element_b)
#define C_OF(args, batch) MATRIX_OF(args, C, c, batch, const element_c)
#define D_OF(args, batch) MATRIX_OF(args, D, d, batch, element_d)

/* The scale factors of matrix X of problem number `batch`. Groups have factors of their own; all
 * problems of a batch have the same ones. (Factors of weights: lib/dequant_copies.h.) */
#if GROUPED
#define SCALES_OF(args, x, batch) ((args)->scale_##x + (batch) * (args)->stride_scale_##x)
#else
#define SCALES_OF(args, x, batch) ((args)->scale_##x)
#endif

/* ---- Scalars --------------------------------------------------------------------------------- */

#if VALUE == TYPE_F64
#define SCALAR_MEMBER f64
#elif VALUE == TYPE_I32
#define SCALAR_MEMBER i32
#else
#define SCALAR_MEMBER f32
#endif

/* alpha, or 0 if k is 0: then D := beta*C. Without DEVICE_SCALARS the host has already set alpha to
 * 0 in this case. */
static __device__ __forceinline__ value_t alpha_of(const struct tgl_gemm_args *args)
{
#if DEVICE_SCALARS
    const value_t alpha = args->k > 0 ? *(const value_t *)args->alpha_at : 0;
    return alpha == 0 ? 0 : alpha; /* -0 becomes 0, as on the host */
#else
    return (value_t)args->alpha.SCALAR_MEMBER;
#endif
}

static __device__ __forceinline__ value_t beta_of(const struct tgl_gemm_args *args)
{
#if DEVICE_SCALARS
    return args->beta_at ? *(const value_t *)args->beta_at : 0;
#else
    return (value_t)args->beta.SCALAR_MEMBER;
#endif
}

/* Whether A and B may be read. With DEVICE_SCALARS they must not be read if alpha is 0 (a NaN is
 * not 0). Without it the answer is always true, because the host has set k to 0 if alpha is 0. */
static __device__ __forceinline__ bool has_product(const struct tgl_gemm_args *args)
{
#if DEVICE_SCALARS
    return alpha_of(args) != 0;
#else
    (void)args;
    return true;
#endif
}

/* k, or 0 if A and B must not be read. This is a macro because with a function ptxas would order
 * the instructions of the main loops differently. */
#if DEVICE_SCALARS
#define DEPTH_OF(args) (has_product(args) ? (args)->k : 0)
#else
#define DEPTH_OF(args) ((args)->k)
#endif

#endif
