/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilogue, the operation on each sum before it is stored. All families share it:
 *     D[row][col] := activation(alpha*sum + beta*C[row][col] + bias) + residual[row][col]
 * Bias, activation and residual are left out unless their macros ask for them. If beta is 0, C is
 * not read. A user's own expression may replace the activation and its argument. Everything is
 * computed in the accumulation type and rounded once, to the type of D.
 */
#ifndef TGL_EPILOGUE_H
#define TGL_EPILOGUE_H

#include "lib/gemm_args.h"
#include "lib/operands.h"

#ifndef BIAS
#define BIAS 0 /* 0: none; 1: one value per row of D; 2: one per column */
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
#error "EXPRESSION: the expression replaces the activation"
#endif

/* float4 has code of its own in epilogue_store4(): with the code of the other types ptxas orders
 * the main loop of gemm/simt.cu differently. */
#define HAS_FLOAT4 (TYPE_C == TYPE_F32 && TYPE_D == TYPE_F32)

/* The operands of the epilogue, of one problem of the batch. */
struct epilogue_operands {
    element_d *D;
#if SEPARATE_D
    const element_c *C; /* read if beta is not 0 */
#endif
    const element_bias *bias;
    const element_residual *residual;
#if DEVICE_SCALARS
    accumulate_t alpha, beta;
#endif
};

#if DEVICE_SCALARS
#define ALPHA(args, with) ((with)->alpha)
#define BETA(args, with)  ((with)->beta)
#else
#define ALPHA(args, with) alpha_of(args)
#define BETA(args, with)  beta_of(args)
#endif

static __device__ __forceinline__ struct epilogue_operands
epilogue_operands(const struct tgl_gemm_args *args, element_d *D, long long batch)
{
    struct epilogue_operands with;
    with.D = D;
#if SEPARATE_D
    with.C = C_OF(args, batch);
#endif
    with.bias = (const element_bias *)args->bias + batch * args->stride_bias;
    with.residual = (const element_residual *)args->residual + batch * args->stride_residual;
#if DEVICE_SCALARS
    with.alpha = alpha_of(args);
    with.beta = beta_of(args);
#endif
    return with;
}

/* The address of C[row][col]. d: the address of D[row][col]. */
#if SEPARATE_D
#define BESIDE(args, with, d, row, col) ((with)->C + (row) * (args)->ldc + (col))
#else
#define BESIDE(args, with, d, row, col) (d)
#endif

#define D_HAS_16_BITS (TYPE_D == TYPE_F16 || TYPE_D == TYPE_BF16)

#define BYTES_OF_FOUR(type) ((type) == TYPE_F16 || (type) == TYPE_BF16 ? 8 : 16) /* F64: 2 x 16 */

/* Whether four neighbours of all rows of C and D can be accessed at once: whether the rows begin at
 * multiples of 16 bytes, or of 8 with elements of 16 bits. This is a macro because ptxas orders the
 * main loop of gemm/simt.cu differently with a function, and the schedules of
 * src/families/simt_schedules.inc were found for this order. */
#define ARE_ON(bytes, matrix, ld) ((unsigned long long)(matrix) % (bytes) == 0 && (ld) % 4 == 0)
#if SEPARATE_D
#define ROWS_ARE_ON_16_BYTES(args, with)                                                           \
    (ARE_ON(BYTES_OF_FOUR(TYPE_D), (with)->D, (args)->ldd) &&                                      \
     ARE_ON(BYTES_OF_FOUR(TYPE_C), (with)->C, (args)->ldc))
#else
#define ROWS_ARE_ON_16_BYTES(args, with) ARE_ON(BYTES_OF_FOUR(TYPE_D), (with)->D, (args)->ldd)
#endif

/* A NaN stays a NaN. fmaxf() would replace it by 0. */
static __device__ __forceinline__ accumulate_t relu(accumulate_t x)
{
#if ACCUMULATE == TYPE_I32
    return (int)x < 0 ? 0 : x;
#else
    return x < 0 ? 0 : x;
#endif
}

#if ACCUMULATE == TYPE_I32 && (ACTIVATION > 1 || EXPRESSION)
#error "ACTIVATION, EXPRESSION: products with sums of int32 have RELU or nothing"
#endif

#if ACCUMULATE != TYPE_I32
#if ACCUMULATE == TYPE_F64
#define ERF erf
#define EXP exp
#else
#define ERF erff
#define EXP expf
#endif

static __device__ __forceinline__ accumulate_t gelu(accumulate_t x)
{
    const accumulate_t half = 0.5, root = 0.70710678118654752; /* sqrt(0.5) */
    return half * x * (1 + ERF(x * root));
}

static __device__ __forceinline__ accumulate_t silu(accumulate_t x)
{
    return x / (1 + EXP(-x));
}
#endif

#if EXPRESSION
/* accumulate_t expression(accumulate_t acc, accumulate_t c, accumulate_t bias, long long row,
 * long long col): acc is alpha*sum, c is beta*C[row][col], bias is the bias of the row or column,
 * or 0.
 */
#include "lib/expression.h"
#endif

/* The activation of alpha*sum (acc) + beta*old + bias, or the user's expression of these. */
static __device__ __forceinline__ accumulate_t activated(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with,
                                                         accumulate_t acc, accumulate_t old,
                                                         accumulate_t bias, int row, int col)
{
#if EXPRESSION
    return expression(acc, BETA(args, with) == 0 ? 0 : BETA(args, with) * old, bias, (long long)row,
                      (long long)col);
#else
    accumulate_t sum = BETA(args, with) == 0 ? acc : acc + BETA(args, with) * old;
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

/* The value of D[row][col]. sum: its sum; old: C[row][col], or 0 if beta is 0. */
static __device__ __forceinline__ accumulate_t epilogue(const struct tgl_gemm_args *args,
                                                        const struct epilogue_operands *with,
                                                        accumulate_t sum, accumulate_t old, int row,
                                                        int col)
{
#if BIAS
    const accumulate_t bias = from_bias(with->bias[BIAS == 1 ? row : col]);
#else
    const accumulate_t bias = 0;
#endif
    const accumulate_t value = activated(args, with, ALPHA(args, with) * sum, old, bias, row, col);
#if RESIDUAL
    return value + from_residual(with->residual[row * args->ld_residual + col]);
#else
    (void)args;
    return value;
#endif
}

/* Whether the value is alpha*sum, and C is not read. */
static __device__ __forceinline__ bool epilogue_only_scales(const struct tgl_gemm_args *args,
                                                            const struct epilogue_operands *with)
{
    return !BIAS && !ACTIVATION && !RESIDUAL && !EXPRESSION && BETA(args, with) == 0;
}

/* Stores D[row][col], given its sum. */
static __device__ __forceinline__ void epilogue_store(const struct tgl_gemm_args *args,
                                                      const struct epilogue_operands *with,
                                                      accumulate_t sum, int row, int col)
{
    element_d *d = with->D + row * args->ldd + col;
    const element_c *c = BESIDE(args, with, d, row, col);
    *d = to_d(epilogue(args, with, sum, BETA(args, with) != 0 ? from_c(*c) : 0, row, col));
}

#if !HAS_FLOAT4
/* Loads four adjacent elements of a row of C: by one load of 8 or 16 bytes, or by two of 16. */
static __device__ __forceinline__ void load_four_of_c(accumulate_t *to, const element_c *c)
{
#if TYPE_C == TYPE_F32
    const float4 v = *(const float4 *)c;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
#elif TYPE_C == TYPE_F64
    const double2 low = *(const double2 *)c, high = *(const double2 *)(c + 2);
    to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
#elif TYPE_C == TYPE_I32
    const uint4 v = *(const uint4 *)c;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
#else
    const uint2 v = *(const uint2 *)c;
    const element_c four[4] = {{(unsigned short)v.x},
                               {(unsigned short)(v.x >> 16)},
                               {(unsigned short)v.y},
                               {(unsigned short)(v.y >> 16)}};
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = from_c(four[i]);
#endif
}
#endif

#if D_HAS_16_BITS
/* Two adjacent elements of a row of D as a 32-bit word, rounded to D's type. */
static __device__ __forceinline__ unsigned to_d_pair(float first, float second)
{
    return TYPE_D == TYPE_F16 ? floats_to_f16(first, second) : floats_to_bf16(first, second);
}
#endif

/* Stores four adjacent elements of a row of D, rounded to its type. */
static __device__ __forceinline__ void store_four_of_d(element_d *d, const accumulate_t *v)
{
#if TYPE_D == TYPE_F32
    *(float4 *)d = make_float4((float)v[0], (float)v[1], (float)v[2], (float)v[3]);
#elif TYPE_D == TYPE_F64
    *(double2 *)d = make_double2(v[0], v[1]);
    *(double2 *)(d + 2) = make_double2(v[2], v[3]);
#elif TYPE_D == TYPE_I32
    *(uint4 *)d = make_uint4(v[0], v[1], v[2], v[3]);
#else
    *(uint2 *)d =
        make_uint2(to_d_pair((float)v[0], (float)v[1]), to_d_pair((float)v[2], (float)v[3]));
#endif
}

/* Stores four neighbours of a row, D[row][col..col+3], given their sums: those from number `from`
 * to before number `to`. aligned: ROWS_ARE_ON_16_BYTES(), and col is a multiple of 4. */
static __device__ __forceinline__ void epilogue_store4(const struct tgl_gemm_args *args,
                                                       const struct epilogue_operands *with,
                                                       const accumulate_t *sum, int row, int col,
                                                       int from, int to, bool aligned)
{
    element_d *d = with->D + row * args->ldd + col;
    const element_c *c = BESIDE(args, with, d, row, col);
    if (aligned && from <= 0 && to >= 4) {
#if HAS_FLOAT4
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (BETA(args, with) != 0) v = *(const float4 *)c;
        v.x = epilogue(args, with, sum[0], v.x, row, col);
        v.y = epilogue(args, with, sum[1], v.y, row, col + 1);
        v.z = epilogue(args, with, sum[2], v.z, row, col + 2);
        v.w = epilogue(args, with, sum[3], v.w, row, col + 3);
        *(float4 *)d = v;
#else
        accumulate_t v[4] = {0, 0, 0, 0};
        if (BETA(args, with) != 0) load_four_of_c(v, c);
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = epilogue(args, with, sum[i], v[i], row, col + i);
        store_four_of_d(d, v);
#endif
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i >= from && i < to) {
            const accumulate_t old = BETA(args, with) != 0 ? from_c(c[i]) : 0;
            d[i] = to_d(epilogue(args, with, sum[i], old, row, col + i));
        }
}

#if D_HAS_16_BITS
/* Stores pair number `pair` of the line D[row][col..col + length - 1], given the sums of the line.
 * length: a power of two. Pairs 0 to length / 2 - 1 are the whole line. A pair is an aligned word
 * of D, because stores of single elements take twice the instructions. If the line begins in the
 * middle of a word, pair 0 is its last and its first element. Only elements from number `from` to
 * before number `to` are stored. */
static __device__ __forceinline__ void epilogue_store_pair(const struct tgl_gemm_args *args,
                                                           const struct epilogue_operands *with,
                                                           const float *line, int length, int pair,
                                                           int row, int col, int from, int to)
{
    element_d *d = with->D + row * args->ldd + col;
    const element_c *c = BESIDE(args, with, d, row, col);
    const int skip = (int)((unsigned long long)d / sizeof *d % 2);
    const int places[2] = {(2 * pair - skip) & (length - 1), 2 * pair - skip + 1};
    bool stores[2];
    float v[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        stores[i] = places[i] >= from && places[i] < to;
        float old = 0;
        if (BETA(args, with) != 0 && stores[i]) old = from_c(c[places[i]]);
        v[i] = line[places[i]];
        if (stores[i]) v[i] = epilogue(args, with, v[i], old, row, col + places[i]);
    }
    const unsigned word = to_d_pair(v[0], v[1]);
    if (stores[0] && stores[1] && places[0] < places[1]) {
        *(unsigned *)(d + places[0]) = word;
        return;
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (stores[i]) d[places[i]].bits = (unsigned short)(word >> i * 16);
}
#endif

#endif
