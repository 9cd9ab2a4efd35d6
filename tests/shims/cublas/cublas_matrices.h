/* SPDX-License-Identifier: Apache-2.0
 *
 * Column-major matrices of small whole numbers, of any element type, for tests.
 */
#ifndef TGL_CUBLAS_MATRICES_H
#define TGL_CUBLAS_MATRICES_H

#include "cublas_rig.h"

#include <complex.h>

/* A batch of matrices in one block of memory, one after the other, in the order of the batch or
 * reversed. */
typedef struct batch {
    tgl_type type;
    int64_t rows, cols, ld, stride, count, elements;
    void *memory;
    void *pointers[8]; /* the addresses of the matrices, in the order of the batch */
} batch;

/* The tgl_type of a cudaDataType. */
tgl_type element_type(cudaDataType type);

/* Makes `count` matrices of whole numbers from -2 to 2, with padding between columns and matrices.
 * is_reversed: the last matrix of the batch comes first in memory. The caller frees x.memory. */
batch matrices_make(uint64_t *seed, cudaDataType type, int64_t rows, int64_t cols, int64_t count,
                    bool is_reversed);
void matrices_fill(const batch *x, double value);
batch matrices_copy(const batch *x);

/* Element (row, col) of op(X) for matrix number `index`. */
double complex matrices_at(const batch *x, int64_t index, cublasOperation_t trans, int64_t row,
                           int64_t col);
/* Sets element (row, col) of the matrix. */
void matrices_set(const batch *x, int64_t index, int64_t row, int64_t col, double complex value);

/* Compares all of the memory, including the padding between columns, which must not change. */
void assert_same_matrices(const batch *x, const batch *expected);

#endif
