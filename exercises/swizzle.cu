/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise swizzle: ldmatrix with a swizzle.
 *
 * ldmatrix loads four matrices of 8 x 8 elements of f16 at once; lane i gives the address of row i
 * % 8 of matrix i / 8, 16 bytes. The eight rows of a matrix can be loaded in one wavefront if they
 * are in different banks. A row of a tile has 128 bytes, all 32 banks: the same chunk of 16 bytes
 * of all rows is in the same four banks, and a matrix takes eight wavefronts. Padding would help,
 * but TMA and wgmma know no padding. A swizzle permutes the chunks within each row.
 *
 * To do: change place_of() so that a chunk of eight consecutive rows has eight different places,
 * and the eight chunks of a row too. All accesses use place_of().
 *
 * Goal: no bank conflicts.
 */
#include "lib/ldmatrix.h"
#include "lib/load_store_half.h"
#include "lib/mma.h"

#define BM      64 /* rows of C that a block computes: 2 x 2 warps */
#define BN      64 /* columns */
#define BK      64 /* depth of a tile in shared memory */
#define THREADS 128
#define CHUNKS  8 /* 16-byte chunks (8 elements) in a row of a tile */

/* The place of a chunk of a row in a tile. */
static __device__ __forceinline__ int place_of(int row, int chunk)
{
    return row * CHUNKS + chunk;
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
    swizzle(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
            const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc)
{
    __shared__ uint4 As[BM * CHUNKS], Bs[BK * CHUNKS];
    const int tid = (int)threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int g = lane / 4, t = lane % 4;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = warp / 2 * 32, col = warp % 2 * 32; /* first of the warp's 32 x 32 elements */
    const bool a_aligned = half_rows_are_aligned(A, lda, 16);
    const bool b_aligned = half_rows_are_aligned(B, ldb, 16);

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
