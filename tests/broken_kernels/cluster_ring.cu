/* SPDX-License-Identifier: Apache-2.0
 *
 * C = A * B^T by clusters of two blocks. Both need the same tile of A: each block loads one half of
 * it and sends that half to both blocks. It is correct; each macro breaks one thing. For the
 * simulator only, because the kernel makes its tensor maps itself.
 *
 * m and n must be multiples of 64, k a multiple of 32.
 */
#include "lib/cluster.h"
#include "lib/mbarrier.h"
#include "lib/tma.h"

#define BM     64
#define BN     32
#define BK     32
#define STAGES 2

#ifndef MASK
#define MASK 3 /* the blocks that get each half, as bits */
#endif
#ifndef ARRIVALS
#define ARRIVALS 256 /* arrivals at an `empty` barrier: the consumer threads of both blocks */
#endif

struct shared {
    float a[STAGES][BM * BK], b[STAGES][BN * BK];
    mbarrier full[STAGES], empty[STAGES];
};

static __device__ struct tgl_tensor_map map_of(const float *x, int rows, int cols, long long ld)
{
    struct tgl_tensor_map map = {.base = x,
                                 .size = {(unsigned)cols, (unsigned)rows, 1},
                                 .stride = {4, ld * 4, ld * 4 * rows},
                                 .box = {BK, 32, 1},
                                 .rank = 3,
                                 .element = 4};
    return map;
}

static __device__ void produce(struct shared *shared, const struct tgl_tensor_map *a,
                               const struct tgl_tensor_map *b, int steps)
{
    const int rank = (int)blockIdx.x % 2, row = (int)blockIdx.y * BM + rank * 32;
    for (int i = 0; i < steps; i++) {
        const int stage = i % STAGES;
        mbarrier *full = &shared->full[stage];
        float *half = &shared->a[stage][rank * 32 * BK];
        mbarrier_wait(&shared->empty[stage], (unsigned)(i / STAGES % 2) ^ 1);
        mbarrier_arrive_and_expect(full, sizeof shared->a[0] + sizeof shared->b[0]);
        tma_load_3d_multicast(half, a, i * BK, row, 0, full, MASK);
        tma_load_3d(shared->b[stage], b, i * BK, (int)blockIdx.x * BN, 0, full);
    }
}

/* Each thread computes half a row of the block's tile of C. */
static __device__ void multiply(float *sums, struct shared *shared, int steps)
{
    const int row = (int)threadIdx.x % BM, col = (int)threadIdx.x / BM * (BN / 2);
    for (int i = 0; i < steps; i++) {
        const int stage = i % STAGES;
        mbarrier_wait(&shared->full[stage], (unsigned)(i / STAGES % 2));
        for (int p = 0; p < BK; p++)
            for (int j = 0; j < BN / 2; j++)
                sums[j] += shared->a[stage][row * BK + p] * shared->b[stage][(col + j) * BK + p];
#ifdef RELEASES_OWN
        mbarrier_arrive(&shared->empty[stage]);
#else
        for (int rank = 0; rank < 2; rank++)
            mbarrier_arrive_at(&shared->empty[stage], rank);
#endif
    }
}

__global__ void __launch_bounds__(160)
    cluster_ring(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                 long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(128) struct shared shared;
    const struct tgl_tensor_map a = map_of(A, m, k, lda), b = map_of(B, n, k, ldb);
    float sums[BN / 2] = {0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&shared.full[i], 1);
            mbarrier_init(&shared.empty[i], ARRIVALS);
        }
        mbarrier_init_fence();
    }
#ifdef NO_SYNC_AT_BEGIN
    __syncthreads();
#else
    cluster_sync();
#endif
    if (threadIdx.x < 128)
        multiply(sums, &shared, k / BK);
    else if (threadIdx.x == 128)
        produce(&shared, &a, &b, k / BK);
    const int row = (int)blockIdx.y * BM + (int)threadIdx.x % BM;
    const int col = (int)blockIdx.x * BN + (int)threadIdx.x / BM * (BN / 2);
    if (threadIdx.x < 128)
        for (int j = 0; j < BN / 2; j++)
            C[row * ldc + col + j] = sums[j];
#ifndef NO_SYNC_AT_END
    cluster_sync();
#endif
}
