/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws random epilogues and computes their reference results.
 */
#include "check_epilogue.h"
#include "elements.h"

#include <math.h>
#include <stdio.h>

/* An expression of row, column, bias, acc and c. If acc + c or the bias changes by x, its value
 * changes by at most |x|, so the expression does not enlarge their errors. */
static const char expression[] = "relu(acc + c) * 0.5f - bias + 0.25f * row - (col % 3)";

static long double expression_value(long double sum, long double bias, int64_t row, int64_t column)
{
    return (sum < 0 ? 0 : sum) * 0.5L - bias + 0.25L * (long double)row - (long double)(column % 3);
}

/* ---- Drawing --------------------------------------------------------------------------------- */

static int64_t or_zero(random_state *r, int64_t value)
{
    return random_once_in(r, 3) ? 0 : value;
}

static void draw_bias(random_state *r, check_case *c)
{
    const tgl_problem *p = &c->problem;
    tgl_epilogue *e = &c->epilogue;
    e->bias = (tgl_bias)random_int(r, TGL_BIAS_NONE, TGL_BIAS_COLUMN);
    if (e->bias == TGL_BIAS_NONE) return;
    const int64_t length = e->bias == TGL_BIAS_ROW ? p->m : p->n;
    e->stride_bias = or_zero(r, length + random_int(r, 0, 5));
    if (p->grouping == TGL_GROUPED_ROWS && e->bias == TGL_BIAS_ROW) e->stride_bias = 0;
    c->bias.view = (check_view){.offset = GUARD + random_int(r, 0, 3),
                                .batch = e->stride_bias,
                                .row = e->bias == TGL_BIAS_ROW,
                                .column = e->bias == TGL_BIAS_COLUMN};
    c->bias.size =
        c->bias.view.offset + (p->batch > 0 ? p->batch - 1 : 0) * e->stride_bias + length + GUARD;
}

static void draw_residual(random_state *r, check_case *c)
{
    const tgl_problem *p = &c->problem;
    tgl_epilogue *e = &c->epilogue;
    const bool row = p->order == TGL_ROW_MAJOR;
    const int64_t length = row ? p->n : p->m, lines = row ? p->m : p->n;
    e->residual = random_once_in(r, 2);
    if (!e->residual) return;
    int64_t ld = length + or_zero(r, random_int(r, 1, 9));
    if (ld == 0) ld = 1;
    e->ld_residual = ld == length ? or_zero(r, ld) : ld;
    e->stride_residual = or_zero(r, lines * ld + random_int(r, 0, 5));
    if (p->grouping == TGL_GROUPED_ROWS) e->stride_residual = 0;
    c->residual.view = (check_view){.offset = GUARD + random_int(r, 0, 3),
                                    .batch = e->stride_residual,
                                    .row = row ? ld : 1,
                                    .column = row ? 1 : ld};
    c->residual.size = c->residual.view.offset +
                       (p->batch > 0 ? p->batch - 1 : 0) * e->stride_residual + lines * ld + GUARD;
}

/* Draws an activation or an expression. Integer products get RELU or nothing, because everything
 * else needs floating-point types. */
static void draw_function(random_state *r, check_case *c)
{
    if (element_is_integer(c->problem.type_a)) {
        if (random_once_in(r, 2)) c->epilogue.activation = TGL_ACTIVATION_RELU;
        return;
    }
    c->bound += EPILOGUE_ERRORS;
    if (element_parts(c->problem.type_a) == 2) return; /* complex types support neither */
    if (random_once_in(r, 5))
        c->epilogue.expression = expression;
    else
        c->epilogue.activation =
            (tgl_activation)random_int(r, TGL_ACTIVATION_NONE, TGL_ACTIVATION_SILU);
}

void check_epilogue_draw(random_state *r, check_case *c)
{
    c->epilogue = (tgl_epilogue){.size = sizeof c->epilogue};
    draw_bias(r, c);
    draw_residual(r, c);
    draw_function(r, c);
}

/* ---- Operands -------------------------------------------------------------------------------- */

/* Fills the buffer of an epilogue operand with random numbers, guards included, so that a kernel
 * that reads a guard computes a wrong result. False: out of memory. */
static bool fill_operand(random_state *r, check_buffer *buffer)
{
    if (buffer->size == 0) return true;
    if (!check_buffer_make_image(buffer)) return false;
    random_fill(r, buffer->type, buffer->image, buffer->size * element_parts(buffer->type));
    return true;
}

bool check_epilogue_fill(random_state *r, check_case *c)
{
    return fill_operand(r, &c->bias) && fill_operand(r, &c->residual);
}

/* ---- The reference result -------------------------------------------------------------------- */

void check_epilogue_finish(const check_case *c, int64_t b, int64_t i, reference_element *reference)
{
    const tgl_epilogue *e = &c->epilogue;
    const tgl_type accumulator = element_accumulator(c->problem.type_a);
    const int parts = element_parts(c->problem.type_a);
    for (int64_t q = 0; q < c->problem.n * parts; q++) {
        reference_element *x = &reference[q];
        const int64_t j = q / parts;
        const int part = (int)(q % parts);
        const long double bias =
            e->bias != TGL_BIAS_NONE ? check_buffer_get(&c->bias, b, i, j, part) : 0;
        const long double residual =
            e->residual ? check_buffer_get(&c->residual, b, i, j, part) : 0;
        reference_saturate(accumulator, x);
        if (e->expression == NULL) {
            reference_epilogue(accumulator, e, bias, residual, x);
            continue;
        }
        x->value = expression_value(x->value, bias, i, j);
        x->magnitude += fabsl(bias) + fabsl(x->value) + fabsl(residual) + (long double)i + 2;
        x->value += residual;
    }
}

void check_epilogue_describe(const check_case *c, char *text, size_t size)
{
    static const char *const biases[] = {"", " bias=row", " bias=column"};
    static const char *const activations[] = {"", " relu", " gelu", " silu"};
    const tgl_epilogue *e = &c->epilogue;
    snprintf(text, size, "%s%s%s%s", biases[e->bias], activations[e->activation],
             e->expression != NULL ? " expression" : "", e->residual ? " residual" : "");
}
