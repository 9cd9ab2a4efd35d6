/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM for batches of small products on the tensor cores, by mma.sync (sm_80 and later): m up to
 * BM, n up to BN, any k; f16 and bf16 with sums in FP32, FP32 rounded to tf32, f64. Reading the
 * operands of such a product takes longer than multiplying them. Blocks are therefore persistent:
 * they compute one product after the other, and copy the operands of the next ones, STAGES - 1
 * tiles of k ahead, while they multiply.
 *
 * A warp computes WM x WN results, and a block of one to eight warps computes a product. Tiles,
 * fragments and results are those of gemm/mma.cu (lib/mma_tiles.h, lib/mma_store.h). All stages are
 * set to zero first. Rows and columns that a product does not have are never copied, so that they
 * stay zero. Parts of a tile that contain no row, no column or no k of the product are not
 * multiplied. 16-bit operands at odd addresses are copied by scalar loads, which are not
 * asynchronous.
 *
 * Grid: x = blocks, each of which takes every gridDim.x'th product of args.batch.
 */
#define ASYNC_COPY_L2 ".L2::128B" /* a miss loads 128 bytes into L2 */
#include "lib/dynamic_shared.h"
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/launch_order.h"
#include "lib/operands.h"

#ifndef BM
#define BM 32 /* at least the rows of D; a power of two */
#endif
#ifndef BN
#define BN 32 /* at least its columns; a power of two */
#endif
#ifndef BK
#define BK 32 /* depth of a tile in shared memory, in elements; a power of two */
#endif
#ifndef WM
#define WM 32 /* rows of D that a warp computes */
#endif
#ifndef WN
#define WN 32 /* columns */
#endif
#ifndef STAGES
#define STAGES 3 /* tiles in shared memory: one is multiplied while the others arrive */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* minimum resident blocks of an SM, which limits the registers */
#endif

#define WARPS_M    (BM / WM)
#define WARPS      (WARPS_M * (BN / WN))
#define THREADS    (WARPS * 32)
#define RING_BYTES (STAGES * STAGE_BYTES)

#include "lib/mma_store.h"
#include "lib/mma_tiles.h"
#include "lib/shuffle.h"

#define RESULT_BYTES (WARPS * 16 * PITCH * (ACCUMULATE == TYPE_F64 ? 8 : 4))

#if (BM & (BM - 1)) || (BN & (BN - 1)) || (BK & (BK - 1)) || BK % MMA_K || STAGES < 2
#error "BM, BN, BK: powers of two; BK: a multiple of MMA_K; STAGES: at least 2"
#endif

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Copies the rows or columns of a tile that exist, with zeros behind the end of K up to a whole
 * step. k_left: K of the product from the beginning of the tile on. */
static __device__ __forceinline__ void
batch_mma_copy_tile(char *tile, const struct mma_origin *from, int k_left, const int edge,
                    const int vec, const bool k_major, const bool has_tail)
{
    const unsigned per_line = PLACES_OF_LINE(edge, k_major, vec);
    const int depth = (k_left + MMA_K - 1) / MMA_K * MMA_K;
    const int lines = k_major ? from->edge_left : depth, width = k_major ? depth : from->edge_left;
#pragma unroll
    for (int i = 0; i < PLACES_OF_THREAD(edge, vec); i++) {
        const struct place_of_tile place =
            mma_place_of(tile, from, k_left, i, edge, vec, k_major, has_tail || IS_PLAIN(vec));
        const int at = (int)place_in_line(i, per_line) * (PLACE_BYTES(vec) / SIZE);
        if (!has_place(i, edge, vec) || (int)place_line(i, per_line) >= lines || at >= width)
            continue;
        if (IS_PLAIN(vec))
            *(uint4 *)place.to = load_elements(place.from, place.valid_bytes);
        else
            async_copy_bytes(place.to, place.from, PLACE_BYTES(vec), place.valid_bytes);
    }
}

/* The state of the copies. */
struct batch_mma_copier {
    int product, k; /* the next tile to copy is of this product, from this k on */
    int stage;      /* the offset of its stage in bytes */
};

static __device__ __forceinline__ int next_stage(int stage)
{
    return stage == (STAGES - 1) * STAGE_BYTES ? 0 : stage + STAGE_BYTES;
}

/* Copies the next tile, if there is one. Each call commits a group of copies, which is empty if
 * there is no next tile. depth: the k of the products; 0: A and B are not read. */
static __device__ __forceinline__ void batch_mma_copy_step(struct batch_mma_copier *c, char *stages,
                                                           const struct tgl_gemm_args *args,
                                                           int depth)
{
    if (c->product < args->batch && c->k < depth) {
        const struct mma_origin A =
            mma_origin_of(A_OF(args, c->product), args->lda, A_K_MAJOR ? c->k : c->k * args->lda,
                          args->m, BM, VEC_A, A_K_MAJOR);
        const struct mma_origin B =
            mma_origin_of(B_OF(args, c->product), args->ldb, B_K_MAJOR ? c->k : c->k * args->ldb,
                          args->n, BN, VEC_B, B_K_MAJOR);
        char *stage = stages + c->stage;
        batch_mma_copy_tile(stage, &A, depth - c->k, BM, VEC_A, A_K_MAJOR, TAIL_A);
        batch_mma_copy_tile(stage + A_BYTES, &B, depth - c->k, BN, VEC_B, B_K_MAJOR, TAIL_B);
        c->stage = next_stage(c->stage);
        c->k += BK;
        if (c->k >= depth) c->k = 0, c->product += (int)gridDim.x;
    }
    async_commit();
}

/* A barrier of the block. */
static __device__ __forceinline__ void wait_for_threads(void)
{
    if (WARPS == 1)
        __syncwarp();
    else
        __syncthreads();
}

/* Returns when all copies have arrived, and all threads have read the previous tile. */
static __device__ __forceinline__ void batch_mma_wait_for_copies(void)
{
    ASYNC_WAIT(STAGES - 2);
    wait_for_threads();
}

static __device__ __forceinline__ void clear_stages(char *stages)
{
    for (int i = (int)threadIdx.x * 16; i < RING_BYTES; i += THREADS * 16)
        *(uint4 *)(stages + i) = make_uint4(0, 0, 0, 0);
    wait_for_threads();
}

/* ---- Products -------------------------------------------------------------------------------- */

/* acc += the product of a tile of which `depth` of K exist. rows, cols: the number of rows and
 * columns of D from the warp's first ones on. */
static __device__ __forceinline__ void
batch_mma_multiply_tile(accumulate_t (*acc)[NT][4], const char *stage,
                        const struct mma_lane_source *source_a,
                        const struct mma_lane_source *source_b, int rows, int cols, int depth)
{
#pragma unroll
    for (int p = 0; p < BK; p += MMA_K) {
        if (p >= depth) break;
        fragment_t a[MT][FRAGMENT], b[NT / 2][FRAGMENT];
#pragma unroll
        for (int i = 0; i < MT; i++)
            if (i * 16 < rows) {
                mma_load_fragment(a[i], stage, source_a, i * 16, p, BM, A_K_MAJOR, true);
                round_fragments(&a[i], 1);
            }
#pragma unroll
        for (int j = 0; j < NT / 2; j++)
            if (j * 16 < cols) {
                mma_load_fragment(b[j], stage + A_BYTES, source_b, j * 16, p, BN, B_K_MAJOR, false);
                round_fragments(&b[j], 1);
            }
#pragma unroll
        for (int j = 0; j < NT / 2; j++)
#pragma unroll
            for (int i = 0; i < MT; i++)
                if (i * 16 < rows && j * 16 < cols) {
                    MMA(acc[i][2 * j], a[i], &b[j][0]);
                    MMA(acc[i][2 * j + 1], a[i], &b[j][FRAGMENT / 2]);
                }
    }
}

/* ---- The kernel ------------------------------------------------------------------------------ */

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_batch_mma(const struct tgl_gemm_args args)
{
    DYNAMIC_SHARED(char, shared, RING_BYTES + RESULT_BYTES);
    const int warp = uniform((int)threadIdx.x / 32);
    const int row = warp % WARPS_M * WM, col = warp / WARPS_M * WN;
    const int rows = args.m - row, cols = args.n - col;
    const struct mma_lane_source a = mma_lane_source(row, 0, BM, A_K_MAJOR, true);
    const struct mma_lane_source b = mma_lane_source(col, 0, BN, B_K_MAJOR, false);
    accumulate_t *results = (accumulate_t *)(shared + RING_BYTES) + warp * 16 * PITCH;

    clear_stages(shared);
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();
    const int depth = DEPTH_OF(&args);
    struct batch_mma_copier copier = {(int)blockIdx.x, 0, 0};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++)
        batch_mma_copy_step(&copier, shared, &args, depth);

    int stage = 0;
    for (int product = (int)blockIdx.x; product < args.batch; product += (int)gridDim.x) {
        accumulate_t acc[MT][NT][4] = {{{0}}};
        for (int k = 0; k < depth; k += BK) {
            batch_mma_wait_for_copies();
            batch_mma_copy_step(&copier, shared, &args, depth);
            batch_mma_multiply_tile(acc, shared + stage, &a, &b, rows, cols, depth - k);
            stage = next_stage(stage);
        }
        if (rows <= 0 || cols <= 0) continue;
        const struct epilogue_operands with =
            epilogue_operands(&args, D_OF(&args, product), product);
        store_results(&args, &with, results, acc, row, col);
    }
}
