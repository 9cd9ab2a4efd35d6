/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of products: cblas_sgemm_batch(), cblas_sgemm_batch_strided() and the same for doubles,
 * with the arguments that MKL and OpenBLAS give them. All arguments are checked before the first
 * product runs. The error handler gets the position of an illegal argument in the call, counted
 * from 1.
 *
 *   - A batch consists of groups. A group has one set of sizes and an array of pointers to its
 *     matrices, and is computed by tgl_gemm_batched().
 *   - A strided batch has one set of sizes, and constant distances between its matrices. It is
 *     computed by tgl_gemm().
 *
 * The products of a batch run one after the other in two cases: Tegula cannot compute the batch as
 * a whole (for example because of a negative stride or an unaligned matrix), or each product is
 * large enough for the GPU.
 */
#include "blas_shim.h"

#include <stddef.h>

/* ---- Batches --------------------------------------------------------------------------------- */

static bool runs_together(const tgl_device *dev, const blas_gemm *g, int64_t batch)
{
    return dev != NULL && batch > 1 && !blas_wants_gpu(g);
}

/* Computes `batch` column-major products. g: all arguments except the matrices. A, B, C: arrays of
 * `batch` pointers to the matrices. */
static blas_server multiply_pointers(const blas_gemm *g, const void *const *A, const void *const *B,
                                     void *const *C, int64_t batch)
{
    tgl_device *dev = blas_device();
    if (runs_together(dev, g, batch)) {
        tgl_problem problem = blas_problem_of(g);
        problem.batch = batch;
        problem.batching = TGL_POINTERS;
        if (tgl_gemm_batched(dev, &problem, g->alpha, A, B, g->beta, C, NULL) == TGL_OK)
            return BLAS_SERVER_TEGULA;
    }
    blas_server server = BLAS_SERVER_NONE;
    for (int64_t i = 0; i < batch; i++) {
        blas_gemm one = *g;
        one.A = A[i], one.B = B[i], one.C = C[i];
        const blas_server served = blas_multiply(&one);
        if (served > server) server = served;
    }
    return server;
}

/* Strides of a batch: elements from one matrix to the next. */
typedef struct strides {
    int64_t a, b, c;
} strides;

static blas_server multiply_strided(const blas_gemm *g, const strides *stride, int64_t batch)
{
    tgl_device *dev = blas_device();
    if (runs_together(dev, g, batch)) {
        tgl_problem problem = blas_problem_of(g);
        problem.batch = batch;
        problem.stride_a = stride->a, problem.stride_b = stride->b, problem.stride_c = stride->c;
        if (tgl_gemm(dev, &problem, g->alpha, g->A, g->B, g->beta, g->C, NULL) == TGL_OK)
            return BLAS_SERVER_TEGULA;
    }
    const int64_t element = (int64_t)tgl_type_size(g->type);
    blas_server server = BLAS_SERVER_NONE;
    for (int64_t i = 0; i < batch; i++) {
        blas_gemm one = *g;
        one.A = (const char *)g->A + i * stride->a * element;
        one.B = (const char *)g->B + i * stride->b * element;
        one.C = (char *)g->C + i * stride->c * element;
        const blas_server served = blas_multiply(&one);
        if (served > server) server = served;
    }
    return server;
}

/* ---- cblas_xgemm_batch_strided --------------------------------------------------------------- */

/* Converts the number of an argument of cblas_xgemm() to its number in cblas_xgemm_batch_strided(),
 * which has a stride after each leading dimension. */
static int strided_argument(int argument)
{
    if (argument >= 13) return argument + 2; /* the argument comes after stride_a and stride_b */
    return argument >= 10 ? argument + 1 : argument;
}

static void cblas_strided(const char *name, bool is_64, int layout, int trans_a, int trans_b,
                          blas_gemm *g, strides stride, int64_t batch)
{
    blas_error error;
    if (!blas_gemm_of_cblas(layout, trans_a, trans_b, g, &error)) {
        error.argument = strided_argument(error.argument);
        error.row_major_argument = 0;
        blas_report_cblas(name, &error, is_64);
        return;
    }
    if (batch < 0) {
        blas_report_cblas(name, &(blas_error){.argument = 18}, is_64);
        return;
    }
    if (layout == TGL_ROW_MAJOR) stride = (strides){stride.b, stride.a, stride.c};
    blas_trace_gemm(multiply_strided(g, &stride, batch), name, g, batch);
}

#define CBLAS_STRIDED(function, name, T, I)                                                        \
    BLAS_FUNCTION(function, (int layout, int trans_a, int trans_b, I m, I n, I k, T alpha,         \
                             const T *A, I lda, I stride_a, const T *B, I ldb, I stride_b, T beta, \
                             T *C, I ldc, I stride_c, I batch))                                    \
    {                                                                                              \
        blas_gemm g = {BLAS_GEMM_ARGUMENTS(T, ), BLAS_SCALARS(T, &)};                              \
        cblas_strided(name, sizeof(I) == 8, layout, trans_a, trans_b, &g,                          \
                      (strides){stride_a, stride_b, stride_c}, batch);                             \
    }

CBLAS_STRIDED(cblas_sgemm_batch_strided, "cblas_sgemm_batch_strided", float, int32_t)
CBLAS_STRIDED(cblas_dgemm_batch_strided, "cblas_dgemm_batch_strided", double, int32_t)
CBLAS_STRIDED(cblas_sgemm_batch_strided64_, "cblas_sgemm_batch_strided", float, int64_t)
CBLAS_STRIDED(cblas_dgemm_batch_strided64_, "cblas_dgemm_batch_strided", double, int64_t)
BLAS_ALIAS(cblas_sgemm_batch_strided_64, cblas_sgemm_batch_strided64_);
BLAS_ALIAS(cblas_dgemm_batch_strided_64, cblas_dgemm_batch_strided64_);
BLAS_ALIAS(scipy_cblas_sgemm_batch_strided, cblas_sgemm_batch_strided);
BLAS_ALIAS(scipy_cblas_dgemm_batch_strided, cblas_dgemm_batch_strided);
BLAS_ALIAS(scipy_cblas_sgemm_batch_strided64_, cblas_sgemm_batch_strided64_);
BLAS_ALIAS(scipy_cblas_dgemm_batch_strided64_, cblas_dgemm_batch_strided64_);

/* ---- cblas_xgemm_batch ----------------------------------------------------------------------- */

/* The arguments of cblas_xgemm_batch(). The arrays of integers and the arrays alpha and beta have
 * one element per group; the arrays of pointers A, B and C have one element per product. */
typedef struct groups {
    const char *name;
    tgl_type type;
    bool is_64;
    int layout;
    const int *trans_a, *trans_b;
    const void *m, *n, *k, *lda, *ldb, *ldc, *size; /* arrays of int32_t or int64_t */
    const void *alpha, *beta;                       /* arrays of elements of `type` */
    const void *const *A, *const *B;
    void *const *C;
    int64_t count;
} groups;

static int64_t integer(const groups *b, const void *array, int64_t i)
{
    return b->is_64 ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

static double scalar(const groups *b, const void *array, int64_t i)
{
    return b->type == TGL_F32 ? ((const float *)array)[i] : ((const double *)array)[i];
}

/* The column-major product of group i, without its matrices. Returns false and sets *error to the
 * first illegal argument. */
static bool group_of(const groups *b, int64_t i, blas_gemm *g, blas_error *error)
{
    *g = (blas_gemm){.type = b->type,
                     .m = integer(b, b->m, i),
                     .n = integer(b, b->n, i),
                     .k = integer(b, b->k, i),
                     .alpha = scalar(b, b->alpha, i),
                     .beta = scalar(b, b->beta, i),
                     .lda = integer(b, b->lda, i),
                     .ldb = integer(b, b->ldb, i),
                     .ldc = integer(b, b->ldc, i)};
    if (!blas_gemm_of_cblas(b->layout, b->trans_a[i], b->trans_b[i], g, error)) {
        error->row_major_argument = 0;
        return false;
    }
    *error = (blas_error){.argument = 16};
    return integer(b, b->size, i) >= 0;
}

static bool check_groups(const groups *b, blas_error *error)
{
    blas_gemm g;
    for (int64_t i = 0; i < b->count; i++)
        if (!group_of(b, i, &g, error)) return false;
    *error = (blas_error){.argument = 15};
    return b->count >= 0;
}

static void cblas_groups(const groups *b)
{
    blas_error error;
    if (!check_groups(b, &error)) {
        blas_report_cblas(b->name, &error, b->is_64);
        return;
    }
    const bool is_row_major = b->layout == TGL_ROW_MAJOR;
    int64_t first = 0; /* index of the group's first product in the arrays of pointers */
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t size = integer(b, b->size, i);
        blas_gemm g;
        group_of(b, i, &g, &error);
        const void *const *A = (is_row_major ? b->B : b->A) + first;
        const void *const *B = (is_row_major ? b->A : b->B) + first;
        blas_trace_gemm(multiply_pointers(&g, A, B, b->C + first, size), b->name, &g, size);
        first += size;
    }
}

#define CBLAS_GROUPS(function, routine, T, I)                                                      \
    BLAS_FUNCTION(function,                                                                        \
                  (int layout, const int *trans_a, const int *trans_b, const I *m, const I *n,     \
                   const I *k, const T *alpha, const T **a, const I *lda, const T **b,             \
                   const I *ldb, const T *beta, T **c, const I *ldc, I count, const I *size))      \
    {                                                                                              \
        const void *const *A = (const void *const *)a, *const *B = (const void *const *)b;         \
        void *const *C = (void *const *)c;                                                         \
        cblas_groups(&(groups){BLAS_GEMM_ARGUMENTS(T, ), .alpha = alpha, .beta = beta,             \
                               .name = routine, .is_64 = sizeof(I) == 8, .layout = layout,         \
                               .trans_a = trans_a, .trans_b = trans_b, .size = size,               \
                               .count = count});                                                   \
    }

CBLAS_GROUPS(cblas_sgemm_batch, "cblas_sgemm_batch", float, int32_t)
CBLAS_GROUPS(cblas_dgemm_batch, "cblas_dgemm_batch", double, int32_t)
CBLAS_GROUPS(cblas_sgemm_batch64_, "cblas_sgemm_batch", float, int64_t)
CBLAS_GROUPS(cblas_dgemm_batch64_, "cblas_dgemm_batch", double, int64_t)
BLAS_ALIAS(cblas_sgemm_batch_64, cblas_sgemm_batch64_);
BLAS_ALIAS(cblas_dgemm_batch_64, cblas_dgemm_batch64_);
BLAS_ALIAS(scipy_cblas_sgemm_batch, cblas_sgemm_batch);
BLAS_ALIAS(scipy_cblas_dgemm_batch, cblas_dgemm_batch);
BLAS_ALIAS(scipy_cblas_sgemm_batch64_, cblas_sgemm_batch64_);
BLAS_ALIAS(scipy_cblas_dgemm_batch64_, cblas_dgemm_batch64_);
