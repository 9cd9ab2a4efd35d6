/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 31: wgmma and TMA (sm_90a).
 *
 * Changed, two things: Hopper's instructions for products and for copies. STAGES is 4 instead of 3.
 *
 *   wgmma       The four warps of a warpgroup together multiply tiles in shared memory directly:
 *               64 x 16 of A by 16 x 128 of B. Only the sums are in registers. It is asynchronous:
 *               wgmma_commit() ends a group of instructions, WGMMA_WAIT(acc, n) waits until at most
 *               n groups are unfinished. Until a group is finished, no thread may access its sums
 *               or overwrite its tiles. wgmma_fence() orders earlier accesses to the sums before
 *               the next wgmma. A descriptor (wgmma_tile) has the address of a tile, its swizzle,
 *               the bytes from 8 rows to the next 8, and the bytes from 64 columns of B to the next
 *               64.
 *
 *   TMA         One thread requests the copy of a whole box of a matrix. A tensor map, which the
 *               host passes as a parameter, describes the matrix, the box and the swizzle.
 *
 *   mbarrier    Counts arrivals of threads and bytes of copies, in phases of parity 0, 1, 0, ...
 *               Thread 0 arrives and announces the bytes of a stage. The phase completes when these
 *               bytes have come, and the next phase begins. Tile t fills its stage in lap
 *               t / STAGES of the ring, so all threads wait for the phase of parity lap % 2.
 *
 *     iteration t   | wait for tile t | multiply tile t, wait | barrier | request tile t + 4 |
 *
 *     a stage, 32 KB; TMA writes it with the swizzle of rung 29, and wgmma undoes it. With this
 *     swizzle the rows of a box have at most 128 bytes, so B needs two boxes.
 *
 *     A: one box of 64 x 128           B: two boxes of 64 x 64
 *     row 0     k 0 .. 63              k 0    col 0 .. 63        k 0    col 64 .. 127
 *     row 1     k 0 .. 63              k 1    col 0 .. 63        k 1    col 64 .. 127
 *     ...                              ...                       ...
 *     row 127                          k 63                      k 63
 *     warpgroup 0: rows 0..63          both warpgroups read all of it
 *     warpgroup 1: rows 64..127
 *
 *     sums of a thread: a warp has 16 rows, of which every 8 columns are laid out as in rung 28
 *     acc[i]    row     16 * (warp of the warpgroup) + lane / 4 + 8 * (i / 2 % 2)
 *               column  8 * (i / 4) + 2 * (lane % 4) + i % 2
 *
 * Elements outside the matrices become zeros. TMA needs matrices that begin at a multiple of 16
 * bytes, with rows that are multiples of 16 bytes apart. For other operands the host adds a launch
 * that copies them (gemm/repack.cu).
 *
 * Why: fragments of A and B need no registers and no instructions. And mma.sync cannot use the
 * whole tensor core: wgmma has more than 1.5 times the rate of mma.sync.
 * Look at: HGMMA and UTMALDG in the SASS, and with ncu --metrics
 *     sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active (increases)
 *     smsp__inst_executed.sum (decreases)
 *     launch__registers_per_thread (decreases)
 */
#include "lib/dynamic_shared.h"
#include "lib/load_store_half.h"
#include "lib/tma.h"

#define BM      128 /* rows of C that a block computes: 64 for each warpgroup */
#define BN      128 /* columns */
#define BK      64  /* depth of a tile: 128 bytes */
#define STAGES  4   /* tiles in shared memory: one is multiplied while the others arrive */
#define THREADS (BM / 64 * 128)

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
    mbarrier full[STAGES];                     /* the tiles have arrived */
};

/* Called by one thread: requests the copies of A's tile at (row, p) and of B's at (p, col). */
static __device__ __forceinline__ void load_tiles(struct shared *to, int stage,
                                                  const struct tgl_tensor_map *a_map,
                                                  const struct tgl_tensor_map *b_map, int row,
                                                  int col, int p)
{
    unsigned char *tiles = to->stages[stage];
    mbarrier *full = &to->full[stage];
    mbarrier_arrive_and_expect(full, STAGE_BYTES);
    tma_load_2d(tiles, a_map, p, row, full);
#pragma unroll
    for (int box = 0; box < BN / 64; box++)
        tma_load_2d(tiles + A_BYTES + box * BOX_BYTES, b_map, col + box * 64, p, full);
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

__global__ void __launch_bounds__(THREADS)
    hgemm_wgmma(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
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
        for (int i = 0; i < STAGES; i++)
            mbarrier_init(&shared->full[i], 1);
        mbarrier_init_fence();
        for (int t = 0; t < STAGES && t < steps; t++)
            load_tiles(shared, t, &a_map, &b_map, block_row, block_col, t * BK);
    }
    __syncthreads();

    float acc[BN / 2];
#pragma unroll
    for (int i = 0; i < BN / 2; i++)
        acc[i] = 0.0f; /* only for k = 0; else the first wgmma replaces them */
    for (int t = 0; t < steps; t++) {
        const int stage = t % STAGES;
        mbarrier_wait(&shared->full[stage], t / STAGES % 2);
        multiply(acc, shared->stages[stage], group, t == 0);
        WGMMA_WAIT(acc, 0);
        __syncthreads(); /* both warpgroups have read the stage */
        if (threadIdx.x == 0 && t + STAGES < steps)
            load_tiles(shared, stage, &a_map, &b_map, block_row, block_col, (t + STAGES) * BK);
        __syncwarp(); /* wgmma needs a converged warp: all lanes execute it together */
    }
    WGMMA_HOLD(acc); /* keeps reads of acc behind the wait (lib/wgmma.h) */

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
