/* SPDX-License-Identifier: Apache-2.0
 *
 * The types that the cpu device multiplies.
 */
#include "cpu/plan/cpu_types.h"

enum {
    F32 = CPU_BIT(TGL_F32),
    F64 = CPU_BIT(TGL_F64),
    FLOATS = CPU_BIT(TGL_F16) | CPU_BIT(TGL_BF16) | F32,
    I32 = CPU_BIT(TGL_I32),
    I8 = CPU_BIT(TGL_I8),
    F8 = CPU_BIT(TGL_F8_E4M3) | CPU_BIT(TGL_F8_E5M2),
    C64 = CPU_BIT(TGL_C64),
    C128 = CPU_BIT(TGL_C128),
    ALL = CPU_BIT(TGL_COMPUTE_FAST + 1) - 1,
    /* All modes but TGL_COMPUTE_IEEE. By words (cpu_words.h), a product of two f16 is the sum of
     * four bf16 products, which is rounded several times; IEEE requires one rounding per
     * product. */
    NOT_IEEE = ALL & ~CPU_BIT(TGL_COMPUTE_IEEE),
    UNSCALED = CPU_BIT(0),
    SCALED = CPU_BIT(1),
    EXACT_STEPS = 1024, /* this many products of int8 sum up to at most 2^24, which f32 holds
                           exactly */
};

/* Columns: the members of cpu_type, in order. word_modes is 0 for f64, complex and 8-bit
 * floating-point types, because they are never multiplied by words. */
static const cpu_type types[] = {
    {TGL_F32, UNSCALED, F32, F32, TGL_ACTIVATION_SILU, true, false, CPU_WORDS_F32,
     CPU_BIT(TGL_COMPUTE_ACCURATE), 0},
    {TGL_F64, UNSCALED, F64, F64, TGL_ACTIVATION_SILU, true, false, CPU_WORDS_F32, 0, 0},
    {TGL_F16, UNSCALED, FLOATS, FLOATS, TGL_ACTIVATION_SILU, false, false, CPU_WORDS_F16, NOT_IEEE,
     CPU_VECTOR_STEPS},
    {TGL_BF16, UNSCALED, FLOATS, FLOATS, TGL_ACTIVATION_SILU, false, false, CPU_WORDS_BF16, ALL,
     CPU_VECTOR_STEPS},
    {TGL_C64, UNSCALED, C64, C64, TGL_ACTIVATION_NONE, true, false, CPU_WORDS_F32, 0, 0},
    {TGL_C128, UNSCALED, C128, C128, TGL_ACTIVATION_NONE, true, false, CPU_WORDS_F32, 0, 0},
    {TGL_I8, UNSCALED, I32, I32, TGL_ACTIVATION_RELU, false, true, CPU_WORDS_I8, ALL, EXACT_STEPS},
    {TGL_I8, SCALED, FLOATS | I8, FLOATS, TGL_ACTIVATION_SILU, false, true, CPU_WORDS_I8, ALL,
     EXACT_STEPS},
    {TGL_F8_E4M3, UNSCALED | SCALED, FLOATS | F8, FLOATS, TGL_ACTIVATION_SILU, false, false,
     CPU_WORDS_F32, 0, 0},
    {TGL_F8_E5M2, UNSCALED | SCALED, FLOATS | F8, FLOATS, TGL_ACTIVATION_SILU, false, false,
     CPU_WORDS_F32, 0, 0},
};

const cpu_type *tgl_cpu_type_of(const tgl_shape *s)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].type == s->type_a && (types[i].scaled & CPU_BIT(tgl_shape_has_scales(s))) != 0)
            return &types[i];
    return NULL;
}
