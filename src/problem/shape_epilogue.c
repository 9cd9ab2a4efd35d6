/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks an epilogue and normalises it to row-major. A column-major D is treated as the row-major
 * D^T: m and n are exchanged, and so are rows and columns.
 */
#include "base/error.h"
#include "problem/shape.h"
#include "problem/struct_size.h"

#include <stdio.h>
#include <stdlib.h>

/* The smallest accepted size of tgl_epilogue: the size in its first version. */
static const size_t least_size = TGL_SIZE_UP_TO(tgl_epilogue, type_residual);

static tgl_status check_kinds(const tgl_epilogue *e)
{
    if (e->bias != TGL_BIAS_NONE && e->bias != TGL_BIAS_ROW && e->bias != TGL_BIAS_COLUMN)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.bias is %d, which is not a tgl_bias",
                        (int)e->bias);
    if ((int)e->activation < TGL_ACTIVATION_NONE || e->activation > TGL_ACTIVATION_SILU)
        return tgl_fail(TGL_BAD_EPILOGUE,
                        "epilogue.activation is %d, which is not a tgl_activation",
                        (int)e->activation);
    if (e->residual != 0 && e->residual != 1)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.residual is %d; it is 0 or 1", e->residual);
    if (e->type_bias != 0 && tgl_type_size(e->type_bias) == 0)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.type_bias is %d, which is not a tgl_type",
                        (int)e->type_bias);
    if (e->type_residual != 0 && tgl_type_size(e->type_residual) == 0)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.type_residual is %d, which is not a tgl_type",
                        (int)e->type_residual);
    if (e->expression == NULL) return TGL_OK;
    if (e->activation != TGL_ACTIVATION_NONE)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue has both an expression and an activation");
    if (e->expression[0] == '\0') return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.expression is empty");
    return TGL_OK;
}

/* Returns an error for an activation or expression on complex elements: these are neither
 * comparable with 0 nor arguments of functions of real numbers. Bias and residual must be complex
 * if and only if D is. */
static tgl_status check_complex(const tgl_epilogue *e, const tgl_shape *s)
{
    const char *type = tgl_type_name(s->type_d);
    const bool is_complex = tgl_type_is_complex(s->type_d);
    if (is_complex && (e->activation != TGL_ACTIVATION_NONE || e->expression != NULL))
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue has an %s; products of %s take none",
                        e->expression != NULL ? "expression" : "activation", type);
    if (e->bias != TGL_BIAS_NONE && e->type_bias != 0 &&
        tgl_type_is_complex(e->type_bias) != is_complex)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.type_bias is %s, and D is %s",
                        tgl_type_name(e->type_bias), type);
    if (e->residual && e->type_residual != 0 && tgl_type_is_complex(e->type_residual) != is_complex)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.type_residual is %s, and D is %s",
                        tgl_type_name(e->type_residual), type);
    return TGL_OK;
}

/* Checks amax, the request for the largest magnitude of D. It is supported for products of 8-bit
 * types without groups whose epilogue computes in FP32. */
static tgl_status check_amax(const tgl_epilogue *e, const tgl_shape *s)
{
    const bool has_8_bits = tgl_type_is_f8(s->type_a) || s->type_a == TGL_I8;
    if (e->amax != 0 && e->amax != 1)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.amax is %d; it is 0 or 1", e->amax);
    if (e->amax == 1 && (!has_8_bits || tgl_shape_scalar_type(s) != TGL_F32))
        return tgl_fail(TGL_BAD_EPILOGUE,
                        "epilogue.amax is for products of F8, and of I8 with scales");
    if (e->amax == 1 && s->grouping != TGL_GROUPED_NONE)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.amax is not for products with a grouping");
    return TGL_OK;
}

/* Checks strides and leading dimensions of an epilogue that is already normalised. */
static tgl_status check_layout(const tgl_shape *s)
{
    const tgl_shape_epilogue *e = &s->epilogue;
    if (e->ld_residual < s->n || e->ld_residual < 1)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.ld_residual is %lld; it must be at least %lld",
                        (long long)e->ld_residual, (long long)(s->n > 1 ? s->n : 1));
    if (e->stride_bias < 0 || e->stride_residual < 0)
        return tgl_fail(TGL_BAD_EPILOGUE, "epilogue.stride_%s is %lld; it must not be negative",
                        e->stride_bias < 0 ? "bias" : "residual",
                        (long long)(e->stride_bias < 0 ? e->stride_bias : e->stride_residual));
    if (s->grouping == TGL_GROUPED_ROWS &&
        (e->stride_residual != 0 || (e->bias == TGL_BIAS_ROW && e->stride_bias != 0)))
        return tgl_fail(TGL_BAD_EPILOGUE,
                        "epilogue.stride_%s must be 0, because one matrix has the rows of all "
                        "groups",
                        e->stride_residual != 0 ? "residual" : "bias");
    if (tgl_shape_is_empty(s)) return TGL_OK;
    const int64_t residual = tgl_extent(s->m, s->n, e->ld_residual);
    const int64_t bias = e->bias == TGL_BIAS_ROW ? s->m : s->n;
    if (e->residual &&
        !tgl_is_addressable(residual, s->batch, e->stride_residual, e->type_residual))
        return tgl_fail(TGL_TOO_LARGE, "the bytes of the residual do not fit in 63 bits");
    if (e->bias != TGL_BIAS_NONE &&
        !tgl_is_addressable(bias, s->batch, e->stride_bias, e->type_bias))
        return tgl_fail(TGL_TOO_LARGE, "the bytes of the bias do not fit in 63 bits");
    return TGL_OK;
}

static tgl_bias exchanged(tgl_bias bias)
{
    return bias == TGL_BIAS_ROW      ? TGL_BIAS_COLUMN
           : bias == TGL_BIAS_COLUMN ? TGL_BIAS_ROW
                                     : TGL_BIAS_NONE;
}

/* The name of a scalar type in CUDA C. */
static const char *c_type(tgl_type type)
{
    return type == TGL_F64 ? "double" : type == TGL_I32 ? "int" : "float";
}

/* Writes the header with the user's expression. The expression is the body of a function, so that
 * it sees only the function's parameters. Parameters row and col are exchanged if A and B were
 * exchanged (swapped). NULL: out of memory. */
static char *write_source(const char *expression, const tgl_shape *s)
{
    const char *type = c_type(tgl_shape_scalar_type(s));
    char *source;
    if (asprintf(&source,
                 "static __device__ __forceinline__ %s expression(%s acc, %s c, %s bias, "
                 "long long %s, long long %s)\n"
                 "{\n"
                 "    return (%s)(\n"
                 "#line 1 \"expression\"\n"
                 "%s\n"
                 "    );\n"
                 "}\n",
                 type, type, type, type, s->swapped ? "col" : "row", s->swapped ? "row" : "col",
                 type, expression) < 0)
        return NULL;
    return source;
}

tgl_status tgl_epilogue_make(const tgl_epilogue *epilogue, tgl_shape *shape, char **source)
{
    *source = NULL;
    if (epilogue == NULL) return TGL_OK;
    tgl_epilogue copy;
    const void *read;
    TGL_TRY(tgl_struct_read(epilogue, sizeof copy, least_size, "epilogue", &copy, &read));
    const tgl_epilogue *e = read;
    TGL_TRY(check_kinds(e));
    TGL_TRY(check_complex(e, shape));
    TGL_TRY(check_amax(e, shape));
    shape->epilogue = (tgl_shape_epilogue){
        .bias = shape->swapped ? exchanged(e->bias) : e->bias,
        .activation = e->activation,
        .residual = e->residual == 1,
        .amax = e->amax == 1,
        .type_bias = e->type_bias != 0 ? e->type_bias : shape->type_d,
        .type_residual = e->type_residual != 0 ? e->type_residual : shape->type_d,
        .ld_residual = e->ld_residual != 0 ? e->ld_residual
                       : shape->n > 0      ? shape->n
                                           : 1,
        .stride_bias = e->stride_bias,
        .stride_residual = e->stride_residual,
    };
    TGL_TRY(check_layout(shape));
    if (e->expression == NULL) return TGL_OK;
    *source = write_source(e->expression, shape);
    if (*source == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for the epilogue's expression");
    shape->epilogue.expression = *source;
    return TGL_OK;
}

const char *tgl_epilogue_describe(const tgl_shape *s, char *text, size_t size)
{
    static const char *const activations[] = {"", "relu", "gelu", "silu"};
    static const char *const biases[] = {"", " + bias[row]", " + bias[column]"};
    const tgl_shape_epilogue *e = &s->epilogue;
    const tgl_bias bias = s->swapped ? exchanged(e->bias) : e->bias;
    const char *residual = e->residual ? " + residual" : "", *amax = e->amax ? ", amax" : "";
    const char result = s->in_place ? 'C' : 'D';
    text[0] = '\0';
    if (tgl_epilogue_is_none(e)) return text;
    if (e->expression != NULL)
        snprintf(text, size, "%c := expression%s%s%s", result,
                 bias != TGL_BIAS_NONE ? " with bias" : "", residual, amax);
    else
        snprintf(text, size, "%c := %s(alpha*A*B + beta*C%s)%s%s", result,
                 activations[e->activation], biases[bias], residual, amax);
    return text;
}
