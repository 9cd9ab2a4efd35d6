/* SPDX-License-Identifier: Apache-2.0
 *
 * FP32 GEMM for batches of small products, one tile of D each: m up to BM, n up to BN, any k. Such
 * a product takes less time than the loads of its operands, so blocks are persistent: they compute
 * one product after the other, and copy the operands of the next ones, STAGES - 1 tiles of k ahead,
 * while they multiply.
 *
 * GROUP threads compute a product, TM x TN results each. A block has PER_BLOCK such groups; a block
 * of a single warp is best. Both operands have the same layout in shared memory as in global
 * memory, so that for all transposes VEC floats are copied at once: a K-major operand as lines of
 * BK floats, an MN-major one as BK lines. In both cases a thread reads groups of four: four of k of
 * a row, or four neighbours of one k. Elements outside of the operands are filled with zeros.
 *
 * Grid: x = blocks, each of which takes every gridDim.x'th PER_BLOCK products of args.batch.
 */
#include "lib/async_copy.h"
#include "lib/dynamic_shared.h"
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/launch_order.h"
#include "lib/load_store.h"
#include "lib/operands.h"

#ifndef BM
#define BM 16 /* at least the rows of D */
#endif
#ifndef BN
#define BN 16 /* at least its columns */
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
#define STAGES 2 /* tiles of k in shared memory: one is multiplied while the others arrive */
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
#define VEC_A 1 /* floats of a copy: divides A's alignment, lda, stride and contiguous edge */
#endif
#ifndef VEC_B
#define VEC_B 1 /* the same for B */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif
#ifndef NAME
#define NAME sgemm_small_batch
#endif

#define LANES_M   (BM / TM) /* a group's threads, as a grid */
#define LANES_N   (BN / TN)
#define GROUP     (LANES_M * LANES_N)
#define THREADS   (GROUP * PER_BLOCK)
#define A_ALONG_K (!TRANS_A)
#define B_ALONG_K TRANS_B

#if TYPE_A != TYPE_F32 || TYPE_B != TYPE_F32 || ACCUMULATE != TYPE_F32
#error "this kernel multiplies FP32"
#endif
#if BM % TM || BN % TN || BK % 4 || TM % 4 || TN % 4 || STAGES < 2
#error                                                                                             \
    "a tile is a grid of threads, a thread a grid of 4 x 4; BK: a multiple of 4; STAGES: 2 or more"
#endif
#if THREADS % 32
#error "GROUP * PER_BLOCK: whole warps"
#endif

/* A K-major tile is padded by four floats every four lines, so that neighbouring threads, which are
 * four lines apart, read from different banks. The tiles of neighbouring groups are half of the
 * banks apart. */
#define TILE_FLOATS(edge, k_major) ((edge)*BK + ((k_major) ? (edge) : 0))
#define A_FLOATS                   TILE_FLOATS(BM, A_ALONG_K)
#define STAGE                      ((A_FLOATS + TILE_FLOATS(BN, B_ALONG_K) + 31) / 32 * 32 + 16)

static __device__ __forceinline__ int place_of(int line, int at, const int edge, const bool k_major)
{
    return k_major ? line * BK + line / 4 * 4 + at : line * edge + at;
}

/* A tile of an operand, of which `inside` rows or columns and `depth` of k exist. */
struct tile {
    const float *x; /* its first element */
    unsigned ld;
    int inside, depth;
};

/* This thread's copy number i of a tile, `vec` floats. */
static __device__ __forceinline__ void copy_some(float *shared, const struct tile *tile, int i,
                                                 const int edge, const int vec, const bool k_major)
{
    const int per_line = (k_major ? BK : edge) / vec, copies = (k_major ? edge : BK) * per_line;
    const int copy = (int)threadIdx.x % GROUP + i * GROUP;
    if (copies % GROUP && copy >= copies) return;
    const int line = copy / per_line, at = copy % per_line * vec;
    const bool valid = line < (k_major ? tile->inside : tile->depth) &&
                       at < (k_major ? tile->depth : tile->inside);
    async_copy_or_zero(&shared[place_of(line, at, edge, k_major)],
                       tile->x + (valid ? line * tile->ld + at : 0u), vec, valid);
}

/* All copies of a tile. Unrolled, their places stay in registers, which many would not fit. */
static __device__ __forceinline__ void copy_tile(float *shared, const struct tile *tile,
                                                 const int edge, const int vec, const bool k_major)
{
    const int copies = (BK * edge / vec + GROUP - 1) / GROUP;
    if (copies <= 8) {
#pragma unroll
        for (int i = 0; i < copies; i++)
            copy_some(shared, tile, i, edge, vec, k_major);
    } else {
#pragma unroll 4
        for (int i = 0; i < copies; i++)
            copy_some(shared, tile, i, edge, vec, k_major);
    }
}

/* f[i][p]: the thread's i'th row or column, k = p .. p+3 of the tile. lane: the thread's number
 * among `lanes` along the edge. */
static __device__ __forceinline__ void load_fours(float (*f)[4], const float *tile, int lane, int p,
                                                  const int count, const int lanes, const int edge,
                                                  const bool k_major)
{
    if (k_major) {
#pragma unroll
        for (int i = 0; i < count; i++)
            unpack(f[i], *(const float4 *)&tile[place_of(lane * 4 + i / 4 * 4 * lanes + i % 4, p,
                                                         edge, true)]);
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int i = 0; i < count; i += 4) {
                const float4 v =
                    *(const float4 *)&tile[place_of(p + j, lane * 4 + i * lanes, edge, false)];
                f[i][j] = v.x, f[i + 1][j] = v.y, f[i + 2][j] = v.z, f[i + 3][j] = v.w;
            }
    }
}

/* acc += a tile of k, `depth` deep. */
static __device__ __forceinline__ void multiply_tile(float (*acc)[TN], const float *stage,
                                                     int lane_m, int lane_n, int depth)
{
#pragma unroll
    for (int p = 0; p < BK; p += 4) {
        if (p >= depth) break;
        float a[TM][4], b[TN][4];
        load_fours(a, stage, lane_m, p, TM, LANES_M, BM, A_ALONG_K);
        load_fours(b, stage + A_FLOATS, lane_n, p, TN, LANES_N, BN, B_ALONG_K);
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
struct copier {
    int product, k; /* the block's first of PER_BLOCK products; what to copy next of it */
    int stage;
};

/* Copies the next tile of k, if there is one; if not, the group of copies is empty. multiplies: A
 * and B may be read. */
static __device__ __forceinline__ void copy_step(struct copier *c, float *stages,
                                                 const struct tgl_gemm_args *args, bool multiplies)
{
    const int product = c->product + (int)threadIdx.x / GROUP;
    if (multiplies && c->k < args->k && c->product < args->batch) {
        const bool exists = product < args->batch;
        const long long at = exists ? product : 0;
        const element_a *A = A_OF(args, at);
        const element_b *B = B_OF(args, at);
        float *stage = stages + c->stage * (PER_BLOCK * STAGE);
        const int depth = min(BK, args->k - c->k);
        const struct tile a = {A + (A_ALONG_K ? c->k : c->k * args->lda), (unsigned)args->lda,
                               exists ? args->m : 0, depth};
        const struct tile b = {B + (B_ALONG_K ? c->k : c->k * args->ldb), (unsigned)args->ldb,
                               exists ? args->n : 0, depth};
        copy_tile(stage, &a, BM, VEC_A, A_ALONG_K);
        copy_tile(stage + A_FLOATS, &b, BN, VEC_B, B_ALONG_K);
        c->stage = c->stage + 1 == STAGES ? 0 : c->stage + 1;
        c->k += BK;
        if (c->k >= args->k) c->k = 0, c->product += gridDim.x * PER_BLOCK;
    }
    async_commit();
}

/* Returns when the copies of all threads have arrived, and all have read the tile before. */
static __device__ __forceinline__ void wait_for_copies(void)
{
    ASYNC_WAIT(STAGES - 2);
    if (THREADS == 32)
        __syncwarp();
    else
        __syncthreads();
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const struct tgl_gemm_args args)
{
    DYNAMIC_SHARED(float, shared, STAGES *PER_BLOCK *STAGE);
    wait_for_earlier_launches();
    const int group = (int)threadIdx.x / GROUP, thread = (int)threadIdx.x % GROUP;
    const int lane_m = thread / LANES_N, lane_n = thread % LANES_N;
    float *stages = shared + group * STAGE;

    const bool multiplies = has_product(&args);
    struct copier copier = {(int)blockIdx.x * PER_BLOCK, 0, 0};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++)
        copy_step(&copier, stages, &args, multiplies);

    int stage = 0;
    for (int first = (int)blockIdx.x * PER_BLOCK; first < args.batch;
         first += gridDim.x * PER_BLOCK) {
        float acc[TM][TN] = {{0.0f}};
        for (int k = 0; multiplies && k < args.k; k += BK) {
            wait_for_copies();
            copy_step(&copier, stages, &args, multiplies);
            multiply_tile(acc, stages + stage * (PER_BLOCK * STAGE), lane_m, lane_n, args.k - k);
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
