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
 * CUBLAS_LT_BEST: the fastest of all algorithms that cuBLASLt's heuristic proposes. */
typedef enum cublas_way { CUBLAS_DEFAULT, CUBLAS_LT_BEST, CUBLAS_WAYS } cublas_way;

/* The peer's name on the command line: "cublas" or "cublaslt". */
const char *cublas_way_name(cublas_way way);

/* Loads cuBLAS for a CUDA device and makes the device's context current on the calling thread until
 * cublas_close(), which the same thread must call. TEGULA_CUBLAS names the library or its folder;
 * by default the folders of the loader, of toolkits and of Python wheels are searched. NULL:
 * message says what is missing. */
cublas *cublas_open(tgl_device *dev, char *message, size_t message_size);
void cublas_close(cublas *c);

/* The version of cuBLAS: "13.1.0". */
const char *cublas_version(const cublas *c);

/* A prepared product: row-major, tight, of the types f32, f64, f16, bf16, i8, c64 or c128. Sums are
 * accumulated in f32, those of f64 and c128 in f64, of i8 in i32. f32 and c64 use TF32 with
 * TGL_COMPUTE_TF32 only. */
typedef struct cublas_product cublas_product;

/* Prepares a product. CUBLAS_LT_BEST runs each candidate a few times on the operands. NULL: message
 * says why. */
cublas_product *cublas_prepare(cublas *c, cublas_way way, const operands *o, char *message,
                               size_t message_size);
void cublas_release(cublas_product *x);

/* C := op(A)*op(B) on the default stream; false: cuBLAS refused. */
bool cublas_run(const cublas_product *x, operand_set set);

/* Computes the product of the first set with the algorithm that cuBLAS chooses, and waits for it.
 * *is_done: false if cuBLAS does not support the product. */
tgl_status cublas_multiply(cublas *c, const operands *o, bool *is_done);

#endif
