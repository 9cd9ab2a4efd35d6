/* SPDX-License-Identifier: Apache-2.0
 *
 * What cuBLAS calls the types and the operations of a problem.
 */
#ifndef CLI_CUBLAS_TYPES_H
#define CLI_CUBLAS_TYPES_H

#include "tegula/tegula.h"

/* cudaDataType_t (also of alpha and beta), cublasComputeType_t and cublasOperation_t of a problem.
 */
int cublas_data_type(tgl_type type);
int cublas_scale_type(tgl_type type);
int cublas_compute_type(const tgl_problem *p);
int cublas_operation(tgl_transpose trans);

/* The stride from one result of a batch to the next, in elements. */
int64_t cublas_result_stride(const tgl_problem *p);

/* The address of the number `value`, 1 or 0, in the type of alpha and beta. */
const void *cublas_scalar(const tgl_problem *p, int value);

#endif
