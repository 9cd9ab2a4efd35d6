/* SPDX-License-Identifier: Apache-2.0
 *
 * FP32 matrix times vector (m or n is 1): bound by the memory bandwidth that reading the matrix
 * once takes. A block has few results, all k of them, and ends soon: the chip's own scheduler then
 * balances the work, and full multiprocessors keep enough loads under way without any being issued
 * ahead. Nothing is staged: the vector stays in L1.
 *
 *   ALONG_K 1   the matrix is contiguous along k: LANES_K threads share a result, so that with as
 *               many as the block has the whole of it reads one row at a time.
 *   ALONG_K 0   it is contiguous along its length: a thread has four results, neighbours in memory
 *               or LANES_LENGTH apart; LANES_K threads share these.
 *
 * Each thread has four sums or more, those of a warp are added by a butterfly of shuffles, those of
 * warps through shared memory, in pairs: no chain of additions is long.
 *
 * Grid: x = tiles of results, z = batch.
 */
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/launch_order.h"
#include "lib/load_store.h"

#ifndef BIG_A
#define BIG_A 0 /* 1: A is the matrix (n = 1), 0: B (m = 1) */
#endif
#ifndef ALONG_K
#define ALONG_K 1 /* how the matrix lies */
#endif
#ifndef VEC
#define VEC 4 /* floats to a load: 1, or 4, which divides alignment, leading dimension and edge */
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef LANES_K
#define LANES_K 256 /* threads that share k: a power of two */
#endif
#ifndef UNROLL
#define UNROLL 4 /* fours that a thread loads at once */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 4
#endif
#ifndef NAME
#define NAME sgemm_matvec
#endif

#define THREADS      (WARPS * 32)
#define LANES_LENGTH (THREADS / LANES_K)
#define RESULTS      (ALONG_K ? 1 : 4) /* of a thread */
#define TILE         (LANES_LENGTH * RESULTS)
#define STEP         (LANES_K * UNROLL * (ALONG_K ? 4 : 1)) /* of k */

/* This thread among those that share k, and among those that have other results. */
#define K_LANE      ((int)threadIdx.x / (ALONG_K ? 1 : LANES_LENGTH) % LANES_K)
#define LENGTH_LANE ((int)threadIdx.x / (ALONG_K ? LANES_K : 1) % LANES_LENGTH)
#define K_BIT       (ALONG_K ? 1 : LANES_LENGTH) /* of K_LANE's lowest, in the thread's number */

/* Where elements of a four lie: along k or the length, next to each other or a load of all lanes
 * apart. */
#define ELEMENT (VEC == 4 ? 1 : ALONG_K ? LANES_K : LANES_LENGTH)

/* Whether the vector is loaded in fours, where it lies so. */
#define FOURS_OF_VECTOR (ALONG_K && VEC == 4)

/* Fours of sums of a thread: ALONG_K of one result, else one of each. */
#define CHAINS (ALONG_K || UNROLL < 2 ? 1 : 2)

/* Warps that share k, and whose sums are added through shared memory. */
#define PARTS (LANES_K * K_BIT > 32 ? LANES_K * K_BIT / 32 : 1)

#if (VEC != 1 && VEC != 4) || THREADS % LANES_K || (!ALONG_K && LANES_LENGTH > 32)
#error "loads are of one float or of four; lanes divide the block; a warp has no other lines' lanes"
#endif
#if TILE > THREADS
#error "a thread for each result"
#endif

/* What a thread loads next of its problem of the batch. */
struct cursor {
    const float *matrix[ALONG_K || VEC == 4 ? 1 : 4], *vector;
    long long ld, step; /* of the matrix; between elements of the vector */
};

/* Results past the last repeat it. Of a matrix along k the vector is contiguous too. */
static __device__ __forceinline__ struct cursor first_step(const struct tgl_gemm_args *args)
{
    const int batch = (int)blockIdx.z, first = (int)blockIdx.x * TILE;
    const int length = BIG_A ? args->m : args->n;
    const float *A = args->A_array ? args->A_array[batch] : args->A + batch * args->stride_a;
    const float *B = args->B_array ? args->B_array[batch] : args->B + batch * args->stride_b;
    struct cursor c;
    c.ld = BIG_A ? args->lda : args->ldb;
    c.step = ALONG_K || args->small_along_k ? 1 : BIG_A ? args->ldb : args->lda;
    c.vector = (BIG_A ? B : A) + K_LANE * (ALONG_K ? VEC : 1) * c.step;
#if ALONG_K
    c.matrix[0] = (BIG_A ? A : B) + min(first + LENGTH_LANE, length - 1) * c.ld + K_LANE * VEC;
#else
#pragma unroll
    for (int i = 0; i < 4 / VEC; i++)
        c.matrix[i] = (BIG_A ? A : B) + K_LANE * c.ld +
                      min(first + LENGTH_LANE * VEC + i * ELEMENT, length - VEC);
#endif
    return c;
}

/* Fours of the matrix and what of the vector goes with them. */
struct step {
    float matrix[UNROLL][4];
    float vector[UNROLL][ALONG_K ? 4 : 1];
};

/* A step of which `left` of k exist; is_whole: all of it. is_plain: the vector allows loads of
 * fours where the matrix does. */
static __device__ __forceinline__ void load_step(struct step *s, const struct cursor *c, int left,
                                                 const bool is_whole, const bool is_plain)
{
    left -= K_LANE * (ALONG_K ? VEC : 1);
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const int p = u * LANES_K * (ALONG_K ? 4 : 1);
        const float *from = c->matrix[0] + p * (ALONG_K ? 1 : c->ld);
        if (VEC == 4 && (is_whole || p + (ALONG_K ? 3 : 0) < left)) {
            unpack(s->matrix[u], __ldcs((const float4 *)from));
            continue;
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const bool exists = is_whole || p + (ALONG_K ? e * ELEMENT : 0) < left;
            const float *x =
                ALONG_K ? from + e * ELEMENT : c->matrix[ALONG_K || VEC == 4 ? 0 : e] + p * c->ld;
            s->matrix[u][e] = exists ? __ldcs(x) : 0.0f;
        }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const int p = u * LANES_K * (ALONG_K ? 4 : 1);
        if (is_whole && is_plain) {
            unpack(s->vector[u], __ldg((const float4 *)(c->vector + p)));
            continue;
        }
#pragma unroll
        for (int e = 0; e < (ALONG_K ? 4 : 1); e++) {
            const bool exists = is_whole || p + e * ELEMENT < left;
            s->vector[u][e] = exists ? __ldg(c->vector + (p + e * ELEMENT) * c->step) : 0.0f;
        }
    }
}

static __device__ __forceinline__ void multiply_step(float (*acc)[4], const struct step *s)
{
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            acc[u % CHAINS][e] += s->matrix[u][e] * s->vector[u][ALONG_K ? e : 0];
}

/* acc += all of k. */
static __device__ __forceinline__ void multiply(float (*acc)[4], struct cursor c, int k,
                                                const bool is_plain)
{
    struct step s;
#pragma unroll 1
    for (; k >= STEP; k -= STEP) {
        load_step(&s, &c, STEP, true, is_plain);
        multiply_step(acc, &s);
#pragma unroll
        for (int i = 0; i < (int)(sizeof c.matrix / sizeof c.matrix[0]); i++)
            c.matrix[i] += ALONG_K ? STEP : STEP * c.ld;
        c.vector += STEP * c.step;
    }
    if (k <= 0) return;
    load_step(&s, &c, k, false, is_plain);
    multiply_step(acc, &s);
}

/* x[0] := the sum of all `count`, a power of two, in pairs. */
static __device__ __forceinline__ void add_pairs(float *x, const int count)
{
#pragma unroll
    for (int half = count / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < count / 2; i++)
            if (i < half) x[i] += x[i + half];
}

/* sums of this thread := those of all lanes of its warp that share k. */
static __device__ __forceinline__ void add_lanes(float *sums)
{
#pragma unroll
    for (int lanes = K_BIT; lanes < 32 && lanes < LANES_K * K_BIT; lanes *= 2)
#pragma unroll
        for (int r = 0; r < RESULTS; r++)
            sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], lanes);
}

static __device__ __forceinline__ void store_result(const struct tgl_gemm_args *args, float sum,
                                                    int at)
{
    const int row = BIG_A ? at : 0, col = BIG_A ? 0 : at, batch = (int)blockIdx.z;
    float *C = args->C_array ? args->C_array[batch] : args->C + batch * args->stride_c;
    float *c = C + row * args->ldc + col;
    const struct epilogue_operands with = epilogue_operands(args, batch);
    *c = epilogue(args, &with, sum, args->beta != 0.0f ? *c : 0.0f, row, col);
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const struct tgl_gemm_args args)
{
    __shared__ float parts[PARTS][TILE];
    start_after_earlier_launches(args.waits_at_end);
    if (args.overlaps) let_later_launches_start();
    struct cursor c = first_step(&args);
    float acc[CHAINS][4] = {{0.0f}};
    /* Here all threads go the same way. */
    if (c.step == 1 && (!FOURS_OF_VECTOR || rows_are_aligned(c.vector, 0))) {
        c.step = 1; /* which the compiler knows from now on */
        multiply(acc, c, args.k, FOURS_OF_VECTOR);
    } else
        multiply(acc, c, args.k, false);

    float sums[RESULTS];
#if ALONG_K
    add_pairs(acc[0], 4);
    sums[0] = acc[0][0];
#else
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float chains[CHAINS];
#pragma unroll
        for (int i = 0; i < CHAINS; i++)
            chains[i] = acc[i][e];
        add_pairs(chains, CHAINS);
        sums[e] = chains[0];
    }
#endif
    add_lanes(sums);
    if (K_LANE % (32 / K_BIT) == 0)
#pragma unroll
        for (int r = 0; r < RESULTS; r++)
            parts[threadIdx.x / 32 % PARTS]
                 [VEC == 4 ? LENGTH_LANE * RESULTS + r : LENGTH_LANE + r * LANES_LENGTH] = sums[r];
    __syncthreads();
    const int at = (int)blockIdx.x * TILE + (int)threadIdx.x;
    if (threadIdx.x < TILE && at < (BIG_A ? args.m : args.n)) {
        float own[PARTS];
#pragma unroll
        for (int i = 0; i < PARTS; i++)
            own[i] = parts[i][threadIdx.x];
        add_pairs(own, PARTS);
        store_result(&args, own[0], at);
    }
    end_after_earlier_launches(args.waits_at_end);
}
