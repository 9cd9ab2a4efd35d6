/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds products to blocks of sums, and computes blocks of D from the sums. There are three
 * variants: sums in f32, with results that are rounded once to D's type; sums in int32, modulo
 * 2^32; and sums in int32 that are converted to f32 and multiplied by scale factors.
 */
#include "cpu/run/block_sums.h"
#include "cpu/run/convert_lines.h"
#include "problem/scales.h"

/* ---- f32 ------------------------------------------------------------------------------------- */

static void add_products_f32(const cpu_plan *plan, void *sums, const void *products, int64_t n,
                             bool add)
{
    plan->kernels->reduce(sums, 1, n, products, 0, 1, 1, add, NULL);
}

static void add_parts_f32(const cpu_plan *plan, void *sums, int64_t n, int64_t step, int64_t count)
{
    plan->kernels->reduce(sums, 1, n, (const float *)sums + step, step, count, 1, 1, NULL);
}

/* Reads n elements of a bias or residual, from `index` on, as f32. The result is valid until the
 * next call; NULL if the operand is absent. */
static const float *read_addend(const cpu_block_sums *x, tgl_type type, tgl_operand operand,
                                int64_t index, int64_t n)
{
    const void *from = x->product->run->at[operand];
    if (from == NULL) return NULL;
    cpu_read_line(x->product->plan->blocks->conversions, type, x->line, from, index, n);
    return x->line;
}

/* The scale factor of an operand for the row or column `line`; 1 if the operand has none. */
static float factor_of(const tgl_run *run, tgl_operand operand, tgl_scaling scaling, int64_t line)
{
    const float *factors = run->at[operand];
    return scaling == TGL_SCALING_NONE   ? 1
           : scaling == TGL_SCALING_LINE ? factors[line]
                                         : factors[0];
}

/* sums[j] *= alpha and the scale factors of A and B, for j < n. Factors that differ by block of k
 * are in the sums already (tgl_cpu_scale_products()). As in the GPU kernels, alpha is first
 * multiplied by the factors that hold for a whole matrix. */
static void scale_sums(const cpu_block_sums *x, float *sums, int64_t row, int64_t column, int64_t n)
{
    const tgl_shape *s = x->product->shape;
    const tgl_run *run = x->product->run;
    float all = (float)run->alpha, of_row = 1;
    if (s->scaling_a == TGL_SCALING_TENSOR) all *= factor_of(run, TGL_AT_SCALE_A, s->scaling_a, 0);
    if (s->scaling_b == TGL_SCALING_TENSOR) all *= factor_of(run, TGL_AT_SCALE_B, s->scaling_b, 0);
    if (s->scaling_a == TGL_SCALING_LINE)
        of_row = factor_of(run, TGL_AT_SCALE_A, s->scaling_a, row);
    for (int64_t j = 0; j < n; j++)
        sums[j] = sums[j] * all * of_row;
    if (s->scaling_b != TGL_SCALING_LINE) return;
    const float *columns = (const float *)run->at[TGL_AT_SCALE_B] + column;
    for (int64_t j = 0; j < n; j++)
        sums[j] *= columns[j];
}

/* The scale factor for block q of k of a line: a row of op(A) or a column of op(B). ld: ld_scale_a
 * or ld_scale_b. */
static float factor_of_block(const float *factors, tgl_scaling scaling, int64_t ld, int64_t line,
                             int64_t q)
{
    return scaling == TGL_SCALING_BLOCK ? factors[line / TGL_SCALE_BLOCK * ld + q]
                                        : factors[q * ld + line];
}

void tgl_cpu_scale_products(const cpu_block_sums *x, float *products, int64_t row, int64_t n,
                            int64_t q)
{
    const tgl_shape *s = x->product->shape;
    const void *const *at = x->product->run->at;
    const float of_row =
        factor_of_block(at[TGL_AT_SCALE_A], s->scaling_a, s->ld_scale_a, x->rows.begin + row, q);
    for (int64_t j = 0; j < n; j++)
        products[j] *= of_row * factor_of_block(at[TGL_AT_SCALE_B], s->scaling_b, s->ld_scale_b,
                                                x->columns.begin + j, q);
}

/* results[0..n) *= the scale factors of D. */
static void scale_results(const cpu_block_sums *x, float *results, int64_t row, int64_t column,
                          int64_t n)
{
    const tgl_shape *s = x->product->shape;
    for (int64_t j = 0; j < n; j++)
        results[j] *=
            factor_of(x->product->run, TGL_AT_SCALE_D, s->scaling_d, s->swapped ? column + j : row);
}

/* Raises *amax_d to the largest magnitude of n results. Other threads may raise it at the same
 * time. Magnitudes are compared as integers: the bits of nonnegative floats have the same order as
 * the floats, and the bits of NaNs are the largest. */
static void raise_amax(const tgl_run *run, const float *results, int64_t n)
{
    uint32_t *amax = (uint32_t *)run->at[TGL_AT_AMAX], own = 0, bits;
    for (int64_t j = 0; j < n; j++) {
        memcpy(&bits, &results[j], sizeof bits);
        bits &= 0x7fffffffu;
        own = bits > own ? bits : own;
    }
    bits = __atomic_load_n(amax, __ATOMIC_RELAXED);
    while (own > bits &&
           !__atomic_compare_exchange_n(amax, &bits, own, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void store_row_f32(const cpu_block_sums *x, int64_t i)
{
    const tgl_shape *s = x->product->shape;
    const tgl_run *run = x->product->run;
    const tgl_shape_epilogue *e = &s->epilogue;
    const cpu_kernels *kernels = x->product->plan->kernels;
    const cpu_conversions *convert = x->product->plan->blocks->conversions;
    const int64_t row = x->rows.begin + i, column = x->columns.begin, n = cpu_length(x->columns);
    float *sums = (float *)x->sums + i * x->ld;
    if (run->has_product && tgl_shape_has_scales(s))
        scale_sums(x, sums, row, column, n);
    else if (!run->has_product || run->alpha != 1)
        kernels->scale(sums, n, run->has_product ? run->alpha : 0, 0);
    if (run->beta != 0) {
        const void *C = tgl_cpu_c_of(s, run, x->problem, (int64_t)tgl_type_size(s->type_c));
        cpu_read_line(convert, s->type_c, x->line, C, row * s->ldc + column, n);
        kernels->reduce(sums, 1, n, x->line, n, 1, run->beta, 1, NULL);
    }
    if (!tgl_epilogue_is_none(e)) {
        const bool by_row = e->bias == TGL_BIAS_ROW;
        const int64_t bias = x->problem * e->stride_bias + (by_row ? row : column);
        const int64_t residual = x->problem * e->stride_residual + row * e->ld_residual + column;
        kernels->finish(sums, n, read_addend(x, e->type_bias, TGL_AT_BIAS, bias, by_row ? 1 : n),
                        by_row ? 0 : 1, e->activation, NULL);
        kernels->finish(sums, n, NULL, 1, TGL_ACTIVATION_NONE,
                        read_addend(x, e->type_residual, TGL_AT_RESIDUAL, residual, n));
    }
    if (e->amax) raise_amax(run, sums, n);
    if (s->scaling_d != TGL_SCALING_NONE) scale_results(x, sums, row, column, n);
    void *D = tgl_cpu_d_of(s, run, x->problem, (int64_t)tgl_type_size(s->type_d));
    cpu_write_line(convert, s->type_d, D, row * s->ldd + column, sums, n);
}

const cpu_sum_functions tgl_cpu_sums_f32 = {
    .add_products = add_products_f32,
    .add_dots = add_products_f32,
    .add_parts = add_parts_f32,
    .store_row = store_row_f32,
};

/* ---- int32 ----------------------------------------------------------------------------------- */

/* products: f32 numbers that are integers. */
static void add_products_i32(const cpu_plan *plan, void *sums, const void *products, int64_t n,
                             bool add)
{
    plan->blocks->conversions->add_integers(sums, products, n, add);
}

static void add_dots_i32(const cpu_plan *plan, void *sums, const void *products, int64_t n,
                         bool add)
{
    if (add)
        plan->blocks->conversions->combine_i32(sums, n, 1, 1, products, 1);
    else
        memcpy(sums, products, (size_t)n * sizeof(int32_t));
}

static void add_parts_i32(const cpu_plan *plan, void *sums, int64_t n, int64_t step, int64_t count)
{
    for (int64_t i = 1; i <= count; i++)
        plan->blocks->conversions->combine_i32(sums, n, 1, 1, (const int32_t *)sums + i * step, 1);
}

static void store_row_i32(const cpu_block_sums *x, int64_t i)
{
    const tgl_shape *s = x->product->shape;
    const tgl_run *run = x->product->run;
    const tgl_shape_epilogue *e = &s->epilogue;
    const cpu_conversions *convert = x->product->plan->blocks->conversions;
    const int64_t row = x->rows.begin + i, column = x->columns.begin, n = cpu_length(x->columns);
    int32_t *sums = (int32_t *)x->sums + i * x->ld;
    const int32_t *bias = run->at[TGL_AT_BIAS], *residual = run->at[TGL_AT_RESIDUAL];
    const int32_t alpha = run->has_product ? (int32_t)run->alpha : 0, nothing = 0;
    if (!run->has_product) memset(sums, 0, (size_t)n * sizeof *sums);
    if (run->beta != 0) {
        const int32_t *C = (const void *)tgl_cpu_c_of(s, run, x->problem, sizeof *C);
        convert->combine_i32(sums, n, alpha, (int32_t)run->beta, C + row * s->ldc + column, 1);
    } else if (alpha != 1) {
        convert->combine_i32(sums, n, alpha, 0, &nothing, 0);
    }
    if (bias != NULL) {
        const bool by_row = e->bias == TGL_BIAS_ROW;
        bias += x->problem * e->stride_bias + (by_row ? row : column);
        convert->combine_i32(sums, n, 1, 1, bias, by_row ? 0 : 1);
    }
    if (e->activation == TGL_ACTIVATION_RELU) convert->relu_i32(sums, n);
    if (residual != NULL) {
        residual += x->problem * e->stride_residual + row * e->ld_residual + column;
        convert->combine_i32(sums, n, 1, 1, residual, 1);
    }
    int32_t *D = (void *)tgl_cpu_d_of(s, run, x->problem, sizeof *D);
    memcpy(D + row * s->ldd + column, sums, (size_t)n * sizeof *sums);
}

const cpu_sum_functions tgl_cpu_sums_i32 = {
    .add_products = add_products_i32,
    .add_dots = add_dots_i32,
    .add_parts = add_parts_i32,
    .store_row = store_row_i32,
};

/* ---- int32 with scales ----------------------------------------------------------------------- */

/* Converts the sums from int32 to f32, then does what store_row_f32() does. */
static void store_row_scaled(const cpu_block_sums *x, int64_t i)
{
    const int64_t n = cpu_length(x->columns);
    float *sums = (float *)x->sums + i * x->ld;
    for (int64_t j = 0; j < n && x->product->run->has_product; j++) {
        int32_t sum;
        memcpy(&sum, &sums[j], sizeof sum);
        sums[j] = (float)sum;
    }
    store_row_f32(x, i);
}

const cpu_sum_functions tgl_cpu_sums_scaled = {
    .add_products = add_products_i32,
    .add_dots = add_dots_i32,
    .add_parts = add_parts_i32,
    .store_row = store_row_scaled,
};
