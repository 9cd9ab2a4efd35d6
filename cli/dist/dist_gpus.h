/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks with a GPU each: the rank of this process, and a process for each of some GPUs of this
 * host.
 */
#ifndef DIST_GPUS_H
#define DIST_GPUS_H

#include "tegula/dist.h"

#include <stdbool.h>

typedef int dist_gpu_function(tgl_dist *dist, tgl_device *dev, const void *argument);

typedef struct dist_gpu_rank {
    int rank, ranks;
    int gpu; /* its number on the host */
} dist_gpu_rank;

/* id := the unique id of NCCL that rank 0 has made. false: there is none, which is reported. */
typedef bool dist_bring_id(const dist_gpu_rank *rank, void *state, unsigned char *id);

/* id := a new unique id of NCCL. false: it cannot be made, which is reported. */
bool dist_gpu_make_id(unsigned char *id);

/* Runs a function on the rank of this process. Returns its exit code. */
int dist_gpu_run(const dist_gpu_rank *rank, dist_bring_id *bring_id, void *state,
                 dist_gpu_function *function, const void *argument);

/* Runs a function in a process for each GPU 0 .. gpus-1, and returns the first exit status that is
 * not EXIT_DONE. If one process fails, the others are ended. */
int dist_gpus_run(int gpus, dist_gpu_function *function, const void *argument);

#endif
