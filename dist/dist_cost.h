/* SPDX-License-Identifier: Apache-2.0
 *
 * The predicted cost of a division of a product.
 */
#ifndef DIST_COST_H
#define DIST_COST_H

#include "dist_task.h"

/* The volumes of a division that do not depend on its panels: the maxima over all ranks. */
typedef struct dist_volumes {
    double multiplications;
    double needed[OPERANDS];   /* bytes of A and B that a rank works with; of partial sums of C */
    double received[OPERANDS]; /* bytes of `needed` that come from other ranks */
    double peers[OPERANDS];    /* ranks from which they come */
    bool stays[OPERANDS];
} dist_volumes;

dist_volumes dist_volumes_of(const dist_task *task, const dist_division *division);

/* Fills seconds, memory_bytes and the rest of *figures for a division with its loop and panels. */
void dist_cost(const dist_task *task, const dist_division *division, const dist_volumes *volumes,
               const tgl_dist_machine *machine, tgl_dist_figures *figures);

/* The seconds of the local products alone, with panels of any length. */
double dist_cost_products(const dist_task *task, const dist_volumes *volumes,
                          const tgl_dist_machine *machine);

#endif
