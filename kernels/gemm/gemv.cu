/* SPDX-License-Identifier: Apache-2.0
 *
 * FP32 GEMV: a matrix times up to COUNT vectors (m or n is at most COUNT). It is bound by the
 * memory bandwidth of reading the matrix once. A block computes few results over all of k and ends
 * soon: the hardware's block scheduler then balances the load, and SMs full of blocks keep enough
 * loads in flight without software prefetching. Nothing is staged in shared memory: the vectors
 * stay in L1.
 *
 *   ALONG_K 1   The matrix is K-major. LANES_K threads share the k of LINES rows: if LANES_K is the
 *               block's size, the block reads one row at a time, or LINES of them.
 *   ALONG_K 0   The matrix is MN-major. A thread has four columns, neighbours in memory or
 *               LANES_LENGTH apart; LANES_K threads share their k.
 *
 * A result is the product of one row or column of the matrix and one vector. For each result a
 * thread has four sums or more if the matrix is K-major, else up to two. The sums of a warp are
 * added by a butterfly of shuffles, those of several warps through shared memory, in pairs: no
 * chain of additions is long.
 *
 * Grid: x = tiles of results, z = batch.
 */
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/launch_order.h"
#include "lib/load_store.h"
#include "lib/operands.h"

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
/* Floats of a load: 1, or 4, which divides alignment, leading dimension and edge of the matrix. If
 * it is K-major and COUNT is not 1, 4 divides those of the vectors too. */
#define VEC 4
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef LANES_K
#define LANES_K 256 /* threads that share K: a power of two */
#endif
#ifndef LINES
#define LINES 1 /* ALONG_K: rows of a thread, which share its loads of the vectors; else 1 */
#endif
#ifndef UNROLL
#define UNROLL 4 /* groups of four floats of each line that a thread loads at once */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 4
#endif
#ifndef NAME
#define NAME sgemm_gemv
#endif

#define THREADS      (WARPS * 32)
#define LANES_LENGTH (THREADS / LANES_K)
#define RESULTS      (ALONG_K ? LINES : 4) /* of a thread, times COUNT */
#define TILE         (LANES_LENGTH * RESULTS)
#define STEP         (LANES_K * UNROLL * (ALONG_K ? 4 : 1)) /* k of one iteration */

/* The number of this thread among those that share K, and among those with other results. */
#define K_LANE      ((int)threadIdx.x / (ALONG_K ? 1 : LANES_LENGTH) % LANES_K)
#define LENGTH_LANE ((int)threadIdx.x / (ALONG_K ? LANES_K : 1) % LANES_LENGTH)
#define K_BIT       (ALONG_K ? 1 : LANES_LENGTH) /* bit 0 of K_LANE, in the thread number */

/* The distance between elements of a group of four, in K or along the length: neighbours, or as far
 * apart as the scalar loads of all lanes. */
#define ELEMENT (VEC == 4 ? 1 : ALONG_K ? LANES_K : LANES_LENGTH)

/* Whether vectors are loaded by float4 loads: a single one if it is aligned, several always, since
 * VEC then promises it. In a partial last step a single vector is loaded by scalar loads, which are
 * few.
 */
#define FOURS_OF_VECTOR  (ALONG_K && VEC == 4)
#define FOURS_TO_THE_END (FOURS_OF_VECTOR && COUNT > 1)

/* Groups of four sums of a thread for each vector. ALONG_K: one for each line. Else one for the
 * four results, or two that are used alternately. */
#define CHAINS (ALONG_K || UNROLL < 2 ? 1 : 2)
#define FOURS  (LINES * CHAINS)

/* Groups of four of a line for which the vectors are loaded at once. Several vectors take many
 * registers, and their loads hit in L1. */
#ifndef TURN
#define TURN (COUNT == 1 ? UNROLL : 1)
#endif

/* Loads of the matrix come before those of several vectors, and before all arithmetic. Left to
 * itself ptxas, short of registers, loads the rest of a step only after part of it has arrived and
 * been multiplied. It keeps the order of loads across __syncwarp(). */
#if COUNT == 1
#define KEEP_ORDER()
#else
#define KEEP_ORDER() __syncwarp()
#endif

/* Warps that share K, whose sums are added through shared memory. */
#define PARTS (LANES_K * K_BIT > 32 ? LANES_K * K_BIT / 32 : 1)

#if TYPE_A != TYPE_F32 || TYPE_B != TYPE_F32 || ACCUMULATE != TYPE_F32
#error "this kernel multiplies FP32"
#endif
#if (VEC != 1 && VEC != 4) || THREADS % LANES_K || (!ALONG_K && LANES_LENGTH > 32)
#error "VEC is 1 or 4; LANES_K divides the block; LANES_LENGTH is at most a warp"
#endif
#if COUNT != 1 && COUNT != 2 && COUNT != 4
#error "COUNT is 1, 2 or 4"
#endif
#if LINES < 1 || (!ALONG_K && LINES > 1)
#error "a thread has several lines only of a K-major matrix"
#endif

/* Pointers of a thread to the matrix: one for each line, or for each element of its group of four.
 */
#define PLACES (ALONG_K ? LINES : VEC == 4 ? 1 : 4)

/* What a thread loads next of its problem of the batch. */
struct cursor {
    const float *matrix[PLACES], *vector[COUNT];
    long long ld, step; /* of the matrix; between elements of a vector */
};

/* Rows or columns past the last one repeat it, vectors past the last repeat the first. With a
 * K-major matrix several vectors are contiguous too. */
static __device__ __forceinline__ struct cursor first_step(const struct tgl_gemm_args *args)
{
    const int batch = (int)blockIdx.z, first = (int)blockIdx.x * TILE;
    const int length = BIG_A ? args->m : args->n, count = BIG_A ? args->n : args->m;
    const element_a *A = A_OF(args, batch);
    const element_b *B = B_OF(args, batch);
    const long long vector_ld = BIG_A ? args->ldb : args->lda;
    const bool is_k_major = (ALONG_K && COUNT > 1) || args->small_k_major;
    struct cursor c;
    c.ld = BIG_A ? args->lda : args->ldb;
    c.step = is_k_major ? 1 : vector_ld;
#pragma unroll
    for (int v = 0; v < COUNT; v++)
        c.vector[v] = (BIG_A ? B : A) + K_LANE * (ALONG_K ? VEC : 1) * c.step +
                      (v < count ? v : 0) * (is_k_major ? vector_ld : 1);
#if ALONG_K
#pragma unroll
    for (int i = 0; i < LINES; i++)
        c.matrix[i] = (BIG_A ? A : B) +
                      min(first + LENGTH_LANE + i * LANES_LENGTH, length - 1) * c.ld + K_LANE * VEC;
#else
#pragma unroll
    for (int i = 0; i < 4 / VEC; i++)
        c.matrix[i] = (BIG_A ? A : B) + K_LANE * c.ld +
                      min(first + LENGTH_LANE * VEC + i * ELEMENT, length - VEC);
#endif
    return c;
}

/* A step: groups of four of the matrix, and the vectors' elements for TURN of them. */
struct step {
    float matrix[UNROLL][LINES][4];
    float vector[TURN][COUNT][ALONG_K ? 4 : 1];
};

/* Loads the matrix's part of a step, of which `left` of k exist for this thread; is_whole: all of
 * it. */
static __device__ __forceinline__ void load_matrix(struct step *s, const struct cursor *c, int left,
                                                   const bool is_whole)
{
#pragma unroll
    for (int i = 0; i < UNROLL * LINES; i++) {
        const int u = i / LINES, line = i % LINES, p = u * LANES_K * (ALONG_K ? 4 : 1);
        const float *from = c->matrix[line] + p * (ALONG_K ? 1 : c->ld);
        if (VEC == 4 && (is_whole || p + (ALONG_K ? 3 : 0) < left)) {
            unpack(s->matrix[u][line], __ldcs((const float4 *)from));
            continue;
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const bool exists = is_whole || p + (ALONG_K ? e * ELEMENT : 0) < left;
            const float *x =
                ALONG_K ? from + e * ELEMENT : c->matrix[ALONG_K || VEC == 4 ? 0 : e] + p * c->ld;
            s->matrix[u][line][e] = exists ? __ldcs(x) : 0.0f;
        }
    }
}

/* Loads the vectors' elements for TURN groups of four from `first` on. is_plain: the vectors allow
 * float4 loads wherever the matrix does. __ldca(), not __ldg(): a strip runs beside another launch,
 * and only its fence (start_after_earlier_launches()) orders these loads after the stores of
 * launches before. A fence does not order non-coherent loads (PTX ISA, ld.global.nc). */
static __device__ __forceinline__ void load_vectors(struct step *s, const struct cursor *c,
                                                    int first, int left, const bool is_whole,
                                                    const bool is_plain)
{
#pragma unroll
    for (int i = 0; i < TURN * COUNT; i++) {
        const int p = (first + i / COUNT) * LANES_K * (ALONG_K ? 4 : 1);
        const float *from = c->vector[i % COUNT];
        float *to = s->vector[i / COUNT][i % COUNT];
        if (is_plain && (is_whole || (FOURS_TO_THE_END && p + 3 < left))) {
            unpack(to, __ldca((const float4 *)(from + p)));
            continue;
        }
#pragma unroll
        for (int e = 0; e < (ALONG_K ? 4 : 1); e++) {
            const bool exists = is_whole || p + e * ELEMENT < left;
            to[e] = exists ? __ldca(from + (p + e * ELEMENT) * c->step) : 0.0f;
        }
    }
}

/* acc += TURN groups of four from `first` on, times the vectors. */
static __device__ __forceinline__ void multiply_turn(float (*acc)[COUNT][4], const struct step *s,
                                                     int first)
{
#pragma unroll
    for (int i = 0; i < TURN * LINES * COUNT; i++) {
        const int turn = i / (LINES * COUNT), line = i / COUNT % LINES, v = i % COUNT;
        const int u = first + turn;
#pragma unroll
        for (int e = 0; e < 4; e++)
            acc[ALONG_K ? line : u % CHAINS][v][e] +=
                s->matrix[u][line][e] * s->vector[turn][v][ALONG_K ? e : 0];
    }
}

/* acc += a step of which `left` of k exist. */
static __device__ __forceinline__ void multiply_step(float (*acc)[COUNT][4], struct step *s,
                                                     const struct cursor *c, int left,
                                                     const bool is_whole, const bool is_plain)
{
    left -= K_LANE * (ALONG_K ? VEC : 1);
    load_matrix(s, c, left, is_whole);
#pragma unroll
    for (int first = 0; first < UNROLL; first += TURN) {
        KEEP_ORDER();
        load_vectors(s, c, first, left, is_whole, is_plain);
        multiply_turn(acc, s, first);
    }
}

/* acc += all of k. */
static __device__ __forceinline__ void multiply(float (*acc)[COUNT][4], struct cursor c, int k,
                                                const bool is_plain)
{
    struct step s;
#pragma unroll 1
    for (; k >= STEP; k -= STEP) {
        multiply_step(acc, &s, &c, STEP, true, is_plain);
#pragma unroll
        for (int i = 0; i < PLACES; i++)
            c.matrix[i] += ALONG_K ? STEP : STEP * c.ld;
#pragma unroll
        for (int v = 0; v < COUNT; v++)
            c.vector[v] += STEP * c.step;
    }
    if (k > 0) multiply_step(acc, &s, &c, k, false, is_plain);
}

/* x[0] := the sum of x[0..count-1], in pairs; count is a power of two. */
static __device__ __forceinline__ void add_pairs(float *x, const int count)
{
#pragma unroll
    for (int half = count / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < count / 2; i++)
            if (i < half) x[i] += x[i + half];
}

/* sums of this thread := the sums over all lanes of its warp that share K. */
static __device__ __forceinline__ void add_lanes(float (*sums)[COUNT])
{
#pragma unroll
    for (int lanes = K_BIT; lanes < 32 && lanes < LANES_K * K_BIT; lanes *= 2)
#pragma unroll
        for (int i = 0; i < RESULTS * COUNT; i++)
            sums[i / COUNT][i % COUNT] +=
                __shfl_xor_sync(0xffffffffu, sums[i / COUNT][i % COUNT], lanes);
}

static __device__ __forceinline__ void store_result(const struct tgl_gemm_args *args, float sum,
                                                    int at, int v)
{
    const int row = BIG_A ? at : v, col = BIG_A ? v : at, batch = (int)blockIdx.z;
    const struct epilogue_operands with = epilogue_operands(args, D_OF(args, batch), batch);
    epilogue_store(args, &with, sum, row, col);
}

/* The place of a result in shared memory: neighbours in D are neighbours. */
#define PLACE(at, vector) (BIG_A ? (at)*COUNT + (vector) : (vector)*TILE + (at))

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const struct tgl_gemm_args args)
{
    __shared__ float parts[PARTS][TILE * COUNT];
    start_after_earlier_launches(args.waits_at_end);
    if (args.overlaps) let_later_launches_start();
    struct cursor c = first_step(&args);
    float acc[FOURS][COUNT][4] = {{{0.0f}}};
    /* All threads take the same branch. */
    if (c.step == 1 && (!FOURS_OF_VECTOR || COUNT > 1 || rows_are_aligned(c.vector[0], 0))) {
        c.step = 1; /* which the compiler knows from now on */
        multiply(acc, c, DEPTH_OF(&args), FOURS_OF_VECTOR);
    } else
        multiply(acc, c, DEPTH_OF(&args), false);

    float sums[RESULTS][COUNT];
#pragma unroll
    for (int i = 0; i < RESULTS * COUNT; i++) {
        const int r = i / COUNT, v = i % COUNT;
#if ALONG_K
        add_pairs(acc[r][v], 4);
        sums[r][v] = acc[r][v][0];
#else
        float chains[CHAINS];
#pragma unroll
        for (int chain = 0; chain < CHAINS; chain++)
            chains[chain] = acc[chain][v][r];
        add_pairs(chains, CHAINS);
        sums[r][v] = chains[0];
#endif
    }
    add_lanes(sums);
    if (K_LANE % (32 / K_BIT) == 0)
#pragma unroll
        for (int i = 0; i < RESULTS * COUNT; i++) {
            const int r = i / COUNT, v = i % COUNT;
            const int at =
                !ALONG_K && VEC == 4 ? LENGTH_LANE * RESULTS + r : LENGTH_LANE + r * LANES_LENGTH;
            parts[threadIdx.x / 32 % PARTS][PLACE(at, v)] = sums[r][v];
        }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < TILE * COUNT; i += THREADS) {
        const unsigned place = i + threadIdx.x;
        const int line = (int)(COUNT == 1 ? place : BIG_A ? place / COUNT : place % TILE);
        const int v = (int)(COUNT == 1 ? 0 : BIG_A ? place % COUNT : place / TILE);
        const int at = (int)blockIdx.x * TILE + line;
        if (place >= TILE * COUNT || at >= (BIG_A ? args.m : args.n)) continue;
        if (COUNT > 1 && v >= (BIG_A ? args.n : args.m)) continue;
        float own[PARTS];
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            own[part] = parts[part][place];
        add_pairs(own, PARTS);
        store_result(&args, own[0], at, v);
    }
    end_after_earlier_launches(args.waits_at_end);
}
