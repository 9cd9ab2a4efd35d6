/* SPDX-License-Identifier: Apache-2.0
 *
 * cublasLtMatmul(). Its descriptors are opaque: cuBLASLt returns one attribute per call. If an
 * attribute that this file does not know has another value than in a new descriptor, cuBLASLt
 * computes the product. Attributes have small numbers: this file compares all attributes with
 * numbers below 64, also those that only later versions of cuBLASLt have.
 */
#include "cublas_shim.h"

#include <string.h>

enum { NUMBERS = 64, VALUE_MAX = 64 };

/* ---- Unknown attributes ------------------------------------------------- */

/* An attribute that this file does not know, and its value in a new descriptor. */
typedef struct unknown_attribute {
    int number;
    size_t size;
    char value[VALUE_MAX];
} unknown_attribute;

typedef struct unknown_attributes {
    int count;
    unknown_attribute attributes[NUMBERS];
} unknown_attributes;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_known; /* the two lists below are complete */
static unknown_attributes of_desc, of_layout;

/* A function that gets an attribute of a descriptor: of a product, or of a matrix layout. */
typedef cublasStatus_t get_attribute(void *object, int attribute, void *value, size_t size,
                                     size_t *written);

static cublasStatus_t get_of_desc(void *object, int attribute, void *value, size_t size,
                                  size_t *written)
{
    return CUBLAS_REAL(cublasLtMatmulDescGetAttribute)(object, attribute, value, size, written);
}

static cublasStatus_t get_of_layout(void *object, int attribute, void *value, size_t size,
                                    size_t *written)
{
    return CUBLAS_REAL(cublasLtMatrixLayoutGetAttribute)(object, attribute, value, size, written);
}

/* Lists the unknown attributes of `object` and their values. understood: bit i is set if this file
 * knows attribute i. */
static bool list_unknown(get_attribute *get, void *object, uint64_t understood,
                         unknown_attributes *list)
{
    list->count = 0; /* an earlier call may have been interrupted by a fork */
    for (int i = 0; i < NUMBERS; i++) {
        unknown_attribute *a = &list->attributes[list->count];
        size_t size = 0, written;
        if ((understood >> i & 1) != 0) continue;
        if (get(object, i, NULL, 0, &size) != CUBLAS_STATUS_SUCCESS || size == 0) continue;
        if (size > sizeof a->value ||
            get(object, i, a->value, size, &written) != CUBLAS_STATUS_SUCCESS)
            return false;
        a->number = i;
        a->size = size;
        list->count++;
    }
    return true;
}

/* Whether the attributes of the list have the values of a new descriptor. skipped: a bit for each
 * attribute that may have any value. */
static bool has_defaults(get_attribute *get, void *object, uint64_t skipped,
                         const unknown_attributes *list)
{
    for (int i = 0; i < list->count; i++) {
        const unknown_attribute *a = &list->attributes[i];
        char value[VALUE_MAX];
        size_t written;
        if ((skipped >> a->number & 1) != 0) continue;
        if (get(object, a->number, value, a->size, &written) != CUBLAS_STATUS_SUCCESS ||
            memcmp(value, a->value, a->size) != 0)
            return false;
    }
    return true;
}

#define BIT(attribute) (UINT64_C(1) << (attribute))

/* The attributes that only products of FP8 may set. For other products they count as unknown. */
#define OF_F8                                                                                      \
    (BIT(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER) | BIT(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) |        \
     BIT(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER) | BIT(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER) |       \
     BIT(CUBLASLT_MATMUL_DESC_FAST_ACCUM) | BIT(CUBLASLT_MATMUL_DESC_A_SCALE_MODE) |               \
     BIT(CUBLASLT_MATMUL_DESC_B_SCALE_MODE))

static bool list_of_desc(void)
{
    const uint64_t understood =
        BIT(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE) | BIT(CUBLASLT_MATMUL_DESC_SCALE_TYPE) |
        BIT(CUBLASLT_MATMUL_DESC_POINTER_MODE) | BIT(CUBLASLT_MATMUL_DESC_TRANSA) |
        BIT(CUBLASLT_MATMUL_DESC_TRANSB) | BIT(CUBLASLT_MATMUL_DESC_EPILOGUE) |
        BIT(CUBLASLT_MATMUL_DESC_BIAS_POINTER) | BIT(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE) |
        BIT(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
    __typeof__(&cublasLtMatmulDescCreate) create = CUBLAS_REAL(cublasLtMatmulDescCreate);
    __typeof__(&cublasLtMatmulDescDestroy) destroy = CUBLAS_REAL(cublasLtMatmulDescDestroy);
    cublasLtMatmulDesc_t desc;
    if (create == NULL || destroy == NULL || CUBLAS_REAL(cublasLtMatmulDescGetAttribute) == NULL ||
        create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS)
        return false;
    const bool is_listed = list_unknown(get_of_desc, desc, understood, &of_desc);
    destroy(desc);
    return is_listed;
}

static bool list_of_layout(void)
{
    const uint64_t understood =
        BIT(CUBLASLT_MATRIX_LAYOUT_TYPE) | BIT(CUBLASLT_MATRIX_LAYOUT_ORDER) |
        BIT(CUBLASLT_MATRIX_LAYOUT_ROWS) | BIT(CUBLASLT_MATRIX_LAYOUT_COLS) |
        BIT(CUBLASLT_MATRIX_LAYOUT_LD) | BIT(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) |
        BIT(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
    __typeof__(&cublasLtMatrixLayoutCreate) create = CUBLAS_REAL(cublasLtMatrixLayoutCreate);
    __typeof__(&cublasLtMatrixLayoutDestroy) destroy = CUBLAS_REAL(cublasLtMatrixLayoutDestroy);
    cublasLtMatrixLayout_t layout;
    if (create == NULL || destroy == NULL ||
        CUBLAS_REAL(cublasLtMatrixLayoutGetAttribute) == NULL ||
        create(&layout, CUDA_R_32F, 1, 1, 1) != CUBLAS_STATUS_SUCCESS)
        return false;
    const bool is_listed = list_unknown(get_of_layout, layout, understood, &of_layout);
    destroy(layout);
    return is_listed;
}

static void list_all(void)
{
    is_known = list_of_desc() && list_of_layout();
}

/* ---- Reading descriptors --------------------------------------------------------------------- */

/* A matrix layout: a matrix, or a batch of matrices. */
typedef struct matrix {
    uint32_t type;
    int32_t order, batch;
    uint64_t rows, cols;
    int64_t ld, stride;
} matrix;

static bool read_value(get_attribute *get, void *object, int attribute, void *value, size_t size)
{
    size_t written;
    return get(object, attribute, value, size, &written) == CUBLAS_STATUS_SUCCESS;
}

/* READ_DESC(desc, COMPUTE_TYPE, &value) reads an attribute into a variable of its size. */
#define READ_DESC(desc, attribute, value)                                                          \
    read_value(get_of_desc, desc, CUBLASLT_MATMUL_DESC_##attribute, value, sizeof *(value))
#define READ_LAYOUT(layout, attribute, value)                                                      \
    read_value(get_of_layout, layout, CUBLASLT_MATRIX_LAYOUT_##attribute, value, sizeof *(value))

static bool read_layout(cublas_product *p, cublasLtMatrixLayout_t layout, matrix *x)
{
    if (!READ_LAYOUT(layout, TYPE, &x->type) || !READ_LAYOUT(layout, ORDER, &x->order) ||
        !READ_LAYOUT(layout, ROWS, &x->rows) || !READ_LAYOUT(layout, COLS, &x->cols) ||
        !READ_LAYOUT(layout, LD, &x->ld) || !READ_LAYOUT(layout, BATCH_COUNT, &x->batch) ||
        !READ_LAYOUT(layout, STRIDED_BATCH_OFFSET, &x->stride))
        return cublas_refuse(p, "a layout cannot be read");
    if (x->order != CUBLASLT_ORDER_COL) return cublas_refuse(p, "a layout of order %d", x->order);
    if (x->rows > INT64_MAX || x->cols > INT64_MAX) return cublas_refuse(p, "an illegal size");
    return has_defaults(get_of_layout, layout, 0, &of_layout) ||
           cublas_refuse(p, "a layout has an attribute that is not served");
}

/* The type of a bias whose type the descriptor does not tell. */
static cudaDataType usual_bias(const cublas_product *p)
{
    return cublas_is_f8(p->type_a) && p->type_d == CUDA_R_32F ? CUDA_R_16BF : p->type_d;
}

static bool read_bias(cublas_product *p, cublasLtMatmulDesc_t desc)
{
    int32_t type;
    if ((p->epilogue & CUBLASLT_EPILOGUE_BIAS) == 0) return true;
    if (!READ_DESC(desc, BIAS_POINTER, &p->bias) ||
        !READ_DESC(desc, BIAS_BATCH_STRIDE, &p->stride_bias) ||
        !READ_DESC(desc, BIAS_DATA_TYPE, &type))
        return cublas_refuse(p, "the bias cannot be read");
    p->type_bias = type != -1 ? (cudaDataType)type : usual_bias(p);
    return true;
}

/* The modes of scales that are served, as cuBLASLt and Tegula name them. The factors have the same
 * order in memory. */
static const struct {
    int32_t mode;
    tgl_scaling scaling;
} scale_modes[] = {
    {CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, TGL_SCALING_TENSOR},
    {CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, TGL_SCALING_LINE},
    {CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, TGL_SCALING_LINE_128},
    {CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, TGL_SCALING_BLOCK},
};

/* Reads the factors of A or B. pointer, mode_at: the numbers of the attributes for their address
 * and their mode. A cuBLASLt before CUDA 12.8 has no modes, and one factor for a matrix. */
static bool read_scale(cublas_product *p, cublasLtMatmulDesc_t desc, int pointer, int mode_at,
                       const void **scale, tgl_scaling *scaling)
{
    int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    if (!read_value(get_of_desc, desc, pointer, scale, sizeof *scale))
        return cublas_refuse(p, "a scale cannot be read");
    read_value(get_of_desc, desc, mode_at, &mode, sizeof mode);
    *scaling = TGL_SCALING_NONE;
    if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F && *scale == NULL) return true;
    for (size_t i = 0; i < sizeof scale_modes / sizeof scale_modes[0]; i++)
        if (scale_modes[i].mode == mode) *scaling = scale_modes[i].scaling;
    return *scaling != TGL_SCALING_NONE || cublas_refuse(p, "scales of mode %d", mode);
}

/* Reads the attributes that only products of FP8 have. */
static bool read_f8(cublas_product *p, cublasLtMatmulDesc_t desc)
{
    int8_t is_fast;
    if (!READ_DESC(desc, FAST_ACCUM, &is_fast) || !READ_DESC(desc, D_SCALE_POINTER, &p->scale_d) ||
        !READ_DESC(desc, AMAX_D_POINTER, &p->amax_d))
        return cublas_refuse(p, "the descriptor cannot be read");
    p->has_fast_sums = is_fast != 0;
    p->scaling_d = p->scale_d != NULL ? TGL_SCALING_TENSOR : TGL_SCALING_NONE;
    if ((p->scale_d != NULL || p->amax_d != NULL) && !cublas_is_f8(p->type_d))
        return cublas_refuse(p, "a scale or amax of D, which is not FP8");
    return read_scale(p, desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                      CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &p->scale_a, &p->scaling_a) &&
           read_scale(p, desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                      CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &p->scale_b, &p->scaling_b);
}

static bool read_desc(cublas_product *p, cublasLtMatmulDesc_t desc)
{
    const bool is_f8 = cublas_is_f8(p->type_a) && cublas_is_f8(p->type_b);
    int32_t compute, scale, mode, trans_a, trans_b;
    uint32_t epilogue;
    if (!READ_DESC(desc, COMPUTE_TYPE, &compute) || !READ_DESC(desc, SCALE_TYPE, &scale) ||
        !READ_DESC(desc, POINTER_MODE, &mode) || !READ_DESC(desc, TRANSA, &trans_a) ||
        !READ_DESC(desc, TRANSB, &trans_b) || !READ_DESC(desc, EPILOGUE, &epilogue))
        return cublas_refuse(p, "the descriptor cannot be read");
    p->compute = compute, p->type_scale = scale;
    p->trans_a = trans_a, p->trans_b = trans_b;
    p->epilogue = (cublasLtEpilogue_t)epilogue;
    p->has_device_scalars = mode == CUBLAS_POINTER_MODE_DEVICE;
    if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
        return cublas_refuse(p, "pointer mode %d", mode);
    if (!has_defaults(get_of_desc, desc, is_f8 ? OF_F8 : 0, &of_desc))
        return cublas_refuse(p, "the descriptor has an attribute that is not served");
    return (!is_f8 || read_f8(p, desc)) && read_bias(p, desc);
}

/* ---- The product ----------------------------------------------------------------------------- */

static bool has_size(const matrix *x, cublasOperation_t trans, int64_t rows, int64_t cols)
{
    const int64_t x_rows = (int64_t)x->rows, x_cols = (int64_t)x->cols;
    return trans == CUBLAS_OP_N ? x_rows == rows && x_cols == cols
                                : x_rows == cols && x_cols == rows;
}

/* Sets the matrices of *p. If their sizes do not match, cuBLASLt gets the call and returns the
 * error. */
static bool set_matrices(cublas_product *p, const matrix *a, const matrix *b, const matrix *c,
                         const matrix *d)
{
    p->m = (int64_t)d->rows, p->n = (int64_t)d->cols;
    p->k = (int64_t)(p->trans_a == CUBLAS_OP_N ? a->cols : a->rows);
    p->type_c = (cudaDataType)c->type;
    p->lda = a->ld, p->ldb = b->ld, p->ldc = c->ld, p->ldd = d->ld;
    p->batch = d->batch;
    if (!has_size(a, p->trans_a, p->m, p->k) || !has_size(b, p->trans_b, p->k, p->n) ||
        !has_size(c, CUBLAS_OP_N, p->m, p->n))
        return cublas_refuse(p, "sizes that do not match");
    if (a->batch != d->batch || b->batch != d->batch || c->batch != d->batch)
        return cublas_refuse(p, "batches that do not match");
    if (p->batch == 1) return true;
    p->stride_a = a->stride, p->stride_b = b->stride;
    p->stride_c = c->stride, p->stride_d = d->stride;
    return true;
}

static bool read_product(cublas_product *p, cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                         cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d)
{
    matrix A, B, C, D;
    pthread_once(&once, list_all);
    if (handle == NULL) return cublas_refuse(p, "the handle is NULL");
    if (!is_known) return cublas_refuse(p, "the descriptors of this cuBLASLt cannot be read");
    if (desc == NULL || a == NULL || b == NULL || c == NULL || d == NULL)
        return cublas_refuse(p, "a descriptor is NULL");
    if (!read_layout(p, d, &D) || !read_layout(p, a, &A) || !read_layout(p, b, &B)) return false;
    p->type_a = (cudaDataType)A.type, p->type_b = (cudaDataType)B.type;
    p->type_d = (cudaDataType)D.type;
    if (!read_desc(p, desc)) return false;
    if (c == d)
        C = D;
    else if (!read_layout(p, c, &C))
        return false;
    return set_matrices(p, &A, &B, &C, &D);
}

CUBLAS_EXPORT cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
    cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta,
    const void *C, cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
    const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    cublas_product p = {
        .routine = "cublasLtMatmul",
        .alpha = alpha,
        .beta = beta,
        .A = A,
        .B = B,
        .C = C,
        .D = D,
        .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
        .stream = stream,
        .workspace = {true, workspace_bytes > 0 ? workspace : NULL, workspace_bytes}};
    if (cublas_is_wanted(&p) && read_product(&p, handle, desc, a, b, c, d) && cublas_serve(&p))
        return CUBLAS_STATUS_SUCCESS;
    return CUBLAS_FORWARD(&p, cublasLtMatmul,
                          (handle, desc, alpha, A, a, B, b, beta, C, c, D, d, algo, workspace,
                           workspace_bytes, stream));
}
