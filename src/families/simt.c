/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/simt.cu: FP32 products of any shape on CUDA cores. A block computes a tile of D. If the
 * tiles do not fill the chip or the last wave, some of them are split over K (split-K).
 */
#include "families/bundle_grid.h"
#include "families/groups.h"
#include "families/simt_geometry.h"
#include "families/unsupported.h"

#include <string.h>

/* ---- Configurations -------------------------------------------------------------------------- */

/* Rows: roughly from the largest tile to the smallest, those with slices last. Columns: name, BM,
 * BN, BK, WM, WN, TM, TN, STAGES, SLICES, MIN_BLOCKS, registers of a thread, registers if the
 * copies of both operands have addresses of their own. Thread tiles of 16 x 8 have the most FFMAs
 * per load. Smaller thread tiles leave room for more warps, and slices (groups of warps that divide
 * the K of a tile among them) give a small block tile more warps. A name has the block tile; the
 * thread tile, if two rows have the same block tile; _1 for MIN_BLOCKS = 1, if they also have the
 * same thread tile; and _s with the number of slices. */
// clang-format off
static const simt_row simt_rows[] = {
    {"simt_128x256x8",      128, 256,  8, 64, 64, 16, 8, 4, 1, 1, 255, 255},
    {"simt_256x128x8",      256, 128,  8, 64, 64, 16, 8, 4, 1, 1, 255, 255},
    {"simt_128x128x8",      128, 128,  8, 64, 64, 16, 8, 4, 1, 1, 255, 255},
    {"simt_128x128x16",     128, 128, 16, 32, 64,  8, 8, 2, 1, 2, 128, 128},
    {"simt_128x128x16_1",   128, 128, 16, 32, 64,  8, 8, 3, 1, 1, 152, 159},
    {"simt_64x256x8",        64, 256,  8, 64, 64, 16, 8, 4, 1, 1, 255, 255},
    {"simt_128x64x16",      128,  64, 16, 32, 64,  8, 8, 3, 1, 1, 152, 156},
    {"simt_128x64x8",       128,  64,  8, 32, 64,  8, 8, 3, 1, 1, 152, 152},
    {"simt_64x128x8",        64, 128,  8, 32, 64,  8, 8, 4, 1, 1, 144, 144},
    {"simt_64x128x16",       64, 128, 16, 32, 64,  8, 8, 3, 1, 1, 152, 156},
    {"simt_64x64x16",        64,  64, 16, 32, 64,  8, 8, 3, 1, 1, 160, 214},
    {"simt_64x64x16_8x4",    64,  64, 16, 32, 32,  8, 4, 3, 1, 1, 120, 126},
    {"simt_64x64x16_4x4",    64,  64, 16, 32, 16,  4, 4, 3, 1, 1, 104, 104},
    {"simt_256x32x8",       256,  32,  8, 64, 32,  8, 8, 4, 1, 1, 168, 168},
    {"simt_128x32x32",      128,  32, 32, 32, 32,  8, 4, 2, 1, 1, 128, 181},
    {"simt_64x32x32",        64,  32, 32, 32, 32,  8, 4, 2, 1, 1, 144, 205},
    {"simt_32x64x16",        32,  64, 16, 32, 32,  8, 4, 3, 1, 1, 120, 144},
    {"simt_32x64x16_4x4",    32,  64, 16, 32, 16,  4, 4, 3, 1, 1, 104, 112},
    {"simt_32x64x32",        32,  64, 32, 32, 32,  8, 4, 2, 1, 1, 144, 206},
    {"simt_32x32x16",        32,  32, 16, 32, 16,  4, 4, 3, 1, 1, 104, 113},
    {"simt_32x32x32",        32,  32, 32, 32, 16,  4, 4, 3, 1, 1, 112, 150},
    {"simt_16x128x32",       16, 128, 32, 16, 64,  4, 8, 2, 1, 2, 168, 255},
    {"simt_128x64x8_s4",    128,  64,  8, 64, 64, 16, 8, 3, 4, 1, 244, 244},
    {"simt_64x128x8_s4",     64, 128,  8, 64, 64, 16, 8, 3, 4, 1, 244, 244},
    {"simt_96x128x8_s2",     96, 128,  8, 48, 64, 12, 8, 3, 2, 1, 200, 200},
    {"simt_64x64x8_s4",      64,  64,  8, 32, 64,  8, 8, 3, 4, 1, 168, 168},
    {"simt_32x64x8_s8",      32,  64,  8, 32, 64,  8, 8, 3, 8, 1, 208, 208},
    {"simt_32x64x8_s4",      32,  64,  8, 32, 64,  8, 8, 3, 4, 1, 234, 234},
    {"simt_32x64x8_8x4_s4",  32,  64,  8, 32, 32,  8, 4, 3, 4, 1, 128, 128},
    {"simt_32x32x16_s4",     32,  32, 16, 32, 16,  4, 4, 3, 4, 1, 112, 114},
    {"simt_32x32x16_s2",     32,  32, 16, 32, 16,  4, 4, 3, 2, 1, 112, 114},
};
// clang-format on

/* A schedule determines when the main loop issues copies and loads: see simt_schedules.inc. */
typedef struct simt_schedule {
    const char *name, *layout;
    int width;
    int copy_from, copy_every, load_from, load_every, column_order;
} simt_schedule;

static const simt_schedule schedules[] = {
#include "families/simt_schedules.inc"
};

/* Names of the options, in the order of the enum in simt_geometry.h, which explains them. */
static const char *const simt_options[] = {"splits",     "whole",        "depth",
                                           "copy_from",  "copy_every",   "load_from",
                                           "load_every", "column_order", NULL};

static void simt_tile(int index, int *m, int *n)
{
    *m = simt_rows[index].bm;
    *n = simt_rows[index].bn;
}

static void simt_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    simt_geometry g;
    const char *why = tgl_simt_make_geometry(chip, s, &c->choice, &g);
    if (tgl_gemm_predict(chip, s, why, &g.step, c)) tgl_simt_predict_time(chip, s, &g, c);
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* The row of schedules[] for this layout and these widths of copies and stores. NULL: there is
 * none, and the kernel's default applies. */
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

/* Adds the macros of a schedule (NULL: none). Options of the choice replace them, but only in the
 * aligned kernel, because the unaligned one has more copies. */
static void add_schedule(const simt_schedule *found, const tgl_choice *choice, bool is_unaligned,
                         tgl_list_builder *builder)
{
    const int no = (int)TGL_UNSET;
    const simt_schedule none = {"", "", 0, no, no, no, no, no}, *x = found != NULL ? found : &none;
    const tgl_macro macros[] = {{"COPY_FROM", x->copy_from},
                                {"COPY_EVERY", x->copy_every},
                                {"LOAD_FROM", x->load_from},
                                {"LOAD_EVERY", x->load_every},
                                {"COLUMN_ORDER", x->column_order}};
    for (int i = 0; i < (int)(sizeof macros / sizeof macros[0]); i++) {
        int64_t value = macros[i].value;
        if (!is_unaligned) value = tgl_option(choice, SIMT_SCHEDULE + i, value);
        if (value != TGL_UNSET) tgl_list_macro(builder, macros[i].name, value);
    }
}

static void simt_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                            tgl_list_builder *builder)
{
    const simt_geometry *g = geometry;
    const simt_row *t = g->row;
    const int vec_a = is_unaligned ? 1 : g->step.vec_a, vec_b = is_unaligned ? 1 : g->step.vec_b;
    const int vec_d = is_unaligned ? 1 : tgl_store_width(s);
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
                                {"INSIDE", tgl_simt_is_inside(s, t, vec_a, vec_b)},
                                {"UNALIGNED_D", t->slices == 1 && vec_d == 1}};
    if (s->pairs_b != 0) tgl_list_macro(builder, "PAIRS", s->pairs_b);
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
    add_schedule(find_schedule(t, s, vec_a, vec_b, vec_d), g->choice, is_unaligned, builder);
}

static void simt_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    simt_geometry g;
    const tgl_shape own = tgl_groups_part_shape(of);
    const char *why = tgl_simt_make_geometry(of->chip, &own, &of->choice, &g);
    if (tgl_gemm_fails(why, builder) ||
        tgl_gemm_fails(tgl_groups_set_grid(of->shape, g.row->bm, g.row->bn, &g.step), builder))
        return;
    tgl_bundle_set_grid(of->shape, &g.step);
    tgl_gemm_launch(of, &g.step, simt_add_macros, &g, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void simt_explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                         tgl_text *out)
{
    simt_geometry g;
    if (tgl_simt_make_geometry(chip, shape, choice, &g) != NULL) return;
    tgl_gemm_explain_split(&g.step, simt_is_uneven(&g) ? g.first_depth : 0, out);
    tgl_gemm_explain_copies(shape, &g.step, out);
}

static bool simt_example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    if (type != TGL_F32) return false;
    /* With min_blocks > 1, two K-major operands are not supported (simt_geometry.c). */
    return simt_rows[index].min_blocks == 1 || trans_a || !trans_b;
}

const tgl_family tgl_family_simt = {
    .name = "simt",
    .summary = "FP32 products of any shape",
    .options = simt_options,
    TGL_ROWS(simt_rows),
    .serves_groups = true,
    .serves_bundles = true,
    .tile = simt_tile,
    .unsupported_reason = tgl_unsupported_unless_f32,
    .reads = TGL_DIRECT_PAIRS,
    .search = tgl_simt_search,
    .least_seconds = tgl_simt_least_seconds,
    .predict = simt_predict,
    .launch = simt_launch,
    .explain = simt_explain,
    .example = simt_example,
};
