/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files behind cublas.h share: cuBLAS as it was loaded, and a prepared product.
 */
#ifndef CLI_CUBLAS_STATE_H
#define CLI_CUBLAS_STATE_H

#include "cublas.h"
#include "cublas_api.h"

struct cublas {
    cublas_functions call;
    tgl_device *dev;
    int device;    /* the driver's number of the device */
    void *context; /* the device's primary context; NULL: not retained */
    cublasHandle_t handle;
    cublasLtHandle_t light;
    char version[32];
};

struct cublas_product {
    const cublas *lib;
    cublas_way way;
    tgl_problem problem;
    /* The members below are for cuBLASLt. Its matrix A is our B, and its B our A. */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t A, B, C;
    cublasLtMatmulAlgo_t algo;
    void *workspace;
    size_t workspace_size;
};

/* cudaDataType_t (also of alpha and beta), cublasComputeType_t and cublasOperation_t of a problem.
 */
int cublas_data_type(tgl_type type);
int cublas_scale_type(tgl_type type);
int cublas_compute_type(const tgl_problem *p);
int cublas_operation(tgl_transpose trans);

/* The stride from one result of a batch to the next, in elements. */
int64_t cublas_result_stride(const tgl_problem *p);

/* cublaslt.c: one run with an algorithm, and the choice of the fastest. */
cublasStatus_t cublaslt_run(const cublas_product *x, const cublasLtMatmulAlgo_t *algo,
                            operand_set s);
bool cublaslt_choose(cublas_product *x, const operands *o, char *message, size_t message_size);

/* The address of the number `value`, 1 or 0, in the type of alpha and beta. */
const void *cublas_scalar(const tgl_problem *p, int value);

#endif
