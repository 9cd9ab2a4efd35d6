/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses how a product is divided, by a model of its communication.
 */
#ifndef DIST_PLANNER_H
#define DIST_PLANNER_H

#include "dist_task.h"

enum { RING_NONE = -1 };

/* A division with its predicted figures, and the reason for it. */
typedef struct dist_choice {
    dist_division division;
    tgl_dist_figures figures;
    char stays[8];  /* the matrices that stay, such as "AC" */
    int candidates; /* number of divisions that were compared */
    int ring;       /* dist_ring.h: chunks of a shard of C; 0: one product; RING_NONE: not used */
} dist_choice;

/* What the caller has fixed or limited. */
typedef struct dist_limits {
    double memory_bytes;      /* maximum memory of a rank; 0: no limit */
    int64_t panel, panel_max; /* 0: free */
    int parts[AXES];          /* 0: free */
} dist_limits;

tgl_status dist_options_check(const tgl_dist_options *options);
dist_limits dist_limits_of(const dist_task *task, const tgl_dist_options *options,
                           int64_t memory_limit);

/* The fastest division. All ranks of a homogeneous machine choose the same. Returns TGL_OK;
 * TGL_UNSUPPORTED (no division has the parts of `limits`). */
tgl_status dist_planner_choose(const dist_task *task, const tgl_dist_machine *machine,
                               const dist_limits *limits, dist_choice *choice);

/* The division in which an operand stays: its two axes are divided as the operand is. */
dist_division dist_planner_staying(const dist_task *task, int operand);

/* Whether it has the parts that the limits want. */
bool dist_planner_allows(const dist_limits *limits, const dist_division *division);

/* start[rank] := the number of the panel with which a rank begins, which has its own elements.
 * start: array of task->ranks. */
void dist_planner_start(const dist_task *task, const dist_division *division, int32_t *start);

#endif
