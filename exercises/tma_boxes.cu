/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise tma_boxes: TMA and the bytes that an mbarrier expects.
 *
 * All threads copy the tiles, 16 bytes at a time. TMA copies a box of a matrix at the request of
 * one thread: tma_load_2d(to, &map, x, y, &full) (lib/tma.h) for the box that begins at column x
 * and row y. The boxes of a_map and b_map are 64 x 64 elements, 8192 bytes. Elements outside of the
 * matrix become zero, and the chunks get the places of place_of(). The mbarrier `full` counts the
 * bytes that come.
 *
 * To do: let thread 0 announce the bytes of both boxes by mbarrier_arrive_and_expect(&full, bytes),
 * and request them. All threads wait by mbarrier_wait(&full, parity). The mbarrier is initialised
 * for one arrival a phase; the phases have parity 0, 1, 0, 1 ...
 *
 * Goal: all bytes by TMA.
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
    const bool a_aligned = half_rows_are_aligned(A, lda, 16);
    const bool b_aligned = half_rows_are_aligned(B, ldb, 16);
    (void)a_map, (void)b_map;
    if (tid == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init_fence();
    }
    __syncthreads();

    float acc[2][4][4] = {{{0.0f}}};
    for (int tile = 0; tile < k; tile += BK) {
        for (int i = tid; i < BM * CHUNKS; i += THREADS) {
            const int r = i / CHUNKS, chunk = i % CHUNKS, p = tile + chunk * 8;
            const int count = block_row + r < m ? k - p : 0;
            As[place_of(r, chunk)] = load_half8(&A[(block_row + r) * lda + p], count, a_aligned);
        }
        for (int i = tid; i < BK * CHUNKS; i += THREADS) {
            const int p = i / CHUNKS, chunk = i % CHUNKS, c = block_col + chunk * 8;
            const int count = tile + p < k ? n - c : 0;
            Bs[place_of(p, chunk)] = load_half8(&B[(tile + p) * ldb + c], count, b_aligned);
        }
        __syncthreads();
        multiply(acc, As, Bs, row, col, lane);
        __syncthreads();
    }

    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                const int r = block_row + row + i * 16 + g + e / 2 * 8;
                const int c = block_col + col + j * 8 + 2 * t + e % 2;
                if (r < m && c < n) store_half(&C[r * ldc + c], acc[i][j][e], alpha, beta);
            }
}
