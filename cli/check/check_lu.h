/* SPDX-License-Identifier: Apache-2.0
 *
 * The third part of `tegula check --accuracy`: a system of linear equations, solved with LU
 * factors whose updates are products of the library.
 */
#ifndef CLI_CHECK_LU_H
#define CLI_CHECK_LU_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Solves a random linear system by LU factorisation in F32 with partial pivoting, in blocks of 256
 * columns. The products are computed by `kernel` (NULL: the planner's choice) in the compute mode,
 * and once more in compute mode ieee, called FFMA. small: solves 512 equations, not 2048. *passes
 * := whether two conditions hold:
 *   - The residual of the solution, scaled as in the HPL benchmark, is below 16, and at most twice
 *     that with FFMA.
 *   - Iterative refinement of the solution to the accuracy of F64 takes at most one step more than
 *     with FFMA. */
tgl_status check_lu(tgl_device *dev, tgl_compute compute, const char *kernel, bool small,
                    bool *passes);

#endif
