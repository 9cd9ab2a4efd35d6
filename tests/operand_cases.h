/* SPDX-License-Identifier: Apache-2.0
 *
 * Test cases for devices that run CUDA kernels: kernels of several families without and with
 * split-K and with strips (separate launches for the last rows and columns), with a D other than C,
 * scalars in device memory, and a workspace of the caller.
 */
#ifndef OPERAND_CASES_H
#define OPERAND_CASES_H

#include "gemm_case.h"

/* Case number i, from 0; false: there are no more. */
bool operand_case(int i, gemm_case *c);

#endif
