/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi_world: tests the refusals of tgl_dist_mpi_world(), and the state of MPI after its failure.
 */
#include "tegula/mpi.h"

#include <stdio.h>
#include <stdlib.h>

/* Replaces MPI's function, for libtegula_mpi too, by one that fails. */
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    (void)comm, (void)copy;
    return MPI_ERR_OTHER;
}

static int failures;

static void expect(const char *what, int got, int wanted)
{
    if (got == wanted) return;
    fprintf(stderr, "%s: %d; expected: %d\n", what, got, wanted);
    failures++;
}

int main(void)
{
    int flag;
    tgl_dist_transport transport;
    expect("no transport", tgl_dist_mpi_world(0, NULL), TGL_BAD_ARGUMENT);
    expect("a negative timeout", tgl_dist_mpi_world(-1, &transport), TGL_BAD_ARGUMENT);
    MPI_Initialized(&flag);
    expect("MPI is initialised after bad arguments", flag, 0);

    expect("a failure of MPI", tgl_dist_mpi_world(0, &transport), TGL_COMMUNICATION);
    MPI_Finalized(&flag);
    expect("MPI is finalised after its failure", flag, 1);
    expect("a finalised MPI", tgl_dist_mpi_world(0, &transport), TGL_BAD_ARGUMENT);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
