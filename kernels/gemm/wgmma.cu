/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM on the tensor cores of sm_90a by wgmma: f16, bf16, e4m3, e5m2, FP32 rounded to TF32, and
 * int8 with sums of int32 modulo 2^32.
 *
 * The two operands are called left and right, as wgmma has them: a tile of sums is BM rows of the
 * left operand times BN columns of the right one. Usually left is op(A) and right is op(B). With
 * EXCHANGED left is op(B)^T, right is op(A)^T, and the tile is one of D^T. The 64 rows of a wgmma
 * then lie along n, which suits products with few rows.
 *
 *   producer      One warp, two with block scale factors, or one warpgroup if there are several
 *                 consumers, because setmaxnreg changes the registers of a whole warpgroup. A
 *                 single thread of it fills a ring of STAGES stages by TMA. A stage is BM x BK of
 *                 left and BN x BK of right. BK is 128 bytes. Elements outside the matrices arrive
 *                 as zeros, which TMA writes slowly. The last tiles of an edge therefore begin
 *                 earlier, and share rows or columns with the tiles before. If a matrix is smaller
 *                 than a tile, only the rows or columns that exist are copied.
 *   consumers     CONSUMERS warpgroups, each with BM / CONSUMERS rows of the tile in registers. A
 *                 stage's products are one group of wgmmas, and one group stays in flight: after
 *                 issuing group s, a consumer waits for group s - 1 and releases its stage. With
 *                 the left tile in registers, it then loads the fragments of group s + 1. With
 *                 ALTERNATE each of two consumers has tiles of its own, and they multiply in turn:
 *                 one stores its tile while the other one multiplies.
 *   promotion     wgmma keeps only 13 bits of fraction in sums of 8-bit floating-point products.
 *                 With PROMOTE a wgmma sum covers one stage only, 128 of K, and the consumer adds
 *                 it to its accumulators in FP32, times the factors of the stage if A and B have
 *                 block scale factors (lib/wgmma_scales.h). Meanwhile the wgmmas of the other
 *                 consumers run. The warp after the producer's first warp, or one thread of it,
 *                 copies the factors of each stage to shared memory.
 *   layouts       16-bit operands may be K-major or MN-major (LEFT_ALONG_K, RIGHT_ALONG_K). TF32
 *                 and 8-bit operands are K-major. A left TF32 operand may also be MN-major:
 *                 consumers then load it into registers (lib/wgmma_left.h). Operands of any other
 *                 layout or alignment are first copied into one of these by gemm/repack.cu.
 *   clusters      A cluster has CLUSTER_ROWS x CLUSTER_COLUMNS neighbouring tiles. Its blocks in a
 *                 row share their left tile, and its blocks in a column share their right tile.
 *                 Each block loads a part of a shared tile and sends it to all blocks that share
 *                 the tile (multicast).
 *   persistent    The grid has at most as many blocks as are resident at once. The producer runs
 *                 ahead into the next unit of work (lib/wgmma_units.h) while the consumers store.
 *                 A block has a fixed list of units, or takes them from a counter
 *                 (lib/wgmma_queue.h).
 *   split-K       A tile has several units of work, each a part of its K. The last unit to finish
 *                 adds the sums of all units in the workspace, in the order of K: results are
 *                 bitwise the same every run. With CLUSTER_SPLITS the blocks of a cluster compute
 *                 the units of one tile instead. Each block adds the sums of some columns, which it
 *                 reads from the shared memory of the other blocks. These sums overwrite the
 *                 stages, so a block computes only one unit.
 *   epilogue      Each warp moves its sums through shared memory of its own, or TMA stores boxes of
 *                 results: lib/wgmma_store.h.
 *   groups        Grouped GEMM (GROUPED): a unit has rows of one group, or K of one group,
 *                 according to the table of lib/group_table.h.
 *
 * lib/wgmma_tiles.h has the parameters and the tiles, lib/wgmma_ring.h the ring of stages,
 * lib/wgmma_stage.h the shared memory, and lib/wgmma_loop.h the main loops.
 *
 * The tensor maps are three-dimensional: the contiguous dimension, the other one, and the batch.
 */
/* Whether the factors of rows and columns are in shared memory (lib/wgmma_line_scales.h). For
 * lib/epilogue.h. */
#define STAGED_FACTORS (SCALE_A == SCALE_LINE || SCALE_B == SCALE_LINE)

#include "lib/dynamic_shared.h"
#include "lib/launch_order.h"
#include "lib/shuffle.h"
#include "lib/wgmma_loop.h"
#include "lib/wgmma_queue.h"
#include "lib/wgmma_stage.h"

#if PROMOTE && (!WGMMA_IS_F8 || ALTERNATE || STAGES < 2)
#error "PROMOTE: 8-bit floating-point types, consumers that multiply at once, two stages or more"
#endif

/* ---- Producer -------------------------------------------------------------------------------- */

/* Called by one thread: fills the stages of all units of the block. */
static __device__ __forceinline__ void wgmma_produce(const struct tgl_gemm_args *args,
                                                     const struct tgl_tensor_map *left_map,
                                                     const struct tgl_tensor_map *right_map,
                                                     struct wgmma_shared *shared, int depth)
{
    struct unit_list list = make_list(args);
    /* If all problems of the batch share a matrix (stride 0), it is number 0 of its tensor map. */
    const bool has_lefts = (EXCHANGED ? args->stride_b : args->stride_a) != 0;
    const bool has_rights = (EXCHANGED ? args->stride_a : args->stride_b) != 0;
    struct wgmma_source left = {left_map, left_lines(args), 0, 0};
    struct wgmma_source right = {right_map, right_lines(args), 0, 0};
    struct ring_place at = {0, 0};
    for (start_list(&list); list.number < list.units; next_in_list(&list)) {
        const struct unit u = find_unit_inside(args, list.number, depth);
#if HAS_QUEUE
        put_unit(&shared->queue, &list, &u);
        if (u.steps == 0) take_unit(args, &list);
#endif
        left.edge = u.left;
        left.z = has_lefts ? u.batch : 0;
#if LEFT_BOX < BM
        left.lines = group_lines(args, &u);
#endif
        right.edge = u.right;
        right.z = has_rights ? u.batch : 0;
        for (int step = u.first; step < u.first + u.steps; step++) {
            unsigned char *stage = shared->stages[at.stage];
            mbarrier *full = &shared->ring.full[at.stage];
#if HAS_QUEUE
            if (step + 1 == u.steps) take_unit(args, &list); /* while a stage becomes empty */
#endif
            mbarrier_wait(&shared->ring.empty[at.stage], at.parity ^ 1);
            mbarrier_arrive_and_expect(full, (unsigned)(left.lines + right.lines) * 128);
            load_left(stage, &left, FIRST_K(&u) + step * BK, full);
            load_right(stage + LEFT_BYTES, &right, FIRST_K(&u) + step * BK, full);
            advance(&at);
        }
    }
#if HAS_QUEUE
    put_end(&shared->queue, &list);
#endif
}

#if HAS_BLOCK_SCALES
/* Called by all threads of a warp: copies the block scale factors of all stages of all units of the
 * block. One thread does it if TMA can copy them. */
static __device__ __forceinline__ void wgmma_copy_factors(const struct tgl_gemm_args *args,
                                                          struct wgmma_shared *shared, int depth)
{
    struct unit_list list = make_list(args);
    const bool is_bulk = has_bulk_factors(args);
    struct ring_place at = {0, 0};
    if (is_bulk && threadIdx.x % 32 != 0) return;
    for (start_list(&list); list.number < list.units; next_in_list(&list)) {
        const struct unit u = find_unit_inside(args, list.number, depth);
        copy_unit_factors(shared->factors, &shared->ring, &at, args, &u, is_bulk);
    }
}
#endif

/* ---- Consumers ------------------------------------------------------------------------------- */

#if GROUPED_LEFT && !ALTERNATE
/* Whether no row of the consumer's part of the tile is stored. This is frequent, because the last
 * tile of each group is partial. The consumer then skips its wgmmas, and those of the other
 * consumers run faster. */
static __device__ __forceinline__ bool has_no_rows(const struct unit *u, int group)
{
    const int first = u->left + CONSUMER_ROW(group);
    const int end = first + (M_STEPS - 1) * PART_ROWS + 64;
    const bool is_empty = first >= u->end || end <= u->own_left;
    return PROMOTE ? uniform_condition(is_empty) : uniform(is_empty);
}

/* Releases the stages of a unit as they arrive, without multiplying them. */
static __device__ __forceinline__ void release_unit(struct wgmma_shared *shared,
                                                    const struct unit *u, struct ring_place *at)
{
    for (int step = 0; step < u->steps; step++) {
        mbarrier_wait(&shared->ring.full[at->stage], at->parity);
        wgmma_release(&shared->ring, at->stage);
        advance(at);
    }
}
#endif

static __device__ __forceinline__ void wgmma_consume(const struct tgl_gemm_args *args,
                                                     const struct tgl_tensor_map *d_map,
                                                     struct wgmma_shared *shared, int group,
                                                     int depth)
{
    struct unit_walk walk = make_walk(args, QUEUE(shared));
    char *results = shared->results[group];
#if STAGED_FACTORS
    struct line_factors *factors = &shared->line_factors[group];
#else
    struct line_factors *factors = 0;
#endif
    struct ring_place at = {0, 0};
#if ALTERNATE
    const int consumer = group;
    int is_own = group; /* whether the previous unit was this consumer's */
    unsigned turn = first_turn(group);
    group = 0; /* a consumer has all rows of its tile */
#endif
    for (first_unit(&walk); has_unit(&walk); next_unit(&walk)) {
        struct unit u = unit_of(&walk, args, depth);
        u.steps = uniform(u.steps); /* the bound of the main loop */
#if ALTERNATE
        is_own ^= 1;
        if (!is_own) {
            skip(&at, u.steps);
            continue;
        }
        /* mbarrier_wait() knows a phase only by its parity. Until the other consumer has waited for
         * all stages of its unit, the parity that this consumer waits for could match an earlier
         * phase. */
        take_turn(&shared->turns, consumer, &turn);
#endif
#if GROUPED_LEFT && !ALTERNATE
        if (has_no_rows(&u, group)) {
            release_unit(shared, &u, &at);
            continue;
        }
#endif
#if STAGED_FACTORS
        request_line_factors(factors, args, &u, group);
#endif
        accumulate_t acc[M_STEPS][ACC];
        wgmma_multiply(acc, shared, args, &u, group, &at);
#if CLUSTER_SPLITS > 1
        add_cluster(acc, (accumulate_t *)shared->stages, u.split);
#else
        if (u.splits > 1 && !sum_over_units(&acc[0][0], args, &u, 0)) continue;
#endif
        wgmma_store_sums(args, acc, results, d_map, factors, &u, group);
    }
    wait_until_results_are_read();
}

#if TMA_STORES
#define D_MAP (&d_map)
#else
#define D_MAP 0
#endif

/* ---- The kernel ------------------------------------------------------------------------------ */

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_wgmma(const struct tgl_gemm_args args,
               const __grid_constant__ struct tgl_tensor_map left_map,
               const __grid_constant__ struct tgl_tensor_map right_map
#if TMA_STORES
               ,
               const __grid_constant__ struct tgl_tensor_map d_map
#endif
    )
{
    DYNAMIC_SHARED_ALIGNED(1024, struct wgmma_shared, shared, 1);
    const int group = uniform((int)threadIdx.x / 128); /* the warpgroup */
    if (threadIdx.x == CONSUMER_THREADS && args.k > 0) {
        tma_prefetch_map(&left_map);
        tma_prefetch_map(&right_map);
    }
#if ALTERNATE
    if (threadIdx.x == 0) make_turns(&shared->turns);
#endif
#if HAS_QUEUE
    if (threadIdx.x == 0) make_queue(&shared->queue);
#endif
    if (args.k > 0) clear_other_lines(&args, shared);
#if HAS_BLOCK_SCALES
    clear_factors(shared->factors);
#endif
    make_barriers(&shared->ring, FILLS(&args));
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();
    const int depth = DEPTH_OF(&args);
    if (group == CONSUMERS) {
#if CONSUMERS > 1
        REGISTERS_DECREASE(PRODUCER_REGISTERS);
#endif
        if (uniform((int)threadIdx.x / 32) == CONSUMER_THREADS / 32 && elect_lane())
            wgmma_produce(&args, &left_map, &right_map, shared, depth);
#if HAS_BLOCK_SCALES
        if (threadIdx.x / 32 == CONSUMER_THREADS / 32 + 1) wgmma_copy_factors(&args, shared, depth);
#endif
#if CLUSTER_SPLITS > 1
        __syncwarp();
        cluster_sync(); /* the barrier of add_cluster() */
#endif
    } else {
#if CONSUMERS > 1
        REGISTERS_INCREASE(CONSUMER_REGISTERS);
#endif
        wgmma_consume(&args, D_MAP, shared, group, depth);
    }
#if CLUSTER > 1 || CLUSTER_SPLITS > 1
    __syncwarp();
    cluster_sync(); /* other blocks may still arrive at this block's barriers, or read its sums */
#endif
}
