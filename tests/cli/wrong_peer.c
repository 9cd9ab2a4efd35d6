/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with a cblas_sgemm() that forgets its last product, for the test that `tegula bench`
 * notices.
 */
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
