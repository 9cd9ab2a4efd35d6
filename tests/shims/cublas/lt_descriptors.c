/* SPDX-License-Identifier: Apache-2.0 */
#include "lt_descriptors.h"

#include <stdlib.h>

cublasLtHandle_t lt_handle;
bool lt_is_recorded;

/* Calls the function of the library under test, with the prototype in NVIDIA's documentation. */
cublasLtMatmulDesc_t make_desc(int compute, int scale)
{
    cublasStatus_t (*create)(cublasLtMatmulDesc_t *, int, int) = (cublasStatus_t(*)(
        cublasLtMatmulDesc_t *, int, int))rig_lt_function("cublasLtMatmulDescCreate");
    cublasLtMatmulDesc_t desc;
    assert_int_equal(create(&desc, compute, scale), CUBLAS_STATUS_SUCCESS);
    return desc;
}

void set_desc(cublasLtMatmulDesc_t desc, int attribute, const void *value, size_t size)
{
    cublasStatus_t (*set)(cublasLtMatmulDesc_t, int, const void *, size_t) =
        (cublasStatus_t(*)(cublasLtMatmulDesc_t, int, const void *, size_t))rig_lt_function(
            "cublasLtMatmulDescSetAttribute");
    assert_int_equal(set(desc, attribute, value, size), CUBLAS_STATUS_SUCCESS);
}

void set_int(cublasLtMatmulDesc_t desc, int attribute, int32_t value)
{
    set_desc(desc, attribute, &value, sizeof value);
}

cublasLtMatrixLayout_t make_layout(int type, int64_t rows, int64_t cols, int64_t ld)
{
    cublasStatus_t (*create)(cublasLtMatrixLayout_t *, int, uint64_t, uint64_t, int64_t) =
        (cublasStatus_t(*)(cublasLtMatrixLayout_t *, int, uint64_t, uint64_t,
                           int64_t))rig_lt_function("cublasLtMatrixLayoutCreate");
    cublasLtMatrixLayout_t layout;
    assert_int_equal(create(&layout, type, (uint64_t)rows, (uint64_t)cols, ld),
                     CUBLAS_STATUS_SUCCESS);
    return layout;
}

void set_layout(cublasLtMatrixLayout_t layout, int attribute, const void *value, size_t size)
{
    cublasStatus_t (*set)(cublasLtMatrixLayout_t, int, const void *, size_t) =
        (cublasStatus_t(*)(cublasLtMatrixLayout_t, int, const void *, size_t))rig_lt_function(
            "cublasLtMatrixLayoutSetAttribute");
    assert_int_equal(set(layout, attribute, value, size), CUBLAS_STATUS_SUCCESS);
}

void drop_desc(cublasLtMatmulDesc_t desc)
{
    ((cublasStatus_t(*)(cublasLtMatmulDesc_t))rig_lt_function("cublasLtMatmulDescDestroy"))(desc);
}

void drop_layout(cublasLtMatrixLayout_t layout)
{
    ((cublasStatus_t(*)(cublasLtMatrixLayout_t))rig_lt_function("cublasLtMatrixLayoutDestroy"))(
        layout);
}

int lt_make_handle(void **state)
{
    (void)state;
    lt_handle = calloc(1, 1 << 20);
    return lt_handle != NULL ? 0 : -1;
}

int lt_load(int argc, char **argv)
{
    lt_is_recorded = argc < 2;
    setenv("TEGULA_CUBLAS_TRACE", "1", 1);
    setenv("TEGULA_CUBLAS_WORKSPACE", "0", 1);
    return rig_load(lt_is_recorded ? NULL : argv[1]);
}
