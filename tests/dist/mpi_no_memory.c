/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi_no_memory: gives rank 1 more and more host memory, until it suffices to open a communicator
 * and to run a product. All ranks must return the same status, and none may wait for rank 1.
 */
#include "few_allocations.h"
#include "tegula/mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 8, ALLOCATIONS_MAX = 200, TIMEOUT = 20, SECONDS = 5 /* less than TIMEOUT */ };

/* Opens a communicator and computes a product, of which the ranks exchange parts of A, B and C. */
static tgl_status multiply(tgl_device *dev)
{
    const tgl_mpi_options options = {.size = sizeof options, .timeout_s = TIMEOUT};
    static double A[SIZE * SIZE], B[SIZE * SIZE], C[SIZE * SIZE];
    tgl_problem problem;
    tgl_dist_layout rows, columns;
    tgl_dist *dist;
    tgl_status status = tgl_dist_open_mpi(MPI_COMM_WORLD, dev, &options, &dist);
    if (status != TGL_OK) return status;
    tgl_problem_init(&problem, sizeof problem, TGL_F64, SIZE, SIZE, SIZE);
    tgl_dist_rows(&rows, sizeof rows, SIZE, SIZE, tgl_dist_ranks(dist));
    tgl_dist_columns(&columns, sizeof columns, SIZE, SIZE, tgl_dist_ranks(dist));
    status = tgl_dist_gemm(dist, &problem, &columns, &rows, &columns, 1, A, B, 1, C);
    tgl_dist_close(dist);
    return status;
}

int main(int argc, char **argv)
{
    const tgl_device_options threads = {.size = sizeof threads, .threads = 1};
    tgl_device *dev;
    int rank, least = -1, most = -1, spare = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (tgl_device_open("cpu", &threads, &dev) != TGL_OK) return EXIT_FAILURE;
    for (; spare < ALLOCATIONS_MAX && most != TGL_OK; spare++) {
        const time_t start = time(NULL);
        allocations_left = rank == 1 ? spare : -1;
        const int status = multiply(dev);
        allocations_left = -1;
        const time_t seconds = time(NULL) - start;
        MPI_Allreduce(&status, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&status, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (least == most && seconds <= SECONDS) continue;
        fprintf(stderr, "rank %d after %d allocations: %s in %d s\n", rank, spare,
                tgl_status_name((tgl_status)status), (int)seconds);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    tgl_device_close(dev);
    MPI_Finalize();
    return spare > 5 && spare < ALLOCATIONS_MAX ? EXIT_SUCCESS : EXIT_FAILURE;
}
