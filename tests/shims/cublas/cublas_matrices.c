/* SPDX-License-Identifier: Apache-2.0 */
#include "cublas_matrices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tgl_type element_type(cudaDataType type)
{
    return type == CUDA_R_32F   ? TGL_F32
           : type == CUDA_R_64F ? TGL_F64
           : type == CUDA_R_16F ? TGL_F16
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
    for (int64_t i = 0; i < x.elements; i++)
        element_set(x.type, x.memory, i, rig_between(seed, -2, 2));
    for (int64_t i = 0; i < count; i++)
        x.pointers[i] = (char *)x.memory + (is_reversed ? count - 1 - i : i) * x.stride *
                                               (int64_t)tgl_type_size(x.type);
    return x;
}

void matrices_fill(const batch *x, double value)
{
    for (int64_t i = 0; i < x->elements; i++)
        element_set(x->type, x->memory, i, value);
}

double matrices_at(const batch *x, int64_t index, cublasOperation_t trans, int64_t row, int64_t col)
{
    return trans == CUBLAS_OP_N ? element_get(x->type, x->pointers[index], row + col * x->ld)
                                : element_get(x->type, x->pointers[index], col + row * x->ld);
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
    for (int64_t i = 0; i < x->elements; i++) {
        const double found = element_get(x->type, x->memory, i);
        const double right = element_get(expected->type, expected->memory, i);
        if (found != right && !(isnan(found) && isnan(right)))
            fail_msg("element %lld is %g instead of %g", (long long)i, found, right);
    }
}
