/* SPDX-License-Identifier: Apache-2.0
 *
 * scalapack_failures: tests after which failures libtegula_scalapack calls the next ScaLAPACK, and
 * after which it ends the program. The loader finds the functions of libtegula_dist and MPI in this
 * program before those of the libraries.
 */
#include "next_scalapack.h"

#include "tegula/mpi.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static tgl_status fails_creation, fails_run; /* TGL_OK: the call does not fail */
static double timeout_s;
static bool aborted, fails_open;
static jmp_buf after_abort;

tgl_status tgl_dist_open_mpi(MPI_Comm comm, tgl_device *dev, const tgl_mpi_options *options,
                             tgl_dist **dist)
{
    typedef tgl_status function(MPI_Comm, tgl_device *, const tgl_mpi_options *, tgl_dist **);
    timeout_s = options != NULL ? options->timeout_s : 0;
    const tgl_status status =
        ((function *)dlsym(RTLD_NEXT, "tgl_dist_open_mpi"))(comm, dev, options, dist);
    if (!fails_open) return status;
    tgl_dist_close(*dist);
    *dist = NULL;
    return TGL_NO_MEMORY;
}

tgl_status tgl_dist_plan_create(tgl_dist *dist, const tgl_problem *problem,
                                const tgl_dist_layout *a, const tgl_dist_layout *b,
                                const tgl_dist_layout *c, const tgl_dist_options *options,
                                tgl_dist_plan **plan)
{
    typedef tgl_status function(tgl_dist *, const tgl_problem *, const tgl_dist_layout *,
                                const tgl_dist_layout *, const tgl_dist_layout *,
                                const tgl_dist_options *, tgl_dist_plan **);
    if (fails_creation != TGL_OK) return fails_creation;
    function *next = (function *)dlsym(RTLD_NEXT, "tgl_dist_plan_create");
    return next(dist, problem, a, b, c, options, plan);
}

tgl_status tgl_dist_plan_run(tgl_dist_plan *plan, double alpha, const void *A, const void *B,
                             double beta, void *C, const void *bias)
{
    typedef tgl_status function(tgl_dist_plan *, double, const void *, const void *, double, void *,
                                const void *);
    if (fails_run != TGL_OK) return fails_run;
    function *next = (function *)dlsym(RTLD_NEXT, "tgl_dist_plan_run");
    return next(plan, alpha, A, B, beta, C, bias);
}

int MPI_Abort(MPI_Comm comm, int code)
{
    (void)comm, (void)code;
    aborted = true;
    longjmp(after_abort, 1);
}

static const struct expected {
    tgl_status creation, run;
    int next;
    bool aborts;
} cases[] = {
    {TGL_OK, TGL_OK, 0, false},           {TGL_NO_MEMORY, TGL_OK, 1, false},
    {TGL_UNSUPPORTED, TGL_OK, 1, false},  {TGL_BAD_ARGUMENT, TGL_OK, 1, false},
    {TGL_COMMUNICATION, TGL_OK, 0, true}, {TGL_OK, TGL_BAD_ARGUMENT, 1, false},
    {TGL_OK, TGL_BAD_A, 1, false},        {TGL_OK, TGL_BAD_SCALAR, 1, false},
    {TGL_OK, TGL_NO_MEMORY, 0, true},     {TGL_OK, TGL_UNSUPPORTED, 0, true},
    {TGL_OK, TGL_DRIVER, 0, true},        {TGL_OK, TGL_COMMUNICATION, 0, true},
};

static bool run(const struct expected *e)
{
    const int one = 1, two = 2, desc[] = {1, 0, 2, 2, 1, 1, 0, 0, 2};
    const double factor = 1, A[] = {1, 2, 3, 4}, B[] = {1, 0, 0, 1};
    double C[] = {1, 1, 1, 1};
    fails_creation = e->creation;
    fails_run = e->run;
    aborted = false;
    next_scalapack_calls = 0;
    if (setjmp(after_abort) == 0)
        pdgemm_("C", "N", &two, &two, &two, &factor, A, &one, &one, desc, B, &one, &one, desc,
                &factor, C, &one, &one, desc);
    const bool served = e->next == 0 && !e->aborts;
    if (aborted == e->aborts && next_scalapack_calls == e->next &&
        C[1] == (served ? 1 + A[2] : 1) && C[2] == (served ? 1 + A[1] : 1))
        return true;
    fprintf(stderr, "creation %s, run %s: %d calls of the next ScaLAPACK, aborted: %d, C[1]: %g\n",
            tgl_status_name(e->creation), tgl_status_name(e->run), next_scalapack_calls, aborted,
            C[1]);
    return false;
}

/* Tests two processes, of which one cannot open a communicator. Both must call the next ScaLAPACK.
 */
static int run_two(int rank)
{
    const int one = 1, two = 2, desc[] = {1, 0, 2, 2, 1, 1, 0, 0, 1};
    const double factor = 1, A[] = {1, 2}, B[] = {1, 0};
    double C[] = {1, 1};
    fails_open = rank == 1;
    for (int call = 1; call <= 2; call++) {
        pdgemm_("N", "N", &two, &two, &two, &factor, A, &one, &one, desc, B, &one, &one, desc,
                &factor, C, &one, &one, desc);
        if (next_scalapack_calls != call) return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int failures = 0, rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks == 2) {
        const int code = run_two(rank);
        MPI_Finalize();
        return code;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        failures += !run(&cases[i]);
    if (!isinf(timeout_s)) failures++, fprintf(stderr, "a timeout of %g seconds\n", timeout_s);
    MPI_Finalize();
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
