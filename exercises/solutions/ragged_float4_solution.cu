/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise ragged_float4: the solution.
 *
 * Why: a matrix has aligned rows if its first element is aligned and its leading dimension is a
 * multiple of 4 floats. The columns that a thread loads are multiples of 4 in any case. The last
 * columns may have fewer than four floats: the rest of a float4 would be the next row or another
 * matrix.
 */
#include "lib/load_store.h"

#define BM      64 /* rows of C that a block computes */
#define BN      64 /* columns */
#define BK      16 /* depth of a tile in shared memory */
#define THREADS 256

/* p[0..3], of which the first `count` exist; the others are zero. */
static __device__ __forceinline__ float4 load4(const float *p, int count, bool aligned)
{
    if (aligned && count >= 4) return *(const float4 *)p;
    return make_float4(count > 0 ? p[0] : 0.0f, count > 1 ? p[1] : 0.0f, count > 2 ? p[2] : 0.0f,
                       count > 3 ? p[3] : 0.0f);
}

__global__ void __launch_bounds__(THREADS)
    ragged_float4(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                  long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float As[BK][BM + 4], Bs[BK][BN]; /* As is transposed */
    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / 16 * 4, col = tid % 16 * 4; /* first of the thread's 4 x 4 elements */
    const bool a_aligned = (unsigned long long)A % 16 == 0 && lda % 4 == 0;
    const bool b_aligned = (unsigned long long)B % 16 == 0 && ldb % 4 == 0;

    float acc[4][4] = {{0.0f}};
    for (int tile = 0; tile < k; tile += BK) {
        const int a_row = tid / 4, a_p = tid % 4 * 4;   /* first of the four floats of A */
        const int b_p = tid / 16, b_col = tid % 16 * 4; /* first of the four floats of B */
        const int a_count = block_row + a_row < m ? k - (tile + a_p) : 0;
        const int b_count = tile + b_p < k ? n - (block_col + b_col) : 0;
        float a4[4];
        unpack(a4, load4(&A[(block_row + a_row) * lda + tile + a_p], a_count, a_aligned));
        for (int q = 0; q < 4; q++)
            As[a_p + q][a_row] = a4[q];
        *(float4 *)&Bs[b_p][b_col] =
            load4(&B[(tile + b_p) * ldb + block_col + b_col], b_count, b_aligned);
        __syncthreads();
        for (int p = 0; p < BK; p++) {
            float a[4], b[4];
            load_fragment(a, &As[p][row]);
            load_fragment(b, &Bs[p][col]);
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int r = block_row + row + i, c = block_col + col + j;
            if (r < m && c < n) store_float(&C[r * ldc + c], acc[i][j], alpha, beta);
        }
}
