/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by NVIDIA's cuBLAS and cuBLASLt, as peers (libraries that Tegula is compared with) on a
 * CUDA device.
 */
#ifndef CLI_CUBLAS_H
#define CLI_CUBLAS_H

#include "cublas_load.h"
#include "timed_operands.h"

/* CUBLAS_DEFAULT: cublasGemmEx() and the like, with the algorithm that cuBLAS chooses.
 * CUBLAS_LT_BEST: the fastest of up to 16 algorithms that cuBLASLt's heuristic proposes. */
typedef enum cublas_way { CUBLAS_DEFAULT, CUBLAS_LT_BEST, CUBLAS_WAYS } cublas_way;

/* The name on the command line: "cublas" or "cublaslt". */
const char *cublas_way_name(cublas_way way);

/* A prepared product of row-major, tight matrices of the types f32, f64, f16, bf16, i8, c64 or
 * c128; with CUBLAS_LT_BEST also e4m3 or e5m2. Sums of f64 and c128 are accumulated in f64, sums of
 * i8 in i32, all other sums in f32. f32 and c64 use TF32 with TGL_COMPUTE_TF32 only. */
typedef struct cublas_product cublas_product;

/* Prepares a product of the operands' problem. CUBLAS_LT_BEST runs each candidate algorithm a few
 * times on the operands and keeps the fastest. NULL: failed, and message says why. */
cublas_product *cublas_prepare(cublas *c, cublas_way way, const operands *o, char *message,
                               size_t message_size);
void cublas_release(cublas_product *x);

/* Enqueues C := op(A)*op(B) on the default stream. False: cuBLAS returned an error. */
bool cublas_run(const cublas_product *x, operand_set set);

/* Computes the product of the first set of matrices with the algorithm that cuBLAS chooses, and
 * waits until the result is complete. *is_done := whether cuBLAS has computed it; false: cuBLAS
 * does not support the product, or returned an error. */
tgl_status cublas_multiply(cublas *c, const operands *o, bool *is_done);

#endif
