/* SPDX-License-Identifier: Apache-2.0
 *
 * FP32 GEMM where m or n is at most 16, matrix times vector included: bound by the memory bandwidth
 * that reading the big operand takes, which is why that is read once, in long rows, past L1, with
 * many loads in flight, and never staged.
 *
 * The big operand is B (or A: BIG_A), `length` x k; the small one, COUNT x k, comes through shared
 * memory, DEPTH of k at a time, laid out so that a thread reads it in fours.
 *
 *   ALONG_K 0   the big operand is contiguous along its length: a thread computes VEC neighbours,
 *               a warp takes every WARPS'th step of k, and the warps' sums are added in order.
 *   ALONG_K 1   it is contiguous along k: a warp computes ROWS results times COUNT, its lanes
 *               share k, and a butterfly of shuffles adds them up.
 *
 * Grid: x = blocks along the length (any number: blocks stride over it), y = splits of k, each
 * k_chunk deep. With more than one split, the last block of a column of blocks adds the partial
 * sums in the workspace (splits * length * COUNT floats) in order; counters: gridDim.x.
 */
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/launch_order.h"
#include "lib/streaming.h"

#ifndef BIG_A
#define BIG_A 0 /* 1: A is the big operand (n <= 16), 0: B (m <= 16) */
#endif
#ifndef ALONG_K
#define ALONG_K 0 /* how the big operand lies */
#endif
#ifndef COUNT
#define COUNT 16 /* at least the small operand's rows or columns: 1, 2, 4, 8 or 16 */
#endif
#ifndef VEC
#define VEC                                                                                        \
    4 /* floats to a load: divides the big operand's alignment, leading dimension and,             \
         unless ALONG_K, length */
#endif
#ifndef ROWS
#define ROWS 4 /* ALONG_K: results times COUNT a warp computes at once */
#endif
#ifndef UNROLL
#define UNROLL 4 /* steps of k whose loads are issued together */
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef DEPTH
#define DEPTH 512 /* of the small operand in shared memory */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif
#ifndef NAME
#define NAME sgemm_skinny
#endif

#define THREADS (WARPS * 32)
#define STEP    (ALONG_K ? 32 * VEC * UNROLL : WARPS * UNROLL) /* of k, that a block takes at once */

#define GRAIN (STEP < 32 ? 32 : STEP)

#if DEPTH % GRAIN
#error "DEPTH: a multiple of a step and of 32"
#endif

struct operands {
    const float *big, *small;     /* of this problem of the batch */
    long long ld;                 /* of the big one */
    long long small_row, small_k; /* the small one's strides */
    int length, count;
};

static __device__ __forceinline__ struct operands
operands_of(const struct tgl_gemm_args *args, const bool a_along_k, const bool b_along_k)
{
    const int batch = (int)blockIdx.z;
    const float *A = args->A_array ? args->A_array[batch] : args->A + batch * args->stride_a;
    const float *B = args->B_array ? args->B_array[batch] : args->B + batch * args->stride_b;
    struct operands o;
    o.big = BIG_A ? A : B;
    o.small = BIG_A ? B : A;
    o.ld = BIG_A ? args->lda : args->ldb;
    o.length = BIG_A ? args->m : args->n;
    o.count = BIG_A ? args->n : args->m;
    o.small_row = BIG_A ? (b_along_k ? args->ldb : 1) : (a_along_k ? args->lda : 1);
    o.small_k = BIG_A ? (b_along_k ? 1 : args->ldb) : (a_along_k ? 1 : args->lda);
    return o;
}

/* x[0..VEC-1] if all are to be had (always, unless `guarded`); those from `count` on read as 0. */
static __device__ __forceinline__ void load_some(float *v, const float *x, int count,
                                                 const bool guarded)
{
    if (!guarded || count >= VEC) {
        load_streaming(v, x, VEC);
        return;
    }
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        v[i] = 0.0f;
        if (i < count) load_streaming(&v[i], &x[i], 1);
    }
}

/* One result's share of k: stored if it is all of it, else left in the workspace. */
static __device__ __forceinline__ void finish(const struct tgl_gemm_args *args,
                                              const struct operands *o, float sum, int at, int s)
{
    if (at >= o->length || s >= o->count) return;
    if (gridDim.y > 1) {
        args->workspace[((long long)(blockIdx.z * gridDim.y + blockIdx.y) * COUNT + s) * o->length +
                        at] = sum;
        return;
    }
    const int row = BIG_A ? at : s, col = BIG_A ? s : at, batch = (int)blockIdx.z;
    float *C = args->C_array ? args->C_array[batch] : args->C + batch * args->stride_c;
    float *c = C + row * args->ldc + col;
    const struct epilogue_operands with = epilogue_operands(args, batch);
    *c = epilogue(args, &with, sum, args->beta != 0.0f ? *c : 0.0f, row, col);
}

#if ALONG_K

#define PER_BLOCK      (WARPS * ROWS) /* results times COUNT */
#define SMALL_AT(s, p) ((s)*DEPTH + (p))

/* sums[i] := the sum over the warp of everybody's sums[i], left with the lanes in turn: returns the
 * index of this lane's first, *held says how many it holds (0: another lane holds the same). */
static __device__ __forceinline__ int add_lanes(float *sums, const int total, int *held)
{
    const int lane = (int)threadIdx.x % 32;
    int first = 0;
    bool holder = true;
#pragma unroll
    for (int level = 0; level < 5; level++) {
        const int x = 16 >> level, n = total >> (level + 1);
        const bool upper = lane & x;
#pragma unroll
        for (int i = 0; i < total / 2; i++) {
            if (i >= n) continue;
            const float mine = upper ? sums[i + n] : sums[i];
            const float other = upper ? sums[i] : sums[i + n];
            sums[i] = mine + __shfl_xor_sync(0xffffffffu, other, x);
        }
        first += upper ? n : 0;
        if (n == 0) {
            sums[0] += __shfl_xor_sync(0xffffffffu, sums[0], x);
            holder = holder && !upper;
        }
    }
    *held = !holder ? 0 : total < 32 ? 1 : total / 32;
    return first;
}

/* acc += one step of ROWS rows times the small operand. left: of k, from the thread's first on. */
static __device__ __forceinline__ void
multiply_step(float *acc, const float *const *x, const float *small, int left, const bool guarded)
{
    float v[UNROLL][ROWS][VEC];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            load_some(v[u][r], x[r] + u * 32 * VEC, left - u * 32 * VEC, guarded);
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
#pragma unroll
        for (int s = 0; s < COUNT; s++) {
            float y[VEC];
            load_shared(y, &small[SMALL_AT(s, u * 32 * VEC)], VEC);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int i = 0; i < VEC; i++)
                    acc[r * COUNT + s] += v[u][r][i] * y[i];
        }
}

/* acc += the ROWS rows from `row` on times the small operand, `depth` deep. */
static __device__ __forceinline__ void multiply_rows(float *acc, const struct operands *o,
                                                     const float *small, int row, int first,
                                                     int depth)
{
    const int mine = (int)threadIdx.x % 32 * VEC;
    const float *x[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        x[r] = o->big + min(row + r, o->length - 1) * o->ld + first + mine;
    small += mine;
    int p = 0;
    for (; p + STEP <= depth; p += STEP, small += STEP) {
        multiply_step(acc, x, small, STEP, false);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            x[r] += STEP;
    }
    if (p < depth) multiply_step(acc, x, small, depth - p - mine, true);
}

#else

#define PER_BLOCK      (32 * VEC)
#define SMALL_AT(s, p) ((p)*COUNT + (s))

/* acc += one step of this warp's. left: of k, from the warp's first on. */
static __device__ __forceinline__ void multiply_step(float (*acc)[VEC], const float *x,
                                                     long long ld, const float *small, int left,
                                                     const bool guarded)
{
    float v[UNROLL][VEC];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        load_some(v[u], x + u * WARPS * ld, u * WARPS < left ? VEC : 0, guarded);
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        float y[COUNT];
        load_shared(y, &small[SMALL_AT(0, u * WARPS)], COUNT);
#pragma unroll
        for (int s = 0; s < COUNT; s++)
#pragma unroll
            for (int i = 0; i < VEC; i++)
                acc[s][i] += v[u][i] * y[s];
    }
}

/* acc += this warp's share of `depth` of k. x: the thread's first column there. */
static __device__ __forceinline__ void multiply_columns(float (*acc)[VEC], const float *x,
                                                        long long ld, const float *small, int depth)
{
    const int warp = (int)threadIdx.x / 32;
    x += warp * ld;
    small += SMALL_AT(0, warp);
    int p = 0;
    for (; p + STEP <= depth; p += STEP, x += STEP * ld, small += SMALL_AT(0, STEP))
        multiply_step(acc, x, ld, small, STEP, false);
    if (p < depth) multiply_step(acc, x, ld, small, depth - p - warp, true);
}

/* Adds the warps' sums in order, through `shared` (WARPS * 32 * VEC floats), and finishes them. */
static __device__ __forceinline__ void add_warps(const struct tgl_gemm_args *args,
                                                 const struct operands *o, float (*acc)[VEC],
                                                 float *shared, int at)
{
#pragma unroll
    for (int s = 0; s < COUNT; s++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < VEC; i++)
            shared[i * THREADS + threadIdx.x] = acc[s][i];
        __syncthreads();
        const int lane = (int)threadIdx.x % 32, i = (int)threadIdx.x / 32;
        if (i < VEC) {
            float sum = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS; w++)
                sum += shared[i * THREADS + w * 32 + lane];
            finish(args, o, sum, at + lane * VEC + i, s);
        }
    }
}

#endif

/* The small operand's rows, `depth` of k from `first` on, zeros after them up to a whole step. A
 * warp takes a patch of 1 x 32 or, where it transposes, at most 4 x 8, so that neither memory
 * suffers. */
static __device__ __forceinline__ void load_small(float *small, const struct operands *o, int first,
                                                  int depth)
{
    const int high = ALONG_K && o->small_k == 1 ? 1 : COUNT < 4 ? COUNT : 4, wide = 32 / high;
    const int patches = COUNT / high, padded = (depth + GRAIN - 1) / GRAIN * GRAIN;
    for (int i = (int)threadIdx.x; i < COUNT * padded; i += THREADS) {
        const int lane = i % 32, patch = i / 32;
        const int s = lane % high + patch % patches * high;
        const int p = lane / high + patch / patches * wide;
        small[SMALL_AT(s, p)] = s < o->count && p < depth
                                    ? o->small[s * o->small_row + (first + p) * o->small_k]
                                    : 0.0f;
    }
}

/* The last of a column of blocks adds up what all have left in the workspace. */
static __device__ __forceinline__ void add_splits(const struct tgl_gemm_args *args,
                                                  const struct operands *o)
{
    __shared__ bool last;
    unsigned *counter = &args->counters[blockIdx.z * gridDim.x + blockIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1u) + 1 == gridDim.y;
        if (last) *counter = 0;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();

    const int batch = (int)blockIdx.z;
    float *C = args->C_array ? args->C_array[batch] : args->C + batch * args->stride_c;
    const struct epilogue_operands with = epilogue_operands(args, batch);
    const long long step = (long long)COUNT * o->length;
    for (int from = (int)blockIdx.x * PER_BLOCK; from < o->length; from += gridDim.x * PER_BLOCK)
        for (int i = (int)threadIdx.x; i < PER_BLOCK * o->count; i += THREADS) {
            const int at = from + i % PER_BLOCK, s = i / PER_BLOCK;
            if (at >= o->length) continue;
            const float *part =
                args->workspace + (batch * gridDim.y * COUNT + s) * (long long)o->length + at;
            float sum = 0.0f;
#pragma unroll 8
            for (int y = 0; y < (int)gridDim.y; y++)
                sum += __ldcg(part + y * step);
            const int row = BIG_A ? at : s, col = BIG_A ? s : at;
            float *c = C + row * args->ldc + col;
            *c = epilogue(args, &with, sum, args->beta != 0.0f ? *c : 0.0f, row, col);
        }
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const struct tgl_gemm_args args)
{
    __shared__ __align__(
        16) float small[COUNT * DEPTH < THREADS * VEC ? THREADS * VEC : COUNT * DEPTH];
    wait_for_earlier_launches();
#if BIG_A
    const struct operands o = operands_of(&args, ALONG_K, args.small_along_k);
#else
    const struct operands o = operands_of(&args, args.small_along_k, ALONG_K);
#endif
    const int begin = (int)blockIdx.y * args.k_chunk, end = min(args.k, begin + args.k_chunk);

#if ALONG_K
    /* A chunk of k no deeper than DEPTH is loaded once, for all of the block's rows. */
    const bool once = args.k_chunk <= DEPTH;
    if (once) {
        load_small(small, &o, begin, end - begin);
        __syncthreads();
    }
    const int warp_row = ((int)blockIdx.x * WARPS + (int)threadIdx.x / 32) * ROWS;
    for (int block = 0; (int)blockIdx.x * PER_BLOCK + block < o.length;
         block += gridDim.x * PER_BLOCK) {
        float acc[ROWS * COUNT] = {0.0f};
        for (int first = begin; first < end; first += DEPTH) {
            const int depth = min(DEPTH, end - first);
            if (!once) {
                __syncthreads();
                load_small(small, &o, first, depth);
                __syncthreads();
            }
            multiply_rows(acc, &o, small, warp_row + block, first, depth);
        }
        int held;
        const int index = add_lanes(acc, ROWS * COUNT, &held);
#pragma unroll
        for (int i = 0; i < (ROWS * COUNT + 31) / 32; i++)
            if (i < held)
                finish(&args, &o, acc[i], warp_row + block + (index + i) / COUNT,
                       (index + i) % COUNT);
    }
#else
    for (int at = (int)blockIdx.x * PER_BLOCK; at < o.length; at += gridDim.x * PER_BLOCK) {
        float acc[COUNT][VEC] = {{0.0f}};
        const int mine = min(at + (int)threadIdx.x % 32 * VEC, o.length - VEC);
        for (int first = begin; first < end; first += DEPTH) {
            const int depth = min(DEPTH, end - first);
            __syncthreads();
            load_small(small, &o, first, depth);
            __syncthreads();
            multiply_columns(acc, o.big + first * o.ld + mine, o.ld, small, depth);
        }
        add_warps(&args, &o, acc, small, at);
    }
#endif
    if (gridDim.y > 1) add_splits(&args, &o);
}
