/* SPDX-License-Identifier: Apache-2.0
 *
 * The caller's arguments, checked and converted: a row-major product and the distributions of its
 * three matrices. Also the ways in which the product can be divided.
 */
#ifndef DIST_TASK_H
#define DIST_TASK_H

#include "dist_spread.h"

#include <stddef.h>

enum { AXIS_M, AXIS_N, AXIS_K, AXES };
enum { OPERAND_A, OPERAND_B, OPERAND_C, OPERANDS };

typedef struct dist_task {
    tgl_problem problem; /* row-major: for a column-major problem A and B, and m and n, are
                            exchanged. trans_a and trans_b are results of dist_transpose() */
    bool is_exchanged;
    tgl_epilogue epilogue;    /* size 0: there is none */
    int ranks;                /* size of the communicator */
    int axis_of[OPERANDS][2]; /* AXIS_M, AXIS_N or AXIS_K along the operand's outer and inner
                                 axis */
    dist_spread spread[OPERANDS];
    int64_t ld[OPERANDS]; /* leading dimensions of this rank's parts */
    tgl_type type[OPERANDS], type_sum;
} dist_task;

/* A division: how a product is divided over the ranks. Part p of an axis belongs to each rank r
 * below `ranks` with dist_axis_part(axis, r) == p. A rank computes the product of its parts of m, n
 * and k. */
typedef struct dist_division {
    dist_axis axis[AXES];
    int ranks;
    bool c_stays; /* each rank computes exactly its own part of C: no partial sums move */
    int loop; /* the axis that is cut into panels, which are multiplied one after the other: AXIS_M,
                 AXIS_N or AXIS_K; AXES: none */
    int64_t panel, panels; /* length of a panel; number of panels */
} dist_division;

/* Checks and converts the arguments of a plan. Returns the statuses of tgl_dist_plan_create(). */
tgl_status dist_task_read(const tgl_problem *problem,
                          const tgl_dist_layout *const layouts[OPERANDS],
                          const tgl_dist_options *options, int rank, int ranks, dist_task *task);

/* Removes the conjugation from `trans`, because elements are real. The result is TGL_NO_TRANS or
 * TGL_TRANS; an invalid value is unchanged. */
tgl_transpose dist_transpose(tgl_transpose trans);

/* The extent of an axis: m, n or k. */
int64_t dist_task_extent(const dist_task *task, int axis);

/* Bytes of an element of an operand; of a partial sum. */
size_t dist_task_element(const dist_task *task, int operand);
size_t dist_task_sum_element(const dist_task *task);

/* The distribution of the elements of an operand that ranks use (A, B) or compute (C) in this
 * division. start: the result's dist_spread.start, which is not copied. */
dist_spread dist_division_spread(const dist_task *task, const dist_division *division, int operand,
                                 const int32_t *start);

#endif
