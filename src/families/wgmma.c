/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/wgmma.cu: products of f16, bf16, e4m3, e5m2, TF32 and int8 on Hopper's tensor cores. A
 * pre-pass (repack.h) copies operands that TMA cannot read into a layout that it can. A consumer is
 * a warpgroup that multiplies; a producer issues the copies by TMA. The left operand is A and the
 * right one B, or the other way around if the kernel computes tiles of D^T.
 */
#include "families/gemm_arguments.h"
#include "families/groups.h"
#include "families/unsupported.h"
#include "families/wgmma_geometry.h"

#include <string.h>

/* ---- Configurations -------------------------------------------------------------------------- */

/* Columns: name, BM, BN, CONSUMERS, ALTERNATE, STAGES, TMA_STORES, MIN_BLOCKS, registers, share.
 * Blocks with two or three consumers take all registers of an SM. An SM holds two blocks with one
 * consumer if their tile leaves room for enough stages: the epilogue of one block then overlaps
 * with the main loop of the other. If consumers alternate (_alt), the epilogue of one consumer
 * overlaps with the main loop of the other. Blocks with a small tile and many stages (suffix _s
 * with the number of stages) take all shared memory of an SM: they are for products of few tiles,
 * whose time depends on the latency of copies. */
// clang-format off
static const wgmma_row wgmma_rows[] = {
    {"wgmma_128x256",     128, 256, 2, false, 4, 2, 1, 168, 0.84},
    {"wgmma_256x128",     256, 128, 2, false, 4, 2, 1, 168, 0.75},
    {"wgmma_256x144",     256, 144, 2, false, 4, 0, 1, 168, 0.78},
    {"wgmma_128x224",     128, 224, 2, false, 4, 4, 1, 168, 0.82},
    {"wgmma_128x144",     128, 144, 2, false, 6, 0, 1, 168, 0.78},
    {"wgmma_192x192",     192, 192, 3, false, 4, 1, 1, 128, 0.84},
    {"wgmma_128x192",     128, 192, 2, false, 5, 3, 1, 168, 0.83},
    {"wgmma_128x160",     128, 160, 2, false, 5, 5, 1, 168, 0.77},
    {"wgmma_128x128",     128, 128, 2, false, 6, 2, 1, 168, 0.81},
    {"wgmma_128x96",      128,  96, 2, false, 7, 3, 1, 168, 0.77},
    {"wgmma_128x192_alt", 128, 192, 2, true,  5, 0, 1, 168, 0.74},
    {"wgmma_128x160_alt", 128, 160, 2, true,  5, 0, 1, 168, 0.80},
    {"wgmma_128x128_alt", 128, 128, 2, true,  6, 0, 1, 168, 0.84},
    {"wgmma_64x256_alt",   64, 256, 2, true,  5, 0, 1, 168, 0.72},
    {"wgmma_128x64_s8",   128,  64, 2, false, 8, 1, 1, 168, 0.67},
    {"wgmma_64x128_s8",    64, 128, 1, false, 8, 2, 1, 168, 0.65},
    {"wgmma_64x64_s12",    64,  64, 1, false, 12, 1, 1, 120, 0.47},
    {"wgmma_64x48_s14",    64,  48, 1, false, 14, 0, 1, 120, 0.44},
    {"wgmma_64x80_s11",    64,  80, 1, false, 11, 0, 1, 120, 0.56},
    {"wgmma_64x224",       64, 224, 1, false, 5, 4, 1, 255, 0.63},
    {"wgmma_128x112",     128, 112, 2, false, 7, 0, 1, 168, 0.72},
    {"wgmma_128x80",      128,  80, 2, false, 8, 0, 1, 168, 0.72},
    {"wgmma_128x64",      128,  64, 1, false, 4, 0, 2, 168, 0.47},
    {"wgmma_64x256",       64, 256, 1, false, 5, 4, 1, 255, 0.68},
    {"wgmma_64x128",       64, 128, 1, false, 4, 0, 2, 168, 0.57},
    {"wgmma_64x64",        64,  64, 1, false, 6, 1, 2, 120, 0.34},
    {"wgmma_64x32",        64,  32, 1, false, 8, 0, 2, 80, 0.43},
    {"wgmma_64x16",        64,  16, 1, false, 9, 0, 2, 64, 0.43},
};
// clang-format on

/* Names of the options, in the order of the enum in wgmma_geometry.h, which explains them. */
static const char *const wgmma_options[] = {"splits",     "exchanged",      "cluster", "whole",
                                            "in_cluster", "left_registers", "columns", NULL};

/* ---- Prediction ------------------------------------------------------------------------------ */

static bool has_types(const tgl_shape *s)
{
    const bool is_half = s->type_a == TGL_F16 || s->type_a == TGL_BF16;
    if (tgl_has_8_bits(s)) return true;
    if (s->type_a != s->type_b) return false;
    if (s->type_accumulate != TGL_F32) return false;
    return is_half || (wgmma_is_tf32(s) && s->compute == TGL_COMPUTE_TF32);
}

static const char *wgmma_unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
{
    if (s->type_a == TGL_F32 && s->compute != TGL_COMPUTE_TF32)
        return "it multiplies FP32 in compute mode tf32 only";
    if (!has_types(s)) return "it multiplies f16, bf16, e4m3, e5m2, tf32 and i8";
    const char *why = tgl_has_8_bits(s) ? tgl_8_bits_unsupported_reason(s) : NULL;
    if (why != NULL) return why;
    if ((chip->features & TGL_HAS_WGMMA) == 0) return "the chip has no wgmma";
    if ((chip->features & TGL_HAS_TMA) == 0) return "the chip or its driver has no TMA";
    if (s->pointers) return "tensor maps describe no batches of pointers";
    if (!tgl_has_map_strides(s)) return "TMA takes strides below 2^40 bytes";
    if (s->batch > TGL_EXTENT_MAX) return "it counts the problems of a batch in 31 bits";
    return tgl_gemm_unsupported_reason(s);
}

static void wgmma_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    wgmma_geometry g;
    const tgl_rectangle all = tgl_whole(s);
    const char *why = tgl_wgmma_make_geometry(chip, s, &all, &c->choice, &g);
    if (!tgl_gemm_predict(chip, s, why, &g.step, c)) return;
    c->workspace_bytes += g.repacked_bytes;
    c->repacked_bytes = g.repacked_bytes;
    c->launches += g.repack_count > 0;
    tgl_wgmma_predict_time(chip, s, &g, c);
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* Rows or columns of a K-major box: LEFT_BOX of the kernel for the left operand. is_left: the
 * operand is the left one. */
static int lines_of_box(const tgl_shape *s, const wgmma_geometry *g, bool is_left)
{
    enum { GROUP_LINES = 64 };
    const int edge = is_left ? g->row->bm : g->row->bn;
    const bool has_rows_of_groups = tgl_has_groups_of_rows(s) && !g->exchanged;
    return is_left && has_rows_of_groups && wgmma_promotes(s) && g->cluster_columns == 1
               ? GROUP_LINES
               : edge;
}

/* The tensor map of an operand. edge: rows or columns of the operand in a tile. parts: number of
 * blocks of a cluster that load a part of the tile each. A K-major box has at most as many lines as
 * the operand has: copied_lines() of the kernel. */
static tgl_tensor wgmma_tensor_of(const tgl_shape *s, const wgmma_geometry *g, const wgmma_side *x,
                                  int edge, int parts)
{
    const int64_t size = (int64_t)tgl_type_size(s->type_a);
    int64_t ld = x->ld, stride = x->stride, base = x->offset * size;
    const bool along_k = x->is_k_major;
    for (int i = 0; i < g->repack_count; i++) {
        const tgl_repack *r = &g->repacks[i];
        if (r->operand != x->operand) continue;
        ld = tgl_repack_pitch(r);
        stride = tgl_repack_stride(r);
        base = r->scratch;
    }
    const int64_t edge_size = x->edge > 0 ? x->edge : 1, k_size = x->k > 0 ? x->k : 1;
    const int box = lines_of_box(s, g, x == &g->left);
    const int lines = parts > 1 ? edge : (int)tgl_min64(box, edge_size);
    return (tgl_tensor){
        .base = x->is_direct ? TGL_VALUE_OPERAND : TGL_VALUE_SCRATCH,
        .operand = (int)x->operand,
        .offset = base,
        .type = x->operand == TGL_AT_A ? s->type_a : s->type_b,
        .round_to_tf32 = wgmma_is_tf32(s) && x->is_direct,
        .rank = 3,
        .size = {along_k ? k_size : edge_size, along_k ? edge_size : k_size, x->count},
        /* The stride of a single line or matrix, or if k is 0, is not used but must still be
         * legal. */
        .stride = {size, tgl_round_up(ld * size, TGL_MAP_ALIGNMENT),
                   x->count > 1 ? tgl_round_up(stride * size, TGL_MAP_ALIGNMENT)
                                : TGL_MAP_ALIGNMENT},
        .box = {along_k ? g->bk : wgmma_line_of(s, edge), (along_k ? lines : g->bk) / parts, 1},
        .swizzle_bytes = along_k ? WGMMA_LINE_BYTES : wgmma_line_of(s, edge) * (int)size,
    };
}

/* The tensor map of D, in boxes of 64 rows and `columns` columns. If D begins unaligned, the map is
 * not used, and threads store the results. */
static tgl_tensor tensor_of_d(const tgl_shape *s, const tgl_rectangle *part, int columns)
{
    const int64_t size = (int64_t)tgl_type_size(s->type_d);
    return (tgl_tensor){
        .base = TGL_VALUE_OPERAND,
        .operand = TGL_AT_D,
        .offset = (part->row * s->ldd + part->col) * size,
        .type = s->type_d,
        .rank = 3,
        .size = {part->n, part->m, s->stride_d > 0 ? s->batch : 1},
        .stride = {size, s->ldd * size,
                   s->batch > 1 && s->stride_d > 0 ? s->stride_d * size : TGL_MAP_ALIGNMENT},
        .box = {columns, WGMMA_BOX_ROWS, 1},
        .swizzle_bytes = columns * WGMMA_RESULT_BYTES,
        .is_optional = true,
    };
}

/* The macro D_WORD of the kernel: the bytes of a word in which it stores 16-bit results, 16, 8 or
 * 4. With 16 and 8, all rows of D begin at multiples of this number if D does. With 4, rows may
 * begin anywhere. For other types the value does not matter. */
static int word_of_d(const tgl_shape *s)
{
    const int64_t stride = s->batch > 1 ? s->stride_d : 0;
    if (tgl_type_size(s->type_d) != 2) return 16;
    if (s->unaligned) return 4;
    if (s->ldd % 8 == 0 && stride % 8 == 0) return 16;
    return s->ldd % 4 == 0 && stride % 4 == 0 ? 8 : 4;
}

static void wgmma_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                             tgl_list_builder *builder)
{
    const wgmma_geometry *g = geometry;
    const wgmma_row *t = g->row;
    (void)is_unaligned;
    const tgl_macro macros[] = {{"BM", t->bm},
                                {"BN", t->bn},
                                {"STAGES", g->stages},
                                {"CONSUMERS", t->consumers},
                                {"ALTERNATE", t->alternates},
                                {"TMA_STORES", g->stores_by_tma ? g->boxes : 0},
                                {"D_WORD", word_of_d(s)},
                                {"MIN_BLOCKS", t->min_blocks},
                                {"CLUSTER_ROWS", g->cluster_rows},
                                {"CLUSTER_COLUMNS", g->cluster_columns},
                                {"CLUSTER_SPLITS", g->in_cluster ? g->splits : 1},
                                {"EXCHANGED", g->exchanged},
                                {"PROMOTE", wgmma_promotes(s)},
                                {"LEFT_ALONG_K", g->left.is_k_major},
                                {"RIGHT_ALONG_K", g->right.is_k_major}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

/* Completes the geometry of grouped products, which has been made for groups of equal size: sets
 * the operands as they lie in memory, and a grid for groups of any sizes. */
static void set_groups(const tgl_partition *of, wgmma_geometry *g)
{
    const tgl_shape *s = of->shape;
    wgmma_geometry all = {.row = g->row};
    if (tgl_wgmma_set_operands(s, &of->part, &of->choice, &all) != NULL) return;
    g->left = all.left;
    g->right = all.right;
    memcpy(g->repacks, all.repacks, sizeof all.repacks);
    g->repack_count = all.repack_count;
    g->repacked_bytes = all.repacked_bytes;
    g->step.group_tile = g->exchanged ? g->row->bn : g->row->bm;
    if (!tgl_has_groups_of_rows(s)) return;
    const int64_t others = g->exchanged ? g->tile_rows : g->tile_columns;
    const int64_t spans = tgl_group_spans_max(s, g->step.group_tile);
    if (!g->exchanged) /* a band has rows of one group, and one group may have all rows */
        g->step.args.raster = tgl_square_raster(of->chip, g->row->bm, g->row->bn, 1, spans);
    g->step.blocks = tgl_persistent_blocks(of->chip, g->row->min_blocks, g->cluster_blocks,
                                           spans * others * g->cluster_blocks);
}

static void wgmma_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    wgmma_geometry g;
    const bool is_grouped = of->shape->grouping != TGL_GROUPED_NONE;
    const tgl_shape even = tgl_shape_of_even_groups(of->shape);
    const tgl_rectangle part = is_grouped ? tgl_whole(&even) : of->part;
    const char *why = tgl_wgmma_make_geometry(of->chip, &even, &part, &of->choice, &g);
    if (tgl_gemm_fails(why, builder)) return;
    if (is_grouped) set_groups(of, &g);
    const int64_t scratch = tgl_list_scratch(builder, g.repacked_bytes);
    for (int i = 0; i < g.repack_count; i++)
        g.repacks[i].scratch += scratch;
    if (g.repack_count > 0) tgl_repack_add_step(of, g.repacks, g.repack_count, builder);
    const tgl_tensor maps[] = {
        wgmma_tensor_of(of->shape, &g, &g.left, g.row->bm, g.cluster_columns),
        wgmma_tensor_of(of->shape, &g, &g.right, g.row->bn, g.cluster_rows),
        tensor_of_d(of->shape, &of->part, wgmma_box_columns(g.row))};
    g.step.maps = maps;
    g.step.map_count = g.stores_by_tma ? 3 : 2;
    tgl_gemm_launch(of, &g.step, wgmma_add_macros, &g, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void wgmma_explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                          tgl_text *out)
{
    wgmma_geometry g;
    const tgl_rectangle part = tgl_whole(shape);
    if (tgl_wgmma_make_geometry(chip, shape, &part, choice, &g) != NULL) return;
    tgl_text_add(out, "tiles       %lld x %lld%s, clusters of %d x %d, bands of %d rows\n",
                 (long long)g.tile_rows * g.cluster_rows,
                 (long long)g.tile_columns * g.cluster_columns,
                 g.exchanged ? " of the transposed D" : "", g.cluster_rows, g.cluster_columns,
                 g.step.args.raster * g.cluster_rows);
    if (wgmma_left_in_registers(shape, &g)) tgl_text_add(out, "left        through registers\n");
    if (g.whole > 0)
        tgl_text_add(out, "whole       %lld tiles, the others split\n", (long long)g.whole);
    if (g.splits > 1 && g.in_cluster)
        tgl_text_add(out, "split       k %d ways, %lld deep, added up in clusters\n", g.splits,
                     (long long)g.k_chunk);
    else
        tgl_gemm_explain_split(&g.step, 0, out);
    for (int i = 0; i < g.repack_count; i++)
        tgl_text_add(out, "repack      %s, %.2f MB%s\n",
                     g.repacks[i].operand == TGL_AT_A ? "A" : "B",
                     1e-6 * (double)tgl_repack_bytes(&g.repacks[i]),
                     g.repacks[i].transposes ? ", transposed" : "");
}

static bool wgmma_example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    (void)index;
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    if (type == TGL_F32) {
        shape->compute = TGL_COMPUTE_TF32;
        return !trans_a && trans_b; /* by default, other layouts are repacked to this one */
    }
    if (tgl_type_size(type) == 1) return !trans_a && trans_b;
    return type == TGL_F16 || type == TGL_BF16;
}

const tgl_family tgl_family_wgmma = {
    .name = "wgmma",
    .summary = "f16, bf16, e4m3, e5m2, TF32 and i8 on the tensor cores of sm_90a",
    .serves_groups = true,
    .options = wgmma_options,
    TGL_ROWS(wgmma_rows),
    .unsupported_reason = wgmma_unsupported_reason,
    .search = tgl_wgmma_search,
    .least_seconds = tgl_wgmma_least_seconds,
    .predict = wgmma_predict,
    .launch = wgmma_launch,
    .explain = wgmma_explain,
    .example = wgmma_example,
};
