/* SPDX-License-Identifier: Apache-2.0 */
#include "cublas_matrices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tgl_type element_type(cudaDataType type)
{
    return type == CUDA_R_32F       ? TGL_F32
           : type == CUDA_R_64F     ? TGL_F64
           : type == CUDA_R_16F     ? TGL_F16
           : type == CUDA_C_32F     ? TGL_C64
           : type == CUDA_C_64F     ? TGL_C128
           : type == CUDA_R_8F_E4M3 ? TGL_F8_E4M3
           : type == CUDA_R_8F_E5M2 ? TGL_F8_E5M2
           : type == CUDA_R_8I      ? TGL_I8
           : type == CUDA_R_32I     ? TGL_I32
                                    : TGL_BF16;
}

batch matrices_make(uint64_t *seed, cudaDataType type, int64_t rows, int64_t cols, int64_t count,
                    bool is_reversed)
{
    batch x = {.type = element_type(type), .rows = rows, .cols = cols, .count = count};
    x.ld = rows + rig_between(seed, 0, 3);
    if (x.ld == 0) x.ld = 1;
    x.stride = x.ld * cols + rig_between(seed, 0, 5);
    x.elements = x.stride * count + 1;
    x.memory = malloc((size_t)x.elements * tgl_type_size(x.type));
    assert_non_null(x.memory);
    for (int64_t i = 0; i < x.elements * element_parts(x.type); i++)
        element_set(x.type, x.memory, i, rig_between(seed, -2, 2));
    for (int64_t i = 0; i < count; i++)
        x.pointers[i] = (char *)x.memory + (is_reversed ? count - 1 - i : i) * x.stride *
                                               (int64_t)tgl_type_size(x.type);
    return x;
}

void matrices_fill(const batch *x, double value)
{
    for (int64_t i = 0; i < x->elements * element_parts(x->type); i++)
        element_set(x->type, x->memory, i, value);
}

double complex matrices_at(const batch *x, int64_t index, cublasOperation_t trans, int64_t row,
                           int64_t col)
{
    const int64_t at = trans == CUBLAS_OP_N ? row + col * x->ld : col + row * x->ld;
    if (element_parts(x->type) == 1) return element_get(x->type, x->pointers[index], at);
    double complex value = element_get(x->type, x->pointers[index], 2 * at);
    const double im = element_get(x->type, x->pointers[index], 2 * at + 1);
    ((double *)&value)[1] = trans == CUBLAS_OP_C ? -im : im; /* clang 14 has no CMPLX() */
    return value;
}

void matrices_set(const batch *x, int64_t index, int64_t row, int64_t col, double complex value)
{
    const int parts = element_parts(x->type);
    const int64_t at = parts * (row + col * x->ld);
    element_set(x->type, x->pointers[index], at, creal(value));
    if (parts == 2) element_set(x->type, x->pointers[index], at + 1, cimag(value));
}

batch matrices_copy(const batch *x)
{
    batch y = *x;
    const size_t bytes = (size_t)x->elements * tgl_type_size(x->type);
    y.memory = malloc(bytes);
    assert_non_null(y.memory);
    memcpy(y.memory, x->memory, bytes);
    for (int64_t i = 0; i < x->count; i++)
        y.pointers[i] = (char *)y.memory + ((char *)x->pointers[i] - (char *)x->memory);
    return y;
}

void assert_same_matrices(const batch *x, const batch *expected)
{
    for (int64_t i = 0; i < x->elements * element_parts(x->type); i++) {
        const double found = element_get(x->type, x->memory, i);
        const double right = element_get(expected->type, expected->memory, i);
        if (found != right && !(isnan(found) && isnan(right)))
            fail_msg("number %lld is %g instead of %g", (long long)i, found, right);
    }
}
