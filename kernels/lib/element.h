/* SPDX-License-Identifier: Apache-2.0
 *
 * The element types of a production kernel. Each macro (TYPE_A, ...) is a value of the enum
 * tgl_type (include/tegula/tegula.h). A kernel casts the pointers of lib/gemm_args.h to these types
 * when it first uses them (lib/operands.h). The functions below convert elements to and from
 * value_t, the type of the epilogue's arithmetic: exactly, or rounded to nearest even. A new type
 * adds its C type and its conversions here.
 */
#ifndef TGL_ELEMENT_H
#define TGL_ELEMENT_H

#include "lib/float8.h"
#include "lib/half.h"

#define TYPE_F32  1 /* the values of tgl_type */
#define TYPE_F64  2
#define TYPE_F16  3
#define TYPE_BF16 4
#define TYPE_E4M3 5
#define TYPE_E5M2 6
#define TYPE_I8   7
#define TYPE_I32  8

#ifndef TYPE_A
#define TYPE_A TYPE_F32
#endif
#ifndef TYPE_B
#define TYPE_B TYPE_F32
#endif
#ifndef TYPE_C
#define TYPE_C TYPE_F32
#endif
#ifndef TYPE_D
#define TYPE_D TYPE_F32 /* without SEPARATE_D the type of C */
#endif
#ifndef TYPE_BIAS
#define TYPE_BIAS TYPE_F32
#endif
#ifndef TYPE_RESIDUAL
#define TYPE_RESIDUAL TYPE_F32
#endif
#ifndef ACCUMULATE
#define ACCUMULATE TYPE_F32 /* the type of sums */
#endif

/* How many scale factors A, B and D have. The numbers are those of tgl_scaling, but for
 * SCALE_COLUMN: if the host has transposed the product, D has a factor for each column. */
#define SCALE_TENSOR   1 /* one for the whole matrix */
#define SCALE_LINE     2 /* one for each row of A, column of B or row of D */
#define SCALE_BLOCK    3 /* of A, B: blocks of 128 lines and 128 of K (lib/block_scales.h) */
#define SCALE_LINE_128 4 /* of A, B: one for each line and 128 of K */
#define SCALE_COLUMN   3 /* of D: one for each column */
#ifndef SCALE_A
#define SCALE_A 0
#endif
#ifndef SCALE_B
#define SCALE_B 0
#endif
#ifndef SCALE_D
#define SCALE_D 0
#endif

#ifndef GROUPED
#define GROUPED 0 /* lib/group_table.h: 1: groups of rows of D; 2: groups along K */
#endif

/* VALUE: the type of alpha, beta and the epilogue. It is ACCUMULATE, the type of the sums, or FP32
 * if the sums are int32 and there are scale factors. */
#if ACCUMULATE == TYPE_I32 && (SCALE_A || SCALE_B || SCALE_D)
#define VALUE TYPE_F32
#else
#define VALUE ACCUMULATE
#endif
#ifndef SEPARATE_D
#define SEPARATE_D 0 /* 0: D is also C; 1: C is another matrix. C is read if beta is not 0 */
#endif
#ifndef DEVICE_SCALARS
#define DEVICE_SCALARS 0 /* 0: alpha and beta are arguments; 1: they are in device memory */
#endif

#define HAS_TYPE(type) ((type) >= TYPE_F32 && (type) <= TYPE_I32)
#if !HAS_TYPE(TYPE_A) || !HAS_TYPE(TYPE_B) || !HAS_TYPE(TYPE_C) || !HAS_TYPE(TYPE_D)
#error "TYPE_A, TYPE_B, TYPE_C, TYPE_D: no kernel has elements of this type yet"
#endif
#if !HAS_TYPE(TYPE_BIAS) || !HAS_TYPE(TYPE_RESIDUAL) || !HAS_TYPE(ACCUMULATE)
#error "TYPE_BIAS, TYPE_RESIDUAL, ACCUMULATE: no kernel has elements of this type yet"
#endif
#if !SEPARATE_D && TYPE_C != TYPE_D
#error "TYPE_D: without SEPARATE_D, D is C and has the type of C"
#endif

#define ELEMENT_1           float
#define ELEMENT_2           double
#define ELEMENT_3           struct f16
#define ELEMENT_4           struct bf16
#define ELEMENT_5           struct e4m3
#define ELEMENT_6           struct e5m2
#define ELEMENT_7           signed char
#define ELEMENT_8           int
#define ELEMENT_PASTE(type) ELEMENT_##type
#define ELEMENT_OF(type)    ELEMENT_PASTE(type)

typedef ELEMENT_OF(TYPE_A) element_a;
typedef ELEMENT_OF(TYPE_B) element_b;
typedef ELEMENT_OF(TYPE_C) element_c;
typedef ELEMENT_OF(TYPE_D) element_d;
typedef ELEMENT_OF(TYPE_BIAS) element_bias;
typedef ELEMENT_OF(TYPE_RESIDUAL) element_residual;
#if ACCUMULATE == TYPE_I32
typedef unsigned accumulate_t; /* sums of int32 wrap: unsigned arithmetic is modulo 2^32 */
#else
typedef ELEMENT_OF(ACCUMULATE) accumulate_t;
#endif
#if VALUE == TYPE_I32
typedef unsigned value_t;
#else
typedef ELEMENT_OF(VALUE) value_t;
#endif

/* Converts a sum to the type of the epilogue's values. */
static __device__ __forceinline__ value_t value_of(accumulate_t sum)
{
#if ACCUMULATE == TYPE_I32 && VALUE != TYPE_I32
    return (value_t)(int)sum;
#else
    return sum;
#endif
}

/* Rounds to nearest even and saturates to -128..127. A NaN becomes 0. */
static __device__ __forceinline__ signed char float_to_i8(float x)
{
    return (signed char)(int)rintf(x != x ? 0.0f : fminf(fmaxf(x, -128.0f), 127.0f));
}

/* FROM_<type>(x): converts an element of tgl_type number <type> to value_t. TO_<type>(x): converts
 * back. */
#define FROM_1(x)                  ((value_t)(x))
#define FROM_2(x)                  ((value_t)(x))
#define FROM_3(x)                  ((value_t)f16_to_float(x))
#define FROM_4(x)                  ((value_t)bf16_to_float(x))
#define FROM_5(x)                  ((value_t)e4m3_to_float(x))
#define FROM_6(x)                  ((value_t)e5m2_to_float(x))
#define FROM_7(x)                  ((value_t)(x))
#define FROM_8(x)                  ((value_t)(x))
#define TO_1(x)                    ((float)(x))
#define TO_2(x)                    ((double)(x))
#define TO_3(x)                    float_to_f16((float)(x))
#define TO_4(x)                    float_to_bf16((float)(x))
#define TO_5(x)                    float_to_e4m3((float)(x))
#define TO_6(x)                    float_to_e5m2((float)(x))
#define TO_7(x)                    float_to_i8((float)(x))
#define TO_8(x)                    ((int)(x))
#define CONVERT_PASTE(to, type, x) to##_##type(x)
#define CONVERT(to, type, x)       CONVERT_PASTE(to, type, x)

static __device__ __forceinline__ accumulate_t from_a(element_a x)
{
    return CONVERT(FROM, TYPE_A, x);
}

static __device__ __forceinline__ value_t from_c(element_c x)
{
    return CONVERT(FROM, TYPE_C, x);
}

static __device__ __forceinline__ value_t from_bias(element_bias x)
{
    return CONVERT(FROM, TYPE_BIAS, x);
}

static __device__ __forceinline__ value_t from_residual(element_residual x)
{
    return CONVERT(FROM, TYPE_RESIDUAL, x);
}

static __device__ __forceinline__ element_d to_d(value_t x)
{
    return CONVERT(TO, TYPE_D, x);
}

#endif
