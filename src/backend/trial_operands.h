/* SPDX-License-Identifier: Apache-2.0
 *
 * The operands on which a trial (backend.h) runs the plans of a product. The set is one block of
 * memory that holds all of them. These functions compute the offset of each operand in the set, and
 * its random elements.
 */
#ifndef TGL_TRIAL_OPERANDS_H
#define TGL_TRIAL_OPERANDS_H

#include "problem/run.h"

/* The most bytes that tgl_trial_draw() writes. */
enum { TGL_TRIAL_DRAWN_BYTES = 4 << 20 };

/* The place of an operand in the set. */
typedef struct tgl_trial_operand {
    size_t offset, bytes; /* bytes is 0 if the product does not have the operand */
    tgl_type type;
} tgl_trial_operand;

typedef struct tgl_trial_set {
    tgl_trial_operand operands[TGL_OPERANDS]; /* indexed by tgl_operand */
    size_t bytes;                             /* size of the whole set */
    size_t gaps; /* bytes between the rows and between the matrices of A, B, C and D */
} tgl_trial_set;

/* Places all operands of a product in *set. The product must have k > 0, and its batch, if it has
 * one, must be strided. */
void tgl_trial_set_make(const tgl_shape *shape, tgl_trial_set *set);

/* Whether runs read this operand, so that it must be filled with tgl_trial_draw() first. */
bool tgl_trial_reads(tgl_operand operand);

/* Writes the first random elements of an operand to `memory`, the same in every process. Returns
 * the number of bytes written. If it is less than x->bytes, the caller fills the rest of the
 * operand with copies of these elements. */
size_t tgl_trial_draw(const tgl_trial_operand *x, char *memory);

/* The run whose operands are the set at `memory`. alpha is 1 (with device_scalars: the random
 * number in the set); beta is 0. */
tgl_run tgl_trial_run(const tgl_shape *shape, const tgl_trial_set *set, const char *memory);

#endif
