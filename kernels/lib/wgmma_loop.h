/* SPDX-License-Identifier: Apache-2.0
 *
 * The main loops of the consumers of gemm/wgmma.cu: a left operand in registers, sums of stages
 * that are added in FP32 (PROMOTE), and the usual one.
 */
#ifndef TGL_WGMMA_LOOP_H
#define TGL_WGMMA_LOOP_H

#include "lib/shuffle.h"
#include "lib/wgmma_left.h"
#include "lib/wgmma_stage.h"

/* The offset of a stage in bytes, which is equal in all lanes. With ALTERNATE the compiler can
 * prove this only after uniform() (lib/shuffle.h). Without ALTERNATE it can prove it anyway. */
static __device__ __forceinline__ unsigned stage_offset(int stage)
{
    const unsigned offset = (unsigned)stage * STAGE_BYTES;
    return ALTERNATE ? uniform(offset) : offset;
}

#if !PROMOTE
/* Waits for the wgmmas of a unit's last stage, whose number in the ring is `before`, and releases
 * the stage. Then acc holds the sums of the unit. */
static __device__ __forceinline__ void wgmma_finish(accumulate_t (*acc)[ACC],
                                                    struct wgmma_shared *shared,
                                                    const struct unit *u, int before)
{
#if ALTERNATE
    pass_turn(&shared->turns, (int)threadIdx.x / 128); /* all products are issued */
#endif
    WGMMA_WAIT(acc, 0);
#pragma unroll
    for (int i = 0; i < M_STEPS; i++)
        WGMMA_HOLD(acc[i]);
    /* There are two ifs because with if and else NVRTC 13.0 moved all sums to other registers and
     * spilled some. */
    if (u->steps > 0) wgmma_release(&shared->ring, before);
    if (u->steps == 0) {
#pragma unroll
        for (int i = 0; i < M_STEPS * ACC; i++)
            acc[i / ACC][i % ACC] = 0;
    }
}
#endif

#if WGMMA_LEFT_IN_REGISTERS

/* acc += left * right for one stage, the left tile as fragments. is_first: acc := left * right. */
static __device__ __forceinline__ void multiply_fragments(accumulate_t (*acc)[ACC],
                                                          unsigned (*fragments)[K_STEPS][4],
                                                          wgmma_tile right, bool is_first)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < K_STEPS; k++)
#pragma unroll
        for (int i = 0; i < M_STEPS; i++)
            wgmma(acc[i], fragments[i][k], moved_tile(right, k * K_STEP(1, BN)),
                  k > 0 || !is_first);
    wgmma_commit();
}

/* Issues the products of step number `step` of a unit, whose left fragments are `own`. Then waits
 * for the products of the previous stage, releases it, and loads the fragments of the next stage
 * into `next`. *before: the previous stage; becomes the stage of this step. */
static __device__ __forceinline__ void
multiply_and_load(accumulate_t (*acc)[ACC], unsigned (*own)[K_STEPS][4],
                  unsigned (*next)[K_STEPS][4], struct wgmma_shared *shared, int step, int steps,
                  int group, struct ring_place *at, int *before)
{
    const int stage = at->stage;
    const wgmma_tile right = tile_of(shared->stages[0] + LEFT_BYTES, 1, BN);
    multiply_fragments(acc, own, moved_tile(right, stage_offset(stage)), step == 0);
    advance(at);
    WGMMA_WAIT(acc, 1);
    hold_left_stage(next);
    if (step > 0) wgmma_release(&shared->ring, *before);
    *before = stage;
    if (step + 1 == steps) return;
    mbarrier_wait(&shared->ring.full[at->stage], at->parity);
    load_left_stage(next, shared->stages[at->stage], group * WM);
}

/* acc := the sums of a unit. Even and odd stages have separate registers for left fragments: one
 * set is loaded while wgmma reads the other. */
static __device__ __forceinline__ void wgmma_multiply(accumulate_t (*acc)[ACC],
                                                      struct wgmma_shared *shared,
                                                      const struct tgl_gemm_args *args,
                                                      const struct unit *u, int group,
                                                      struct ring_place *at)
{
    unsigned even[M_STEPS][K_STEPS][4], odd[M_STEPS][K_STEPS][4];
    int before = 0;
    (void)args;
#pragma unroll
    for (int i = 0; i < M_STEPS * K_STEPS * 4; i++)
        even[i / (K_STEPS * 4)][i / 4 % K_STEPS][i % 4] =
            odd[i / (K_STEPS * 4)][i / 4 % K_STEPS][i % 4] = 0;
    if (u->steps > 0) {
        mbarrier_wait(&shared->ring.full[at->stage], at->parity);
        load_left_stage(even, shared->stages[at->stage], group * WM);
    }
#pragma unroll 1
    for (int step = 0; step < u->steps; step++) {
        multiply_and_load(acc, even, odd, shared, step, u->steps, group, at, &before);
        if (++step == u->steps) break;
        multiply_and_load(acc, odd, even, shared, step, u->steps, group, at, &before);
    }
    wgmma_finish(acc, shared, u, before);
    hold_left_stage(even);
    hold_left_stage(odd);
}

#elif PROMOTE

#if HAS_BLOCK_SCALES
#define FACTORS(shared, stage) (&(shared)->factors[stage])
#else
#define FACTORS(shared, stage) 0
#endif

/* Waits until a stage has arrived, and loads its factors. */
static __device__ __forceinline__ void await_factors(struct thread_factors *to,
                                                     struct wgmma_shared *shared,
                                                     const struct ring_place *at,
                                                     const struct unit *u, int group)
{
    mbarrier_wait(&shared->ring.full[at->stage], at->parity);
    load_factors(to, FACTORS(shared, at->stage), u, group);
}

/* acc += the sums of a unit, for the first `parts` parts of 64 rows. part: the sums of one stage
 * for 64 rows. A thread has registers for only one such part, so the parts of a stage are
 * multiplied one after the other. The factors of the next stage are loaded while the last wgmmas of
 * a stage run. */
static __device__ __forceinline__ void multiply_parts(accumulate_t (*acc)[ACC],
                                                      struct wgmma_shared *shared,
                                                      const struct unit *u, int group,
                                                      struct ring_place *at, const int parts)
{
    const wgmma_tile left = tile_of(shared->stages[0] + CONSUMER_ROW(group) * 128, 1, BM);
    const wgmma_tile right = tile_of(shared->stages[0] + LEFT_BYTES, 1, BN);
    accumulate_t part[ACC];
    struct thread_factors own = {0}, next = {0};
    if (u->steps > 0) await_factors(&own, shared, at, u, group);
    for (int step = 0; step < u->steps; step++) {
        const unsigned offset = stage_offset(at->stage);
        struct ring_place after = *at;
        advance(&after);
#pragma unroll
        for (int i = 0; i < parts; i++) {
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < K_STEPS; k++)
                wgmma(part, moved_tile(left, offset + i * M_STEP + k * K_STEP(1, BM)),
                      moved_tile(right, offset + k * K_STEP(1, BN)), k > 0);
            wgmma_commit();
            if (i == parts - 1 && step + 1 < u->steps)
                await_factors(&next, shared, &after, u, group);
            WGMMA_WAIT(part, 0);
            WGMMA_HOLD(part);
            if (!PROMOTE_READS_STAGE && i == parts - 1) wgmma_release(&shared->ring, at->stage);
            promote(acc[i], part, &own, i, FACTORS(shared, at->stage), u);
            if (PROMOTE_READS_STAGE && i == parts - 1) wgmma_release(&shared->ring, at->stage);
        }
        own = next;
        *at = after;
    }
}

/* acc := the sums of a unit. */
static __device__ __forceinline__ void wgmma_multiply(accumulate_t (*acc)[ACC],
                                                      struct wgmma_shared *shared,
                                                      const struct tgl_gemm_args *args,
                                                      const struct unit *u, int group,
                                                      struct ring_place *at)
{
    (void)args;
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i++)
        acc[i / ACC][i % ACC] = 0;
#if TAKES_TURNS && M_STEPS == 2
    if (uniform_condition(u->left + CONSUMER_ROW(group) + PART_ROWS >= u->end)) {
        multiply_parts(acc, shared, u, group, at, 1);
        return;
    }
#endif
    multiply_parts(acc, shared, u, group, at, M_STEPS);
}

#else

/* acc += left * right for one stage. is_first: acc := left * right. */
static __device__ __forceinline__ void
wgmma_multiply_stage(accumulate_t (*acc)[ACC], wgmma_tile left, wgmma_tile right, bool is_first)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < K_STEPS; k++)
#pragma unroll
        for (int i = 0; i < M_STEPS; i++)
            wgmma(acc[i], moved_tile(left, i * M_STEP + k * K_STEP(LEFT_ALONG_K, BM)),
                  moved_tile(right, k * K_STEP(RIGHT_ALONG_K, BN)), k > 0 || !is_first);
    wgmma_commit();
}

/* acc := the sums of a unit. */
static __device__ __forceinline__ void wgmma_multiply(accumulate_t (*acc)[ACC],
                                                      struct wgmma_shared *shared,
                                                      const struct tgl_gemm_args *args,
                                                      const struct unit *u, int group,
                                                      struct ring_place *at)
{
    const wgmma_tile left = tile_of(shared->stages[0] + group * WM * 128, LEFT_ALONG_K, BM);
    const wgmma_tile right = tile_of(shared->stages[0] + LEFT_BYTES, RIGHT_ALONG_K, BN);
    int before = 0; /* the previous stage */
    (void)args;
    for (int step = 0; step < u->steps; step++) {
        const unsigned offset = stage_offset(at->stage);
        mbarrier_wait(&shared->ring.full[at->stage], at->parity);
#if GROUPED == 2
        clear_other_groups(shared->stages[at->stage], u, step);
#endif
        wgmma_multiply_stage(acc, moved_tile(left, offset), moved_tile(right, offset), step == 0);
        prefetch_residual(args, u, group, step);
        WGMMA_WAIT(acc, 1);
        if (step > 0) wgmma_release(&shared->ring, before);
        before = at->stage;
        advance(at);
    }
    wgmma_finish(acc, shared, u, before);
}

#endif

#endif
