/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's cuBLAS and cuBLASLt as peers on a CUDA device. They are loaded at run time; the program
 * builds and runs without them.
 */
#ifndef CLI_CUBLAS_H
#define CLI_CUBLAS_H

#include "timed_operands.h"

#include <stdbool.h>

typedef struct cublas cublas;

/* CUBLAS_DEFAULT: cublasGemmEx() and the like, with the algorithm that cuBLAS chooses.
 * CUBLAS_LT_BEST: the fastest of the algorithms that cuBLASLt's heuristic proposes; all are timed.
 */
typedef enum cublas_way { CUBLAS_DEFAULT, CUBLAS_LT_BEST, CUBLAS_WAYS } cublas_way;

/* "cublas", "cublaslt" */
const char *cublas_way_name(cublas_way way);

/* Loads cuBLAS for a CUDA device and makes the device's context current until cublas_close(), on
 * the thread that calls both. TEGULA_CUBLAS names the library or its folder; else it is looked for
 * where the loader, toolkits and Python wheels have it. NULL: message says what is missing. */
cublas *cublas_open(tgl_device *dev, char *message, size_t message_size);
void cublas_close(cublas *c);

/* "13.1.0" */
const char *cublas_version(const cublas *c);

/* A product that is prepared: row-major, tight, of the types f32, f64, f16 or bf16. Sums are
 * accumulated in f32 (f64 in f64); TF32 is used for f32 with TGL_COMPUTE_TF32 only. */
typedef struct cublas_product cublas_product;

/* For CUBLAS_LT_BEST runs each candidate a few times on the operands. NULL: message says why. */
cublas_product *cublas_prepare(cublas *c, cublas_way way, const operands *o, char *message,
                               size_t message_size);
void cublas_release(cublas_product *x);

/* C := op(A)*op(B) on the default stream; false: cuBLAS refused. */
bool cublas_run(const cublas_product *x, operand_set set);

/* The product of the first set, with the algorithm that cuBLAS chooses, and waits for it. *is_done:
 * cuBLAS takes the product. */
tgl_status cublas_multiply(cublas *c, const operands *o, bool *is_done);

#endif
