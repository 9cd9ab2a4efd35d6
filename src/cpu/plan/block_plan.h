/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of products that are computed in blocks: products of f16, bf16 and 8-bit types, and
 * products of f32 by words. Words are bf16 or int8 numbers that represent the elements
 * (kernels/cpu_words.h).
 */
#ifndef TGL_CPU_BLOCK_PLAN_H
#define TGL_CPU_BLOCK_PLAN_H

#include "cpu/plan/cpu_plan.h"
#include "cpu/plan/cpu_types.h"

typedef struct cpu_block_plan {
    const cpu_type *type;
    const cpu_conversions *conversions;
    const cpu_words *words;       /* NULL: elements are converted to f32 */
    int64_t rows, columns, steps; /* size of a block: rows of op(A), columns of op(B), steps of k */
    bool by_digits;               /* multiply blocks as int8 digits (CPU_DIGITS_F32, cpu_words.h) if
                                     their error bound permits it */
    int64_t word_steps;           /* steps of k in a block that is multiplied without digits */
    bool is_vector;  /* GEMV: elements of the matrix are converted while they are loaded */
    cpu_dot_fn *dot; /* GEMV: the kernel for a matrix that is contiguous along k */
    int64_t blocks_m, blocks_n; /* number of blocks of D along m and n */
    int64_t parts;    /* split-K: number of parts of k, which threads sum in parallel; 1: k is not
                         split */
    cpu_plan product; /* plan of the f32 product of a whole block, on one thread */
    int64_t sum_ld;   /* leading dimension of a block of sums */
    /* Sizes in bytes of the buffers of a thread, in this order: block of A, block of B, weights
     * expanded to 16 bits (0: there are no weights), sums, a row for the epilogue, f32 products (0:
     * they are written directly to the sums). Exception: if parts > 1, each job (run/cpu_jobs.h)
     * has a buffer of sum_bytes for its sums, behind the buffers of all threads. */
    size_t a_bytes, b_bytes, weights_bytes, sum_bytes, row_bytes, product_bytes;
    size_t thread_bytes; /* bytes of all buffers of a thread and of the workspace of `product` */
} cpu_block_plan;

/* block_planner.c. Plans a product in blocks: fills *h, and *plan, which then points to *h. words:
 * the result of tgl_cpu_words_for(). blocking: as for tgl_cpu_plan(). */
void tgl_cpu_plan_blocks(const tgl_shape *shape, const cpu_tier *tier, const cpu_words *words,
                         cpu_blocking blocking, const cpu_machine *machine, cpu_block_plan *h,
                         cpu_plan *plan);

/* The shape of the f32 product of one block, whose operands are contiguous f32 copies. */
tgl_shape tgl_cpu_block_shape(const tgl_shape *s, int64_t m, int64_t n, int64_t k, int64_t ldc);

#endif
