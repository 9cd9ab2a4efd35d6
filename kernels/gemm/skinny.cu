/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM where m or n is at most 16, GEMV included. A and B are F32 or a 16-bit type, with sums in
 * F32, or F64. Such a product is bound by the memory bandwidth of reading the big operand once.
 * Loads must therefore be in flight all the time, from the first to the last moment of the launch,
 * also during arithmetic.
 *
 *   big operand    B (or A: BIG_A), `length` x k. A tile is the part of it that a block computes at
 *                  once. Every warp loads its elements one or several steps of K ahead of the
 *                  arithmetic: lib/skinny_big.h.
 *   small operand  COUNT x k, in shared memory, DEPTH of K at a time: lib/skinny_small.h.
 *   arithmetic     A thread multiplies RESULTS x UNIT elements of the big operand by COUNT x UNIT
 *                  of the small one at a time. UNIT is 16 bytes of the accumulation type. With
 *                  COUNT 16, RESULTS must be large: otherwise loading the small operand from shared
 *                  memory takes longer than loading the big one from memory.
 *   ALONG_K 1      The big operand is K-major. LANES_K lanes divide the K of a result among them,
 *                  and a butterfly of shuffles adds their sums. The other lanes of the warp, and
 *                  the other warps, have other results.
 *   ALONG_K 0      The big operand is MN-major. Lanes have neighbouring results. The warps of a
 *                  block divide K among them, and their sums are added in order.
 *   PAIRS          Both operands are complex: lib/thin_lines.h.
 *   split-K        Several blocks may compute one tile, each over part of K: lib/skinny_work.h,
 *                  lib/skinny_results.h.
 *
 * Grid: x = blocks, z = batch. Counters: one per tile of the batch. Parameters: lib/skinny_tiles.h.
 */
#include "lib/dynamic_shared.h"
#include "lib/launch_order.h"
#include "lib/skinny_big.h"
#include "lib/skinny_results.h"
#include "lib/skinny_small.h"

/* acc += the products of a step of this warp. The step's elements of the big operand are in the
 * registers `now` if STRAIGHT, else in `slot`, a stage of the warp's ring in shared memory. small:
 * the small operand, from the step's first k on. */
static __device__ __forceinline__ void skinny_multiply_step(accumulate_t (*acc)[RESULTS],
                                                            const pack_t *now, const float *slot,
                                                            const accumulate_t *small)
{
    const int lane = (int)threadIdx.x % 32;
    small += (ALONG_K ? K_LANE : (int)threadIdx.x / 32 * UNROLL) * SMALL_LINE;
#pragma unroll
    for (int i = 0; i < UNROLL * (GROUP_K / UNIT); i++) {
        const int u = i / (GROUP_K / UNIT), unit = i % (GROUP_K / UNIT);
        const accumulate_t *own =
            small + u * (ALONG_K ? LANES_K : 1) * SMALL_LINE + unit * (ROWS * UNIT);
        accumulate_t v[RESULTS][UNIT]; /* [result][k] */
#if ALONG_K
#pragma unroll
        for (int r = 0; r < RESULTS; r++) {
            const float *place = slot + (ROW_LANE + r * LANES_LENGTH) * LINE;
            if (STRAIGHT)
                unpack_unit(v[r], &now[u * RESULTS + r], unit * UNIT);
            else
                load_unit(v[r], (const accumulate_t *)&place[(K_LANE + u * LANES_K) * 4]);
        }
        (void)lane;
#else
#pragma unroll
        for (int j = 0; j < UNIT * (RESULTS / PACK); j++) {
            const int p = j / (RESULTS / PACK), r = j % (RESULTS / PACK) * PACK;
            const int row = (u * GROUP_K + unit * UNIT + p) / BIG_PARTS;
            accumulate_t x[PACK];
            if (STRAIGHT)
                unpack_all(x, &now[row * (RESULTS / PACK) + r / PACK]);
            else
                load_unit(x, (const accumulate_t *)&slot[row * LINE + r * 32 + lane * 4]);
#pragma unroll
            for (int e = 0; e < PACK; e++)
                v[r + e][p] = SIGNED_PART(x[e ^ p % BIG_PARTS], p & 1, e & 1);
        }
#endif
#pragma unroll
        for (int s = 0; s < COUNT; s++) {
            accumulate_t y[UNIT];
            const int part = s % SMALL_PARTS; /* K-major PAIRS: of the result; y is expanded */
            load_unit(y, &own[s / SMALL_PARTS * UNIT]);
#pragma unroll
            for (int p = 0; p < UNIT; p++)
#pragma unroll
                for (int r = 0; r < RESULTS; r++)
                    acc[s][r] +=
                        v[r][p] * (SMALL_PARTS == 1 ? y[p] : SIGNED_PART(y[p ^ part], p & 1, part));
        }
    }
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) sgemm_skinny(const struct tgl_gemm_args args)
{
    DYNAMIC_SHARED(accumulate_t, shared, RING_FLOATS + PLACES * SMALL + RAW_FLOATS + SUMS);
    float *ring = (float *)shared + (STRAIGHT ? 0 : (int)threadIdx.x / 32 * (STAGES * STAGE));
    accumulate_t *small = shared + RING_FLOATS, *sums = small + PLACES * SMALL + RAW_FLOATS;
    start_after_earlier_launches(args.waits_at_end);
    if (args.overlaps) let_later_launches_start();
    const struct operands o = operands_of(&args);
    const struct skinny_work w = work_of(&args, o.length);
    const int begin = first_unit(&w, (int)blockIdx.x), end = first_unit(&w, (int)blockIdx.x + 1);

    const bool once = DEPTH_OF(&args) <= DEPTH;        /* all of the small operand fits */
    const int fed = DEPTH_OF(&args) > 0 ? end : begin; /* if k or alpha is 0, nothing is loaded */
    struct feeder feeder = {0, 0, begin, once ? begin : fed, 0};
    if (once)
        copy_small(small, &o, 0, DEPTH_OF(&args));
    else
        feed(&feeder, small, &args, &o, &w);
    async_commit();
    struct loader loader;
    loader.k = loader.to = loader.stage = 0;
    loader.unit = begin;
    loader.end = fed;
#pragma unroll 1
    for (int i = 0; i < (STRAIGHT ? 1 : STAGES - 1); i++)
        load_step(&loader, ring, &args, &o, &w);
    if (once) {
        ASYNC_WAIT(STRAIGHT ? 0 : STAGES - 1);
        __syncthreads();
#if IS_16_BITS
        convert_small(small, DEPTH_OF(&args));
#endif
    }

    int stage = 0, place = 0;
    for (int unit = begin; unit < end;) {
        const struct segment segment = segment_at(&args, &w, unit, end);
        accumulate_t acc[COUNT][RESULTS] = {{0}};
        const accumulate_t *y = small + segment.from / GROUP_K * SMALL_LINE;
        /* The k from which on the next DEPTH of the small operand is needed. */
        unsigned chunk = once ? segment.to : segment.from;
        for (int k = segment.from; k < segment.to; k += STEP, y += STEP / GROUP_K * SMALL_LINE) {
            if ((unsigned)k == chunk) {
                ASYNC_WAIT(0);
                __syncthreads();
                y = small + place * SMALL;
                place ^= PLACES - 1;
#if IS_16_BITS
                convert_small(small, feeder.copied);
#endif
                chunk += DEPTH;
                feed(&feeder, small, &args, &o, &w);
                if (STRAIGHT) async_commit();
            }
            pack_t now[STRAIGHT ? PACKS : 1];
            if (STRAIGHT) {
#pragma unroll
                for (int i = 0; i < PACKS; i++)
                    now[i] = loader.next[STRAIGHT ? i : 0];
            } else {
                ASYNC_WAIT(STAGES - 2);
                __syncwarp(); /* copies of all lanes have arrived; all lanes have read the slot */
            }
            load_step(&loader, ring, &args, &o, &w);
            skinny_multiply_step(acc, now, ring + stage * STAGE, y);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        const bool is_whole = segment.to - segment.from == DEPTH_OF(&args);
        const struct finisher f = {
            &args, &o, is_whole ? 0 : partial_of(&args, &w, (int)blockIdx.x, segment.tile),
            segment.tile};
        finish_tile(&f, acc, sums);
        if (!is_whole) add_blocks(&args, &o, &w, segment.tile);
        unit = segment.next;
    }
    end_after_earlier_launches(args.waits_at_end);
}
