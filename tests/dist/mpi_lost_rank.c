/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi_lost_rank: rank 1 of 2 stops in the middle of a series of products. The other rank must get
 * TGL_COMMUNICATION within the timeout, must be able to close everything, and its device must still
 * work. Then it prints "a status within the timeout". The exit code of `mpirun` is not 0, because
 * rank 1 is killed.
 */
#include "tegula/mpi.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZE = 64, BEFORE = 1000 }; /* products before rank 1 stops */

int main(int argc, char **argv)
{
    const tgl_device_options threads = {.size = sizeof threads, .threads = 1};
    const tgl_mpi_options options = {.size = sizeof options, .timeout_s = 1};
    static double A[SIZE * SIZE], B[SIZE * SIZE], C[SIZE * SIZE];
    tgl_problem problem;
    tgl_dist_layout layout;
    tgl_device *dev;
    tgl_dist *dist;
    tgl_dist_plan *plan;
    MPI_Init(&argc, &argv);
    if (tgl_device_open("cpu", &threads, &dev) != TGL_OK ||
        tgl_dist_open_mpi(MPI_COMM_WORLD, dev, &options, &dist) != TGL_OK ||
        tgl_problem_init(&problem, sizeof problem, TGL_F64, SIZE, SIZE, SIZE) != TGL_OK ||
        tgl_dist_rows(&layout, sizeof layout, SIZE, SIZE, 2) != TGL_OK ||
        tgl_dist_plan_create(dist, &problem, &layout, &layout, &layout, NULL, &plan) != TGL_OK)
        return EXIT_FAILURE;
    const bool stops = tgl_dist_rank(dist) == 1;
    tgl_status status = TGL_OK;
    for (int i = 0; i < BEFORE && status == TGL_OK; i++)
        status = tgl_dist_plan_run(plan, 1, A, B, 0, C, NULL);
    if (status != TGL_OK) return EXIT_FAILURE;
    if (stops) raise(SIGSTOP);
    const time_t start = time(NULL);
    status = tgl_dist_plan_run(plan, 1, A, B, 0, C, NULL);
    const time_t seconds = time(NULL) - start;
    tgl_dist_plan_destroy(plan);
    tgl_dist_close(dist);
    if (status == TGL_COMMUNICATION && seconds < 10 &&
        tgl_gemm(dev, &problem, 1, A, B, 0, C, NULL) == TGL_OK)
        puts("a status within the timeout");
    tgl_device_close(dev);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}
