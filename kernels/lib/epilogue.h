/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a finished sum before it is stored, shared by all families:
 *     C[row][col] := activation(alpha*sum + beta*C[row][col] + bias) + residual[row][col]
 * with each part but alpha and beta left out unless its macro asks for it. beta == 0 does not read
 * C.
 */
#ifndef TGL_EPILOGUE_H
#define TGL_EPILOGUE_H

#include "lib/gemm_args.h"

#ifndef BIAS
#define BIAS 0 /* 0 none, 1 one a row, 2 one a column */
#endif
#ifndef RESIDUAL
#define RESIDUAL 0 /* 1: residual[row][col] is added last */
#endif
/* ACTIVATION(x): ACTIVATION_RELU and the like, nothing by default. */
/* EPILOGUE(acc, c, bias, row, col): a user's expression for the value before the residual, where
 * acc is alpha*sum, c is beta*C, bias the row's or column's (0 without). */

#define ACTIVATION_RELU(x) fmaxf(x, 0.0f)
#define ACTIVATION_GELU(x) (0.5f * (x) * (1.0f + erff((x)*0.70710678f)))
#define ACTIVATION_SILU(x) ((x) / (1.0f + expf(-(x))))

#ifndef ACTIVATION
#define ACTIVATION(x) (x)
#endif
#ifndef EPILOGUE
#define EPILOGUE(acc, c, bias, row, col) ACTIVATION((acc) + (c) + (bias))
#define EPILOGUE_IS_LINEAR               1
#endif

/* The finished value of C[row][col], given its sum and its old value (0 if beta is 0). residual: of
 * this problem of the batch. */
static __device__ __forceinline__ float epilogue(const struct tgl_gemm_args *args,
                                                 const float *residual, float sum, float old,
                                                 int row, int col)
{
    const float acc = args->alpha * sum;
#if BIAS
    const float bias = args->bias[BIAS == 1 ? row : col];
#else
    const float bias = 0.0f;
#endif
    const float c = args->beta == 0.0f ? 0.0f : args->beta * old;
#if !BIAS && !RESIDUAL && defined(EPILOGUE_IS_LINEAR)
    (void)bias, (void)row, (void)col, (void)residual;
    return ACTIVATION(args->beta == 0.0f ? acc : acc + c);
#else
    const float value = EPILOGUE(acc, c, bias, row, col);
#if RESIDUAL
    return value + residual[row * args->ld_residual + col];
#else
    (void)residual, (void)row, (void)col;
    return value;
#endif
#endif
}

/* Four neighbours of a row: C[row][col..col+3], of which the first `count` exist. aligned: rows of
 * C start on 16 bytes and col is a multiple of 4. */
static __device__ __forceinline__ void epilogue_store4(const struct tgl_gemm_args *args,
                                                       const float *residual, float *C,
                                                       const float *sum, int row, int col,
                                                       int count, bool aligned)
{
    float *c = C + row * args->ldc + col;
    if (aligned && count >= 4) {
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (args->beta != 0.0f) v = *(const float4 *)c;
        v.x = epilogue(args, residual, sum[0], v.x, row, col);
        v.y = epilogue(args, residual, sum[1], v.y, row, col + 1);
        v.z = epilogue(args, residual, sum[2], v.z, row, col + 2);
        v.w = epilogue(args, residual, sum[3], v.w, row, col + 3);
        *(float4 *)c = v;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < count)
            c[i] = epilogue(args, residual, sum[i], args->beta != 0.0f ? c[i] : 0.0f, row, col + i);
}

#endif
