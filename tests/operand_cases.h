/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases for devices that run CUDA kernels: each family, whole, split and with strips, with a D
 * other than C, scalars of the device and workspace of the caller's.
 */
#ifndef OPERAND_CASES_H
#define OPERAND_CASES_H

#include "gemm_case.h"

/* The i-th case, from 0 on; false: there are no more. */
bool operand_case(int i, gemm_case *c);

#endif
