/* SPDX-License-Identifier: Apache-2.0
 *
 * The predicted cost of a division of a product.
 */
#ifndef DIST_COST_H
#define DIST_COST_H

#include "dist_task.h"

/* The amounts of work and data of a division, without its panels: the maximum over all ranks. */
typedef struct dist_volumes {
    double multiplications;
    double needed[OPERANDS];   /* bytes of A and B that a rank uses; bytes of its partial sums of
                                  C */
    double received[OPERANDS]; /* number of ranks that send bytes of needed[] to a rank */
    double peers[OPERANDS];    /* number of ranks that they come from */
    bool stays[OPERANDS];
} dist_volumes;

dist_volumes dist_volumes_of(const dist_task *task, const dist_division *division);

/* Fills *figures (seconds, memory_bytes and the rest) for a division whose loop and panels are
 * set. */
void dist_cost(const dist_task *task, const dist_division *division, const dist_volumes *volumes,
               const tgl_dist_machine *machine, tgl_dist_figures *figures);

/* Seconds of the arithmetic of the local products alone, for panels of any length. */
double dist_cost_products(const dist_task *task, const dist_volumes *volumes,
                          const tgl_dist_machine *machine);

#endif
