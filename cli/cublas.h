/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's cuBLAS and cuBLASLt beside Tegula on a CUDA device, found at run time like every other
 * peer; the program needs neither to build nor to run.
 */
#ifndef CLI_CUBLAS_H
#define CLI_CUBLAS_H

#include "timed_operands.h"

#include <stdbool.h>

typedef struct cublas cublas;

/* cuBLAS as most call it, with the algorithm it chooses; and the fastest of all the algorithms that
 * cuBLASLt's heuristic proposes, which takes trying them. */
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

/* A product that is prepared. Arithmetic is that of the type, without TF32 and the like. */
typedef struct cublas_product cublas_product;

/* For CUBLAS_LT_BEST runs each candidate a few times on the operands. NULL: message says why. */
cublas_product *cublas_prepare(cublas *c, cublas_way way, const operands *o, char *message,
                               size_t message_size);
void cublas_release(cublas_product *x);

/* C := op(A)*op(B) on the default stream; false: cuBLAS refused. */
bool cublas_run(const cublas_product *x, operand_set set);

#endif
