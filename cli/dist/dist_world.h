/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks that `mpirun` has started. The program is not linked with MPI: it loads
 * libtegula_mpi.so, which is.
 */
#ifndef CLI_DIST_WORLD_H
#define CLI_DIST_WORLD_H

#include "tegula/dist.h"

/* Opens the communicator of all MPI ranks. NULL: it cannot be opened, which is reported. The device
 * must outlive the result. */
tgl_dist *dist_world_open(tgl_device *dev);

/* Prints the message of a failed call of tegula/dist.h, on rank 0. Returns EXIT_FAILED. */
int dist_fail_status(const tgl_dist *dist, tgl_status status);

#endif
