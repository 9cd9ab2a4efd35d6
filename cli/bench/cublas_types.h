/* SPDX-License-Identifier: Apache-2.0
 *
 * The constants of cuBLAS for the types and operations of a problem.
 */
#ifndef CLI_CUBLAS_TYPES_H
#define CLI_CUBLAS_TYPES_H

#include "tegula/tegula.h"

/* The cudaDataType_t of an element type, the cudaDataType_t of alpha and beta for it, and the
 * cublasComputeType_t and cublasOperation_t of a problem. */
int cublas_data_type(tgl_type type);
int cublas_scale_type(tgl_type type);
int cublas_compute_type(const tgl_problem *p);
int cublas_operation(tgl_transpose trans);

/* The stride from one result of a batch to the next, in elements. */
int64_t cublas_result_stride(const tgl_problem *p);

/* The address of the number `value`, 1 or 0, in the type of alpha and beta. */
const void *cublas_scalar(const tgl_problem *p, int value);

#endif
