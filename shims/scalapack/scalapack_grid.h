/* SPDX-License-Identifier: Apache-2.0
 *
 * The process grids of BLACS, and a communicator of libtegula_dist for each.
 */
#ifndef SCALAPACK_GRID_H
#define SCALAPACK_GRID_H

#include "tegula/mpi.h"

#include <stdbool.h>

typedef struct scalapack_grid {
    int rows, columns, rank; /* rank: row * columns + column */
    tgl_dist *dist;
} scalapack_grid;

/* The grid of a BLACS context. The first call for a context is collective over the grid. False:
 * this process is not in the grid, or Tegula cannot use the grid. */
bool scalapack_grid_of(int context, scalapack_grid *grid);

#endif
