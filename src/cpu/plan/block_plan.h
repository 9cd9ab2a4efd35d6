/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans products in blocks: of f16, bf16 and int8, and of f32 by words.
 */
#ifndef TGL_CPU_BLOCK_PLAN_H
#define TGL_CPU_BLOCK_PLAN_H

#include "cpu/plan/cpu_plan.h"
#include "cpu/plan/cpu_types.h"

typedef struct cpu_block_plan {
    const cpu_type *type;
    const cpu_conversions *conversions;
    const cpu_words *words;       /* NULL: all blocks are converted to f32 */
    int64_t rows, columns, steps; /* of a block: rows of op(A), columns of op(B), steps of k */
    bool by_digits;               /* a block is multiplied as int8 digits (CPU_DIGITS_F32,
                                     cpu_words.h), unless their error would be too large */
    int64_t word_steps;           /* steps of k of a block that is multiplied without digits */
    bool is_vector;  /* D has one row or column: elements of the matrix are converted as they are
                        loaded */
    cpu_dot_fn *dot; /* is_vector: the kernel for a matrix that is contiguous along k */
    int64_t blocks_m, blocks_n; /* blocks of D along m and n */
    int64_t parts; /* parts of k, which threads sum at the same time and then add; 1: k is whole */
    cpu_plan product; /* the f32 product of a whole block, on one thread */
    int64_t sum_ld;   /* leading dimension of a block of sums */
    /* Bytes of the buffers of a thread, which lie in this order: A's block, B's block, sums, a row
     * of the epilogue, f32 products apart from the sums (0: none). If parts > 1, each job instead
     * of each thread has a buffer of sum_bytes, which lies behind the memory of all threads. */
    size_t a_bytes, b_bytes, sum_bytes, row_bytes, product_bytes;
    size_t thread_bytes; /* all buffers of a thread, and the workspace of `product` */
} cpu_block_plan;

/* Plans as tgl_cpu_plan() does. words: what tgl_cpu_words_for() has chosen. *plan refers to *h. */
void tgl_cpu_plan_blocks(const tgl_shape *shape, const cpu_tier *tier, const cpu_words *words,
                         cpu_blocking blocking, const cpu_machine *machine, cpu_block_plan *h,
                         cpu_plan *plan);

/* The shape of the f32 product of one block. */
tgl_shape tgl_cpu_block_shape(const tgl_shape *s, int64_t m, int64_t n, int64_t k, int64_t ldc);

#endif
