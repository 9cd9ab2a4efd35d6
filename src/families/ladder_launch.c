/* SPDX-License-Identifier: Apache-2.0
 *
 * The launches of the ladder: parameters, tensor maps, and alternative launches with and without a
 * product.
 */
#include "base/integers.h"
#include "families/ladder_geometry.h"

#include "../../kernels/lib/tma_map.h"

#include <stddef.h>

enum { LADDER_BOX = 64, BK = 64 }; /* LADDER_BOX: f16 elements in 128 bytes; BK: K of a tile */

/* ---- Parameters ------------------------------------------------------------------------------ */

/* The first parameters of all kernels. The pointers of chapter 2 are to f16. */
typedef struct common_args {
    int m, n, k;
    float alpha;
    const void *A;
    long long lda;
    const void *B;
    long long ldb;
    float beta;
    void *C;
    long long ldc;
} common_args;

/* Arguments of kernels with layout SPLIT_X. */
typedef struct split_args {
    common_args common;
    int splits, k_chunk;
    float *workspace;
    unsigned *counters;
} split_args;

/* Arguments of kernels with tensor maps. stores_by_tma: the kernel stores D by TMA, through a third
 * map. */
typedef struct ladder_mapped_args {
    common_args common;
    int stores_by_tma;
    struct tgl_tensor_map maps[LADDER_MAPS_MAX];
} ladder_mapped_args;

typedef union ladder_args {
    common_args common;
    split_args split;
    ladder_mapped_args mapped;
} ladder_args;

#define FP32_PARAMETERS                                                                            \
    "int|int|int|float|const float *|long long|const float *|long long|float|float *|long long"
#define HALF_PARAMETERS                                                                            \
    "int|int|int|float|const struct f16 *|long long|const struct f16 *|long long|float|"           \
    "struct f16 *|long long"
#define MAP "|struct tgl_tensor_map"

static const char *parameters_of(const ladder_row *row)
{
    if (row->layout == SPLIT_X) return FP32_PARAMETERS "|int|int|float *|unsigned *";
    if (row->maps == 2) return HALF_PARAMETERS MAP MAP;
    if (row->maps == 3) return HALF_PARAMETERS "|int" MAP MAP MAP;
    return row->chapter == HALF ? HALF_PARAMETERS : FP32_PARAMETERS;
}

/* Bytes of the kernel's arguments, up to the end of the last parameter. */
static size_t argument_bytes(const ladder_row *row)
{
    if (row->layout == SPLIT_X) return sizeof(split_args);
    if (row->maps == 0) return sizeof(common_args);
    return offsetof(ladder_mapped_args, maps) + (size_t)row->maps * sizeof(struct tgl_tensor_map);
}

/* ---- Tensor maps ----------------------------------------------------------------------------- */

/* The tensor map of line_count x columns elements of f16, in boxes of box_rows x LADDER_BOX.
 * Kernels with clusters or with a map of D take three-dimensional maps, because the multicast
 * copies and the stores of lib/tma.h have three dimensions. */
static tgl_tensor ladder_tensor_of(const ladder_geometry *g, tgl_operand operand,
                                   int64_t line_count, int64_t columns, int64_t ld, int box_rows)
{
    int64_t offset = 0;
    tgl_value base = TGL_VALUE_OPERAND;
    for (int i = 0; i < g->repack_count; i++) {
        if (g->repacks[i].operand != operand) continue;
        base = TGL_VALUE_SCRATCH;
        offset = g->repacks[i].scratch;
        ld = tgl_repack_pitch(&g->repacks[i]);
    }
    return (tgl_tensor){
        .base = base,
        .operand = (int)operand,
        .offset = offset,
        .type = TGL_F16,
        .rank = g->row->cluster > 1 || g->row->maps == LADDER_MAPS_MAX ? 3 : 2,
        .size = {columns > 0 ? columns : 1, line_count > 0 ? line_count : 1, 1},
        /* A single row has no stride, but the map needs a legal one. */
        .stride = {2, tgl_round_up(ld * 2, TGL_MAP_ALIGNMENT), TGL_MAP_ALIGNMENT},
        .box = {LADDER_BOX, box_rows, 1},
        .swizzle_bytes = LADDER_BOX * 2,
    };
}

/* Whether TMA may store D. TMA writes up to the next multiple of 16 bytes behind a row, so each row
 * must end at such a multiple. */
static bool ladder_stores_by_tma(const ladder_row *row, const tgl_shape *s)
{
    return row->maps == LADDER_MAPS_MAX && tgl_ladder_has_tma_rows(s, s->m, s->ldc) &&
           s->n * 2 % TGL_MAP_ALIGNMENT == 0;
}

/* ---- Launch ---------------------------------------------------------------------------------- */

static void ladder_patch_maps(tgl_list_builder *builder, const tgl_shape *s,
                              const ladder_geometry *g)
{
    const ladder_row *row = g->row;
    const tgl_tensor maps[LADDER_MAPS_MAX] = {
        ladder_tensor_of(g, TGL_AT_A, s->m, s->k, s->lda, row->block_m),
        ladder_tensor_of(g, TGL_AT_B, s->k, s->n, s->ldb, BK / row->cluster),
        ladder_tensor_of(g, TGL_AT_D, s->m, s->n, s->ldc, LADDER_BOX),
    };
    for (int i = 0; i < (ladder_stores_by_tma(row, s) ? 3 : 2); i++)
        tgl_list_patch_value(
            builder, TGL_VALUE_TENSOR_MAP, tgl_list_tensor(builder, &maps[i]),
            offsetof(ladder_mapped_args, maps) + (size_t)i * sizeof(struct tgl_tensor_map), 0);
}

/* Patches the pointer to an operand. If the operand is repacked, its pointer stays NULL. */
static void ladder_patch_operand(tgl_list_builder *builder, const ladder_geometry *g,
                                 tgl_operand operand, size_t at)
{
    for (int i = 0; i < g->repack_count; i++)
        if (g->repacks[i].operand == operand) return;
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, (int)operand, at, 0);
}

static ladder_args arguments_of(const tgl_shape *s, const ladder_geometry *g, bool has_product)
{
    ladder_args args = {.common = {.m = (int)s->m,
                                   .n = (int)s->n,
                                   .k = has_product ? (int)s->k : 0,
                                   .lda = s->lda,
                                   .ldb = s->ldb,
                                   .ldc = s->ldc}};
    if (g->row->layout == SPLIT_X) {
        args.split.splits = has_product ? g->splits : 1;
        args.split.k_chunk = (int)g->k_chunk;
    }
    if (g->row->maps > 0)
        args.mapped.stores_by_tma = has_product && ladder_stores_by_tma(g->row, s);
    return args;
}

/* Adds a launch. Without a product its arguments k and alpha are 0: A and B are not read, and an
 * alpha of Inf does not make NaN. */
static void ladder_add_launch(const tgl_launch *launch, const tgl_shape *s,
                              const ladder_geometry *g, bool has_product, tgl_list_builder *builder)
{
    const ladder_args args = arguments_of(s, g, has_product);
    tgl_list_launch(builder, launch, &args, argument_bytes(g->row));
    if (has_product) {
        tgl_list_patch_value(builder, TGL_VALUE_ALPHA_F32, 0, offsetof(common_args, alpha), 0);
        ladder_patch_operand(builder, g, TGL_AT_A, offsetof(common_args, A));
        ladder_patch_operand(builder, g, TGL_AT_B, offsetof(common_args, B));
        if (g->row->maps > 0) ladder_patch_maps(builder, s, g);
    }
    tgl_list_patch_value(builder, TGL_VALUE_BETA_F32, 0, offsetof(common_args, beta), 0);
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, TGL_AT_D, offsetof(common_args, C), 0);
    if (has_product && g->splits > 1) {
        tgl_list_patch_value(builder, TGL_VALUE_SCRATCH, 0, offsetof(split_args, workspace),
                             g->sums_at);
        tgl_list_patch_value(builder, TGL_VALUE_COUNTERS, 0, offsetof(split_args, counters),
                             g->counters_at);
    }
}

/* Reserves the workspace, and adds the copies of operands that TMA cannot read. */
static void prepare(const tgl_partition *of, ladder_geometry *g, tgl_list_builder *builder)
{
    g->sums_at = tgl_list_scratch(builder, g->sums);
    g->counters_at = tgl_list_counters(builder, g->counters);
    const int64_t copies = tgl_list_scratch(builder, g->repacked);
    for (int i = 0; i < g->repack_count; i++)
        g->repacks[i].scratch += copies;
    if (g->repack_count > 0) tgl_repack_add_step(of, g->repacks, g->repack_count, builder);
}

void tgl_ladder_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    const ladder_row *row = tgl_choice_row(&of->choice);
    const tgl_kernel kernel = {.name = row->name,
                               .file = row->file,
                               .symbol = row->symbol,
                               .parameters = parameters_of(row),
                               .needs = row->needs};
    ladder_geometry g = tgl_ladder_geometry_of(row, of->chip, of->shape);
    prepare(of, &g, builder);
    if (row->chapter == WORDS) {
        tgl_list_macro(builder, "PRODUCTS", row->products);
        tgl_list_macro(builder, "PROMOTE", row->promote);
    }
    const tgl_launch with_product = {
        .kernel = tgl_list_kernel(builder, &kernel),
        .grid = {(unsigned)g.x, (unsigned)g.y, 1},
        .cluster = {(unsigned)row->cluster, 1, 1},
        .threads = (unsigned)row->threads,
        .dynamic_shared = row->shared,
        .is_persistent = row->layout == PERSISTENT,
        .order = TGL_AFTER_ALL,
        .flag = -1,
        .part = of->part,
        .repeats = 1,
        .count = 1,
        .last_count = 1,
    };
    tgl_launch without = with_product;
    without.grid[0] /= (unsigned)g.splits;
    without.conditions[without.condition_count++] = (tgl_condition){.kind = TGL_IF_NO_PRODUCT};
    tgl_list_step(builder, "tiles");
    ladder_add_launch(&without, of->shape, &g, false, builder);
    ladder_add_launch(&with_product, of->shape, &g, true, builder);
}
