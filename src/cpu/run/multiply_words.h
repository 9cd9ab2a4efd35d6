/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of one block by words.
 */
#ifndef TGL_CPU_MULTIPLY_WORDS_H
#define TGL_CPU_MULTIPLY_WORDS_H

#include "cpu/plan/word_plan.h"

/* sums := or += the product of a block, of this kind; is_last: of the blocks along k. False: the
 * elements are not suited, and the sums are unchanged. */
bool tgl_cpu_multiply_words(const tgl_shape *shape, const cpu_words *words, cpu_word_kind kind,
                            const cpu_words_source *a, const cpu_words_source *b, void *packed_a,
                            void *packed_b, void *sums, int64_t ld, bool add, bool is_last);

#endif
