/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of f64 on the tensor cores of sm_90 and later, by mma.sync (DMMA) and TMA. All transposes,
 * any shape; TMA needs strides that are multiples of 16 bytes.
 *
 *   producer      One warp, or a warpgroup if the consumers need its registers, because setmaxnreg
 *                 changes the registers of a whole warpgroup. A single thread of it fills a ring of
 *                 STAGES stages by TMA. Elements outside the matrices arrive as zeros.
 *   consumers     A grid of warps, each with WM x 32 of the block's BM x BN tile of D in registers.
 *                 Each warp waits for the stages and releases them by itself: there is no barrier
 *                 of the block in the main loop. A step is 8 of K. While a warp multiplies, it
 *                 loads the fragments of B for the next step, and of A for the next AHEAD groups of
 *                 16 rows. These fragments may be in the next stage.
 *   slices        If tiles are small and few, the warps form SLICES groups, and group s multiplies
 *                 every SLICES'th stage. The groups add their sums through shared memory. With
 *                 split-K each group adds a part of the units of a tile.
 *   persistent    The grid has at most as many blocks as are resident at once. The producer runs
 *                 ahead into the next unit of work while the consumers store.
 *   exchanged     If D has few columns, the kernel computes tiles of D^T, which may have 16 rows
 *                 only. BM is then the number of columns of D in a tile.
 *   pairs         The product computes a complex one and reads complex matrices: macro PAIRS of
 *                 lib/complex_pairs.h.
 *   split-K       A tile has several units of work, each a part of its K. The last unit to finish
 *                 adds the sums of all units in the workspace, in the order of K: results are
 *                 bitwise the same every run.
 *
 * lib/dmma_tiles.h has the parameters, the tiles and the fragments, lib/stage_ring.h the ring,
 * lib/wgmma_units.h the units of work, lib/dmma_store.h split-K and the epilogue.
 *
 * The tensor maps a_map and b_map are three-dimensional: the contiguous dimension, the other one,
 * and the batch.
 */
#include "lib/dmma_store.h"
#include "lib/dmma_tiles.h"
#include "lib/dynamic_shared.h"
#include "lib/launch_order.h"
#include "lib/mma.h"
#include "lib/set_registers.h"
#include "lib/shuffle.h"
#include "lib/wgmma_units.h"

struct dmma_shared {
    unsigned char stages[STAGES][STAGE_BYTES]; /* op(A), then op(B) */
#if SLICES > 1
    double sums[SLICES - 1][BM * BN];
#endif
    struct ring ring;
};

/* ---- Producer -------------------------------------------------------------------------------- */

/* Called by one thread: fills the stages of all units of the block. */
static __device__ __forceinline__ void dmma_produce(const struct tgl_gemm_args *args,
                                                    const struct tgl_tensor_map *a_map,
                                                    const struct tgl_tensor_map *b_map,
                                                    struct dmma_shared *shared, int depth)
{
    const int units = unit_count(args);
    struct dmma_source a = {a_map, 0, 0}, b = {b_map, 0, 0};
    const bool has_as = (EXCHANGED ? args->stride_b : args->stride_a) != 0;
    const bool has_bs = (EXCHANGED ? args->stride_a : args->stride_b) != 0;
    struct ring_place at = {0, 0};
    for (int i = (int)blockIdx.x; i < units; i += (int)gridDim.x) {
        const struct unit u = find_unit(args, i, depth);
        a.edge = u.left;
        a.z = has_as ? u.batch : 0; /* all problems share a matrix of stride 0 */
        b.edge = u.right;
        b.z = has_bs ? u.batch : 0;
        for (int step = u.first; step < u.first + u.steps; step++) {
            unsigned char *stage = shared->stages[at.stage];
            mbarrier *full = &shared->ring.full[at.stage];
            mbarrier_wait(&shared->ring.empty[at.stage], at.parity ^ 1);
            mbarrier_arrive_and_expect(full, STAGE_BYTES);
            load_tile_a(stage, a, step * BK, full);
            load_tile_b(stage + A_BYTES, b, step * BK, full);
            advance(&at);
        }
    }
}

/* ---- Consumers: the main loop ---------------------------------------------------------------- */

struct dmma_fragments {
    double a[A_SLOTS][4], b[2][NT][2];
};

/* Loads the fragment of A of group number `group` of a stage: a group is 16 rows of one step.
 * Before the first group of a step, also loads the step's fragments of B. */
static __device__ __forceinline__ void load_group(struct dmma_fragments *to,
                                                  const unsigned char *stage,
                                                  const struct dmma_lane_source *from,
                                                  const int group)
{
    if (PAIRS ? group == 0 : group % MT == 0)
        dmma_load_b(to->b[group / MT], stage, from, group / MT);
    dmma_load_a(to->a[group % A_SLOTS], stage, from, group / MT, group % MT);
}

/* acc[row] += a * b for one step and 16 rows. If `row` is odd, the columns come in reverse order:
 * the last DMMA of one row and the first of the next then share B's fragment. */
static __device__ __forceinline__ void multiply_group(double (*acc)[NT][4],
                                                      struct dmma_fragments *of, const int group)
{
    const int row = group % MT;
#pragma unroll
    for (int i = 0; i < NT; i++) {
        const int j = row % 2 ? NT - 1 - i : i;
        mma_f64(acc[row][j], of->a[group % A_SLOTS], of->b[group / MT][j]);
    }
}

/* Moves *at to the slice's next stage, SLICES further in the ring. SLICES divides STAGES, so each
 * stage of the ring always belongs to the same slice. */
static __device__ __forceinline__ void advance_slice(struct ring_place *at)
{
    at->stage += SLICES;
    if (at->stage >= STAGES) {
        at->stage -= STAGES;
        at->parity ^= 1;
    }
}

/* How many of the `steps` stages of a unit (a tile, or a part of its K) belong to the slice.
 * before: the number of stages of all earlier units, modulo SLICES. */
static __device__ __forceinline__ int steps_of_slice(int slice, int before, int steps)
{
    const int rest = before + SLICES - 1 - slice;
    return (rest + steps) / SLICES - rest / SLICES;
}

/* Called by a warp after its last load from the stage: lets the producer fill the stage again. The
 * arrival is ordered behind the loads of all lanes (PTX ISA, mbarrier.arrive: release). */
static __device__ __forceinline__ void dmma_release(struct ring *ring, int stage)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(&ring->empty[stage]);
}

/* acc += the products of a stage, whose first AHEAD groups are in registers already. Before its end
 * the function releases the stage, moves *at to the next stage, and loads the first AHEAD groups of
 * the next stage. is_last: it does not load them, because they belong to another unit. */
static __device__ __forceinline__ void
dmma_multiply_stage(double (*acc)[NT][4], struct dmma_fragments *of, struct dmma_shared *shared,
                    const struct dmma_lane_source *from, struct ring_place *at, const bool is_last)
{
    const unsigned char *stage = shared->stages[at->stage];
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        if (group == GROUPS - AHEAD) {
            dmma_release(&shared->ring, at->stage);
            advance_slice(at);
            if (!is_last) {
                mbarrier_wait(&shared->ring.full[at->stage], at->parity);
                stage = shared->stages[at->stage];
            }
        }
#if PAIRS
        if (group == 0) dmma_set_signs(of->b[0], from);
        if (group == MT) dmma_exchange_parts(of->b[1], of->b[0], from);
#endif
        if (group < GROUPS - AHEAD)
            load_group(of, stage, from, group + AHEAD);
        else if (!is_last)
            load_group(of, stage, from, group + AHEAD - GROUPS);
        multiply_group(acc, of, group);
    }
}

/* acc := the sums of a unit (a tile, or a part of its K) over the stages of this slice. */
static __device__ __forceinline__ void dmma_multiply(double (*acc)[NT][4],
                                                     struct dmma_shared *shared,
                                                     const struct dmma_lane_source *from, int steps,
                                                     struct ring_place *at)
{
    struct dmma_fragments of;
#pragma unroll
    for (int i = 0; i < MT * NT * 4; i++)
        acc[i / 4 / NT][i / 4 % NT][i % 4] = 0;
    if (steps == 0) return;
    mbarrier_wait(&shared->ring.full[at->stage], at->parity);
#pragma unroll
    for (int group = 0; group < AHEAD; group++)
        load_group(&of, shared->stages[at->stage], from, group);
/* ptxas waits for all DMMAs at the end of an iteration. Small tiles have few DMMAs in a stage, so
 * an iteration has two stages. */
#pragma unroll(WM < 64 ? 2 : 1)
    for (int step = 1; step < steps; step++)
        dmma_multiply_stage(acc, &of, shared, from, at, false);
    dmma_multiply_stage(acc, &of, shared, from, at, true);
}

/* ---- Consumers ------------------------------------------------------------------------------- */

static __device__ __forceinline__ void dmma_consume(const struct tgl_gemm_args *args,
                                                    struct dmma_shared *shared, int warp, int depth)
{
    const int units = unit_count(args);
    const int slice = warp / SLICE_WARPS, in_slice = warp % SLICE_WARPS;
    const int warp_row = in_slice % WARPS_M * WM, warp_col = in_slice / WARPS_M * WN;
    const struct dmma_lane_source from = dmma_lane_source(warp_row, warp_col);
    struct ring_place at = {slice, 0};
    int before = 0; /* see steps_of_slice() */
    for (int i = (int)blockIdx.x; i < units; i += (int)gridDim.x) {
        const struct unit u = find_unit(args, i, depth);
        double acc[MT][NT][4];
        dmma_multiply(acc, shared, &from, steps_of_slice(slice, before, u.steps), &at);
        before = (before + u.steps) % SLICES;
#if SLICES > 1
        add_slices(&acc[0][0][0], shared->sums[0], slice);
#endif
        if (u.splits > 1 && !sum_over_units(&acc[0][0][0], args, &u, slice)) continue;
#if SLICES > 1
        if (u.splits > 1) add_slices(&acc[0][0][0], shared->sums[0], slice);
        if (slice > 0) continue;
#endif
        dmma_store_sums(args, acc, u.batch, u.left + warp_row, u.right + warp_col);
    }
}

/* ---- The kernel ------------------------------------------------------------------------------ */

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_dmma(const struct tgl_gemm_args args, const __grid_constant__ struct tgl_tensor_map a_map,
              const __grid_constant__ struct tgl_tensor_map b_map)
{
    DYNAMIC_SHARED_ALIGNED(1024, struct dmma_shared, shared, 1);
    const int warp = uniform((int)threadIdx.x / 32);
    if (threadIdx.x == CONSUMER_THREADS && args.k > 0) {
        tma_prefetch_map(&a_map);
        tma_prefetch_map(&b_map);
    }
    if (threadIdx.x == 0) make_ring(&shared->ring, 1, SLICE_WARPS);
    __syncthreads();
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();
    const int depth = DEPTH_OF(&args);
    if (warp < CONSUMERS) {
#if SETS_REGISTERS
        REGISTERS_INCREASE(CONSUMER_REGISTERS);
#endif
        dmma_consume(&args, shared, warp, depth);
    } else {
#if SETS_REGISTERS
        REGISTERS_DECREASE(PRODUCER_REGISTERS);
#endif
        if (ELECTS_PRODUCER ? warp == CONSUMERS && elect_lane() : threadIdx.x == CONSUMER_THREADS)
            dmma_produce(&args, &a_map, &b_map, shared, depth);
    }
}
