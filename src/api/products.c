/* SPDX-License-Identifier: Apache-2.0
 *
 * The one-shot functions: find a plan in the device's cache or make one, and run it once. A device
 * may compute small products without a plan.
 */
#include "api/handles.h"
#include "api/small_calls.h"

tgl_status tgl_check_one_shot(const tgl_shape *shape)
{
    if (shape->device_scalars)
        return tgl_fail(TGL_UNSUPPORTED,
                        "alpha and beta are in device memory: make a plan with tgl_plan_create()");
    if (!shape->in_place)
        return tgl_fail(TGL_UNSUPPORTED,
                        "D is another matrix than C: make a plan with tgl_plan_create()");
    return TGL_OK;
}

/* Returns an error for problems that the one-shot functions do not support. */
static tgl_status check_call(const tgl_shape *shape, tgl_batching batching)
{
    if (shape->pointers != (batching == TGL_POINTERS))
        return tgl_fail(TGL_BAD_BATCHING, "batching is %s; use %s",
                        shape->pointers ? "TGL_POINTERS" : "TGL_STRIDED",
                        shape->pointers ? "tgl_gemm_batched()" : "tgl_gemm()");
    return tgl_check_one_shot(shape);
}

tgl_status tgl_run_once(tgl_device *dev, const tgl_shape *shape, const tgl_operands *operands,
                        void *stream)
{
    tgl_plan *plan;
    TGL_TRY(tgl_plan_find(dev, shape, stream, &plan));
    const tgl_status status = tgl_plan_run_operands(plan, operands, stream);
    tgl_plan_release(plan);
    return status;
}

static tgl_status gemm(tgl_device *dev, const tgl_problem *problem, bool zero_is_tight,
                       tgl_batching batching, const tgl_operands *operands, void *stream)
{
    if (dev == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the device is NULL");
    tgl_shape shape;
    TGL_TRY(tgl_device_shape(dev, problem, zero_is_tight, &shape));
    TGL_TRY(check_call(&shape, batching));
    /* If alpha is 0, the result is C := beta*C, as for k = 0. Setting k to 0 lets the call succeed
     * even if the caller's k is too large for the kernels. */
    if (tgl_scalar_round(&shape, operands->alpha) == 0 &&
        tgl_scalar_round(&shape, operands->alpha_imag) == 0)
        shape.k = 0;
    return tgl_run_once(dev, &shape, operands, stream);
}

tgl_status tgl_gemm(tgl_device *dev, const tgl_problem *problem, double alpha, const void *A,
                    const void *B, double beta, void *C, void *stream)
{
    if (tgl_small_gemm(dev, problem, alpha, A, B, beta, C)) return TGL_OK;
    const tgl_operands operands = {
        .size = sizeof operands, .alpha = alpha, .beta = beta, .A = A, .B = B, .C = C};
    return gemm(dev, problem, true, TGL_STRIDED, &operands, stream);
}

tgl_status tgl_gemm_batched(tgl_device *dev, const tgl_problem *problem, double alpha,
                            const void *const *A, const void *const *B, double beta, void *const *C,
                            void *stream)
{
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = alpha,
                                   .beta = beta,
                                   .A_array = A,
                                   .B_array = B,
                                   .C_array = C};
    return gemm(dev, problem, true, TGL_POINTERS, &operands, stream);
}

/* tgl_sgemm() and the like: in BLAS, unlike in tgl_problem, a leading dimension of 0 is an
 * error. */
static tgl_status typed_gemm(tgl_device *dev, tgl_problem *problem, tgl_order order,
                             tgl_transpose trans_a, tgl_transpose trans_b, int64_t lda, int64_t ldb,
                             int64_t ldc, const tgl_operands *operands, void *stream)
{
    problem->order = order;
    problem->trans_a = trans_a;
    problem->trans_b = trans_b;
    problem->lda = lda;
    problem->ldb = ldb;
    problem->ldc = ldc;
    return gemm(dev, problem, false, TGL_STRIDED, operands, stream);
}

/* The functions below initialise every member of tgl_small_product. If a member were missing, the
 * compiler would first clear the struct, which takes as long as a product of 2 x 2 x 2. */

tgl_status tgl_sgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a, tgl_transpose trans_b,
                     int64_t m, int64_t n, int64_t k, float alpha, const float *A, int64_t lda,
                     const float *B, int64_t ldb, float beta, float *C, int64_t ldc, void *stream)
{
    tgl_small_product small = {.type = TGL_F32,
                               .trans_a = false,
                               .trans_b = false,
                               .fetch_c = false,
                               .m = m,
                               .n = n,
                               .k = k,
                               .lda = lda,
                               .ldb = ldb,
                               .ldc = ldc,
                               .alpha = alpha,
                               .beta = beta,
                               .A = A,
                               .B = B,
                               .C = C,
                               .complex = NULL};
    if (tgl_small_call(dev, order, trans_a, trans_b, &small)) return TGL_OK;
    const tgl_operands operands = {
        .size = sizeof operands, .alpha = alpha, .beta = beta, .A = A, .B = B, .C = C};
    tgl_problem problem;
    TGL_TRY(tgl_problem_init(&problem, sizeof problem, TGL_F32, m, n, k));
    return typed_gemm(dev, &problem, order, trans_a, trans_b, lda, ldb, ldc, &operands, stream);
}

tgl_status tgl_dgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a, tgl_transpose trans_b,
                     int64_t m, int64_t n, int64_t k, double alpha, const double *A, int64_t lda,
                     const double *B, int64_t ldb, double beta, double *C, int64_t ldc,
                     void *stream)
{
    tgl_small_product small = {.type = TGL_F64,
                               .trans_a = false,
                               .trans_b = false,
                               .fetch_c = false,
                               .m = m,
                               .n = n,
                               .k = k,
                               .lda = lda,
                               .ldb = ldb,
                               .ldc = ldc,
                               .alpha = alpha,
                               .beta = beta,
                               .A = A,
                               .B = B,
                               .C = C,
                               .complex = NULL};
    if (tgl_small_call(dev, order, trans_a, trans_b, &small)) return TGL_OK;
    const tgl_operands operands = {
        .size = sizeof operands, .alpha = alpha, .beta = beta, .A = A, .B = B, .C = C};
    tgl_problem problem;
    TGL_TRY(tgl_problem_init(&problem, sizeof problem, TGL_F64, m, n, k));
    return typed_gemm(dev, &problem, order, trans_a, trans_b, lda, ldb, ldc, &operands, stream);
}

/* A BLAS call for complex matrices of `type`. alpha, beta: {real, imaginary}. */
static tgl_status complex_gemm(tgl_device *dev, tgl_type type, tgl_order order,
                               tgl_transpose trans_a, tgl_transpose trans_b, int64_t m, int64_t n,
                               int64_t k, const double alpha[2], const void *A, int64_t lda,
                               const void *B, int64_t ldb, const double beta[2], void *C,
                               int64_t ldc, void *stream)
{
    tgl_complex_part complex = {.alpha_imag = alpha[1], .beta_imag = beta[1]};
    tgl_small_product small = {.type = type,
                               .trans_a = false,
                               .trans_b = false,
                               .fetch_c = false,
                               .m = m,
                               .n = n,
                               .k = k,
                               .lda = lda,
                               .ldb = ldb,
                               .ldc = ldc,
                               .alpha = alpha[0],
                               .beta = beta[0],
                               .A = A,
                               .B = B,
                               .C = C,
                               .complex = &complex};
    if (tgl_small_call(dev, order, trans_a, trans_b, &small)) return TGL_OK;
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = alpha[0],
                                   .beta = beta[0],
                                   .A = A,
                                   .B = B,
                                   .C = C,
                                   .alpha_imag = alpha[1],
                                   .beta_imag = beta[1]};
    tgl_problem problem;
    TGL_TRY(tgl_problem_init(&problem, sizeof problem, type, m, n, k));
    return typed_gemm(dev, &problem, order, trans_a, trans_b, lda, ldb, ldc, &operands, stream);
}

static tgl_status null_scalar(const void *alpha)
{
    return tgl_fail(TGL_BAD_SCALAR, "%s is NULL", alpha == NULL ? "alpha" : "beta");
}

tgl_status tgl_cgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a, tgl_transpose trans_b,
                     int64_t m, int64_t n, int64_t k, const void *alpha, const void *A, int64_t lda,
                     const void *B, int64_t ldb, const void *beta, void *C, int64_t ldc,
                     void *stream)
{
    if (alpha == NULL || beta == NULL) return null_scalar(alpha);
    const float *a = alpha, *b = beta;
    const double alpha_parts[] = {a[0], a[1]}, beta_parts[] = {b[0], b[1]};
    return complex_gemm(dev, TGL_C64, order, trans_a, trans_b, m, n, k, alpha_parts, A, lda, B, ldb,
                        beta_parts, C, ldc, stream);
}

tgl_status tgl_zgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a, tgl_transpose trans_b,
                     int64_t m, int64_t n, int64_t k, const void *alpha, const void *A, int64_t lda,
                     const void *B, int64_t ldb, const void *beta, void *C, int64_t ldc,
                     void *stream)
{
    if (alpha == NULL || beta == NULL) return null_scalar(alpha);
    return complex_gemm(dev, TGL_C128, order, trans_a, trans_b, m, n, k, alpha, A, lda, B, ldb,
                        beta, C, ldc, stream);
}
