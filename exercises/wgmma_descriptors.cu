/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise wgmma_descriptors: wgmma and its descriptors.
 *
 * TMA brings the tiles, and each warp multiplies 16 rows and 64 columns by ldmatrix and mma.sync.
 * wgmma lets the four warps of a warpgroup multiply 64 x 16 by 16 x 64 directly from shared memory,
 * and leaves the sums where mma.sync has them. It finds a tile by a descriptor:
 *
 *     make_wgmma_tile(tile, swizzle, bytes to the next 64 columns, bytes to the next 8 rows)
 *
 * The swizzle is 128, that of TMA. A descriptor counts in units of 16 bytes: + 2 is 16 elements
 * further in a row. wgmma(acc, a, b, 1) adds to acc. It is asynchronous: wgmma_fence() comes before
 * the first of a group, wgmma_commit() ends the group, WGMMA_WAIT(acc, 0) waits for it.
 *
 * To do: write multiply() with wgmma. A's tile has 64 rows of M, B's 64 rows of K, 128 bytes each.
 *
 * Goal: all products by wgmma.
 */
#include "lib/ldmatrix.h"
#include "lib/load_store_half.h"
#include "lib/mma.h"
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

/* acc += the product of the warp's 16 rows and 64 columns of the tiles. */
static __device__ __forceinline__ void multiply(float *acc, const uint4 *As, const uint4 *Bs)
{
    const int row = (int)threadIdx.x / 32 * 16, lane = (int)threadIdx.x % 32;
    for (int p = 0; p < BK; p += 16) {
        unsigned a[4], b[4];
        ldmatrix_x4(a, &As[place_of(row + lane % 16, p / 8 + lane / 16)]);
        for (int j = 0; j < 8; j += 2) {
            ldmatrix_x4_trans(b, &Bs[place_of(p + lane % 16, j + lane / 16)]);
            mma_f16(&acc[j * 4], a, b);
            mma_f16(&acc[j * 4 + 4], a, b + 2);
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    wgmma_descriptors(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
                      const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc,
                      const __grid_constant__ struct tgl_tensor_map a_map,
                      const __grid_constant__ struct tgl_tensor_map b_map)
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
            tma_load_2d(As, &a_map, i * BK, block_row, &full);
            tma_load_2d(Bs, &b_map, block_col, i * BK, &full);
        }
        __syncwarp(); /* wgmma needs a converged warp: all lanes together */
        mbarrier_wait(&full, i % 2);
        multiply(acc, As, Bs);
        __syncthreads(); /* all threads have read the tiles */
    }

    for (int i = 0; i < BN / 2; i++) {
        const int r = block_row + tid / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        const int c = block_col + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (r < m && c < n) store_half(&C[r * ldc + c], acc[i], alpha, beta);
    }
}
