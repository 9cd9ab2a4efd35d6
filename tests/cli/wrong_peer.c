/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with wrong results, which `tegula bench` must detect: a cblas_sgemm() that leaves out
 * the last product of each sum, and a dnnl_gemm_s8s8s32() whose results are 1 too large.
 */
#include <stdint.h>

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *A, int lda, const float *B, int ldb, float beta, float *C, int ldc);

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *A, int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    (void)order, (void)trans_a, (void)trans_b, (void)beta;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k - 1; p++)
                sum += A[i * lda + p] * B[p * ldb + j];
            C[i * ldc + j] = alpha * sum;
        }
}

int dnnl_gemm_s8s8s32(char trans_a, char trans_b, char offset_c, int64_t m, int64_t n, int64_t k,
                      float alpha, const int8_t *A, int64_t lda, int8_t offset_a, const int8_t *B,
                      int64_t ldb, int8_t offset_b, float beta, int32_t *C, int64_t ldc,
                      const int32_t *offsets_c);

int dnnl_gemm_s8s8s32(char trans_a, char trans_b, char offset_c, int64_t m, int64_t n, int64_t k,
                      float alpha, const int8_t *A, int64_t lda, int8_t offset_a, const int8_t *B,
                      int64_t ldb, int8_t offset_b, float beta, int32_t *C, int64_t ldc,
                      const int32_t *offsets_c)
{
    (void)trans_a, (void)trans_b, (void)offset_c, (void)alpha, (void)offset_a, (void)offset_b;
    (void)beta, (void)offsets_c;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int32_t sum = 1;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * lda + p] * B[p * ldb + j];
            C[i * ldc + j] = sum;
        }
    return 0;
}
