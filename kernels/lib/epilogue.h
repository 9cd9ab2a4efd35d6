/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilogue, the operation on each sum before it is stored. The GEMM kernels in gemm/ share it:
 *     D[row][col] := activation(alpha*sum + beta*C[row][col] + bias) + residual[row][col]
 * Bias, activation and residual are left out unless their macros ask for them. If beta is 0, C is
 * not read. A user's own expression may replace activation(...). With scale factors, the sum is
 * multiplied by the factors of A and B, and the result by the factor of D. Everything is computed
 * in value_t (lib/element.h) and rounded once, to the type of D.
 *
 * AMAX: the kernel also stores the largest magnitude of all results, before they are multiplied by
 * the factor of D. Each thread keeps the maximum of its results. At the end of the kernel,
 * epilogue_add_amax() raises *args->amax to the maximum of a warp. Magnitudes are compared as
 * integers: the bit patterns of nonnegative floats have the order of the floats, and those of NaNs
 * are larger than all others.
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

#ifndef AMAX
#define AMAX 0 /* 1: the largest magnitude of D, before its scale, is stored as well */
#endif

#ifndef STAGED_FACTORS
#define STAGED_FACTORS 0 /* 1: the factors of lines are in shared memory: factors_a, factors_b */
#endif

#if AMAX && VALUE != TYPE_F32
#error "AMAX: values are FP32"
#endif
#if EXPRESSION && ACTIVATION
#error "EXPRESSION: the expression replaces the activation"
#endif

/* HAS_FLOAT4: epilogue_store4() has code of its own for FP32, with float4. With the code of the
 * other types, ptxas would order the instructions of the main loop of gemm/simt.cu differently. */
#define HAS_FLOAT4 (TYPE_C == TYPE_F32 && TYPE_D == TYPE_F32)

/* Whether alpha is not just an argument of the kernel, but read from device memory, or multiplied
 * by factors in device memory. */
#define HAS_OWN_ALPHA (DEVICE_SCALARS || SCALE_A == SCALE_TENSOR || SCALE_B == SCALE_TENSOR)
/* Whether the factor of a sum differs by row or column, or the result is scaled by D's factor. */
#define HAS_LINE_SCALES (SCALE_A == SCALE_LINE || SCALE_B == SCALE_LINE || SCALE_D)

/* The operands of the epilogue for one problem of the batch. */
struct epilogue_operands {
    element_d *D;
#if SEPARATE_D
    const element_c *C; /* read if beta is not 0 */
#endif
    const element_bias *bias;
    const element_residual *residual;
#if HAS_OWN_ALPHA
    value_t alpha; /* alpha times the factors of whole A and B (SCALE_TENSOR) */
#endif
#if DEVICE_SCALARS
    value_t beta;
#endif
#if AMAX
    unsigned *amax; /* the thread's largest magnitude so far */
#endif
#if GROUPED
    long long group; /* for SCALES_OF() */
#endif
#if STAGED_FACTORS
    /* The factors of rows of A and of columns of B in shared memory, by row and column of D. If
     * alpha is 0, they are 1. */
    const float *factors_a, *factors_b;
#endif
};

#if HAS_OWN_ALPHA
#define ALPHA(args, with) ((with)->alpha)
#else
#define ALPHA(args, with) alpha_of(args)
#endif
#if DEVICE_SCALARS
#define BETA(args, with) ((with)->beta)
#else
#define BETA(args, with) beta_of(args)
#endif

#if HAS_OWN_ALPHA
/* alpha times the factors of whole A and B. The factors are not read if alpha is 0. */
static __device__ __forceinline__ value_t scaled_alpha(const struct tgl_gemm_args *args,
                                                       long long batch)
{
    value_t alpha = alpha_of(args);
    (void)batch;
    if (alpha == 0) return 0;
#if SCALE_A == SCALE_TENSOR
    alpha *= *SCALES_OF(args, a, batch);
#endif
#if SCALE_B == SCALE_TENSOR
    alpha *= *SCALES_OF(args, b, batch);
#endif
    return alpha;
}
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
#if HAS_OWN_ALPHA
    with.alpha = scaled_alpha(args, batch);
#endif
#if DEVICE_SCALARS
    with.beta = beta_of(args);
#endif
#if GROUPED
    with.group = batch;
#endif
    return with;
}

/* The address of C[row][col]. d: the address of D[row][col]. */
#if SEPARATE_D
#define BESIDE(args, with, d, row, col) ((with)->C + (row) * (args)->ldc + (col))
#else
#define BESIDE(args, with, d, row, col) (d)
#endif

#define HAS_16_BITS(type) ((type) == TYPE_F16 || (type) == TYPE_BF16)
#define HAS_8_BITS(type)  ((type) >= TYPE_E4M3 && (type) <= TYPE_I8)
#define D_HAS_16_BITS     HAS_16_BITS(TYPE_D)
#define D_HAS_8_BITS      HAS_8_BITS(TYPE_D)

/* The alignment in bytes for accesses of four elements. For F64 these are two accesses. */
#define BYTES_OF_FOUR(type) (HAS_8_BITS(type) ? 4 : HAS_16_BITS(type) ? 8 : 16)

/* Whether the rows of C and D are aligned so that four neighbours are one access (F64: two): 32-bit
 * types and F64 to 16 bytes, 16-bit types to 8, 8-bit types to 4. This is a macro because ptxas
 * orders the main loop of gemm/simt.cu differently with a function, and the schedules of
 * src/families/simt_schedules.inc were found for this order. */
#define ARE_ON(bytes, matrix, ld) ((unsigned long long)(matrix) % (bytes) == 0 && (ld) % 4 == 0)
#if SEPARATE_D
#define ROWS_ARE_ON_16_BYTES(args, with)                                                           \
    (ARE_ON(BYTES_OF_FOUR(TYPE_D), (with)->D, (args)->ldd) &&                                      \
     ARE_ON(BYTES_OF_FOUR(TYPE_C), (with)->C, (args)->ldc))
#else
#define ROWS_ARE_ON_16_BYTES(args, with) ARE_ON(BYTES_OF_FOUR(TYPE_D), (with)->D, (args)->ldd)
#endif

/* max(x, 0), but a NaN stays a NaN: fmaxf() would replace it by 0. */
static __device__ __forceinline__ value_t relu(value_t x)
{
#if VALUE == TYPE_I32
    return (int)x < 0 ? 0 : x;
#else
    return x < 0 ? 0 : x;
#endif
}

#if VALUE == TYPE_I32 && (ACTIVATION > 1 || EXPRESSION)
#error "ACTIVATION, EXPRESSION: products with sums of int32 have RELU or nothing"
#endif

#if VALUE != TYPE_I32
#if VALUE == TYPE_F64
#define ERF erf
#define EXP exp
#else
#define ERF erff
#define EXP expf
#endif

static __device__ __forceinline__ value_t gelu(value_t x)
{
    const value_t half = 0.5, root = 0.70710678118654752; /* sqrt(0.5) */
    return half * x * (1 + ERF(x * root));
}

static __device__ __forceinline__ value_t silu(value_t x)
{
    return x / (1 + EXP(-x));
}
#endif

#if EXPRESSION
/* value_t expression(value_t acc, value_t c, value_t bias, long long row, long long col): acc is
 * alpha*sum, c is beta*C[row][col], bias is the bias of the row or column, or 0.
 */
#include "lib/expression.h"
#endif

/* activation(acc + beta*old + bias), or the user's expression. acc: alpha*sum; old: C[row][col]. */
static __device__ __forceinline__ value_t activated(const struct tgl_gemm_args *args,
                                                    const struct epilogue_operands *with,
                                                    value_t acc, value_t old, value_t bias, int row,
                                                    int col)
{
#if EXPRESSION
    return expression(acc, BETA(args, with) == 0 ? 0 : BETA(args, with) * old, bias, (long long)row,
                      (long long)col);
#else
    value_t sum = BETA(args, with) == 0 ? acc : acc + BETA(args, with) * old;
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

/* alpha*sum for D[row][col], times the factors of A and B. */
static __device__ __forceinline__ value_t scaled_sum(const struct tgl_gemm_args *args,
                                                     const struct epilogue_operands *with,
                                                     accumulate_t sum, int row, int col)
{
    value_t value = ALPHA(args, with) * value_of(sum);
#if STAGED_FACTORS
    if (SCALE_A == SCALE_LINE) value *= with->factors_a[row];
    if (SCALE_B == SCALE_LINE) value *= with->factors_b[col];
#else
#if SCALE_A == SCALE_LINE
    if (args->scale_a && ALPHA(args, with) != 0) value *= SCALES_OF(args, a, with->group)[row];
#endif
#if SCALE_B == SCALE_LINE
    if (args->scale_b && ALPHA(args, with) != 0) value *= SCALES_OF(args, b, with->group)[col];
#endif
#endif
    (void)args, (void)row, (void)col;
    return value;
}

/* Returns `value`, the result for D[row][col], times the factor of D. With AMAX it first raises
 * *with->amax to |value|. */
static __device__ __forceinline__ value_t scaled_result(const struct tgl_gemm_args *args,
                                                        const struct epilogue_operands *with,
                                                        value_t value, int row, int col)
{
    (void)args, (void)with, (void)row, (void)col;
#if AMAX
    const unsigned magnitude = (unsigned)__float_as_int(value) & 0x7fffffffu;
    if (magnitude > *with->amax) *with->amax = magnitude;
#endif
#if SCALE_D
    const float *factors = SCALES_OF(args, d, with->group);
    return value * factors[SCALE_D == SCALE_LINE ? row : SCALE_D == SCALE_COLUMN ? col : 0];
#else
    return value;
#endif
}

/* activation(alpha*sum + beta*C[row][col] + bias), or the user's expression, to which the residual
 * is then added. sum: sum over k of op(A)[row][k] * op(B)[k][col]; old: C[row][col], or 0 if beta
 * is 0. */
static __device__ __forceinline__ value_t before_residual(const struct tgl_gemm_args *args,
                                                          const struct epilogue_operands *with,
                                                          accumulate_t sum, value_t old, int row,
                                                          int col)
{
#if BIAS
    const value_t bias = from_bias(with->bias[BIAS == 1 ? row : col]);
#else
    const value_t bias = 0;
#endif
    return activated(args, with, scaled_sum(args, with, sum, row, col), old, bias, row, col);
}

/* The value of D[row][col]. sum, old: as for before_residual(). */
static __device__ __forceinline__ value_t epilogue(const struct tgl_gemm_args *args,
                                                   const struct epilogue_operands *with,
                                                   accumulate_t sum, value_t old, int row, int col)
{
    const value_t value = before_residual(args, with, sum, old, row, col);
#if RESIDUAL
    return scaled_result(
        args, with, value + from_residual(with->residual[row * args->ld_residual + col]), row, col);
#else
    return scaled_result(args, with, value, row, col);
#endif
}

/* Whether the epilogue computes just alpha*sum, and C is not read. */
static __device__ __forceinline__ bool epilogue_only_scales(const struct tgl_gemm_args *args,
                                                            const struct epilogue_operands *with)
{
    return !BIAS && !ACTIVATION && !RESIDUAL && !EXPRESSION && !HAS_LINE_SCALES && !AMAX &&
           BETA(args, with) == 0;
}

#if AMAX
/* Raises *args->amax to the largest `own` of the warp's lanes. All lanes call it together. */
static __device__ __forceinline__ void epilogue_add_amax(const struct tgl_gemm_args *args,
                                                         unsigned own)
{
#pragma unroll
    for (int i = 16; i > 0; i /= 2)
        own = max(own, __shfl_xor_sync(0xffffffffu, own, i));
    if (threadIdx.x % 32 == 0) atomicMax(args->amax, own);
}
#endif

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
/* Loads four adjacent elements of a row of C: by one load of 4, 8 or 16 bytes, or by two of 16. */
static __device__ __forceinline__ void load_four_of_c(value_t *to, const element_c *c)
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
#elif HAS_8_BITS(TYPE_C)
    const unsigned word = *(const unsigned *)c;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const unsigned char byte = (unsigned char)(word >> i * 8);
        to[i] = from_c(*(const element_c *)&byte);
    }
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

#if D_HAS_8_BITS
/* Two neighbours of D as a 16-bit half word, the first in its lower byte, rounded to D's type. */
static __device__ __forceinline__ unsigned to_d_half_word(float first, float second)
{
#if TYPE_D == TYPE_E4M3
    return floats_to_e4m3(first, second);
#elif TYPE_D == TYPE_E5M2
    return floats_to_e5m2(first, second);
#else
    return (unsigned char)float_to_i8(first) | (unsigned)(unsigned char)float_to_i8(second) << 8;
#endif
}
#endif

/* Stores four adjacent elements of a row of D, rounded to its type. */
static __device__ __forceinline__ void store_four_of_d(element_d *d, const value_t *v)
{
#if TYPE_D == TYPE_F32
    *(float4 *)d = make_float4((float)v[0], (float)v[1], (float)v[2], (float)v[3]);
#elif TYPE_D == TYPE_F64
    *(double2 *)d = make_double2(v[0], v[1]);
    *(double2 *)(d + 2) = make_double2(v[2], v[3]);
#elif TYPE_D == TYPE_I32
    *(uint4 *)d = make_uint4(v[0], v[1], v[2], v[3]);
#elif D_HAS_8_BITS
    *(unsigned *)d = to_d_half_word(v[0], v[1]) | to_d_half_word(v[2], v[3]) << 16;
#else
    *(uint2 *)d =
        make_uint2(to_d_pair((float)v[0], (float)v[1]), to_d_pair((float)v[2], (float)v[3]));
#endif
}

/* Stores D[row][col + i] for i in [max(from, 0), min(to, 4)). sum[i]: the sum of this element.
 * aligned: ROWS_ARE_ON_16_BYTES(), and col is a multiple of 4. */
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
        value_t v[4] = {0, 0, 0, 0};
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
            const value_t old = BETA(args, with) != 0 ? from_c(c[i]) : 0;
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
                                                           const accumulate_t *line, int length,
                                                           int pair, int row, int col, int from,
                                                           int to)
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
        v[i] = 0;
        if (stores[i]) v[i] = epilogue(args, with, line[places[i]], old, row, col + places[i]);
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
