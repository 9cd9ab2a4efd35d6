/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 33: persistent blocks, multicast, and stores while the next tile is multiplied.
 *
 * Changed: a block does not end with its tile. The grid has at most as many blocks as the chip
 * holds at once, in clusters of two, and each cluster takes pairs of tiles in turn. The blocks of a
 * cluster run at the same time, and can access each other's shared memory. This makes two more
 * changes possible, multicast and stores by TMA. They need 3-D tensor maps, because lib/tma.h has
 * multicast and stores for three dimensions only (z is 0), and memory for the results, which leaves
 * room for three stages instead of four.
 *
 *   persistent    producer     | tile 0    | tile 1     | tile 2     |       runs ahead by STAGES
 *                 consumers      | multiply 0 | store | multiply 1 | store |
 *                 TMA                            | stores of tile 0 |        under the wgmmas of 1
 *
 *   multicast     The blocks of a cluster have tiles below each other, with the same columns of B.
 *                 Each loads its own A, and half of the rows of B for both: TMA writes them to the
 *                 shared memory of both, and counts the bytes at the barriers `full` of both.
 *
 *                      block 0: A rows 0..127     B  k  0..31  -> both blocks
 *                      block 1: A rows 128..255   B  k 32..63  -> both blocks
 *
 *                 A stage is free when the consumers of both blocks have read it, because the other
 *                 block's half is written into it, too: `empty` counts four arrivals.
 *
 *   stores        The results go to shared memory as f16 by stmatrix, as boxes of 64 x 64 with the
 *                 swizzle of rung 29, which TMA stores while the consumer multiplies the next tile.
 *                 The order: one thread waits until TMA has read the boxes of the previous tile;
 *                 barrier; all threads write, and each executes a fence, which makes its writes
 *                 visible to TMA (TMA reads through the async proxy); barrier; one thread starts
 *                 the stores. The barriers are named barriers of a consumer's 128 threads, because
 *                 the other consumer may be at another tile.
 *
 *                      a consumer's 64 x 256 results     | box 0 | box 1 | box 2 | box 3 |
 *                                                        64 rows of 128 bytes each
 *
 * Pairs of tiles are taken in bands, as in rung 24: in bands of 8, the 66 clusters of an H200 have
 * 2048 rows of A and about 2112 columns of B at a time. The second tile of a pair may lie below C.
 * Its block loads zeros and stores nothing, so that both blocks do the same number of steps. TMA
 * stores need rows of C whose length and distance are multiples of 16 bytes. Other rows are stored
 * by the threads, element by element.
 *
 * Why: in rung 32 the tensor cores idle while a block starts, fills its ring, and stores its tile
 * of 64 KB. Multicast halves what the L2 cache delivers of B.
 * Look at: UTMASTG and UTMALDG.3D.MULTICAST in the SASS, and with ncu --metrics
 *     launch__waves_per_multiprocessor (at most 1)
 *     sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active (increases)
 *     lts__t_sectors_op_read.sum (decreases)
 */
#include "lib/cluster.h"
#include "lib/dynamic_shared.h"
#include "lib/ldmatrix.h"
#include "lib/load_store_half.h"
#include "lib/named_barrier.h"
#include "lib/opaque.h"
#include "lib/tma.h"

#define BM        128 /* rows of C in a tile: 64 for each consumer */
#define BN        256 /* columns */
#define BK        64  /* depth of a tile: 128 bytes */
#define STAGES    3   /* tiles in shared memory */
#define CLUSTER   2   /* blocks that share B */
#define BAND      8   /* rows of pairs of tiles in a band, whose pairs are taken column by column */
#define CONSUMERS (BM / 64)
#define THREADS   (CONSUMERS * 128 + 128)

#define PRODUCER_REGISTERS 40
#define CONSUMER_REGISTERS 232

#define WGMMA_TYPE          TYPE_F16
#define WGMMA_N             BN
#define WGMMA_LEFT_K_MAJOR  1 /* A's tile: a row for each row of A */
#define WGMMA_RIGHT_K_MAJOR 0 /* B's tile: a row for each k */
#include "lib/wgmma.h"

#define BOX_BYTES   (64 * 128) /* 64 rows of 128 bytes */
#define A_BYTES     (BM * BK * 2)
#define B_BYTES     (BN * BK * 2)
#define STAGE_BYTES (A_BYTES + B_BYTES)

struct shared {
    unsigned char stages[STAGES][STAGE_BYTES];            /* A, then B */
    unsigned char results[CONSUMERS][BN / 64][BOX_BYTES]; /* f16 */
    mbarrier full[STAGES], empty[STAGES];
};

/* A place in the ring of stages. parity: the parity of the phase of `full` to wait for; a producer
 * waits for the other parity at `empty`. */
struct place {
    int stage;
    unsigned parity;
};

static __device__ __forceinline__ void advance(struct place *at)
{
    if (++at->stage == STAGES) {
        at->stage = 0;
        at->parity ^= 1;
    }
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Returns the number of rows of pairs in C. A pair is CLUSTER tiles, one below the other. */
static __device__ __forceinline__ int pair_rows(int m)
{
    return (m + BM * CLUSTER - 1) / (BM * CLUSTER);
}

static __device__ __forceinline__ int pair_count(int m, int n)
{
    return pair_rows(m) * ((n + BN - 1) / BN);
}

/* The first row and column of this block's tile of a pair. */
static __device__ __forceinline__ void find_tile(int pair, int m, int n, int *row, int *col)
{
    const int columns = (n + BN - 1) / BN;
    const int band = pair / (BAND * columns), in_band = pair % (BAND * columns);
    const int band_rows = min(pair_rows(m) - band * BAND, BAND); /* the last band may have fewer */
    const int rank = (int)blockIdx.x % CLUSTER;
    *row = ((band * BAND + in_band % band_rows) * CLUSTER + rank) * BM;
    *col = in_band / band_rows * BN;
}

/* ---- Producer -------------------------------------------------------------------------------- */

/* Called by one thread: fills the stages for all tiles of the block. */
static __device__ __forceinline__ void produce(struct shared *shared,
                                               const struct tgl_tensor_map *a_map,
                                               const struct tgl_tensor_map *b_map, int m, int n,
                                               int steps)
{
    const int half = (int)blockIdx.x % CLUSTER * (BK / CLUSTER); /* first k of its half of B */
    struct place at = {0, 0};
    for (int pair = (int)blockIdx.x / CLUSTER; pair < pair_count(m, n);
         pair += (int)gridDim.x / CLUSTER) {
        int row, col;
        find_tile(pair, m, n, &row, &col);
        for (int t = 0; t < steps; t++) {
            unsigned char *a = shared->stages[at.stage], *b = a + A_BYTES + half * 128;
            mbarrier *full = &shared->full[at.stage];
            mbarrier_wait(&shared->empty[at.stage], at.parity ^ 1); /* as in rung 32 */
            /* STAGE_BYTES include the other block's half of B. Its bytes may come before this
             * arrival, but the phase cannot complete without the arrival. */
            mbarrier_arrive_and_expect(full, STAGE_BYTES);
            tma_load_3d(a, a_map, t * BK, row, 0, full);
#pragma unroll
            for (int box = 0; box < BN / 64; box++)
                tma_load_3d_multicast(b + box * BOX_BYTES, b_map, col + box * 64, t * BK + half, 0,
                                      full, (1 << CLUSTER) - 1);
            advance(&at);
        }
    }
}

/* ---- Consumers ------------------------------------------------------------------------------- */

/* acc += the product of a stage's tiles, for the warpgroup's 64 rows. is_first: acc := product. */
static __device__ __forceinline__ void multiply(float *acc, const unsigned char *stage, int group,
                                                bool is_first)
{
    /* 128: the swizzle. 1024: bytes of 8 rows. BOX_BYTES: from 64 columns of B to the next 64. */
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

/* Called by all threads of a consumer, after the wait for the wgmmas that read the stage: arrives
 * at the stage's `empty` in both blocks. Threads 0 and 1 arrive for the warpgroup. As in rung 32,
 * we rely on a wgmma completing for all four warps together. */
static __device__ __forceinline__ void release(struct shared *shared, int stage)
{
    if (threadIdx.x % 128 < CLUSTER)
        mbarrier_arrive_at(&shared->empty[stage], (int)threadIdx.x % 128);
    __syncwarp(); /* wgmma and bar.sync need a converged warp: all lanes together */
}

/* acc := A*B for the warpgroup's 64 rows of a tile. steps: steps of BK. */
static __device__ __forceinline__ void multiply_tile(float *acc, struct shared *shared, int group,
                                                     int steps, struct place *at)
{
    int before = 0; /* the previous stage */
    for (int t = 0; t < steps; t++) {
        mbarrier_wait(&shared->full[at->stage], at->parity);
        multiply(acc, shared->stages[at->stage], group, t == 0);
        WGMMA_WAIT(acc, 1); /* the wgmmas of the previous stage are done */
        if (t > 0) release(shared, before);
        before = at->stage;
        advance(at);
    }
    WGMMA_WAIT(acc, 0);
    WGMMA_HOLD(acc); /* keeps reads of acc behind the wait (lib/wgmma.h) */
    if (steps > 0) release(shared, before);
    if (steps == 0) {
#pragma unroll
        for (int i = 0; i < BN / 2; i++)
            acc[i] = 0.0f;
    }
}

/* The address of 16 bytes in a consumer's results: row `row`, 8 columns from col on. */
static __device__ __forceinline__ unsigned char *result_at(unsigned char (*boxes)[BOX_BYTES],
                                                           int row, int col)
{
    return boxes[col / 64] + swizzle_128((unsigned)(row * 128 + col % 64 * 2));
}

/* The place of a tile in C, and the scalars for its results. */
struct destination {
    struct f16 *C;
    long long ldc;
    int m, n, row, col; /* row, col: of the warpgroup's first result */
    float alpha, beta;
};

/* Puts the warpgroup's results into shared memory. acc has the layout of rung 31: four registers
 * are a thread's elements of two 8 x 8 matrices, one below the other. */
static __device__ __forceinline__ void put_results(unsigned char (*boxes)[BOX_BYTES],
                                                   const float *acc, const struct destination *to)
{
    const int thread = opaque((int)threadIdx.x % 128); /* without it the compiler keeps 16 addresses
                                                          in registers */
    const int lane = thread % 32, first = thread / 32 * 16;
#pragma unroll
    for (int c = 0; c < BN; c += 16) {
        unsigned matrices[4]; /* rows 0..7 and 8..15 of 8 columns; then of the next 8 columns */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *sum = &acc[c / 2 + i * 2];
            if (to->beta == 0) { /* C is not read, so the elements need no tests */
                matrices[i] = floats_to_f16(to->alpha * sum[0], to->alpha * sum[1]);
                continue;
            }
            const int row = to->row + first + lane / 4 + i % 2 * 8;
            const int col = to->col + c + i / 2 * 8 + lane % 4 * 2;
            const struct f16 *C = &to->C[row * to->ldc + col];
            const float beta0 = row < to->m && col < to->n ? to->beta : 0.0f;
            const float beta1 = row < to->m && col + 1 < to->n ? to->beta : 0.0f;
            matrices[i] = floats_to_f16(finish_half(C, sum[0], to->alpha, beta0),
                                        finish_half(C + 1, sum[1], to->alpha, beta1));
        }
        stmatrix_x4(result_at(boxes, first + lane % 16, c + lane / 16 * 8), matrices);
    }
}

/* Called by one thread: TMA stores the boxes, except the parts that are outside of C. */
static __device__ __forceinline__ void store_boxes(const struct tgl_tensor_map *c_map,
                                                   unsigned char (*boxes)[BOX_BYTES],
                                                   const struct destination *to)
{
#pragma unroll
    for (int box = 0; box < BN / 64; box++)
        tma_store_3d(c_map, to->col + box * 64, to->row, 0, boxes[box]);
    tma_store_commit();
}

/* Called by all threads of a consumer, if TMA cannot store: stores single elements. */
static __device__ __forceinline__ void store_elements(unsigned char (*boxes)[BOX_BYTES],
                                                      const struct destination *to)
{
    for (int i = (int)threadIdx.x % 128; i < 64 * BN; i += 128) {
        const int row = i / BN, col = i % BN;
        const struct f16 *from = (const struct f16 *)result_at(boxes, row, col / 8 * 8);
        if (to->row + row < to->m && to->col + col < to->n)
            to->C[(to->row + row) * to->ldc + to->col + col] = from[col % 8];
    }
}

/* ---- The kernel ------------------------------------------------------------------------------ */

/* Initialises the block's mbarriers, and waits for the other block to do the same. */
static __device__ __forceinline__ void make_barriers(struct shared *shared)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&shared->full[i], 1);
            mbarrier_init(&shared->empty[i], CONSUMERS * CLUSTER);
        }
        mbarrier_init_fence();
    }
    __syncwarp();
    cluster_sync();
}

/* Multiplies and stores all tiles of the block. */
static __device__ __forceinline__ void consume(struct shared *shared, struct destination to,
                                               const struct tgl_tensor_map *c_map,
                                               bool stores_by_tma, int group, int steps)
{
    const bool is_first = threadIdx.x % 128 == 0;
    unsigned char(*boxes)[BOX_BYTES] = shared->results[group];
    struct place at = {0, 0};
    for (int pair = (int)blockIdx.x / CLUSTER; pair < pair_count(to.m, to.n);
         pair += (int)gridDim.x / CLUSTER) {
        float acc[BN / 2];
        find_tile(pair, to.m, to.n, &to.row, &to.col);
        to.row += group * 64;
        multiply_tile(acc, shared, group, steps, &at);
        if (is_first) TMA_STORE_WAIT_READ(0); /* the boxes of the tile before have been read */
        __syncwarp();
        named_barrier(1 + group, 128);
        put_results(boxes, acc, &to);
        fence_proxy_async(); /* what this thread has written is visible to TMA */
        named_barrier(1 + group, 128);
        if (!stores_by_tma)
            store_elements(boxes, &to);
        else if (is_first)
            store_boxes(c_map, boxes, &to);
        __syncwarp();
    }
    if (is_first) TMA_STORE_WAIT_READ(0);
}

__global__ void __launch_bounds__(THREADS, 1)
    hgemm_persistent(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
                     const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc,
                     int stores_by_tma, const __grid_constant__ struct tgl_tensor_map a_map,
                     const __grid_constant__ struct tgl_tensor_map b_map,
                     const __grid_constant__ struct tgl_tensor_map c_map)
{
    DYNAMIC_SHARED_ALIGNED(1024, struct shared, shared, 1);
    (void)A, (void)lda, (void)B, (void)ldb; /* the tensor maps replace them */

    const int group = (int)threadIdx.x / 128; /* the warpgroup */
    const int steps = (k + BK - 1) / BK;
    make_barriers(shared);
    if (group == CONSUMERS) {
        REGISTERS_DECREASE(PRODUCER_REGISTERS);
        if (threadIdx.x % 128 == 0) produce(shared, &a_map, &b_map, m, n, steps);
    } else {
        REGISTERS_INCREASE(CONSUMER_REGISTERS);
        const struct destination to = {C, ldc, m, n, 0, 0, alpha, beta};
        consume(shared, to, &c_map, stores_by_tma, group, steps);
    }
    __syncwarp();
    cluster_sync(); /* the other block may still arrive at this one's barriers */
}
