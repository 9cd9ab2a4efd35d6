/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of products by words (src/cpu/kernels/cpu_words.h) share: the loop over the tiers
 * that have any, and blocks of operands that end where their memory does.
 */
#ifndef TGL_WORDS_CASE_H
#define TGL_WORDS_CASE_H

#include "support.h"

#include "cpu/kernels/cpu_words.h"

/* The type of the elements of each kind. */
extern const tgl_type types_of_words[CPU_WORD_KINDS];

/* The words of the tier that is tested. */
extern const cpu_words *words;

/* Whether the tier has the words of this kind, or, `has`, what the name says. If no tier has what a
 * test asks for, the program is reported as skipped. */
bool has_kind(cpu_word_kind kind);
bool has_part(const char *name, bool has);

/* Whether the words multiply elements of this type. */
bool has_type(tgl_type type);

/* Calls test_tier() for each tier with words that this machine runs and TEGULA_CPU allows, and
 * returns the exit status of the program. before_permission: called before anything asks Linux for
 * AMX; NULL: nothing is to be done. */
int run_tiers_with_words(int (*test_tier)(const char *tier), void (*before_permission)(void));

/* ---- Products of the device ------------------------------------------------------------------ */

/* The problem with the compute mode in which words multiply its type. */
tgl_problem accurate(tgl_problem problem);

bool takes_words(tgl_device *dev, const tgl_problem *problem);

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* A block of op(A) or op(B), whose last line or step ends at a page that must not be touched. */
typedef struct word_block {
    guarded memory;
    cpu_words_source source;
    cpu_word_kind kind;
} word_block;

/* spare: elements between the rows in memory. */
word_block block_of(cpu_word_kind kind, int64_t lines, int64_t k, bool k_contiguous, int64_t spare);

void set_at(word_block *x, int64_t line, int64_t p, double value);
double get_at(const word_block *x, int64_t line, int64_t p);

/* Memory for the packed block, full of NaN. */
void *packed_memory(const word_block *x);

#endif
