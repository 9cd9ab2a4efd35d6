/* SPDX-License-Identifier: Apache-2.0
 *
 * The predicted cost of a division: of a way to divide m, n and k of a product over the ranks
 * (dist_division in dist_task.h).
 */
#ifndef DIST_COST_H
#define DIST_COST_H

#include "dist_task.h"

/* The amounts of work and data of a division, before one of its axes is cut into panels. Each
 * number is the maximum over the ranks; of more than 16 ranks, only 8 are evaluated. */
typedef struct dist_volumes {
    double multiplications;
    double needed[OPERANDS]; /* bytes of A and B that a rank uses, and of the partial sums of C that
                                it computes */
    double received[OPERANDS]; /* bytes that a rank receives from other ranks */
    double peers[OPERANDS];    /* number of ranks that send these bytes, estimated */
    bool stays[OPERANDS];      /* each rank uses, or computes, exactly its own part of the matrix */
} dist_volumes;

dist_volumes dist_volumes_of(const dist_task *task, const dist_division *division);

/* Predicts the costs of a division whose loop (the axis that is cut into panels) and panels are
 * set. Fills all members of *figures except size and bound_bytes. */
void dist_cost(const dist_task *task, const dist_division *division, const dist_volumes *volumes,
               const tgl_dist_machine *machine, tgl_dist_figures *figures);

/* Predicted seconds of the multiplications of the busiest rank alone, without memory accesses and
 * communication. */
double dist_cost_products(const dist_task *task, const dist_volumes *volumes,
                          const tgl_dist_machine *machine);

#endif
