/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts the time of the family simt, and lower bounds of it. SMs compute full waves of tiles,
 * and then the splits of the other tiles. Slices are groups of warps of a block that divide the K
 * of a tile among them. A configuration is slow where other instructions or latencies delay the
 * FFMAs.
 */
#include "families/simt_geometry.h"

#include <math.h>

/* Constants of the cost model, fitted to measurements on an H200. ..._A_CLOCK: bytes per clock of
 * an SM. */
enum {
    LOOP_INSTRUCTIONS = 33, /* instructions of a thread per tile of K, besides FFMAs, loads and
                               copies: barriers, addresses and changes of stage */
    COPY_INSTRUCTIONS = 8,  /* a copy takes as long as this many instructions */
    /* Cycles from a load from shared memory to its use, which other FFMAs must hide. */
    LATENCY_CYCLES = 4,
    /* Cycles of a tile before its first and after its last FFMA, without stores. */
    TILE_CYCLES = 4000,
    /* Cycles of a launch for each result of a thread. The code around the main loop has 17 to 35
     * instructions for each, and its first run fetches them from L2. Fitted to 46 products
     * (docs/notes/2026-11-29-gpu.md). */
    CODE_CYCLES = 30,
    STORE_BYTES_A_CLOCK = 32, /* rate of stores of D as float4 */
    LINE_BYTES_A_CLOCK = 11,  /* rate of stores of D in unaligned rows */
    SINGLE_BYTES_A_CLOCK = 7, /* rate of stores of D as scalars */
    REDUCE_CYCLES = 900,      /* cycles of a split tile for fences, its counter, and the last
                                 block's sum */
    SPLIT_CYCLES = 220, /* cycles for each cluster of a split tile, because clusters add their sums
                           in order */
    SLICE_BYTES_A_CLOCK = 100, /* rate at which slices write sums to shared memory and add them */
    BLOCK_BYTES_A_CLOCK = 26,  /* rate at which a block exchanges sums with L2 */
    CLUSTER_BYTES_A_CLOCK = 7, /* rate at which a block reads sums from the shared memory of other
                                  blocks of its cluster */
    CLUSTER_CYCLES = 165,      /* cycles to add sums within a cluster, for each slice of each
                                  block */
};
/* Issue cycles per wavefront of a load from shared memory. */
static const double SHARED_COST = 0.18;
/* Fraction of tgl_chip.memory_rate that the loads of A and B reach. */
static const double TILES_SHARE = 0.85;

/* Floats of B that a thread loads and that a block copies, as a fraction of the elements of op(B):
 * an element of a complex B, two floats, is four elements of op(B). */
static double share_of_b(const tgl_shape *s)
{
    return s->pairs_b != 0 ? 0.5 : 1;
}

/* The fraction of issue slots that are FFMAs in the main loop. */
static double issue_share(const tgl_shape *s, const simt_geometry *g)
{
    const simt_row *t = g->row;
    const double threads = g->step.threads, ffmas = t->tm * t->tn;
    const double copies = simt_depth_of_step(t) *
                          ((double)t->bm / g->step.vec_a + share_of_b(s) * t->bn / g->step.vec_b) /
                          threads;
    /* Loads of 16 bytes: two wavefronts each. */
    const double loads = (t->tm + share_of_b(s) * t->tn) / 4.0;
    const double all = t->bk * (ffmas + loads + SHARED_COST * 2 * TGL_SCHEDULERS * loads) +
                       COPY_INSTRUCTIONS * copies + LOOP_INSTRUCTIONS;
    return t->bk * ffmas / all;
}

/* The fraction of the issue slots that `blocks` resident blocks fill: few warps cannot hide the
 * latencies. */
static double used_share(const simt_geometry *g, int blocks)
{
    const double ffmas = g->row->tm * g->row->tn;
    const double warps = blocks * g->step.threads / 32.0 / TGL_SCHEDULERS;
    const double hidden = warps * ffmas / (ffmas + LATENCY_CYCLES);
    /* Six warps on four schedulers take as long as eight. */
    const double share_max = warps > 1 ? warps / ceil(warps) : 1;
    return hidden < share_max ? hidden : share_max;
}

/* The fraction of an SM's FFMA rate that the main loop reaches. */
static double efficiency(const tgl_shape *s, const simt_geometry *g, int blocks)
{
    return issue_share(s, g) * used_share(g, blocks);
}

/* Cycles of an SM to add the sums of the slices of a tile. */
static double slice_cycles(const simt_row *t)
{
    return t->slices > 1 ? 4.0 * t->bm * t->bn * t->slices / SLICE_BYTES_A_CLOCK : 0;
}

/* Cycles of an SM with `blocks` resident blocks, each of which multiplies `depth` of K. */
static double simt_block_cycles(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                                int blocks, double depth)
{
    const simt_row *t = g->row;
    if (blocks == 0) return 0;
    return blocks * ((double)t->bm * t->bn * depth / chip->fp32_lanes / efficiency(s, g, blocks) +
                     slice_cycles(t)) +
           TILE_CYCLES;
}

/* Cycles of an SM to store a tile. */
static double simt_store_cycles(const tgl_shape *s, const simt_geometry *g)
{
    const simt_row *t = g->row;
    const bool stores_rows = t->slices == 1 && g->step.args.cluster == 1;
    const int bytes_a_clock = tgl_store_width(s) == 4 ? STORE_BYTES_A_CLOCK
                              : stores_rows           ? LINE_BYTES_A_CLOCK
                                                      : SINGLE_BYTES_A_CLOCK;
    return 4.0 * t->bm * t->bn / bytes_a_clock;
}

/* Cycles of the busiest SM for `count` blocks: full waves, then a last wave that may leave SMs
 * idle. Clusters of some sizes do not fit on all SMs. depth: K of a block; after: cycles that an SM
 * spends on each block after its main loop. */
static double simt_wave_cycles(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                               double count, int resident, double depth, double after)
{
    const int sms = tgl_sms_for_clusters(chip, g->step.args.cluster);
    const double slots = (double)sms * resident;
    const double rest = fmod(count, slots), full = (count - rest) / slots;
    const int last = (int)((rest + sms - 1) / sms);
    return full * (simt_block_cycles(chip, s, g, resident, depth) + resident * after) +
           simt_block_cycles(chip, s, g, last, depth) + last * after;
}

/* Cycles to add the sums of a split tile: first within clusters, then over the clusters. */
static double simt_reduce_cycles(const simt_geometry *g)
{
    const double bytes = 4.0 * g->row->bm * g->row->bn;
    const int cluster = g->step.args.cluster, groups = g->step.args.splits / cluster;
    const int sharers = cluster * g->row->slices;
    const double in_cluster =
        cluster > 1 ? bytes / CLUSTER_BYTES_A_CLOCK + (double)CLUSTER_CYCLES * sharers : 0;
    if (groups == 1) return REDUCE_CYCLES + in_cluster;
    return 2 * REDUCE_CYCLES + in_cluster + SPLIT_CYCLES * groups +
           (1 + groups) * bytes / cluster / BLOCK_BYTES_A_CLOCK;
}

/* Cycles of the busiest SM for split tiles whose splits have equal depth. */
static double even_cycles(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                          double tiles, int resident)
{
    const struct tgl_gemm_args *args = &g->step.args;
    const double blocks = tiles * args->splits;
    /* The cluster that is the last to add its sums stores the tile. */
    const double stores = ceil(tiles * args->cluster / tgl_sms_for_clusters(chip, args->cluster));
    return simt_wave_cycles(chip, s, g, blocks, resident, args->k_chunk, 0) +
           simt_reduce_cycles(g) * ceil(blocks / ((double)chip->sms * resident)) +
           simt_store_cycles(s, g) / args->cluster * stores;
}

/* Cycles of an SM with `resident` splits, each of `depth` of K. The splits store their sums in the
 * workspace. */
static double split_cycles(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                           int resident, double depth)
{
    const double bytes = 4.0 * g->row->bm * g->row->bn * resident;
    return simt_block_cycles(chip, s, g, resident, depth) + bytes / BLOCK_BYTES_A_CLOCK;
}

double tgl_simt_split_overhead(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                               int resident)
{
    const double none = split_cycles(chip, s, g, resident, 0);
    return none / (split_cycles(chip, s, g, resident, 1) - none);
}

/* Cycles of the busiest SM for tiles whose first splits are deeper than the others. Each free slot
 * (room for a block on an SM) takes the next split, deep ones first. The loop simulates this for up
 * to FOLLOWED_MAX small splits. For more, an average is enough: no device has memory for the
 * partial sums of so many. */
static double uneven_cycles(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                            double tiles, int resident)
{
    enum { FOLLOWED_MAX = 1 << 20 };
    const double slots = (double)chip->sms * resident;
    const double large = split_cycles(chip, s, g, resident, (double)g->first_depth) +
                         resident * simt_store_cycles(s, g);
    const double small = split_cycles(chip, s, g, resident, g->step.args.k_chunk);
    const double rounds = floor(tiles / slots), late = tiles - rounds * slots, early = slots - late;
    double left = tiles * (g->step.args.splits - 1), early_end = rounds * large;
    double late_end = late > 0 ? early_end + large : early_end;
    if (left > FOLLOWED_MAX) return (tiles * large + left * small) / slots;
    while (left > 0) {
        const bool is_early = early_end <= late_end || late == 0;
        left -= is_early ? early : late;
        *(is_early ? &early_end : &late_end) += small;
    }
    return tgl_larger(early_end, late_end) + simt_reduce_cycles(g);
}

void tgl_simt_predict_time(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                           tgl_candidate *c)
{
    const simt_row *t = g->row;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double tiles = batch * (double)g->step.tiles;
    const double whole = batch * g->step.args.tiles_whole, split = tiles - whole;
    const double depth = (double)tgl_round_up(s->k, simt_depth_of_step(t));
    const double sums = (double)g->step.scratch_bytes / sizeof(float);
    double cycles =
        simt_wave_cycles(chip, s, g, whole, c->resident, depth, simt_store_cycles(s, g));
    c->is_uneven = simt_is_uneven(g);
    if (c->is_uneven)
        cycles += uneven_cycles(chip, s, g, split, c->resident);
    else if (g->step.args.splits > 1)
        cycles += even_cycles(chip, s, g, split, c->resident);
    c->blocks = whole + split * g->step.args.splits;
    c->compute = (cycles + CODE_CYCLES * t->tm * t->tn) / (1e6 * chip->clock_mhz);
    if (c->blocks > chip->sms) c->compute += TGL_LATE_LAUNCH_SECONDS;
    const double of_b = share_of_b(s);
    c->memory = 4 * batch * (m * k + of_b * k * n + m * n) / (TILES_SHARE * chip->memory_rate);
    c->l2 = 4 * (tiles * (t->bm + of_b * t->bn) * k + batch * m * n + 2 * sums) / chip->l2_rate;
}

/* ---- Lower bounds ---------------------------------------------------------------------------- */

void tgl_simt_bound_start(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                          int resident, simt_bound *b)
{
    const simt_row *t = g->row;
    const double cycles = (double)t->bm * t->bn / chip->fp32_lanes / issue_share(s, g);
    *b = (simt_bound){.chip = chip, .shape = s, .g = g, .resident = resident};
    b->tiles = (double)s->batch * (double)g->step.tiles;
    b->store = simt_store_cycles(s, g);
    b->slices = slice_cycles(t);
    for (int i = 1; i <= resident; i++) {
        const double of_k = cycles / used_share(g, i);
        b->of_k[i] = i > 1 && b->of_k[i - 1] < of_k ? b->of_k[i - 1] : of_k;
    }
}

/* A lower bound of the cycles of an SM for one of the `blocks` blocks that run on it. The block
 * multiplies `depth` of K. */
static double least_block_cycles(const simt_bound *b, double blocks, double depth)
{
    const int together = blocks < b->resident ? (int)blocks : b->resident;
    return b->of_k[together] * depth + b->slices;
}

/* A lower bound of the cycles to add the sums of split tiles in each of `waves` waves, and to store
 * one, with clusters of at most `cluster` blocks. It grows with the splits, and falls with larger
 * clusters. */
static double least_reduce_cycles(const simt_bound *b, int splits, int cluster, double waves)
{
    const double bytes = 4.0 * b->g->row->bm * b->g->row->bn, groups = (double)splits / cluster;
    const double alone =
        2 * REDUCE_CYCLES + SPLIT_CYCLES * splits + (1 + splits) * bytes / BLOCK_BYTES_A_CLOCK;
    if (cluster == 1) return waves * alone + b->store;
    const double clusters =
        REDUCE_CYCLES + bytes / CLUSTER_BYTES_A_CLOCK + 2 * CLUSTER_CYCLES * b->g->row->slices;
    const double between = groups > 1 ? REDUCE_CYCLES + SPLIT_CYCLES * groups +
                                            (1 + groups) * bytes / cluster / BLOCK_BYTES_A_CLOCK
                                      : 0;
    return fmin(waves * alone + b->store, waves * (clusters + between) + b->store / cluster);
}

/* The largest cluster size that divides `splits`. splits 0: the largest of all. */
static int largest_cluster(const tgl_chip *chip, int splits)
{
    int cluster = chip->cluster_max < TGL_CLUSTER_MAX ? chip->cluster_max : TGL_CLUSTER_MAX;
    while (cluster > 1 && splits % cluster != 0)
        cluster--;
    return cluster > 1 ? cluster : 1;
}

/* The seconds of a launch of `blocks` blocks that keeps an SM busy for `cycles`. */
static double least_with(const simt_bound *b, double cycles, double blocks)
{
    const double late = blocks > b->chip->sms ? TGL_LATE_LAUNCH_SECONDS : 0;
    const simt_row *t = b->g->row;
    return TGL_LAUNCH_SECONDS + late +
           (cycles + CODE_CYCLES * t->tm * t->tn) / (1e6 * b->chip->clock_mhz);
}

/* A lower bound of the cycles of an SM for the tiles that are not split, without the start of the
 * first one. It counts TGL_CLUSTER_MAX tiles fewer, because the launch may split up to this number
 * of additional tiles to fill clusters. */
static double least_whole_cycles(const simt_bound *b, double tiles)
{
    const double blocks = (tiles - TGL_CLUSTER_MAX) / b->chip->sms;
    return blocks * (least_block_cycles(b, b->resident, (double)b->shape->k) + b->store);
}

/* K of a split if the tiles have this number of splits. */
static int64_t chunk_of(const simt_bound *b, int splits)
{
    return tgl_round_up(tgl_ceil_div(b->shape->k, splits), simt_depth_of_step(b->g->row));
}

double tgl_simt_least_of_even(const simt_bound *b, int splits, int64_t whole)
{
    const int64_t chunk = chunk_of(b, splits), used = tgl_ceil_div(b->shape->k, chunk);
    const double blocks = (b->tiles - (double)whole) * (double)used;
    const double of_sm = ceil(blocks / b->chip->sms), waves = ceil(of_sm / b->resident);
    const int cluster = largest_cluster(b->chip, (int)used);
    const double cycles = of_sm * least_block_cycles(b, of_sm, (double)chunk) +
                          waves * TILE_CYCLES + least_reduce_cycles(b, (int)used, cluster, waves);
    return least_with(b, cycles + (whole > 0 ? least_whole_cycles(b, (double)whole) : 0),
                      blocks + (double)whole);
}

double tgl_simt_least_of_splits(const simt_bound *b, int splits)
{
    const int used = (int)tgl_ceil_div(b->shape->k, chunk_of(b, splits));
    const double work = b->tiles / b->chip->sms * (double)b->shape->k * b->of_k[b->resident];
    return least_with(
        b, work + TILE_CYCLES + least_reduce_cycles(b, used, largest_cluster(b->chip, 0), 1),
        b->tiles);
}

double tgl_simt_least_of_uneven(const simt_bound *b, int splits, int64_t whole, int64_t chunk)
{
    const simt_row *t = b->g->row;
    const double slots = (double)b->chip->sms * b->resident, tiles = b->tiles - (double)whole;
    const double first = (double)b->shape->k - (double)(splits - 1) * (double)chunk;
    const double around = b->slices + 4.0 * t->bm * t->bn / BLOCK_BYTES_A_CLOCK;
    const double large =
        b->resident * (b->of_k[b->resident] * first + around + b->store) + TILE_CYCLES;
    const double small =
        b->resident * (b->of_k[b->resident] * (double)chunk + around) + TILE_CYCLES;
    const double shared = tiles / slots * (large + (splits - 1) * small);
    const double longest = tgl_larger(ceil(tiles / slots) * large, shared);
    return least_with(b, longest + (whole > 0 ? least_whole_cycles(b, (double)whole) : 0),
                      b->tiles);
}

/* A bound for whole tiles or one for split tiles, whichever is smaller. Whole tiles: each block has
 * all of K. Split tiles: at best, all blocks have the same amount of work, and each has at least
 * the minimum depth. */
double tgl_simt_least_of_all(const simt_bound *b)
{
    const tgl_chip *chip = b->chip;
    const tgl_shape *s = b->shape;
    const simt_row *t = b->g->row;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double even = b->tiles / chip->sms, of_sm = ceil(even);
    const double splits = k / (double)tgl_simt_least_depth(t) + 1;
    const double whole = of_sm * (least_block_cycles(b, of_sm, k) + b->store);
    const double split = tgl_larger(even, 1 / splits) * k * b->of_k[b->resident] +
                         least_reduce_cycles(b, 2, largest_cluster(b->chip, 0), 1);
    const double cycles = TILE_CYCLES + (splits < 2 || whole < split ? whole : split);
    const double of_b = share_of_b(s);
    const double memory =
        4 * batch * (m * k + of_b * k * n + m * n) / (TILES_SHARE * chip->memory_rate);
    const double l2 = 4 * (b->tiles * (t->bm + of_b * t->bn) * k + batch * m * n) / chip->l2_rate;
    return tgl_larger(least_with(b, cycles, b->tiles), TGL_LAUNCH_SECONDS + tgl_larger(memory, l2));
}

double tgl_simt_least_seconds(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice)
{
    simt_geometry g;
    simt_bound b;
    tgl_candidate c = {.choice = *choice};
    const char *why = tgl_simt_make_geometry(chip, s, choice, &g);
    if (!tgl_gemm_predict(chip, s, why, &g.step, &c)) return 0; /* no bound: it is rejected */
    tgl_simt_bound_start(chip, s, &g, c.resident, &b);
    return tgl_simt_least_of_all(&b);
}
