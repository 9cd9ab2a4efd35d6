/* SPDX-License-Identifier: Apache-2.0
 *
 * The declarations that a program has: those of shims/cublas/cublas_abi.h, or NVIDIA's own. The
 * tests are compiled with each of them where NVIDIA's headers are installed. They call functions of
 * this library that were compiled with the former.
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
