/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise tma_store: results through shared memory and TMA.
 *
 * A warp has 16 rows of C and stores 2 bytes a lane, to 8 rows at once: every store fills a small
 * part of its sectors.
 *
 * To do: if stores_by_tma is not 0, write the block's results as f16 into a tile of shared memory,
 * 64 rows of 128 bytes; swizzle_128() of lib/tma.h gives the place of a byte in it. Then one
 * thread stores the box:
 *
 *     tma_store_3d(&c_map, column, row, 0, tile);
 *     tma_store_commit();
 *     TMA_STORE_WAIT_READ(0); // before the block ends
 *
 * TMA reads shared memory through the async proxy: what a thread has written is visible to it after
 * the thread's fence_proxy_async(). If stores_by_tma is 0, c_map is not set (k = 0): keep the loop.
 *
 * Goal: all bytes stored by TMA.
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
    tma_store(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
              const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc,
              int stores_by_tma, const __grid_constant__ struct tgl_tensor_map a_map,
              const __grid_constant__ struct tgl_tensor_map b_map,
              const __grid_constant__ struct tgl_tensor_map c_map)
{
    __shared__ __align__(1024) uint4 As[BM * CHUNKS];
    __shared__ __align__(1024) uint4 Bs[BK * CHUNKS];
    __shared__ mbarrier full; /* the tiles have arrived */
    const int tid = (int)threadIdx.x, lane = tid % 32;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    (void)A, (void)lda, (void)B, (void)ldb; /* the maps know them */
    if (tid == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init_fence();
    }
    __syncthreads();

    float acc[BN / 2]; /* the thread's part of its warp's 16 rows */
    for (int i = 0; i < BN / 2; i++)
        acc[i] = 0.0f;
    for (int i = 0; i * BK < k; i++) {
        if (tid == 0) {
            mbarrier_arrive_and_expect(&full, sizeof As + sizeof Bs);
            tma_load_3d(As, &a_map, i * BK, block_row, 0, &full);
            tma_load_3d(Bs, &b_map, block_col, i * BK, 0, &full);
        }
        __syncwarp(); /* wgmma needs a converged warp: all lanes together */
        mbarrier_wait(&full, i % 2);
        multiply(acc, As, Bs);
        __syncthreads(); /* all threads have read the tiles */
    }

    (void)stores_by_tma, (void)c_map;
    for (int i = 0; i < BN / 2; i++) {
        const int r = block_row + tid / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        const int c = block_col + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (r < m && c < n) store_half(&C[r * ldc + c], acc[i], alpha, beta);
    }
}
