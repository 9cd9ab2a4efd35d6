/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula dist mm`: multiplies matrices in NumPy files. Every rank reads only its own rows of
 * them.
 */
#ifndef CLI_DIST_MM_H
#define CLI_DIST_MM_H

#include "tegula/dist.h"

/* Multiplies the matrices in the files a and b, and writes the product to the file `output`.
 * Returns an exit code. A rank that fails ends its process without MPI_Finalize(), so that `mpirun`
 * ends the other ranks. */
int dist_mm(tgl_dist *dist, const char *a, const char *b, const char *output);

#endif
