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

static __device__ __forceinline__ const element_a *A_of(const struct tgl_gemm_args *args,
                                                        int batch)
{
    return args->A_array ? (const element_a *)args->A_array[batch]
                         : (const element_a *)args->A + batch * args->stride_a;
}

static __device__ __forceinline__ const element_b *B_of(const struct tgl_gemm_args *args,
                                                        int batch)
{
    return args->B_array ? (const element_b *)args->B_array[batch]
                         : (const element_b *)args->B + batch * args->stride_b;
}

static __device__ __forceinline__ element_d *D_of(const struct tgl_gemm_args *args, int batch)
{
    return args->D_array ? (element_d *)args->D_array[batch]
                         : (element_d *)args->D + batch * args->stride_d;
}

#if SEPARATE_D
static __device__ __forceinline__ const element_c *C_of(const struct tgl_gemm_args *args,
                                                        int batch)
{
    return args->C_array ? (const element_c *)args->C_array[batch]
                         : (const element_c *)args->C + batch * args->stride_c;
}
#endif

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

/* Whether A and B may be read: not if alpha, which only the device knows, is 0. A NaN is not 0. With
 * scalars of the host, which then gives a k of 0, the answer is a constant. */
static __device__ __forceinline__ bool has_product(const struct tgl_gemm_args *args)
{
#if DEVICE_SCALARS
    return alpha_of(args) != 0;
#else
    (void)args;
    return true;
#endif
}

#endif
