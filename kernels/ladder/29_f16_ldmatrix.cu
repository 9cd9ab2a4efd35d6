/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 29: ldmatrix and a swizzle.
 *
 * Changed, two things: ldmatrix loads fragments, four 8 x 8 matrices at a time; and the tiles are
 * swizzled, so that ldmatrix has no bank conflicts.
 *
 * Each lane gives the address of one row of 16 bytes: lanes 0..7 give the rows of the first matrix,
 * lanes 8..15 those of the second, and so on. The four matrices of a load, and the lanes that give
 * their rows:
 *
 *     A:     k 0..7    k 8..15         B, transposed on the way:    column 0..7   8..15
 *     row 0..7   0..7    16..23                          k 0..7         0..7       16..23
 *     row 8..15  8..15   24..31                          k 8..15        8..15      24..31
 *
 * The matrix whose rows lanes 0..7 give arrives in a[0] of all lanes, that of lanes 8..15 in a[1],
 * of 16..23 in a[2], and of 24..31 in a[3]; for B in b[0] to b[3], where b[0] and b[1] belong to
 * columns 0..7. With g = lane / 4 and t = lane % 4, a lane receives elements 2t and 2t+1 of row g
 * of a matrix, as the fragment of A in rung 28 requires. With the transpose it receives the
 * elements of rows 2t and 2t+1 in column g, as the fragment of B requires: there neighbours in K
 * are in two rows.
 *
 * The rows of a tile are multiples of 128 bytes apart, so that equal 16-byte chunks of all rows
 * would be in the same four banks. A swizzle moves them: chunk c of row r is stored in the place of
 * chunk c ^ (r % 8). In B's tile, whose rows have 16 chunks, this changes the low three bits of c.
 *
 *     place    0  1  2  3  4  5  6  7        banks 4 * place .. 4 * place + 3
 *     row 0    0  1  2  3  4  5  6  7
 *     row 1    1  0  3  2  5  4  7  6        a matrix is eight rows of one chunk, such as all
 *     row 2    2  3  0  1  6  7  4  5        chunks 0: they lie in eight different places
 *     row 3    3  2  1  0  7  6  5  4
 *     ...
 *     row 7    7  6  5  4  3  2  1  0
 *
 * Why: one ldmatrix replaces four loads of A, or eight of B; and a matrix takes one wavefront
 * instead of up to eight.
 * Look at: LDSM in the SASS, and with ncu --metrics
 *     smsp__inst_executed_op_shared_ld.sum (0)
 *     smsp__inst_executed_op_ldsm.sum
 *     l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum (0)
 */
#include "lib/ldmatrix.h"
#include "lib/load_store_half.h"
#include "lib/mma.h"

#define BM      128 /* rows of C that a block computes */
#define BN      128 /* columns */
#define BK      64  /* depth of a tile in shared memory */
#define WM      64  /* rows of C that a warp computes */
#define WN      32  /* columns */
#define THREADS (BM / WM * (BN / WN) * 32)

#define A_CHUNKS (BK / 8) /* chunks of 16 bytes in a row of A's tile */
#define B_CHUNKS (BN / 8)

/* The index of a 16-byte chunk in a swizzled tile whose rows have `chunks` chunks: 8, 16, ... */
static __device__ __forceinline__ int place_of(int row, int chunk, const int chunks)
{
    return row * chunks + (chunk ^ row % 8);
}

__global__ void __launch_bounds__(THREADS)
    hgemm_ldmatrix(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
                   const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc)
{
    __shared__ uint4 As[BM * A_CHUNKS];
    __shared__ uint4 Bs[BK * B_CHUNKS];

    const int tid = (int)threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int g = lane / 4, t = lane % 4;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    /* The warp's first row and column in the block's tile. */
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;
    const bool a_aligned = half_rows_are_aligned(A, lda, 16);
    const bool b_aligned = half_rows_are_aligned(B, ldb, 16);
    const bool c_aligned = half_rows_are_aligned(C, ldc, 4);

    float acc[WM / 16][WN / 8][4] = {{{0.0f}}};
    for (int tile = 0; tile < k; tile += BK) {
#pragma unroll
        for (int i = 0; i < BM * A_CHUNKS; i += THREADS) {
            const int r = (i + tid) / A_CHUNKS, chunk = (i + tid) % A_CHUNKS;
            const int count = block_row + r < m ? k - (tile + chunk * 8) : 0;
            As[place_of(r, chunk, A_CHUNKS)] =
                load_half8(&A[(block_row + r) * lda + tile + chunk * 8], count, a_aligned);
        }
#pragma unroll
        for (int i = 0; i < BK * B_CHUNKS; i += THREADS) {
            const int p = (i + tid) / B_CHUNKS, chunk = (i + tid) % B_CHUNKS;
            const int count = tile + p < k ? n - (block_col + chunk * 8) : 0;
            Bs[place_of(p, chunk, B_CHUNKS)] =
                load_half8(&B[(tile + p) * ldb + block_col + chunk * 8], count, b_aligned);
        }
        __syncthreads();

#pragma unroll
        for (int p = 0; p < BK; p += 16) {
            unsigned a[WM / 16][4], b[WN / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
                ldmatrix_x4(a[i],
                            &As[place_of(row + i * 16 + lane % 16, p / 8 + lane / 16, A_CHUNKS)]);
#pragma unroll
            for (int j = 0; j < WN / 16; j++)
                ldmatrix_x4_trans(
                    b[j], &Bs[place_of(p + lane % 16, (col + j * 16) / 8 + lane / 16, B_CHUNKS)]);
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
#pragma unroll
                for (int j = 0; j < WN / 8; j++)
                    mma_f16(acc[i][j], a[i], &b[j / 2][j % 2 * 2]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < WM / 16; i++)
#pragma unroll
        for (int j = 0; j < WN / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e += 2) {
                const int r = block_row + row + i * 16 + g + e * 4;
                const int c = block_col + col + j * 8 + 2 * t;
                if (r < m)
                    store_half_pair(&C[r * ldc + c], &acc[i][j][e], alpha, beta, n - c, c_aligned);
            }
}
