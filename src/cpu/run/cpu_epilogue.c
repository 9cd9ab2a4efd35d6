/* SPDX-License-Identifier: Apache-2.0
 *
 * Bias, activation and residual for a part of D, while its complete sums are still in a cache.
 */
#include "cpu/run/cpu_epilogue.h"
#include "cpu/run/batch_matrix.h"

/* The address of element `index` of a bias or residual x; NULL if x is NULL. */
static const char *operand_at(const void *x, int64_t index, int64_t element)
{
    return x != NULL ? (const char *)x + index * element : NULL;
}

void tgl_cpu_epilogue(const tgl_shape *s, const cpu_kernels *kernels, const tgl_run *run,
                      int64_t problem, cpu_rectangle part)
{
    const tgl_shape_epilogue *e = &s->epilogue;
    const bool by_row = e->bias == TGL_BIAS_ROW;
    const int64_t element = (int64_t)kernels->element;
    char *D = tgl_cpu_d_of(s, run, problem, element);
    for (int64_t i = part.row; i < part.row + part.rows; i++) {
        const int64_t bias = problem * e->stride_bias + (by_row ? i : part.column);
        const int64_t residual = problem * e->stride_residual + i * e->ld_residual + part.column;
        kernels->finish(D + (i * s->ldd + part.column) * element, part.columns,
                        operand_at(run->at[TGL_AT_BIAS], bias, element), by_row ? 0 : 1,
                        e->activation, operand_at(run->at[TGL_AT_RESIDUAL], residual, element));
    }
}
