/* SPDX-License-Identifier: Apache-2.0
 *
 * Why groups of kernels do not support a problem: see unsupported.h.
 */
#include "families/unsupported.h"

/* Whether kernels convert this type to and from value_t, the type in which the epilogue computes
 * (kernels/lib/element.h). */
static bool is_converted(tgl_type type)
{
    return type == TGL_F32 || type == TGL_F64 || type == TGL_F16 || type == TGL_BF16;
}

static const char *unsupported_addends(const tgl_shape_epilogue *e)
{
    if ((e->bias != TGL_BIAS_NONE && !is_converted(e->type_bias)) ||
        (e->residual && !is_converted(e->type_residual)))
        return "bias and residual must be F32, F64, F16 or BF16";
    return NULL;
}

/* int32 sums that are not scaled are also the results: C and D are int32. */
static const char *unsupported_integers(const tgl_shape *s)
{
    const tgl_shape_epilogue *e = &s->epilogue;
    if (s->type_c != TGL_I32 || s->type_d != TGL_I32)
        return "its products of i8 have results of i32, or scales";
    if (e->activation > TGL_ACTIVATION_RELU || e->expression != NULL)
        return "products of i8 have RELU or no activation, and no expression";
    if ((e->bias != TGL_BIAS_NONE && e->type_bias != TGL_I32) ||
        (e->residual && e->type_residual != TGL_I32))
        return "bias and residual of products of i8 must be i32";
    return NULL;
}

bool tgl_has_8_bits(const tgl_shape *s)
{
    const bool has_integers = s->type_a == TGL_I8 && s->type_b == TGL_I8;
    return has_integers || (tgl_type_is_f8(s->type_a) && tgl_type_is_f8(s->type_b));
}

const char *tgl_8_bits_unsupported_reason(const tgl_shape *s)
{
    if (tgl_shape_scalar_type(s) == TGL_I32) return unsupported_integers(s);
    if (s->type_c == TGL_I32 || s->type_d == TGL_I32) return "sums of i32 are not scaled";
    return unsupported_addends(&s->epilogue);
}

static bool has_f32_epilogue(const tgl_shape_epilogue *e)
{
    return (e->bias == TGL_BIAS_NONE || e->type_bias == TGL_F32) &&
           (!e->residual || e->type_residual == TGL_F32);
}

const char *tgl_gemm_unsupported_reason(const tgl_shape *s)
{
    if (tgl_shape_has_scales(s) && !tgl_has_8_bits(s))
        return "scales are for products of 8-bit types";
    _Static_assert(TGL_EXTENT_MAX == 2147482623, "the sentence says so");
    if (s->m > TGL_EXTENT_MAX || s->n > TGL_EXTENT_MAX || s->k > TGL_EXTENT_MAX)
        return "CUDA kernels take m, n and k up to 2147482623";
    return NULL;
}

const char *tgl_unsupported_unless_f32(const tgl_shape *s, const tgl_chip *chip)
{
    (void)chip;
    if (!tgl_shape_is_all(s, TGL_F32) || s->type_accumulate != TGL_F32)
        return "it multiplies f32 matrices only";
    if (!has_f32_epilogue(&s->epilogue)) return "its bias and residual are f32 only";
    return tgl_gemm_unsupported_reason(s);
}

const char *tgl_unsupported_on_cuda_cores(const tgl_shape *s, const tgl_chip *chip)
{
    const bool is_16_bits = s->type_a == TGL_F16 || s->type_a == TGL_BF16;
    (void)chip;
    if (!is_16_bits && s->type_a != TGL_F32 && s->type_a != TGL_F64)
        return "it multiplies F32, F64, F16 and BF16";
    if (s->type_b != s->type_a) return "A and B must have one type";
    if (s->type_accumulate != (s->type_a == TGL_F64 ? TGL_F64 : TGL_F32))
        return "it adds in F32, or in F64 if A and B are F64";
    if ((s->type_c != s->type_a && !(is_16_bits && s->type_c == TGL_F32)) ||
        (s->type_d != s->type_a && !(is_16_bits && s->type_d == TGL_F32)))
        return "C and D must have the type of A and B, or F32 if that has 16 bits";
    if (unsupported_addends(&s->epilogue) != NULL) return unsupported_addends(&s->epilogue);
    return tgl_gemm_unsupported_reason(s);
}

const char *tgl_unsupported_by_mma_sync(const tgl_shape *s, const tgl_chip *chip)
{
    const bool is_half = s->type_a == TGL_F16 || s->type_a == TGL_BF16;
    const bool is_tf32 = s->type_a == TGL_F32 && s->compute == TGL_COMPUTE_TF32;
    const bool is_f64 = s->type_a == TGL_F64, is_i8 = s->type_a == TGL_I8;
    const bool has_8_bits = tgl_has_8_bits(s);
    if (chip->capability < 80) return "its instructions need compute capability 8.0";
    if (s->type_a != s->type_b && !has_8_bits) return "it multiplies matrices of one type";
    if (s->type_a == TGL_F32 && !is_tf32) return "it multiplies FP32 in compute mode tf32 only";
    if (!is_half && !is_tf32 && !is_f64 && !has_8_bits)
        return "it multiplies f16, bf16, e4m3, e5m2, tf32, f64 and i8";
    if (s->type_accumulate != (is_f64 ? TGL_F64 : is_i8 ? TGL_I32 : TGL_F32))
        return "it accumulates in FP32, f64 in f64, and i8 in i32";
    const char *why = has_8_bits ? tgl_8_bits_unsupported_reason(s) : NULL;
    if (why != NULL) return why;
    return tgl_gemm_unsupported_reason(s);
}

int64_t tgl_map_stride_max(tgl_type type)
{
    return ((int64_t)1 << 40) / (int64_t)tgl_type_size(type) - 1;
}

bool tgl_has_map_strides(const tgl_shape *s)
{
    const int64_t stride_max = tgl_map_stride_max(s->type_a);
    return s->lda <= stride_max && s->ldb <= stride_max && s->stride_a <= stride_max &&
           s->stride_b <= stride_max;
}
