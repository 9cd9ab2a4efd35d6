/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost model. A product takes as long as the slowest of three: the multiprocessors' arithmetic,
 * memory that must be read and written once, and what the tiles read through L2; and an overhead
 * on top. Constants that are no property of a chip are fitted to measurements on one (an H200).
 */
#include "plan/planner.h"

#include <math.h>

enum {
    SCHEDULERS = 4,            /* of a multiprocessor */
    REGISTER_UNIT = 8,         /* registers are given to a warp in units of so many a thread */
    SHARED_RESERVED = 1024,    /* bytes that the system takes of each block's shared memory */
    LOOP_INSTRUCTIONS = 33,    /* of a thread and tile of k: barriers, stages, addresses */
    COPY_INSTRUCTIONS = 8,     /* that a copy takes the time of */
    LATENCY_CYCLES = 4,        /* of a shared load and what waits for it, to be hidden by FFMAs */
    TILE_CYCLES = 4000,        /* before the first FFMA of a tile and after its last, but for: */
    STORE_BYTES_A_CLOCK = 32,  /* of C, that a multiprocessor stores, in fours, */
    LINE_BYTES_A_CLOCK = 11,   /* in lines that begin anywhere, */
    SINGLE_BYTES_A_CLOCK = 7,  /* or in such lines float by float */
    REDUCE_CYCLES = 900,       /* of a split tile: fences, the counter, the last block's turn */
    SPLIT_CYCLES = 130,        /* of each: the sums of one are added before those of the next */
    SLICE_BYTES_A_CLOCK = 100, /* that slices write to shared memory and add up */
    BLOCK_BYTES_A_CLOCK = 26,  /* that one block moves between itself and L2 */
    CLUSTER_BYTES_A_CLOCK = 7, /* and reads from the shared memory of others */
    CLUSTER_CYCLES = 165,      /* of each slice of each block of a cluster: likewise */
    SKINNY_CYCLES = 10000,     /* skinny: of a block before its first loads and after its last */
    SKINNY_SUM_CYCLES = 2500,  /* skinny: of adding up partial sums */
    MATVEC_CYCLES = 2500,      /* matvec: of a launch, */
    MATVEC_MORE_CYCLES = 2500, /* and of several vectors */
    SECTOR_BYTES = 32,         /* that an element of a vector takes of L2 if it lies apart, */
    L1_LINE_BYTES = 128,       /* and of L1 */
    SMALL_BATCH_CYCLES = 2000, /* small_batch: of a launch */
    SMALL_BATCH_BLOCK_CYCLES = 1500, /* small_batch: of a block before its first tile has come */
    SMALL_BATCH_TILE_CYCLES = 1000,  /* small_batch: of a tile of k, however small */
    SMALL_BATCH_COPY_CYCLES = 6,     /* small_batch: of a warp's copies of four floats a thread */
    NARROW_COPY_CYCLES = 13,         /* likewise of fewer */
    WORKSPACE_MOST = 64 << 20,       /* bytes */
};
static const double SHARED_COST = 0.18;       /* cycles that a wavefront of shared loads costs */
static const double LAUNCH_SECONDS = 1e-6;    /* of a launch after another */
static const double MEMORY_LATENCY = 1000e-9; /* seconds, which loads under way must cover */
static const double TILES_SHARE = 0.85;       /* of the copy rate, that blocks of tiles reach */
static const double MATVEC_SHARE = 0.75;      /* of their loads, that blocks have under way */
static const double MATVEC_FFMA_SHARE = 0.5;  /* of further vectors' FFMAs, not hidden by loads */
static const double VECTORS_SHARE = 2.0 / 3;  /* of L1, that keeps them while the matrix passes */
static const double STREAM_SHARE = 1.10;      /* of the copy rate, that reading alone reaches */
static const double LATE_LAUNCH_SECONDS = 2.25e-6; /* that a larger grid starts later */
static const double STRIP_SECONDS = 1e-6; /* of a strip's launch after another of the same run */
static const double STRIP_SHARE = 0.6;    /* of its time alone, that a strip adds where the tiles
                                             leave no multiprocessor idle */
static const double SMALL_BATCH_FFMA_SHARE = 0.6; /* of the FFMAs' time, that loads do not hide */

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
    const bool fits =
        shared <= chip->shared_per_block && plan->dynamic_shared_any <= chip->shared_per_block;
    const int by_shared = !fits ? 0 : chip->shared_per_sm / (shared + SHARED_RESERVED);
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
        tgl_simt_step(t) * ((double)t->bm / plan->vec_a + (double)t->bn / plan->vec_b) / threads;
    const double loads = (t->tm + t->tn) / 4.0; /* of 16 bytes: two wavefronts each */
    const double all = t->bk * (ffmas + loads + SHARED_COST * 2 * SCHEDULERS * loads) +
                       COPY_INSTRUCTIONS * copies + LOOP_INSTRUCTIONS;
    const double warps = blocks * threads / 32 / SCHEDULERS;
    const double hidden = warps * ffmas / (ffmas + LATENCY_CYCLES);
    /* Six warps of four schedulers take as long as eight. */
    const double most = warps > 1 ? warps / ceil(warps) : 1;
    return t->bk * ffmas / all * (hidden < most ? hidden : most);
}

/* Cycles of a multiprocessor that works on `blocks` blocks at once, each `depth` deep. */
static double block_cycles(const tgl_chip_facts *chip, const tgl_gemm_plan *plan, int blocks,
                           double depth)
{
    const tgl_simt_row *t = &plan->row->simt;
    if (blocks == 0) return 0;
    const double bytes = 4.0 * t->bm * t->bn;
    const double sums = t->slices > 1 ? bytes * t->slices / SLICE_BYTES_A_CLOCK : 0;
    return blocks * ((double)t->bm * t->bn * depth / chip->fp32_lanes / efficiency(plan, blocks) +
                     sums) +
           TILE_CYCLES;
}

/* Cycles of a multiprocessor to store a tile. */
static double store_cycles(const tgl_gemm_shape *s, const tgl_gemm_plan *plan)
{
    const tgl_simt_row *t = &plan->row->simt;
    const bool has_lines = t->slices == 1 && plan->cluster == 1;
    const int bytes_a_clock = tgl_gemm_store_width(s) == 4 ? STORE_BYTES_A_CLOCK
                              : has_lines                  ? LINE_BYTES_A_CLOCK
                                                           : SINGLE_BYTES_A_CLOCK;
    return 4.0 * t->bm * t->bn / bytes_a_clock;
}

/* Cycles of `count` blocks: full waves, then one that may leave multiprocessors idle. after: of a
 * multiprocessor, for each block, when it has multiplied. */
static double wave_cycles(const tgl_chip_facts *chip, const tgl_gemm_plan *plan, double count,
                          int resident, double depth, double after)
{
    const double slots = (double)chip->multiprocessors * resident;
    const double full = (double)(int64_t)(count / slots), rest = count - full * slots;
    const int last = (int)((rest + chip->multiprocessors - 1) / chip->multiprocessors);
    return full * (block_cycles(chip, plan, resident, depth) + resident * after) +
           block_cycles(chip, plan, last, depth) + last * after;
}

/* Cycles to add up a split tile: within clusters, then among them. */
static double reduce_cycles(const tgl_gemm_plan *plan)
{
    const double bytes = 4.0 * plan->row->simt.bm * plan->row->simt.bn;
    const int groups = plan->splits / plan->cluster;
    const int sharers = plan->cluster * plan->row->simt.slices;
    const double in_cluster =
        plan->cluster > 1 ? bytes / CLUSTER_BYTES_A_CLOCK + (double)CLUSTER_CYCLES * sharers : 0;
    if (groups == 1) return REDUCE_CYCLES + in_cluster;
    return 2 * REDUCE_CYCLES + in_cluster + SPLIT_CYCLES * groups +
           (1 + groups) * bytes / plan->cluster / BLOCK_BYTES_A_CLOCK;
}

/* Cycles of split tiles whose pieces are equal. */
static double even_cycles(const tgl_chip_facts *chip, const tgl_gemm_shape *s,
                          const tgl_gemm_plan *plan, double tiles, int resident)
{
    const double pieces = tiles * plan->splits;
    return wave_cycles(chip, plan, pieces, resident, plan->k_chunk, 0) +
           (reduce_cycles(plan) + store_cycles(s, plan) / plan->cluster) *
               ceil(pieces / ((double)chip->multiprocessors * resident));
}

/* Cycles of a multiprocessor that works on `resident` pieces of tiles at once, each `depth` deep,
 * and leaves their sums in the workspace. */
static double piece_cycles(const tgl_chip_facts *chip, const tgl_gemm_plan *plan, int resident,
                           double depth)
{
    const double bytes = 4.0 * plan->row->simt.bm * plan->row->simt.bn * resident;
    return block_cycles(chip, plan, resident, depth) + bytes / BLOCK_BYTES_A_CLOCK;
}

double tgl_piece_overhead(const tgl_chip_facts *chip, const tgl_gemm_plan *plan, int resident)
{
    const double none = piece_cycles(chip, plan, resident, 0);
    return none / (piece_cycles(chip, plan, resident, 1) - none);
}

/* The same where the first pieces, which take the rest of k, are larger: each slot that gets free
 * takes the next piece, the large ones first. */
static double uneven_cycles(const tgl_chip_facts *chip, const tgl_gemm_shape *s,
                            const tgl_gemm_plan *plan, double tiles, int resident, double first)
{
    const double slots = (double)chip->multiprocessors * resident;
    const double large =
        piece_cycles(chip, plan, resident, first) + resident * store_cycles(s, plan);
    const double small = piece_cycles(chip, plan, resident, plan->k_chunk);
    const double rounds = floor(tiles / slots), late = tiles - rounds * slots, early = slots - late;
    double left = tiles * (plan->splits - 1), early_end = rounds * large;
    double late_end = late > 0 ? early_end + large : early_end;
    while (left > 0) {
        const bool is_early = early_end <= late_end || late == 0;
        left -= is_early ? early : late;
        *(is_early ? &early_end : &late_end) += small;
    }
    return larger(early_end, late_end) + reduce_cycles(plan);
}

static void predict_simt(const tgl_chip_facts *chip, const tgl_gemm_shape *s, tgl_candidate *c)
{
    const tgl_gemm_plan *plan = &c->plan;
    const tgl_simt_row *t = &plan->row->simt;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double tiles = batch * (double)(plan->tiles_m * plan->tiles_n);
    const double whole = batch * plan->tiles_whole, split = tiles - whole;
    const double depth = (double)(tgl_ceil_div(s->k, tgl_simt_step(t)) * tgl_simt_step(t));
    double cycles = wave_cycles(chip, plan, whole, c->resident, depth, store_cycles(s, plan));
    const int64_t first = tgl_gemm_first_depth(plan, s);
    if (plan->splits > 1 && first > plan->k_chunk)
        cycles += uneven_cycles(chip, s, plan, split, c->resident, (double)first);
    else if (plan->splits > 1)
        cycles += even_cycles(chip, s, plan, split, c->resident);
    c->blocks = whole + split * plan->splits;
    c->compute = cycles / (1e6 * chip->clock_mhz);
    if (c->blocks > chip->multiprocessors) c->compute += LATE_LAUNCH_SECONDS;
    c->memory = 4 * batch * (m * k + k * n + m * n) / (TILES_SHARE * chip->memory_rate);
    c->l2 = 4 *
            (tiles * (t->bm + t->bn) * k + batch * m * n + 2.0 * (double)plan->workspace_floats) /
            chip->l2_rate;
}

/* ---- gemm/skinny.cu -------------------------------------------------------------------------- */

/* Bytes/s that `blocks` blocks at work read, each with `under_way` bytes on their way. */
static double stream_rate(const tgl_chip_facts *chip, double blocks, double under_way)
{
    const double covered = blocks * under_way / (chip->memory_rate * MEMORY_LATENCY);
    return STREAM_SHARE * chip->memory_rate * (covered < 1 ? covered : 1);
}

/* Whether loads go straight into registers; else through rings in shared memory. */
static bool is_straight(const tgl_gemm_plan *plan)
{
    return (plan->big_a ? plan->vec_a : plan->vec_b) == 4;
}

/* Bytes that a block has on their way. */
static double skinny_under_way(const tgl_gemm_plan *plan)
{
    const tgl_skinny_row *row = tgl_skinny_row_of(plan);
    const int steps = is_straight(plan) ? row->unroll : row->stages - 1;
    return 16.0 * plan->threads * row->results * steps;
}

/* The share of the FFMAs' time that loads do not hide: more with few warps, and all of it with
 * narrow copies. blocks: of a multiprocessor. */
static double ffma_share(const tgl_gemm_plan *plan, int blocks)
{
    const int warps = blocks * plan->threads / 32 / SCHEDULERS;
    return !is_straight(plan) ? 1 : warps < 3 ? 0.8 : 0.5;
}

/* Arithmetic and loads mostly take turns: what the first takes is added in part. */
static void predict_skinny(const tgl_chip_facts *chip, const tgl_gemm_shape *s, tgl_candidate *c)
{
    const tgl_gemm_plan *plan = &c->plan;
    const double k = (double)s->k, batch = (double)s->batch, length = (double)plan->length;
    const double clock = 1e6 * chip->clock_mhz, small = (double)(plan->big_a ? s->n : s->m);
    const double slots = (double)chip->multiprocessors * c->resident;
    const int64_t tiles = tgl_ceil_div(plan->length, plan->per_block);
    const int64_t units = tiles * (plan->k_chunk < s->k ? tgl_ceil_div(s->k, plan->k_chunk) : 1);
    c->blocks = batch * plan->blocks;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double rounds = (double)(int64_t)((c->blocks + slots - 1) / slots);
    /* What blocks with fewer units than others, and the last round, leave idle. */
    const double most = (double)tgl_ceil_div(units, plan->blocks);
    const double balance = batch * (double)units / (rounds * active * most);
    const double lanes = (double)chip->fp32_lanes * chip->multiprocessors;
    const int on_one = (int)((active + chip->multiprocessors - 1) / chip->multiprocessors);
    const double busy = active / ((double)on_one * chip->multiprocessors); /* multiprocessors */
    const double ffmas = batch * plan->row->count * (double)(tiles * plan->per_block) * k;
    const double sums = plan->splits > 1 ? 2 * (double)plan->workspace_floats : 0;
    const double around = plan->splits > 1 ? SKINNY_CYCLES + SKINNY_SUM_CYCLES : SKINNY_CYCLES;
    c->compute = ffmas / (lanes * clock * busy * balance);
    c->memory = 4 * (batch * (length * (k + small) + small * k) + sums) /
                    (stream_rate(chip, active, skinny_under_way(plan)) * balance) +
                ffma_share(plan, on_one) * c->compute + rounds * around / clock;
    /* Only small grids are launched before the last has ended. */
    if (c->blocks > chip->multiprocessors) c->memory += LATE_LAUNCH_SECONDS;
    c->l2 = 4 * batch * (plan->row->count * k * (double)tiles + length * k) / chip->l2_rate;
}

/* ---- gemm/matvec.cu -------------------------------------------------------------------------- */

/* Bytes of the vectors that come from L2: to each multiprocessor once if its L1 keeps them, else to
 * each block. */
static double vector_bytes(const tgl_chip_facts *chip, const tgl_gemm_shape *s,
                           const tgl_candidate *c)
{
    const double elements = c->plan.row->count * (double)s->k;
    const double in_l1 = elements * (c->plan.gathers ? L1_LINE_BYTES : 4);
    const double on_all = (double)s->batch * chip->multiprocessors;
    const bool is_kept = in_l1 <= VECTORS_SHARE * chip->shared_per_sm;
    return elements * (c->plan.gathers ? SECTOR_BYTES : 4) *
           (is_kept && on_all < c->blocks ? on_all : c->blocks);
}

/* Seconds of loads of a vector whose elements lie apart: L1 finds one in a cycle. */
static double gather_seconds(const tgl_chip_facts *chip, const tgl_gemm_shape *s,
                             const tgl_candidate *c)
{
    if (!c->plan.gathers) return 0;
    const double loads =
        (double)s->batch * (double)c->plan.length * (double)s->k / tgl_matvec_fours(&c->plan);
    return loads / chip->multiprocessors / (1e6 * chip->clock_mhz);
}

/* What several vectors add is fitted to two products on an H200, 2x4096x4096 NT (18.1 us) and
 * 4x4096x4096 NN (18.5 us). */
static void predict_matvec(const tgl_chip_facts *chip, const tgl_gemm_shape *s, tgl_candidate *c)
{
    const tgl_gemm_plan *plan = &c->plan;
    const double k = (double)s->k, batch = (double)s->batch, length = (double)plan->length;
    const double slots = (double)chip->multiprocessors * c->resident, count = plan->row->count;
    c->blocks = batch * plan->blocks;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double under_way = MATVEC_SHARE * 16 * plan->threads * tgl_matvec_fours(plan);
    const double clock = 1e6 * chip->clock_mhz;
    const double around = (MATVEC_CYCLES + (plan->row->count > 1 ? MATVEC_MORE_CYCLES : 0)) / clock;
    const double ffmas =
        batch * length * k / ((double)chip->fp32_lanes * chip->multiprocessors) / clock;
    c->compute = count * ffmas + around;
    c->memory =
        4 * batch * (length * k + count * (length + k)) / stream_rate(chip, active, under_way) +
        MATVEC_FFMA_SHARE * (count - 1) * ffmas + gather_seconds(chip, s, c) + around;
    c->l2 = (4 * batch * length * k + vector_bytes(chip, s, c)) / chip->l2_rate;
}

/* ---- gemm/small_batch.cu --------------------------------------------------------------------- */

/* Cycles of a multiprocessor for a product's copies of an operand. */
static double copy_cycles(double edge, double depth, int vec)
{
    return edge * depth / vec / 32 * (vec == 4 ? SMALL_BATCH_COPY_CYCLES : NARROW_COPY_CYCLES);
}

static void predict_small_batch(const tgl_chip_facts *chip, const tgl_gemm_shape *s,
                                tgl_candidate *c)
{
    const tgl_gemm_plan *plan = &c->plan;
    const tgl_small_batch_row *t = &plan->row->small_batch;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double clock = 1e6 * chip->clock_mhz, slots = (double)chip->multiprocessors * c->resident;
    c->blocks = (double)plan->blocks;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double busy = active < chip->multiprocessors ? active / chip->multiprocessors : 1;
    const double rounds = (double)(int64_t)((c->blocks + slots - 1) / slots);
    const int64_t turns = tgl_ceil_div(s->batch, (int64_t)plan->blocks * t->per_block);
    const int64_t tiles = tgl_ceil_div(s->k, t->bk), fours = tgl_ceil_div(s->k, 4);
    const double ffmas = (double)(t->bm * t->bn) * 4 * (double)fours,
                 depth = (double)(tiles * t->bk);
    const double copies =
        copy_cycles(t->bm, depth, plan->vec_a) + copy_cycles(t->bn, depth, plan->vec_b);
    const double under_way =
        4.0 * t->per_block * (t->stages - 1) * (m + n) * (k < t->bk ? k : t->bk);
    const double bytes = 4 * batch * (m * k + k * n + m * n);
    const double work = batch * (ffmas / chip->fp32_lanes * SMALL_BATCH_FFMA_SHARE + copies) /
                        (chip->multiprocessors * clock * busy);
    const double around = (SMALL_BATCH_CYCLES + SMALL_BATCH_BLOCK_CYCLES * rounds) / clock;
    c->memory = bytes / stream_rate(chip, active, under_way) + work + around;
    c->compute = around + SMALL_BATCH_TILE_CYCLES * rounds * (double)(turns * tiles) / clock;
    c->l2 = bytes / chip->l2_rate;
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
    switch (row->family) {
    case TGL_SIMT:
        predict_simt(chip, shape, c);
        break;
    case TGL_SKINNY:
        predict_skinny(chip, shape, c);
        break;
    case TGL_SMALL_BATCH:
        predict_small_batch(chip, shape, c);
        break;
    case TGL_MATVEC:
        predict_matvec(chip, shape, c);
        break;
    }
    c->waves = c->blocks / ((double)chip->multiprocessors * c->resident);
    c->overhead = LAUNCH_SECONDS * (double)tgl_ceil_div(shape->batch, c->plan.batch_step);
    c->seconds = larger(c->compute, larger(c->memory, c->l2)) + c->overhead;
}

/* What the last round of blocks leaves idle, as time of the whole chip. */
static double idle_seconds(const tgl_chip_facts *chip, const tgl_gemm_shape *s,
                           const tgl_candidate *c)
{
    const double rounds = ceil(c->blocks / chip->multiprocessors);
    if (c->plan.splits > 1 && tgl_gemm_first_depth(&c->plan, s) > c->plan.k_chunk) return 0;
    return c->compute * (1 - c->blocks / (rounds * chip->multiprocessors));
}

/* From sm_90 on strips begin as soon as the last block of tiles has, and take what is idle first;
 * elsewhere when all have ended. */
void tgl_candidate_add_strip(const tgl_chip_facts *chip, const tgl_gemm_part *part,
                             const tgl_candidate *alone, tgl_candidate *c)
{
    const bool overlaps = chip->capability >= 90;
    double idle = overlaps ? idle_seconds(chip, &part->shape, c) : 0;
    double rest = alone->seconds - alone->overhead;
    for (int i = 0; i < c->strip_count; i++)
        idle -= c->strips[i].seconds;
    if (idle > 0) rest = larger(rest - idle, 0);
    tgl_strip *strip = &c->strips[c->strip_count++];
    strip->part = *part;
    strip->part.plan = alone->plan;
    strip->seconds = alone->seconds;
    strip->adds = STRIP_SECONDS + (overlaps ? STRIP_SHARE : 1) * rest;
    c->seconds += strip->adds;
}
