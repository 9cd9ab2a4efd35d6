/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks an epilogue and normalises it to row-major. A column-major C is the row-major one with m
 * and n, and so rows and columns, exchanged.
 */
#include "device.h"
#include "problem.h"

#include <stdio.h>
#include <stdlib.h>

/* Writes the sentence and yields the status; `message` and `message_size` are in scope. */
#define REJECT(status, ...) (snprintf(message, message_size, __VA_ARGS__), (status))

static tgl_status check_kinds(const tgl_epilogue *e, char *message, size_t message_size)
{
    if (e->size != sizeof *e)
        return REJECT(TGL_BAD_ARGUMENT, "epilogue.size is %zu; this version knows %zu", e->size,
                      sizeof *e);
    if (e->bias != TGL_BIAS_NONE && e->bias != TGL_BIAS_ROW && e->bias != TGL_BIAS_COLUMN)
        return REJECT(TGL_BAD_EPILOGUE, "epilogue.bias is %d, which is not a tgl_bias",
                      (int)e->bias);
    if ((int)e->activation < TGL_ACTIVATION_NONE || e->activation > TGL_ACTIVATION_SILU)
        return REJECT(TGL_BAD_EPILOGUE, "epilogue.activation is %d, which is not a tgl_activation",
                      (int)e->activation);
    if (e->residual != 0 && e->residual != 1)
        return REJECT(TGL_BAD_EPILOGUE, "epilogue.residual is %d; it is 0 or 1", e->residual);
    if (e->expression == NULL) return TGL_OK;
    if (e->activation != TGL_ACTIVATION_NONE)
        return REJECT(TGL_BAD_EPILOGUE, "epilogue has both an expression and an activation");
    if (e->expression[0] == '\0') return REJECT(TGL_BAD_EPILOGUE, "epilogue.expression is empty");
    return TGL_OK;
}

/* Whether the bytes of a batch of `lines` lines of `length` elements fit in 63 bits. */
static bool is_addressable(int64_t lines, int64_t length, int64_t ld, int64_t batch, int64_t stride,
                           size_t element)
{
    int64_t one, all;
    return !__builtin_mul_overflow(lines - 1, ld, &one) &&
           !__builtin_add_overflow(one, length, &one) &&
           !__builtin_mul_overflow(batch - 1, stride, &all) &&
           !__builtin_add_overflow(all, one, &all) &&
           !__builtin_mul_overflow(all, (int64_t)element, &all);
}

/* In terms of the normalised shape. */
static tgl_status check_layout(const tgl_gemm_shape *s, char *message, size_t message_size)
{
    const tgl_gemm_epilogue *e = &s->epilogue;
    const size_t element = tgl_type_size(s->type_c);
    if (e->ld_residual < s->n || e->ld_residual < 1)
        return REJECT(TGL_BAD_EPILOGUE, "epilogue.ld_residual is %lld; it must be at least %lld",
                      (long long)e->ld_residual, (long long)(s->n > 1 ? s->n : 1));
    if (e->stride_bias < 0 || e->stride_residual < 0)
        return REJECT(TGL_BAD_EPILOGUE, "epilogue.stride_%s is %lld; it must not be negative",
                      e->stride_bias < 0 ? "bias" : "residual",
                      (long long)(e->stride_bias < 0 ? e->stride_bias : e->stride_residual));
    if (tgl_shape_is_empty(s)) return TGL_OK;
    if (e->residual &&
        !is_addressable(s->m, s->n, e->ld_residual, s->batch, e->stride_residual, element))
        return REJECT(TGL_TOO_LARGE, "the bytes of the residual do not fit in 63 bits");
    const int64_t length = e->bias == TGL_BIAS_ROW ? s->m : s->n;
    if (e->bias != TGL_BIAS_NONE &&
        !is_addressable(1, length, 1, s->batch, e->stride_bias, element))
        return REJECT(TGL_TOO_LARGE, "the bytes of the bias do not fit in 63 bits");
    return TGL_OK;
}

static tgl_bias exchanged(tgl_bias bias)
{
    return bias == TGL_BIAS_ROW      ? TGL_BIAS_COLUMN
           : bias == TGL_BIAS_COLUMN ? TGL_BIAS_ROW
                                     : TGL_BIAS_NONE;
}

/* A function, so that the text meets no names but its own; the caller's rows and columns are the
 * kernel's only if the product was not exchanged. NULL: no memory. */
static char *write_source(const char *expression, bool swapped)
{
    char *source;
    if (asprintf(&source,
                 "static __device__ __forceinline__ float expression(float acc, float c, "
                 "float bias, int %s, int %s)\n"
                 "{\n"
                 "    return (float)(\n"
                 "#line 1 \"expression\"\n"
                 "%s\n"
                 "    );\n"
                 "}\n",
                 swapped ? "col" : "row", swapped ? "row" : "col", expression) < 0)
        return NULL;
    return source;
}

tgl_status tgl_epilogue_make(const tgl_epilogue *e, tgl_gemm_shape *shape, char **source,
                             char *message, size_t message_size)
{
    *source = NULL;
    if (e == NULL) return TGL_OK;
    TGL_TRY(check_kinds(e, message, message_size));
    shape->epilogue = (tgl_gemm_epilogue){
        .bias = shape->swapped ? exchanged(e->bias) : e->bias,
        .activation = e->activation,
        .residual = e->residual == 1,
        .ld_residual = e->ld_residual != 0 ? e->ld_residual
                       : shape->n > 0      ? shape->n
                                           : 1,
        .stride_bias = e->stride_bias,
        .stride_residual = e->stride_residual,
    };
    TGL_TRY(check_layout(shape, message, message_size));
    if (e->expression == NULL) return TGL_OK;
    *source = write_source(e->expression, shape->swapped);
    if (*source == NULL) return REJECT(TGL_NO_MEMORY, "no memory for the epilogue's expression");
    shape->epilogue.expression = *source;
    return TGL_OK;
}

const char *tgl_epilogue_describe(const tgl_gemm_shape *s, char *text, size_t size)
{
    static const char *const activations[] = {"", "relu", "gelu", "silu"};
    static const char *const biases[] = {"", " + bias[row]", " + bias[column]"};
    const tgl_gemm_epilogue *e = &s->epilogue;
    const tgl_bias bias = s->swapped ? exchanged(e->bias) : e->bias;
    const char *residual = e->residual ? " + residual" : "";
    text[0] = '\0';
    if (tgl_epilogue_is_none(e)) return text;
    if (e->expression != NULL)
        snprintf(text, size, "C := expression%s%s", bias != TGL_BIAS_NONE ? " with bias" : "",
                 residual);
    else
        snprintf(text, size, "C := %s(alpha*A*B + beta*C%s)%s", activations[e->activation],
                 biases[bias], residual);
    return text;
}
