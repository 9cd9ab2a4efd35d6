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
    LOOP_INSTRUCTIONS = 5,     /* of a thread and tile of k: barriers, stages, addresses */
    COPY_INSTRUCTIONS = 18,    /* that a copy takes the time of */
    LATENCY_CYCLES = 11,       /* of a shared load and what waits for it, to be hidden by FFMAs */
    TILE_CYCLES = 5500,        /* before the first FFMA of a tile and after its last */
    REDUCE_CYCLES = 1000,      /* of a split tile: fences, the counter, the last block's turn */
    SPLIT_CYCLES = 400,        /* of each: the sums of one are added before those of the next */
    BLOCK_BYTES_A_CLOCK = 26,  /* that one block moves between itself and L2 */
    SKINNY_TILE_CYCLES = 2000, /* skinny: before the first load arrives, and adding up */
    SMALL_LOAD_CYCLES = 300,   /* skinny: of a thread's load of the small operand */
    WORKSPACE_MOST = 64 << 20, /* bytes */
};
static const double ISSUE_SHARE = 1.0;        /* of the clocks in which a full scheduler issues */
static const double SHARED_COST = 0.03;       /* cycles that a wavefront of shared loads costs */
static const double LAUNCH_SECONDS = 1e-6;    /* of a launch after another */
static const double MEMORY_LATENCY = 800e-9;  /* seconds, which loads under way must cover */
static const double STREAM_SHARE = 0.95;      /* of the copy rate, that reading alone reaches */
static const double SKINNY_FFMA_SHARE = 0.28; /* of the FFMA rate, in gemm/skinny.cu */

static int least(int x, int y)
{
    return x < y ? x : y;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

/* ---- Occupancy ------------------------------------------------------------------------------- */

/* Blocks that a multiprocessor holds; 0: not even one, *why says what it lacks. */
static int resident_blocks(const tgl_chip_facts *chip, const tgl_gemm_plan *plan, const char **why)
{
    const int shared = plan->static_shared + plan->dynamic_shared;
    const int registers = (plan->registers + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
    const int by_shared =
        shared > chip->shared_per_block ? 0 : chip->shared_per_sm / (shared + SHARED_RESERVED);
    const int by_registers = chip->registers_per_sm / (registers * plan->threads);
    *why = by_shared == 0 ? "its tiles do not fit shared memory" : "too many registers for a block";
    return least(least(by_shared, by_registers), least(chip->threads_per_sm / plan->threads, 32));
}

/* ---- gemm/simt.cu ---------------------------------------------------------------------------- */

/* The share of a multiprocessor's FFMA rate that `blocks` of a configuration reach in the main
 * loop: other instructions take their turn, and few warps leave latencies in the open. */
static double efficiency(const tgl_gemm_plan *plan, int blocks)
{
    const tgl_simt_row *t = &plan->row->simt;
    const double threads = plan->threads, ffmas = t->tm * t->tn;
    const double copies =
        t->bk * ((double)t->bm / plan->vec_a + (double)t->bn / plan->vec_b) / threads;
    const double loads = (t->tm + t->tn) / 4.0; /* of 16 bytes: two wavefronts each */
    const double all = t->bk * (ffmas + loads + SHARED_COST * 2 * SCHEDULERS * loads) +
                       COPY_INSTRUCTIONS * copies + LOOP_INSTRUCTIONS;
    const double warps = blocks * threads / 32 / SCHEDULERS;
    const double hidden = warps * ffmas / (ffmas + LATENCY_CYCLES);
    return ISSUE_SHARE * t->bk * ffmas / all * (hidden < 1 ? hidden : 1);
}

/* Cycles of a multiprocessor that works on `blocks` blocks at once, each `depth` deep. */
static double block_cycles(const tgl_chip_facts *chip, const tgl_gemm_plan *plan, int blocks,
                           double depth)
{
    const tgl_simt_row *t = &plan->row->simt;
    if (blocks == 0) return 0;
    return blocks * (double)t->bm * t->bn * depth / chip->fp32_lanes / efficiency(plan, blocks) +
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

static void predict_simt(const tgl_chip_facts *chip, const tgl_gemm_shape *s, tgl_candidate *c)
{
    const tgl_gemm_plan *plan = &c->plan;
    const tgl_simt_row *t = &plan->row->simt;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double tiles = batch * (double)(plan->tiles_m * plan->tiles_n);
    const double whole = batch * plan->tiles_whole, split = tiles - whole;
    const double depth = (double)(tgl_ceil_div(s->k, t->bk) * t->bk);
    double cycles = wave_cycles(chip, plan, whole, c->resident, depth);
    if (plan->splits > 1)
        cycles += wave_cycles(chip, plan, split * plan->splits, c->resident, plan->k_chunk) +
                  REDUCE_CYCLES + SPLIT_CYCLES * plan->splits +
                  (1 + plan->splits) * 4.0 * t->bm * t->bn / BLOCK_BYTES_A_CLOCK;
    c->blocks = whole + split * plan->splits;
    c->compute = cycles / (1e6 * chip->clock_mhz);
    c->memory = 4 * batch * (m * k + k * n + m * n) / chip->memory_rate;
    c->l2 = 4 *
            (tiles * (t->bm + t->bn) * k + batch * m * n + 2.0 * (double)plan->workspace_floats) /
            chip->l2_rate;
}

/* ---- gemm/skinny.cu -------------------------------------------------------------------------- */

/* Bytes of loads that a block has under way. */
static double bytes_under_way(const tgl_gemm_plan *plan)
{
    const tgl_skinny_row *row = tgl_skinny_row_of(plan);
    const int vec = plan->big_a ? plan->vec_a : plan->vec_b;
    return 4.0 * plan->threads * vec * row->unroll * row->rows;
}

/* Cycles of a block that waits for its part of the small operand: once if it has room for all of
 * it, else anew in each turn. */
static double small_load_cycles(const tgl_gemm_plan *plan, double turns)
{
    const int depth = plan->row->depth;
    const bool once = plan->along_k && plan->k_chunk <= depth;
    const double chunks = once ? 1 : turns * (double)tgl_ceil_div(plan->k_chunk, depth);
    const int elements = plan->row->count * least(depth, plan->k_chunk);
    return chunks * elements / plan->threads * SMALL_LOAD_CYCLES;
}

static void predict_skinny(const tgl_chip_facts *chip, const tgl_gemm_shape *s, tgl_candidate *c)
{
    const tgl_gemm_plan *plan = &c->plan;
    const double k = (double)s->k, batch = (double)s->batch, length = (double)plan->length;
    const double clock = 1e6 * chip->clock_mhz, small = (double)(plan->big_a ? s->n : s->m);
    const double slots = (double)chip->multiprocessors * c->resident;
    c->blocks = batch * plan->blocks * plan->splits;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double rounds = (double)(int64_t)((c->blocks + slots - 1) / slots);
    const double covered = active * bytes_under_way(plan) / (chip->memory_rate * MEMORY_LATENCY);
    const double rate = STREAM_SHARE * chip->memory_rate * (covered < 1 ? covered : 1);
    const double lanes = (double)chip->fp32_lanes * chip->multiprocessors;
    const double busy = active < chip->multiprocessors ? active / chip->multiprocessors : 1;
    /* Pieces of the length that blocks take in turns, and what the last round and turn leave idle.
     */
    const double pieces = (double)tgl_ceil_div(plan->length, plan->per_block);
    const double turns = (double)tgl_ceil_div((int64_t)pieces, plan->blocks);
    const double balance = batch * pieces * plan->splits / (rounds * turns * active);
    const double sums = 2.0 * (double)plan->workspace_floats;
    c->memory = 4 * (batch * (length * (k + small) + small * k) + sums) / rate / balance;
    c->compute = batch * plan->row->count * length * k /
                     (lanes * clock * SKINNY_FFMA_SHARE * busy * balance) +
                 rounds * (turns * SKINNY_TILE_CYCLES + small_load_cycles(plan, turns)) / clock;
    c->l2 = 4 * batch * plan->row->count * k * plan->blocks / chip->l2_rate;
    if (plan->splits > 1) c->compute += REDUCE_CYCLES / clock;
}

/* ---- Candidates ------------------------------------------------------------------------------ */

void tgl_candidate_make(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                        const tgl_gemm_row *row, const tgl_gemm_split *split, tgl_candidate *c)
{
    const char *lacks;
    *c = (tgl_candidate){.plan.row = row};
    c->rejected = tgl_gemm_plan_make(row, shape, split, &c->plan);
    if (c->rejected != NULL) return;
    c->resident = resident_blocks(chip, &c->plan, &lacks);
    if (c->resident == 0)
        c->rejected = lacks;
    else if (c->plan.workspace_floats > WORKSPACE_MOST / 4)
        c->rejected = "its partial sums would take more than 64 MiB";
    if (c->rejected != NULL) return;
    if (row->count > 0)
        predict_skinny(chip, shape, c);
    else
        predict_simt(chip, shape, c);
    c->waves = c->blocks / ((double)chip->multiprocessors * c->resident);
    c->overhead = LAUNCH_SECONDS * (double)tgl_ceil_div(shape->batch, c->plan.batch_step);
    c->seconds = larger(c->compute, larger(c->memory, c->l2)) + c->overhead;
}
