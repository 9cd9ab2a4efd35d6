/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM for batches of small products on the tensor cores, by mma.sync (sm_80 and later). A product
 * has a few tiles of BM x BN, and any k. Types: f16 and bf16 with sums in FP32, FP32 rounded to
 * tf32, f64. Reading the operands of a small product takes longer than multiplying them. Blocks are
 * therefore persistent: they compute one tile of D after the other. While they multiply, they copy
 * the next tiles of the operands, STAGES - 1 tiles ahead.
 *
 * A warp computes WM x WN results. Tiles, fragments and results are those of gemm/mma.cu
 * (lib/mma_tiles.h, lib/mma_store.h). All stages are set to zero first. Rows and columns that a
 * product does not have are not copied. Parts of a tile that contain no row, no column or no k of
 * the product are not multiplied.
 *
 * If the rows of a 16-bit operand are aligned to 2 bytes only, cp.async cannot copy them to their
 * places. Both operands are then copied with their misalignment, and shifted within shared memory
 * before the multiplication (lib/raw_copies.h). In this case there is only one stage.
 *
 * 16-bit results whose rows follow each other without a gap, but do not begin at multiples of 16
 * bytes, are stored as one line (lib/packed_store.h).
 *
 * Grid: x = blocks, each of which takes every gridDim.x'th tile of the batch.
 */
#define ASYNC_COPY_L2 ".L2::128B" /* a miss loads 128 bytes into L2 */
#include "lib/dynamic_shared.h"
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/launch_order.h"
#include "lib/operands.h"

#ifndef BM
#define BM 32 /* rows of a tile of D; a power of two */
#endif
#ifndef BN
#define BN 32 /* its columns; a power of two */
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

#ifndef TILED
#define TILED 0 /* 1: products have more than BM rows or BN columns */
#endif

#define WARPS_M (BM / WM)
#define WARPS   (WARPS_M * (BN / WN))
#define THREADS (WARPS * 32)

#include "lib/mma_tiles.h"

#include "lib/mma_store.h"
#include "lib/opaque.h"
#include "lib/packed_store.h"
#include "lib/raw_copies.h"
#include "lib/shuffle.h"

/* IS_ODD: an operand is aligned to 2 bytes only; such operands are called odd. RAW_A, RAW_B:
 * offsets in shared memory of the raw lines (lib/raw_copies.h) of A and B. */
#define IS_ODD    (IS_PLAIN(VEC_A) || IS_PLAIN(VEC_B))
#define RAW_A     STAGE_BYTES /* behind the only stage */
#define RAW_B     (RAW_A + RAW_BYTES(BM, A_K_MAJOR))
#define ODD_BYTES (RAW_B + RAW_BYTES(BN, B_K_MAJOR))

#define RING_BYTES   (IS_ODD ? ODD_BYTES : STAGES * STAGE_BYTES)
#define ROW_BYTES    (WARPS * 16 * PITCH * (ACCUMULATE == TYPE_F64 ? 8 : 4))
#define RESULT_BYTES (ROW_BYTES > PACKED_BYTES ? ROW_BYTES : PACKED_BYTES)

#if (BM & (BM - 1)) || (BN & (BN - 1)) || (BK & (BK - 1)) || BK % MMA_K || STAGES < 2
#error "BM, BN, BK: powers of two; BK: a multiple of MMA_K; STAGES: at least 2"
#endif
#if IS_ODD && !(RAW_IS_LEGAL(BM, A_K_MAJOR) && RAW_IS_LEGAL(BN, B_K_MAJOR))
#error "VEC_A, VEC_B: lines of odd operands have at most THREADS / 8 times 16 bytes"
#endif

/* ---- Tiles of the products ------------------------------------------------------------------- */

/* A tile of D: the work of a block between two stores. */
struct batch_mma_item {
    int product, row, col; /* number in the batch; first row and column of the tile */
    int rows, cols;        /* at most BM and BN */
};

/* Height and width of the tiles, at most BM and BN. With TILED a product has ceil(m / BM) x ceil(n
 * / BN) tiles of about the same size. Each is a multiple of WM x WN, except at the edge. */
static __device__ __forceinline__ int tile_height(const struct tgl_gemm_args *args)
{
    const int tiles = (args->m + BM - 1) / BM;
    return TILED ? ((args->m + tiles - 1) / tiles + WM - 1) / WM * WM : BM;
}

static __device__ __forceinline__ int tile_width(const struct tgl_gemm_args *args)
{
    const int tiles = (args->n + BN - 1) / BN;
    return TILED ? ((args->n + tiles - 1) / tiles + WN - 1) / WN * WN : BN;
}

/* The number of items (tiles of D) of the batch. */
static __device__ __forceinline__ int batch_mma_items(const struct tgl_gemm_args *args)
{
    if (!TILED) return args->batch;
    return args->batch * ((args->m + BM - 1) / BM) * ((args->n + BN - 1) / BN);
}

static __device__ __forceinline__ struct batch_mma_item
batch_mma_item_of(const struct tgl_gemm_args *args, int number)
{
    struct batch_mma_item item = {number, 0, 0, args->m, args->n};
    if (!TILED) return item;
    const int tiles_m = (args->m + BM - 1) / BM, tiles_n = (args->n + BN - 1) / BN;
    const int height = tile_height(args), width = tile_width(args);
    item.product = number / (tiles_m * tiles_n);
    const int tile = number - item.product * (tiles_m * tiles_n);
    item.row = tile / tiles_n * height;
    item.col = tile % tiles_n * width;
    item.rows = min(height, args->m - item.row);
    item.cols = min(width, args->n - item.col);
    return item;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Copies the existing rows or columns of a tile, with zeros from the end of K to the end of the
 * last mma.sync. k_left: K of the product from the beginning of the tile on. */
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
            mma_place_of(tile, from, k_left, i, edge, vec, k_major, has_tail);
        const int at = (int)place_in_line(i, per_line) * (PLACE_BYTES(vec) / SIZE);
        if (has_place(i, edge, vec) && (int)place_line(i, per_line) < lines && at < width)
            async_copy_bytes(place.to, place.from, PLACE_BYTES(vec), place.valid_bytes);
    }
}

/* The state of the copies. */
struct batch_mma_copier {
    int item, k; /* the next operand tiles to copy: the item and first k of these tiles */
    int stage;   /* the offset of their stage in bytes */
};

static __device__ __forceinline__ int next_stage(int stage)
{
    return stage == (STAGES - 1) * STAGE_BYTES ? 0 : stage + STAGE_BYTES;
}

/* Copies the next tiles of A and B, if there are any. Each call commits a group of copies, which is
 * empty if there are none. depth: k of the products; 0: A and B are not read. */
static __device__ __forceinline__ void batch_mma_copy_step(struct batch_mma_copier *c, char *stages,
                                                           const struct tgl_gemm_args *args,
                                                           int depth)
{
    if (c->item < batch_mma_items(args) && c->k < depth) {
        const struct batch_mma_item item = batch_mma_item_of(args, c->item);
        const struct mma_origin A =
            mma_origin_of(A_OF(args, item.product), args->lda,
                          A_K_MAJOR ? item.row * args->lda + c->k : c->k * args->lda + item.row,
                          item.rows, BM, VEC_A, A_K_MAJOR);
        const struct mma_origin B =
            mma_origin_of(B_OF(args, item.product), args->ldb,
                          B_K_MAJOR ? item.col * args->ldb + c->k : c->k * args->ldb + item.col,
                          item.cols, BN, VEC_B, B_K_MAJOR);
        char *stage = stages + c->stage;
        batch_mma_copy_tile(stage, &A, depth - c->k, BM, VEC_A, A_K_MAJOR, TAIL_A);
        batch_mma_copy_tile(stage + A_BYTES, &B, depth - c->k, BN, VEC_B, B_K_MAJOR, TAIL_B);
        c->stage = next_stage(c->stage);
        c->k += BK;
        if (c->k >= depth) c->k = 0, c->item += (int)gridDim.x;
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

/* Returns when the copies of the next tiles have arrived, and all threads have read the previous
 * tiles. */
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

/* ---- Copies of odd operands ------------------------------------------------------------------ */

/* One operand of a product. */
struct batch_mma_operand {
    const void *matrix;
    long long ld, stride;
    bool is_listed;         /* the matrices of the batch are given by an array of pointers, not by a
                               stride */
    int edge, first, count; /* number of rows or columns of the matrix; the first one in the item;
                               number of them in the item */
};

/* Returns the tile of operand x that begins at k. If the matrices of a batch follow each other
 * without gaps, 16-byte words that are partly outside of a matrix may be loaded: the other part
 * belongs to a neighbouring matrix. */
static __device__ __forceinline__ struct raw_source raw_source_of(const struct batch_mma_operand *x,
                                                                  const struct tgl_gemm_args *args,
                                                                  int product, int k,
                                                                  const bool k_major)
{
    enum { WORD = 16 / SIZE };
    const int lines = k_major ? x->edge : args->k, width = k_major ? args->k : x->edge;
    const long long length = (lines - 1) * x->ld + width;
    const bool is_dense = !x->is_listed && x->stride == length;
    const int shortest = length < WORD ? 1 : WORD; /* lower bound of the elements of a matrix */
    const char *matrix = (const char *)x->matrix;
    const int depth = min(args->k - k, BK);
    struct raw_source s;
    s.from = matrix + (k_major ? x->first * x->ld + k : k * x->ld + x->first) * SIZE;
    s.line = x->ld * SIZE;
    s.lines = k_major ? x->count : depth;
    s.bytes = (k_major ? depth : x->count) * SIZE;
    s.begin = matrix - (is_dense && min(product, WORD) * shortest >= WORD ? 16 : 0);
    s.end = matrix + length * SIZE +
            (is_dense && min(args->batch - 1 - product, WORD) * shortest >= WORD ? 16 : 0);
    return s;
}

/* The tiles of A and B whose raw lines are being copied. */
struct batch_mma_raw {
    struct raw_lines A, B;
    int k_left; /* K of the product that is left from the first k of the tiles on */
};

/* As batch_mma_copy_step(), but copies raw lines. */
static __device__ __forceinline__ void batch_mma_copy_raw(struct batch_mma_raw *next,
                                                          struct batch_mma_copier *c, char *shared,
                                                          const struct tgl_gemm_args *args,
                                                          int depth)
{
    if (c->item < batch_mma_items(args) && c->k < depth) {
        const struct batch_mma_item item = batch_mma_item_of(args, c->item);
        const struct batch_mma_operand A = {A_OF(args, item.product),
                                            args->lda,
                                            args->stride_a,
                                            args->A_array != 0,
                                            args->m,
                                            item.row,
                                            item.rows};
        const struct batch_mma_operand B = {B_OF(args, item.product),
                                            args->ldb,
                                            args->stride_b,
                                            args->B_array != 0,
                                            args->n,
                                            item.col,
                                            item.cols};
        const struct raw_source a = raw_source_of(&A, args, item.product, c->k, A_K_MAJOR);
        const struct raw_source b = raw_source_of(&B, args, item.product, c->k, B_K_MAJOR);
        next->A = raw_lines_of(&a);
        next->B = raw_lines_of(&b);
        next->k_left = depth - c->k;
        copy_raw(shared + RAW_A, &a, BM, A_K_MAJOR);
        copy_raw(shared + RAW_B, &b, BN, B_K_MAJOR);
        c->k += BK;
        if (c->k >= depth) c->k = 0, c->item += (int)gridDim.x;
    }
    async_commit();
}

/* Waits for the raw lines of the next tiles, and shifts them to their places in the stage. */
static __device__ __forceinline__ void batch_mma_shift_raw(const struct batch_mma_raw *next,
                                                           const struct tgl_gemm_args *args,
                                                           char *shared)
{
    ASYNC_WAIT(0);
    wait_for_threads(); /* raw lines have arrived, and all threads have multiplied the last tile */
    shift_raw(shared, shared + RAW_A, &next->A, args->lda, next->k_left, BM, A_K_MAJOR);
    shift_raw(shared + A_BYTES, shared + RAW_B, &next->B, args->ldb, next->k_left, BN, B_K_MAJOR);
    wait_for_threads();
}

/* ---- Products -------------------------------------------------------------------------------- */

/* acc += the product of a tile, over the first `depth` of its K. rows, cols: how many rows and
 * columns of D exist from the warp's first ones on. */
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
    const struct mma_lane_source a = mma_lane_source(row, 0, BM, A_K_MAJOR, true);
    const struct mma_lane_source b = mma_lane_source(col, 0, BN, B_K_MAJOR, false);
    accumulate_t *results = (accumulate_t *)(shared + RING_BYTES) + warp * 16 * PITCH;

    clear_stages(shared);
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();
    const int depth = DEPTH_OF(&args), items = batch_mma_items(&args);
    struct batch_mma_copier copier = {(int)blockIdx.x, 0, 0};
#if IS_ODD
    struct batch_mma_raw next = {{0}};
    batch_mma_copy_raw(&next, &copier, shared, &args, depth);
#else
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++)
        batch_mma_copy_step(&copier, shared, &args, depth);
#endif

    int stage = 0;
    for (int number = (int)blockIdx.x; number < items; number += (int)gridDim.x) {
        const struct batch_mma_item item = batch_mma_item_of(&args, number);
        const int rows = item.rows - row, cols = item.cols - col;
        accumulate_t acc[MT][NT][4] = {{{0}}};
        for (int k = 0; k < depth; k += BK) {
#if IS_ODD
            batch_mma_shift_raw(&next, &args, shared);
            batch_mma_copy_raw(&next, &copier, shared, &args, depth);
#else
            batch_mma_wait_for_copies();
            batch_mma_copy_step(&copier, shared, &args, depth);
#endif
            batch_mma_multiply_tile(acc, shared + stage, &a, &b, rows, cols, depth - k);
            if (!IS_ODD) stage = next_stage(stage);
        }
        const struct epilogue_operands with =
            epilogue_operands(&args, D_OF(&args, item.product), item.product);
#if D_HAS_16_BITS
        if (depth > 0 && is_one_line(&args, &with, item.cols)) {
            element_d *line = with.D + (long long)item.row * args.n;
            unsigned short *own = packed_place(shared + RING_BYTES, line);
            pack_results(&args, &with, own + row * args.n + col, acc, rows, cols);
            __syncthreads();
            store_packed(line, own, item.rows * args.n);
            continue; /* the next tile of K begins with a barrier */
        }
#endif
        if (rows > 0 && cols > 0)
            store_results(&args, &with, results, acc, opaque(item.row + row),
                          opaque(item.col + col));
    }
}
