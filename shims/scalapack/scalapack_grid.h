/* SPDX-License-Identifier: Apache-2.0
 *
 * The process grids of BLACS (the communication library of ScaLAPACK), and a libtegula_dist
 * communicator for each.
 */
#ifndef SCALAPACK_GRID_H
#define SCALAPACK_GRID_H

#include "tegula/mpi.h"

#include <stdbool.h>

typedef struct scalapack_grid {
    int rows, columns, rank; /* rank: row * columns + column of this process */
    tgl_dist *dist;
} scalapack_grid;

/* *grid := the grid of a BLACS context. The first call for a context is collective over the grid.
 * grid->dist is closed with the grid, by MPI. Returns false if this process is not in the grid, or
 * if Tegula cannot use the grid. */
bool scalapack_grid_of(int context, scalapack_grid *grid);

#endif
