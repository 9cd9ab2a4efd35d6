/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that torchrun or srun has started, a GPU each.
 */
#ifndef CLI_DIST_LAUNCHED_H
#define CLI_DIST_LAUNCHED_H

#include "dist_gpus.h"

/* Whether torchrun or srun has started this process as a rank. False for processes that an MPI
 * launcher has started, because they use MPI, and for the only task of srun, which may be a
 * shell. */
bool dist_is_launched(void);

/* Runs a function on the rank of this process. Returns its exit code, or another one after a
 * failure. */
int dist_launched_run(dist_gpu_function *function, const void *argument);

#endif
