/* SPDX-License-Identifier: Apache-2.0
 *
 * A process for each of some GPUs of this host.
 */
#ifndef DIST_GPUS_H
#define DIST_GPUS_H

#include "tegula/dist.h"

typedef int dist_gpu_function(tgl_dist *dist, tgl_device *dev, const void *argument);

/* Runs a function in a process for each GPU 0 .. gpus-1, and returns the first exit status that is
 * not EXIT_DONE. If one process fails, the others are ended. */
int dist_gpus_run(int gpus, dist_gpu_function *function, const void *argument);

#endif
