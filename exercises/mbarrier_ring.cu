/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise mbarrier_ring: a ring of mbarriers.
 *
 * TMA fills a ring of two stages. The mbarrier full[s] says that the tiles of stage s have arrived.
 * Thread 0 may request the next tiles into the stage when all threads have read these. In each
 * iteration a __syncthreads() says that they have, but it makes all warps wait for the slowest
 * one.
 *
 * To do: use the mbarriers empty[s] instead, which are initialised for one arrival of each thread.
 * A thread arrives (mbarrier_arrive(&ring.empty[s])) when it has read stage s. Only thread 0 waits
 * for empty[s], before it requests the next tiles into s.
 *
 * Goal: one barrier a block.
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

#define STAGES 2

struct ring {
    uint4 A[STAGES][BM * CHUNKS], B[STAGES][BK * CHUNKS];
    mbarrier full[STAGES];  /* phase complete: the tiles of a stage have arrived */
    mbarrier empty[STAGES]; /* phase complete: all threads have read these tiles */
};

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

/* Called by thread 0: requests tile number i into a stage of the ring. */
static __device__ __forceinline__ void request(struct ring *ring, int i,
                                               const struct tgl_tensor_map *a_map,
                                               const struct tgl_tensor_map *b_map, int block_row,
                                               int block_col)
{
    const int stage = i % STAGES;
    mbarrier *full = &ring->full[stage];
    mbarrier_arrive_and_expect(full, sizeof ring->A[0] + sizeof ring->B[0]);
    tma_load_2d(ring->A[stage], a_map, i * BK, block_row, full);
    tma_load_2d(ring->B[stage], b_map, block_col, i * BK, full);
}

__global__ void __launch_bounds__(THREADS)
    mbarrier_ring(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
                  const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc,
                  const __grid_constant__ struct tgl_tensor_map a_map,
                  const __grid_constant__ struct tgl_tensor_map b_map)
{
    __shared__ __align__(1024) struct ring ring;
    const int tid = (int)threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int g = lane / 4, t = lane % 4;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = warp / 2 * 32, col = warp % 2 * 32; /* first of the warp's 32 x 32 elements */
    const int tiles = (k + BK - 1) / BK;
    (void)A, (void)lda, (void)B, (void)ldb; /* the maps know them */
    if (tid == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&ring.full[i], 1);
            mbarrier_init(&ring.empty[i], THREADS);
        }
        mbarrier_init_fence();
        for (int i = 0; i < STAGES && i < tiles; i++)
            request(&ring, i, &a_map, &b_map, block_row, block_col);
    }
    __syncthreads();

    float acc[2][4][4] = {{{0.0f}}};
    for (int i = 0; i < tiles; i++) {
        const int stage = i % STAGES;
        /* Stage i % STAGES has its lap number i / STAGES, whose phases have the parity lap % 2. */
        mbarrier_wait(&ring.full[stage], i / STAGES % 2);
        multiply(acc, ring.A[stage], ring.B[stage], row, col, lane);
        __syncthreads(); /* all threads have read the stage */
        if (tid == 0 && i + STAGES < tiles)
            request(&ring, i + STAGES, &a_map, &b_map, block_row, block_col);
    }

    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                const int r = block_row + row + i * 16 + g + e / 2 * 8;
                const int c = block_col + col + j * 8 + 2 * t + e % 2;
                if (r < m && c < n) store_half(&C[r * ldc + c], acc[i][j][e], alpha, beta);
            }
}
