/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types: their names, their limits, and conversion to and from double. Everywhere in
 * the program and the tests a matrix is bytes and a tgl_type; only this module knows the formats.
 *
 *     name   sign, exponent, fraction bits
 *     f32    1, 8, 23
 *     f64    1, 11, 52
 *     f16    1, 5, 10     IEEE half
 *     bf16   1, 8, 7      bfloat16
 *     e4m3   1, 4, 3        no infinity; greater numbers are rounded to the greatest one, 448
 *     e5m2   1, 5, 2        the same with 57344
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

/* Whether this module supports the type. The functions below need a type that it supports. */
bool element_is_known(tgl_type type);

/* The name of a type: "f32"; "?" for a type that is not supported. */
const char *element_type_name(tgl_type type);

/* *type := the type of this name; false: there is none. */
bool element_type_of(const char *name, tgl_type *type);

/* The numbers of an element: 2 if the type is complex, else 1. */
int element_parts(tgl_type type);

/* Whether the type is an integer type. Sums and products of integers are exact modulo 2^32. */
bool element_is_integer(tgl_type type);

/* The type that sums of products are accumulated in: f64 for f64, i32 for integers, the type itself
 * if it is complex, else f32. */
tgl_type element_accumulator(tgl_type type);

/* The unit roundoff: 2^-24 for f32; 0 for integers. */
double element_unit(tgl_type type);

/* The factor by which random numbers in (-1, 1) become numbers of the type: 1 for floating point;
 * for integers the negated least integer (128 for i8), so that all integers occur. */
double element_scale(tgl_type type);

/* The smallest positive number of a type, which is denormal; below: the smallest positive normal
 * number, and the greatest number. For integers the first two are 1. */
double element_smallest(tgl_type type);
double element_least_normal(tgl_type type);
double element_greatest(tgl_type type);

/* Half the distance between neighbouring numbers of the type around x, which is finite. This is the
 * maximum error of rounding x to the type. */
double element_half_ulp(tgl_type type, double x);

/* Element number `at`. Every number of these types is a double. */
double element_get(tgl_type type, const void *elements, int64_t at);

/* Stores x, rounded to nearest, ties to even. Overflow gives an infinity, in e4m3 and e5m2 the
 * largest finite number, NaN a quiet NaN. Integers
 * have neither: overflow gives the nearest integer of the type, NaN the least one. Padding is
 * filled with NaN; a kernel that reads it computes a wrong result. */
void element_set(tgl_type type, void *elements, int64_t at, double x);

/* x rounded to the type. */
double element_round(tgl_type type, double x);

/* The index of the first of `count` elements that is an infinity or a NaN; `count` if there is
 * none, as for integers. About as fast as memory. */
int64_t element_find_non_finite(tgl_type type, const void *elements, int64_t count);

/* out[i] := element first + i*step, for 0 <= i < count. */
void element_read(tgl_type type, const void *elements, int64_t first, int64_t step, int64_t count,
                  double *out);

#endif
