/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan whose kernel is a reader's file; a reader is the user who solves an exercise. Only
 * learn_plan.c uses more of the library than its public API.
 */
#ifndef CLI_LEARN_PLAN_H
#define CLI_LEARN_PLAN_H

#include "exercises.h"

/* The counts of the accesses of one kind at one source line in the plan's last run. */
typedef struct learn_line {
    int line;
    unsigned kind;      /* one bit of LEARN_GLOBAL_LOAD ... */
    const char *access; /* the kind for messages, as "global load" */
    char target[16];    /* the matrix, as "A", or the name of a shared array */
    int64_t requests, bytes, sectors, wavefronts, conflicts;
} learn_line;

/* *plan := a plan whose kernel is compiled from the text `source`, launched with the geometry of
 * the exercise. file: the name of the reader's file for messages, without a slash. file and source
 * must outlive the plan. */
tgl_status learn_plan_make(tgl_device *dev, const tgl_problem *problem, const exercise *e,
                           const char *file, const char *source, tgl_plan **plan);

/* Copies the counts of up to `room` source lines of the last run, in the order of the source.
 * Returns how many were copied. */
int learn_plan_lines(const tgl_plan *plan, learn_line *lines, int room);

#endif
