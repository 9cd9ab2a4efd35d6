/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM for batches of small products, one tile of D each: m up to BM, n up to BN, any k. A and B
 * are F32 or a 16-bit type, with sums in F32, or F64. Loading the operands of such a product takes
 * longer than multiplying them. Blocks are therefore persistent: they compute one product after the
 * other. While they multiply, they copy the next tiles of operands, STAGES - 1 tiles ahead.
 *
 * GROUP threads compute a product, TM x TN results each. A block has PER_BLOCK such groups; blocks
 * of a single warp are the fastest. An operand has the same type and layout in shared memory as in
 * global memory, so that for all transposes VEC elements are copied at once: a K-major operand as
 * lines of BK elements, an MN-major operand as BK lines. In both cases a thread reads groups of
 * four elements: four successive k of one row or column, or four neighbours of one k. Elements
 * outside of the operands are filled with zeros.
 *
 * Grid: x = blocks. Each takes every gridDim.x'th group of PER_BLOCK products of args.batch.
 */
#include "lib/async_copy.h"
#include "lib/dynamic_shared.h"
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/launch_order.h"
#include "lib/operand_type.h"
#include "lib/operands.h"

#ifndef BM
#define BM 16 /* rows of a tile: at least m */
#endif
#ifndef BN
#define BN 16 /* columns of a tile: at least n */
#endif
#ifndef BK
#define BK 16 /* depth of a tile in shared memory */
#endif
#ifndef TM
#define TM 4 /* rows of D that a thread computes, in groups of four */
#endif
#ifndef TN
#define TN 4 /* columns, in groups of four */
#endif
#ifndef STAGES
#define STAGES 2 /* tiles in shared memory: one is multiplied while the others arrive */
#endif
#ifndef PER_BLOCK
#define PER_BLOCK 2 /* products that a block computes at once */
#endif
#ifndef TRANS_A
#define TRANS_A 0 /* 0: A is m x k; 1: k x m */
#endif
#ifndef TRANS_B
#define TRANS_B 0 /* 0: B is k x n; 1: n x k */
#endif
#ifndef VEC_A
#define VEC_A 1 /* elements of a copy: divides A's alignment, lda, stride and contiguous edge */
#endif
#ifndef VEC_B
#define VEC_B 1 /* elements of a copy: divides B's alignment, ldb, stride and contiguous edge */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* minimum resident blocks of an SM, which limits the registers */
#endif

#define LANES_M   (BM / TM) /* a group's threads, as a grid */
#define LANES_N   (BN / TN)
#define GROUP     (LANES_M * LANES_N)
#define THREADS   (GROUP * PER_BLOCK)
#define A_ALONG_K (!TRANS_A)
#define B_ALONG_K TRANS_B

#if BM % TM || BN % TN || BK % 4 || TM % 4 || TN % 4 || STAGES < 2
#error "BM x BN: a grid of threads; TM, TN, BK: multiples of 4; STAGES: at least 2"
#endif
#if THREADS % 32
#error "GROUP * PER_BLOCK, the threads of a block: whole warps"
#endif

/* TILE_SIZE: elements of a tile in shared memory. A K-major tile is padded by 16 bytes after every
 * four lines. Neighbouring threads, which are four lines apart, then read from different banks.
 * STAGE: elements of a stage. The stages of neighbouring groups begin half of the banks apart. */
#define TILE_SIZE(edge, k_major) ((edge)*BK + ((k_major) ? (edge) / 4 * PACK : 0))
#define A_SIZE                   TILE_SIZE(BM, A_ALONG_K)
#define ALL_BANKS                (8 * PACK) /* 128 bytes */
#define STAGE                                                                                      \
    ((A_SIZE + TILE_SIZE(BN, B_ALONG_K) + ALL_BANKS - 1) / ALL_BANKS * ALL_BANKS + ALL_BANKS / 2)

/* The index in a tile in shared memory of element number `at` of a line. */
static __device__ __forceinline__ int small_batch_place_of(int line, int at, const int edge,
                                                           const bool k_major)
{
    return k_major ? line * BK + line / 4 * PACK + at : line * edge + at;
}

/* A tile of an operand, of which `inside` rows or columns and `depth` of k exist. */
struct tile {
    const element_t *x; /* its first element */
    unsigned ld;
    int inside, depth;
};

/* The actions of copy_some(). COPY copies by cp.async, which needs at least 4 bytes. A copy of 2
 * bytes is a load into a register (LOAD) and later a store to shared memory (STORE). */
enum { COPY, LOAD, STORE };

/* Copy number i of this thread: `vec` elements of the tile. what: COPY, LOAD or STORE. loaded:
 * where LOAD leaves the element and where STORE finds it. */
static __device__ __forceinline__ void copy_some(element_t *shared, const struct tile *tile, int i,
                                                 const int edge, const int vec, const bool k_major,
                                                 const int what, element_t *loaded)
{
    const int per_line = (k_major ? BK : edge) / vec, copies = (k_major ? edge : BK) * per_line;
    const int copy = (int)threadIdx.x % GROUP + i * GROUP;
    if (copies % GROUP && copy >= copies) return;
    const int line = copy / per_line, at = copy % per_line * vec;
    const bool valid = line < (k_major ? tile->inside : tile->depth) &&
                       at < (k_major ? tile->depth : tile->inside);
#if TYPE_A == TYPE_F32
    async_copy_or_zero(&shared[small_batch_place_of(line, at, edge, k_major)],
                       tile->x + (valid ? line * tile->ld + at : 0u), vec, valid);
    (void)what, (void)loaded;
#else
    element_t *to = &shared[small_batch_place_of(line, at, edge, k_major)];
    const element_t *from = tile->x + (valid ? line * tile->ld + at : 0u);
    const element_t zero = {0};
    const int bytes = vec * (int)sizeof(element_t);
    if (what == COPY)
        async_copy_bytes(to, from, bytes, valid ? bytes : 0);
    else if (what == LOAD)
        *loaded = valid ? *from : zero;
    else
        *to = *loaded;
#endif
}

/* Issues this thread's copies of a tile. Short loops are unrolled, so that addresses stay in
 * registers. */
static __device__ __forceinline__ void small_batch_copy_tile(element_t *shared,
                                                             const struct tile *tile,
                                                             const int edge, const int vec,
                                                             const bool k_major)
{
    const int copies = (BK * edge / vec + GROUP - 1) / GROUP;
#if IS_16_BITS
    if (vec == 1) {
        const int at_once = copies < 16 ? copies : 16; /* loads in flight before the first store */
        element_t loaded[16];
#pragma unroll 1
        for (int first = 0; first < copies; first += at_once) {
#pragma unroll
            for (int i = 0; i < at_once; i++)
                if (first + i < copies)
                    copy_some(shared, tile, first + i, edge, vec, k_major, LOAD, &loaded[i]);
#pragma unroll
            for (int i = 0; i < at_once; i++)
                if (first + i < copies)
                    copy_some(shared, tile, first + i, edge, vec, k_major, STORE, &loaded[i]);
        }
        return;
    }
#endif
    if (copies <= 8) {
#pragma unroll
        for (int i = 0; i < copies; i++)
            copy_some(shared, tile, i, edge, vec, k_major, COPY, 0);
    } else {
#pragma unroll 4
        for (int i = 0; i < copies; i++)
            copy_some(shared, tile, i, edge, vec, k_major, COPY, 0);
    }
}

/* Loads four consecutive elements of shared memory. */
static __device__ __forceinline__ void load_four(accumulate_t *to, const element_t *shared)
{
#if IS_16_BITS
    const uint2 words = *(const uint2 *)shared;
    convert_pair(&to[0], words.x);
    convert_pair(&to[2], words.y);
#elif TYPE_A == TYPE_F64
    load_unit(&to[0], &shared[0]);
    load_unit(&to[2], &shared[2]);
#else
    unpack(to, *(const float4 *)shared);
#endif
}

/* f[i][q] := the element of the thread's row or column number i at k = p + q of the tile, q = 0..3.
 * lane: the thread's number among the `lanes` threads along the edge. */
static __device__ __forceinline__ void load_fours(accumulate_t (*f)[4], const element_t *tile,
                                                  int lane, int p, const int count, const int lanes,
                                                  const int edge, const bool k_major)
{
    if (k_major) {
#pragma unroll
        for (int i = 0; i < count; i++)
            load_four(
                f[i],
                &tile[small_batch_place_of(lane * 4 + i / 4 * 4 * lanes + i % 4, p, edge, true)]);
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int i = 0; i < count; i += 4) {
                accumulate_t v[4];
                load_four(v, &tile[small_batch_place_of(p + j, lane * 4 + i * lanes, edge, false)]);
                f[i][j] = v[0], f[i + 1][j] = v[1], f[i + 2][j] = v[2], f[i + 3][j] = v[3];
            }
    }
}

/* acc += the product of a tile of which `depth` of K exist. */
static __device__ __forceinline__ void small_batch_multiply_tile(accumulate_t (*acc)[TN],
                                                                 const element_t *stage, int lane_m,
                                                                 int lane_n, int depth)
{
#pragma unroll
    for (int p = 0; p < BK; p += 4) {
        if (p >= depth) break;
        accumulate_t a[TM][4], b[TN][4];
        load_fours(a, stage, lane_m, p, TM, LANES_M, BM, A_ALONG_K);
        load_fours(b, stage + A_SIZE, lane_n, p, TN, LANES_N, BN, B_ALONG_K);
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) {
                    const int col = i % 2 ? TN - 1 - j : j;
                    acc[i][col] += a[i][q] * b[col][q];
                }
    }
}

/* The state of the copies. */
struct small_batch_copier {
    int product, k; /* the next tiles to copy: the first of their PER_BLOCK products, and their
                       first k */
    int stage;      /* the stage to fill next */
};

/* Copies the next tiles of A and B, if there are any. Each call commits a group of copies, which is
 * empty if there are none. multiplies: A and B may be read. */
static __device__ __forceinline__ void small_batch_copy_step(struct small_batch_copier *c,
                                                             element_t *stages,
                                                             const struct tgl_gemm_args *args,
                                                             bool multiplies)
{
    const int product = c->product + (int)threadIdx.x / GROUP;
    if (multiplies && c->k < args->k && c->product < args->batch) {
        const bool exists = product < args->batch;
        const long long at = exists ? product : 0;
        const element_a *A = A_OF(args, at);
        const element_b *B = B_OF(args, at);
        element_t *stage = stages + c->stage * (PER_BLOCK * STAGE);
        const int depth = min(BK, args->k - c->k);
        const struct tile a = {A + (A_ALONG_K ? c->k : c->k * args->lda), (unsigned)args->lda,
                               exists ? args->m : 0, depth};
        const struct tile b = {B + (B_ALONG_K ? c->k : c->k * args->ldb), (unsigned)args->ldb,
                               exists ? args->n : 0, depth};
        small_batch_copy_tile(stage, &a, BM, VEC_A, A_ALONG_K);
        small_batch_copy_tile(stage + A_SIZE, &b, BN, VEC_B, B_ALONG_K);
        c->stage = c->stage + 1 == STAGES ? 0 : c->stage + 1;
        c->k += BK;
        if (c->k >= args->k) c->k = 0, c->product += gridDim.x * PER_BLOCK;
    }
    async_commit();
}

/* Returns when the copies of the next tiles have arrived, and all threads have read the previous
 * tiles. */
static __device__ __forceinline__ void small_batch_wait_for_copies(void)
{
    ASYNC_WAIT(STAGES - 2);
    if (THREADS == 32)
        __syncwarp();
    else
        __syncthreads();
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sgemm_small_batch(const struct tgl_gemm_args args)
{
    DYNAMIC_SHARED(element_t, shared, STAGES * PER_BLOCK * STAGE);
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();
    const int group = (int)threadIdx.x / GROUP, thread = (int)threadIdx.x % GROUP;
    const int lane_m = thread / LANES_N, lane_n = thread % LANES_N;
    element_t *stages = shared + group * STAGE;

    const bool multiplies = has_product(&args);
    struct small_batch_copier copier = {(int)blockIdx.x * PER_BLOCK, 0, 0};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++)
        small_batch_copy_step(&copier, stages, &args, multiplies);

    int stage = 0;
    for (int first = (int)blockIdx.x * PER_BLOCK; first < args.batch;
         first += gridDim.x * PER_BLOCK) {
        accumulate_t acc[TM][TN] = {{0}};
        for (int k = 0; multiplies && k < args.k; k += BK) {
            small_batch_wait_for_copies();
            small_batch_copy_step(&copier, stages, &args, multiplies);
            small_batch_multiply_tile(acc, stages + stage * (PER_BLOCK * STAGE), lane_m, lane_n,
                                      args.k - k);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        const long long product = first + group;
        if (product >= args.batch) continue;
        element_d *D = D_OF(&args, product);
        const struct epilogue_operands with = epilogue_operands(&args, D, product);
        const bool aligned = ROWS_ARE_ON_16_BYTES(&args, &with);
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const int row = lane_m * 4 + i / 4 * 4 * LANES_M + i % 4;
            if (row >= args.m) continue;
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const int col = lane_n * 4 + j * LANES_N;
                epilogue_store4(&args, &with, &acc[i][j], row, col, 0, args.n - col, aligned);
            }
        }
    }
}
