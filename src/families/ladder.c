/* SPDX-License-Identifier: Apache-2.0
 *
 * The ladder: teaching kernels, each a step further than the one before. Chapter 1 multiplies FP32
 * on CUDA cores, chapter 2 f16 on tensor cores, and chapter 3 FP32 on tensor cores. They are chosen
 * only by name, each runs in one way, and their time is not predicted.
 */
#include "families/cost.h"
#include "families/repack.h"

#include "../../kernels/lib/tma_map.h"

#include <limits.h>
#include <stddef.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef enum chapter {
    FP32, /* chapter 1: FP32 on CUDA cores */
    HALF, /* chapter 2: f16 with sums in FP32 */
    WORDS /* chapter 3: FP32 by products of TF32 words */
} chapter;

typedef enum layout {
    TILES_XY,  /* the grid is that of the tiles: columns along x, rows along y */
    TILES_X,   /* all tiles along x, in the order that the kernel chooses */
    SPLIT_X,   /* the same, with several blocks for each tile */
    PERSISTENT /* each block, or pair of blocks, takes tiles in turn */
} layout;

/* Of the kernels with tensor maps: elements of f16 in 128 bytes, the depth of their tiles, and the
 * alignment of rows that TMA needs in bytes. */
enum { BOX = 64, BK = 64, TMA_ALIGNMENT = 16, MAPS_MAX = 3 };

typedef struct ladder_row {
    const char *name, *file, *symbol;
    chapter chapter;
    int block_m, block_n; /* rows and columns of D that a block computes */
    int threads;          /* of a block */
    unsigned needs;       /* features of the chip */
    layout layout;
    int shared;            /* bytes of dynamic shared memory */
    int maps;              /* tensor maps behind the arguments: of A and B, and of D */
    int cluster;           /* blocks that share the tile of B */
    int products, promote; /* macros of chapter 3 */
} ladder_row;

enum { HOPPER = TGL_HAS_WGMMA | TGL_HAS_TMA };

/* In their order. The tile macros are the defaults of each file, which block_m, block_n and threads
 * must agree with. Rungs 27 to 29 and 34 to 36 do not use cp.async: there TGL_HAS_ASYNC_COPY stands
 * for compute capability 8.0, which their mma.sync shapes need (m16n8k16; m16n8k8 of TF32). */
// clang-format off
static const ladder_row rows[] = {
    {"ladder/naive",             "ladder/01_naive.cu",             "sgemm_naive",             FP32,  32,   8,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/coalesced",         "ladder/02_coalesced.cu",         "sgemm_coalesced",         FP32,   8,  32,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/register_tile",     "ladder/03_register_tile.cu",     "sgemm_register_tile",     FP32,  64,  64,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/shared_tile",       "ladder/04_shared_tile.cu",       "sgemm_shared_tile",       FP32,  32,  32, 1024, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/thread_tile_1d",    "ladder/05_thread_tile_1d.cu",    "sgemm_thread_tile_1d",    FP32,  64,  64,  512, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/thread_tile_2d",    "ladder/06_thread_tile_2d.cu",    "sgemm_thread_tile_2d",    FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/vectorised",        "ladder/07_vectorised.cu",        "sgemm_vectorised",        FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/register_order",    "ladder/08_register_order.cu",    "sgemm_register_order",    FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/thread_order",      "ladder/09_thread_order.cu",      "sgemm_thread_order",      FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/conflict_free",     "ladder/10_conflict_free.cu",     "sgemm_conflict_free",     FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/register_prefetch", "ladder/11_register_prefetch.cu", "sgemm_register_prefetch", FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/interior_tiles",    "ladder/12_interior_tiles.cu",    "sgemm_interior_tiles",    FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/moving_pointers",   "ladder/13_moving_pointers.cu",   "sgemm_moving_pointers",   FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/global_prefetch",   "ladder/14_global_prefetch.cu",   "sgemm_global_prefetch",   FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/two_blocks",        "ladder/15_two_blocks.cu",        "sgemm_two_blocks",        FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/across_barrier",    "ladder/16_across_barrier.cu",    "sgemm_across_barrier",    FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/double_buffer",     "ladder/17_double_buffer.cu",     "sgemm_double_buffer",     FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/copy_schedule",     "ladder/18_copy_schedule.cu",     "sgemm_copy_schedule",     FP32, 128, 128,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/large_thread_tile", "ladder/19_large_thread_tile.cu", "sgemm_large_thread_tile", FP32, 128, 256,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/warp_tiles",        "ladder/20_warp_tiles.cu",        "sgemm_warp_tiles",        FP32, 128, 256,  256, 0, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/async_copy",        "ladder/21_async_copy.cu",        "sgemm_async_copy",        FP32, 128, 256,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/remainder_first",   "ladder/22_remainder_first.cu",   "sgemm_remainder_first",   FP32, 128, 256,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/multistage",        "ladder/23_multistage.cu",        "sgemm_multistage",        FP32, 128, 256,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/block_order",       "ladder/24_block_order.cu",       "sgemm_block_order",       FP32, 128, 256,  256, TGL_HAS_ASYNC_COPY, TILES_X,  0, 0, 1, 0, 0},
    {"ladder/slices",            "ladder/25_slices.cu",            "sgemm_slices",            FP32,  64,  64,  256, TGL_HAS_ASYNC_COPY, TILES_X,  0, 0, 1, 0, 0},
    {"ladder/split_k",           "ladder/26_split_k.cu",           "sgemm_split_k",           FP32,  64,  64,  256, TGL_HAS_ASYNC_COPY, SPLIT_X,  0, 0, 1, 0, 0},
    {"ladder/f16_wmma",          "ladder/27_f16_wmma.cu",          "hgemm_wmma",              HALF, 128, 128,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/f16_fragments",     "ladder/28_f16_fragments.cu",     "hgemm_fragments",         HALF, 128, 128,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/f16_ldmatrix",      "ladder/29_f16_ldmatrix.cu",      "hgemm_ldmatrix",          HALF, 128, 128,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 0, 0, 1, 0, 0},
    {"ladder/f16_multistage",    "ladder/30_f16_multistage.cu",    "hgemm_multistage",        HALF, 128, 128,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 98304, 0, 1, 0, 0},
    {"ladder/f16_wgmma",         "ladder/31_f16_wgmma.cu",         "hgemm_wgmma",             HALF, 128, 128,  256, HOPPER,             TILES_XY, 131104, 2, 1, 0, 0},
    {"ladder/f16_specialised",   "ladder/32_f16_specialised.cu",   "hgemm_specialised",       HALF, 128, 256,  384, HOPPER,             TILES_XY, 196672, 2, 1, 0, 0},
    {"ladder/f16_persistent",    "ladder/33_f16_persistent.cu",    "hgemm_persistent",        HALF, 128, 256,  384, HOPPER | TGL_HAS_CLUSTERS, PERSISTENT, 213040, 3, 2, 0, 0},
    {"ladder/words_one",         "ladder/34_words.cu",             "sgemm_words",            WORDS, 128, 128,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 0, 0, 1, 1, 0},
    {"ladder/words_three",       "ladder/34_words.cu",             "sgemm_words",            WORDS, 128, 128,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 0, 0, 1, 3, 0},
    {"ladder/words_promoted",    "ladder/34_words.cu",             "sgemm_words",            WORDS, 128, 128,  256, TGL_HAS_ASYNC_COPY, TILES_XY, 0, 0, 1, 3, 1},
};
// clang-format on

static const char *const options[] = {NULL};

/* Why no rung supports the shape, or NULL. */
static const char *unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
{
    (void)chip;
    if (!(tgl_shape_is_all(s, TGL_F32) || tgl_shape_is_all(s, TGL_F16)) ||
        s->type_accumulate != TGL_F32)
        return "the ladder's kernels are for FP32, and for f16 with sums in FP32";
    if (s->trans_a || s->trans_b) return "the ladder's kernels take no transposed matrices";
    if (s->pointers) return "the ladder's kernels take no arrays of pointers";
    if (s->batch != 1) return "the ladder's kernels take no batches";
    if (!s->in_place) return "the ladder's kernels write their result to C, not to another D";
    if (s->device_scalars) return "the ladder's kernels take alpha and beta from the host only";
    if (s->scaling_a != TGL_SCALING_NONE || s->scaling_b != TGL_SCALING_NONE ||
        s->scaling_d != TGL_SCALING_NONE)
        return "the ladder's kernels have no scales";
    if (!tgl_epilogue_is_none(&s->epilogue)) return "the ladder's kernels have no epilogue";
    _Static_assert(TGL_EXTENT_MAX == 2147482623, "the sentence says so");
    if (s->m > TGL_EXTENT_MAX || s->n > TGL_EXTENT_MAX || s->k > TGL_EXTENT_MAX)
        return "the ladder's kernels take m, n and k up to 2147482623";
    return NULL;
}

/* Why this rung does not support the shape on the chip, or NULL. */
static const char *rung_unsupported_reason(const ladder_row *row, const tgl_chip *chip,
                                           const tgl_shape *s)
{
    static const int64_t LD_MAX = ((int64_t)1 << 39) - 1; /* cuTensorMapEncodeTiled */
    const bool is_half = s->type_a == TGL_F16;
    if (row->chapter == HALF && !is_half) return "the rung multiplies f16";
    if (row->chapter != HALF && is_half) return "the rung multiplies FP32";
    if (row->chapter == WORDS && s->compute != TGL_COMPUTE_TF32)
        return "the rung rounds FP32 to words of TF32, which only the compute mode tf32 permits";
    if (row->maps > 0 && (s->lda > LD_MAX || s->ldb > LD_MAX || s->ldc > LD_MAX))
        return "TMA takes strides below 2^40 bytes";
    if ((row->needs & ~chip->features) == 0) return NULL;
    return row->maps > 0 ? "it needs wgmma and TMA: compute capability 9.0"
                         : "it needs compute capability 8.0"; /* TGL_HAS_ASYNC_COPY */
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a rung serves a shape. */
typedef struct geometry {
    const ladder_row *row;
    int64_t x, y;  /* blocks of the grid */
    bool too_many; /* more tiles than an int counts */
    int splits;    /* blocks of a tile */
    int64_t k_chunk;
    int64_t sums, counters;       /* bytes of the partial sums and counters in the workspace */
    int64_t sums_at, counters_at; /* their offsets */
    tgl_repack repacks[2];        /* of operands whose rows TMA cannot read */
    int repack_count;
    int64_t repacked; /* bytes */
} geometry;

/* splits = 2 * SMs / tiles, rounded down: twice the SMs, because two blocks fit on an SM. At most
 * k / DEPTH_MIN, rounded up. */
static void split(const tgl_chip *chip, const tgl_shape *s, geometry *g)
{
    enum { DEPTH = 16 /* BK of ladder/26_split_k.cu */, DEPTH_MIN = 128 };
    const int64_t tiles = g->x;
    const int64_t wanted = tiles > 0 ? 2 * (int64_t)chip->sms / tiles : 1;
    const int64_t splits = tgl_min64(wanted, tgl_ceil_div(s->k, DEPTH_MIN));
    if (splits < 2) return;
    g->k_chunk = tgl_round_up(tgl_ceil_div(s->k, splits), DEPTH);
    g->splits = (int)tgl_ceil_div(s->k, g->k_chunk);
    g->x = tiles * g->splits;
    g->sums = g->x * g->row->block_m * g->row->block_n * (int64_t)sizeof(float);
    g->counters = tiles * (int64_t)sizeof(unsigned);
}

/* Whether TMA can read or store `lines` rows of f16 that are ld elements apart. */
static bool has_tma_rows(const tgl_shape *s, int64_t lines, int64_t ld)
{
    return !s->unaligned && (lines <= 1 || ld * 2 % TMA_ALIGNMENT == 0);
}

/* Other operands are copied to the workspace first, with rows that TMA can read. */
static void repack(const tgl_shape *s, tgl_operand operand, int64_t lines, int64_t length,
                   int64_t ld, geometry *g)
{
    if (lines == 0 || length == 0 || has_tma_rows(s, lines, ld)) return;
    tgl_repack *r = &g->repacks[g->repack_count++];
    *r = (tgl_repack){.operand = operand,
                      .type = TGL_F16,
                      .lines = lines,
                      .length = length,
                      .ld = ld,
                      .count = 1,
                      .scratch = g->repacked};
    g->repacked += tgl_round_up(tgl_repack_bytes(r), TGL_WORKSPACE_ALIGNMENT);
}

/* Each cluster of blocks takes as many tiles below each other at a time. */
static void count_clusters(const tgl_chip *chip, const tgl_shape *s, geometry *g)
{
    const ladder_row *row = g->row;
    const int64_t tiles =
        tgl_ceil_div(s->m, (int64_t)row->block_m * row->cluster) * tgl_ceil_div(s->n, row->block_n);
    g->too_many = tiles > INT_MAX / row->cluster;
    g->x = tgl_min64(tiles, chip->sms / row->cluster) * row->cluster;
    g->y = 1;
}

static geometry geometry_of(const ladder_row *row, const tgl_chip *chip, const tgl_shape *s)
{
    geometry g = {.row = row, .splits = 1, .k_chunk = s->k > 0 ? s->k : 1};
    g.x = tgl_ceil_div(s->n, row->block_n);
    g.y = tgl_ceil_div(s->m, row->block_m);
    if (row->layout == TILES_X || row->layout == SPLIT_X) {
        g.x *= g.y;
        g.y = 1;
    }
    if (row->layout == SPLIT_X) split(chip, s, &g);
    if (row->layout == PERSISTENT) count_clusters(chip, s, &g);
    if (row->maps > 0) {
        repack(s, TGL_AT_A, s->m, s->k, s->lda, &g);
        repack(s, TGL_AT_B, s->k, s->n, s->ldb, &g);
    }
    return g;
}

static void predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    const ladder_row *row = tgl_choice_row(&c->choice);
    const geometry g = geometry_of(row, chip, s);
    const char *reason = rung_unsupported_reason(row, chip, s);
    c->threads = row->threads;
    c->splits = g.splits;
    c->shared_bytes = row->shared;
    c->blocks = (double)g.x * (double)g.y;
    c->workspace_bytes = g.sums + g.counters + g.repacked;
    c->repacked_bytes = g.repacked;
    c->launches = 1 + (g.repack_count > 0);
    if (reason != NULL)
        tgl_reject(c, reason);
    else if (g.x > TGL_GRID_X_MAX || g.y > TGL_GRID_YZ_MAX || g.too_many)
        tgl_reject(c, tgl_grid_too_large);
    else if (tgl_repack_fault(g.repacks, g.repack_count) != NULL)
        tgl_reject(c, tgl_repack_fault(g.repacks, g.repack_count));
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* The parameters that all kernels begin with; those of chapter 2 have pointers to f16. */
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

/* Arguments of kernels with tensor maps. stores_by_tma: there is a map of D. */
typedef struct mapped_args {
    common_args common;
    int stores_by_tma;
    struct tgl_tensor_map maps[MAPS_MAX];
} mapped_args;

typedef union ladder_args {
    common_args common;
    split_args split;
    mapped_args mapped;
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

/* Up to the end of the last parameter. */
static size_t argument_bytes(const ladder_row *row)
{
    if (row->layout == SPLIT_X) return sizeof(split_args);
    if (row->maps == 0) return sizeof(common_args);
    return offsetof(mapped_args, maps) + (size_t)row->maps * sizeof(struct tgl_tensor_map);
}

/* ---- Tensor maps ----------------------------------------------------------------------------- */

/* line_count x columns of f16, in boxes of box_rows x BOX. The kernels with clusters take maps of
 * three dimensions, as lib/tma.h has multicast copies and stores. */
static tgl_tensor tensor_of(const geometry *g, tgl_operand operand, int64_t line_count,
                            int64_t columns, int64_t ld, int box_rows)
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
        .rank = g->row->cluster > 1 ? 3 : 2,
        .size = {columns > 0 ? columns : 1, line_count > 0 ? line_count : 1, 1},
        /* A single row's stride is unused but must be legal. */
        .stride = {2, tgl_round_up(ld * 2, TMA_ALIGNMENT), TMA_ALIGNMENT},
        .box = {BOX, box_rows, 1},
        .swizzle_bytes = BOX * 2,
    };
}

/* TMA writes up to the next multiple of 16 bytes behind a row of C. */
static bool stores_by_tma(const ladder_row *row, const tgl_shape *s)
{
    return row->maps == MAPS_MAX && has_tma_rows(s, s->m, s->ldc) && s->n * 2 % TMA_ALIGNMENT == 0;
}

/* ---- Launch ---------------------------------------------------------------------------------- */

static void patch_maps(tgl_list_builder *builder, const tgl_shape *s, const geometry *g)
{
    const ladder_row *row = g->row;
    const tgl_tensor maps[MAPS_MAX] = {
        tensor_of(g, TGL_AT_A, s->m, s->k, s->lda, row->block_m),
        tensor_of(g, TGL_AT_B, s->k, s->n, s->ldb, BK / row->cluster),
        tensor_of(g, TGL_AT_D, s->m, s->n, s->ldc, BOX),
    };
    for (int i = 0; i < (stores_by_tma(row, s) ? 3 : 2); i++)
        tgl_list_patch_value(
            builder, TGL_VALUE_TENSOR_MAP, tgl_list_tensor(builder, &maps[i]),
            offsetof(mapped_args, maps) + (size_t)i * sizeof(struct tgl_tensor_map), 0);
}

/* The pointer of an operand that is repacked stays NULL. */
static void patch_operand(tgl_list_builder *builder, const geometry *g, tgl_operand operand,
                          size_t at)
{
    for (int i = 0; i < g->repack_count; i++)
        if (g->repacks[i].operand == operand) return;
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, (int)operand, at, 0);
}

static ladder_args arguments_of(const tgl_shape *s, const geometry *g, bool has_product)
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
    if (g->row->maps > 0) args.mapped.stores_by_tma = has_product && stores_by_tma(g->row, s);
    return args;
}

/* Without a product k and alpha are 0, so that neither A nor B is read, and an infinite alpha adds
 * nothing. */
static void add_launch(const tgl_launch *launch, const tgl_shape *s, const geometry *g,
                       bool has_product, tgl_list_builder *builder)
{
    const ladder_args args = arguments_of(s, g, has_product);
    tgl_list_launch(builder, launch, &args, argument_bytes(g->row));
    if (has_product) {
        tgl_list_patch_value(builder, TGL_VALUE_ALPHA_F32, 0, offsetof(common_args, alpha), 0);
        patch_operand(builder, g, TGL_AT_A, offsetof(common_args, A));
        patch_operand(builder, g, TGL_AT_B, offsetof(common_args, B));
        if (g->row->maps > 0) patch_maps(builder, s, g);
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
static void prepare(const tgl_partition *of, geometry *g, tgl_list_builder *builder)
{
    g->sums_at = tgl_list_scratch(builder, g->sums);
    g->counters_at = tgl_list_counters(builder, g->counters);
    const int64_t copies = tgl_list_scratch(builder, g->repacked);
    for (int i = 0; i < g->repack_count; i++)
        g->repacks[i].scratch += copies;
    if (g->repack_count > 0) tgl_repack_add_step(of, g->repacks, g->repack_count, builder);
}

static void launch(const tgl_partition *of, tgl_list_builder *builder)
{
    const ladder_row *row = tgl_choice_row(&of->choice);
    const tgl_kernel kernel = {.name = row->name,
                               .file = row->file,
                               .symbol = row->symbol,
                               .parameters = parameters_of(row),
                               .needs = row->needs};
    geometry g = geometry_of(row, of->chip, of->shape);
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
    add_launch(&without, of->shape, &g, false, builder);
    add_launch(&with_product, of->shape, &g, true, builder);
}

/* All rungs accept untransposed operands. */
static bool example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    const chapter own = rows[index].chapter;
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    if (own == WORDS) shape->compute = TGL_COMPUTE_TF32;
    return type == (own == HALF ? TGL_F16 : TGL_F32) && !trans_a && !trans_b;
}

const tgl_family tgl_family_ladder = {
    .name = "ladder",
    .summary = "kernels for teaching, from naive to fast; not transposed, no batches",
    .options = options,
    .is_on_request = true,
    TGL_ROWS(rows),
    .unsupported_reason = unsupported_reason,
    .predict = predict,
    .launch = launch,
    .example = example,
};
