/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a finished sum before it is stored, shared by all families:
 *     C[row][col] := activation(alpha*sum + beta*C[row][col] + bias) + residual[row][col]
 * with each part but alpha and beta left out unless its macro asks for it. beta == 0 does not read
 * C. A user's own expression takes the place of activation and sum.
 */
#ifndef TGL_EPILOGUE_H
#define TGL_EPILOGUE_H

#include "lib/gemm_args.h"

#ifndef BIAS
#define BIAS 0 /* 0 none, 1 one a row, 2 one a column */
#endif
#ifndef ACTIVATION
#define ACTIVATION 0 /* 0 none, 1 relu, 2 gelu, 3 silu, as tgl_activation has them */
#endif
#ifndef RESIDUAL
#define RESIDUAL 0 /* 1: residual[row][col] is added last */
#endif
#ifndef EXPRESSION
#define EXPRESSION 0 /* 1: lib/expression.h, which the host writes, has the user's expression */
#endif

#if EXPRESSION && ACTIVATION
#error "an expression has the place of the activation"
#endif

/* What an epilogue reads besides C, of one problem of the batch. */
struct epilogue_operands {
    const float *bias, *residual;
};

static __device__ __forceinline__ struct epilogue_operands
epilogue_operands(const struct tgl_gemm_args *args, long long batch)
{
    struct epilogue_operands operands;
    operands.bias = args->bias + batch * args->stride_bias;
    operands.residual = args->residual + batch * args->stride_residual;
    return operands;
}

/* A NaN stays one, which fmaxf() would not let it. */
static __device__ __forceinline__ float relu(float x)
{
    return x < 0.0f ? 0.0f : x;
}

static __device__ __forceinline__ float gelu(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}

static __device__ __forceinline__ float silu(float x)
{
    return x / (1.0f + expf(-x));
}

#if EXPRESSION
/* float expression(float acc, float c, float bias, int row, int col), where acc is alpha*sum, c is
 * beta*C[row][col], and bias that of the row or column, or 0. */
#include "lib/expression.h"
#endif

/* alpha*sum, with what is to be added to it and done to it. */
static __device__ __forceinline__ float activated(const struct tgl_gemm_args *args, float acc,
                                                  float old, float bias, int row, int col)
{
#if EXPRESSION
    return expression(acc, args->beta == 0.0f ? 0.0f : args->beta * old, bias, row, col);
#else
    float sum = args->beta == 0.0f ? acc : acc + args->beta * old;
#if BIAS
    sum += bias;
#endif
    (void)bias, (void)row, (void)col;
#if ACTIVATION == 1
    return relu(sum);
#elif ACTIVATION == 2
    return gelu(sum);
#elif ACTIVATION == 3
    return silu(sum);
#else
    return sum;
#endif
#endif
}

/* The finished value of C[row][col], given its sum and its old value (0 if beta is 0). */
static __device__ __forceinline__ float epilogue(const struct tgl_gemm_args *args,
                                                 const struct epilogue_operands *with, float sum,
                                                 float old, int row, int col)
{
#if BIAS
    const float bias = with->bias[BIAS == 1 ? row : col];
#else
    const float bias = 0.0f;
#endif
    const float value = activated(args, args->alpha * sum, old, bias, row, col);
#if RESIDUAL
    return value + with->residual[row * args->ld_residual + col];
#else
    (void)with;
    return value;
#endif
}

/* Four neighbours of a row: C[row][col..col+3], of which those from number `from` on and before
 * number `to` are stored. aligned: rows of C start on 16 bytes and col is a multiple of 4. */
static __device__ __forceinline__ void epilogue_store4(const struct tgl_gemm_args *args,
                                                       const struct epilogue_operands *with,
                                                       float *C, const float *sum, int row, int col,
                                                       int from, int to, bool aligned)
{
    float *c = C + row * args->ldc + col;
    if (aligned && from <= 0 && to >= 4) {
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (args->beta != 0.0f) v = *(const float4 *)c;
        v.x = epilogue(args, with, sum[0], v.x, row, col);
        v.y = epilogue(args, with, sum[1], v.y, row, col + 1);
        v.z = epilogue(args, with, sum[2], v.z, row, col + 2);
        v.w = epilogue(args, with, sum[3], v.w, row, col + 3);
        *(float4 *)c = v;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i >= from && i < to)
            c[i] = epilogue(args, with, sum[i], args->beta != 0.0f ? c[i] : 0.0f, row, col + i);
}

#endif
