/* SPDX-License-Identifier: Apache-2.0
 *
 * Includes the declarations of cuBLAS: those of shims/cublas/cublas_abi.h or NVIDIA's own. If
 * NVIDIA's headers are installed, the tests are compiled twice, once with each. The library itself
 * is always compiled with cublas_abi.h.
 */
#ifndef TGL_CUBLAS_NAMES_H
#define TGL_CUBLAS_NAMES_H

#ifdef WITH_NVIDIA_HEADERS
#include "cublas_parameters.h"

#include <cublasLt.h>
#include <cublas_v2.h>
/* NVIDIA's headers declare the functions for __half in C++ only. */
typedef uint16_t cublas_half;
cublasStatus_t cublasHgemm CUBLAS_GEMM_PARAMETERS(cublas_half, int);
cublasStatus_t cublasHgemm_64 CUBLAS_GEMM_PARAMETERS(cublas_half, int64_t);
cublasStatus_t cublasHgemmBatched CUBLAS_GEMM_BATCHED_PARAMETERS(cublas_half, int);
cublasStatus_t cublasHgemmBatched_64 CUBLAS_GEMM_BATCHED_PARAMETERS(cublas_half, int64_t);
cublasStatus_t cublasHgemmStridedBatched CUBLAS_GEMM_STRIDED_PARAMETERS(cublas_half, int);
cublasStatus_t cublasHgemmStridedBatched_64 CUBLAS_GEMM_STRIDED_PARAMETERS(cublas_half, int64_t);
#else
#include "cublas_abi.h"
#endif

#endif
