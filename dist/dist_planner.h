/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses how a product is divided over the ranks, by a model of its communication (dist_cost.h). A
 * matrix stays if each rank uses, or computes, exactly its own part of the matrix. One axis of the
 * product, the loop, is cut into panels, which arrive one after the other.
 */
#ifndef DIST_PLANNER_H
#define DIST_PLANNER_H

#include "dist_task.h"

enum { RING_NONE = -1, RING_COLLECTIVE = -2 };

/* The chosen division and its predicted figures. */
typedef struct dist_choice {
    dist_division division;
    tgl_dist_figures figures;
    char stays[8];  /* letters of the matrices that stay, such as "AC" */
    int candidates; /* number of pairs of division and panel length that were compared */
    int ring;      /* number of chunks into which a ring (dist_ring.h) cuts a rank's part of C; 0: a
                      single product per rank; RING_COLLECTIVE: a single product per rank, whose sum
                      is one collective operation (dist_reduce.h); RING_NONE: no ring */
    int64_t chunk; /* rows or columns of a chunk; the last chunk of a shard may be shorter. Without
                      a ring of chunks: of a shard */
    bool gathers[2]; /* A, B: all of it comes by one all-gather of the transport */
} dist_choice;

/* Limits of the choice, from the options of the caller. */
typedef struct dist_limits {
    double memory_bytes;      /* maximum bytes of a rank besides its matrices; 0: no limit */
    int64_t panel, panel_max; /* required panel length; maximum panel length. 0: not set */
    int parts[AXES];          /* number of parts of each axis; 0: not set */
} dist_limits;

/* Checks the options of a caller. NULL is valid. */
tgl_status dist_options_check(const tgl_dist_options *options);
/* options: may be NULL. memory_limit: bytes, the smallest limit of all ranks; 0: no limit. */
dist_limits dist_limits_of(const dist_task *task, const tgl_dist_options *options,
                           int64_t memory_limit);

/* Chooses the division with the shortest predicted time within the memory limit; if all are over
 * the limit, the one that needs the least memory. All ranks choose the same division if the machine
 * is homogeneous. Returns TGL_OK; TGL_UNSUPPORTED if no division has the numbers of parts
 * that `limits` requires. */
tgl_status dist_planner_choose(const dist_task *task, const tgl_dist_machine *machine,
                               const dist_limits *limits, dist_choice *choice);

/* The division in which an operand stays: the two axes of the operand are divided as the operand is
 * distributed, and the third axis is not divided. */
dist_division dist_planner_staying(const dist_task *task, int operand);

/* Whether a division has the parts that the limits require. */
bool dist_planner_allows(const dist_limits *limits, const dist_division *division);

/* start[rank] := the index of the panel that the rank multiplies first: the first one of which the
 * rank itself has elements (of the operand that moves the most bytes), or 0. start: array of
 * task->ranks. */
void dist_planner_start(const dist_task *task, const dist_division *division, int32_t *start);

#endif
