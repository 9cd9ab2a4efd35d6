/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of two blocks by words, which are bf16 or int8 numbers that represent the elements
 * (kernels/cpu_words.h), if the elements permit that.
 */
#ifndef TGL_CPU_MULTIPLY_WORDS_H
#define TGL_CPU_MULTIPLY_WORDS_H

#include "cpu/kernels/cpu_words.h"

/* Packs the blocks of x and multiplies them. k: steps of the whole product. Returns false, with
 * x->c unchanged, if the ranges of the elements do not permit this kind of words (cpu_words.h). The
 * conditions are at the head of multiply_words.c. */
bool tgl_cpu_multiply_words(const cpu_words *words, cpu_word_kind kind, int64_t k,
                            const cpu_words_product *x);

/* Whether blocks with these element ranges may be multiplied by words of kind CPU_WORDS_BF16,
 * CPU_WORDS_F32 or CPU_WORDS_F16. The conditions are at the head of multiply_words.c. k: steps of
 * the whole product. */
bool tgl_cpu_words_in_range(cpu_word_kind kind, int64_t k, cpu_exponents a, cpu_exponents b);

/* A bound of the error of a product of blocks by digits, in units of u S: u = 2^-24, S = sum over k
 * of |a*b|. k: steps of the blocks. fewer: true for cpu_words.multiply_fewer(). */
double tgl_cpu_digit_error(int64_t k, const cpu_exponents *a, const cpu_exponents *b, bool fewer);

#endif
