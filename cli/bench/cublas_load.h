/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS and cuBLASLt on a CUDA device. They are loaded at run time; the program builds and runs
 * without them.
 */
#ifndef CLI_CUBLAS_LOAD_H
#define CLI_CUBLAS_LOAD_H

#include "cublas_api.h"
#include "tegula/tegula.h"

#include <stdbool.h>

typedef struct cublas {
    cublas_functions call;
    tgl_device *dev;
    int device;    /* the driver's number of the device */
    void *context; /* the device's primary context; NULL: not retained */
    cublasHandle_t handle;
    cublasLtHandle_t light;
    char version[32];
} cublas;

/* Loads cuBLAS for a CUDA device and makes the device's context current on the calling thread until
 * cublas_close(), which the same thread must call. TEGULA_CUBLAS names the library or its folder;
 * by default the folders of the loader, of toolkits and of Python wheels are searched. NULL:
 * message says what is missing. */
cublas *cublas_open(tgl_device *dev, char *message, size_t message_size);
void cublas_close(cublas *c);

/* The version of cuBLAS: "13.1.0". */
const char *cublas_version(const cublas *c);

#endif
