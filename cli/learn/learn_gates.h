/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the gates of an exercise, which are limits of the simulator's counts (exercises.h).
 */
#ifndef CLI_LEARN_GATES_H
#define CLI_LEARN_GATES_H

#include "learn_plan.h"

/* Prints each gate of the exercise with the figure of the plan's last run and the limit; if the
 * gate fails, also the source line that contributes most. Returns whether all gates are passed, and
 * the counts can include all loads of the kernel. */
bool learn_gates_check(const exercise *e, const tgl_problem *problem, const tgl_plan *plan,
                       const char *file);

#endif
