/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by cuBLASLt with the fastest algorithm that its heuristic proposes.
 */
#ifndef CLI_CUBLASLT_H
#define CLI_CUBLASLT_H

#include "cublas_load.h"
#include "timed_operands.h"

/* A product. It is computed as C^T := op(B)^T*op(A)^T (see cublas.c), so cuBLASLt's matrix A is our
 * B, and its B is our A. */
typedef struct cublaslt_product {
    const cublas *lib;
    tgl_problem problem;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t A, B, C;
    cublasLtMatmulAlgo_t algo;
    void *workspace;
    size_t workspace_size;
} cublaslt_product;

/* Chooses the algorithm: runs each candidate a few times on the operands. false: none works, and
 * message says why. Call cublaslt_release() in either case. */
bool cublaslt_choose(cublaslt_product *x, const cublas *lib, const operands *o, char *message,
                     size_t message_size);
void cublaslt_release(cublaslt_product *x);

/* One run with the algorithm. false: cuBLASLt refused. */
bool cublaslt_run(const cublaslt_product *x, operand_set s);

#endif
