/* SPDX-License-Identifier: Apache-2.0
 *
 * Test cases for devices that run CUDA kernels: each family without and with split-K and with
 * strips, with a separate D, scalars in device memory, and a workspace of the caller.
 */
#ifndef OPERAND_CASES_H
#define OPERAND_CASES_H

#include "gemm_case.h"

/* Case number i, from 0; false: there are no more. */
bool operand_case(int i, gemm_case *c);

#endif
