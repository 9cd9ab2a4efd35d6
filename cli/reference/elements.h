/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types: their names, their limits, and conversion to and from double. Most code of the
 * program and the tests treats a matrix as an array of bytes and a tgl_type, and leaves the formats
 * to this module.
 *
 *     name   sign, exponent, fraction bits
 *     f32    1, 8, 23
 *     f64    1, 11, 52
 *     f16    1, 5, 10     IEEE half
 *     bf16   1, 8, 7      bfloat16
 *     e4m3   1, 4, 3      no infinity; greater numbers are rounded to the greatest one, 448
 *     e5m2   1, 5, 2      has infinities; greater numbers are rounded to the greatest one, 57344
 *     i8     8-bit integers, two's complement
 *     i32    32-bit integers, two's complement
 *     c64    complex: two f32, the real part first
 *     c128   complex: two f64
 *
 * A complex element is two numbers. The functions below take and count numbers, which are the parts
 * of complex elements: number 2*i is the real part of element i.
 */
#ifndef CLI_ELEMENTS_H
#define CLI_ELEMENTS_H

#include "tegula/tegula.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether this module supports the type. All functions below, except element_type_name(), need a
 * type that it supports. */
bool element_is_known(tgl_type type);

/* The name of the type, such as "f32"; "?" if it is not supported. */
const char *element_type_name(tgl_type type);

/* *type := the type with this name. False: there is none. */
bool element_type_of(const char *name, tgl_type *type);

/* The number of numbers in an element: 2 if the type is complex, else 1. */
int element_parts(tgl_type type);

/* Whether this is an integer type. Its sums and products are exact modulo 2^32. */
bool element_is_integer(tgl_type type);

/* The type in which sums of products are accumulated: f64 for f64, i32 for integers, the type
 * itself if it is complex, else f32. */
tgl_type element_accumulator(tgl_type type);

/* The unit roundoff of the type: 2^-24 for f32; 0 for integers. */
double element_unit(tgl_type type);

/* The factor that maps random numbers in (-1, 1) to the range of the type: 1 for floating point;
 * for integers the negated least integer (128 for i8), so that all integers occur. */
double element_scale(tgl_type type);

/* element_smallest(): the smallest positive number of the type, which is denormal.
 * element_least_normal(): its smallest positive normal number. element_greatest(): its greatest
 * number. For integers the first two are 1. */
double element_smallest(tgl_type type);
double element_least_normal(tgl_type type);
double element_greatest(tgl_type type);

/* Half the distance between the numbers of the type around x, which must be finite. This is the
 * maximum error of rounding x to the type. */
double element_half_ulp(tgl_type type, double x);

/* Number `at` of the array, as a double, which represents the numbers of all these types
 * exactly. */
double element_get(tgl_type type, const void *elements, int64_t at);

/* Stores x as number `at`, rounded to nearest, ties to even. Overflow gives an infinity, but for
 * e4m3 and e5m2 the greatest number; NaN gives a quiet NaN. For integer types, overflow gives the
 * nearest integer of the type, and NaN the least one. Tests fill padding with NaN, so that a kernel
 * that reads it computes a wrong result. */
void element_set(tgl_type type, void *elements, int64_t at, double x);

/* x rounded to the type. */
double element_round(tgl_type type, double x);

/* The index of the first of `count` numbers that is an infinity or NaN; `count`: there is none, as
 * always for integers. Except for e4m3, the speed is limited by the memory bandwidth only. */
int64_t element_find_non_finite(tgl_type type, const void *elements, int64_t count);

/* out[i] := number (first + i*step) of the array, for 0 <= i < count. */
void element_read(tgl_type type, const void *elements, int64_t first, int64_t step, int64_t count,
                  double *out);

#endif
