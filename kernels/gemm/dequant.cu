/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of at most 16 rows of A (f16 or bf16) with a matrix of weights, integers of 8 or 4 bits. A
 * row of weights is a column of op(B), and its K is contiguous. The time of such a product is the
 * time to read the weights once, if few instructions are spent on each weight.
 *
 *   tiles       A block has TILE rows of weights, a warp ROWS of them. mma.sync multiplies 16 rows
 *               of weights, its left operand, by 8 rows of A. The tile is one of D^T.
 *   copies      LINE bytes of each row of weights, and the same k of A, are copied to a ring of
 *               STAGES steps in shared memory: by cp.async (lib/dequant_copies.h), or the weights
 *               by TMA, if the kernel has a tensor map of them (lib/dequant_ring.h). Rows that do
 *               not begin at multiples of 16 bytes (WIDE 0) are copied byte by byte.
 *   K           An mma.sync may add its products in any order of K. A lane therefore reads UNIT
 *               successive bytes of a row of weights at once, 32 of K for 16 bytes of 4-bit
 *               weights, and loads the same k of A for all weights of its warp.
 *   conversion  In registers, to integers minus zero point, which are exact in 16 bits
 *               (lib/dequant_convert.h). A group is GROUP successive k with one scale factor. The
 *               FP32 sums of a group are multiplied by its factor.
 *   split-K     Several blocks may compute a tile, each over k_chunk of K (lib/split_k.h).
 *
 * Grid: x = tiles * splits, z = batch. Parameters: lib/dequant_tiles.h.
 */
#include "lib/dequant_convert.h"
#include "lib/dequant_copies.h"
#include "lib/dequant_ring.h"
#include "lib/dynamic_shared.h"
#include "lib/epilogue.h"
#include "lib/launch_order.h"
#include "lib/mma.h"
#include "lib/shuffle.h"
#include "lib/split_k.h"

#if TYPE_A == TYPE_BF16
#define mma_16_bits mma_bf16
#else
#define mma_16_bits mma_f16
#endif

/* ---- Shared memory --------------------------------------------------------------------------- */

/* Where a lane reads in each stage: offsets of its bytes of the warp's first unit. In mma.sync a
 * lane has row g = lane / 4 of both operands, and the k of t = lane % 4. Row g of a fragment is row
 * r of the weights, where r is g with its three bits in reverse order. The swizzle of TMA puts the
 * 16-byte piece c of row r in place c ^ r: bit 0 of g thus moves the pieces of a row by 4 places,
 * bit 1 by 2, and bit 2 by 1. The lanes that read at the same time therefore use all banks. These
 * are 8, 16 or 32 lanes, which read 16, 8 or 4 bytes each, from 2, 4 or 8 successive g. */
struct lane {
    int weights; /* of row g of the warp's weights */
    int a;       /* of row g of A, without A_AT */
    int row;     /* the row of weights that g stands for, counted from the block's first one */
    int factors; /* of this row in the warp's first group, in elements */
};

/* The number of the part of each step's K that the warp multiplies: 0 to DEPTHS - 1. */
static __device__ __forceinline__ int depth_of_warp(void)
{
    return (int)threadIdx.x / SLICE_THREADS;
}

static __device__ __forceinline__ struct lane this_lane(void)
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    const int depth = depth_of_warp(), row = (g & 1) << 2 | (g & 2) | g >> 2;
    const int piece = depth * UNITS * UNIT / 4 + t * UNIT / 16;
    struct lane lane;
    lane.row = (int)threadIdx.x % SLICE_THREADS / 32 * ROWS + row;
    lane.weights = lane.row * LINE + weights_slot(row, piece) * 16 + t * UNIT % 16;
    lane.a = g * (STEP * 2) + a_slot(g, (depth * UNITS * 4 + t) * LANE_PARTS) * 16;
    lane.factors = depth * GROUPS / DEPTHS * TILE + lane.row;
    return lane;
}

/* Reads UNIT bytes of a row of weights. row: relative to the lane's row; a multiple of 8. */
static __device__ __forceinline__ void read_weights(unsigned words[UNIT / 4], const char *stage,
                                                    const struct lane *lane, const int row,
                                                    const int unit)
{
    const char *from = stage + (lane->weights ^ unit * UNIT / 4 * 16) + row * LINE;
#if UNIT == 16
    const uint4 v = *(const uint4 *)from;
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
#elif UNIT == 8
    const uint2 v = *(const uint2 *)from;
    words[0] = v.x, words[1] = v.y;
#else
    words[0] = *(const unsigned *)from;
#endif
}

/* Reads 8 elements of a row of A, in the order of pairs (in_pair_order()). part: which 8 of the
 * lane's k in the unit. */
static __device__ __forceinline__ void read_a(unsigned x[4], const char *stage,
                                              const struct lane *lane, const int row,
                                              const int unit, const int part)
{
    const int slot = a_slot(0, unit * (4 * LANE_PARTS) + part);
    const uint4 v = *(const uint4 *)(stage + A_AT + (lane->a ^ slot % 8 * 16) + slot / 8 * 128 +
                                     row * (STEP * 2));
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
    in_pair_order(x);
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* The zero points of the lane's rows g and g + 8 of each fragment. */
typedef struct offsets row_offsets[FRAGMENTS][2];

/* sums += the products of a unit. */
static __device__ __forceinline__ void multiply_unit(float (*sums)[COLUMNS][4], const char *stage,
                                                     const struct lane *lane,
                                                     const row_offsets offsets, const int unit)
{
    unsigned words[FRAGMENTS][2][UNIT / 4];
#pragma unroll
    for (int i = 0; i < FRAGMENTS * 2; i++)
        read_weights(words[i / 2][i % 2], stage, lane, i * 8, unit);
#pragma unroll
    for (int part = 0; part < LANE_PARTS; part++) {
        unsigned x[COLUMNS][4];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            read_a(x[c], stage, lane, c * 8, unit, part);
#pragma unroll
        for (int f = 0; f < FRAGMENTS; f++) {
            unsigned upper[4], lower[4];
            convert_integers(upper, &words[f][0][part * WORDS], offsets[f][0]);
            convert_integers(lower, &words[f][1][part * WORDS], offsets[f][1]);
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                const unsigned w[4] = {upper[j], lower[j], upper[j + 1], lower[j + 1]};
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
                    mma_16_bits(sums[f][c], w, &x[c][j]);
            }
        }
    }
}

/* acc += factor * sums, for the rows of weights of this lane. group: the group's number among the
 * warp's groups of the step. */
static __device__ __forceinline__ void add_group(float (*acc)[COLUMNS][4],
                                                 float (*sums)[COLUMNS][4], const char *stage,
                                                 const struct lane *lane, const int group)
{
    const float *factors = (const float *)(stage + FACTORS_AT) + group * TILE + lane->factors;
#pragma unroll
    for (int i = 0; i < FRAGMENTS * 2; i++) {
        const float factor = factors[i * 8];
#pragma unroll
        for (int j = 0; j < COLUMNS * 2; j++) {
            const int at = i % 2 * 2 + j % 2;
            acc[i / 2][j / 2][at] += factor * sums[i / 2][j / 2][at];
        }
    }
}

static __device__ __forceinline__ void read_zeros(row_offsets offsets, const char *stage,
                                                  const struct lane *lane, const int group)
{
    const signed char *zeros = (const signed char *)stage + ZEROS_AT + group * TILE + lane->factors;
#pragma unroll
    for (int i = 0; i < FRAGMENTS * 2; i++)
        offsets[i / 2][i % 2] = offsets_of(zeros[i * 8]);
}

/* acc += the warp's products of a step. all_k: the zero points, if all of K has the same ones. */
static __device__ __forceinline__ void multiply_step(float (*acc)[COLUMNS][4], const char *stage,
                                                     const struct lane *lane,
                                                     const row_offsets all_k)
{
#pragma unroll
    for (int group = 0; group < OWN_GROUPS; group++) {
#if GROUP
        float sums[FRAGMENTS][COLUMNS][4] = {{{0}}};
        row_offsets offsets;
        if (ZEROS) read_zeros(offsets, stage, lane, group);
#pragma unroll
        for (int i = 0; i < GROUP_UNITS; i++)
            multiply_unit(sums, stage, lane, ZEROS ? offsets : all_k, group * GROUP_UNITS + i);
        add_group(acc, sums, stage, lane, group);
#else
#pragma unroll
        for (int i = 0; i < UNITS; i++)
            multiply_unit(acc, stage, lane, all_k, i);
#endif
    }
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

/* The zero points of the lane's rows, if they are the same for all of K. */
static __device__ __forceinline__ void
load_zeros(row_offsets offsets, const struct block_operands *o, const struct lane *lane)
{
#pragma unroll
    for (int i = 0; i < FRAGMENTS * 2; i++) {
        const bool has_zero = ZEROS && !GROUP && o->k > 0 && lane->row + i * 8 < o->rows;
        offsets[i / 2][i % 2] =
            offsets_of(has_zero ? o->zeros[(lane->row + i * 8) * FACTOR_STEP] : 0);
    }
}

/* The factor of row `row` of weights, if it is the same for all of K. */
static __device__ __forceinline__ float factor_of(const struct block_operands *o, int row)
{
    return FACTORS && !GROUP && o->k > 0 ? o->factors[row * FACTOR_STEP] : 1.0f;
}

static __device__ __forceinline__ void store_results(const struct tgl_gemm_args *args,
                                                     const struct block_operands *o,
                                                     float (*acc)[COLUMNS][4], int first_row,
                                                     const struct lane *lane)
{
    const int t = (int)threadIdx.x % 4;
    const long long batch = blockIdx.z;
    const struct epilogue_operands with = epilogue_operands(args, D_OF(args, batch), batch);
#pragma unroll
    for (int i = 0; i < FRAGMENTS * 2; i++) {
        const int weights = lane->row + i * 8;
        if (weights >= o->rows) continue;
        const float factor = factor_of(o, weights);
#pragma unroll
        for (int j = 0; j < COLUMNS * 2; j++) {
            const int row = j / 2 * 8 + t * 2 + j % 2;
            const float sum = factor * acc[i / 2][j / 2][i % 2 * 2 + j % 2];
            if (row < args->m) epilogue_store(args, &with, sum, row, first_row + weights);
        }
    }
}

/* acc := the sums of the warps that share rows of weights, in the warps of depth 0. */
static __device__ __forceinline__ void add_depths(float *acc, char *stages)
{
#if DEPTHS > 1
    float *sums = (float *)stages + threadIdx.x % SLICE_THREADS;
    __syncthreads(); /* all warps have read the stages */
    if (depth_of_warp() == 1)
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sums[i * SLICE_THREADS] = acc[i];
    __syncthreads();
    if (depth_of_warp() == 0)
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            acc[i] += sums[i * SLICE_THREADS];
#endif
}

/* acc += the products of k from `from` to `to`. All threads copy and multiply, except that the warp
 * that would be the producer if rows were aligned is idle. */
static __device__ __forceinline__ void dequant_multiply(float (*acc)[COLUMNS][4],
                                                        const struct tgl_gemm_args *args,
                                                        const struct block_operands *o,
                                                        char *stages, const struct lane *lane,
                                                        int from, int to)
{
    struct copies copies = first_copies(args, o, from);
    const bool is_idle = threadIdx.x >= COPIERS;
    row_offsets zeros;
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (from + i * STEP < to && !is_idle) copy_step(stages + i * STAGE_BYTES, args, o, &copies);
        async_commit();
    }
    load_zeros(zeros, o, lane);
    int stage = 0;
    for (int k = from; k < to; k += STEP) {
        const int ahead = k + (STAGES - 1) * STEP, next = stage == 0 ? STAGES - 1 : stage - 1;
        ASYNC_WAIT(STAGES - 2);
        __syncthreads(); /* copies of all threads have arrived; all have read stage `next` */
        if (ahead < to && !is_idle) copy_step(stages + next * STAGE_BYTES, args, o, &copies);
        async_commit();
        if (!is_idle) multiply_step(acc, stages + stage * STAGE_BYTES, lane, zeros);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
}

/* As dequant_multiply(), in a warp that only multiplies, because the producer copies. */
static __device__ __forceinline__ void consume(float (*acc)[COLUMNS][4],
                                               const struct block_operands *o, struct ring *ring,
                                               const char *stages, const struct lane *lane,
                                               int from, int to)
{
    struct ring_place at = {0, 0};
    row_offsets zeros;
    load_zeros(zeros, o, lane);
    for (int k = from; k < to; k += STEP) {
        mbarrier_wait(&ring->full[at.stage], at.parity);
        multiply_step(acc, stages + at.stage * STAGE_BYTES, lane, zeros);
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(&ring->empty[at.stage]);
        advance(&at);
    }
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_dequant(const struct tgl_gemm_args args
#if MAPS
                 ,
                 const __grid_constant__ struct tgl_tensor_map map
#endif
    )
{
    DYNAMIC_SHARED_ALIGNED(1024, char, stages, STAGES *STAGE_BYTES);
    const int tiles = (args.n - 1) / TILE + 1, splits = (int)gridDim.x / tiles;
    const int tile = (int)blockIdx.x / splits, split = (int)blockIdx.x % splits;
    const int from = split * args.k_chunk;
    const struct lane lane = this_lane();
    float acc[FRAGMENTS][COLUMNS][4] = {{{0}}};
    clear_missing_rows(stages, &args);
#if TMA
    __shared__ struct ring ring;
    const bool is_producer = uniform((int)threadIdx.x / 32) == WARPS;
    make_barriers(&ring);
    if (is_producer && args.overlaps)
        prefetch_weights(&args, &map, tile * TILE, from, min(args.k, from + args.k_chunk));
#endif
    wait_for_earlier_launches();
    if (!TMA && args.overlaps) let_later_launches_start();
    const struct block_operands o = operands_of(&args, tile * TILE);
    const int to = split == splits - 1 ? o.k : min(o.k, from + args.k_chunk);
#if TMA
    if (is_producer)
        dequant_produce(&args, &map, &o, &ring, stages, tile * TILE, from, to);
    else
        consume(acc, &o, &ring, stages, &lane, from, to);
#else
    dequant_multiply(acc, &args, &o, stages, &lane, from, to);
#endif
    add_depths(acc[0][0], stages);
    const bool has_sums = threadIdx.x < SLICE_THREADS;
    if (splits > 1 &&
        !sum_over_blocks(&args, acc[0][0], (int)blockIdx.z * tiles + tile, split, !has_sums))
        return;
    if (has_sums) store_results(&args, &o, acc, tile * TILE, &lane);
}
