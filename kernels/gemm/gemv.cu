/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV: a matrix times up to COUNT vectors (m or n is at most COUNT). The elements are F32 or a
 * 16-bit type with sums in F32, or F64. The product is bound by the memory bandwidth of reading the
 * matrix once. A block computes few results over all of K and ends soon. The hardware's block
 * scheduler then balances the load, and SMs full of blocks keep enough loads in flight without
 * software prefetching. The vectors stay in L1, and shared memory only adds sums.
 *
 *   ALONG_K 1   The matrix is K-major. A line is a row of A or a column of B. LANES_K threads
 *               divide the K of LINES lines among them. If LANES_K is the size of the block, all
 *               its threads work on the same lines.
 *   ALONG_K 0   The matrix is MN-major. A thread has a pack of columns (16 bytes), as one load or
 *               as loads of VEC columns that are LANES_LENGTH * VEC apart. LANES_K threads divide
 *               the K of these columns among them.
 *
 * A result is the product of one row or column of the matrix and one vector. For each result a
 * thread has several sums: four (F64: two) if the matrix is K-major, else one or two. The
 * sums of the lanes of a warp are added by a butterfly of shuffles. The sums of several warps are
 * added in pairs through shared memory. No chain of additions is therefore long.
 *
 * With PAIRS the matrix and the vectors are complex: lib/thin_lines.h. A K-major matrix has two
 * vectors for each complex one; the K of an MN-major matrix is counted in complex numbers.
 *
 * Grid: x = tiles of results, z = batch.
 */
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/launch_order.h"
#include "lib/load_store.h"
#include "lib/operands.h"
#include "lib/shuffle.h"

#ifndef BIG_A
#define BIG_A 0 /* 1: A is the matrix (n <= COUNT), 0: B (m <= COUNT) */
#endif
#ifndef ALONG_K
#define ALONG_K 1 /* 1: the matrix is K-major, 0: MN-major */
#endif
#ifndef COUNT
#define COUNT 1 /* vectors: 1, 2 or 4; missing ones repeat the first and are not stored */
#endif
#ifndef VEC
/* The number of elements of one load, at most 16 bytes. VEC divides the matrix's alignment, leading
 * dimension and, if the matrix is MN-major, its contiguous edge. If the matrix is K-major, COUNT is
 * not 1 and VEC is 16 bytes, it also divides the vectors' alignment and leading dimension. */
#define VEC 4
#endif
#ifndef WHOLE_PACKS
#define WHOLE_PACKS 0 /* 1: K is a multiple of the elements in 16 bytes */
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef LANES_K
#define LANES_K 256 /* threads that divide the K of a result among them: a power of two */
#endif
#ifndef LINES
#define LINES                                                                                      \
    1 /* with ALONG_K: lines of a thread, which loads the vectors once for all of them;            \
         else 1 */
#endif
#ifndef UNROLL
#define UNROLL 4 /* packs of each line that a thread loads at once */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 4 /* minimum resident blocks of an SM, which limits the registers */
#endif

#include "lib/packs.h"
#include "lib/thin_lines.h"

#define THREADS      (WARPS * 32)
#define LANES_LENGTH (THREADS / LANES_K)
#define RESULTS      (ALONG_K ? LINES : PACK) /* a thread has RESULTS x COUNT results */
#define TILE         (LANES_LENGTH * RESULTS)
#define STEP         (LANES_K * UNROLL * (ALONG_K ? PACK : 1)) /* K of one iteration */

/* K_LANE: this thread's index among the threads that divide the K of a result. LENGTH_LANE: its
 * index along the results. */
#define K_LANE      ((int)threadIdx.x / (ALONG_K ? 1 : LANES_LENGTH) % LANES_K)
#define LENGTH_LANE ((int)threadIdx.x / (ALONG_K ? LANES_K : 1) % LANES_LENGTH)
#define K_BIT       (ALONG_K ? 1 : LANES_LENGTH) /* distance of threads with successive K_LANE */

/* DISTANCE: elements from one load of a pack to its next load (with ADJACENT 2, to the second next
 * of VEC 1); the other lanes' loads lie in between. PLACE_OF(e): offset of element e of a pack from
 * the pack's first element. */
#define DISTANCE    (ADJACENT * (ALONG_K ? LANES_K : LANES_LENGTH))
#define PLACE_OF(e) ((e) / ADJACENT * DISTANCE + (e) % ADJACENT)

/* PACKS_OF_VECTOR: vectors are loaded in packs of 16 bytes. The vectors must be aligned to 16
 * bytes: the kernel tests this for a single vector, and VEC promises it for several. In the last
 * step at most one pack of a vector is partial (none if WHOLE_PACKS). */
#define PACKS_OF_VECTOR (ALONG_K && CHUNKS == 1)

/* GROUPS: the number of groups of SUMS sums that a thread has for each vector. ALONG_K 1: one group
 * for each line. ALONG_K 0: a group has one sum for each column of the pack, and a thread uses
 * CHAINS such groups in turn. */
#define CHAINS (ALONG_K || UNROLL < 2 ? 1 : 2)
#define GROUPS (LINES * CHAINS)
#define SUMS   (ALONG_K && PACK > 4 ? 4 : PACK)

/* TURN: the number of packs of each line for which a thread loads the vectors' elements together:
 * with one vector of F32 or F64 all packs of a step. For several vectors, two numbers of a complex
 * one or 16-bit types that would take too many registers, and loads of vectors hit in L1 anyway. */
#define IS_SIMPLE (COUNT == 1 && !IS_16_BITS && BIG_PARTS == 1)
#define TURN      (IS_SIMPLE ? UNROLL : 1)

/* KEEP_ORDER() keeps the loads of the matrix before the loads of several vectors and before all
 * arithmetic: ptxas does not move loads across __syncwarp(). Without KEEP_ORDER() ptxas, short of
 * registers, loads the last packs of a step only after the first packs have arrived and been
 * multiplied. */
#if IS_SIMPLE
#define KEEP_ORDER()
#else
#define KEEP_ORDER() __syncwarp()
#endif

/* The number of warps that divide the K of a result among them. Their sums are added through shared
 * memory. */
#define PARTS (LANES_K * K_BIT > 32 ? LANES_K * K_BIT / 32 : 1)

#if THREADS % LANES_K || (!ALONG_K && LANES_LENGTH > 32)
#error "LANES_K: divides THREADS; LANES_LENGTH: at most 32 if the matrix is MN-major"
#endif
#if COUNT != 1 && COUNT != 2 && COUNT != 4
#error "COUNT: 1, 2 or 4"
#endif
#if PAIRS && ALONG_K && COUNT == 1
#error "COUNT: at least 2 with PAIRS if the matrix is K-major"
#endif
#if LINES < 1 || (!ALONG_K && LINES > 1)
#error "LINES: 1 if the matrix is MN-major"
#endif

/* Number of pointers of a thread to the matrix: one for each line, or for each load of its pack. */
#define PLACES (ALONG_K ? LINES : CHUNKS)

/* Vectors in memory, and the numbers of each that a thread loads for a pack of the matrix. */
#define STORED  (COUNT / SMALL_PARTS)
#define NUMBERS (ALONG_K ? PACK : BIG_PARTS)

/* Addresses of the next loads of a thread. */
struct cursor {
    const element_t *matrix[PLACES], *vector[STORED];
    long long ld;   /* leading dimension of the matrix */
    long long step; /* distance between successive elements of a vector, complex ones with PAIRS */
};

/* Returns the addresses of a thread's first loads. In place of lines that the matrix does not have,
 * the thread reads the last line (MN-major: the last columns), and in place of missing vectors the
 * first one. If COUNT > 1 and the matrix is K-major, vectors are always contiguous. */
static __device__ __forceinline__ struct cursor first_step(const struct tgl_gemm_args *args)
{
    const int batch = (int)blockIdx.z, first = (int)blockIdx.x * TILE;
    const int length = BIG_LINES(args), count = SMALL_LINES(args) / SMALL_PARTS;
    const element_a *A = A_OF(args, batch);
    const element_b *B = B_OF(args, batch);
    const long long vector_ld = BIG_A ? args->ldb : args->lda;
    const bool is_k_major = (ALONG_K && COUNT > 1) || args->small_k_major;
    struct cursor c;
    c.ld = BIG_A ? args->lda : args->ldb;
    c.step = is_k_major ? BIG_PARTS : vector_ld;
#pragma unroll
    for (int v = 0; v < STORED; v++)
        c.vector[v] = (BIG_A ? B : A) + K_LANE * (ALONG_K ? ADJACENT : 1) * c.step +
                      (v < count ? v : 0) * (is_k_major ? vector_ld : BIG_PARTS);
#if ALONG_K
#pragma unroll
    for (int i = 0; i < LINES; i++)
        c.matrix[i] = (BIG_A ? A : B) +
                      min(first + LENGTH_LANE + i * LANES_LENGTH, length - 1) * c.ld +
                      K_LANE * ADJACENT;
#else
#pragma unroll
    for (int i = 0; i < CHUNKS; i++)
        c.matrix[i] = (BIG_A ? A : B) + K_LANE * c.ld +
                      min(first + LENGTH_LANE * ADJACENT + PLACE_OF(i * VEC), length - VEC);
#endif
    return c;
}

/* LOAD_VECTOR(to, at): loads a pack of a vector. load_cached(at): loads one element. Both keep the
 * data in L1. */
#if IS_16_BITS
#define LOAD_VECTOR(to, at) convert_words(to, __ldca((const uint4 *)(at)))
static __device__ __forceinline__ element_t load_cached(const element_t *at)
{
    const element_t x = {__ldca(&at->bits)};
    return x;
}
#else
#define LOAD_VECTOR(to, at) convert_chunk(to, __ldca((const chunk_t *)(at)))
#define load_cached(at)     __ldca(at)
#endif

static __device__ __forceinline__ void clear_vector(accumulate_t *to)
{
#pragma unroll
    for (int e = 0; e < NUMBERS; e++)
        to[e] = 0;
}

/* What a thread loads in a step: UNROLL packs of each of its LINES lines of the matrix, all at
 * once, and the elements of the vectors for TURN packs at a time. */
struct step {
    pack_t matrix[UNROLL][LINES];
    accumulate_t vector[TURN][STORED][NUMBERS];
};

/* Loads the packs of a step. left: the number of elements of K from the thread's first element on.
 * is_whole: true: all elements of the packs exist. */
static __device__ __forceinline__ void load_matrix(struct step *s, const struct cursor *c, int left,
                                                   const bool is_whole)
{
#pragma unroll
    for (int i = 0; i < UNROLL * LINES; i++) {
        const int u = i / LINES, line = i % LINES, p = u * LANES_K * (ALONG_K ? PACK : 1);
        const element_t *from = c->matrix[line] + p * (ALONG_K ? 1 : c->ld);
        if (CHUNKS == 1 && (is_whole || !ALONG_K || WHOLE_PACKS || p + PACK - 1 < left)) {
            const chunk_t none = {0};
            s->matrix[u][line].chunk[0] = is_whole || p < left ? load_chunk(from) : none;
            continue;
        }
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            const int place = PLACE_OF(i * VEC);
            const element_t *x = ALONG_K ? from + place : c->matrix[i % PLACES] + p * c->ld;
            s->matrix[u][line].chunk[i] = is_whole  ? load_chunk(x)
                                          : ALONG_K ? load_part_of_chunk(x, p + place, left)
                                                    : load_part_of_chunk(x, 0, p < left ? VEC : 0);
        }
    }
}

/* Loads the vectors' elements for TURN packs, from pack number `first` on. is_plain: each vector
 * pack of 16 bytes may be one load. The loads are __ldca() because __ldg() would be wrong in a
 * strip (lib/launch_order.h), which relies on the fence of start_after_earlier_launches(). That
 * fence does not order non-coherent loads (PTX ISA, ld.global.nc). */
static __device__ __forceinline__ void load_vectors(struct step *s, const struct cursor *c,
                                                    int first, int left, const bool is_whole,
                                                    const bool is_plain)
{
#pragma unroll
    for (int i = 0; i < TURN * STORED; i++) {
        const int p = (first + i / STORED) * LANES_K * (ALONG_K ? PACK : 1);
        const element_t *from = c->vector[i % STORED];
        accumulate_t *to = s->vector[i / STORED][i % STORED];
        if (is_plain && (is_whole || (PACKS_OF_VECTOR && (WHOLE_PACKS || p + PACK - 1 < left)))) {
            if (is_whole || p < left)
                LOAD_VECTOR(to, from + p);
            else
                clear_vector(to);
            continue;
        }
#pragma unroll
        for (int e = 0; e < NUMBERS; e++) {
            const int at = p + (ALONG_K ? PLACE_OF(e) : 0);
            const element_t *x = from + at * c->step + (ALONG_K ? 0 : e);
            to[e] = is_whole || at < left ? from_a(load_cached(x)) : 0;
        }
    }
}

/* acc += the products of TURN packs of the matrix, from number `first` on, with the vectors. */
static __device__ __forceinline__ void multiply_turn(accumulate_t (*acc)[COUNT][SUMS],
                                                     const struct step *s, int first)
{
#pragma unroll
    for (int i = 0; i < TURN * LINES * COUNT; i++) {
        const int turn = i / (LINES * COUNT), line = i / COUNT % LINES, v = i % COUNT;
        const int u = first + turn;
        accumulate_t x[PACK];
        unpack_all(x, &s->matrix[u][line]);
        const accumulate_t *y = s->vector[turn][v / SMALL_PARTS];
        const int part = v % SMALL_PARTS; /* K-major PAIRS: of the result; y is expanded */
#pragma unroll
        for (int e = 0; e < PACK * BIG_PARTS; e++) {
            const int own = e / BIG_PARTS, p = e % BIG_PARTS; /* MN-major PAIRS: x is expanded */
            acc[ALONG_K ? line : u % CHAINS][v][own % SUMS] +=
                ALONG_K ? x[own] * SIGNED_PART(y[own ^ part], own & 1, part)
                        : SIGNED_PART(x[own ^ p], p, own & 1) * y[p];
        }
    }
}

/* acc += the products of a step. left: elements of K that exist from the step's beginning on. */
static __device__ __forceinline__ void gemv_multiply_step(accumulate_t (*acc)[COUNT][SUMS],
                                                          struct step *s, const struct cursor *c,
                                                          int left, const bool is_whole,
                                                          const bool is_plain)
{
    left -= K_LANE * (ALONG_K ? ADJACENT : 1);
    load_matrix(s, c, left, is_whole);
#pragma unroll
    for (int first = 0; first < UNROLL; first += TURN) {
        KEEP_ORDER();
        load_vectors(s, c, first, left, is_whole, is_plain);
        multiply_turn(acc, s, first);
    }
}

/* acc += the matrix times the vectors, over all of K. */
static __device__ __forceinline__ void gemv_multiply(accumulate_t (*acc)[COUNT][SUMS],
                                                     struct cursor c, int k, const bool is_plain)
{
    struct step s;
#pragma unroll 1
    for (; k >= STEP; k -= STEP) {
        gemv_multiply_step(acc, &s, &c, STEP, true, is_plain);
#pragma unroll
        for (int i = 0; i < PLACES; i++)
            c.matrix[i] += ALONG_K ? STEP : STEP * c.ld;
#pragma unroll
        for (int v = 0; v < STORED; v++)
            c.vector[v] += STEP * c.step;
    }
    if (k > 0) gemv_multiply_step(acc, &s, &c, k, false, is_plain);
}

/* x[0] := x[0] + ... + x[count - 1], added in pairs. count is a power of two. */
static __device__ __forceinline__ void add_pairs(accumulate_t *x, const int count)
{
#pragma unroll
    for (int half = count / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < count / 2; i++)
            if (i < half) x[i] += x[i + half];
}

/* sums[][] of this thread := the sums over all lanes of its warp that have parts of the K of the
 * same results. */
static __device__ __forceinline__ void gemv_add_lanes(accumulate_t (*sums)[COUNT])
{
#pragma unroll
    for (int lanes = K_BIT; lanes < 32 && lanes < LANES_K * K_BIT; lanes *= 2)
#pragma unroll
        for (int i = 0; i < RESULTS * COUNT; i++)
            sums[i / COUNT][i % COUNT] += shuffle_xor(sums[i / COUNT][i % COUNT], lanes);
}

/* Stores a result of problem blockIdx.z. */
static __device__ __forceinline__ void gemv_store_result(const struct tgl_gemm_args *args,
                                                         accumulate_t sum, int row, int col)
{
    const int batch = (int)blockIdx.z;
    const struct epilogue_operands with = epilogue_operands(args, D_OF(args, batch), batch);
    epilogue_store(args, &with, sum, row, col);
}

/* The results of a block in shared memory lie as in D, so that warps store contiguously: in rows of
 * COLUMNS results. */
#define COLUMNS           (BIG_A ? COUNT * BIG_PARTS : TILE * SMALL_PARTS)
#define PLACE(at, vector) (ROW_OF(at, vector) * COLUMNS + COLUMN_OF(at, vector))

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) sgemm_gemv(const struct tgl_gemm_args args)
{
    __shared__ accumulate_t parts[PARTS][TILE * COUNT];
    start_after_earlier_launches(args.waits_at_end);
    if (args.overlaps) let_later_launches_start();
    struct cursor c = first_step(&args);
    accumulate_t acc[GROUPS][COUNT][SUMS] = {{{0}}};
    /* All threads of the block take the same branch. */
    const int depth = DEPTH_OF(&args) / BIG_PARTS;
    if (c.step == BIG_PARTS && (!PACKS_OF_VECTOR || COUNT > 1 || rows_are_packed(c.vector[0], 0))) {
        c.step = BIG_PARTS; /* a constant for the compiler */
        gemv_multiply(acc, c, depth, PACKS_OF_VECTOR);
    } else
        gemv_multiply(acc, c, depth, false);

    accumulate_t sums[RESULTS][COUNT];
#pragma unroll
    for (int i = 0; i < RESULTS * COUNT; i++) {
        const int r = i / COUNT, v = i % COUNT;
#if ALONG_K
        add_pairs(acc[r][v], SUMS);
        sums[r][v] = acc[r][v][0];
#else
        accumulate_t chains[CHAINS];
#pragma unroll
        for (int chain = 0; chain < CHAINS; chain++)
            chains[chain] = acc[chain][v][r];
        add_pairs(chains, CHAINS);
        sums[r][v] = chains[0];
#endif
    }
    gemv_add_lanes(sums);
    if (K_LANE % (32 / K_BIT) == 0)
#pragma unroll
        for (int i = 0; i < RESULTS * COUNT; i++) {
            const int r = i / COUNT, v = i % COUNT;
            const int at =
                ALONG_K ? LENGTH_LANE + r * LANES_LENGTH : LENGTH_LANE * ADJACENT + PLACE_OF(r);
            parts[threadIdx.x / 32 % PARTS][PLACE(at, v)] = sums[r][v];
        }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < TILE * COUNT; i += THREADS) {
        const unsigned place = i + threadIdx.x;
        const int tile = (int)blockIdx.x * TILE;
        const int row = (int)(place / COLUMNS) + (BIG_A ? ROW_OF(tile, 0) : 0);
        const int col = (int)(place % COLUMNS) + (BIG_A ? 0 : COLUMN_OF(tile, 0));
        if (place >= TILE * COUNT || row >= args.m || col >= args.n) continue;
        accumulate_t own[PARTS];
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            own[part] = parts[part][place];
        add_pairs(own, PARTS);
        gemv_store_result(&args, own[0], row, col);
    }
    end_after_earlier_launches(args.waits_at_end);
}
