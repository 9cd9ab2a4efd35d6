/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of types and compute modes, and the sizes of elements.
 */
#include "problem/type_names.h"

/* Indexed by tgl_type. Columns: name, bits of an element, its alignment in bytes. Row 0 serves
 * invalid values. */
static const struct {
    const char *name;
    int64_t bits;
    size_t alignment;
} elements[] = {
    {"?", 0, 1},
    [TGL_F32] = {"f32", 32, 4},
    [TGL_F64] = {"f64", 64, 8},
    [TGL_F16] = {"f16", 16, 2},
    [TGL_BF16] = {"bf16", 16, 2},
    [TGL_F8_E4M3] = {"e4m3", 8, 1},
    [TGL_F8_E5M2] = {"e5m2", 8, 1},
    [TGL_I8] = {"i8", 8, 1},
    [TGL_I32] = {"i32", 32, 4},
    [TGL_C64] = {"c64", 64, 4},
    [TGL_C128] = {"c128", 128, 8},
    [TGL_I4] = {"i4", 4, 1},
};

static size_t row_of(tgl_type type)
{
    return (size_t)type < sizeof elements / sizeof elements[0] ? (size_t)type : 0;
}

size_t tgl_type_size(tgl_type type)
{
    return (size_t)(elements[row_of(type)].bits / 8);
}

bool tgl_type_is_valid(tgl_type type)
{
    return elements[row_of(type)].bits > 0;
}

int64_t tgl_type_bytes(tgl_type type, int64_t count)
{
    const int64_t bits = elements[row_of(type)].bits;
    return bits < 8 ? count / 2 + count % 2 : count * (bits / 8);
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
