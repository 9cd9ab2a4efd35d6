/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of types and compute modes, and the sizes of elements.
 */
#include "problem/type_names.h"

/* Indexed by tgl_type. Columns: name, bytes of an element, its alignment. Row 0 serves invalid
 * values. */
static const struct {
    const char *name;
    size_t size, alignment;
} elements[] = {
    {"?", 0, 1},
    [TGL_F32] = {"f32", 4, 4},
    [TGL_F64] = {"f64", 8, 8},
    [TGL_F16] = {"f16", 2, 2},
    [TGL_BF16] = {"bf16", 2, 2},
    [TGL_F8_E4M3] = {"e4m3", 1, 1},
    [TGL_F8_E5M2] = {"e5m2", 1, 1},
    [TGL_I8] = {"i8", 1, 1},
    [TGL_I32] = {"i32", 4, 4},
    [TGL_C64] = {"c64", 8, 4},
    [TGL_C128] = {"c128", 16, 8},
};

static size_t row_of(tgl_type type)
{
    return (size_t)type < sizeof elements / sizeof elements[0] ? (size_t)type : 0;
}

size_t tgl_type_size(tgl_type type)
{
    return elements[row_of(type)].size;
}

const char *tgl_compute_name(tgl_compute compute)
{
    static const char *const names[] = {[TGL_COMPUTE_DEFAULT] = "default",
                                        [TGL_COMPUTE_IEEE] = "ieee",
                                        [TGL_COMPUTE_ACCURATE] = "accurate",
                                        [TGL_COMPUTE_TF32] = "tf32",
                                        [TGL_COMPUTE_FAST] = "fast"};
    return names[compute];
}

const char *tgl_type_name(tgl_type type)
{
    return elements[row_of(type)].name;
}

size_t tgl_type_alignment(tgl_type type)
{
    return elements[row_of(type)].alignment;
}
