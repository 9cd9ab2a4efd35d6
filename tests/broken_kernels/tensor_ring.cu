/* SPDX-License-Identifier: Apache-2.0
 *
 * C = A * B^T in TF32 on the tensor cores, as production kernels compute it: one warp fills a ring
 * of stages by TMA, a warpgroup multiplies the stages by wgmma, and TMA stores the tile of C from
 * shared memory in two halves. It is correct. Each macro breaks one thing, except IN_REGISTERS,
 * with which wgmma reads the left tile from registers. For the simulator only, because the kernel
 * makes its tensor maps itself.
 *
 * m must be a multiple of 64, n and k multiples of 32.
 */
#include "lib/mbarrier.h"
#include "lib/named_barrier.h"
#include "lib/tma.h"

#define WGMMA_TYPE          TYPE_F32
#define WGMMA_N             32
#define WGMMA_LEFT_K_MAJOR  1
#define WGMMA_RIGHT_K_MAJOR 1
#ifdef IN_REGISTERS
#define WGMMA_LEFT_IN_REGISTERS 1
#endif
#include "lib/wgmma.h"

#define BM     64
#define BN     32
#define BK     32 /* a row of a tile has 128 bytes */
#define STAGES 2
#define HALF   16 /* columns of C that are stored at a time */

#ifndef SHORTER
#define SHORTER 0 /* number of columns that C's tensor map lacks */
#endif
#ifdef SHORT_EXPECT
#define STAGE_BYTES ((BM + BN) * BK * 4 - 16)
#else
#define STAGE_BYTES ((BM + BN) * BK * 4)
#endif
#ifdef TOO_FEW_ARRIVALS
#define RELEASES 2
#else
#define RELEASES 1
#endif

#ifdef NO_COMMIT
#define COMMITS(step) false
#elif defined(NO_COMMIT_AT_END)
#define COMMITS(step) ((step) + 1 < steps)
#else
#define COMMITS(step) true
#endif
#ifdef NO_WGMMA_WAIT
#define WAITS(step) false
#elif defined(NO_WAIT_AT_END)
#define WAITS(step) ((step) + 1 < steps)
#else
#define WAITS(step) true
#endif
#ifdef NO_STORE_WAIT
#define STORE_WAITS(is_last) false
#elif defined(NO_LAST_STORE_WAIT)
#define STORE_WAITS(is_last) !(is_last)
#else
#define STORE_WAITS(is_last) true
#endif
#ifdef UNALIGNED_TILE
#define FIRST_ROW 1
#else
#define FIRST_ROW 0
#endif

struct shared {
    float left[STAGES][BM * BK], right[STAGES][BN * BK];
    float c[BM * HALF];
    mbarrier full[STAGES], empty[STAGES];
};

static __device__ struct tgl_tensor_map map_of(const float *x, int rows, int cols, long long ld,
                                               int box_rows, int box_cols, int swizzle)
{
    struct tgl_tensor_map map = {.base = x,
                                 .size = {(unsigned)cols, (unsigned)rows, 1},
                                 .stride = {4, ld * 4, ld * 4 * rows},
                                 .box = {(unsigned short)box_cols, (unsigned short)box_rows, 1},
                                 .rank = 3,
                                 .element = 4,
                                 .swizzle = (unsigned char)swizzle};
    return map;
}

static __device__ void produce(struct shared *shared, const struct tgl_tensor_map *left,
                               const struct tgl_tensor_map *right, int row, int col, int steps)
{
    for (int i = 0; i < steps; i++) {
        const int stage = i % STAGES;
        const unsigned parity = (unsigned)(i / STAGES % 2);
#ifndef NO_EMPTY_WAIT
        mbarrier_wait(&shared->empty[stage], parity ^ 1);
#endif
        mbarrier_arrive_and_expect(&shared->full[stage], STAGE_BYTES);
        tma_load_3d(shared->left[stage], left, i * BK, row, 0, &shared->full[stage]);
        tma_load_3d(shared->right[stage], right, i * BK, col, 0, &shared->full[stage]);
    }
}

#ifdef IN_REGISTERS
/* Loads the fragments for the four wgmmas of a stage from a K-major tile with 128-byte swizzle. */
static __device__ void load_fragments(unsigned (*fragments)[4], const float *tile)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    for (int i = 0; i < 16; i++) {
        const int row = warp * 16 + lane / 4 + i % 2 * 8, k = i / 4 * 8 + lane % 4 + i / 2 % 2 * 4;
        fragments[i / 4][i % 4] =
            ((const unsigned *)tile)[row * BK + (k / 4 ^ row % 8) * 4 + k % 4];
    }
}

static __device__ void multiply(float *acc, struct shared *shared, int steps)
{
    unsigned fragments[4][4];
    for (int i = 0; i < steps; i++) {
        const int stage = i % STAGES;
        mbarrier_wait(shared->full + stage, (unsigned)(i / STAGES % 2));
        const wgmma_tile right = make_wgmma_tile(shared->right[stage], 128, 0, 1024);
#ifdef FENCES_EARLY
        wgmma_fence();
        load_fragments(fragments, shared->left[stage]);
#else
        load_fragments(fragments, shared->left[stage]);
        wgmma_fence();
#endif
        for (int k = 0; k < 4; k++)
            wgmma(acc, fragments[k], right + k * 2, i > 0 || k > 0);
        wgmma_commit();
#ifdef LOADS_EARLY
        load_fragments(fragments, shared->left[stage]);
#endif
        WGMMA_WAIT(acc, 0);
        named_barrier(1, 128); /* all threads have read their fragments */
        if (threadIdx.x == 0) mbarrier_arrive(shared->empty + stage);
    }
}
#else
static __device__ void multiply(float *acc, struct shared *shared, int steps)
{
    for (int i = 0; i < steps; i++) {
        const int stage = i % STAGES;
        const unsigned parity = (unsigned)(i / STAGES % 2);
#ifndef NO_FULL_WAIT
        mbarrier_wait(&shared->full[stage], parity);
#endif
        const wgmma_tile left = make_wgmma_tile(&shared->left[stage][FIRST_ROW * BK], 128, 0, 1024);
        const wgmma_tile right = make_wgmma_tile(shared->right[stage], 128, 0, 1024);
#ifndef NO_WGMMA_FENCE
        wgmma_fence();
#endif
        for (int k = 0; k < 4; k++)
            wgmma(acc, left + k * 2, right + k * 2, i > 0 || k > 0);
        if (COMMITS(i)) wgmma_commit();
#ifdef ARRIVES_EARLY
        if (threadIdx.x == 0) mbarrier_arrive(&shared->empty[stage]);
        WGMMA_WAIT(acc, 0);
#else
        if (WAITS(i)) WGMMA_WAIT(acc, 0);
#ifndef NO_EMPTY_ARRIVAL
        if (threadIdx.x == 0) mbarrier_arrive(&shared->empty[stage]);
#endif
#endif
    }
}
#endif

/* A separate function, because clang instruments only accesses through a pointer. */
static __device__ void add(float *acc, float x)
{
    acc[0] += x;
}

/* Stores half of the tile of C, through shared memory. */
static __device__ void store_half(const float *acc, struct shared *shared,
                                  const struct tgl_tensor_map *to, int row, int col, bool is_last)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    for (int i = 0; i < HALF / 2; i++) {
        const int r = warp * 16 + lane / 4 + i / 2 % 2 * 8, c = i / 4 * 8 + lane % 4 * 2 + i % 2;
        shared->c[r * HALF + c] = acc[i];
    }
#ifndef NO_PROXY_FENCE
    fence_proxy_async();
#endif
#ifndef NO_BARRIER
    named_barrier(1, 128);
#endif
    if (threadIdx.x == 0) {
        tma_store_3d(to, col, row, 0, shared->c);
        tma_store_commit();
        if (STORE_WAITS(is_last)) TMA_STORE_WAIT_READ(0);
    }
    named_barrier(1, 128);
}

__global__ void __launch_bounds__(160)
    tensor_ring(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(1024) struct shared shared;
    const int row = (int)blockIdx.y * BM, col = (int)blockIdx.x * BN, steps = k / BK;
    const struct tgl_tensor_map left = map_of(A, m, k, lda, BM, BK, 128);
    const struct tgl_tensor_map right = map_of(B, n, k, ldb, BN, BK, 128);
    const struct tgl_tensor_map to = map_of(C, m, n - SHORTER, ldc, BM, HALF, 0);
    float acc[BN / 2] = {0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&shared.full[i], 1);
            mbarrier_init(&shared.empty[i], RELEASES);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128) produce(&shared, &left, &right, row, col, steps);
        return;
    }
#ifdef TOUCHES
    add(acc, 0.0f);
    wgmma_fence();
#endif
    multiply(acc, &shared, steps);
#ifdef TOUCHES
    add(acc, 1.0f);
    wgmma(acc, make_wgmma_tile(shared.left[0], 128, 0, 1024),
          make_wgmma_tile(shared.right[0], 128, 0, 1024), 1);
#endif
    store_half(acc, &shared, &to, row, col, false);
    store_half(acc + HALF / 2, &shared, &to, row, col + HALF, true);
}
