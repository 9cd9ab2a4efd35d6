/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi_products CASES: tests random distributed products of MPI processes, and wrong arguments of a
 * communicator.
 */
#include "dist_case.h"

#include "tegula/mpi.h"

#include <stdio.h>
#include <stdlib.h>

static bool refuses(tgl_device *dev)
{
    tgl_dist *dist;
    const tgl_mpi_options negative = {.size = sizeof negative, .timeout_s = -1};
    return tgl_dist_open_mpi(MPI_COMM_NULL, dev, NULL, &dist) == TGL_BAD_ARGUMENT && dist == NULL &&
           tgl_dist_open_mpi(MPI_COMM_WORLD, NULL, NULL, &dist) == TGL_BAD_ARGUMENT &&
           tgl_dist_open_mpi(MPI_COMM_WORLD, dev, &negative, &dist) == TGL_BAD_ARGUMENT;
}

int main(int argc, char **argv)
{
    const tgl_device_options threads = {.size = sizeof threads, .threads = 1};
    const tgl_mpi_options options = {.size = sizeof options, .timeout_s = 60};
    tgl_device *dev;
    tgl_dist *dist;
    if (tgl_device_open("cpu", &threads, &dev) != TGL_OK) return EXIT_FAILURE;
    bool ok = tgl_dist_open_mpi(MPI_COMM_WORLD, dev, &options, &dist) == TGL_BAD_ARGUMENT;
    MPI_Init(&argc, &argv);
    ok = ok && refuses(dev) && tgl_dist_open_mpi(MPI_COMM_WORLD, dev, &options, &dist) == TGL_OK;
    const unsigned cases = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
    for (unsigned i = 0; ok && i < cases; i++)
        ok = dist_case_run(dist, dev, 1000 * (unsigned)tgl_dist_ranks(dist) + 500 + i);
    if (ok) tgl_dist_close(dist);
    if (!ok) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    MPI_Finalize();
    tgl_device_close(dev);
    return EXIT_SUCCESS;
}
