/* SPDX-License-Identifier: Apache-2.0
 *
 * The constants of cuBLAS for the types and operations of a problem, and the scalars 0 and 1.
 */
#include "cublas_types.h"
#include "cublas_api.h"

#include <stdbool.h>

int cublas_operation(tgl_transpose trans)
{
    return trans == TGL_NO_TRANS     ? CUBLAS_OP_N
           : trans == TGL_CONJ_TRANS ? CUBLAS_OP_C
                                     : CUBLAS_OP_T;
}

int64_t cublas_result_stride(const tgl_problem *p)
{
    return p->type_d != 0 ? p->stride_d : p->stride_c;
}

/* Columns: type; cudaDataType; cublasComputeType_t; type of alpha and beta; 0 and 1 of that type,
 * complex numbers as pairs. */
static const float f32[][2] = {{0, 0}, {1, 0}};
static const double f64[][2] = {{0, 0}, {1, 0}};
static const int32_t i32[] = {0, 1};
static const struct type_row {
    tgl_type type;
    int data, compute, scale;
    const void *scalars[2];
} types[] = {
    {TGL_F32, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_F64, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, {f64[0], f64[1]}},
    {TGL_F16, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_BF16, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_F8_E4M3, CUDA_R_8F_E4M3, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_F8_E5M2, CUDA_R_8F_E5M2, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_I8, CUDA_R_8I, CUBLAS_COMPUTE_32I, CUDA_R_32I, {&i32[0], &i32[1]}},
    {TGL_I32, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, {&i32[0], &i32[1]}},
    {TGL_C64, CUDA_C_32F, CUBLAS_COMPUTE_32F, CUDA_C_32F, {f32[0], f32[1]}},
    {TGL_C128, CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F, {f64[0], f64[1]}},
};

static const struct type_row *row_of(tgl_type type)
{
    const int count = (int)(sizeof types / sizeof types[0]);
    for (int i = 0; i < count; i++)
        if (types[i].type == type) return &types[i];
    return &types[0];
}

int cublas_data_type(tgl_type type)
{
    return row_of(type)->data;
}

int cublas_scale_type(tgl_type type)
{
    return row_of(type)->scale;
}

int cublas_compute_type(const tgl_problem *p)
{
    const bool is_single = p->type_a == TGL_F32 || p->type_a == TGL_C64;
    return is_single && p->compute == TGL_COMPUTE_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                       : row_of(p->type_a)->compute;
}

const void *cublas_scalar(const tgl_problem *p, int value)
{
    return row_of(p->type_a)->scalars[value];
}
