/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/simt.cu: FP32 products of any shape on CUDA cores. A block computes a tile of D; where tiles
 * are few, or do not fill the last wave, some of them are split over K (split-K).
 */
#include "families/gemm_launch.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef struct simt_row {
    const char *name;
    int bm, bn, bk; /* the tile of D that a block computes, and its steps along K */
    int wm, wn;     /* of a warp */
    int tm, tn;     /* of a thread */
    int stages;     /* tiles in shared memory */
    int slices;     /* groups of warps that share the K of a tile */
    int min_blocks; /* that must be resident on an SM, which bounds the registers */
    int registers;  /* of a thread, as compiled for sm_90a */
} simt_row;

/* From the largest tile to the smallest: name, BM, BN, BK, WM, WN, TM, TN, STAGES, SLICES,
 * MIN_BLOCKS, registers of a thread. Thread tiles of 16 x 8 have the most FFMAs to a load, smaller
 * ones leave room for more warps, and slices give a small tile more of them. A name ends in the
 * thread tile where the block tile does not tell, and in the slices if there are any. */
// clang-format off
static const simt_row rows[] = {
    {"simt_128x256x8",      128, 256,  8, 64, 64, 16, 8, 4, 1, 1, 255},
    {"simt_256x128x8",      256, 128,  8, 64, 64, 16, 8, 4, 1, 1, 255},
    {"simt_128x128x8",      128, 128,  8, 64, 64, 16, 8, 4, 1, 1, 255},
    {"simt_128x128x16",     128, 128, 16, 32, 64,  8, 8, 2, 1, 2, 128},
    {"simt_128x128x16_1",   128, 128, 16, 32, 64,  8, 8, 3, 1, 1, 152},
    {"simt_64x256x8",        64, 256,  8, 64, 64, 16, 8, 4, 1, 1, 255},
    {"simt_128x64x16",      128,  64, 16, 32, 64,  8, 8, 3, 1, 1, 152},
    {"simt_128x64x8",       128,  64,  8, 32, 64,  8, 8, 3, 1, 1, 152},
    {"simt_64x128x8",        64, 128,  8, 32, 64,  8, 8, 4, 1, 1, 144},
    {"simt_64x128x16",       64, 128, 16, 32, 64,  8, 8, 3, 1, 1, 152},
    {"simt_64x64x16",        64,  64, 16, 32, 64,  8, 8, 3, 1, 1, 160},
    {"simt_64x64x16_8x4",    64,  64, 16, 32, 32,  8, 4, 3, 1, 1, 120},
    {"simt_64x64x16_4x4",    64,  64, 16, 32, 16,  4, 4, 3, 1, 1, 104},
    {"simt_256x32x8",       256,  32,  8, 64, 32,  8, 8, 4, 1, 1, 168},
    {"simt_128x32x32",      128,  32, 32, 32, 32,  8, 4, 2, 1, 1, 128},
    {"simt_64x32x32",        64,  32, 32, 32, 32,  8, 4, 2, 1, 1, 144},
    {"simt_32x64x16",        32,  64, 16, 32, 32,  8, 4, 3, 1, 1, 120},
    {"simt_32x64x16_4x4",    32,  64, 16, 32, 16,  4, 4, 3, 1, 1, 104},
    {"simt_32x64x32",        32,  64, 32, 32, 32,  8, 4, 2, 1, 1, 144},
    {"simt_32x32x16",        32,  32, 16, 32, 16,  4, 4, 3, 1, 1, 104},
    {"simt_32x32x32",        32,  32, 32, 32, 16,  4, 4, 3, 1, 1, 112},
    {"simt_16x128x32",       16, 128, 32, 16, 64,  4, 8, 2, 1, 2, 168},
    {"simt_128x64x8_s4",    128,  64,  8, 64, 64, 16, 8, 3, 4, 1, 244},
    {"simt_64x128x8_s4",     64, 128,  8, 64, 64, 16, 8, 3, 4, 1, 244},
    {"simt_96x128x8_s2",     96, 128,  8, 48, 64, 12, 8, 3, 2, 1, 200},
    {"simt_64x64x8_s4",      64,  64,  8, 32, 64,  8, 8, 3, 4, 1, 168},
    {"simt_32x64x8_s8",      32,  64,  8, 32, 64,  8, 8, 3, 8, 1, 208},
    {"simt_32x64x8_s4",      32,  64,  8, 32, 64,  8, 8, 3, 4, 1, 234},
    {"simt_32x64x8_8x4_s4",  32,  64,  8, 32, 32,  8, 4, 3, 4, 1, 128},
    {"simt_32x32x16_s4",     32,  32, 16, 32, 16,  4, 4, 3, 4, 1, 112},
    {"simt_32x32x16_s2",     32,  32, 16, 32, 16,  4, 4, 3, 2, 1, 112},
};
// clang-format on
enum { ROWS = sizeof rows / sizeof rows[0] };

/* When copies and loads are issued. */
typedef struct simt_schedule {
    const char *name, *layout;
    int width;
    int copy_from, copy_every, load_from, load_every, column_order;
} simt_schedule;

static const simt_schedule schedules[] = {
#include "families/simt_schedules.inc"
};

/* splits: blocks that share the K of a tile. whole: tiles that are not split. depth: K of each
 * block of a split tile but the first, which takes the rest; by default all take the same. The
 * others are the macros of a schedule, instead of those in the table. */
static const char *const options[] = {"splits",     "whole",        "depth",
                                      "copy_from",  "copy_every",   "load_from",
                                      "load_every", "column_order", NULL};
enum { SPLITS, WHOLE, DEPTH, SCHEDULE };

static const char *configuration(int index)
{
    return index >= 0 && index < ROWS ? rows[index].name : NULL;
}

static void tile(int index, int *m, int *n)
{
    *m = rows[index].bm;
    *n = rows[index].bn;
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice serves a shape on a chip. */
typedef struct geometry {
    const simt_row *row;
    int threads, dynamic_shared; /* of a block; bytes */
    int batch_step;              /* problems of the batch in a launch */
    int64_t tiles_m, tiles_n;
    int raster;          /* rows of tiles in a band: gemm_args.h */
    int tiles_whole;     /* tiles that one block computes; each of the others has `splits` blocks */
    int splits, cluster; /* blocks that share a tile, and those of them that form a cluster */
    int k_chunk;         /* K of each of them but the first, which takes the rest */
    int64_t first_depth; /* what that is */
    int vec_a, vec_b;    /* elements in a copy; 1 for K-major operands, which copies transpose */
    bool wide_offsets;   /* a tile spans 4 GB */
    int64_t workspace;   /* floats of partial sums */
    int64_t counters;
} geometry;

enum { RASTER = 8 };

/* K that the slices of a block multiply before their next tiles: blocks of a split tile take
 * multiples of it. */
static int step_of(const simt_row *t)
{
    return t->bk * t->slices;
}

static int64_t tiles_of(const geometry *g)
{
    return g->tiles_m * g->tiles_n;
}

/* Whether byte offsets within a tile, `edge` of it times `bk`, pass 32 bits. */
static bool is_wide(bool k_major, int edge, int bk, int64_t ld)
{
    const int64_t lines_of_tile = k_major ? edge : bk;
    return ld >= ((int64_t)UINT32_MAX / 4 - edge - bk) / lines_of_tile;
}

/* As struct stage of the kernel has it: padded rows of both tiles, for each slice. Partial sums of
 * slices and clusters take their place. */
static int shared_bytes(const geometry *g)
{
    enum { PAD = 4 };
    const simt_row *t = g->row;
    const int stages = t->stages * t->bk * (t->bm + PAD + t->bn + PAD), sums = t->bm * t->bn;
    const bool has_sums = g->cluster > 1 || t->slices > 1;
    return t->slices * (has_sums && sums > stages ? sums : stages) * (int)sizeof(float);
}

/* Whether `blocks` in clusters of this size find an SM each, if there are enough. Where they do
 * not, blocks of a cluster share SMs while others are idle. Other chips of a kind may have room for
 * fewer clusters, if not all SMs are filled. */
static bool has_room(const tgl_chip *chip, int cluster, double blocks)
{
    static const double LEAST = 0.99; /* of what an H200 has room for */
    const double share = tgl_share_for_clusters(cluster);
    return blocks <= (share < 1 ? LEAST * share : 1) * chip->sms * ceil(blocks / chip->sms);
}

enum { GROUPS_MAX = 16 }; /* clusters of a tile whose sums are added up quickly enough */

/* The largest cluster size that divides `splits` and has room, else 2 or 1, unless that leaves too
 * many groups. The `whole` blocks of tiles that are not split come in clusters, too. */
static int cluster_of(const tgl_chip *chip, int splits, double whole, double blocks)
{
    const int most = chip->cluster_max < TGL_CLUSTER_MAX ? chip->cluster_max : TGL_CLUSTER_MAX;
    int largest = 1;
    for (int c = most; c > 1; c--) {
        if (splits % c != 0) continue;
        if (has_room(chip, c, whole) && has_room(chip, c, blocks)) return c;
        largest = c > largest ? c : largest;
    }
    const int small = largest > 1 && splits % 2 == 0 ? 2 : 1;
    return splits / small <= GROUPS_MAX ? small : largest;
}

/* Splits the tiles from number `whole` on, as far as their K allows. */
static void split_tiles(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice,
                        geometry *g)
{
    const int step = step_of(g->row);
    const int64_t tiles = tiles_of(g), whole = tgl_option(choice, WHOLE, 0);
    const int64_t depth = tgl_option(choice, DEPTH, 0);
    const int64_t asked = tgl_min64(tgl_option(choice, SPLITS, 1), TGL_SPLITS_MAX);
    g->tiles_whole = (int)tiles;
    g->first_depth = s->k;
    if (whole >= tiles || asked < 2) return;
    const int64_t part = depth > 0 ? depth : tgl_ceil_div(s->k, asked);
    if (part >= s->k) return; /* too little for a second block */
    const int64_t chunk = tgl_round_up(part, step);
    const int64_t splits = tgl_min64(tgl_ceil_div(s->k, chunk), asked);
    if (splits < 2) return;
    g->splits = (int)splits;
    g->k_chunk = (int)chunk;
    g->first_depth = s->k - (splits - 1) * chunk;
    const double whole_blocks = (double)whole * (double)s->batch;
    const double split_blocks = (double)((tiles - whole) * splits) * (double)s->batch;
    if (depth == 0)
        g->cluster = cluster_of(chip, g->splits, whole_blocks, whole_blocks + split_blocks);
    g->tiles_whole = (int)(whole - whole % g->cluster);
    const int64_t groups = splits / g->cluster, split_tile_count = tiles - g->tiles_whole;
    if (groups == 1) return;
    g->counters = g->batch_step * split_tile_count * g->cluster;
    g->workspace = g->batch_step * split_tile_count * groups * g->row->bm * g->row->bn;
}

/* NULL, or why the choice cannot serve. */
static const char *make_geometry(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice,
                                 geometry *g)
{
    const simt_row *t = &rows[choice->configuration];
    *g = (geometry){.row = t, .splits = 1, .cluster = 1};
    if (t->min_blocks > 1 && !s->trans_a && s->trans_b)
        return "copies of two K-major operands need more registers than it has";
    g->threads = t->bm / t->wm * (t->bn / t->wn) * 32 * t->slices;
    g->batch_step = (int)tgl_min64(s->batch, TGL_GRID_YZ_MAX);
    g->tiles_m = tgl_ceil_div(s->m, t->bm);
    g->tiles_n = tgl_ceil_div(s->n, t->bn);
    g->raster = (int)tgl_min64(g->tiles_m, RASTER);
    g->vec_a = s->trans_a ? tgl_copy_width(s, s->m, s->lda, s->stride_a) : 1;
    g->vec_b = s->trans_b ? 1 : tgl_copy_width(s, s->n, s->ldb, s->stride_b);
    g->wide_offsets =
        is_wide(!s->trans_a, t->bm, t->bk, s->lda) || is_wide(s->trans_b, t->bn, t->bk, s->ldb);
    const bool is_split = tgl_option(choice, SPLITS, 1) > 1;
    if (tiles_of(g) > (is_split ? TGL_GRID_X_MAX / TGL_SPLITS_MAX : TGL_GRID_X_MAX))
        return tgl_grid_too_large;
    /* The kernel counts split tiles over all problems of a launch. */
    if (is_split && tiles_of(g) > INT_MAX / g->batch_step) return tgl_grid_too_large;
    split_tiles(chip, s, choice, g);
    g->dynamic_shared = shared_bytes(g);
    return NULL;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Fitted to measurements on an H200. */
enum {
    LOOP_INSTRUCTIONS = 33,    /* of a thread and tile of K: barriers, stages, addresses */
    COPY_INSTRUCTIONS = 8,     /* that a copy takes the time of */
    LATENCY_CYCLES = 4,        /* of a shared load and what waits for it, to be hidden by FFMAs */
    TILE_CYCLES = 4000,        /* before the first FFMA of a tile and after its last, without: */
    STORE_BYTES_A_CLOCK = 32,  /* of D, that an SM stores as float4, */
    LINE_BYTES_A_CLOCK = 11,   /* in unaligned rows, */
    SINGLE_BYTES_A_CLOCK = 7,  /* or as scalars */
    REDUCE_CYCLES = 900,       /* of a split tile: fences, the counter, the last block's sum */
    SPLIT_CYCLES = 130,        /* of each group: its sums are added before those of the next */
    SLICE_BYTES_A_CLOCK = 100, /* that slices write to shared memory and add up */
    BLOCK_BYTES_A_CLOCK = 26,  /* that one block moves between itself and L2 */
    CLUSTER_BYTES_A_CLOCK = 7, /* that it reads from the shared memory of its cluster */
    CLUSTER_CYCLES = 165,      /* of each slice of each block of a cluster, for the same */
};
static const double SHARED_COST = 0.18; /* cycles that a wavefront of shared loads costs */
static const double TILES_SHARE = 0.85; /* of the copy rate, that blocks of tiles reach */

/* The share of an SM's FFMA rate that `blocks` resident blocks reach in the main loop: other
 * instructions take issue slots, and few warps leave latencies exposed. */
static double efficiency(const geometry *g, int blocks)
{
    const simt_row *t = g->row;
    const double threads = g->threads, ffmas = t->tm * t->tn;
    const double copies =
        step_of(t) * ((double)t->bm / g->vec_a + (double)t->bn / g->vec_b) / threads;
    const double loads = (t->tm + t->tn) / 4.0; /* of 16 bytes: two wavefronts each */
    const double all = t->bk * (ffmas + loads + SHARED_COST * 2 * TGL_SCHEDULERS * loads) +
                       COPY_INSTRUCTIONS * copies + LOOP_INSTRUCTIONS;
    const double warps = blocks * threads / 32 / TGL_SCHEDULERS;
    const double hidden = warps * ffmas / (ffmas + LATENCY_CYCLES);
    /* Six warps on four schedulers take as long as eight. */
    const double most = warps > 1 ? warps / ceil(warps) : 1;
    return t->bk * ffmas / all * (hidden < most ? hidden : most);
}

/* Cycles of an SM that works on `blocks` blocks at once, each `depth` deep in K. */
static double block_cycles(const tgl_chip *chip, const geometry *g, int blocks, double depth)
{
    const simt_row *t = g->row;
    if (blocks == 0) return 0;
    const double bytes = 4.0 * t->bm * t->bn;
    const double sums = t->slices > 1 ? bytes * t->slices / SLICE_BYTES_A_CLOCK : 0;
    return blocks *
               ((double)t->bm * t->bn * depth / chip->fp32_lanes / efficiency(g, blocks) + sums) +
           TILE_CYCLES;
}

/* Cycles of an SM to store a tile. */
static double store_cycles(const tgl_shape *s, const geometry *g)
{
    const simt_row *t = g->row;
    const bool stores_rows = t->slices == 1 && g->cluster == 1;
    const int bytes_a_clock = tgl_store_width(s) == 4 ? STORE_BYTES_A_CLOCK
                              : stores_rows           ? LINE_BYTES_A_CLOCK
                                                      : SINGLE_BYTES_A_CLOCK;
    return 4.0 * t->bm * t->bn / bytes_a_clock;
}

/* Cycles of `count` blocks: full waves, then one that may leave SMs idle. after: cycles of an SM
 * for each block, when it has multiplied. */
static double wave_cycles(const tgl_chip *chip, const geometry *g, double count, int resident,
                          double depth, double after)
{
    const double slots = (double)chip->sms * resident;
    const double full = (double)(int64_t)(count / slots), rest = count - full * slots;
    const int last = (int)((rest + chip->sms - 1) / chip->sms);
    return full * (block_cycles(chip, g, resident, depth) + resident * after) +
           block_cycles(chip, g, last, depth) + last * after;
}

/* Cycles to add up a split tile: within clusters, then among them. */
static double reduce_cycles(const geometry *g)
{
    const double bytes = 4.0 * g->row->bm * g->row->bn;
    const int groups = g->splits / g->cluster;
    const int sharers = g->cluster * g->row->slices;
    const double in_cluster =
        g->cluster > 1 ? bytes / CLUSTER_BYTES_A_CLOCK + (double)CLUSTER_CYCLES * sharers : 0;
    if (groups == 1) return REDUCE_CYCLES + in_cluster;
    return 2 * REDUCE_CYCLES + in_cluster + SPLIT_CYCLES * groups +
           (1 + groups) * bytes / g->cluster / BLOCK_BYTES_A_CLOCK;
}

/* Cycles of tiles that are split equally. */
static double even_cycles(const tgl_chip *chip, const tgl_shape *s, const geometry *g, double tiles,
                          int resident)
{
    const double blocks = tiles * g->splits;
    return wave_cycles(chip, g, blocks, resident, g->k_chunk, 0) +
           (reduce_cycles(g) + store_cycles(s, g) / g->cluster) *
               ceil(blocks / ((double)chip->sms * resident));
}

/* Cycles of an SM that works on `resident` splits of tiles at once, each `depth` deep, and leaves
 * their sums in the workspace. */
static double split_cycles(const tgl_chip *chip, const geometry *g, int resident, double depth)
{
    const double bytes = 4.0 * g->row->bm * g->row->bn * resident;
    return block_cycles(chip, g, resident, depth) + bytes / BLOCK_BYTES_A_CLOCK;
}

/* How deep in K a split would be that took as long as the fixed part of a split: its launch, its
 * first tiles, leaving its sums. */
static double split_overhead(const tgl_chip *chip, const geometry *g, int resident)
{
    const double none = split_cycles(chip, g, resident, 0);
    return none / (split_cycles(chip, g, resident, 1) - none);
}

/* Cycles of tiles whose first splits, which take the rest of K, are larger than the others: each
 * slot that gets free takes the next split, the large ones first. So many small ones that to follow
 * each would take long need partial sums that no device has room for: an average will do. */
static double uneven_cycles(const tgl_chip *chip, const tgl_shape *s, const geometry *g,
                            double tiles, int resident)
{
    enum { FOLLOWED_MAX = 1 << 20 };
    const double slots = (double)chip->sms * resident;
    const double large =
        split_cycles(chip, g, resident, (double)g->first_depth) + resident * store_cycles(s, g);
    const double small = split_cycles(chip, g, resident, g->k_chunk);
    const double rounds = floor(tiles / slots), late = tiles - rounds * slots, early = slots - late;
    double left = tiles * (g->splits - 1), early_end = rounds * large;
    double late_end = late > 0 ? early_end + large : early_end;
    if (left > FOLLOWED_MAX) return (tiles * large + left * small) / slots;
    while (left > 0) {
        const bool is_early = early_end <= late_end || late == 0;
        left -= is_early ? early : late;
        *(is_early ? &early_end : &late_end) += small;
    }
    return tgl_larger(early_end, late_end) + reduce_cycles(g);
}

static bool is_uneven(const geometry *g)
{
    return g->splits > 1 && g->first_depth > g->k_chunk;
}

static void predict_time(const tgl_chip *chip, const tgl_shape *s, const geometry *g,
                         tgl_candidate *c)
{
    const simt_row *t = g->row;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double tiles = batch * (double)tiles_of(g);
    const double whole = batch * g->tiles_whole, split = tiles - whole;
    const double depth = (double)tgl_round_up(s->k, step_of(t));
    double cycles = wave_cycles(chip, g, whole, c->resident, depth, store_cycles(s, g));
    if (is_uneven(g))
        cycles += uneven_cycles(chip, s, g, split, c->resident);
    else if (g->splits > 1)
        cycles += even_cycles(chip, s, g, split, c->resident);
    c->blocks = whole + split * g->splits;
    c->compute = cycles / (1e6 * chip->clock_mhz);
    if (c->blocks > chip->sms) c->compute += TGL_LATE_LAUNCH_SECONDS;
    c->memory = 4 * batch * (m * k + k * n + m * n) / (TILES_SHARE * chip->memory_rate);
    c->l2 = 4 * (tiles * (t->bm + t->bn) * k + batch * m * n + 2.0 * (double)g->workspace) /
            chip->l2_rate;
}

static void predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    geometry g;
    const char *why = make_geometry(chip, s, &c->choice, &g);
    if (why != NULL) {
        tgl_reject(c, why);
        return;
    }
    c->threads = g.threads;
    c->registers = g.row->registers;
    c->shared_bytes = g.dynamic_shared;
    c->splits = g.splits;
    c->is_uneven = is_uneven(&g);
    c->workspace_bytes =
        g.workspace * (int64_t)sizeof(float) + g.counters * (int64_t)sizeof(unsigned);
    c->launches = tgl_ceil_div(s->batch, g.batch_step);
    c->is_predicted = true;
    if (tgl_predict_occupancy(chip, 0, c)) predict_time(chip, s, &g, c);
}

/* ---- Search ---------------------------------------------------------------------------------- */

enum {
    SPLITS_OF_TAIL_MAX = 8, /* of the tiles of the last wave, or the last two */
    SPLITS_UNEVEN_MAX = 5,
    TILES_OF_SPLIT_MIN = 4, /* tiles of K that a block is worth */
};

/* Shares of the time by which small splits should end before the large ones; the second where
 * strips are to follow, which take that time. */
static const double EARLY_SHARE = 0.04, STRIP_EARLY_SHARE = 0.08;

/* Splits worth a try: all up to 8, then in steps of about a fifth, and of whole clusters. */
static int next_splits(int splits)
{
    return splits < 8 ? splits + 1 : splits + (splits / 5 + 7) / 8 * 8;
}

/* The least K that a block is worth. */
static int64_t least_depth(const simt_row *t)
{
    return (int64_t)(t->slices > 1 ? 2 * t->slices : TILES_OF_SPLIT_MIN) * t->bk;
}

static void try_splits(tgl_search *search, int splits)
{
    const int64_t values[] = {splits};
    tgl_search_try(search, SPLITS, 1, values);
}

/* Tiles from `whole` on get one large split each, and so little is left for the small ones that
 * these, on the slots that get no large one, end a little before the large ones do: it costs little
 * to begin the last small one early, and much to begin it late. */
static void search_uneven(tgl_search *search, const geometry *g, int resident, int64_t whole)
{
    const int64_t rest = tiles_of(g) - whole, slots = (int64_t)search->chip->sms * resident;
    const int64_t early = slots * tgl_ceil_div(rest, slots) - rest; /* slots without a large one */
    const double overhead = split_overhead(search->chip, g, resident);
    const double share = 1 - (search->has_strips ? STRIP_EARLY_SHARE : EARLY_SHARE);
    const int step = step_of(g->row);
    if (early == 0) return;
    for (int i = 2; i <= SPLITS_UNEVEN_MAX; i++) {
        const int64_t rounds = tgl_ceil_div(rest * (i - 1), early); /* of small splits */
        const double depth = (double)search->shape->k - (double)(rounds - 1) * overhead;
        const int64_t most = (int64_t)(share * depth / (double)(rounds + i - 1));
        const int64_t chunk = most - most % step;
        if (chunk < least_depth(g->row)) break;
        const int64_t values[] = {i, whole, chunk};
        tgl_search_try(search, SPLITS, 3, values);
    }
}

/* All tiles while they do not fill the chip; after that those of the last wave, or the last two. */
static void search(tgl_search *in)
{
    geometry g;
    const tgl_shape *s = in->shape;
    const int resident = in->best->resident;
    if (make_geometry(in->chip, s, &in->best->choice, &g) != NULL) return;
    const int64_t tiles = tiles_of(&g), slots = (int64_t)in->chip->sms * resident;
    const int64_t whole = tiles / slots * slots;
    const int most = (int)tgl_min64(s->k / least_depth(g.row), TGL_SPLITS_MAX);
    const double all = (double)tiles * (double)s->batch;
    for (int i = 2; i <= most && all * (i - 1) < (double)(2 * slots); i = next_splits(i))
        try_splits(in, i);
    if (s->batch > 1) return;
    for (int64_t from = whole; from >= 0 && from >= whole - slots; from -= slots) {
        if (from == tiles) continue;
        search_uneven(in, &g, resident, from);
        for (int i = 2; i <= most && i <= SPLITS_OF_TAIL_MAX && whole > 0; i++) {
            const int64_t values[] = {i, from};
            tgl_search_try(in, SPLITS, 2, values);
        }
    }
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* The schedule for a layout and copies and stores of these widths; NULL: the kernel's own. */
static const simt_schedule *find_schedule(const simt_row *t, const tgl_shape *s, int vec_a,
                                          int vec_b, int vec_d)
{
    const bool both_k_major = !s->trans_a && s->trans_b;
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        const simt_schedule *x = &schedules[i];
        if (strcmp(x->name, t->name) == 0 && s->trans_a == (x->layout[0] == 'T') &&
            s->trans_b == (x->layout[1] == 'T') && (!s->trans_a || vec_a == x->width) &&
            (s->trans_b || vec_b == x->width) && (!both_k_major || vec_d == x->width))
            return x;
    }
    return NULL;
}

/* Options that are given stand for the aligned kernel only: the other has more copies, for which it
 * may have no place then. */
static void add_schedule(const simt_schedule *found, const tgl_choice *choice, bool is_unaligned,
                         tgl_list_builder *builder)
{
    static const char *const macros[] = {"COPY_FROM", "COPY_EVERY", "LOAD_FROM", "LOAD_EVERY",
                                         "COLUMN_ORDER"};
    enum { MACROS = sizeof macros / sizeof macros[0] };
    int64_t values[MACROS] = {TGL_UNSET, TGL_UNSET, TGL_UNSET, TGL_UNSET, TGL_UNSET};
    if (found != NULL) {
        values[0] = found->copy_from;
        values[1] = found->copy_every;
        values[2] = found->load_from;
        values[3] = found->load_every;
        values[4] = found->column_order;
    }
    for (int i = 0; i < MACROS; i++) {
        if (!is_unaligned) values[i] = tgl_option(choice, SCHEDULE + i, values[i]);
        if (values[i] != TGL_UNSET) tgl_list_macro(builder, macros[i], values[i]);
    }
}

static void add_macros(const geometry *g, const tgl_shape *s, const tgl_choice *choice,
                       bool is_unaligned, tgl_list_builder *builder)
{
    const simt_row *t = g->row;
    const int vec_a = is_unaligned ? 1 : g->vec_a, vec_b = is_unaligned ? 1 : g->vec_b;
    const int vec_d = is_unaligned ? 1 : tgl_store_width(s);
    /* INSIDE matters only to narrow copies of operands that are not K-major. */
    const bool is_narrow = (s->trans_a && vec_a < 4) || (!s->trans_b && vec_b < 4);
    const tgl_macro macros[] = {{"BM", t->bm},
                                {"BN", t->bn},
                                {"BK", t->bk},
                                {"WM", t->wm},
                                {"WN", t->wn},
                                {"TM", t->tm},
                                {"TN", t->tn},
                                {"STAGES", t->stages},
                                {"SLICES", t->slices},
                                {"MIN_BLOCKS", t->min_blocks},
                                {"TRANS_A", s->trans_a},
                                {"TRANS_B", s->trans_b},
                                {"VEC_A", vec_a},
                                {"VEC_B", vec_b},
                                {"WIDE_OFFSETS", g->wide_offsets},
                                {"INSIDE", is_narrow && s->m >= t->bm && s->n >= t->bn},
                                {"LINES_OF_C", t->slices == 1 && vec_d == 1}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
    add_schedule(find_schedule(t, s, vec_a, vec_b, vec_d), choice, is_unaligned, builder);
}

static void launch(const tgl_partition *of, tgl_list_builder *builder)
{
    geometry g;
    const tgl_shape own = tgl_part_shape(of->shape, &of->part);
    const char *why = make_geometry(of->chip, &own, &of->choice, &g);
    if (why != NULL) {
        tgl_gemm_fail(why, builder);
        return;
    }
    tgl_gemm_step step = {
        .of = of,
        .name = g.row->name,
        .file = "gemm/simt.cu",
        .symbol = "sgemm_simt",
        .local_bytes = g.row->min_blocks > 1 ? TGL_SPILL_MAX : 0,
        .threads = g.threads,
        .dynamic_shared = g.dynamic_shared,
        .dynamic_shared_unaligned = g.dynamic_shared,
        .vec_a = g.vec_a,
        .vec_b = g.vec_b,
        .blocks = g.tiles_whole + (tiles_of(&g) - g.tiles_whole) * g.splits,
        .tiles = tiles_of(&g),
        .batch_step = g.batch_step,
        .scratch_bytes = g.workspace * (int64_t)sizeof(float),
        .counter_bytes = g.counters * (int64_t)sizeof(unsigned),
        .args = {.raster = g.raster,
                 .tiles_whole = g.tiles_whole,
                 .splits = g.splits,
                 .cluster = g.cluster,
                 .k_chunk = g.k_chunk},
    };
    add_macros(&g, &own, &of->choice, false, builder);
    step.aligned = tgl_gemm_kernel(&step, builder);
    if (tgl_gemm_has_unaligned(of->shape, g.vec_a, g.vec_b)) {
        add_macros(&g, &own, &of->choice, true, builder);
        step.unaligned = tgl_gemm_kernel(&step, builder);
    }
    tgl_gemm_add_step(&step, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void explain_split(const geometry *g, tgl_text *out)
{
    const long long tiles = tiles_of(g);
    tgl_text_add(out, "split       k %d ways, ", g->splits);
    if (is_uneven(g)) tgl_text_add(out, "first %lld and then ", (long long)g->first_depth);
    tgl_text_add(out, "%d deep, in %lld of %lld tiles; %.2f MB of partial sums\n", g->k_chunk,
                 tiles - g->tiles_whole, tiles, 4e-6 * (double)g->workspace);
}

static void explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                    tgl_text *out)
{
    geometry g;
    if (make_geometry(chip, shape, choice, &g) != NULL) return;
    if (g.splits > 1) explain_split(&g, out);
    tgl_gemm_explain_copies(shape, g.vec_a, g.vec_b, out);
}

static bool example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    if (type != TGL_F32) return false;
    return rows[index].min_blocks == 1 || trans_a || !trans_b; /* see make_geometry() */
}

const tgl_family tgl_family_simt = {
    .name = "simt",
    .summary = "FP32 products of any shape",
    .options = options,
    .configuration = configuration,
    .tile = tile,
    .unsupported_reason = tgl_gemm_unsupported_unless_f32,
    .search = search,
    .predict = predict,
    .launch = launch,
    .explain = explain,
    .example = example,
};
