/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of products by words (src/cpu/kernels/cpu_words.h): a loop over the tiers
 * (instruction sets) that have such products, and blocks of operands that end at an inaccessible
 * page.
 */
#ifndef TGL_WORDS_CASE_H
#define TGL_WORDS_CASE_H

#include "support.h"

#include "cpu/kernels/cpu_words.h"

/* The element type of each kind of words. */
extern const tgl_type types_of_words[CPU_WORD_KINDS];

/* The functions for words of the tier that is being tested. */
extern const cpu_words *words;

/* has_kind(): whether the tier has words of this kind. has_part(): returns `has`, which says
 * whether the tier has the part that `name` describes. If no tier has a part that a test needs, the
 * program is reported as skipped. */
bool has_kind(cpu_word_kind kind);
bool has_part(const char *name, bool has);

/* Whether the tier multiplies elements of this type by words. */
bool has_type(tgl_type type);

/* Calls test_tier() for each tier with words that this machine supports and TEGULA_CPU allows, and
 * returns the exit status of the program. before_permission: a function that is called before
 * anything asks Linux for the permission to use AMX; NULL: none. */
int run_tiers_with_words(int (*test_tier)(const char *tier), void (*before_permission)(void));

/* ---- Products of the device ------------------------------------------------------------------ */

/* The problem with the compute mode in which its type is multiplied by words. */
tgl_problem accurate(tgl_problem problem);

bool takes_words(tgl_device *dev, const tgl_problem *problem);

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* A block of op(A) or op(B) in memory that ends at an inaccessible page. A line is a row of op(A)
 * or a column of op(B). */
typedef struct word_block {
    guarded memory;
    cpu_words_source source;
    cpu_word_kind kind;
} word_block;

/* Makes a block. spare: number of unused elements after each row in memory. */
word_block block_of(cpu_word_kind kind, int64_t lines, int64_t k, bool k_contiguous, int64_t spare);

void set_at(word_block *x, int64_t line, int64_t p, double value);
double get_at(const word_block *x, int64_t line, int64_t p);

/* Memory for the packed block. Its bytes are 255, which gives NaN in bf16 words and -1 in int8. */
void *packed_memory(const word_block *x);

#endif
