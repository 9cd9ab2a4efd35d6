/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan whose kernel is a reader's file. Only learn_plan.c uses more of the library than its
 * public API.
 */
#ifndef CLI_LEARN_PLAN_H
#define CLI_LEARN_PLAN_H

#include "exercises.h"

/* What a source line did in the plan's last run, by one kind of access. line: 0: unknown. */
typedef struct learn_line {
    int line;
    unsigned kind;      /* one bit: LEARN_GLOBAL_LOAD ... */
    const char *access; /* "global load" */
    char target[16];    /* "A", or the name of a shared array */
    int64_t requests, bytes, sectors, wavefronts, conflicts;
} learn_line;

/* *plan := a plan on the simulator with the geometry of the exercise and the kernel of this text.
 * file: its name in messages; it has no slash. file and source must outlive the plan. */
tgl_status learn_plan_make(tgl_device *dev, const tgl_problem *problem, const exercise *e,
                           const char *file, const char *source, tgl_plan **plan);

/* Copies up to `room` lines of the last run, in the order of the source; returns their number. */
int learn_plan_lines(const tgl_plan *plan, learn_line *lines, int room);

#endif
