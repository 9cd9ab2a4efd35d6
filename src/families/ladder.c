/* SPDX-License-Identifier: Apache-2.0
 *
 * The ladder: FP32 kernels from the naive one to one that is near cuBLAS, each a step further. They
 * are chosen only by name, each runs in one way, and their time is not predicted.
 */
#include "families/cost.h"

#include <stddef.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef struct ladder_row {
    const char *name, *file, *symbol;
    int block_m, block_n; /* rows and columns of D that a block computes */
    int threads;          /* of a block */
    unsigned needs;       /* features of the chip */
} ladder_row;

/* In their order. The tile macros are the defaults of each file, which block_m, block_n and threads
 * must agree with. */
// clang-format off
static const ladder_row rows[] = {
    {"ladder/naive",              "ladder/01_naive.cu",              "sgemm_naive",              32,   8,  256, 0},
    {"ladder/coalesced",          "ladder/02_coalesced.cu",          "sgemm_coalesced",           8,  32,  256, 0},
    {"ladder/register_tile",      "ladder/03_register_tile.cu",      "sgemm_register_tile",      64,  64,  256, 0},
    {"ladder/shared_tile",        "ladder/04_shared_tile.cu",        "sgemm_shared_tile",        32,  32, 1024, 0},
    {"ladder/thread_tile_1d",     "ladder/05_thread_tile_1d.cu",     "sgemm_thread_tile_1d",     64,  64,  512, 0},
    {"ladder/thread_tile_2d",     "ladder/06_thread_tile_2d.cu",     "sgemm_thread_tile_2d",    128, 128,  256, 0},
    {"ladder/vectorised",         "ladder/07_vectorised.cu",         "sgemm_vectorised",        128, 128,  256, 0},
    {"ladder/conflict_free",      "ladder/08_conflict_free.cu",      "sgemm_conflict_free",     128, 128,  256, 0},
    {"ladder/register_prefetch",  "ladder/09_register_prefetch.cu",  "sgemm_register_prefetch", 128, 128,  256, 0},
    {"ladder/double_buffer",      "ladder/10_double_buffer.cu",      "sgemm_double_buffer",     128, 128,  256, 0},
    {"ladder/warp_tiles",         "ladder/11_warp_tiles.cu",         "sgemm_warp_tiles",        128, 256,  256, 0},
    {"ladder/async_copy",         "ladder/12_async_copy.cu",         "sgemm_async_copy",        128, 256,  256, TGL_HAS_ASYNC_COPY},
};
// clang-format on
enum { ROWS = sizeof rows / sizeof rows[0] };

static const char *const options[] = {NULL};

static const char *configuration(int index)
{
    return index >= 0 && index < ROWS ? rows[index].name : NULL;
}

static int lines(int index)
{
    (void)index;
    return 0;
}

static const char *unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
{
    (void)chip;
    if (!tgl_shape_is_all(s, TGL_F32) || s->type_accumulate != TGL_F32)
        return "the ladder's kernels are for FP32 only";
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

/* ---- Grid ------------------------------------------------------------------------------------ */

typedef struct grid {
    int64_t x, y;
} grid;

static grid grid_of(const ladder_row *row, const tgl_shape *s)
{
    return (grid){tgl_ceil_div(s->n, row->block_n), tgl_ceil_div(s->m, row->block_m)};
}

static void predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    const ladder_row *row = &rows[c->choice.configuration];
    const grid blocks = grid_of(row, s);
    c->threads = row->threads;
    c->splits = 1;
    c->blocks = (double)blocks.x * (double)blocks.y;
    c->launches = 1;
    if ((row->needs & ~chip->features) != 0)
        tgl_reject(c, "it needs compute capability 8.0"); /* TGL_HAS_ASYNC_COPY */
    else if (blocks.y > TGL_GRID_YZ_MAX)
        tgl_reject(c, tgl_grid_too_large);
}

/* ---- Launch ---------------------------------------------------------------------------------- */

/* The kernels' parameters. */
typedef struct ladder_args {
    int m, n, k;
    float alpha;
    const float *A;
    long long lda;
    const float *B;
    long long ldb;
    float beta;
    float *C;
    long long ldc;
} ladder_args;

static const char parameters[] =
    "int|int|int|float|const float *|long long|const float *|long long|"
    "float|float *|long long";

static void patch(tgl_list_builder *builder, tgl_value value, int operand, size_t at)
{
    const tgl_patch own = {.value = value, .index = operand, .at = (int)at};
    tgl_list_patch(builder, &own);
}

/* Without a product k and alpha are 0, so that neither A nor B is read, and an infinite alpha adds
 * nothing. */
static void add_launch(const tgl_launch *launch, const tgl_shape *s, bool has_product,
                       tgl_list_builder *builder)
{
    const ladder_args args = {
        .m = (int)s->m,
        .n = (int)s->n,
        .k = has_product ? (int)s->k : 0,
        .lda = s->lda,
        .ldb = s->ldb,
        .ldc = s->ldc,
    };
    tgl_list_launch(builder, launch, &args, sizeof args);
    if (has_product) {
        patch(builder, TGL_VALUE_ALPHA_F32, 0, offsetof(ladder_args, alpha));
        patch(builder, TGL_VALUE_OPERAND, TGL_AT_A, offsetof(ladder_args, A));
        patch(builder, TGL_VALUE_OPERAND, TGL_AT_B, offsetof(ladder_args, B));
    }
    patch(builder, TGL_VALUE_BETA_F32, 0, offsetof(ladder_args, beta));
    patch(builder, TGL_VALUE_OPERAND, TGL_AT_D, offsetof(ladder_args, C));
}

static void launch(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                   const tgl_rectangle *part, bool is_strip, bool is_last,
                   tgl_list_builder *builder)
{
    (void)chip, (void)is_strip, (void)is_last;
    const ladder_row *row = &rows[choice->configuration];
    const tgl_kernel kernel = {.name = row->name,
                               .file = row->file,
                               .symbol = row->symbol,
                               .parameters = parameters,
                               .needs = row->needs};
    const grid blocks = grid_of(row, shape);
    const tgl_launch with_product = {
        .kernel = tgl_list_kernel(builder, &kernel),
        .grid = {(unsigned)blocks.x, (unsigned)blocks.y, 1},
        .cluster = {1, 1, 1},
        .threads = (unsigned)row->threads,
        .order = TGL_AFTER_ALL,
        .flag = -1,
        .part = *part,
        .repeats = 1,
        .count = 1,
        .last_count = 1,
    };
    tgl_launch without = with_product;
    without.conditions[without.condition_count++] = (tgl_condition){.kind = TGL_IF_NO_PRODUCT};
    tgl_list_step(builder, "tiles");
    add_launch(&without, shape, false, builder);
    add_launch(&with_product, shape, true, builder);
}

/* All rungs take what is not transposed. */
static bool example(int index, bool trans_a, bool trans_b, tgl_shape *shape)
{
    (void)index;
    *shape = tgl_example_shape(TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    return !trans_a && !trans_b;
}

const tgl_family tgl_family_ladder = {
    .name = "ladder",
    .summary = "FP32 kernels for teaching, from naive to fast; not transposed, no batches",
    .options = options,
    .is_on_request = true,
    .configuration = configuration,
    .lines = lines,
    .unsupported_reason = unsupported_reason,
    .predict = predict,
    .launch = launch,
    .example = example,
};
