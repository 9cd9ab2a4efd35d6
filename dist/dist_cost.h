/* SPDX-License-Identifier: Apache-2.0
 *
 * The predicted cost of a division. A division (dist_task.h) is a way to divide m, n and k of a
 * product over the ranks. One axis of it, its loop, is also cut into panels, which a rank
 * multiplies one after the other.
 */
#ifndef DIST_COST_H
#define DIST_COST_H

#include "dist_task.h"

/* The amounts of work and data of a division for the whole product, which do not depend on the
 * panels. Each number is the maximum over the ranks; with more than 16 ranks, only 8 of them are
 * evaluated. */
typedef struct dist_volumes {
    double multiplications;
    double needed[OPERANDS]; /* bytes of A and B that a rank uses, and of the partial sums of C that
                                it computes */
    double received[OPERANDS]; /* bytes that a rank receives from other ranks */
    double peers[OPERANDS];    /* number of ranks that send these bytes, estimated */
    bool stays[OPERANDS];      /* each rank uses, or computes, exactly its own part of the matrix;
                                  also true of a replicated A or B */
} dist_volumes;

dist_volumes dist_volumes_of(const dist_task *task, const dist_division *division);

/* Predicts the costs of a division whose members loop, panel and panels are set. Fills all members
 * of *figures except size and bound_bytes. */
void dist_cost(const dist_task *task, const dist_division *division, const dist_volumes *volumes,
               const tgl_dist_machine *machine, tgl_dist_figures *figures);

/* Whether all of an operand comes by one all-gather: the transport has collective operations, every
 * rank has the same number of complete rows of the stored matrix and needs all of it at once, and
 * messages would take longer. */
bool dist_cost_gathers(const dist_task *task, const dist_division *division, const dist_volumes *v,
                       int operand, const tgl_dist_machine *machine);

/* Predicted seconds of a collective operation. bytes: those that a rank receives; for an
 * all-reduce, those of its reduce-scatter and its all-gather together. Requires
 * machine->collective_s > 0. */
double dist_cost_collective(tgl_dist_collective operation, double bytes,
                            const tgl_dist_machine *machine);

/* Predicted seconds of the multiplications of the busiest rank alone, without memory accesses and
 * communication. */
double dist_cost_products(const dist_task *task, const dist_volumes *volumes,
                          const tgl_dist_machine *machine);

#endif
