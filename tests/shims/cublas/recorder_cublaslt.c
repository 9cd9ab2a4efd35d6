/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake libcublasLt.so.13 (recorder.h). The attributes of descriptors, their sizes and their
 * defaults are those of cuBLASLt 13.1. Getters and setters require these sizes, as in cuBLASLt.
 */
#include "cublas_abi.h"
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 7, NUMBERS = 40 };

typedef struct stored_value {
    size_t size; /* 0: there is no attribute with this number */
    long long value;
} stored_value;

/* The two kinds of descriptors. */
struct cublasLtMatmulDesc {
    stored_value attributes[NUMBERS];
};
struct cublasLtMatrixLayout {
    stored_value attributes[NUMBERS];
};

static const stored_value default_desc[NUMBERS] = {
    [0] = {4, 0},  [1] = {4, 0},   [2] = {4, 0},  [3] = {4, 0},   [4] = {4, 0},  [5] = {4, 0},
    [6] = {4, 2},  [7] = {4, 1},   [8] = {8, 0},  [10] = {8, 0},  [11] = {8, 0}, [12] = {8, 0},
    [13] = {8, 0}, [14] = {8, 0},  [15] = {4, 0}, [16] = {4, 0},  [17] = {8, 0}, [18] = {8, 0},
    [19] = {8, 0}, [20] = {8, 0},  [21] = {8, 0}, [22] = {4, -1}, [23] = {8, 0}, [24] = {8, 0},
    [25] = {1, 0}, [26] = {4, -1}, [31] = {4, 0}, [32] = {4, 0},  [33] = {4, 0}, [34] = {4, 0},
    [35] = {4, 0}, [36] = {8, 0},  [37] = {4, 0}, [38] = {8, 0},
};
static const stored_value default_layout[NUMBERS] = {
    [0] = {4, 0}, [1] = {4, 0}, [2] = {8, 0}, [3] = {8, 0}, [4] = {8, 0},
    [5] = {4, 1}, [6] = {8, 0}, [7] = {8, 0}, [8] = {4, 0},
};

static cublasStatus_t set(stored_value *all, int number, const void *value, size_t size)
{
    if (number < 0 || number >= NUMBERS || size == 0 || all[number].size != size)
        return INVALID_VALUE;
    memcpy(&all[number].value, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* Reads an attribute. If size is 0, only *written is set, to the size of the attribute. */
static cublasStatus_t get(const stored_value *all, int number, void *value, size_t size,
                          size_t *written)
{
    if (number < 0 || number >= NUMBERS || all[number].size == 0) return INVALID_VALUE;
    if (size != 0 && size != all[number].size) return INVALID_VALUE;
    *written = all[number].size;
    memcpy(value != NULL ? value : &(long long){0}, &all[number].value, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size);

RECORDER_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                                     cublasComputeType_t compute,
                                                     cudaDataType scale)
{
    *desc = malloc(sizeof **desc);
    memcpy((*desc)->attributes, default_desc, sizeof default_desc);
    (*desc)->attributes[CUBLASLT_MATMUL_DESC_COMPUTE_TYPE].value = compute;
    (*desc)->attributes[CUBLASLT_MATMUL_DESC_SCALE_TYPE].value = scale;
    return CUBLAS_STATUS_SUCCESS;
}

RECORDER_API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                           cublasLtMatmulDescAttributes_t attribute,
                                                           const void *value, size_t size)
{
    return set(desc->attributes, attribute, value, size);
}

RECORDER_API cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                                                           cublasLtMatmulDescAttributes_t attribute,
                                                           void *value, size_t size,
                                                           size_t *written)
{
    return get(desc->attributes, attribute, value, size, written);
}

RECORDER_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

RECORDER_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                                       cudaDataType type, uint64_t rows,
                                                       uint64_t cols, int64_t ld)
{
    *layout = malloc(sizeof **layout);
    memcpy((*layout)->attributes, default_layout, sizeof default_layout);
    (*layout)->attributes[CUBLASLT_MATRIX_LAYOUT_TYPE].value = type;
    (*layout)->attributes[CUBLASLT_MATRIX_LAYOUT_ROWS].value = (long long)rows;
    (*layout)->attributes[CUBLASLT_MATRIX_LAYOUT_COLS].value = (long long)cols;
    (*layout)->attributes[CUBLASLT_MATRIX_LAYOUT_LD].value = ld;
    return CUBLAS_STATUS_SUCCESS;
}

RECORDER_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void *value,
    size_t size)
{
    return set(layout->attributes, attribute, value, size);
}

RECORDER_API cublasStatus_t cublasLtMatrixLayoutGetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, void *value,
    size_t size, size_t *written)
{
    return get(layout->attributes, attribute, value, size, written);
}

RECORDER_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- The product ----------------------------------------------------------------------------- */

static _Thread_local recorded_call latest;

recorder_take_function recorder_take;

RECORDER_API recorded_call recorder_take(void)
{
    const recorded_call taken = latest;
    latest = (recorded_call){.function = NULL};
    return taken;
}

RECORDER_API cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
    cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta,
    const void *C, cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
    const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    const long long words[] = {(long long)handle, (long long)desc,      (long long)alpha,
                               (long long)A,      (long long)a,         (long long)B,
                               (long long)b,      (long long)beta,      (long long)C,
                               (long long)c,      (long long)D,         (long long)d,
                               (long long)algo,   (long long)workspace, (long long)workspace_bytes,
                               (long long)stream};
    latest = (recorded_call){.function = "cublasLtMatmul", .count = sizeof words / sizeof words[0]};
    memcpy(latest.words, words, sizeof words);
    return RECORDED;
}
