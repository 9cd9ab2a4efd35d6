/* SPDX-License-Identifier: Apache-2.0
 *
 * The main kernel of the probe family: C := alpha*A*B + beta*C. A cluster of two blocks computes a
 * tile of C, each block over half of K. Tiles of A are copied by TMA, two tiles ahead; tiles of B
 * are copied by plain loads. At the end each block adds the two partial sums for half of the tile's
 * rows and stores these rows.
 */
#include "lib/cluster.h"
#include "lib/launch_order.h"
#include "lib/tma.h"

#define BM      32 /* rows and columns of a tile of C */
#define BN      32
#define BK      32 /* a row of a tile of A has the 128 bytes of the swizzle */
#define STAGES  2  /* tiles of A in shared memory */
#define THREADS 128
#define TN      8 /* adjacent elements of a row of C per thread */

/* Element (row, p) of a tile of A. */
static __device__ __forceinline__ float element_of_A(const float *tile, int row, int p)
{
    return tile[swizzle_128((unsigned)(row * BK + p) * 4) / 4];
}

__global__ void __launch_bounds__(THREADS)
    probe_multiply(const __grid_constant__ struct tgl_tensor_map map_A, int m, int n, int k,
                   float alpha, float beta, const float *B, long long ldb, float *C, long long ldc)
{
    __shared__ __align__(1024) float As[STAGES][BM * BK];
    __shared__ float Bs[BK][BN];
    __shared__ float sums[BM][BN];
    __shared__ mbarrier full[STAGES]; /* a tile of A has arrived */
    const int thread = (int)threadIdx.x, rank = (int)blockIdx.x % 2;
    const int row = (int)blockIdx.y * BM, col = (int)blockIdx.x / 2 * BN;
    const int steps = (k + BK - 1) / BK;
    const int first = rank == 0 ? 0 : (steps + 1) / 2, last = rank == 0 ? (steps + 1) / 2 : steps;

    if (thread == 0) {
        for (int s = 0; s < STAGES; s++)
            mbarrier_init(&full[s], 1);
        mbarrier_init_fence();
    }
    wait_for_earlier_launches();
    let_later_launches_start();
    __syncthreads();

    if (thread == 0)
        for (int s = 0; s < STAGES && first + s < last; s++) {
            mbarrier_arrive_and_expect(&full[s], sizeof As[s]);
            tma_load_2d(As[s], &map_A, (first + s) * BK, row, &full[s]);
        }

    const int tile_row = thread / (BN / TN), tile_col = thread % (BN / TN) * TN;
    float acc[TN] = {0.0f};
    for (int step = first; step < last; step++) {
        const int stage = (step - first) % STAGES;
        for (int i = thread; i < BK * BN; i += THREADS) {
            const int p = step * BK + i / BN, c = col + i % BN;
            Bs[i / BN][i % BN] = p < k && c < n ? B[p * ldb + c] : 0.0f;
        }
        mbarrier_wait(&full[stage], (unsigned)((step - first) / STAGES % 2));
        __syncthreads();
        for (int p = 0; p < BK; p++) {
            const float a = element_of_A(As[stage], tile_row, p);
#pragma unroll
            for (int j = 0; j < TN; j++)
                acc[j] += a * Bs[p][tile_col + j];
        }
        __syncthreads();
        if (thread == 0 && step + STAGES < last) {
            mbarrier_arrive_and_expect(&full[stage], sizeof As[stage]);
            tma_load_2d(As[stage], &map_A, (step + STAGES) * BK, row, &full[stage]);
        }
    }

#pragma unroll
    for (int j = 0; j < TN; j++)
        sums[tile_row][tile_col + j] = acc[j];
    cluster_sync();
    for (int i = thread; i < BM / 2 * BN; i += THREADS) {
        const int r = rank * (BM / 2) + i / BN, c = i % BN;
        const float sum = cluster_load(&sums[r][c], 0) + cluster_load(&sums[r][c], 1);
        float *to = &C[(row + r) * ldc + col + c];
        if (row + r < m && col + c < n) *to = alpha * sum + (beta != 0.0f ? beta * *to : 0.0f);
    }
    cluster_sync(); /* no block exits while the other one reads its sums */
}
