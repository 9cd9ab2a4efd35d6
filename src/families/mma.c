/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/mma.cu: products on the tensor cores by mma.sync, of f16, bf16, e4m3, e5m2, FP32 as TF32,
 * f64, and int8, of any shape and alignment. A block computes a tile of D. If the tiles do not fill
 * the chip or the last wave, some of them are split over K (split-K).
 */
#include "families/bundle_grid.h"
#include "families/groups.h"
#include "families/mma_geometry.h"
#include "families/unsupported.h"

/* ---- Configurations -------------------------------------------------------------------------- */

/* Rows: from the largest tile to the smallest, those for f64 last. Columns: name, BM, BN, BK in
 * bytes, WM, WN, STAGES, SLICES, FRAGMENTS, whether it is for f64, registers of a thread.
 *
 * Warp tiles of 64 x 64 (f64: 64 x 32) need the fewest loads per mma.sync. Smaller ones leave room
 * for more warps. The stages of a block take at most 96 KB, which fit on chips with 100 KB of
 * shared memory, except in mma_128x128x128_f64, where they take 128 KB. A name has the tile with BK
 * in bytes. Suffixes of names: _w4: 4 warps, if two rows have the same tile; _s2: 2 slices, which
 * are groups of warps that divide the K of a tile among them; _f64: for f64. */
// clang-format off
static const mma_row mma_rows[] = {
    {"mma_128x256x64",          128, 256,  64, 64, 64, 4, 1, 2, false, 255},
    {"mma_256x128x64",          256, 128,  64, 64, 64, 4, 1, 2, false, 255},
    {"mma_128x128x64",          128, 128,  64, 64, 32, 4, 1, 2, false, 195},
    {"mma_128x128x128",         128, 128, 128, 64, 32, 3, 1, 2, false, 220},
    {"mma_128x128x64_w4",       128, 128,  64, 64, 64, 4, 1, 2, false, 255},
    {"mma_128x64x64",           128,  64,  64, 64, 32, 4, 1, 2, false, 198},
    {"mma_64x128x64",            64, 128,  64, 32, 64, 4, 1, 2, false, 198},
    {"mma_64x64x128",            64,  64, 128, 32, 32, 4, 1, 2, false, 158},
    {"mma_64x64x128_s2",         64,  64, 128, 32, 32, 4, 2, 2, false, 128},
    {"mma_64x32x128",            64,  32, 128, 32, 16, 4, 1, 2, false, 120},
    {"mma_32x64x128",            32,  64, 128, 16, 32, 4, 1, 2, false, 120},
    {"mma_32x32x256_s2",         32,  32, 256, 16, 16, 4, 2, 2, false,  94},
    {"mma_64x16x256_s2",         64,  16, 256, 16, 16, 4, 2, 2, false,  88},
    {"mma_16x64x256_s2",         16,  64, 256, 16, 16, 4, 2, 2, false,  88},
    {"mma_128x128x128_f64",     128, 128, 128, 64, 32, 4, 1, 1, true, 254},
    {"mma_128x64x128_f64",      128,  64, 128, 32, 32, 3, 1, 2, true, 200},
    {"mma_64x128x128_f64",       64, 128, 128, 32, 32, 3, 1, 2, true, 200},
    {"mma_64x64x128_f64",        64,  64, 128, 32, 32, 4, 1, 2, true, 200},
    {"mma_64x32x128_f64",        64,  32, 128, 32, 16, 4, 1, 2, true, 146},
    {"mma_32x64x128_f64",        32,  64, 128, 16, 32, 4, 1, 2, true, 146},
    {"mma_32x32x256_s2_f64",     32,  32, 256, 16, 16, 4, 2, 2, true, 104},
    {"mma_64x16x256_s2_f64",     64,  16, 256, 16, 16, 4, 2, 2, true, 108},
    {"mma_16x64x256_s2_f64",     16,  64, 256, 16, 16, 4, 2, 2, true, 112},
};
// clang-format on

/* splits: number of blocks that divide the K of a tile among them. whole: the first `whole` tiles
 * are not split. */
static const char *const mma_options[] = {"splits", "whole", NULL};
enum { SPLITS, WHOLE };

static void mma_tile(int index, int *m, int *n)
{
    *m = mma_rows[index].bm;
    *n = mma_rows[index].bn;
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* The number of stages: 3 with copies through registers, else that of the row. Copies through
 * registers arrive one tile late, so that more than three stages gain nothing. */
static int stages_of(const mma_geometry *g, int vec_a, int vec_b)
{
    return mma_copies_by_registers(g, vec_a, vec_b) ? 3 : g->row->stages;
}

static int sum_bytes(const mma_geometry *g)
{
    return g->row->is_f64 ? 8 : 4;
}

/* Bytes of shared memory of a block: those of the stages, or those of the sums of slices or the
 * rows of the epilogue, which reuse the memory of the stages, if that is more. */
static int mma_shared_bytes(const mma_geometry *g, int vec_a, int vec_b)
{
    const mma_row *t = g->row;
    const int stages = stages_of(g, vec_a, vec_b) * (t->bm + t->bn) * t->bk_bytes;
    const int results = t->bm / t->wm * (t->bn / t->wn) * 16 * (t->wn + 8);
    const int slices = (t->slices - 1) * t->bm * t->bn;
    const int sums = (results > slices ? results : slices) * sum_bytes(g);
    return stages > sums ? stages : sums;
}

/* Splits the tiles from number `whole` on. If K is too short, a tile has fewer splits than the
 * option asks for. */
static void mma_split_tiles(const tgl_shape *s, const tgl_choice *choice, mma_geometry *g)
{
    struct tgl_gemm_args *args = &g->step.args;
    const int64_t tiles = g->step.tiles, whole = tgl_option(choice, WHOLE, 0);
    const int64_t asked = tgl_min64(tgl_option(choice, SPLITS, 1), TGL_SPLITS_MAX);
    args->tiles_whole = (int)tiles;
    if (whole >= tiles || asked < 2) return;
    const int64_t chunk = mma_chunk_of(s, g, asked);
    const int64_t splits = chunk > 0 ? tgl_ceil_div(s->k, chunk) : 1;
    if (splits < 2) return; /* all of K is one split */
    args->splits = (int)splits;
    args->k_chunk = (int)chunk;
    args->tiles_whole = (int)whole;
    const int64_t split_tile_count = g->step.batch_step * (tiles - whole);
    g->step.counter_bytes = split_tile_count * (int64_t)sizeof(unsigned);
    g->step.scratch_bytes = split_tile_count * splits * g->row->bm * g->row->bn * sum_bytes(g);
}

/* Registers of a thread. With scale factors per block a thread also holds the sums of a block of K.
 */
static int mma_registers(const tgl_shape *s, const mma_row *t)
{
    return t->registers + (tgl_shape_has_blocked_scales(s) ? t->wm * t->wn / 32 : 0);
}

/* Whether narrow copies, which need more registers, leave too few registers for the fragments that
 * the configuration holds in advance (mma_row.fragments). vec_a, vec_b: elements of a copy. */
static bool is_crowded(const tgl_shape *s, const mma_geometry *g, int vec_a, int vec_b)
{
    enum { CROWDED = 250 }; /* registers; a thread may have 255 */
    if (tgl_shape_has_blocked_scales(s)) return mma_registers(s, g->row) >= CROWDED;
    return g->row->registers >= CROWDED && g->size * tgl_min64(vec_a, vec_b) < 16;
}

/* Elements per copy of an operand. 1 for an MN-major operand of 8 bits: it is transposed on its way
 * to shared memory, element by element (lib/mma_gathered_copies.h). */
static int mma_copy_width(const tgl_shape *s, bool is_mn_major, int64_t ld, int64_t stride)
{
    return tgl_type_size(s->type_a) == 1 && is_mn_major ? 1 : tgl_copy_width(s, 0, ld, stride);
}

/* Returns NULL, or why the choice cannot compute the product. */
static const char *mma_make_geometry(const tgl_shape *s, const tgl_choice *choice, mma_geometry *g)
{
    /* Maximum results of a warp tile with scale factors per block: with more, a thread would spill
     * registers. */
    enum { BLOCK_SUMS_MAX = 64 * 32 };
    const mma_row *t = tgl_choice_row(choice);
    const bool is_split = tgl_option(choice, SPLITS, 1) > 1;
    *g = (mma_geometry){.row = t,
                        .size = (int)tgl_type_size(s->type_a),
                        .step = {.name = t->name,
                                 .file = "gemm/mma.cu",
                                 .symbol = "gemm_mma",
                                 .threads = t->bm / t->wm * (t->bn / t->wn) * 32 * t->slices,
                                 .registers = (int)tgl_min64(mma_registers(s, t), 255),
                                 .vec_a = mma_copy_width(s, s->trans_a, s->lda, s->stride_a),
                                 .vec_b = mma_copy_width(s, !s->trans_b, s->ldb, s->stride_b),
                                 .args = {.splits = 1, .cluster = 1}}};
    if (is_split && s->grouping != TGL_GROUPED_NONE) return tgl_no_splits_of_groups;
    if (is_split && s->is_bundle) return tgl_no_splits_of_bundles;
    if (t->is_f64 != (s->type_a == TGL_F64))
        return t->is_f64 ? "it is for f64" : "it is for types other than f64";
    if (tgl_shape_has_blocked_scales(s) && t->wm * t->wn > BLOCK_SUMS_MAX)
        return "a thread has no registers for the sums of a block of K beside its own";
    const char *why = tgl_gemm_cut_tiles(s, t->bm, t->bn, is_split, &g->step);
    if (why != NULL) return why;
    mma_split_tiles(s, choice, g);
    tgl_gemm_step *step = &g->step;
    step->blocks =
        step->args.tiles_whole + (step->tiles - step->args.tiles_whole) * step->args.splits;
    step->dynamic_shared = mma_shared_bytes(g, step->vec_a, step->vec_b);
    step->dynamic_shared_unaligned = mma_shared_bytes(g, 1, 1);
    step->local_bytes_unaligned = is_crowded(s, g, 1, 1) ? TGL_SPILL_MAX : 0;
    return NULL;
}

static void mma_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    mma_geometry g;
    const char *why = mma_make_geometry(s, &c->choice, &g);
    if (tgl_gemm_predict(chip, s, why, &g.step, c)) tgl_mma_predict_time(chip, s, &g, c);
}

static double mma_least_seconds(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice)
{
    enum { ANY_RESIDENT = 1 };
    mma_geometry g;
    mma_bound bound;
    if (mma_make_geometry(s, choice, &g) != NULL) return 0; /* no bound: it is rejected */
    tgl_mma_bound_start(chip, s, &g, ANY_RESIDENT, &bound);
    return tgl_mma_least_of_all(&bound);
}

/* ---- Search ---------------------------------------------------------------------------------- */

enum {
    /* Maximum number of splits of a tile, if only the tiles of the last wave are split. */
    SPLITS_OF_TAIL_MAX = 8,
    TILES_OF_SPLIT_MIN = 4, /* minimum depth of a split, in tiles of K */
};

/* The next number of splits to try: one more up to 8, then about a fifth more. */
static int next_splits(int splits)
{
    return splits < 8 ? splits + 1 : splits + (splits + 4) / 5;
}

/* Tries to split all tiles, unless one split fewer would already give two waves. If a single
 * product has full waves and a last wave that is not full, also tries to split only the tiles of
 * that wave. */
static void mma_search(tgl_search *in)
{
    mma_geometry g;
    mma_bound bound;
    const tgl_shape *s = in->shape;
    if (mma_make_geometry(s, &in->best->choice, &g) != NULL) return;
    tgl_mma_bound_start(in->chip, s, &g, in->best->resident, &bound);
    if (tgl_search_excludes(in, tgl_mma_least_of_all(&bound))) return;
    const int64_t tiles = g.step.tiles, slots = (int64_t)in->chip->sms * in->best->resident;
    const int64_t whole = tiles / slots * slots;
    const int64_t depth = (int64_t)TILES_OF_SPLIT_MIN * g.row->bk_bytes / g.size;
    const int splits_max = (int)tgl_min64(s->k / depth, TGL_SPLITS_MAX);
    for (int i = 2; i <= splits_max && bound.tiles * (i - 1) < (double)(2 * slots) &&
                    !tgl_search_excludes(in, tgl_mma_least_of_splits(&bound, i));
         i = next_splits(i)) {
        const int64_t values[] = {i};
        tgl_search_try(in, SPLITS, 1, values, tgl_mma_least_of_options(&bound, i, 0));
    }
    if (s->batch > 1 || whole == 0 || whole == tiles) return;
    for (int i = 2; i <= splits_max && i <= SPLITS_OF_TAIL_MAX; i++) {
        const int64_t values[] = {i, whole};
        tgl_search_try(in, SPLITS, 2, values, tgl_mma_least_of_options(&bound, i, whole));
    }
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void mma_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                           tgl_list_builder *builder)
{
    const mma_geometry *g = geometry;
    const mma_row *t = g->row;
    const int vec_a = is_unaligned ? 1 : g->step.vec_a, vec_b = is_unaligned ? 1 : g->step.vec_b;
    const int fragments = is_crowded(s, g, vec_a, vec_b) ? 0 : t->fragments;
    /* A group may end in the middle of a copy: at any row of A (is_cut), or at any k (is_k_cut). */
    const bool is_cut = s->trans_a && vec_a > 1 && tgl_has_groups_of_rows(s);
    const bool is_k_cut = s->grouping == TGL_GROUPED_DEPTH;
    const tgl_macro macros[] = {{"BM", t->bm},
                                {"BN", t->bn},
                                {"BK", t->bk_bytes / g->size},
                                {"WM", t->wm},
                                {"WN", t->wn},
                                {"STAGES", stages_of(g, vec_a, vec_b)},
                                {"SLICES", t->slices},
                                {"FRAGMENTS", fragments},
                                {"TRANS_A", s->trans_a},
                                {"TRANS_B", s->trans_b},
                                {"VEC_A", vec_a},
                                {"VEC_B", vec_b},
                                {"TAIL_A", is_cut || (is_k_cut && !s->trans_a && vec_a > 1) ||
                                               (s->trans_a ? s->m : s->k) % vec_a != 0},
                                {"TAIL_B", (is_k_cut && s->trans_b && vec_b > 1) ||
                                               (s->trans_b ? s->k : s->n) % vec_b != 0}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

static void mma_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    mma_geometry g;
    const tgl_shape own = tgl_groups_part_shape(of);
    if (tgl_gemm_fails(mma_make_geometry(&own, &of->choice, &g), builder) ||
        tgl_gemm_fails(tgl_groups_set_grid(of->shape, g.row->bm, g.row->bn, &g.step), builder))
        return;
    tgl_bundle_set_grid(of->shape, &g.step);
    tgl_gemm_launch(of, &g.step, mma_add_macros, &g, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void mma_explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                        tgl_text *out)
{
    mma_geometry g;
    (void)chip;
    if (mma_make_geometry(shape, choice, &g) != NULL) return;
    tgl_gemm_explain_split(&g.step, 0, out);
    tgl_gemm_explain_copies(shape, &g.step, out);
}

static bool mma_example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    const bool is_f64 = type == TGL_F64;
    if (type != TGL_F16 && type != TGL_BF16 && type != TGL_F32 && tgl_type_size(type) != 1 &&
        !is_f64)
        return false;
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    if (type == TGL_F32) shape->compute = TGL_COMPUTE_TF32;
    return mma_rows[index].is_f64 == is_f64;
}

const tgl_family tgl_family_mma = {
    .name = "mma",
    .summary = "f16, bf16, e4m3, e5m2, tf32, f64 and i8 on tensor cores, any shape",
    .options = mma_options,
    TGL_ROWS(mma_rows),
    .serves_groups = true,
    .serves_bundles = true,
    .tile = mma_tile,
    .unsupported_reason = tgl_unsupported_by_mma_sync,
    .search = mma_search,
    .least_seconds = mma_least_seconds,
    .predict = mma_predict,
    .launch = mma_launch,
    .explain = mma_explain,
    .example = mma_example,
};
