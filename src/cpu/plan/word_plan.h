/* SPDX-License-Identifier: Apache-2.0
 *
 * When a product is computed by words, and in which blocks. Words are bf16 or int8 numbers that
 * represent the elements (kernels/cpu_words.h).
 */
#ifndef TGL_CPU_WORD_PLAN_H
#define TGL_CPU_WORD_PLAN_H

#include "cpu/plan/block_plan.h"

/* The kernels of words (cpu_words.h) for the product; NULL: FMAs are faster, or the tier, the type,
 * the compute mode, scale factors per block or the system do not permit words. */
const cpu_words *tgl_cpu_words_for(const tgl_shape *shape, const cpu_tier *tier);

/* Sets the block sizes (rows, columns, steps, word_steps), by_digits, and the parts of k in *h.
 * h->words has been set. */
void tgl_cpu_word_blocks(const tgl_shape *shape, int threads, cpu_block_plan *h);

/* Split-K: the number of parts into which k is divided, so that all threads have work. It is above
 * 1 only if D has at most half as many blocks as there are threads. blocks: the number of blocks of
 * D. Each part has at least `steps` steps of k. */
int64_t tgl_cpu_parts_of_k(int64_t blocks, int threads, int64_t k, int64_t steps);

#endif
