/* SPDX-License-Identifier: Apache-2.0
 *
 * The ladder: teaching kernels (rungs), each of which adds a step to the previous one. Chapter 1
 * multiplies FP32 on CUDA cores, chapter 2 f16 on tensor cores, and chapter 3 FP32 on tensor cores.
 * The planner chooses a rung only if it is asked for by name. Rungs have no options, and their time
 * is not predicted.
 */
#include "families/cost.h"
#include "families/ladder_geometry.h"
#include "families/unsupported.h"

/* ---- Rungs ----------------------------------------------------------------------------------- */

enum { HOPPER = TGL_HAS_WGMMA | TGL_HAS_TMA };

/* The rungs in their order. Columns: the members of ladder_row (ladder_geometry.h). The kernels are
 * compiled with the default tile macros of their files, and block_m, block_n and threads must agree
 * with these. Rungs 27 to 29 and 34 to 36 do not use cp.async. For them TGL_HAS_ASYNC_COPY means
 * compute capability 8.0, which the mma.sync shapes of rungs 28, 29 and 34 to 36 need (m16n8k16;
 * m16n8k8 of TF32). The wmma of rung 27 would need only 7.0. */
// clang-format off
static const ladder_row ladder_rows[] = {
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

static const char *const ladder_options[] = {NULL};

/* Returns why no rung supports the shape, or NULL. */
static const char *ladder_unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
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

/* Returns why this rung does not support the shape on the chip, or NULL. */
static const char *rung_unsupported_reason(const ladder_row *row, const tgl_chip *chip,
                                           const tgl_shape *s)
{
    const int64_t ld_max = tgl_map_stride_max(TGL_F16);
    const bool is_half = s->type_a == TGL_F16;
    if (row->chapter == HALF && !is_half) return "the rung multiplies f16";
    if (row->chapter != HALF && is_half) return "the rung multiplies FP32";
    if (row->chapter == WORDS && s->compute != TGL_COMPUTE_TF32)
        return "the rung rounds FP32 to words of TF32, which only the compute mode tf32 permits";
    if (row->maps > 0 && (s->lda > ld_max || s->ldb > ld_max || s->ldc > ld_max))
        return "TMA takes strides below 2^40 bytes";
    if ((row->needs & ~chip->features) == 0) return NULL;
    return row->maps > 0 ? "it needs wgmma and TMA: compute capability 9.0"
                         : "it needs compute capability 8.0"; /* TGL_HAS_ASYNC_COPY */
}

/* ---- Prediction ------------------------------------------------------------------------------ */

static void ladder_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    const ladder_row *row = tgl_choice_row(&c->choice);
    const ladder_geometry g = tgl_ladder_geometry_of(row, chip, s);
    const char *reason = rung_unsupported_reason(row, chip, s);
    c->threads = row->threads;
    c->splits = g.splits;
    c->shared_bytes = row->shared;
    c->blocks = (double)g.x * (double)g.y;
    c->workspace_bytes = tgl_round_up(g.sums, TGL_WORKSPACE_ALIGNMENT) +
                         tgl_round_up(g.counters, TGL_WORKSPACE_ALIGNMENT) + g.repacked;
    c->repacked_bytes = g.repacked;
    c->launches = 1 + (g.repack_count > 0);
    if (reason != NULL)
        tgl_reject(c, reason);
    else if (g.x > TGL_GRID_X_MAX || g.y > TGL_GRID_YZ_MAX || g.too_many)
        tgl_reject(c, tgl_grid_too_large);
    else if (tgl_repack_fault(g.repacks, g.repack_count) != NULL)
        tgl_reject(c, tgl_repack_fault(g.repacks, g.repack_count));
}

/* ---- Examples, and the family ---------------------------------------------------------------- */

/* Rungs accept only untransposed operands. */
static bool ladder_example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    const ladder_chapter own = ladder_rows[index].chapter;
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    if (own == WORDS) shape->compute = TGL_COMPUTE_TF32;
    return type == (own == HALF ? TGL_F16 : TGL_F32) && !trans_a && !trans_b;
}

const tgl_family tgl_family_ladder = {
    .name = "ladder",
    .summary = "kernels for teaching, from naive to fast; not transposed, no batches",
    .options = ladder_options,
    .is_on_request = true,
    TGL_ROWS(ladder_rows),
    .unsupported_reason = ladder_unsupported_reason,
    .predict = ladder_predict,
    .launch = tgl_ladder_launch,
    .example = ladder_example,
};
