/* SPDX-License-Identifier: Apache-2.0
 *
 * When a product is computed by words (kernels/cpu_words.h), and in which blocks.
 */
#ifndef TGL_CPU_WORD_PLAN_H
#define TGL_CPU_WORD_PLAN_H

#include "cpu/plan/block_plan.h"

/* The kernels of words (cpu_words.h) that compute the product; NULL: FMAs are faster, or the
 * product or the system does not permit words. */
const cpu_words *tgl_cpu_words_for(const tgl_shape *shape, const cpu_tier *tier);

/* Sets rows, columns, steps and parts of the blocks. */
void tgl_cpu_word_blocks(const tgl_shape *shape, int threads, cpu_block_plan *h);

/* The number of parts into which k is cut, so that all threads have work if there are fewer blocks
 * of D than threads. Each part has at least `steps` steps of k. */
int64_t tgl_cpu_parts_of_k(int64_t blocks, int threads, int64_t k, int64_t steps);

#endif
