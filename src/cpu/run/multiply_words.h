/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of one block by words, if its elements permit that.
 */
#ifndef TGL_CPU_MULTIPLY_WORDS_H
#define TGL_CPU_MULTIPLY_WORDS_H

#include "cpu/kernels/cpu_words.h"

/* Packs the blocks of x and multiplies them. k: steps of the whole product. False: the elements are
 * not suited for this kind of words, and x->c is unchanged. */
bool tgl_cpu_multiply_words(const cpu_words *words, cpu_word_kind kind, int64_t k,
                            const cpu_words_product *x);

#endif
