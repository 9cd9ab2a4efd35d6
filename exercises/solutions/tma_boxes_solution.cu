/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise tma_boxes: the solution.
 *
 * Why: thread 0 arrives once a phase and announces 2 * 8192 bytes, also for boxes that lie in part
 * outside: the zeros count. The phase completes when they have come. Tile t is phase t, so its
 * parity is t % 2: with parity 0 always, the wait for the second tile would end at once. The
 * barrier at the end keeps thread 0 from requesting the next tile while others read this one.
 */
#include "lib/ldmatrix.h"
#include "lib/load_store_half.h"
#include "lib/mma.h"
#include "lib/tma.h"

#define BM      64 /* rows of C that a block computes: 2 x 2 warps */
#define BN      64 /* columns */
#define BK      64 /* depth of a tile in shared memory */
#define THREADS 128
#define CHUNKS  8 /* 16-byte chunks (8 elements) in a row of a tile */

/* The place of a chunk of a row in a tile: TMA's swizzle of 128 bytes. */
static __device__ __forceinline__ int place_of(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ row % 8);
}

/* acc += the product of the warp's 32 rows and 32 columns of the tiles. */
static __device__ __forceinline__ void multiply(float (*acc)[4][4], const uint4 *As,
                                                const uint4 *Bs, int row, int col, int lane)
{
    for (int p = 0; p < BK; p += 16) {
        unsigned a[2][4], b[2][4];
        for (int i = 0; i < 2; i++) {
            const int r = row + i * 16 + lane % 16;
            ldmatrix_x4(a[i], &As[place_of(r, p / 8 + lane / 16)]);
        }
        for (int j = 0; j < 2; j++)
            ldmatrix_x4_trans(b[j], &Bs[place_of(p + lane % 16, (col + j * 16) / 8 + lane / 16)]);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 4; j++)
                mma_f16(acc[i][j], a[i], &b[j / 2][j % 2 * 2]);
    }
}

__global__ void __launch_bounds__(THREADS)
    tma_boxes(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
              const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc,
              const __grid_constant__ struct tgl_tensor_map a_map,
              const __grid_constant__ struct tgl_tensor_map b_map)
{
    __shared__ __align__(1024) uint4 As[BM * CHUNKS];
    __shared__ __align__(1024) uint4 Bs[BK * CHUNKS];
    __shared__ mbarrier full; /* the tiles have arrived */
    const int tid = (int)threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int g = lane / 4, t = lane % 4;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = warp / 2 * 32, col = warp % 2 * 32; /* first of the warp's 32 x 32 elements */
    (void)A, (void)lda, (void)B, (void)ldb;             /* the maps know them */
    if (tid == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init_fence();
    }
    __syncthreads();

    float acc[2][4][4] = {{{0.0f}}};
    for (int i = 0; i * BK < k; i++) {
        if (tid == 0) {
            mbarrier_arrive_and_expect(&full, sizeof As + sizeof Bs);
            tma_load_2d(As, &a_map, i * BK, block_row, &full);
            tma_load_2d(Bs, &b_map, block_col, i * BK, &full);
        }
        mbarrier_wait(&full, i % 2);
        multiply(acc, As, Bs, row, col, lane);
        __syncthreads(); /* all threads have read the tiles */
    }

    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                const int r = block_row + row + i * 16 + g + e / 2 * 8;
                const int c = block_col + col + j * 8 + 2 * t + e % 2;
                if (r < m && c < n) store_half(&C[r * ldc + c], acc[i][j][e], alpha, beta);
            }
}
