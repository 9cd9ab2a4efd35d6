/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise producer_consumers: the solution.
 *
 * Why: the producer is up to two tiles ahead, and one consumer may be a tile ahead of the other.
 * Both mbarriers of a stage have one phase a lap. A consumer waits for the phase of its own lap,
 * i / STAGES; the producer for that of the lap before, whose parity is (i / STAGES + 1) % 2. In lap
 * 0 that is parity 1 of a new mbarrier: the phase before its first one, which counts as complete.
 */
#include "lib/dynamic_shared.h"
#include "lib/load_store_half.h"
#include "lib/tma.h"

#define BM        128 /* rows of C that a block computes: 64 for each consumer */
#define BN        64  /* columns */
#define BK        64  /* depth of a tile in shared memory */
#define STAGES    2
#define CONSUMERS 2                      /* warpgroups that multiply */
#define THREADS   (CONSUMERS * 128 + 32) /* the last warp is the producer */
#define CHUNKS    8                      /* 16-byte chunks (8 elements) in a row of a tile */

#define WGMMA_TYPE          TYPE_F16
#define WGMMA_N             BN
#define WGMMA_LEFT_K_MAJOR  1 /* 1: a row of A's tile has one m and all its k */
#define WGMMA_RIGHT_K_MAJOR 0 /* 0: a row of B's tile has one k and all its n */
#include "lib/wgmma.h"

struct shared {
    uint4 A[STAGES][BM * CHUNKS], B[STAGES][BK * CHUNKS];
    mbarrier full[STAGES];  /* phase complete: the tiles of a stage have arrived */
    mbarrier empty[STAGES]; /* phase complete: all consumers have read these tiles */
};

/* acc += the product of the tiles, in the 64 rows of a consumer. */
static __device__ __forceinline__ void multiply(float *acc, const uint4 *As, const uint4 *Bs,
                                                int group)
{
    const wgmma_tile a = make_wgmma_tile(As + group * 64 * CHUNKS, 128, 0, 8 * 128);
    const wgmma_tile b = make_wgmma_tile(Bs, 128, BK * 128, 8 * 128);
    wgmma_fence();
    for (int p = 0; p < BK; p += 16)
        wgmma(acc, a + p * 2 / 16, b + p * 128 / 16, 1);
    wgmma_commit();
    WGMMA_WAIT(acc, 0);
}

/* Called by one thread: requests tile number i into its stage. */
static __device__ __forceinline__ void request(struct shared *shared, int i,
                                               const struct tgl_tensor_map *a_map,
                                               const struct tgl_tensor_map *b_map, int block_row,
                                               int block_col)
{
    const int stage = i % STAGES;
    mbarrier *full = &shared->full[stage];
    mbarrier_arrive_and_expect(full, sizeof shared->A[0] + sizeof shared->B[0]);
    tma_load_2d(shared->A[stage], a_map, i * BK, block_row, full);
    tma_load_2d(shared->B[stage], b_map, block_col, i * BK, full);
}

__global__ void __launch_bounds__(THREADS)
    producer_consumers(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
                       const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc,
                       const __grid_constant__ struct tgl_tensor_map a_map,
                       const __grid_constant__ struct tgl_tensor_map b_map)
{
    DYNAMIC_SHARED_ALIGNED(1024, struct shared, shared, 1);
    const int tid = (int)threadIdx.x, lane = tid % 32, group = tid / 128;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int tiles = (k + BK - 1) / BK;
    (void)A, (void)lda, (void)B, (void)ldb; /* the maps know them */
    if (tid == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&shared->full[i], 1);
            mbarrier_init(&shared->empty[i], CONSUMERS * 128);
        }
        mbarrier_init_fence();
    }
    __syncthreads();

    if (group == CONSUMERS) {
        for (int i = 0; i < tiles && lane == 0; i++) {
            mbarrier_wait(&shared->empty[i % STAGES], (i / STAGES + 1) % 2);
            request(shared, i, &a_map, &b_map, block_row, block_col);
        }
        return;
    }

    float acc[BN / 2]; /* the thread's part of its warp's 16 rows */
    for (int i = 0; i < BN / 2; i++)
        acc[i] = 0.0f;
    for (int i = 0; i < tiles; i++) {
        const int stage = i % STAGES;
        mbarrier_wait(&shared->full[stage], i / STAGES % 2);
        multiply(acc, shared->A[stage], shared->B[stage], group);
        mbarrier_arrive(&shared->empty[stage]);
    }

    for (int i = 0; i < BN / 2; i++) {
        const int r = block_row + tid / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        const int c = block_col + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (r < m && c < n) store_half(&C[r * ldc + c], acc[i], alpha, beta);
    }
}
