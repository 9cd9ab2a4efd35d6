/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/dequant.cu: weights of 8 and 4 bits whose K is contiguous, times at most 16 rows of A. Its
 * time is the time to read the weights once.
 */
#include "families/gemm_arguments.h"
#include "families/gemm_launch.h"
#include "families/unsupported.h"

#include <limits.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef struct dequant_row {
    const char *name;
    int count;          /* macro COUNT: maximum number of rows of A */
    int warps;          /* macro WARPS: number of warps that multiply */
    int depths;         /* macro DEPTHS: number of warps that share rows of weights, each with a
                           part of K */
    int rows;           /* macro ROWS: number of rows of weights that a warp multiplies */
    int stages;         /* macro STAGES: number of stages in shared memory, each of one step of K */
    bool has_tma;       /* one more warp copies the weights by TMA */
    int blocks;         /* macro MIN_BLOCKS: minimum resident blocks of an SM, which limits the
                           registers */
    int registers;      /* per thread, as compiled for sm_90a: the maximum over all types and sizes
                           of a group of K */
    int rate_4, rate_8; /* percentage of tgl_stream_rate() at which a launch that fills the chip
                           reads weights of i4, and of i8 */
} dequant_row;

/* Columns: the members of dequant_row, in order. A name has the rows of weights of a block x COUNT.
 * Suffix _w4, _w8 or _w16: 4, 8 or 16 warps multiply, and one more warp copies the weights by TMA.
 * In configurations without a suffix all warps copy by cp.async; they also run on chips before
 * sm_90, and with rows that begin at any address.
 *
 * The rates were measured on an H200 with BF16, groups of 128 (successive k with one scale factor)
 * and n = k = 16384; the time of BLOCK_CYCLES is not part of them. i8 has twice as many steps of K
 * as i4, and needs many warps to hide their latency. i4 is fastest with the fewest instructions:
 * warps of 32 rows that no other warp shares. If K has few steps, many stages (128x8_w8) are
 * fastest. */
// clang-format off
static const dequant_row dequant_rows[] = {
    {"dequant_128x8_w4",   8,  4, 1, 32,  5, 1, 2, 168, 88, 82},
    {"dequant_128x8_w8",   8,  8, 2, 32, 10, 1, 1, 156, 84, 92},
    {"dequant_128x8_w16",  8, 16, 2, 16,  5, 1, 1,  96, 79, 94},
    {"dequant_128x16_w8", 16,  8, 2, 32,  8, 1, 1, 168, 58, 93},
    {"dequant_256x16_w8", 16,  8, 1, 32,  4, 1, 1, 168, 81, 89},
    {"dequant_128x8",      8,  4, 1, 32,  4, 0, 1, 255, 71, 84},
    {"dequant_256x8",      8,  8, 1, 32,  2, 0, 1, 227, 88, 87},
    {"dequant_128x16",    16,  4, 1, 32,  4, 0, 1, 249, 60, 77},
    {"dequant_256x16",    16,  8, 1, 32,  2, 0, 1, 241, 71, 75},
};
// clang-format on

enum {
    LINE_BYTES = 128,       /* bytes of a row of weights in a step of K, which is the width of the
                               swizzle */
    STAGE_ALIGNMENT = 1024, /* alignment in bytes that the swizzle needs: 8 rows of LINE_BYTES */
};

static const char *const dequant_options[] = {"splits", NULL};
enum { SPLITS };

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice computes a product. */
typedef struct dequant_geometry {
    const dequant_row *row;
    int bits;     /* bits of a weight, 8 or 4 */
    int depth;    /* elements of K in a step */
    bool is_wide; /* strides are multiples of 16 bytes, in the weights and in A */
    tgl_gemm_step step;
} dequant_geometry;

/* The macro GROUP: the number of successive k that share a scale factor; 0: all of K shares one. */
static int group_macro(const tgl_shape *s)
{
    return s->weights.ld > 0 ? (int)s->weights.group : 0;
}

static int tile_of(const dequant_row *row)
{
    return row->warps / row->depths * row->rows;
}

static int threads_of(const dequant_row *row)
{
    return (row->warps + row->has_tma) * 32;
}

/* Bytes of shared memory of a block: STAGE_BYTES of lib/dequant_tiles.h for each stage. */
static int dequant_shared_bytes(const tgl_shape *s, const dequant_geometry *g)
{
    const int groups = group_macro(s) > 0 ? g->depth / group_macro(s) : 0;
    const int of_group = 4 * s->weights.has_factors + s->weights.has_zeros;
    const int bytes =
        tile_of(g->row) * (LINE_BYTES + groups * of_group) + g->row->count * g->depth * 2;
    return g->row->stages * (int)tgl_round_up(bytes, STAGE_ALIGNMENT);
}

/* Divides K into splits: sets the grid and the workspace. Returns NULL, or why that is
 * impossible. */
static const char *share_k(const tgl_shape *s, const tgl_choice *choice, dequant_geometry *g)
{
    tgl_gemm_step *step = &g->step;
    const int64_t asked = tgl_option(choice, SPLITS, 1);
    const int64_t chunk = tgl_round_up(tgl_ceil_div(s->k, asked < 1 ? 1 : asked), g->depth);
    const int64_t splits = s->k > 0 ? tgl_ceil_div(s->k, chunk) : 1;
    const int64_t sums = (int64_t)tile_of(g->row) * g->row->count * (int64_t)sizeof(float);
    step->tiles = tgl_ceil_div(s->n, tile_of(g->row));
    if (splits > TGL_SPLITS_MAX || step->tiles > TGL_GRID_X_MAX / TGL_SPLITS_MAX ||
        step->tiles > INT_MAX / step->batch_step)
        return tgl_grid_too_large;
    step->blocks = step->tiles * splits;
    step->args.splits = (int)splits;
    step->args.k_chunk = (int)tgl_min64(chunk, INT_MAX);
    if (splits == 1) return NULL;
    step->counter_bytes = step->batch_step * step->tiles * (int64_t)sizeof(unsigned);
    step->scratch_bytes = step->batch_step * step->blocks * sums;
    return NULL;
}

/* Returns NULL, or why the choice cannot compute the product. */
static const char *dequant_make_geometry(const tgl_shape *s, const tgl_choice *choice,
                                         dequant_geometry *g)
{
    const dequant_row *row = tgl_choice_row(choice);
    const int bits = s->weights.type == TGL_I4 ? 4 : 8, unit = 16 * 8 / bits;
    const bool is_wide =
        s->ldb % unit == 0 && s->stride_b % unit == 0 && s->lda % 8 == 0 && s->stride_a % 8 == 0;
    *g = (dequant_geometry){.row = row,
                            .bits = bits,
                            .depth = LINE_BYTES * 8 / bits,
                            .is_wide = is_wide,
                            .step = {.name = row->name,
                                     .file = "gemm/dequant.cu",
                                     .symbol = "gemm_dequant",
                                     .threads = threads_of(row),
                                     .registers = row->registers,
                                     .local_bytes = TGL_SPILL_MAX,
                                     .local_bytes_unaligned = 2 * TGL_SPILL_MAX,
                                     .vec_a = is_wide ? 8 : 1, /* 16 bytes of A */
                                     .vec_b = is_wide ? 8 : 1, /* 16 bytes of weights, counted in
                                                                  elements of 16 bits */
                                     .batch_step = (int)tgl_min64(s->batch, TGL_GRID_YZ_MAX),
                                     .args = {.splits = 1, .cluster = 1}}};
    if (s->m > row->count) return "it takes fewer rows of A";
    if (row->has_tma && !is_wide) return "TMA copies rows that begin at multiples of 16 bytes";
    if (row->has_tma && s->pointers) return "tensor maps describe no batches of pointers";
    if (row->has_tma && !tgl_has_map_strides(s)) return "TMA takes strides below 2^40 bytes";
    if (row->has_tma && s->batch > TGL_GRID_YZ_MAX) return tgl_grid_too_large;
    g->step.dynamic_shared = dequant_shared_bytes(s, g);
    return share_k(s, choice, g);
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Constants of the cost model, fitted to products of n = k = 2048 to 16384 on an H200. */
enum {
    BLOCK_CYCLES = 7500,  /* cycles of a block before its first copy and after its last one */
    SUM_CYCLES = 2500,    /* cycles to add the partial sums of a split tile */
    REFILL_CYCLES = 5500, /* maximum of refill_cycles() */
    ZEROS_PERCENT = 85,   /* rate with zero points, in % of the rate without them: an estimate */
};

static double bytes_of_weights(const tgl_shape *s, const dequant_geometry *g)
{
    const tgl_weights *w = &s->weights;
    const double groups = (double)tgl_ceil_div(s->k, w->group);
    const double factor = 4.0 * w->has_factors + (w->has_zeros ? 1 : 0);
    return (double)s->n * ((double)s->k * g->bits / 8 + groups * factor);
}

/* Cycles that a block waits because the stages have no room for all its steps of K at the start.
 * The copies of the later steps begin only when the first steps have arrived and are multiplied. */
static double refill_cycles(const tgl_shape *s, const dequant_geometry *g)
{
    const double k = g->step.args.splits > 1 ? (double)g->step.args.k_chunk : (double)s->k;
    const double at_start = (g->row->stages - 1) / (k / g->depth + 1);
    return at_start < 1 ? REFILL_CYCLES * (1 - at_start) : 0;
}

/* Bytes per second that `blocks` blocks read; the chip must hold these blocks at once. An SM reads
 * no faster if others are idle, so the rate is proportional to the number of busy SMs. */
static double read_rate(const tgl_chip *chip, const tgl_shape *s, const dequant_geometry *g,
                        double blocks)
{
    const dequant_row *row = g->row;
    const double in_flight = (double)((row->stages - 1) * tile_of(row) * LINE_BYTES);
    const double of_sms = blocks < chip->sms ? blocks / chip->sms : 1;
    const int percent = g->bits == 4 ? row->rate_4 : row->rate_8;
    const int with_zeros = s->weights.has_zeros ? ZEROS_PERCENT : 100;
    return tgl_stream_rate(chip, blocks, in_flight) * of_sms * percent / 100 * with_zeros / 100;
}

/* No time of arithmetic is predicted, because rate_4 and rate_8 include it: the warps' instructions
 * delay the copies of their block. */
static void dequant_predict_time(const tgl_chip *chip, const tgl_shape *s,
                                 const dequant_geometry *g, tgl_candidate *c)
{
    const double batch = (double)s->batch, k = (double)s->k;
    const double slots = (double)chip->sms * c->resident;
    const bool is_split = g->step.args.splits > 1;
    c->blocks = batch * (double)g->step.blocks;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double rounds = (double)(int64_t)((c->blocks + slots - 1) / slots);
    const double balance = c->blocks / (rounds * active);
    const double rows = (double)s->m * (k + (double)s->n);
    const double sums = is_split ? 2 * (double)g->step.scratch_bytes : 0;
    const double bytes = batch * (bytes_of_weights(s, g) + 2 * rows) + sums;
    const double cycles =
        rounds * (BLOCK_CYCLES + refill_cycles(s, g) + (is_split ? SUM_CYCLES : 0));
    c->memory =
        bytes / (read_rate(chip, s, g, active) * balance) + cycles / (1e6 * chip->clock_mhz);
    if (!g->is_wide) c->memory *= 4; /* copies of single bytes: an estimate, not measured */
    if (c->blocks > chip->sms) c->memory += TGL_LATE_LAUNCH_SECONDS;
    c->l2 = (bytes + batch * 2.0 * g->row->count * k * (double)g->step.tiles) / chip->l2_rate;
}

static void dequant_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    dequant_geometry g;
    const char *why = dequant_make_geometry(s, &c->choice, &g);
    if (g.row->has_tma && (chip->features & TGL_HAS_TMA) == 0)
        why = "the chip or its driver has no TMA";
    if (tgl_gemm_predict(chip, s, why, &g.step, c)) dequant_predict_time(chip, s, &g, c);
}

/* Tries numbers of splits until there are twice as many blocks as the chip holds at once. */
static void dequant_search(tgl_search *in)
{
    dequant_geometry g;
    if (dequant_make_geometry(in->shape, &in->best->choice, &g) != NULL) return;
    const double blocks_max = 2.0 * in->chip->sms * in->best->resident / (double)in->shape->batch;
    const int64_t steps = tgl_ceil_div(in->shape->k, g.depth);
    for (int splits = 2;
         splits <= steps && splits <= TGL_SPLITS_MAX && splits * (double)g.step.tiles <= blocks_max;
         splits = tgl_next_splits(splits)) {
        const int64_t value = splits;
        tgl_search_try(in, SPLITS, 1, &value, 0);
    }
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void dequant_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                               tgl_list_builder *builder)
{
    const dequant_geometry *g = geometry;
    const tgl_macro macros[] = {{"BITS", g->bits},
                                {"COUNT", g->row->count},
                                {"WARPS", g->row->warps},
                                {"ROWS", g->row->rows},
                                {"DEPTHS", g->row->depths},
                                {"STAGES", g->row->stages},
                                {"MAPS", g->row->has_tma},
                                {"MIN_BLOCKS", g->row->blocks},
                                {"GROUP", group_macro(s)},
                                {"FACTORS", s->weights.has_factors},
                                {"FACTOR_STEP", (int)s->weights.line_step},
                                {"ZEROS", s->weights.has_zeros},
                                {"WIDE", g->is_wide && !is_unaligned}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

/* The tensor map of the weights, as rows of bytes. If the weights do not begin at a multiple of 16
 * bytes, the run takes a kernel that does not use the map. */
static tgl_tensor tensor_of_weights(const tgl_partition *of, const dequant_geometry *g)
{
    const tgl_shape *s = of->shape;
    const bool has_batch = s->batch > 1 && s->stride_b > 0;
    const int64_t bytes = tgl_ceil_div(s->k * g->bits, 8);
    return (tgl_tensor){
        .base = TGL_VALUE_OPERAND,
        .operand = TGL_AT_B,
        .offset = tgl_gemm_offset_b(s, &of->part) * g->bits / 8,
        .type = TGL_I8,
        .rank = 3,
        .size = {bytes > 0 ? bytes : 1, of->part.n, has_batch ? s->batch : 1},
        .stride = {1, tgl_round_up(s->ldb * g->bits / 8, TGL_MAP_ALIGNMENT),
                   has_batch ? s->stride_b * g->bits / 8 : TGL_MAP_ALIGNMENT},
        .box = {LINE_BYTES, tile_of(g->row), 1},
        .swizzle_bytes = LINE_BYTES,
        .is_optional = true,
    };
}

static void dequant_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    dequant_geometry g;
    if (tgl_gemm_fails(dequant_make_geometry(of->shape, &of->choice, &g), builder)) return;
    const tgl_tensor map = tensor_of_weights(of, &g);
    if (g.row->has_tma) g.step.maps = &map, g.step.map_count = 1, g.step.needs = TGL_HAS_TMA;
    tgl_gemm_launch(of, &g.step, dequant_add_macros, &g, builder);
}

/* ---- Text, support and examples -------------------------------------------------------------- */

static void dequant_explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                            tgl_text *out)
{
    dequant_geometry g;
    (void)chip;
    if (dequant_make_geometry(shape, choice, &g) != NULL) return;
    tgl_gemm_explain_split(&g.step, 0, out);
}

static const char *dequant_unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
{
    if (!tgl_shape_has_weights(s)) return "it multiplies weights of 8 and 4 bits";
    if (s->weights.is_a || !s->trans_b)
        return "it reads weights whose K is contiguous, as B of a row-major product";
    if (s->trans_a) return "it reads rows of A, whose K is contiguous";
    return tgl_unsupported_by_mma_sync(s, chip);
}

static bool dequant_example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    if ((type != TGL_F16 && type != TGL_BF16) || trans_a || !trans_b) return false;
    *shape = tgl_example_shape(type, dequant_rows[index].count, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    shape->weights = (tgl_weights){
        .type = TGL_I4, .has_factors = true, .group = 128, .ld = TGL_EXAMPLE_SIDE, .line_step = 1};
    return true;
}

const tgl_family tgl_family_dequant = {
    .name = "dequant",
    .summary = "weights of 8 and 4 bits, with at most 16 rows of A",
    .options = dequant_options,
    .reads = TGL_DIRECT_WEIGHTS,
    TGL_ROWS(dequant_rows),
    .unsupported_reason = dequant_unsupported_reason,
    .search = dequant_search,
    .predict = dequant_predict,
    .launch = dequant_launch,
    .explain = dequant_explain,
    .example = dequant_example,
};
