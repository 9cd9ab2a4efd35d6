/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/skinny.cu: FP32 products with at most 16 rows or columns, bound by reading the big operand
 * once. A block takes units of work: tiles of D, or splits of tiles over K.
 */
#include "families/gemm_launch.h"

#include <limits.h>

/* ---- Configurations -------------------------------------------------------------------------- */

/* Macros for one way that the big operand may lie. */
typedef struct skinny_layout {
    int warps;
    int results; /* times count, of a thread */
    int lanes_k; /* lanes that share K; only where the big operand is K-major */
    int unroll;  /* float4 of K in a step, where copies are float4; else 1 */
    int stages;  /* steps in a warp's ring, for narrow copies */
    int depth;   /* K of the small operand in shared memory */
    int min_blocks;
    int registers; /* of a thread, as compiled for sm_90a */
} skinny_layout;

typedef struct skinny_row {
    const char *name;
    int count; /* rows or columns of the small operand, at most */
    skinny_layout mn_major, k_major;
} skinny_row;

/* Name, COUNT; WARPS, RESULTS, LANES_K, UNROLL, STAGES, DEPTH, MIN_BLOCKS, registers where the big
 * operand is MN-major, then where it is K-major. */
// clang-format off
static const skinny_row rows[] = {
    {"skinny_1",     1, {16, 4, 1, 2, 3, 4096, 1, 126}, {16, 2, 32, 4, 4, 4096, 1, 126}},
    {"skinny_2",     2, { 8, 4, 1, 2, 3, 1024, 2, 128}, { 8, 4,  8, 2, 3, 1024, 2, 128}},
    {"skinny_4",     4, { 8, 8, 1, 1, 2,  512, 2, 128}, { 8, 4,  8, 2, 3, 1024, 2, 128}},
    {"skinny_4_r8",  4, { 8, 8, 1, 1, 2,  512, 2, 128}, { 8, 8,  8, 2, 2, 1024, 1, 255}},
    {"skinny_8",     8, { 8, 4, 1, 1, 3,  512, 2, 128}, {12, 4,  8, 2, 3,  512, 1, 168}},
    {"skinny_16",   16, {12, 4, 1, 2, 3,  384, 1, 168}, {12, 4,  8, 2, 3,  512, 1, 168}},
};
// clang-format on
enum { ROWS = sizeof rows / sizeof rows[0] };

/* splits: parts that the K of a tile is cut into, the units of work. blocks: of the grid, at most,
 * which share the units; by default one for each. */
static const char *const options[] = {"splits", "blocks", NULL};
enum { SPLITS, BLOCKS };

static const char *configuration(int index)
{
    return index >= 0 && index < ROWS ? rows[index].name : NULL;
}

static int lines(int index)
{
    return rows[index].count;
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice serves a shape. */
typedef struct geometry {
    const skinny_row *row;
    const skinny_layout *layout;
    int threads, dynamic_shared, dynamic_shared_unaligned; /* of a block; bytes */
    int batch_step;                                        /* problems of the batch in a launch */
    bool big_a;                                            /* A is the big operand */
    bool k_major;                                          /* it is contiguous in K */
    int64_t length;                                        /* its rows or columns in D */
    int width;                                             /* its elements in a copy */
    int tile;          /* results (times count) that a block computes at once */
    int k_chunk;       /* K of a unit; INT_MAX: all */
    int splits;        /* blocks that share a tile, at most */
    int blocks;        /* of the grid, in x */
    int64_t workspace; /* floats of partial sums */
    int64_t counters;
} geometry;

/* K that a block multiplies in a step: units are multiples of it. */
static int step_of(const geometry *g)
{
    return 4 * g->layout->unroll * (g->k_major ? g->layout->lanes_k : g->layout->warps);
}

/* Floats of a step in a warp's ring, where steps are not unrolled, padded as the kernel has it. */
static int stage_floats(const geometry *g)
{
    const skinny_layout *l = g->layout;
    const int lines_of_warp = 32 / l->lanes_k * l->results;
    return 32 * l->results * 4 + (g->k_major ? lines_of_warp * (l->lanes_k % 32) : 0);
}

/* The rings if copies are narrow, two buffers for the small operand, and where the big one is
 * MN-major the warps' sums. */
static int shared_bytes(const geometry *g, int width)
{
    enum { SUM_LINE = 40 };
    const skinny_layout *l = g->layout;
    const int count = g->row->count;
    const int rings = width == 4 ? 0 : l->warps * l->stages * stage_floats(g);
    const int small = l->depth / 4 * (count * 4 + (count > 1 ? 4 : 0));
    const int sums = l->warps * (count < 4 ? count : 4) * l->results * SUM_LINE;
    return (rings + 2 * small + (g->k_major ? 0 : sums)) * (int)sizeof(float);
}

/* Which operand is big, how it lies, and how wide its copies are. */
static void look_at_operands(const tgl_shape *s, geometry *g)
{
    g->big_a = s->m > s->n;
    g->k_major = g->big_a ? !s->trans_a : s->trans_b;
    g->length = g->big_a ? s->m : s->n;
    g->layout = g->k_major ? &g->row->k_major : &g->row->mn_major;
    g->width = tgl_copy_width(s, g->k_major ? 0 : g->length, g->big_a ? s->lda : s->ldb,
                              g->big_a ? s->stride_a : s->stride_b);
    const skinny_layout *l = g->layout;
    g->tile = g->k_major ? l->warps * (32 / l->lanes_k) * l->results : 32 * l->results;
    g->threads = l->warps * 32;
    g->dynamic_shared = shared_bytes(g, g->width);
    g->dynamic_shared_unaligned = shared_bytes(g, 1);
}

static int64_t tiles_of(const geometry *g)
{
    return tgl_ceil_div(g->length, g->tile);
}

/* Units of a tile. */
static int64_t units_of_tile(const tgl_shape *s, const geometry *g)
{
    return s->k > g->k_chunk ? tgl_ceil_div(s->k, g->k_chunk) : 1;
}

static const char *share_work(const tgl_shape *s, const tgl_choice *choice, geometry *g)
{
    const int64_t asked = tgl_option(choice, SPLITS, 1), blocks = tgl_option(choice, BLOCKS, 0);
    const int64_t chunk = tgl_round_up(tgl_ceil_div(s->k, asked < 1 ? 1 : asked), step_of(g));
    g->k_chunk = chunk > 0 && chunk <= INT_MAX ? (int)chunk : INT_MAX;
    const int64_t per_tile = units_of_tile(s, g), units = tiles_of(g) * per_tile;
    if (units > TGL_GRID_X_MAX / 2) return tgl_grid_too_large;
    g->blocks = (int)(blocks > 0 && blocks < units ? blocks : units);
    if (per_tile == 1) return NULL;
    const int64_t each = units / g->blocks; /* the fewest of a block */
    g->splits = (int)(each == 1 ? per_tile : tgl_ceil_div(per_tile - 1, each) + 1);
    g->counters = g->batch_step * tiles_of(g);
    g->workspace = (int64_t)g->batch_step * g->blocks * 2 * g->tile * g->row->count;
    return NULL;
}

/* NULL, or why the choice cannot serve. */
static const char *make_geometry(const tgl_shape *s, const tgl_choice *choice, geometry *g)
{
    *g = (geometry){.row = &rows[choice->configuration], .splits = 1};
    if (tgl_min64(s->m, s->n) > g->row->count) return "it takes fewer rows or columns";
    g->batch_step = (int)tgl_min64(s->batch, TGL_GRID_YZ_MAX);
    look_at_operands(s, g);
    return share_work(s, choice, g);
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Fitted to measurements on an H200. */
enum {
    BLOCK_CYCLES = 10000, /* of a block before its first loads and after its last */
    SUM_CYCLES = 2500,    /* of adding up partial sums */
};

/* Whether loads go straight into registers; else through rings in shared memory. */
static bool is_straight(const geometry *g)
{
    return g->width == 4;
}

/* Bytes that a block has requested at once. */
static double bytes_in_flight(const geometry *g)
{
    const int steps = is_straight(g) ? g->layout->unroll : g->layout->stages - 1;
    return 16.0 * g->threads * g->layout->results * steps;
}

/* The share of the FFMAs' time that loads do not hide: more with few warps, and all of it with
 * narrow copies. blocks: of an SM. */
static double ffma_share(const geometry *g, int blocks)
{
    const int warps = blocks * g->threads / 32 / TGL_SCHEDULERS;
    return !is_straight(g) ? 1 : warps < 3 ? 0.8 : 0.5;
}

/* Arithmetic and loads mostly take turns: a share of the arithmetic's time is added to that of
 * memory. */
static void predict_time(const tgl_chip *chip, const tgl_shape *s, const geometry *g,
                         tgl_candidate *c)
{
    const double k = (double)s->k, batch = (double)s->batch, length = (double)g->length;
    const double clock = 1e6 * chip->clock_mhz, small = (double)(g->big_a ? s->n : s->m);
    const double slots = (double)chip->sms * c->resident;
    const int64_t tiles = tiles_of(g), units = tiles * units_of_tile(s, g);
    c->blocks = batch * g->blocks;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double rounds = (double)(int64_t)((c->blocks + slots - 1) / slots);
    /* What blocks with fewer units than others, and the last round, leave idle. */
    const double most = (double)tgl_ceil_div(units, g->blocks);
    const double balance = batch * (double)units / (rounds * active * most);
    const double lanes = (double)chip->fp32_lanes * chip->sms;
    const int on_one = (int)((active + chip->sms - 1) / chip->sms); /* blocks of an SM */
    const double busy = active / ((double)on_one * chip->sms);      /* share of the SMs */
    const double ffmas = batch * g->row->count * (double)(tiles * g->tile) * k;
    const double sums = g->splits > 1 ? 2 * (double)g->workspace : 0;
    const double around = g->splits > 1 ? BLOCK_CYCLES + SUM_CYCLES : BLOCK_CYCLES;
    c->compute = ffmas / (lanes * clock * busy * balance);
    c->memory = 4 * (batch * (length * (k + small) + small * k) + sums) /
                    (tgl_stream_rate(chip, active, bytes_in_flight(g)) * balance) +
                ffma_share(g, on_one) * c->compute + rounds * around / clock;
    if (c->blocks > chip->sms) c->memory += TGL_LATE_LAUNCH_SECONDS;
    c->l2 = 4 * batch * (g->row->count * k * (double)tiles + length * k) / chip->l2_rate;
}

static void predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    geometry g;
    const char *why = make_geometry(s, &c->choice, &g);
    if (why != NULL) {
        tgl_reject(c, why);
        return;
    }
    c->threads = g.threads;
    c->registers = g.layout->registers;
    c->shared_bytes = g.dynamic_shared;
    c->splits = g.splits;
    c->workspace_bytes =
        g.workspace * (int64_t)sizeof(float) + g.counters * (int64_t)sizeof(unsigned);
    c->launches = tgl_ceil_div(s->batch, g.batch_step);
    c->is_predicted = true;
    if (tgl_predict_occupancy(chip, g.dynamic_shared_unaligned, c)) predict_time(chip, s, &g, c);
}

/* ---- Search ---------------------------------------------------------------------------------- */

static void try_work(tgl_search *in, int64_t splits, int64_t blocks)
{
    const int64_t values[] = {splits, blocks};
    tgl_search_try(in, SPLITS, 2, values);
}

/* Whole tiles, as many for each block; or all work in equal shares for as many blocks as the chip
 * holds; or tiles in equal parts, a block each. */
static void search(tgl_search *in)
{
    enum { UNITS = 24 }; /* of work for a block: so many that one more or less matters little */
    geometry g;
    if (make_geometry(in->shape, &in->best->choice, &g) != NULL) return;
    const int64_t batch = in->shape->batch, tiles = g.blocks;
    const int64_t slots = tgl_ceil_div((int64_t)in->chip->sms * in->best->resident, batch);
    const int64_t deepest = tgl_ceil_div(in->shape->k, step_of(&g));
    const int64_t rounds = tgl_ceil_div(tiles, slots), units = tgl_ceil_div(UNITS * slots, tiles);
    try_work(in, 1, tgl_ceil_div(tiles, rounds));
    if (deepest < 2) return;
    try_work(in, tgl_min64(units, deepest), slots);
    for (int64_t splits = 2; splits <= deepest && splits * tiles <= slots; splits++)
        tgl_search_try(in, SPLITS, 1, &splits);
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void add_macros(const geometry *g, bool is_unaligned, tgl_list_builder *builder)
{
    const skinny_layout *l = g->layout;
    const int width = is_unaligned ? 1 : g->width;
    const tgl_macro macros[] = {{"BIG_A", g->big_a},
                                {"ALONG_K", g->k_major},
                                {"COUNT", g->row->count},
                                {"VEC", width},
                                {"RESULTS", l->results},
                                {"LANES_K", l->lanes_k},
                                {"UNROLL", width == 4 ? l->unroll : 1},
                                {"STAGES", l->stages},
                                {"WARPS", l->warps},
                                {"DEPTH", l->depth},
                                {"MIN_BLOCKS", l->min_blocks}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

static void launch(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                   const tgl_rectangle *part, bool is_strip, bool is_last,
                   tgl_list_builder *builder)
{
    geometry g;
    const tgl_shape own = tgl_part_shape(shape, part);
    const char *why = make_geometry(&own, choice, &g);
    if (why != NULL) {
        tgl_gemm_fail(why, builder);
        return;
    }
    tgl_gemm_step step = {
        .chip = chip,
        .shape = shape,
        .part = part,
        .is_strip = is_strip,
        .is_last = is_last,
        .name = g.row->name,
        .file = "gemm/skinny.cu",
        .symbol = "sgemm_skinny",
        .local_bytes = TGL_SPILL_MAX,
        .threads = g.threads,
        .dynamic_shared = g.dynamic_shared,
        .dynamic_shared_unaligned = g.dynamic_shared_unaligned,
        .vec_a = g.big_a ? g.width : 1,
        .vec_b = g.big_a ? 1 : g.width,
        .blocks = g.blocks,
        .batch_step = g.batch_step,
        .scratch_bytes = g.workspace * (int64_t)sizeof(float),
        .counter_bytes = g.counters * (int64_t)sizeof(unsigned),
        .args = {.splits = g.splits,
                 .cluster = 1,
                 .k_chunk = g.k_chunk,
                 .small_k_major = g.big_a ? shape->trans_b : !shape->trans_a},
    };
    add_macros(&g, false, builder);
    step.aligned = tgl_gemm_kernel(&step, builder);
    if (tgl_gemm_has_unaligned(shape, step.vec_a, step.vec_b)) {
        add_macros(&g, true, builder);
        step.unaligned = tgl_gemm_kernel(&step, builder);
    }
    tgl_gemm_add_step(&step, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                    tgl_text *out)
{
    geometry g;
    (void)chip;
    if (make_geometry(shape, choice, &g) != NULL) return;
    if (g.splits > 1)
        tgl_text_add(out, "split       k %d ways, %d deep; %.2f MB of partial sums\n", g.splits,
                     g.k_chunk, 4e-6 * (double)g.workspace);
    tgl_gemm_explain_copies(shape, g.big_a ? g.width : 1, g.big_a ? 1 : g.width, out);
}

static bool example(int index, bool trans_a, bool trans_b, tgl_shape *shape)
{
    *shape = tgl_example_shape(rows[index].count, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    return true;
}

const tgl_family tgl_family_skinny = {
    .name = "skinny",
    .summary = "FP32 products with at most 16 rows or columns",
    .options = options,
    .serves_strips = true,
    .configuration = configuration,
    .lines = lines,
    .unsupported_reason = tgl_gemm_unsupported_reason,
    .search = search,
    .predict = predict,
    .launch = launch,
    .explain = explain,
    .example = example,
};
