/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 32: warp specialisation.
 *
 * Changed: one warpgroup, the producer, only copies. Two warpgroups, the consumers, only multiply.
 * They synchronise through two mbarriers for each stage of a ring, and no longer by
 * __syncthreads(). The producer gives registers to the consumers, which allows a second change: BN
 * is 256 instead of 128.
 *
 *     producer                                      consumers, 64 rows of the tile each
 *     wait until `empty` of the stage completes     wait until `full` of the stage completes
 *     announce its bytes at `full`, start TMA       issue its wgmmas
 *     next stage                                    wait for the wgmmas of the previous stage
 *                                                   arrive at `empty` of that stage
 *
 *     stage            0        1        2        3
 *     producer                           fills            `full`:  1 arrival, and STAGE_BYTES
 *     consumer 0                reads                     `empty`: 2 arrivals, one per consumer
 *     consumer 1       reads
 *
 * In lap t / STAGES of the ring, a consumer waits for `full` with parity lap % 2. The producer
 * waits until the consumers have read the stage in the previous lap: for `empty` with parity (lap +
 * 1) % 2. In lap 0 no consumer has arrived. A new mbarrier is in phase 0, and a wait for parity 1
 * asks for the phase before it, which counts as complete: the producer does not wait.
 *
 * Thread 0 of a consumer arrives for the warpgroup after its own wait. Like CUTLASS, we rely on a
 * wgmma completing for all four warps together.
 *
 * setmaxnreg moves the registers: 384 threads begin with 168 each (65536 / 384, rounded down to a
 * multiple of 8); then a thread of the producer has 40, and one of a consumer 232: 128 x 40 + 256 x
 * 232 = 384 x 168. The sums of a tile of 128 x 256 now fit: 128 per thread.
 *
 * Why: in rung 31 all warps wait for each other at every tile, so that the tensor cores idle
 * between the last wgmma of a tile and the first one of the next. Now a consumer issues the wgmmas
 * of a stage while those of the previous stage still run, and the two consumers do not wait for
 * each other.
 * Look at: with ncu --metrics
 *     sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active (increases)
 *     smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio (it decreases, but not to 0:
 *     it contains the waits for wgmma)
 */
#include "lib/dynamic_shared.h"
#include "lib/load_store_half.h"
#include "lib/tma.h"

#define BM        128 /* rows of C that a block computes: 64 for each consumer */
#define BN        256 /* columns */
#define BK        64  /* depth of a tile: 128 bytes */
#define STAGES    4   /* tiles in shared memory */
#define CONSUMERS (BM / 64)
#define THREADS   (CONSUMERS * 128 + 128)

#define PRODUCER_REGISTERS 40
#define CONSUMER_REGISTERS 232

#define WGMMA_TYPE          TYPE_F16
#define WGMMA_N             BN
#define WGMMA_LEFT_K_MAJOR  1 /* A's tile: a row for each row of A */
#define WGMMA_RIGHT_K_MAJOR 0 /* B's tile: a row for each k */
#include "lib/wgmma.h"

#define BOX_BYTES   (64 * BK * 2) /* 64 columns of B */
#define A_BYTES     (BM * BK * 2)
#define B_BYTES     (BN * BK * 2)
#define STAGE_BYTES (A_BYTES + B_BYTES)

struct shared {
    unsigned char stages[STAGES][STAGE_BYTES]; /* A, then B */
    mbarrier full[STAGES], empty[STAGES];
};

/* Called by one thread: fills the stages in turn. */
static __device__ __forceinline__ void produce(struct shared *shared,
                                               const struct tgl_tensor_map *a_map,
                                               const struct tgl_tensor_map *b_map, int row, int col,
                                               int steps)
{
    for (int t = 0; t < steps; t++) {
        const int stage = t % STAGES, lap = t / STAGES, p = t * BK;
        unsigned char *tiles = shared->stages[stage];
        mbarrier *full = &shared->full[stage];
        mbarrier_wait(&shared->empty[stage], (lap + 1) % 2); /* in lap 0 it returns at once */
        mbarrier_arrive_and_expect(full, STAGE_BYTES);
        tma_load_2d(tiles, a_map, p, row, full);
#pragma unroll
        for (int box = 0; box < BN / 64; box++)
            tma_load_2d(tiles + A_BYTES + box * BOX_BYTES, b_map, col + box * 64, p, full);
    }
}

/* acc += the product of a stage's tiles, for the warpgroup's 64 rows. is_first: acc := product. */
static __device__ __forceinline__ void multiply(float *acc, const unsigned char *stage, int group,
                                                bool is_first)
{
    /* The swizzle has 128 bytes, 8 rows have 1024 bytes, and the next 64 columns of B begin
     * BOX_BYTES further. */
    const wgmma_tile a = make_wgmma_tile(stage + group * 64 * BK * 2, 128, 0, 1024);
    const wgmma_tile b = make_wgmma_tile(stage + A_BYTES, 128, BOX_BYTES, 1024);
    wgmma_fence();
    /* 16 of K are 32 bytes of a row of A, and 16 rows (128 bytes each) of a box of B. Descriptors
     * count units of 16 bytes. */
#pragma unroll
    for (int p = 0; p < BK; p += 16)
        wgmma(acc, a + p * 2 / 16, b + p * 128 / 16, p > 0 || !is_first);
    wgmma_commit();
}

/* acc := A*B for the warpgroup's 64 rows of the block's tile. steps: steps of BK along K, at least
 * 1. */
static __device__ __forceinline__ void consume(float *acc, struct shared *shared, int group,
                                               int steps)
{
    for (int t = 0; t < steps; t++) {
        const int stage = t % STAGES, lap = t / STAGES;
        mbarrier_wait(&shared->full[stage], lap % 2);
        multiply(acc, shared->stages[stage], group, t == 0);
        WGMMA_WAIT(acc, 1); /* the wgmmas of the previous stage are done */
        if (t > 0 && threadIdx.x % 128 == 0) mbarrier_arrive(&shared->empty[(t - 1) % STAGES]);
        __syncwarp(); /* wgmma needs a converged warp: all lanes execute it together */
    }
    WGMMA_WAIT(acc, 0);
    WGMMA_HOLD(acc); /* keeps reads of acc behind the wait (lib/wgmma.h) */
}

__global__ void __launch_bounds__(THREADS, 1)
    hgemm_specialised(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
                      const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc,
                      const __grid_constant__ struct tgl_tensor_map a_map,
                      const __grid_constant__ struct tgl_tensor_map b_map)
{
    DYNAMIC_SHARED_ALIGNED(1024, struct shared, shared, 1);
    (void)A, (void)lda, (void)B, (void)ldb; /* the tensor maps replace them */

    const int group = (int)threadIdx.x / 128; /* the warpgroup */
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int steps = (k + BK - 1) / BK;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&shared->full[i], 1);
            mbarrier_init(&shared->empty[i], CONSUMERS);
        }
        mbarrier_init_fence();
    }
    __syncthreads();

    if (group == CONSUMERS) {
        REGISTERS_DECREASE(PRODUCER_REGISTERS);
        if (threadIdx.x % 128 == 0) produce(shared, &a_map, &b_map, block_row, block_col, steps);
        return;
    }

    REGISTERS_INCREASE(CONSUMER_REGISTERS);
    float acc[BN / 2];
    if (steps > 0)
        consume(acc, shared, group, steps);
    else
#pragma unroll
        for (int i = 0; i < BN / 2; i++)
            acc[i] = 0.0f;

    const int lane = (int)threadIdx.x % 32;
    const int row = block_row + (int)threadIdx.x / 32 * 16 + lane / 4;
    const int col = block_col + lane % 4 * 2;
    const bool c_aligned = half_rows_are_aligned(C, ldc, 4);
#pragma unroll
    for (int i = 0; i < BN / 2; i += 2) {
        const int r = row + i / 2 % 2 * 8, c = col + i / 4 * 8;
        if (r < m) store_half_pair(&C[r * ldc + c], &acc[i], alpha, beta, n - c, c_aligned);
    }
}
