/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of sums of f32 or int32, from which a block of D is computed.
 */
#ifndef TGL_CPU_BLOCK_SUMS_H
#define TGL_CPU_BLOCK_SUMS_H

#include "cpu/plan/block_plan.h"
#include "cpu/run/cpu_jobs.h"

/* A block of D and its sums. The sums are in the memory of the thread or of the job, or in D
 * itself. */
typedef struct cpu_block_sums {
    const cpu_product *product;
    int64_t problem; /* index in the batch */
    cpu_range rows, columns;
    void *sums;
    int64_t ld;
    void *line; /* buffer for a row of the block in f32 */
} cpu_block_sums;

/* Operations on sums of one type. add: whether the products are added to the sums; false: they
 * overwrite the sums, as the first products of a block do. */
typedef struct cpu_sum_functions {
    /* Adds n f32 products of a block to the sums, or stores them. */
    void (*add_products)(const cpu_plan *plan, void *sums, const void *products, int64_t n,
                         bool add);
    /* Adds n results of cpu_block_plan.dot, which have the type of the sums, or stores them. */
    void (*add_dots)(const cpu_plan *plan, void *sums, const void *products, int64_t n, bool add);
    /* Split-K: sums[j] += sums[i*step + j] for j < n and i = 1 ... count, in this order. */
    void (*add_parts)(const cpu_plan *plan, void *sums, int64_t n, int64_t step, int64_t count);
    /* Computes a row of D: epilogue(alpha*sums + beta*C). row: index in the block. Overwrites the
     * sums. */
    void (*store_row)(const cpu_block_sums *x, int64_t row);
} cpu_sum_functions;

/* products[0..n) *= the factors of row number `row` of the block, and of its columns, for block q
 * of k, of a product with factors of blocks. */
void tgl_cpu_scale_products(const cpu_block_sums *x, float *products, int64_t row, int64_t n,
                            int64_t q);

extern const cpu_sum_functions tgl_cpu_sums_f32;

/* Sums modulo 2^32. */
extern const cpu_sum_functions tgl_cpu_sums_i32;

/* int32 sums modulo 2^32, which are converted to f32 before they are multiplied by scale
 * factors. */
extern const cpu_sum_functions tgl_cpu_sums_scaled;

#endif
