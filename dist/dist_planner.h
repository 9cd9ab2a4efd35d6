/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses how a product is divided, by a model of its communication.
 */
#ifndef DIST_PLANNER_H
#define DIST_PLANNER_H

#include "dist_task.h"

enum { RING_NONE = -1 };

/* The chosen division and its predicted figures. */
typedef struct dist_choice {
    dist_division division;
    tgl_dist_figures figures;
    char stays[8];  /* letters of the matrices that stay, such as "AC" */
    int candidates; /* number of divisions that were compared */
    int ring;       /* dist_ring.h: number of chunks per shard of C; 0: one product; RING_NONE: no
                       ring */
} dist_choice;

/* What the options of the caller fix or limit. */
typedef struct dist_limits {
    double memory_bytes;      /* maximum memory of a rank in bytes; 0: no limit */
    int64_t panel, panel_max; /* panel length: fixed; maximum. 0: not set */
    int parts[AXES];          /* number of parts of each axis; 0: not set */
} dist_limits;

tgl_status dist_options_check(const tgl_dist_options *options);
dist_limits dist_limits_of(const dist_task *task, const tgl_dist_options *options,
                           int64_t memory_limit);

/* Chooses the division with the shortest predicted time. All ranks choose the same division if the
 * machine is homogeneous. Returns TGL_OK; TGL_UNSUPPORTED if no division has the parts of
 * `limits`. */
tgl_status dist_planner_choose(const dist_task *task, const tgl_dist_machine *machine,
                               const dist_limits *limits, dist_choice *choice);

/* The division in which an operand stays: its two axes are divided as the operand's distribution
 * is. */
dist_division dist_planner_staying(const dist_task *task, int operand);

/* Whether a division has the parts that the limits require. */
bool dist_planner_allows(const dist_limits *limits, const dist_division *division);

/* start[rank] := the index of the first panel that a rank multiplies, chosen so that the rank has
 * this panel's elements. start: array of task->ranks. */
void dist_planner_start(const dist_task *task, const dist_division *division, int32_t *start);

#endif
