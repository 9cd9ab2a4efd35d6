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
 * An operand whose rows do not all begin at multiples of 8 bytes is copied with its misalignment,
 * and fragments are read from where they lie (lib/raw_copies.h).
 *
 * 16-bit results alpha * A * B whose rows follow each other without a gap, but do not begin at
 * multiples of 16 bytes, are stored as one line (lib/packed_store.h).
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

/* Bytes of a stage of the ring, and of A in it. A has a whole number of 16-byte words. */
#define OPERAND_BYTES(edge, k_major, vec)                                                          \
    (IS_RAW(vec) ? RAW_BYTES(edge, k_major) : (edge)*BK * SIZE)
#define RING_A     OPERAND_BYTES(BM, A_K_MAJOR, VEC_A)
#define RING_STAGE (RING_A + OPERAND_BYTES(BN, B_K_MAJOR, VEC_B))
#define RING_BYTES (STAGES * RING_STAGE)

#define ROW_BYTES    (WARPS * 16 * PITCH * (ACCUMULATE == TYPE_F64 ? 8 : 4))
#define RESULT_BYTES (ROW_BYTES > PACKED_BYTES ? ROW_BYTES : PACKED_BYTES)

#if (BM & (BM - 1)) || (BN & (BN - 1)) || (BK & (BK - 1)) || BK % MMA_K || STAGES < 2
#error "BM, BN, BK: powers of two; BK: a multiple of MMA_K; STAGES: at least 2"
#endif
#if RAW_STEP(BM, A_K_MAJOR) == 0 || RAW_STEP(BN, B_K_MAJOR) == 0
#error "BM, BN, BK: a line has at most 16 bytes for each thread"
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
    enum { WORD = 16 / SIZE }; /* elements */
    const int lines = k_major ? x->edge : args->k, width = k_major ? args->k : x->edge;
    const long long length = (lines - 1) * x->ld + width;
    const bool is_dense = !x->is_listed && x->stride == length;
    /* Lower bound of the number of elements of a matrix. */
    const int shortest = length < WORD ? 1 : WORD;
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

/* Copies a tile of operand x, of which k_left elements in K are left from k on. */
static __device__ __forceinline__ void copy_operand(char *to, const struct batch_mma_operand *x,
                                                    const struct tgl_gemm_args *args, int product,
                                                    int k, int k_left, const int edge,
                                                    const int vec, const bool k_major,
                                                    const bool has_tail)
{
    if (IS_RAW(vec)) {
        const struct raw_source from = raw_source_of(x, args, product, k, k_major);
        copy_raw(to, &from, edge, k_major);
    } else {
        const struct mma_origin from =
            mma_origin_of(x->matrix, x->ld, k_major ? x->first * x->ld + k : k * x->ld + x->first,
                          x->count, edge, vec, k_major);
        batch_mma_copy_tile(to, &from, k_left, edge, vec, k_major, has_tail);
    }
}

static __device__ __forceinline__ struct batch_mma_operand
operand_a_of(const struct tgl_gemm_args *args, const struct batch_mma_item *item)
{
    const struct batch_mma_operand A = {A_OF(args, item->product),
                                        args->lda,
                                        args->stride_a,
                                        args->A_array != 0,
                                        args->m,
                                        item->row,
                                        item->rows};
    return A;
}

static __device__ __forceinline__ struct batch_mma_operand
operand_b_of(const struct tgl_gemm_args *args, const struct batch_mma_item *item)
{
    const struct batch_mma_operand B = {B_OF(args, item->product),
                                        args->ldb,
                                        args->stride_b,
                                        args->B_array != 0,
                                        args->n,
                                        item->col,
                                        item->cols};
    return B;
}

/* The state of the copies. */
struct batch_mma_copier {
    int item, k; /* the next operand tiles to copy: the item and first k of these tiles */
    int stage;   /* the offset of their stage in bytes */
};

static __device__ __forceinline__ int next_stage(int stage)
{
    return stage == (STAGES - 1) * RING_STAGE ? 0 : stage + RING_STAGE;
}

/* Copies the next tiles of A and B, if there are any. Each call commits a group of copies, which is
 * empty if there are none. depth: k of the products; 0: A and B are not read. */
static __device__ __forceinline__ void batch_mma_copy_step(struct batch_mma_copier *c, char *stages,
                                                           const struct tgl_gemm_args *args,
                                                           int depth)
{
    if (c->item < batch_mma_items(args) && c->k < depth) {
        const struct batch_mma_item item = batch_mma_item_of(args, c->item);
        const struct batch_mma_operand A = operand_a_of(args, &item), B = operand_b_of(args, &item);
        char *stage = stages + c->stage;
        copy_operand(stage, &A, args, item.product, c->k, depth - c->k, BM, VEC_A, A_K_MAJOR,
                     TAIL_A);
        copy_operand(stage + RING_A, &B, args, item.product, c->k, depth - c->k, BN, VEC_B,
                     B_K_MAJOR, TAIL_B);
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

/* ---- Products -------------------------------------------------------------------------------- */

/* Where a lane reads its fragments of an operand: in a tile, or in raw lines. */
struct batch_mma_source {
    struct mma_lane_source tile;
    struct raw_lane_source raw;
};

/* x: the operand in the item to multiply; first: the warp's first row or column in the tile. */
static __device__ __forceinline__ struct batch_mma_source
batch_mma_source_of(const struct batch_mma_operand *x, int first, const int edge,
                    const bool k_major, const bool is_a)
{
    const char *from = (const char *)x->matrix + (k_major ? x->first * x->ld : x->first) * SIZE;
    const struct batch_mma_source source = {
        mma_lane_source(first, 0, edge, k_major, is_a),
        raw_lane_source((unsigned)(unsigned long long)from % 16, x->ld, first, edge, k_major)};
    return source;
}

static __device__ __forceinline__ void
batch_mma_load_fragment(fragment_t *to, const char *tile, const struct batch_mma_source *source,
                        const int e, const int p, int k_left, const int edge, const int vec,
                        const bool k_major, const bool is_a)
{
    if (IS_RAW(vec))
        raw_load_fragment(to, tile, &source->raw, e, p, k_left, edge, vec, k_major, is_a);
    else
        mma_load_fragment(to, tile, &source->tile, e, p, edge, k_major, is_a);
}

/* acc += the product of a tile, over the first `depth` of its K. rows, cols: how many rows and
 * columns of D exist from the warp's first ones on. */
static __device__ __forceinline__ void
batch_mma_multiply_tile(accumulate_t (*acc)[NT][4], const char *stage,
                        const struct batch_mma_source *source_a,
                        const struct batch_mma_source *source_b, int rows, int cols, int depth)
{
#pragma unroll
    for (int p = 0; p < BK; p += MMA_K) {
        if (p >= depth) break;
        fragment_t a[MT][FRAGMENT], b[NT / 2][FRAGMENT];
#pragma unroll
        for (int i = 0; i < MT; i++)
            if (i * 16 < rows) {
                batch_mma_load_fragment(a[i], stage, source_a, i * 16, p, depth, BM, VEC_A,
                                        A_K_MAJOR, true);
                round_fragments(&a[i], 1);
            }
#pragma unroll
        for (int j = 0; j < NT / 2; j++)
            if (j * 16 < cols) {
                batch_mma_load_fragment(b[j], stage + RING_A, source_b, j * 16, p, depth, BN, VEC_B,
                                        B_K_MAJOR, false);
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
    accumulate_t *results = (accumulate_t *)(shared + RING_BYTES) + warp * 16 * PITCH;

    clear_stages(shared);
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();
    const int depth = DEPTH_OF(&args), items = batch_mma_items(&args);
    struct batch_mma_copier copier = {(int)blockIdx.x, 0, 0};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++)
        batch_mma_copy_step(&copier, shared, &args, depth);

    int stage = 0;
    for (int number = (int)blockIdx.x; number < items; number += (int)gridDim.x) {
        const struct batch_mma_item item = batch_mma_item_of(&args, number);
        const int rows = item.rows - row, cols = item.cols - col;
        const struct batch_mma_operand A = operand_a_of(&args, &item),
                                       B = operand_b_of(&args, &item);
        const struct batch_mma_source a = batch_mma_source_of(&A, row, BM, A_K_MAJOR, true);
        const struct batch_mma_source b = batch_mma_source_of(&B, col, BN, B_K_MAJOR, false);
        accumulate_t acc[MT][NT][4] = {{{0}}};
        for (int k = 0; k < depth; k += BK) {
            batch_mma_wait_for_copies();
            batch_mma_copy_step(&copier, shared, &args, depth);
            batch_mma_multiply_tile(acc, shared + stage, &a, &b, rows, cols, depth - k);
            stage = next_stage(stage);
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
            continue; /* a barrier follows before `own` is written again */
        }
#endif
        if (rows > 0 && cols > 0)
            store_results(&args, &with, results, acc, opaque(item.row + row),
                          opaque(item.col + col));
    }
}
