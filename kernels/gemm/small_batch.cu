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
#include "lib/opaque.h"
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

/* The row of D of row i of acc in thread number `thread` of a group, and the column of D of column
 * j of acc. j: a multiple of 4; the columns of acc from j to j + 3 are neighbours in D. */
#define RESULT_ROW(thread, i)    ((thread) / LANES_N * 4 + (i) / 4 * 4 * LANES_M + (i) % 4)
#define RESULT_COLUMN(thread, j) ((thread) % LANES_N * 4 + (j)*LANES_N)

/* SHARES_RESULTS: whether all threads of a warp compute the same product. If rows of D are not
 * aligned for stores of four elements, the lanes then exchange results through shared memory.
 * RESULTS: the size of this memory, in elements of A and B; it holds two times four results of each
 * thread. */
#define SHARES_RESULTS  (GROUP % 32 == 0)
#define RESULTS_OF_WARP (32 * 4)
#define RESULTS                                                                                    \
    (SHARES_RESULTS                                                                                \
         ? THREADS / 32 * 2 * RESULTS_OF_WARP * (int)sizeof(accumulate_t) / (int)sizeof(element_t) \
         : 0)

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

/* How a group copies a tile: `vec` elements at once, with PER_LINE copies for each line. A thread
 * copies the same place of every STEP'th line, so that addresses take additions only. The copies of
 * a thread are divided into chunks. Between the copies of a chunk there is no branch. */
#define PER_LINE(edge, vec, k_major) (((k_major) ? BK : (edge)) / (vec))
#define LINES(edge, k_major)         ((k_major) ? (edge) : BK)
#define STEP(edge, vec, k_major)     (GROUP / PER_LINE(edge, vec, k_major))

#if GROUP % PER_LINE(BM, VEC_A, A_ALONG_K) || GROUP % PER_LINE(BN, VEC_B, B_ALONG_K)
#error "GROUP: a multiple of the copies of a line"
#endif

/* The most copies of a chunk. */
enum { CHUNK_MAX = 8 };

/* A thread's part of a tile, from its next chunk on. */
struct small_batch_places {
    element_t *to;         /* the line of its first copy in shared memory, at the place of copies */
    const element_t *from; /* the same in global memory */
    long long step;        /* elements between the lines of two copies in global memory */
    int line;              /* number of the line of its first copy */
    int valid;             /* lines from there on whose elements at this place exist */
};

/* The distance in shared memory of copy number i of a chunk from its first one. */
static __device__ __forceinline__ int small_batch_distance(const struct small_batch_places *p,
                                                           const int i, const int step,
                                                           const int edge, const bool k_major)
{
    if (!k_major) return i * step * edge;
    /* The number of times that the distance passes padding, which lies behind every four lines. If
     * step divides 4 or is a multiple of 4, the number is the same for all threads and chunks,
     * because chunks begin at multiples of four lines. */
    const bool is_fixed = step % 4 == 0 || 4 % step == 0;
    const int fours = is_fixed ? i * step / 4 : (p->line + i * step) / 4 - p->line / 4;
    return i * step * BK + fours * PACK;
}

/* The actions of copy_some(). COPY copies by cp.async, which needs at least 4 bytes. A copy of 2
 * bytes is a load into a register (LOAD) and later a store to shared memory (STORE). */
enum { COPY, LOAD, STORE };

/* Copy number i of a chunk: `vec` elements. what: COPY, LOAD or STORE. loaded: where LOAD leaves
 * the element and where STORE finds it. */
static __device__ __forceinline__ void copy_some(const struct small_batch_places *p, const int i,
                                                 const int edge, const int vec, const bool k_major,
                                                 const int what, element_t *loaded)
{
    const int step = STEP(edge, vec, k_major);
    element_t *to = p->to + small_batch_distance(p, i, step, edge, k_major);
    const element_t *from = p->from + i * p->step;
    const bool valid = i * step < p->valid;
#if TYPE_A == TYPE_F32
    async_copy_or_zero(to, from, vec, valid);
    (void)what, (void)loaded;
#else
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

/* Issues copies 0 to count - 1 of a chunk. The tile has no lines from number `lines` on. */
static __device__ __forceinline__ void small_batch_copy_chunk(const struct small_batch_places *p,
                                                              const int count, const int lines,
                                                              const int edge, const int vec,
                                                              const bool k_major)
{
    const int step = STEP(edge, vec, k_major);
    const bool is_whole = lines % (count * step) == 0;
    const bool is_plain = vec * (int)sizeof(element_t) < 4;
    element_t loaded[CHUNK_MAX];
#pragma unroll
    for (int i = 0; i < count; i++)
        if (is_whole || p->line + i * step < lines)
            copy_some(p, i, edge, vec, k_major, is_plain ? LOAD : COPY, &loaded[i]);
    if (!is_plain) return;
#pragma unroll
    for (int i = 0; i < count; i++)
        if (is_whole || p->line + i * step < lines)
            copy_some(p, i, edge, vec, k_major, STORE, &loaded[i]);
}

/* Issues this thread's copies of a tile. The lines of an MN-major tile are its k: chunks whose k
 * are not multiplied are left out. */
static __device__ __forceinline__ void small_batch_copy_tile(element_t *shared,
                                                             const struct tile *tile,
                                                             const int edge, const int vec,
                                                             const bool k_major)
{
    const int per_line = PER_LINE(edge, vec, k_major), lines = LINES(edge, k_major);
    const int step = STEP(edge, vec, k_major), copies = (lines + step - 1) / step;
    const int count = copies < CHUNK_MAX ? copies : CHUNK_MAX;
    const unsigned thread = (unsigned)opaque((int)(threadIdx.x % GROUP));
    const int at = (int)(thread % per_line) * vec;
    const int needed = k_major ? edge : (tile->depth + 3) / 4 * 4;
    struct small_batch_places p;
    p.line = (int)(thread / per_line);
    p.to = shared + small_batch_place_of(p.line, at, edge, k_major);
    p.from = tile->x + (p.line * tile->ld + at);
    p.step = (long long)step * tile->ld;
    const bool is_inside = at < (k_major ? tile->depth : tile->inside);
    p.valid = is_inside ? (k_major ? tile->inside : tile->depth) - p.line : 0;
#pragma unroll 1
    for (int first = 0; first < lines && first < needed; first += count * step) {
        small_batch_copy_chunk(&p, count, lines, edge, vec, k_major);
        p.to += small_batch_distance(&p, count, step, edge, k_major);
        p.from += count * p.step;
        p.line += count * step;
        p.valid -= count * step;
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

#if SHARES_RESULTS
/* to[0..3] := sums[0..3] in shared memory. */
static __device__ __forceinline__ void store_four_sums(accumulate_t *to, const accumulate_t *sums)
{
#if TYPE_A == TYPE_F64
    *(double2 *)to = make_double2(sums[0], sums[1]);
    *(double2 *)(to + 2) = make_double2(sums[2], sums[3]);
#else
    *(float4 *)to = make_float4(sums[0], sums[1], sums[2], sums[3]);
#endif
}

/* Stores alpha times the results of a warp one by one. Neighbouring lanes store neighbouring
 * columns: lanes exchange four columns of each row through `results`, of which they use one half,
 * then the other, so that a barrier lies between the reads of a half and the next writes to it. */
static __device__ __forceinline__ void store_single_results(const struct tgl_gemm_args *args,
                                                            const struct epilogue_operands *with,
                                                            accumulate_t *results,
                                                            accumulate_t (*acc)[TN])
{
    const int lane = opaque((int)threadIdx.x % 32), first = (int)threadIdx.x % GROUP - lane;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        element_d *to[4]; /* the lane's results of the first row */
        int rows[4];      /* how many rows of D exist from there on */
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const int thread = first + q * 8 + lane / 4;
            const int row = RESULT_ROW(thread, 0), col = RESULT_COLUMN(thread, j) + lane % 4;
            to[q] = with->D + row * args->ldd + col;
            rows[q] = col < args->n ? args->m - row : 0;
        }
#pragma unroll
        for (int i = 0; i < TM; i++) {
            accumulate_t *half = results + i % 2 * RESULTS_OF_WARP;
            accumulate_t sums[4];
            store_four_sums(&half[lane * 4], &acc[i][j]);
            __syncwarp();
#pragma unroll
            for (int q = 0; q < 4; q++)
                sums[q] = half[q * 32 + lane];
#pragma unroll
            for (int q = 0; q < 4; q++)
                if (RESULT_ROW(0, i) < rows[q])
                    to[q][RESULT_ROW(0, i) * args->ldd] =
                        to_d(ALPHA(args, with) * value_of(sums[q]));
        }
    }
}
#endif

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sgemm_small_batch(const struct tgl_gemm_args args)
{
    DYNAMIC_SHARED(element_t, shared, STAGES * PER_BLOCK * STAGE + RESULTS);
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();
    const int group = (int)threadIdx.x / GROUP, thread = (int)threadIdx.x % GROUP;
    const int lane_m = thread / LANES_N, lane_n = thread % LANES_N;
    element_t *stages = shared + group * STAGE;
#if SHARES_RESULTS
    accumulate_t *results = (accumulate_t *)(shared + STAGES * PER_BLOCK * STAGE) +
                            threadIdx.x / 32 * (2 * RESULTS_OF_WARP);
#endif

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
#if SHARES_RESULTS
        if (!aligned && epilogue_only_scales(&args, &with)) {
            store_single_results(&args, &with, results, acc);
            continue;
        }
#endif
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const int row = RESULT_ROW(thread, i);
            if (row >= args.m) continue;
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const int col = RESULT_COLUMN(thread, j);
                epilogue_store4(&args, &with, &acc[i][j], row, col, 0, args.n - col, aligned);
            }
        }
    }
}
