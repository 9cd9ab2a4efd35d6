/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of types and compute modes, and the size, alignment and kind of a type's elements.
 */
#ifndef TGL_TYPE_NAMES_H
#define TGL_TYPE_NAMES_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* "f32", "f64", "f16", "bf16", "e4m3", "e5m2", "i8", "i32", "c64", "c128", "i4"; "?" for a value
 * outside tgl_type. */
const char *tgl_type_name(tgl_type type);

/* Whether the value is one of tgl_type. */
bool tgl_type_is_valid(tgl_type type);

/* Bytes of `count` successive elements. Two elements of I4 are in one byte. */
int64_t tgl_type_bytes(tgl_type type, int64_t count);

/* "default", "ieee", ... Static text. */
const char *tgl_compute_name(tgl_compute compute);

/* The alignment of an element in bytes: its size; for complex types the size of the real part; 1
 * for I4. */
size_t tgl_type_alignment(tgl_type type);

static inline bool tgl_type_is_complex(tgl_type type)
{
    return type == TGL_C64 || type == TGL_C128;
}

/* Whether elements of this type consist of FP32 numbers: F32 and C64. */
static inline bool tgl_type_is_single(tgl_type type)
{
    return type == TGL_F32 || type == TGL_C64;
}

static inline bool tgl_type_is_f8(tgl_type type)
{
    return type == TGL_F8_E4M3 || type == TGL_F8_E5M2;
}

#endif
