/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of one block by words, if its elements permit that.
 */
#ifndef TGL_CPU_MULTIPLY_WORDS_H
#define TGL_CPU_MULTIPLY_WORDS_H

#include "cpu/kernels/cpu_words.h"

typedef struct cpu_word_block {
    const cpu_words *words;
    cpu_words_source a, b;     /* the block of op(A) and of op(B) */
    size_t element;            /* bytes of their elements */
    int64_t k;                 /* steps of the whole product */
    bool is_last;              /* no block follows along k */
    void *packed_a, *packed_b; /* memory for them as words */
    void *sums;
    int64_t sum_ld;
    bool add; /* sums += the product; else sums := the product */
} cpu_word_block;

/* False: the elements are not suited for this kind of words, and the sums are unchanged. */
bool tgl_cpu_multiply_words(const cpu_word_block *x, cpu_word_kind kind);

#endif
