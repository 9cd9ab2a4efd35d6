/* SPDX-License-Identifier: Apache-2.0
 *
 * FP32 products on the f16 tensor cores of sm_90a, within the error bound of FP32 sums
 * (docs/accuracy.md). A line is a row of op(A) or a column of op(B). gemm/decompose.cu has scaled
 * each line by a power of two, 2^s. It has then replaced each element by two words of f16, hi and
 * lo:
 *
 *     a = 2^-sA * (hi + 2^-11 * lo)
 *     a * b = 2^-(sA + sB) * (hi*hi + 2^-11 * (hi*lo + lo*hi))
 *
 *   tiles         As in gemm/wgmma.cu: left is op(A), right is op(B), both K-major. A stage of the
 *                 ring in shared memory holds one word (hi or lo) of both tiles, BK deep. For each
 *                 step of K the ring has a stage of lo, then a stage of hi.
 *   main loop     For each step of BK the tensor cores add up products from zero, in two phases.
 *                 FFMA then adds the result to FP32 sums: lib/accurate_loop.h.
 *   lists         Elements that two words cannot represent are in lists. The products of these
 *                 elements are added to the unscaled sums: lib/accurate_listed.h.
 *   single lines  If one element of a line is not 0, the line's words are 0, and each of its sums
 *                 becomes one product of FP32 elements: lib/accurate_single.h.
 *   exact tiles   A tile is computed by FFMA from the operands themselves if one of its lines has
 *                 an Inf or a NaN, or if a list overflows. A consumer also computes its 64 rows by
 *                 FFMA if the tile has listed elements and a sum of these rows is Inf or NaN:
 *                 lib/accurate_exact.h.
 *
 * lib/accurate_tiles.h has the parameters. The tensor maps are three-dimensional: K, lines, and the
 * words of all matrices: hi and lo of the first, hi and lo of the second, ...
 */
#include "lib/accurate_exact.h"
#include "lib/accurate_listed.h"
#include "lib/accurate_loop.h"
#include "lib/accurate_single.h"
#include "lib/dynamic_shared.h"
#include "lib/launch_order.h"

/* Registers of a thread of the producer and of a thread of a consumer. A block of 384 threads
 * starts with 168 per thread, one of 512 threads with 128. The producer gives most of its registers
 * to the consumers. */
#define PRODUCER_REGISTERS (CONSUMERS == 3 ? 32 : 24)
#define CONSUMER_REGISTERS (CONSUMERS == 3 ? 160 : 240)

/* ---- Producer -------------------------------------------------------------------------------- */

/* Called by one thread: fills the stages of all units of the block. */
static __device__ __forceinline__ void accurate_produce(const struct tgl_gemm_args *args,
                                                        const struct tgl_tensor_map *left_map,
                                                        const struct tgl_tensor_map *right_map,
                                                        struct accurate_shared *shared, int depth)
{
    const int units = unit_count(args);
    struct wgmma_source left = {left_map, BM, 0, 0}, right = {right_map, BN, 0, 0};
    struct ring_place at = {0, 0};
    for (int i = (int)blockIdx.x; i < units; i += (int)gridDim.x) {
        const struct unit u = find_unit(args, i, depth);
        const struct lines lines = lines_of(args, u.batch);
        if (state_of_unit(args, &lines, &u) & TGL_PANEL_NOT_FINITE) continue;
        left.edge = u.left;
        right.edge = u.right;
        for (int word = 0; word < 2 * u.steps; word++) {
            const int is_lo = word % 2 == 0, p = word / 2 * BK;
            unsigned char *stage = shared->stages[at.stage];
            mbarrier *full = &shared->ring.full[at.stage];
            left.z = 2 * (args->stride_a != 0 ? u.batch : 0) + is_lo;
            right.z = 2 * (args->stride_b != 0 ? u.batch : 0) + is_lo;
            mbarrier_wait(&shared->ring.empty[at.stage], at.parity ^ 1);
            mbarrier_arrive_and_expect(full, STAGE_BYTES);
            load_left(stage, &left, p, full);
            load_right(stage + LEFT_BYTES, &right, p, full);
            advance(&at);
        }
    }
}

/* ---- Consumers ------------------------------------------------------------------------------- */

/* sum := the sums of a consumer's rows of a unit (a tile of D) in FP32. The products of listed
 * elements, which two words cannot represent, are added last. The sum of the other products may
 * overflow although the sum of all products does not. If the unit has listed elements and one of
 * these sums is Inf or NaN, FFMA therefore computes them again. group: the consumer's number. */
static __device__ __forceinline__ void compute_unit(float *sum, const struct tgl_gemm_args *args,
                                                    struct accurate_shared *shared, int number,
                                                    int group, int depth, struct progress *progress)
{
    struct unit u = find_unit(args, number, depth);
    struct lines lines = lines_of(args, u.batch);
    const unsigned state = state_of_unit(args, &lines, &u);
    bool is_exact = (state & TGL_PANEL_NOT_FINITE) != 0;
    if (!is_exact) {
        accurate_multiply(sum, shared, u.steps, group, progress);
        if (u.steps == 0) return;
        number = opaque(number);
        u = find_unit(args, number, depth);
        lines = lines_of(args, u.batch);
        const bool has_single_rows =
            unscale(sum, args, &lines, &u, group, shared, (state & TGL_PANEL_WIDE) != 0);
        if (state & HAS_LISTS) add_listed(sum, args, &lines, &u, group, shared);
        if (has_single_rows) set_single_rows(sum, args, &lines, &u, group);
        set_single_columns(sum, args, &lines, &u, group, shared->singles[group]);
        if (state & HAS_LISTS) is_exact = has_overflowed(sum, shared->orders[group], group);
    }
    if (is_exact) multiply_exactly(sum, args, &u, group, depth, shared->chunks[group * 4]);
}

static __device__ __forceinline__ void accurate_consume(const struct tgl_gemm_args *args,
                                                        struct accurate_shared *shared, int group,
                                                        int depth)
{
    const int units = unit_count(args);
    struct progress progress = {{0, 0}, first_turn(group)};
    for (int i = (int)blockIdx.x; i < units; i += (int)gridDim.x) {
        float sum[1][ACC];
        compute_unit(sum[0], args, shared, i, group, depth, &progress);
        i = opaque(i); /* frees registers for the sums: lib/opaque.h */
        const struct unit u = find_unit(args, i, depth);
        wgmma_store_sums(args, sum, (char *)shared->chunks[group * 4], 0, 0, &u, group);
    }
}

/* ---- The kernel ------------------------------------------------------------------------------ */

__global__ void __launch_bounds__(THREADS, 1)
    gemm_accurate(const struct tgl_gemm_args args,
                  const __grid_constant__ struct tgl_tensor_map left_map,
                  const __grid_constant__ struct tgl_tensor_map right_map)
{
    DYNAMIC_SHARED_ALIGNED(1024, struct accurate_shared, shared, 1);
    const int group = uniform((int)threadIdx.x / 128); /* the warpgroup */
    if (threadIdx.x == 0) make_turns(&shared->turns);
    make_barriers(&shared->ring, FILLS(&args));
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();
    const int depth = DEPTH_OF(&args);
    if (group == CONSUMERS) {
        REGISTERS_DECREASE(PRODUCER_REGISTERS);
        if (threadIdx.x == CONSUMER_THREADS)
            accurate_produce(&args, &left_map, &right_map, shared, depth);
    } else {
        REGISTERS_INCREASE(CONSUMER_REGISTERS);
        accurate_consume(&args, shared, group, depth);
    }
}
