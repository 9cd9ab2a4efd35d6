/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/dmma.cu: products of f64 on the tensor cores of sm_90 and later. TMA copies the operands. A
 * step of K is DMMA_BK elements of K, which one stage holds. A unit of work is a tile, or one split
 * of a tile over K.
 */
#include "families/dmma_geometry.h"
#include "families/gemm_arguments.h"
#include "families/unsupported.h"

#include <limits.h>
#include <math.h>

/* ---- Configurations -------------------------------------------------------------------------- */

/* Columns: name, BM, BN, WM, SLICES, AHEAD, STAGES, MIN_BLOCKS, registers, share. Configurations
 * with slices (_s2, _s4) are for launches of few tiles: the slices give each warp scheduler one to
 * three warps, even if an SM has only one block. Tiles of 96 rows or columns are for products whose
 * last wave would leave many SMs idle with other tiles. */
// clang-format off
static const dmma_row dmma_rows[] = {
    {"dmma_128x128", 128, 128, 64, 1, 2,  6, 1, 168, 0.94},
    {"dmma_128x96",  128,  96, 32, 1, 1,  7, 1, 128, 0.92},
    {"dmma_96x128",   96, 128, 48, 1, 1,  7, 1, 168, 0.91},
    {"dmma_96x64_s2", 96,  64, 48, 2, 1,  8, 1, 168, 0.89},
    {"dmma_64x96_s2", 64,  96, 32, 2, 1,  8, 1, 128, 0.90},
    {"dmma_128x64",  128,  64, 64, 1, 1,  4, 2, 128, 0.85},
    {"dmma_64x128",   64, 128, 64, 1, 1,  4, 2, 128, 0.85},
    {"dmma_64x64",    64,  64, 32, 1, 2,  6, 2, 168, 0.91},
    {"dmma_64x64_s2", 64,  64, 32, 2, 1, 10, 1, 168, 0.92},
    {"dmma_64x32",    64,  32, 32, 1, 2,  6, 3, 168, 0.65},
    {"dmma_64x32_s2", 64,  32, 32, 2, 2, 12, 1, 232, 0.86},
    {"dmma_64x32_s4", 64,  32, 32, 4, 2, 12, 1, 168, 0.81},
    {"dmma_32x64",    32,  64, 32, 1, 2,  6, 3, 168, 0.65},
    {"dmma_16x128",   16, 128, 16, 1, 1,  6, 2, 150, 1.00},
    {"dmma_16x64",    16,  64, 16, 1, 1,  7, 3, 151, 0.77},
    {"dmma_32x32",    32,  32, 16, 1, 1,  8, 3, 151, 0.72},
    {"dmma_32x32_s2", 32,  32, 16, 2, 1,  8, 3, 128, 0.77},
    {"dmma_32x32_s4", 32,  32, 16, 4, 1, 24, 1, 156, 0.70},
};
// clang-format on

/* splits: number of blocks that divide the K of a tile among them. whole: the first `whole` tiles
 * are not split. exchanged=1: the kernel computes tiles of D^T. */
static const char *const dmma_options[] = {"splits", "whole", "exchanged", NULL};
enum { SPLITS, WHOLE, EXCHANGED };

/* ---- What it takes --------------------------------------------------------------------------- */

/* Whether TMA can read the operand. The stride between lines, and between matrices if there are
 * several, must be a multiple of 16 bytes. */
static bool has_map_alignment(const tgl_shape *s, int64_t lines, int64_t ld, int64_t stride)
{
    const int64_t unit = TGL_MAP_ALIGNMENT / (int64_t)sizeof(double);
    return s->k == 0 || ((lines == 1 || ld % unit == 0) && (s->batch == 1 || stride % unit == 0));
}

static const char *dmma_unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
{
    if (s->type_a != TGL_F64 || s->type_b != TGL_F64 || s->type_accumulate != TGL_F64)
        return "it multiplies f64";
    if (s->type_c != TGL_F64 || s->type_d != TGL_F64) return "its C and D are f64";
    if ((chip->features & TGL_HAS_TMA) == 0) return "the chip or its driver has no TMA";
    if (chip->capability == 90 && (chip->features & TGL_HAS_WGMMA) == 0)
        return "this NVRTC has no setmaxnreg, an instruction of sm_90a";
    if (chip->tensor_f64_flops == 0) return "the chip's tensor cores do not multiply f64";
    if (s->pointers) return "tensor maps describe no batches of pointers";
    if (s->unaligned) return "TMA takes matrices that begin at multiples of 16 bytes";
    if (!tgl_has_map_strides(s)) return "TMA takes strides below 2^40 bytes";
    if (!has_map_alignment(s, s->trans_a ? s->k : s->m, s->lda, s->stride_a) ||
        !has_map_alignment(s, s->trans_b ? s->n : s->k, s->ldb, s->stride_b))
        return "TMA takes strides that are multiples of 16 bytes";
    if (s->batch > TGL_EXTENT_MAX) return "it counts the problems of a batch in 31 bits";
    return tgl_gemm_unsupported_reason(s);
}

/* ---- Geometry -------------------------------------------------------------------------------- */

static void dmma_split(const tgl_shape *s, const tgl_choice *choice, struct tgl_gemm_args *args)
{
    const int64_t asked = tgl_min64(tgl_option(choice, SPLITS, 1), TGL_SPLITS_MAX);
    args->splits = args->cluster = 1;
    args->k_chunk = (int)tgl_round_up(s->k, DMMA_BK);
    if (asked < 2 || s->k <= DMMA_BK) return;
    args->k_chunk = (int)tgl_round_up(tgl_ceil_div(s->k, asked), DMMA_BK);
    args->splits = (int)tgl_ceil_div(s->k, args->k_chunk);
}

/* Bytes of local memory that a thread may use. With fewer than 48 rows, an iteration of a warp's
 * main loop, which multiplies two stages, leaves few registers for the code after the loop:
 * NVRTC 13.5 spills up to 72 bytes there, once per unit, and none in the main loop. NVRTC 13.0
 * spills none. */
static int spill_limit(const dmma_row *t)
{
    return t->wm < 48 ? 80 : 0;
}

/* Whether warps need more registers than at launch. The producer is then a whole warpgroup, because
 * only a warpgroup can give them its registers (setmaxnreg). */
static bool sets_registers(const dmma_row *t, int warps)
{
    return t->wm > 32 || warps == 12;
}

/* Returns NULL, or why the choice cannot compute `part`, a rectangle of D. */
static const char *dmma_make_geometry(const tgl_chip *chip, const tgl_shape *s,
                                      const tgl_rectangle *part, const tgl_choice *choice,
                                      dmma_geometry *g)
{
    enum { BARRIER = 8 /* bytes */, UNITS_MAX = (1 << 30) - 1 /* limit of lib/wgmma_units.h */ };
    const dmma_row *t = tgl_choice_row(choice);
    const int warps = t->bm / t->wm * (t->bn / DMMA_WARP_COLUMNS) * t->slices;
    *g = (dmma_geometry){
        .row = t,
        .exchanged = tgl_option(choice, EXCHANGED, 0) != 0,
        .warps = warps,
        .step = {.name = t->name,
                 .file = "gemm/dmma.cu",
                 .symbol = "gemm_dmma",
                 .needs = TGL_HAS_TMA,
                 .threads = warps * 32 + (sets_registers(t, warps) ? 128 : 32),
                 .registers = t->registers,
                 .local_bytes = spill_limit(t),
                 .static_shared = TGL_RING_STATIC_SHARED,
                 .dynamic_shared =
                     t->stages * (dmma_stage_lines(s, t) * DMMA_LINE_BYTES + 2 * BARRIER) +
                     (t->slices - 1) * t->bm * t->bn * (int)sizeof(double),
                 .vec_a = 1,
                 .vec_b = 1,
                 .batch_step = (int)s->batch,
                 .loops_over_batch = true,
                 .is_persistent = true}};
    tgl_gemm_step *step = &g->step;
    if (s->pairs_b != 0 && g->exchanged) return "it computes no tiles of D^T of complex matrices";
    dmma_split(s, choice, &step->args);
    g->tile_rows = tgl_ceil_div(g->exchanged ? part->n : part->m, t->bm);
    g->tile_columns = tgl_ceil_div(g->exchanged ? part->m : part->n, t->bn);
    if ((double)g->tile_rows * (double)g->tile_columns * (double)s->batch * step->args.splits >
        UNITS_MAX)
        return tgl_grid_too_large;
    const int64_t tiles = g->tile_rows * g->tile_columns * s->batch;
    const int splits = step->args.splits;
    if (splits > 1) {
        g->whole = tgl_min64(tgl_option(choice, WHOLE, 0), tiles);
        step->scratch_bytes = (tiles - g->whole) * splits * t->bm * t->bn * (int64_t)sizeof(double);
        step->counter_bytes = (tiles - g->whole) * (int64_t)sizeof(unsigned);
    }
    g->units = g->whole + (tiles - g->whole) * splits;
    step->args.tiles_whole = (int)g->whole;
    step->blocks = tgl_persistent_blocks(chip, t->min_blocks, 1, g->units);
    step->args.raster = tgl_square_raster(chip, t->bm, t->bn, 1, g->tile_rows);
    return NULL;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

static void dmma_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    dmma_geometry g;
    const tgl_rectangle part = tgl_whole(s);
    const char *why = dmma_make_geometry(chip, s, &part, &c->choice, &g);
    if (!tgl_gemm_predict(chip, s, why, &g.step, c)) return;
    /* The grid has min_blocks blocks per SM, even if more would fit. */
    c->resident = (int)tgl_min64(c->resident, g.row->min_blocks);
    tgl_dmma_predict_time(chip, s, &g, c);
}

/* ---- Search ---------------------------------------------------------------------------------- */

enum { DEPTH_MIN = 4 /* minimum depth of a split, in units of DMMA_BK */ };

static tgl_choice choice_of(const tgl_choice *asked, int64_t splits, int64_t whole, bool exchanged)
{
    tgl_choice choice = *asked;
    choice.option[SPLITS] = splits;
    choice.option[WHOLE] = whole > 0 ? whole : TGL_UNSET;
    choice.option[EXCHANGED] = exchanged ? 1 : TGL_UNSET;
    return choice;
}

static void try_options(tgl_search *in, const dmma_bound *b, int splits, int64_t whole)
{
    const tgl_choice choice = choice_of(&in->asked, splits, whole, b->g->exchanged);
    tgl_search_try(in, SPLITS, EXCHANGED + 1, &choice.option[SPLITS],
                   tgl_dmma_least_of_options(b, splits, whole));
}

/* Tries to split all tiles, unless one split fewer would already give two waves; for D^T also tries
 * no splits. If there are several waves, and the tiles of the last one fill at most half of it,
 * also tries to split only these tiles. */
static void try_splits(tgl_search *in, bool exchanged)
{
    dmma_geometry g;
    dmma_bound b;
    const tgl_shape *s = in->shape;
    const tgl_rectangle part = tgl_whole(s);
    const dmma_row *t = tgl_choice_row(&in->asked);
    const tgl_choice whole_tiles = choice_of(&in->asked, 1, 0, exchanged);
    if (dmma_make_geometry(in->chip, s, &part, &whole_tiles, &g) != NULL) return;
    tgl_dmma_bound_start(in->chip, s, &g, in->best->resident, &b);
    const int64_t slots = (int64_t)in->chip->sms * t->min_blocks;
    const int splits_max = (int)tgl_min64(s->k / (DEPTH_MIN * DMMA_BK), TGL_SPLITS_MAX);
    if (exchanged) try_options(in, &b, 1, 0);
    for (int i = 2; i <= splits_max && b.tiles * (i - 1) < 2 * (double)slots &&
                    !tgl_search_excludes(in, tgl_dmma_least_of_splits(&b, i));
         i = tgl_next_splits(i))
        try_options(in, &b, i, 0);
    if (b.tiles <= (double)slots || b.tiles > INT_MAX) return;
    const int64_t tiles = (int64_t)b.tiles, whole = tiles / slots * slots, rest = tiles - whole;
    for (int i = 2; rest > 0 && i <= splits_max && i * rest <= slots &&
                    !tgl_search_excludes(in, tgl_dmma_least_of_splits(&b, i));
         i++)
        try_options(in, &b, i, whole);
}

static void dmma_search(tgl_search *in)
{
    const dmma_row *t = tgl_choice_row(&in->asked);
    const tgl_shape *s = in->shape;
    try_splits(in, false);
    /* Only tiles with BM = 16 gain from D^T. All others except 64x32 with slices are square, or
     * another configuration has BM and BN exchanged. */
    if (t->bm == 16 && s->pairs_b == 0) try_splits(in, true);
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* The tensor map of an operand. tile: rows or columns of the operand in a tile. A complex matrix is
 * mapped as it is stored, as pairs of real numbers. The map of an MN-major matrix, or of a K-major
 * B, then has half as many lines as the real matrix has. */
static tgl_tensor dmma_tensor_of(const tgl_shape *s, const tgl_rectangle *part, bool is_a, int tile)
{
    const int64_t size = (int64_t)sizeof(double);
    const bool k_major = is_a ? !s->trans_a : s->trans_b;
    const bool is_pairs = is_a ? s->pairs_a : s->pairs_b != 0;
    const int of_line = is_pairs ? 2 : 1;
    const int64_t part_edge = is_a && is_pairs ? 2 * part->m : is_a ? part->m : part->n;
    const int64_t edge = part_edge > 0 ? part_edge : 1, k = s->k > 0 ? s->k : 1;
    const int64_t lines = tgl_ceil_div(k_major ? edge : k, of_line);
    const int64_t ld = is_a ? s->lda : s->ldb, stride = is_a ? s->stride_a : s->stride_b;
    const int64_t count = stride == 0 ? 1 : s->batch;
    return (tgl_tensor){
        .base = TGL_VALUE_OPERAND,
        .operand = (int)(is_a ? TGL_AT_A : TGL_AT_B),
        .offset = size * (is_a ? tgl_gemm_offset_a(s, part) : tgl_gemm_offset_b(s, part)),
        .type = TGL_F64,
        .rank = 3,
        .size = {k_major ? k : edge, lines, count},
        /* A single line or matrix has no stride, but the map needs a legal one. */
        .stride = {size, tgl_round_up(ld * size, TGL_MAP_ALIGNMENT),
                   count > 1 ? tgl_round_up(stride * size, TGL_MAP_ALIGNMENT) : TGL_MAP_ALIGNMENT},
        .box = {DMMA_BK, (k_major ? tile : DMMA_BK) / of_line, 1},
        .swizzle_bytes = DMMA_LINE_BYTES,
    };
}

static void dmma_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                            tgl_list_builder *builder)
{
    const dmma_geometry *g = geometry;
    const dmma_row *t = g->row;
    const tgl_macro macros[] = {{"BM", t->bm},
                                {"BN", t->bn},
                                {"WM", t->wm},
                                {"SLICES", t->slices},
                                {"AHEAD", t->ahead},
                                {"STAGES", t->stages},
                                {"MIN_BLOCKS", t->min_blocks},
                                {"EXCHANGED", g->exchanged},
                                {"TRANS_A", g->exchanged ? !s->trans_b : s->trans_a},
                                {"TRANS_B", g->exchanged ? !s->trans_a : s->trans_b}};
    (void)is_unaligned;
    if (s->pairs_b != 0) tgl_list_macro(builder, "PAIRS", s->pairs_b);
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

static void dmma_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    dmma_geometry g;
    const tgl_shape *s = of->shape;
    if (tgl_gemm_fails(dmma_make_geometry(of->chip, s, &of->part, &of->choice, &g), builder))
        return;
    const tgl_tensor maps[] = {dmma_tensor_of(s, &of->part, !g.exchanged, g.row->bm),
                               dmma_tensor_of(s, &of->part, g.exchanged, g.row->bn)};
    g.step.maps = maps;
    g.step.map_count = 2;
    tgl_gemm_launch(of, &g.step, dmma_add_macros, &g, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void dmma_explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                         tgl_text *out)
{
    dmma_geometry g;
    const tgl_rectangle part = tgl_whole(shape);
    if (dmma_make_geometry(chip, shape, &part, choice, &g) != NULL) return;
    tgl_text_add(out, "tiles       %lld x %lld%s, bands of %d rows\n", (long long)g.tile_rows,
                 (long long)g.tile_columns, g.exchanged ? " of the transposed D" : "",
                 g.step.args.raster);
    if (g.whole > 0)
        tgl_text_add(out, "whole       %lld tiles, the others split\n", (long long)g.whole);
    tgl_gemm_explain_split(&g.step, 0, out);
}

static bool dmma_example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    (void)index;
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    return type == TGL_F64;
}

const tgl_family tgl_family_dmma = {
    .name = "dmma",
    .summary = "f64 on tensor cores by TMA, sm_90 and later",
    .options = dmma_options,
    TGL_ROWS(dmma_rows),
    .unsupported_reason = dmma_unsupported_reason,
    .reads = TGL_DIRECT_PAIRS,
    .search = dmma_search,
    .predict = dmma_predict,
    .launch = dmma_launch,
    .explain = dmma_explain,
    .example = dmma_example,
};
