/* SPDX-License-Identifier: Apache-2.0
 *
 * When a product is computed by words, and in which blocks.
 */
#ifndef TGL_CPU_WORD_PLAN_H
#define TGL_CPU_WORD_PLAN_H

#include "cpu/plan/block_plan.h"

/* The words that compute the product; NULL: FMAs are faster, or neither the product nor the system
 * permits words. */
const cpu_words *tgl_cpu_words_for(const tgl_shape *shape, const cpu_tier *tier);

/* Sets rows, columns, steps and parts of the blocks. */
void tgl_cpu_word_blocks(const tgl_shape *shape, int threads, cpu_block_plan *h);

/* Parts of k for threads that have no block of D, at least `steps` steps each. */
int64_t tgl_cpu_parts_of_k(int64_t blocks, int threads, int64_t k, int64_t steps);

#endif
