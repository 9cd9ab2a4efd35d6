/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks that `mpirun` has started. The program is not linked with MPI: it loads
 * libtegula_mpi.so, which is linked with MPI.
 */
#ifndef CLI_DIST_WORLD_H
#define CLI_DIST_WORLD_H

#include "tegula/dist.h"

/* Opens the communicator of all MPI ranks. The device must stay open until the communicator is
 * closed. NULL: failed, and the error has been printed. */
tgl_dist *dist_world_open(tgl_device *dev);

/* On rank 0, prints the message about the last failed call of tegula/dist.h. Returns EXIT_FAILED on
 * every rank. */
int dist_fail_status(const tgl_dist *dist, tgl_status status);

#endif
