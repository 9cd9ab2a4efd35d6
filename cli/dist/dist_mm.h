/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula dist mm`: multiplies matrices in NumPy files, of which every rank reads its part.
 */
#ifndef CLI_DIST_MM_H
#define CLI_DIST_MM_H

#include "tegula/dist.h"

/* C := A*B. Returns an exit code. A rank that fails ends without MPI_Finalize(), and `mpirun` ends
 * the others. */
int dist_mm(tgl_dist *dist, const char *a, const char *b, const char *output);

#endif
