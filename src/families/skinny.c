/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/skinny.cu: products with at most 16 rows or columns. Their time is the time to read the big
 * operand, A or B, once. A block takes units of work: tiles of D, or splits of tiles over K. Its
 * main loop advances in steps along K. In each step a thread multiplies UNROLL groups of K. A group
 * is 16 bytes of a K-major big operand, or 4 rows of an MN-major one.
 */
#include "families/gemm_launch.h"
#include "families/thin.h"
#include "families/unsupported.h"

#include <limits.h>
#include <math.h>

/* ---- Configurations -------------------------------------------------------------------------- */

/* The macros of a kernel, for one type and one layout of the big operand. */
typedef struct skinny_layout {
    int warps;
    int results;    /* a thread computes results x count results */
    int lanes_k;    /* lanes that divide K among them; 1 if the big operand is MN-major */
    int unroll;     /* groups of K in a step, with 16-byte copies */
    int stages;     /* steps in the ring buffer of a warp, for narrow copies of F32 */
    int depth;      /* elements of K of the small operand that fit in shared memory */
    int min_blocks; /* minimum resident blocks of an SM, which limits the registers */
    int registers;  /* per thread, as compiled for sm_90a */
} skinny_layout;

typedef struct skinny_row {
    const char *name;
    int count; /* maximum number of rows or columns of the small operand */
    struct {
        skinny_layout mn_major, k_major;
    } f32, bits16, f64;
} skinny_row;

/* Columns: name, COUNT; then for F32, 16-bit types and F64 a line each: WARPS, RESULTS, LANES_K,
 * UNROLL, STAGES, DEPTH, MIN_BLOCKS, registers, first for an MN-major big operand, then for a
 * K-major one. With this DEPTH a block of an aligned kernel needs at most 99 KB of shared memory,
 * which all chips from compute capability 8.0 on allow; skinny_4_r8 for F64 needs 116 KB. Unaligned
 * kernels for F32 need up to 158 KB, because they also have rings. Chips on which a configuration's
 * unaligned kernel does not fit reject the configuration. */
// clang-format off
static const skinny_row skinny_rows[] = {
    {"skinny_1", 1, {{16, 4, 1, 2, 3, 4096, 1, 126}, {16, 2, 32, 4, 4, 4096, 1, 126}},
                    {{16, 8, 1, 2, 0, 4096, 1, 128}, {16, 2, 32, 4, 0, 4096, 1, 128}},
                    {{16, 2, 1, 2, 0, 2048, 1, 128}, {16, 2, 32, 4, 0, 2048, 1, 128}}},
    {"skinny_2", 2, {{ 8, 4, 1, 2, 3, 1024, 2, 128}, { 8, 4,  8, 2, 3, 1024, 2, 128}},
                    {{ 8, 8, 1, 2, 0, 2048, 2, 128}, { 8, 4,  8, 2, 0, 2048, 2, 128}},
                    {{ 8, 4, 1, 1, 0, 1024, 2, 128}, { 8, 4,  8, 2, 0, 1024, 2, 128}}},
    {"skinny_4", 4, {{ 8, 8, 1, 1, 2,  512, 2, 128}, { 8, 4,  8, 2, 3, 1024, 2, 128}},
                    {{ 8, 8, 1, 1, 0, 1024, 2, 128}, { 8, 4,  8, 2, 0, 1024, 2, 128}},
                    {{ 8, 4, 1, 1, 0,  512, 2, 128}, { 8, 4,  8, 2, 0,  512, 2, 128}}},
    {"skinny_4_r8", 4, {{ 8, 8, 1, 1, 2,  512, 2, 128}, { 8, 8,  8, 2, 2, 1024, 1, 255}},
                       {{ 8, 8, 1, 2, 0, 1024, 1, 255}, { 8, 8,  8, 2, 0, 1024, 1, 255}},
                       {{ 8, 8, 1, 1, 0,  512, 1, 255}, { 8, 8,  8, 1, 0,  512, 1, 255}}},
    {"skinny_8", 8, {{ 8, 4, 1, 1, 3,  512, 2, 128}, {12, 4,  8, 2, 3,  512, 1, 168}},
                    {{12, 8, 1, 1, 0,  768, 1, 168}, {12, 4,  8, 2, 0, 1024, 1, 168}},
                    {{12, 4, 1, 1, 0,  192, 1, 168}, {12, 4,  8, 2, 0,  512, 1, 168}}},
    {"skinny_16", 16, {{12, 4, 1, 2, 3,  384, 1, 168}, {12, 4,  8, 2, 3,  512, 1, 168}},
                      {{ 8, 8, 1, 1, 0,  512, 1, 255}, { 8, 4,  8, 2, 0,  512, 1, 255}},
                      {{12, 2, 1, 1, 0,  192, 1, 168}, { 8, 4,  8, 1, 0,  256, 1, 255}}},
};
// clang-format on

/* splits: units of work into which the K of a tile is divided. blocks: the maximum number of
 * blocks, which divide the units among them; by default there is one block for each unit. */
static const char *const skinny_options[] = {"splits", "blocks", NULL};
enum { SPLITS, BLOCKS };

static int skinny_lines(int index)
{
    return skinny_rows[index].count;
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice (a configuration and its options) computes a product. */
typedef struct skinny_geometry {
    const skinny_row *row;
    const skinny_layout *layout;
    int size;           /* bytes of an element of A or B */
    tgl_thin thin;      /* the big operand and the small one */
    int width;          /* elements of the big operand in a copy */
    int tile;           /* a block computes tile x count results at once */
    tgl_gemm_step step; /* args.k_chunk: K of a unit; INT_MAX: all of K. args.splits: the maximum
                           number of blocks that compute units of one tile */
} skinny_geometry;

/* Elements of A or B in 16 bytes. */
static int skinny_pack_of(const skinny_geometry *g)
{
    return 16 / g->size;
}

/* K of a group, in elements. */
static int group_of(const skinny_geometry *g)
{
    return g->thin.k_major ? skinny_pack_of(g) : 4 * g->thin.big_parts;
}

/* K that a block multiplies in one step. The K of a unit is a multiple of it. */
static int step_of(const skinny_geometry *g)
{
    return group_of(g) * g->layout->unroll *
           (g->thin.k_major ? g->layout->lanes_k : g->layout->warps);
}

/* Whether the big operand is loaded straight into registers; otherwise cp.async copies it to rings
 * in shared memory. */
static bool is_straight(const skinny_geometry *g, int width)
{
    return g->size != 4 || width == 4;
}

/* Groups of K in a step, if copies have this width. Each scalar load of 16 bits takes a register of
 * its own: such a step has half as many groups. */
static int skinny_unroll_of(const skinny_geometry *g, int width)
{
    const int unroll = g->layout->unroll;
    if (!is_straight(g, width)) return 1;
    return g->size == 2 && width == 1 && unroll > 1 ? unroll / 2 : unroll;
}

/* Floats of a stage of a warp's ring: one step, with padding. With rings UNROLL is 1. */
static int stage_floats(const skinny_geometry *g)
{
    const skinny_layout *l = g->layout;
    const int lines_of_warp = 32 / l->lanes_k * l->results;
    return 32 * l->results * 4 + (g->thin.k_major ? lines_of_warp * (l->lanes_k % 32) : 0);
}

/* Bytes of shared memory of a block. It always has two buffers for the small operand; with 16-bit
 * elements one of them holds these elements, the other the converted ones. If copies of F32 are
 * narrow, there are also the rings; if the big operand is MN-major, also the sums of the warps. */
static int skinny_shared_bytes(const skinny_geometry *g, int width)
{
    const skinny_layout *l = g->layout;
    const int count = g->row->count, sum_size = g->size == 8 ? 8 : 4;
    const int rings = is_straight(g, width) ? 0 : l->warps * l->stages * stage_floats(g) * 4;
    const int units = count / g->thin.small_parts * group_of(g) * sum_size / 16;
    const int small = l->depth / group_of(g) * (units + 1 - units % 2) * 16;
    const int buffers = g->size == 2 ? small + count * (l->depth + 8) * 2 : 2 * small;
    const int sum_line = width == 8 ? 36 : 40;
    const int sums = l->warps * (count < 4 ? count : 4) * l->results * sum_line * sum_size;
    return rings + buffers + (g->thin.k_major ? 0 : sums);
}

static const skinny_layout *layout_of(const skinny_geometry *g)
{
    const skinny_row *row = g->row;
    if (g->size == 2) return g->thin.k_major ? &row->bits16.k_major : &row->bits16.mn_major;
    if (g->size == 8) return g->thin.k_major ? &row->f64.k_major : &row->f64.mn_major;
    return g->thin.k_major ? &row->f32.k_major : &row->f32.mn_major;
}

/* Sets the layout of the big operand, the width of its copies, and the members of *g that follow
 * from these. */
static void skinny_look_at_operands(const tgl_shape *s, skinny_geometry *g)
{
    g->size = (int)tgl_type_size(s->type_a);
    g->layout = layout_of(g);
    g->width = tgl_thin_width(s, &g->thin);
    const skinny_layout *l = g->layout;
    g->tile = g->thin.k_major ? l->warps * (32 / l->lanes_k) * l->results : 32 * l->results;
    g->step.threads = l->warps * 32;
    g->step.registers = l->registers;
    g->step.dynamic_shared = skinny_shared_bytes(g, g->width);
    g->step.dynamic_shared_unaligned = skinny_shared_bytes(g, 1);
    g->step.vec_a = g->thin.big_a ? g->width : 1;
    g->step.vec_b = g->thin.big_a ? 1 : g->width;
    g->step.args.small_k_major = g->thin.big_a ? s->trans_b : !s->trans_a;
}

static int64_t tiles_of(const skinny_geometry *g)
{
    return tgl_ceil_div(g->thin.length, g->tile);
}

/* The number of units of a tile. */
static int64_t units_of_tile(const tgl_shape *s, const skinny_geometry *g)
{
    const int chunk = g->step.args.k_chunk;
    return s->k > chunk ? tgl_ceil_div(s->k, chunk) : 1;
}

/* Divides the tiles into units (parts of K), and sets the grid. Returns NULL, or why that is
 * impossible. */
static const char *share_work(const tgl_shape *s, const tgl_choice *choice, skinny_geometry *g)
{
    const int64_t asked = tgl_option(choice, SPLITS, 1), blocks = tgl_option(choice, BLOCKS, 0);
    const int64_t chunk = tgl_round_up(tgl_ceil_div(s->k, asked < 1 ? 1 : asked), step_of(g));
    tgl_gemm_step *step = &g->step;
    step->args.k_chunk = chunk > 0 && chunk <= INT_MAX ? (int)chunk : INT_MAX;
    const int64_t per_tile = units_of_tile(s, g), units = tiles_of(g) * per_tile;
    if (units > TGL_GRID_X_MAX / 2) return tgl_grid_too_large;
    step->blocks = blocks > 0 && blocks < units ? blocks : units;
    if (per_tile == 1) return NULL;
    const int64_t each = units / step->blocks; /* minimum number of units of a block */
    step->args.splits = (int)(each == 1 ? per_tile : tgl_ceil_div(per_tile - 1, each) + 1);
    step->counter_bytes = step->batch_step * tiles_of(g) * (int64_t)sizeof(unsigned);
    step->scratch_bytes = step->batch_step * step->blocks * 2 * g->tile * g->row->count *
                          (int64_t)tgl_type_size(s->type_accumulate);
    return NULL;
}

/* Returns NULL, or why the choice cannot compute the product. */
static const char *skinny_make_geometry(const tgl_shape *s, const tgl_choice *choice,
                                        skinny_geometry *g)
{
    const skinny_row *row = tgl_choice_row(choice);
    *g = (skinny_geometry){.row = row,
                           .thin = tgl_thin_of(s),
                           .step = {.name = row->name,
                                    .file = "gemm/skinny.cu",
                                    .symbol = "sgemm_skinny",
                                    .local_bytes = TGL_SPILL_MAX,
                                    .batch_step = (int)tgl_min64(s->batch, TGL_GRID_YZ_MAX),
                                    .args = {.splits = 1, .cluster = 1}}};
    const char *why = tgl_thin_unsupported(&g->thin, row->count);
    if (why != NULL) return why;
    skinny_look_at_operands(s, g);
    return share_work(s, choice, g);
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Constants of the cost model, fitted to measurements on an H200. */
enum {
    BLOCK_CYCLES = 10000, /* cycles of a block before its first load and after its last one */
    SUM_CYCLES = 2500,    /* cycles to add the partial sums of a few splits */
    SPLIT_CYCLES = 150,   /* more cycles for each split of a tile and four sums of a thread */
};

static const double LEAST_FFMA_SHARE = 0.5; /* minimum of ffma_share() */

/* Bytes of loads that a block has in flight. */
static double bytes_in_flight(const skinny_geometry *g)
{
    const int steps =
        is_straight(g, g->width) ? skinny_unroll_of(g, g->width) : g->layout->stages - 1;
    const int packs =
        g->thin.k_major ? g->layout->results : 4 * g->layout->results / skinny_pack_of(g);
    return 16.0 * g->step.threads * packs * steps;
}

/* The fraction of the time of FFMAs that loads do not hide. The fraction is larger with few warps,
 * and 1 with narrow copies. blocks: resident blocks per SM. */
static double ffma_share(const skinny_geometry *g, int blocks)
{
    const int warps = blocks * g->step.threads / 32 / TGL_SCHEDULERS;
    return !is_straight(g, g->width) ? 1 : warps < 3 ? 0.8 : LEAST_FFMA_SHARE;
}

/* Cycles of a block to add the partial sums of a tile's splits: a loop over groups of four sums, in
 * which a thread waits for L2 once for a few splits. */
static double skinny_sum_cycles(const skinny_geometry *g)
{
    const int64_t fours = tgl_ceil_div(g->tile * g->row->count, 4 * g->step.threads);
    return SUM_CYCLES + (double)(SPLIT_CYCLES * g->step.args.splits * fours);
}

/* Sets the times of *c. FFMAs and loads overlap only partly: memory time + ffma_share() * FFMA
 * time. */
static void skinny_predict_time(const tgl_chip *chip, const tgl_shape *s, const skinny_geometry *g,
                                tgl_candidate *c)
{
    const double k = (double)s->k, batch = (double)s->batch, length = (double)g->thin.length;
    const double clock = 1e6 * chip->clock_mhz;
    const double slots = (double)chip->sms * c->resident;
    const int64_t tiles = tiles_of(g), units = tiles * units_of_tile(s, g);
    c->blocks = batch * (double)g->step.blocks;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double rounds = (double)(int64_t)((c->blocks + slots - 1) / slots);
    /* balance: the average fraction of the time in which a block works. Blocks with fewer units
     * than others idle at the end, and the last round of blocks may leave slots on SMs empty. */
    const double units_max = (double)tgl_ceil_div(units, g->step.blocks);
    const double balance = batch * (double)units / (rounds * active * units_max);
    const double lanes = tgl_fma_lanes(chip, s->type_accumulate) * chip->sms;
    const int per_sm = (int)((active + chip->sms - 1) / chip->sms); /* blocks of the busiest SM */
    const double busy = active / ((double)per_sm * chip->sms); /* fraction of the SMs that work */
    /* The conversion of a 16-bit element takes as long as an FFMA. */
    const double ffmas = batch * (g->row->count + (g->size == 2)) * (double)(tiles * g->tile) * k;
    const bool is_split = g->step.args.splits > 1;
    const double sums = is_split ? 2 * (double)g->step.scratch_bytes : 0;
    const double around = is_split ? BLOCK_CYCLES + skinny_sum_cycles(g) : BLOCK_CYCLES;
    c->compute = ffmas / (lanes * clock * busy * balance);
    c->memory = (tgl_operand_bytes(s) + sums) /
                    (tgl_stream_rate(chip, active, bytes_in_flight(g)) * balance) +
                ffma_share(g, per_sm) * c->compute + rounds * around / clock;
    if (c->blocks > chip->sms) c->memory += TGL_LATE_LAUNCH_SECONDS;
    const double of_small = (double)g->row->count / g->thin.small_parts * (double)tiles;
    c->l2 = g->size * batch * k * (of_small + length / g->thin.big_parts) / chip->l2_rate;
}

static void skinny_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    skinny_geometry g;
    const char *why = skinny_make_geometry(s, &c->choice, &g);
    if (tgl_gemm_predict(chip, s, why, &g.step, c)) skinny_predict_time(chip, s, &g, c);
}

/* ---- Lower bounds ---------------------------------------------------------------------------- */

/* State shared by the lower bounds of all candidates of one configuration. A bound lets the search
 * skip candidates that cannot be the fastest. */
typedef struct skinny_bound {
    const tgl_chip *chip;
    double batch, slots;     /* slots: room for blocks on the chip */
    double bytes, in_flight; /* bytes of the operands and D; bytes that a block requests at once */
    double ffma_seconds;     /* minimum seconds of FFMAs that loads do not hide, if all SMs are
                                busy */
} skinny_bound;

static skinny_bound skinny_bound_of(const tgl_chip *chip, const tgl_shape *s,
                                    const skinny_geometry *g, int resident)
{
    const double lanes = tgl_fma_lanes(chip, s->type_accumulate) * chip->sms;
    const double ffmas = (double)s->batch * (g->row->count + (g->size == 2)) *
                         (double)(tiles_of(g) * g->tile) * (double)s->k;
    return (skinny_bound){.chip = chip,
                          .batch = (double)s->batch,
                          .slots = (double)chip->sms * resident,
                          .bytes = tgl_operand_bytes(s),
                          .in_flight = bytes_in_flight(g),
                          .ffma_seconds =
                              LEAST_FFMA_SHARE * ffmas / (lanes * 1e6 * chip->clock_mhz)};
}

/* A lower bound of the seconds with `blocks` blocks per problem. sums: bytes of the blocks' partial
 * sums; 0: no tile is split. */
static double skinny_least_of(const skinny_bound *b, double blocks, double sums)
{
    const double all = b->batch * blocks, active = all < b->slots ? all : b->slots;
    const double busy = active < b->chip->sms ? active / b->chip->sms : 1;
    const double cycles = sums > 0 ? BLOCK_CYCLES + SUM_CYCLES : BLOCK_CYCLES;
    const double late = all > b->chip->sms ? TGL_LATE_LAUNCH_SECONDS : 0;
    return TGL_LAUNCH_SECONDS + late + b->ffma_seconds / busy +
           (b->bytes + 2 * sums) / tgl_stream_rate(b->chip, active, b->in_flight) +
           cycles / (1e6 * b->chip->clock_mhz);
}

/* A lower bound of the seconds with any number of blocks. */
static double skinny_least_of_all(const skinny_bound *b)
{
    return skinny_least_of(b, b->slots, 0) - TGL_LATE_LAUNCH_SECONDS;
}

static double skinny_least_seconds(const tgl_chip *chip, const tgl_shape *s,
                                   const tgl_choice *choice)
{
    skinny_geometry g;
    tgl_candidate c = {.choice = *choice};
    const char *why = skinny_make_geometry(s, choice, &g);
    if (!tgl_gemm_predict(chip, s, why, &g.step, &c)) return 0; /* no bound: it is rejected */
    const skinny_bound b = skinny_bound_of(chip, s, &g, c.resident);
    return skinny_least_of_all(&b);
}

/* ---- Search ---------------------------------------------------------------------------------- */

static void try_work(tgl_search *in, int64_t splits, int64_t blocks)
{
    const int64_t values[] = {splits, blocks};
    tgl_search_try(in, SPLITS, 2, values, 0);
}

/* Tries splits of equal size, one per block. If several numbers of splits round to one size, this
 * size is tried once. */
static void try_equal_splits(tgl_search *in, const skinny_geometry *g, const skinny_bound *bound,
                             int64_t splits_max)
{
    const tgl_shape *s = in->shape;
    const int64_t steps = tgl_ceil_div(s->k, step_of(g)), tiles = tiles_of(g);
    const double sums = (double)(2 * g->tile * g->row->count) *
                        (double)tgl_type_size(s->type_accumulate) * g->step.batch_step;
    int64_t latest = 0;
    for (int64_t splits = 2; splits <= splits_max; splits++) {
        const int64_t steps_of_split = tgl_ceil_div(steps, splits);
        if (steps_of_split == latest) continue;
        latest = steps_of_split;
        const double blocks = (double)(tiles * tgl_ceil_div(steps, steps_of_split));
        tgl_search_try(in, SPLITS, 1, &splits, skinny_least_of(bound, blocks, blocks * sums));
    }
}

/* Tries three divisions of the work. 1: each block gets the same number of whole tiles. 2: as many
 * blocks as the chip holds at once get the same number of units (parts of a tile's K). 3: each tile
 * is split into equal parts, one for each block. */
static void skinny_search(tgl_search *in)
{
    enum { UNITS = 24 }; /* units per block: so many that one unit more or less matters little */
    skinny_geometry g;
    if (skinny_make_geometry(in->shape, &in->best->choice, &g) != NULL) return;
    const int64_t batch = in->shape->batch, tiles = g.step.blocks;
    const int64_t slots = tgl_ceil_div((int64_t)in->chip->sms * in->best->resident, batch);
    const int64_t deepest = tgl_ceil_div(in->shape->k, step_of(&g));
    const int64_t rounds = tgl_ceil_div(tiles, slots), units = tgl_ceil_div(UNITS * slots, tiles);
    const skinny_bound bound = skinny_bound_of(in->chip, in->shape, &g, in->best->resident);
    if (tgl_search_excludes(in, skinny_least_of_all(&bound))) return;
    try_work(in, 1, tgl_ceil_div(tiles, rounds));
    if (deepest < 2) return;
    try_work(in, tgl_min64(units, deepest), slots);
    try_equal_splits(in, &g, &bound, tgl_min64(deepest, slots / tiles));
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void skinny_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                              tgl_list_builder *builder)
{
    const skinny_geometry *g = geometry;
    const skinny_layout *l = g->layout;
    const int width = is_unaligned ? 1 : g->width;
    const tgl_macro macros[] = {{"BIG_A", g->thin.big_a},
                                {"ALONG_K", g->thin.k_major},
                                {"COUNT", g->row->count},
                                {"VEC", width},
                                {"RESULTS", l->results},
                                {"LANES_K", l->lanes_k},
                                {"UNROLL", skinny_unroll_of(g, width)},
                                {"STAGES", l->stages},
                                {"WARPS", l->warps},
                                {"DEPTH", l->depth},
                                {"MIN_BLOCKS", l->min_blocks}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
    if (s->pairs_b != 0) tgl_list_macro(builder, "PAIRS", g->thin.pairs);
}

static void skinny_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    skinny_geometry g;
    const tgl_shape own = tgl_part_shape(of->shape, &of->part);
    if (tgl_gemm_fails(skinny_make_geometry(&own, &of->choice, &g), builder)) return;
    tgl_gemm_launch(of, &g.step, skinny_add_macros, &g, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void skinny_explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                           tgl_text *out)
{
    skinny_geometry g;
    (void)chip;
    if (skinny_make_geometry(shape, choice, &g) != NULL) return;
    tgl_gemm_explain_split(&g.step, 0, out);
    tgl_gemm_explain_copies(shape, &g.step, out);
}

static bool skinny_example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    *shape = tgl_example_shape(type, skinny_rows[index].count, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    return true;
}

const tgl_family tgl_family_skinny = {
    .name = "skinny",
    .summary = "products with at most 16 rows or columns",
    .reads = TGL_DIRECT_PAIRS,
    .options = skinny_options,
    .serves_strips = true,
    TGL_ROWS(skinny_rows),
    .lines = skinny_lines,
    .unsupported_reason = tgl_unsupported_on_cuda_cores,
    .search = skinny_search,
    .least_seconds = skinny_least_seconds,
    .predict = skinny_predict,
    .launch = skinny_launch,
    .explain = skinny_explain,
    .example = skinny_example,
};
