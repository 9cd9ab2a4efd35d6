/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks with a GPU each. Either a launcher has started this process as one rank (dist_gpu_run()),
 * or this program starts a process for each of several GPUs of this host (dist_gpus_run()).
 */
#ifndef DIST_GPUS_H
#define DIST_GPUS_H

#include "tegula/dist.h"

#include <stdbool.h>

typedef int dist_gpu_function(tgl_dist *dist, tgl_device *dev, const void *argument);

typedef struct dist_gpu_rank {
    int rank, ranks;
    int gpu;          /* number of the GPU on its host */
    bool may_see_one; /* whether a launcher may have made only the rank's own GPU visible to it, as
                         number 0 */
} dist_gpu_rank;

/* A function that gives all ranks the unique id of NCCL that rank 0 has in id[]. is_ready: whether
 * this rank has opened its GPU and loaded NCCL. state: the argument of dist_gpu_run().
 * False: there is no id; the rank that failed has printed the error. */
typedef bool dist_bring_id(const dist_gpu_rank *rank, void *state, bool is_ready,
                           unsigned char *id);

/* Opens the GPU and the communicator of this process's rank, and runs a function with them. Returns
 * the function's exit code, or another one after a failure. */
int dist_gpu_run(const dist_gpu_rank *rank, dist_bring_id *bring_id, void *state,
                 dist_gpu_function *function, const void *argument);

/* Runs a function in one process for each of the GPUs 0, ..., gpus - 1. If one process fails, the
 * others are terminated. Returns EXIT_DONE, the exit code of the first process that failed, or
 * EXIT_FAILED if a process cannot be started. */
int dist_gpus_run(int gpus, dist_gpu_function *function, const void *argument);

#endif
