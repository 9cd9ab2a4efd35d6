/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise persistent: blocks that stay for several tiles.
 *
 * The grid has as many blocks as the chip holds at once, here two, and each computes tiles of C in
 * turn. But a tile begins with an empty ring: its first copies are requested when the tile before
 * has been stored, behind a barrier. So nothing is copied while results are stored.
 *
 * To do: let the ring go on. All steps of all tiles of a block are one sequence, which request()
 * understands already: thread 0 requests step s + STAGES when step s has been read, whatever tile
 * it belongs to. Then the first steps of the next tile arrive while this one is stored.
 *
 * Goal: one barrier a block.
 */
#include "lib/load_store_half.h"
#include "lib/tma.h"

#define BM      64 /* rows of C that a block computes: one warpgroup */
#define BN      64 /* columns */
#define BK      64 /* depth of a tile in shared memory */
#define THREADS 128
#define STAGES  2
#define CHUNKS  8 /* 16-byte chunks (8 elements) in a row of a tile */

#define WGMMA_TYPE          TYPE_F16
#define WGMMA_N             BN
#define WGMMA_LEFT_K_MAJOR  1 /* 1: a row of A's tile has one m and all its k */
#define WGMMA_RIGHT_K_MAJOR 0 /* 0: a row of B's tile has one k and all its n */
#include "lib/wgmma.h"

struct ring {
    uint4 A[STAGES][BM * CHUNKS], B[STAGES][BK * CHUNKS];
    mbarrier full[STAGES];  /* phase complete: the tiles of a stage have arrived */
    mbarrier empty[STAGES]; /* phase complete: all threads have read these tiles */
};

/* What a block does: tiles number first, first + stride, ... of C. Step s is part s % depth of K of
 * its tile number s / depth. */
struct work {
    int first, stride, count; /* count: tiles of this block */
    int columns;              /* tiles in a row of C */
    int depth;                /* steps of a tile */
};

static __device__ __forceinline__ struct work make_work(int m, int n, int k)
{
    struct work work;
    work.columns = (n + BN - 1) / BN;
    work.depth = (k + BK - 1) / BK;
    work.first = (int)blockIdx.x;
    work.stride = (int)gridDim.x;
    const int tiles = (m + BM - 1) / BM * work.columns;
    work.count = (tiles - work.first + work.stride - 1) / work.stride;
    return work;
}

/* The first row and column of the block's tile number t. */
static __device__ __forceinline__ int row_of(const struct work *work, int t)
{
    return (work->first + t * work->stride) / work->columns * BM;
}

static __device__ __forceinline__ int column_of(const struct work *work, int t)
{
    return (work->first + t * work->stride) % work->columns * BN;
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

/* Called by thread 0: requests what step s multiplies. */
static __device__ __forceinline__ void request(struct ring *ring, const struct work *work, int s,
                                               const struct tgl_tensor_map *a_map,
                                               const struct tgl_tensor_map *b_map)
{
    const int stage = s % STAGES, t = s / work->depth, p = s % work->depth * BK;
    mbarrier *full = &ring->full[stage];
    mbarrier_arrive_and_expect(full, sizeof ring->A[0] + sizeof ring->B[0]);
    tma_load_2d(ring->A[stage], a_map, p, row_of(work, t), full);
    tma_load_2d(ring->B[stage], b_map, column_of(work, t), p, full);
}

__global__ void __launch_bounds__(THREADS)
    persistent(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
               const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc,
               const __grid_constant__ struct tgl_tensor_map a_map,
               const __grid_constant__ struct tgl_tensor_map b_map)
{
    __shared__ __align__(1024) struct ring ring;
    const int tid = (int)threadIdx.x, lane = tid % 32;
    const struct work work = make_work(m, n, k);
    (void)A, (void)lda, (void)B, (void)ldb; /* the maps know them */
    if (tid == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&ring.full[i], 1);
            mbarrier_init(&ring.empty[i], THREADS);
        }
        mbarrier_init_fence();
    }
    __syncthreads();

    for (int t = 0; t < work.count; t++) {
        for (int i = 0; tid == 0 && i < STAGES && i < work.depth; i++)
            request(&ring, &work, t * work.depth + i, &a_map, &b_map);
        __syncwarp();
        float acc[BN / 2]; /* the thread's part of its warp's 16 rows */
        for (int i = 0; i < BN / 2; i++)
            acc[i] = 0.0f;
        for (int i = 0; i < work.depth; i++) {
            const int s = t * work.depth + i, stage = s % STAGES;
            mbarrier_wait(&ring.full[stage], s / STAGES % 2);
            multiply(acc, ring.A[stage], ring.B[stage]);
            mbarrier_arrive(&ring.empty[stage]);
            if (tid == 0 && i + STAGES < work.depth) {
                mbarrier_wait(&ring.empty[stage], s / STAGES % 2);
                request(&ring, &work, s + STAGES, &a_map, &b_map);
            }
            __syncwarp(); /* wgmma needs a converged warp: all lanes together */
        }

        for (int i = 0; i < BN / 2; i++) {
            const int r = row_of(&work, t) + tid / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
            const int c = column_of(&work, t) + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (r < m && c < n) store_half(&C[r * ldc + c], acc[i], alpha, beta);
        }
        __syncthreads(); /* all threads have read the stages */
    }
}
