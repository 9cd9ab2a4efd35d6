/* SPDX-License-Identifier: Apache-2.0
 *
 * The main loop of gemm/accurate.cu. hi and lo are the two f16 words of an element. When the tensor
 * cores add products to a large sum, they truncate the low bits of the products. Therefore they add
 * up each step of BK from zero, in two phases, and FFMA adds the result to FP32 sums in registers,
 * rounded to nearest:
 *
 *     cross phase   acc := hi*lo + lo*hi    sum += 2^-11 * acc
 *     hi phase      acc := hi*hi            sum += acc
 *
 * The consumers take turns to issue their phases: while one adds, the others multiply. Without
 * turns they would wait for the same stages, multiply together and add together. Some blocks would
 * also run ahead of others, so that shared tiles leave L2 before the last block reads them. At m =
 * n = k = 16384 an H200 takes 47 ms without turns and 38 ms with them
 * (docs/notes/2026-11-26-gpu-kernels.md).
 */
#ifndef TGL_ACCURATE_LOOP_H
#define TGL_ACCURATE_LOOP_H

#include "lib/accurate_tiles.h"
#include "lib/shuffle.h"

/* The next stage of the ring that a consumer reads (lib/stage_ring.h), and the parity of its next
 * turn (lib/wgmma_turns.h). */
struct progress {
    struct ring_place at;
    unsigned turn;
};

/* The descriptor of consumer 0's left tile in a stage. The descriptors of the stage's other tiles
 * differ from it by constants. The compiler computes them in uniform registers, because uniform()
 * (lib/shuffle.h) lets it prove that this descriptor is equal in all lanes. */
static __device__ __forceinline__ wgmma_tile tile_of_stage(struct accurate_shared *shared,
                                                           int stage)
{
    const wgmma_tile first = tile_of(shared->stages[0], 1, BM);
    const unsigned low = uniform((unsigned)moved_tile(first, (unsigned)stage * STAGE_BYTES));
    return (first & 0xffffffff00000000ull) | low;
}

static __device__ __forceinline__ wgmma_tile left_tile(wgmma_tile stage, int group)
{
    return moved_tile(stage, (unsigned)(group * WM * 128));
}

static __device__ __forceinline__ wgmma_tile right_tile(wgmma_tile stage)
{
    return moved_tile(stage, LEFT_BYTES);
}

/* Issues a group of wgmmas: acc := left * right. */
static __device__ __forceinline__ void multiply_hi(float *acc, wgmma_tile left, wgmma_tile right)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < K_STEPS; k++)
        wgmma(acc, moved_tile(left, k * K_STEP(1, BM)), moved_tile(right, k * K_STEP(1, BN)),
              k > 0);
    wgmma_commit();
}

/* Issues a group of wgmmas: acc := left_hi * right_lo + left_lo * right_hi. */
static __device__ __forceinline__ void multiply_cross(float *acc, wgmma_tile left_hi,
                                                      wgmma_tile left_lo, wgmma_tile right_hi,
                                                      wgmma_tile right_lo)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < K_STEPS; k++) {
        const int step = k * K_STEP(1, BM);
        wgmma(acc, moved_tile(left_hi, step), moved_tile(right_lo, step), k > 0);
        wgmma(acc, moved_tile(left_lo, step), moved_tile(right_hi, step), 1);
    }
    wgmma_commit();
}

/* Lets the next consumer issue its wgmmas, waits for this consumer's, and releases stage
 * `stage`. */
static __device__ __forceinline__ void end_phase(float *acc, struct accurate_shared *shared,
                                                 int group, int stage)
{
    pass_turn(&shared->turns, group);
    WGMMA_WAIT(acc, 0);
    WGMMA_HOLD(acc);
    wgmma_release(&shared->ring, stage);
}

/* acc := hi*lo + lo*hi for one step of BK. at: the stage of the step's lo words, which this
 * function releases at its end. The next stage of the ring has the hi words. */
static __device__ __forceinline__ void cross_phase(float *acc, struct accurate_shared *shared,
                                                   int group, struct ring_place at)
{
    const int lo = at.stage;
    const wgmma_tile lo_tile = tile_of_stage(shared, lo);
    mbarrier_wait(&shared->ring.full[lo], at.parity);
    advance(&at);
    const wgmma_tile hi_tile = tile_of_stage(shared, at.stage);
    mbarrier_wait(&shared->ring.full[at.stage], at.parity);
    multiply_cross(acc, left_tile(hi_tile, group), left_tile(lo_tile, group), right_tile(hi_tile),
                   right_tile(lo_tile));
    end_phase(acc, shared, group, lo);
}

/* acc := hi*hi for the step that cross_phase() has begun. *at: the stage of the step's lo words.
 * Releases the stage of the hi words, and moves *at to the stage behind it. */
static __device__ __forceinline__ void hi_phase(float *acc, struct accurate_shared *shared,
                                                int group, struct ring_place *at)
{
    advance(at);
    const int hi = at->stage;
    const wgmma_tile tile = tile_of_stage(shared, hi);
    multiply_hi(acc, left_tile(tile, group), right_tile(tile));
    advance(at);
    end_phase(acc, shared, group, hi);
}

/* sum += acc * factor, rounded to nearest. The tensor cores would truncate. */
static __device__ __forceinline__ void promote(float *sum, const float *acc, const float factor)
{
#pragma unroll
    for (int i = 0; i < ACC; i++)
        sum[i] = fmaf(acc[i], factor, sum[i]);
}

/* sum := the sums of a unit (a tile of D), not yet divided by the scales. */
static __device__ __forceinline__ void accurate_multiply(float *sum, struct accurate_shared *shared,
                                                         int steps, int group,
                                                         struct progress *progress)
{
    float acc[ACC];
#pragma unroll
    for (int i = 0; i < ACC; i++)
        sum[i] = 0.0f;
    for (int step = 0; step < steps; step++) {
        take_turn(&shared->turns, group, &progress->turn);
        cross_phase(acc, shared, group, progress->at);
        promote(sum, acc, 1.0f / (1 << TGL_WORD_EXPONENT));
        take_turn(&shared->turns, group, &progress->turn);
        hi_phase(acc, shared, group, &progress->at);
        promote(sum, acc, 1.0f);
    }
}

#endif
