/* SPDX-License-Identifier: Apache-2.0
 *
 * A ScaLAPACK with BLACS for tests. The grid is one column of all processes, and the product only
 * counts its calls.
 */
#ifndef NEXT_SCALAPACK_H
#define NEXT_SCALAPACK_H

extern int next_scalapack_calls;

void blacs_get_(const int *context, const int *what, int *value);
void blacs_gridinfo_(const int *context, int *rows, int *columns, int *row, int *column);
void pdgemm_(const char *trans_a, const char *trans_b, const int *m, const int *n, const int *k,
             const double *alpha, const double *A, const int *ia, const int *ja, const int *desc_a,
             const double *B, const int *ib, const int *jb, const int *desc_b, const double *beta,
             double *C, const int *ic, const int *jc, const int *desc_c);

#endif
