/* SPDX-License-Identifier: Apache-2.0
 *
 * The predicted time of a product by the family dmma, and lower bounds of it.
 */
#include "families/cost.h"
#include "families/dmma_geometry.h"

#include <math.h>

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Constants of the cost model. They and the shares of the configurations are fitted to the times of
 * 1,500 candidates for 87 products on an H200 (docs/notes/2026-11-29-gpu.md). Cycles are those of
 * tgl_chip.clock_mhz. ..._A_CLOCK: bytes per clock of an SM. */
enum {
    /* Cycles of a unit outside of its main loop, without those to add slices and to store
     * results. */
    TILE_CYCLES = 2050,
    SLICE_CYCLES = 240,         /* cycles to add the sums of a slice */
    STORE_BYTES_A_CLOCK = 23,   /* stores of D in pairs */
    SINGLE_BYTES_A_CLOCK = 10,  /* stores of D one by one */
    REDUCE_CYCLES = 2330,       /* cycles of a split tile for fences and its counter, without the
                                   exchange of sums */
    SUM_BYTES_A_CLOCK = 52,     /* rate at which a block exchanges sums with the workspace */
    SHARED_BYTES_A_CLOCK = 128, /* reads of shared memory */
    TMA_BYTES_A_CLOCK = 77,     /* copies by TMA */
    LATENCY_CYCLES = 1830,      /* cycles from a stage's release to its next tile's arrival */
};
static const double START_SECONDS = 2.2e-6; /* seconds from the launch to the first tile */
static const double LONE = 0.9; /* factor on share with at most one warp per scheduler */
/* Factor on share for complex products by warps with 16 rows, which have few DMMAs between which
 * the signs of B can be set. */
static const double FEW_ROWS_OF_PAIRS = 0.9;
static const double RESIDENT_TAIL = 1.08; /* factor on the cycles after the main loop in full waves,
                                            if several blocks are resident */
static const double MEMORY_SHARE = 0.98; /* fraction of tgl_chip.memory_rate that the loads reach */
/* Rate of reads from L2 beside arithmetic, as a multiple of tgl_chip.l2_rate. */
static const double L2_SHARE = 1.17;
/* The exponent p: arithmetic of x seconds, memory accesses of y and reads of L2 of z seconds
 * overlap, and take (x^p + y^p + z^p)^(1/p) together (docs/notes/2026-11-26-gpu-planner.md). */
static const double OVERLAP = 4;

/* Cycles of an SM with `blocks` resident blocks, each of which multiplies one stage (DMMA_BK of K).
 * The result is the maximum of four times: arithmetic, which leaves schedulers idle if the SM has
 * fewer warps than schedulers; reads of shared memory; copies by TMA; the latency of the next
 * stage. */
static double dmma_step_cycles(const tgl_chip *chip, const tgl_shape *s, const dmma_geometry *g,
                               int blocks)
{
    const dmma_row *t = g->row;
    const double tile = 2.0 * t->bm * t->bn * DMMA_BK / chip->tensor_f64_flops;
    const int busy = g->warps * blocks;
    const double alone = busy < TGL_SCHEDULERS ? (double)TGL_SCHEDULERS / busy : 1;
    const double copied = blocks * (double)dmma_stage_lines(s, t) * DMMA_LINE_BYTES;
    const double read = (double)busy / t->slices * (t->wm + DMMA_WARP_COLUMNS) * DMMA_LINE_BYTES;
    const double share = t->share * (busy > TGL_SCHEDULERS ? 1 : LONE) *
                         (s->pairs_b != 0 && t->wm == 16 ? FEW_ROWS_OF_PAIRS : 1);
    const double consumers = tgl_larger(tile * blocks * alone / share, read / SHARED_BYTES_A_CLOCK);
    return tgl_larger(consumers, tgl_larger(copied / TMA_BYTES_A_CLOCK,
                                            (double)LATENCY_CYCLES / (t->stages - 1)));
}

/* Cycles from the end of a unit's main loop to the next unit. splits: number of units into which
 * the unit's tile is split. */
static double dmma_tail_cycles(const tgl_shape *s, const dmma_geometry *g, int splits)
{
    const double elements = (double)g->row->bm * g->row->bn;
    const bool is_single = g->exchanged || tgl_store_width(s) == 1;
    const double tail = TILE_CYCLES + (g->row->slices - 1) * SLICE_CYCLES +
                        (double)tgl_type_size(s->type_d) * elements /
                            (is_single ? SINGLE_BYTES_A_CLOCK : STORE_BYTES_A_CLOCK);
    if (splits == 1) return tail;
    return tail + REDUCE_CYCLES + (1 + splits) * sizeof(double) * elements / SUM_BYTES_A_CLOCK;
}

/* Cycles of the busiest SM for the units (tiles or splits of tiles) of a launch, each with `depth`
 * steps of K. The units run in full waves and a last wave, which may leave SMs idle. */
static double dmma_wave_cycles(const tgl_chip *chip, const tgl_shape *s, const dmma_geometry *g,
                               int64_t units, int resident, double depth, int splits)
{
    const double slots = (double)chip->sms * resident, tail = dmma_tail_cycles(s, g, splits);
    const double full = floor((double)units / slots), rest = (double)units - full * slots;
    const int last = (int)ceil(rest / chip->sms);
    double cycles = full * (depth * dmma_step_cycles(chip, s, g, resident) +
                            (resident > 1 ? RESIDENT_TAIL : 1) * tail);
    if (last > 0) cycles += depth * dmma_step_cycles(chip, s, g, last) + tail;
    return cycles;
}

/* Lines of L2 that the copies of a stage read. The constants are fitted to real products, and count
 * each of their lines once. */
static double l2_lines_of_stage(const tgl_shape *s, const dmma_row *t)
{
    if (s->pairs_b == 0) return dmma_stage_lines(s, t);
    enum { SIZE = sizeof(double) };
    return t->bm * (1 + tgl_straddling(s->lda * SIZE, DMMA_LINE_BYTES)) +
           t->bn / 2.0 * (1 + tgl_straddling(s->ldb * SIZE, DMMA_LINE_BYTES));
}

/* The seconds to read the operands of `steps` steps of tiles from L2. */
static double l2_seconds(const tgl_chip *chip, const tgl_shape *s, const dmma_geometry *g,
                         double steps)
{
    return steps * DMMA_LINE_BYTES * l2_lines_of_stage(s, g->row) / chip->l2_rate;
}

void tgl_dmma_predict_time(const tgl_chip *chip, const tgl_shape *s, const dmma_geometry *g,
                           tgl_candidate *c)
{
    const double depth = ceil((double)s->k / DMMA_BK),
                 chunk = ceil((double)g->step.args.k_chunk / DMMA_BK);
    const int64_t split = g->step.args.splits > 1 ? g->units - g->whole : 0,
                  whole = g->units - split;
    const double cycles =
        dmma_wave_cycles(chip, s, g, whole, c->resident, depth, 1) +
        dmma_wave_cycles(chip, s, g, split, c->resident, chunk, g->step.args.splits);
    const double steps = (double)whole * depth + (double)split * chunk;
    c->blocks = (double)g->step.blocks;
    c->is_uneven = g->whole > 0;
    const double multiply = cycles / (1e6 * chip->clock_mhz);
    const double memory = tgl_operand_bytes(s) / (MEMORY_SHARE * chip->memory_rate);
    const double l2 = l2_seconds(chip, s, g, steps);
    c->compute = START_SECONDS + tgl_overlapped(multiply, memory, l2 / L2_SHARE, OVERLAP);
    if (g->step.blocks > chip->sms) c->compute += TGL_LATE_LAUNCH_SECONDS;
    c->memory = START_SECONDS + memory;
    c->l2 = START_SECONDS + l2;
}

/* ---- Lower bounds ---------------------------------------------------------------------------- */

void tgl_dmma_bound_start(const tgl_chip *chip, const tgl_shape *s, const dmma_geometry *g,
                          int resident, dmma_bound *b)
{
    b->chip = chip;
    b->shape = s;
    b->g = g;
    b->tiles = (double)g->units;
    b->depth = tgl_ceil_div(s->k, DMMA_BK);
    b->memory = tgl_operand_bytes(s) / (MEMORY_SHARE * chip->memory_rate);
    b->l2 = l2_seconds(chip, s, g, b->tiles * (double)b->depth);
    b->start = TGL_LAUNCH_SECONDS + START_SECONDS +
               (g->step.blocks > chip->sms ? TGL_LATE_LAUNCH_SECONDS : 0);
    b->step = dmma_step_cycles(chip, s, g, 1);
    for (int blocks = 2; blocks <= resident; blocks++)
        b->step = fmin(b->step, dmma_step_cycles(chip, s, g, blocks) / blocks);
}

static double dmma_least_with(const dmma_bound *b, double cycles)
{
    return b->start + tgl_overlapped(cycles / (1e6 * b->chip->clock_mhz), b->memory,
                                     b->l2 / L2_SHARE, OVERLAP);
}

/* The number of splits of a tile if each split has `chunk` steps of K; 1 if chunk is 0. */
static int splits_of(const dmma_bound *b, int64_t chunk)
{
    return chunk > 0 ? (int)tgl_ceil_div(b->depth, chunk) : 1;
}

double tgl_dmma_least_of_options(const dmma_bound *b, int splits, int64_t whole)
{
    const int64_t chunk = tgl_ceil_div(b->depth, splits);
    const int used = splits_of(b, chunk);
    const double units = (b->tiles - (double)whole) * used;
    const double waves = ceil((double)whole / b->chip->sms);
    return dmma_least_with(b, waves * (double)b->depth * b->step +
                                  ceil(units / b->chip->sms) * (double)chunk * b->step +
                                  dmma_tail_cycles(b->shape, b->g, used));
}

double tgl_dmma_least_of_splits(const dmma_bound *b, int splits)
{
    const int used = splits_of(b, tgl_ceil_div(b->depth, splits));
    return dmma_least_with(b, b->tiles / b->chip->sms * (double)b->depth * b->step +
                                  dmma_tail_cycles(b->shape, b->g, used));
}
