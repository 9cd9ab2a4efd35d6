/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of sums in f32 or int32, from which blocks of D, the output matrix, are computed.
 */
#ifndef TGL_CPU_BLOCK_SUMS_H
#define TGL_CPU_BLOCK_SUMS_H

#include "cpu/plan/block_plan.h"
#include "cpu/run/cpu_jobs.h"

/* A block of D and its sums. The sums are in the buffer of the thread or of the job (cpu_jobs.h),
 * or in D itself. */
typedef struct cpu_block_sums {
    const cpu_product *product;
    int64_t problem; /* index of the product in the batch */
    cpu_range rows, columns;
    void *sums;
    int64_t ld;
    void *line; /* buffer for a row of the block in f32 */
} cpu_block_sums;

/* Operations on sums of one type. add: true adds the products to the sums; false overwrites the
 * sums, for the first products of a block. */
typedef struct cpu_sum_functions {
    /* Adds n elements of an f32 product of blocks to the sums, or overwrites the sums with them. */
    void (*add_products)(const cpu_plan *plan, void *sums, const void *products, int64_t n,
                         bool add);
    /* As add_products(), for n results of cpu_block_plan.dot, which have the type of the sums. */
    void (*add_dots)(const cpu_plan *plan, void *sums, const void *products, int64_t n, bool add);
    /* Split-K: sums[j] += (sum of sums[i*step + j] for i = 1 ... count, in this order), j < n. */
    void (*add_parts)(const cpu_plan *plan, void *sums, int64_t n, int64_t step, int64_t count);
    /* Computes a row of D: epilogue(alpha*sums + beta*C). row: index in the block. Overwrites the
     * sums. */
    void (*store_row)(const cpu_block_sums *x, int64_t row);
} cpu_sum_functions;

/* For scale factors that differ by block of 128 steps of k (TGL_SCALING_BLOCK,
 * TGL_SCALING_LINE_128): multiplies products[0..n), which are row `row` of the block of D, by the
 * factors of the row and of the columns for block q of k. */
void tgl_cpu_scale_products(const cpu_block_sums *x, float *products, int64_t row, int64_t n,
                            int64_t q);

/* For sums in f32. */
extern const cpu_sum_functions tgl_cpu_sums_f32;

/* For sums in int32, modulo 2^32. */
extern const cpu_sum_functions tgl_cpu_sums_i32;

/* For sums in int32, modulo 2^32, that are converted to f32 and then multiplied by scale
 * factors. */
extern const cpu_sum_functions tgl_cpu_sums_scaled;

#endif
