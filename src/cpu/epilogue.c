/* SPDX-License-Identifier: Apache-2.0
 *
 * Bias, activation and residual, on a part of C whose sums are complete and still in a cache. Row
 * by row, and one after the other: loops that the compiler turns into vectors where the mathematics
 * library is not called.
 */
#include "cpu.h"

#include <math.h>

/* ---- Rows ------------------------------------------------------------------------------------ */

/* A NaN stays one in all of these. */
static void activate_f32(float *c, int64_t n, tgl_activation activation)
{
    switch (activation) {
    case TGL_ACTIVATION_NONE:
        break;
    case TGL_ACTIVATION_RELU:
        for (int64_t j = 0; j < n; j++)
            c[j] = c[j] < 0 ? 0 : c[j];
        break;
    case TGL_ACTIVATION_GELU:
        for (int64_t j = 0; j < n; j++)
            c[j] = 0.5F * c[j] * (1 + erff(c[j] * 0.70710678F));
        break;
    case TGL_ACTIVATION_SILU:
        for (int64_t j = 0; j < n; j++)
            c[j] = c[j] / (1 + expf(-c[j]));
        break;
    }
}

static void activate_f64(double *c, int64_t n, tgl_activation activation)
{
    switch (activation) {
    case TGL_ACTIVATION_NONE:
        break;
    case TGL_ACTIVATION_RELU:
        for (int64_t j = 0; j < n; j++)
            c[j] = c[j] < 0 ? 0 : c[j];
        break;
    case TGL_ACTIVATION_GELU:
        for (int64_t j = 0; j < n; j++)
            c[j] = 0.5 * c[j] * (1 + erf(c[j] * M_SQRT1_2));
        break;
    case TGL_ACTIVATION_SILU:
        for (int64_t j = 0; j < n; j++)
            c[j] = c[j] / (1 + exp(-c[j]));
        break;
    }
}

/* c[j] += x[j*step]; step: 1, or 0 for the same everywhere. */
static void add_f32(float *restrict c, int64_t n, const float *restrict x, int64_t step)
{
    if (step == 0)
        for (int64_t j = 0; j < n; j++)
            c[j] += *x;
    else
        for (int64_t j = 0; j < n; j++)
            c[j] += x[j];
}

static void add_f64(double *restrict c, int64_t n, const double *restrict x, int64_t step)
{
    if (step == 0)
        for (int64_t j = 0; j < n; j++)
            c[j] += *x;
    else
        for (int64_t j = 0; j < n; j++)
            c[j] += x[j];
}

/* One row; bias and residual: NULL for none. */
static void finish_row(void *c, int64_t n, const void *bias, int64_t bias_step,
                       tgl_activation activation, const void *residual, bool is_f32)
{
    if (is_f32) {
        if (bias != NULL) add_f32(c, n, bias, bias_step);
        activate_f32(c, n, activation);
        if (residual != NULL) add_f32(c, n, residual, 1);
    } else {
        if (bias != NULL) add_f64(c, n, bias, bias_step);
        activate_f64(c, n, activation);
        if (residual != NULL) add_f64(c, n, residual, 1);
    }
}

/* ---- A rectangle ----------------------------------------------------------------------------- */

/* Element `index` of the epilogue's operand x; NULL if there is none. */
static const char *operand_at(const void *x, int64_t index, int64_t element)
{
    return x != NULL ? (const char *)x + index * element : NULL;
}

void tgl_cpu_epilogue(const tgl_gemm_shape *s, const tgl_run *run, int64_t problem,
                      cpu_rectangle part)
{
    const tgl_gemm_epilogue *e = &s->epilogue;
    const bool is_f32 = s->type_c == TGL_F32, by_row = e->bias == TGL_BIAS_ROW;
    const int64_t element = is_f32 ? (int64_t)sizeof(float) : (int64_t)sizeof(double);
    char *C = tgl_cpu_c_of(s, run, problem, element);
    for (int64_t i = part.row; i < part.row + part.rows; i++) {
        const int64_t bias = problem * e->stride_bias + (by_row ? i : part.column);
        const int64_t residual = problem * e->stride_residual + i * e->ld_residual + part.column;
        finish_row(C + (i * s->ldc + part.column) * element, part.columns,
                   operand_at(run->bias, bias, element), by_row ? 0 : 1, e->activation,
                   operand_at(run->residual, residual, element), is_f32);
    }
}
