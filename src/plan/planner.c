/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost model. A product takes as long as the slowest of three: the multiprocessors' arithmetic,
 * memory that must be read and written once, and what the tiles read through L2; and an overhead
 * on top. Constants that are no property of a chip are fitted to measurements on one (an H200).
 */
#include "plan/planner.h"

enum {
    SCHEDULERS = 4,            /* of a multiprocessor */
    REGISTER_UNIT = 8,         /* registers are given to a warp in units of so many a thread */
    SHARED_RESERVED = 1024,    /* bytes that the system takes of each block's shared memory */
    LOOP_INSTRUCTIONS = 27,    /* of a thread and tile of k: barriers, stages, addresses */
    COPY_INSTRUCTIONS = 3,     /* of each copy */
    LATENCY_CYCLES = 48,       /* of a shared load and what waits for it, to be hidden by FFMAs */
    TILE_CYCLES = 2200,        /* before the first FFMA of a tile and after its last */
    REDUCE_CYCLES = 2500,      /* of a split tile: fences, the counter, the last block's turn */
    BLOCK_BYTES_A_CLOCK = 48,  /* that one block moves between itself and L2 */
    WORKSPACE_MOST = 64 << 20, /* bytes */
};
static const double ISSUE_SHARE = 0.90; /* of the clocks in which a full scheduler issues */
static const double LAUNCH_SECONDS = 2e-6;

/* ---- Occupancy ------------------------------------------------------------------------------- */

static int least(int x, int y)
{
    return x < y ? x : y;
}

/* Blocks that a multiprocessor holds; 0: not even one, *why says what it lacks. */
static int resident_blocks(const tgl_chip_facts *chip, const tgl_gemm_row *row, const char **why)
{
    const int threads = tgl_gemm_row_threads(row), shared = tgl_gemm_row_shared(row);
    const int registers = (row->registers + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
    const int by_shared =
        shared > chip->shared_per_block ? 0 : chip->shared_per_sm / (shared + SHARED_RESERVED);
    const int by_registers = chip->registers_per_sm / (registers * threads);
    *why = by_shared == 0 ? "its tiles do not fit shared memory" : "too many registers for a block";
    return least(least(by_shared, by_registers), least(chip->threads_per_sm / threads, 32));
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* The share of a multiprocessor's FFMA rate that `blocks` of a configuration reach in the main
 * loop: other instructions take their turn, and few warps leave latencies in the open. */
static double efficiency(const tgl_gemm_plan *plan, int blocks)
{
    const tgl_gemm_row *row = plan->row;
    const double threads = tgl_gemm_row_threads(row);
    const double ffmas = row->tm * row->tn;
    const double copies =
        row->bk * ((double)row->bm / plan->vec_a + (double)row->bn / plan->vec_b) / threads;
    const double all = row->bk * (ffmas + (row->tm + row->tn) / 4.0) + COPY_INSTRUCTIONS * copies +
                       LOOP_INSTRUCTIONS;
    const double warps = blocks * threads / 32 / SCHEDULERS;
    const double hidden = warps * ffmas / (ffmas + LATENCY_CYCLES);
    return ISSUE_SHARE * row->bk * ffmas / all * (hidden < 1 ? hidden : 1);
}

/* Cycles of a multiprocessor that works on `blocks` blocks at once, each `depth` deep. */
static double block_cycles(const tgl_chip_facts *chip, const tgl_gemm_plan *plan, int blocks,
                           double depth)
{
    const tgl_gemm_row *row = plan->row;
    if (blocks == 0) return 0;
    return blocks * (double)row->bm * row->bn * depth / chip->fp32_lanes /
               efficiency(plan, blocks) +
           TILE_CYCLES;
}

/* Cycles of `count` blocks: full waves, then one that may leave multiprocessors idle. */
static double wave_cycles(const tgl_chip_facts *chip, const tgl_gemm_plan *plan, double count,
                          int resident, double depth)
{
    const double slots = (double)chip->multiprocessors * resident;
    const double full = (double)(int64_t)(count / slots), rest = count - full * slots;
    const int last = (int)((rest + chip->multiprocessors - 1) / chip->multiprocessors);
    return full * block_cycles(chip, plan, resident, depth) + block_cycles(chip, plan, last, depth);
}

static double compute_seconds(const tgl_chip_facts *chip, const tgl_gemm_shape *s,
                              const tgl_gemm_plan *plan, int resident)
{
    const double batch = (double)s->batch, clock = 1e6 * chip->clock_mhz;
    const double whole = plan->tiles_whole * batch;
    const double shared = (double)(plan->tiles_m * plan->tiles_n) * batch - whole;
    double cycles = wave_cycles(chip, plan, whole, resident, (double)s->k);
    if (plan->splits > 1) {
        const double tile_bytes = 4.0 * plan->row->bm * plan->row->bn;
        cycles += wave_cycles(chip, plan, shared * plan->splits, resident, plan->k_chunk) +
                  REDUCE_CYCLES + (1 + plan->splits) * tile_bytes / BLOCK_BYTES_A_CLOCK;
    }
    return cycles / clock;
}

/* ---- Candidates ------------------------------------------------------------------------------ */

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static void predict(const tgl_chip_facts *chip, const tgl_gemm_shape *s, tgl_candidate *c)
{
    const tgl_gemm_plan *plan = &c->plan;
    const tgl_gemm_row *row = plan->row;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double tiles = (double)(plan->tiles_m * plan->tiles_n);
    const double split_tiles = tiles - plan->tiles_whole;
    const double blocks = batch * (plan->tiles_whole + split_tiles * plan->splits);
    const double partial = 2.0 * (double)plan->workspace_floats;
    c->waves = blocks / ((double)chip->multiprocessors * c->resident);
    c->compute = compute_seconds(chip, s, plan, c->resident);
    c->memory = 4 * batch * (m * k + k * n + m * n) / chip->memory_rate;
    c->l2 = 4 * (batch * tiles * (row->bm + row->bn) * k + batch * m * n + partial) / chip->l2_rate;
    c->overhead = LAUNCH_SECONDS * (double)((s->batch + plan->batch_step - 1) / plan->batch_step);
    c->seconds = larger(c->compute, larger(c->memory, c->l2)) + c->overhead;
}

void tgl_candidate_make(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                        const tgl_gemm_row *row, int64_t whole, int splits, tgl_candidate *out)
{
    *out = (tgl_candidate){.plan.row = row};
    out->resident = resident_blocks(chip, row, &out->rejected);
    if (out->resident == 0) return;
    out->rejected = NULL;
    if (!tgl_gemm_plan_make(row, shape, whole, splits, &out->plan))
        out->rejected = "its grid would be too large";
    else if (out->plan.workspace_floats > WORKSPACE_MOST / 4)
        out->rejected = "its partial sums would take more than 64 MiB";
    else
        predict(chip, shape, out);
}

/* Takes the candidate if it is better than the best so far. */
static void consider(const tgl_candidate *candidate, tgl_candidate *best)
{
    const bool is_first = best->plan.row == NULL;
    if (is_first || (candidate->rejected == NULL &&
                     (best->rejected != NULL || candidate->seconds < best->seconds)))
        *best = *candidate;
}

/* Splits worth a try: all up to 8, then in steps of about a fifth. */
static int next_splits(int splits)
{
    return splits < 8 ? splits + 1 : splits + splits / 5;
}

void tgl_planner_best_of_row(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                             const tgl_gemm_row *row, int splits, tgl_candidate *best)
{
    enum { SPLITS_MOST = 256, TAIL_SPLITS_MOST = 8, LEAST_TILES = 4 };
    tgl_candidate c;
    *best = (tgl_candidate){.plan.row = NULL};
    if (splits != 0) {
        tgl_candidate_make(chip, shape, row, splits > 1 ? 0 : -1, splits, best);
        return;
    }
    tgl_candidate_make(chip, shape, row, -1, 1, &c);
    consider(&c, best);
    if (c.rejected != NULL) return;
    const int64_t tiles = c.plan.tiles_m * c.plan.tiles_n;
    const int64_t slots = (int64_t)chip->multiprocessors * c.resident,
                  whole = tiles / slots * slots;
    const int64_t deepest = shape->k / ((int64_t)LEAST_TILES * row->bk);
    const int most = deepest < SPLITS_MOST ? (int)deepest : SPLITS_MOST;
    /* All tiles while they do not fill the chip; after that the last wave, or the last two. */
    for (int i = 2; i <= most && tiles * shape->batch * (i - 1) < 2 * slots; i = next_splits(i)) {
        tgl_candidate_make(chip, shape, row, 0, i, &c);
        consider(&c, best);
    }
    if (shape->batch > 1 || whole == 0) return;
    for (int i = 2; i <= least(most, TAIL_SPLITS_MOST); i++)
        for (int64_t from = whole; from >= 0 && from >= whole - slots; from -= slots) {
            if (from == tiles) continue;
            tgl_candidate_make(chip, shape, row, from, i, &c);
            consider(&c, best);
        }
}

void tgl_planner_choose(const tgl_chip_facts *chip, const tgl_gemm_shape *shape, int splits,
                        tgl_candidate *best)
{
    const tgl_gemm_row *row;
    *best = (tgl_candidate){.plan.row = NULL};
    for (int i = 0; (row = tgl_gemm_row_at(i)) != NULL; i++) {
        tgl_candidate c;
        tgl_planner_best_of_row(chip, shape, row, splits, &c);
        consider(&c, best);
    }
}

tgl_status tgl_planner_plan(tgl_device *dev, const tgl_chip_facts *chip,
                            const tgl_gemm_shape *shape, const tgl_plan_options *options,
                            tgl_candidate *choice)
{
    const tgl_gemm_row *row = options->kernel != NULL ? tgl_gemm_row_find(options->kernel) : NULL;
    if (options->kernel != NULL && row == NULL)
        return tgl_fail(dev, TGL_UNKNOWN_KERNEL, "no kernel is called \"%s\"", options->kernel);
    if (row != NULL)
        tgl_planner_best_of_row(chip, shape, row, options->splits, choice);
    else
        tgl_planner_choose(chip, shape, options->splits, choice);
    if (choice->rejected != NULL)
        return tgl_fail(dev, TGL_GRID_TOO_LARGE, "%s cannot serve m=%lld n=%lld k=%lld: %s",
                        choice->plan.row->name, (long long)shape->m, (long long)shape->n,
                        (long long)shape->k, choice->rejected);
    return TGL_OK;
}
