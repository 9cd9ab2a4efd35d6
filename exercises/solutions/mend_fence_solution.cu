/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise mend_fence: the solution.
 *
 * Why: fence_proxy_async() makes what the calling thread has written visible to the async proxy.
 * Each thread calls it for its own writes, before the barrier. After the barrier, a thread knows
 * that all threads have done so. Tiles that TMA brings need no fence: TMA writes through the async
 * proxy itself.
 */
#include "lib/load_store_half.h"
#include "lib/tma.h"

#define BM      64 /* rows of C that a block computes: one warpgroup */
#define BN      64 /* columns */
#define BK      64 /* depth of a tile in shared memory */
#define THREADS 128
#define CHUNKS  8 /* 16-byte chunks (8 elements) in a row of a tile */

#define WGMMA_TYPE          TYPE_F16
#define WGMMA_N             BN
#define WGMMA_LEFT_K_MAJOR  1 /* 1: a row of A's tile has one m and all its k */
#define WGMMA_RIGHT_K_MAJOR 0 /* 0: a row of B's tile has one k and all its n */
#include "lib/wgmma.h"

/* The place of a chunk of a row in a tile: TMA's swizzle of 128 bytes. */
static __device__ __forceinline__ int place_of(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ row % 8);
}

/* acc += the product of the tiles, by the warpgroup. */
static __device__ __forceinline__ void multiply(float *acc, const uint4 *As, const uint4 *Bs)
{
    const wgmma_tile a = make_wgmma_tile(As, 128, 0, 8 * 128);
    const wgmma_tile b = make_wgmma_tile(Bs, 128, BK * 128, 8 * 128);
    wgmma_fence();
    for (int p = 0; p < BK; p += 16)
        wgmma(acc, a + p * 2 / 16, b + p * 128 / 16, 1);
    wgmma_commit();
    WGMMA_WAIT(acc, 0);
}

__global__ void __launch_bounds__(THREADS)
    mend_fence(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
               const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc)
{
    __shared__ __align__(1024) uint4 As[BM * CHUNKS];
    __shared__ __align__(1024) uint4 Bs[BK * CHUNKS];
    const int tid = (int)threadIdx.x, lane = tid % 32;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const bool a_aligned = half_rows_are_aligned(A, lda, 16);
    const bool b_aligned = half_rows_are_aligned(B, ldb, 16);

    float acc[BN / 2]; /* the thread's part of its warp's 16 rows */
    for (int i = 0; i < BN / 2; i++)
        acc[i] = 0.0f;
    for (int tile = 0; tile < k; tile += BK) {
        for (int i = tid; i < BM * CHUNKS; i += THREADS) {
            const int r = i / CHUNKS, chunk = i % CHUNKS, p = tile + chunk * 8;
            const int count = block_row + r < m ? k - p : 0;
            As[place_of(r, chunk)] = load_half8(&A[(block_row + r) * lda + p], count, a_aligned);
        }
        for (int i = tid; i < BK * CHUNKS; i += THREADS) {
            const int p = i / CHUNKS, chunk = i % CHUNKS, c = block_col + chunk * 8;
            const int count = tile + p < k ? n - c : 0;
            Bs[place_of(p, chunk)] = load_half8(&B[(tile + p) * ldb + c], count, b_aligned);
        }
        fence_proxy_async(); /* wgmma will see what this thread has written */
        __syncthreads();
        multiply(acc, As, Bs);
        __syncthreads();
    }

    for (int i = 0; i < BN / 2; i++) {
        const int r = block_row + tid / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        const int c = block_col + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (r < m && c < n) store_half(&C[r * ldc + c], acc[i], alpha, beta);
    }
}
