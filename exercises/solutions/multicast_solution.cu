/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise multicast: the solution.
 *
 * Why: a block still expects the bytes of both halves, because the other block's copy counts at its
 * mbarrier, too; that copy may even come before it has announced the bytes. What a barrier of the
 * block did for its own copies, cluster_sync() must do now for those of both blocks. B is read from
 * L2 once for two tiles of C.
 */
#include "lib/cluster.h"
#include "lib/load_store_half.h"
#include "lib/tma.h"

#define BM      64 /* rows of C that a block computes: one warpgroup */
#define BN      64 /* columns */
#define BK      64 /* depth of a tile in shared memory */
#define THREADS 128
#define CLUSTER 2              /* blocks, whose tiles of C lie below each other */
#define CHUNKS  8              /* 16-byte chunks (8 elements) in a row of a tile */
#define HALF    (BK / CLUSTER) /* rows of B in a box */

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
    multicast(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
              const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc,
              const __grid_constant__ struct tgl_tensor_map a_map,
              const __grid_constant__ struct tgl_tensor_map b_map)
{
    __shared__ __align__(1024) uint4 As[BM * CHUNKS];
    __shared__ __align__(1024) uint4 Bs[BK * CHUNKS];
    __shared__ mbarrier full; /* the tiles have arrived */
    const int tid = (int)threadIdx.x, lane = tid % 32;
    const int rank = (int)blockIdx.x % CLUSTER, pair = (int)blockIdx.x / CLUSTER;
    const int pair_rows = (m + BM * CLUSTER - 1) / (BM * CLUSTER);
    const int block_row = (pair % pair_rows * CLUSTER + rank) * BM;
    const int block_col = pair / pair_rows * BN;
    (void)A, (void)lda, (void)B, (void)ldb; /* the maps know them */
    if (tid == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init_fence();
    }
    __syncwarp();
    cluster_sync(); /* the mbarriers of both blocks are ready */

    float acc[BN / 2]; /* the thread's part of its warp's 16 rows */
    for (int i = 0; i < BN / 2; i++)
        acc[i] = 0.0f;
    for (int i = 0; i * BK < k; i++) {
        if (tid == 0) {
            mbarrier_arrive_and_expect(&full, sizeof As + sizeof Bs);
            tma_load_3d(As, &a_map, i * BK, block_row, 0, &full);
            tma_load_3d_multicast(&Bs[rank * HALF * CHUNKS], &b_map, block_col,
                                  i * BK + rank * HALF, 0, &full, (1 << CLUSTER) - 1);
        }
        __syncwarp(); /* wgmma needs a converged warp: all lanes together */
        mbarrier_wait(&full, i % 2);
        multiply(acc, As, Bs);
        __syncwarp();
        cluster_sync(); /* all threads of both blocks have read the tiles */
    }

    for (int i = 0; i < BN / 2; i++) {
        const int r = block_row + tid / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        const int c = block_col + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (r < m && c < n) store_half(&C[r * ldc + c], acc[i], alpha, beta);
    }
}
