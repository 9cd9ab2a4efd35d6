/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrices on which a trial (backend.h) runs plans of a product: where each lies in a set of
 * all operands, and the random elements.
 */
#ifndef TGL_TRIAL_OPERANDS_H
#define TGL_TRIAL_OPERANDS_H

#include "problem/run.h"

/* The most bytes that tgl_trial_draw() writes. */
enum { TGL_TRIAL_DRAWN_BYTES = 4 << 20 };

/* An operand: its place in a set. */
typedef struct tgl_trial_operand {
    size_t offset, bytes; /* bytes 0: the product does not have it */
    tgl_type type;
} tgl_trial_operand;

typedef struct tgl_trial_set {
    tgl_trial_operand operands[TGL_OPERANDS]; /* by tgl_operand */
    size_t bytes;                             /* of the whole set */
    size_t gaps; /* bytes between the rows and between the matrices of A, B, C and D */
} tgl_trial_set;

/* Places the operands of a product with k > 0, of one matrix or strided ones. */
void tgl_trial_set_make(const tgl_shape *shape, tgl_trial_set *set);

/* Whether runs read this operand, which must be filled before. */
bool tgl_trial_reads(tgl_operand operand);

/* Writes random elements for the beginning of an operand to `memory`, the same in every process.
 * Returns their bytes: those of the whole operand, or of so many elements that copies of them may
 * fill the rest. */
size_t tgl_trial_draw(const tgl_trial_operand *x, char *memory);

/* The run on the set at `memory`: alpha is 1, or a random number in memory; beta is 0. */
tgl_run tgl_trial_run(const tgl_shape *shape, const tgl_trial_set *set, const char *memory);

#endif
