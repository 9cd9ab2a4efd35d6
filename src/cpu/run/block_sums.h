/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of sums of f32 or int32, from which a block of D is computed.
 */
#ifndef TGL_CPU_BLOCK_SUMS_H
#define TGL_CPU_BLOCK_SUMS_H

#include "cpu/plan/block_plan.h"
#include "cpu/run/cpu_jobs.h"

/* A block of D, and its sums, which are in a thread's memory, in a job's memory, or in D itself. */
typedef struct cpu_block_sums {
    const cpu_product *product;
    int64_t problem; /* index in the batch */
    cpu_range rows, columns;
    void *sums;
    int64_t ld;
    void *line; /* memory for a row of f32 */
} cpu_block_sums;

/* Operations on sums of one type. add: true: the products are added to the sums; false: they
 * overwrite the sums, as the first products of a block do. */
typedef struct cpu_sum_functions {
    /* Adds n elements of a block's product, computed in f32. */
    void (*add_products)(const cpu_plan *plan, void *sums, const void *products, int64_t n,
                         bool add);
    /* Adds n products of cpu_block_plan.dot, which are of the sums' type. */
    void (*add_dots)(const cpu_plan *plan, void *sums, const void *products, int64_t n, bool add);
    /* Adds `count` rows of n sums, which begin `step` elements behind `sums` and are `step` apart.
     */
    void (*add_parts)(const cpu_plan *plan, void *sums, int64_t n, int64_t step, int64_t count);
    /* A row of D := epilogue(alpha*sums + beta*C); row: index in the block. Changes the sums. */
    void (*store_row)(const cpu_block_sums *x, int64_t row);
} cpu_sum_functions;

/* products[0..n) *= the factors of row number `row` of the block, and of its columns, for block q
 * of k, of a product with factors of blocks. */
void tgl_cpu_scale_products(const cpu_block_sums *x, float *products, int64_t row, int64_t n,
                            int64_t q);

extern const cpu_sum_functions tgl_cpu_sums_f32;

/* Sums modulo 2^32. */
extern const cpu_sum_functions tgl_cpu_sums_i32;

/* Sums modulo 2^32, which become f32 before they are scaled. */
extern const cpu_sum_functions tgl_cpu_sums_scaled;

#endif
