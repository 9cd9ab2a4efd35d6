/* SPDX-License-Identifier: Apache-2.0
 *
 * C = A * B^T in TF32 by mma.sync, where a warp computes 16 x 8 elements of C and loads A by
 * ldmatrix. Each half of the block has a named barrier. It is correct; each macro breaks one thing.
 *
 * m must be a multiple of 64, n a multiple of 32, and k a multiple of 8.
 */
#include "lib/ldmatrix.h"
#include "lib/mma.h"
#include "lib/named_barrier.h"

#define WGMMA_TYPE          TYPE_F32
#define WGMMA_N             32
#define WGMMA_LEFT_K_MAJOR  1
#define WGMMA_RIGHT_K_MAJOR 1
#include "lib/wgmma.h" /* REGISTERS_INCREASE */

#define BM 64
#define BN 32
#define BK 8

#ifndef LANES
#define LANES 32 /* number of lanes of a warp that multiply */
#endif
#ifndef NUMBER
#define NUMBER 1 /* number of the first named barrier */
#endif
#ifndef WAITERS
#define WAITERS 256 /* number of threads that a barrier waits for */
#endif
#ifndef OFFSET
#define OFFSET 0 /* added to the address of ldmatrix, in floats */
#endif

__global__ void __launch_bounds__(512)
    warp_words(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
               long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float As[2][BM / 2 * BK + 4];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int half = warp / 8, row = warp / 4 * 16, col = warp % 4 * 8;
    const int first_row = (int)blockIdx.y * BM, first_col = (int)blockIdx.x * BN;
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#ifdef REGISTERS
    REGISTERS_INCREASE(REGISTERS);
#endif
    for (int first = 0; first < k; first += BK) {
        unsigned a[4], b[2];
        const int i = (int)threadIdx.x % 256, r = half * 32 + i / BK;
        As[half][i] = A[(first_row + r) * lda + first + i % BK]; /* write As */
        named_barrier(half + NUMBER, WAITERS);
        const float *from = &As[half][row % 32 * BK];
        ldmatrix_x4(a, from + (lane % 16) * BK + lane / 16 * 4 + OFFSET);
        b[0] = __float_as_uint(B[(first_col + col + lane / 4) * ldb + first + lane % 4]);
        b[1] = __float_as_uint(B[(first_col + col + lane / 4) * ldb + first + lane % 4 + 4]);
        if (lane < LANES) mma_tf32(acc, a, b);
#ifndef NO_BARRIER
        named_barrier(half + NUMBER, WAITERS);
#endif
    }
    for (int i = 0; i < 4; i++)
        C[(first_row + row + lane / 4 + i / 2 * 8) * ldc + first_col + col + lane % 4 * 2 + i % 2] =
            acc[i];
}
