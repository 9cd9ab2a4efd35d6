/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies bias, activation and residual to a part of D, as soon as its sums are complete: they are
 * then still in a cache.
 */
#include "cpu/run/cpu_epilogue.h"

/* The address of element `index` of a bias or residual; NULL if x is NULL. */
static const char *operand_at(const void *x, int64_t index, int64_t element)
{
    return x != NULL ? (const char *)x + index * element : NULL;
}

void tgl_cpu_epilogue(const cpu_product *product, int64_t problem, cpu_range rows,
                      cpu_range columns)
{
    const tgl_shape *s = product->shape;
    const tgl_shape_epilogue *e = &s->epilogue;
    const cpu_kernels *kernels = product->plan->kernels;
    const tgl_run *run = product->run;
    const bool by_row = e->bias == TGL_BIAS_ROW;
    const int64_t element = (int64_t)kernels->element;
    if (tgl_epilogue_is_none(e)) return;
    char *D = tgl_cpu_d_of(s, run, problem, element);
    for (int64_t i = rows.begin; i < rows.end; i++) {
        const int64_t bias = problem * e->stride_bias + (by_row ? i : columns.begin);
        const int64_t residual = problem * e->stride_residual + i * e->ld_residual + columns.begin;
        kernels->finish(D + (i * s->ldd + columns.begin) * element, cpu_length(columns),
                        operand_at(run->at[TGL_AT_BIAS], bias, element), by_row ? 0 : 1,
                        e->activation, operand_at(run->at[TGL_AT_RESIDUAL], residual, element));
    }
}
