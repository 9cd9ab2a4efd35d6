/* SPDX-License-Identifier: Apache-2.0
 *
 * A ScaLAPACK with BLACS for tests. The grid is one column of all processes, and the product only
 * counts its calls.
 */
#include "next_scalapack.h"

#include <mpi.h>

int next_scalapack_calls;

void blacs_get_(const int *context, const int *what, int *value)
{
    (void)context, (void)what;
    *value = MPI_Comm_c2f(MPI_COMM_WORLD);
}

void blacs_gridinfo_(const int *context, int *rows, int *columns, int *row, int *column)
{
    (void)context;
    MPI_Comm_size(MPI_COMM_WORLD, rows);
    MPI_Comm_rank(MPI_COMM_WORLD, row);
    *columns = 1;
    *column = 0;
}

void pdgemm_(const char *trans_a, const char *trans_b, const int *m, const int *n, const int *k,
             const double *alpha, const double *A, const int *ia, const int *ja, const int *desc_a,
             const double *B, const int *ib, const int *jb, const int *desc_b, const double *beta,
             double *C, const int *ic, const int *jc, const int *desc_c)
{
    (void)trans_a, (void)trans_b, (void)m, (void)n, (void)k, (void)alpha, (void)beta;
    (void)A, (void)ia, (void)ja, (void)desc_a, (void)B, (void)ib, (void)jb, (void)desc_b;
    (void)C, (void)ic, (void)jc, (void)desc_c;
    next_scalapack_calls++;
}
