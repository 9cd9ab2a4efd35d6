/* SPDX-License-Identifier: Apache-2.0
 *
 * The production family: its configurations, and what a problem makes of one.
 */
#include "plan/gemm.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Kernels count in ints, and look up to the size of a tile past the end of a matrix. */
enum { EXTENT_MAX = INT_MAX - 1024, GRID_Z_MAX = 65535, RASTER = 8, SPLITS_MAX = 256 };

/* Columns: name, BM, BN, BK, WM, WN, TM, TN, STAGES, MIN_BLOCKS, registers of a thread. From the
 * largest tile to the smallest; thread tiles of 16 x 8 have the most FFMAs to a load, smaller ones
 * leave room for more warps. */
// clang-format off
static const tgl_gemm_row rows[] = {
    {"gemm/simt_128x256x8",   128, 256,  8, 64, 64, 16, 8, 3, 1, 255},
    {"gemm/simt_256x128x8",   256, 128,  8, 64, 64, 16, 8, 3, 1, 255},
    {"gemm/simt_192x128x16",  192, 128, 16, 48, 64, 12, 8, 3, 1, 210},
    {"gemm/simt_128x128x8",   128, 128,  8, 64, 64, 16, 8, 3, 1, 253},
    {"gemm/simt_128x128x16",  128, 128, 16, 32, 64,  8, 8, 3, 1, 144},
    {"gemm/simt_96x128x16",    96, 128, 16, 48, 64, 12, 8, 3, 1, 210},
    {"gemm/simt_64x256x16",    64, 256, 16, 64, 64, 16, 8, 3, 1, 253},
    {"gemm/simt_128x64x16",   128,  64, 16, 32, 64,  8, 8, 3, 1, 156},
    {"gemm/simt_64x128x16",    64, 128, 16, 32, 64,  8, 8, 3, 1, 144},
    {"gemm/simt_64x64x16",     64,  64, 16, 32, 64,  8, 8, 3, 1, 146},
    {"gemm/simt_64x64x16_4",   64,  64, 16, 32, 32,  8, 4, 3, 1, 115},
    {"gemm/simt_32x128x16",    32, 128, 16, 32, 64,  8, 8, 3, 1, 144},
    {"gemm/simt_64x32x16",     64,  32, 16, 32, 32,  8, 4, 3, 1, 120},
    {"gemm/simt_32x64x16",     32,  64, 16, 32, 32,  8, 4, 3, 1, 119},
    {"gemm/simt_32x32x32",     32,  32, 32, 32, 16,  4, 4, 3, 1,  96},
};
// clang-format on
enum { ROWS = sizeof rows / sizeof rows[0] };

const tgl_gemm_row *tgl_gemm_row_at(int index)
{
    return index >= 0 && index < ROWS ? &rows[index] : NULL;
}

const tgl_gemm_row *tgl_gemm_row_find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

const char *tgl_gpu_kernel_name(int index)
{
    int rungs = 0;
    while (tgl_kernel_at(rungs) != NULL)
        rungs++;
    if (index < rungs) return index >= 0 ? tgl_kernel_at(index)->name : NULL;
    const tgl_gemm_row *row = tgl_gemm_row_at(index - rungs);
    return row != NULL ? row->name : NULL;
}

int tgl_gemm_row_threads(const tgl_gemm_row *row)
{
    return row->bm / row->wm * (row->bn / row->wn) * 32;
}

/* As struct stage of the kernel has it: padded rows of both tiles. */
int tgl_gemm_row_shared(const tgl_gemm_row *row)
{
    enum { PAD = 4 };
    return row->stages * row->bk * (row->bm + PAD + row->bn + PAD) * (int)sizeof(float);
}

tgl_status tgl_gemm_check(tgl_device *dev, const tgl_gemm_shape *shape)
{
    const char *name = dev->backend->name;
    if (shape->type_a != TGL_F32 || shape->type_b != TGL_F32 || shape->type_c != TGL_F32 ||
        shape->compute != TGL_COMPUTE_DEFAULT)
        return tgl_fail(dev, TGL_UNSUPPORTED,
                        "the %s device has kernels for FP32 in IEEE arithmetic only; use \"cpu\"",
                        name);
    if (shape->m > EXTENT_MAX || shape->n > EXTENT_MAX || shape->k > EXTENT_MAX)
        return tgl_fail(dev, TGL_UNSUPPORTED, "the %s device takes m, n and k up to %d", name,
                        EXTENT_MAX);
    return TGL_OK;
}

/* ---- A plan ---------------------------------------------------------------------------------- */

static int64_t ceil_div(int64_t x, int64_t y)
{
    return x / y + (x % y != 0);
}

/* The widest copy, 4, 2 or 1 floats, of an operand that lies along its edge. */
static int copy_width(int64_t edge, int64_t ld, int64_t batch, int64_t stride)
{
    const int64_t together = edge | ld | (batch > 1 ? stride : 0);
    return together % 4 == 0 ? 4 : together % 2 == 0 ? 2 : 1;
}

/* Whether byte offsets within a tile pass 32 bits: `edge` of it times `bk`. */
static bool is_wide(bool along_k, int edge, int bk, int64_t ld)
{
    const int64_t lines = along_k ? edge : bk;
    return ld >= ((int64_t)UINT32_MAX / 4 - edge - bk) / lines;
}

static void split(const tgl_gemm_shape *shape, int64_t tiles, int64_t whole, int splits,
                  tgl_gemm_plan *plan)
{
    const tgl_gemm_row *row = plan->row;
    plan->tiles_whole = (int)tiles;
    plan->splits = 1;
    if (whole < 0 || whole >= tiles || splits < 2) return;
    if (splits > SPLITS_MAX) splits = SPLITS_MAX;
    const int64_t chunk = ceil_div(ceil_div(shape->k, splits), row->bk) * row->bk;
    splits = (int)ceil_div(shape->k, chunk);
    if (splits < 2) return;
    plan->tiles_whole = (int)whole;
    plan->splits = splits;
    plan->k_chunk = (int)chunk;
    plan->counters = plan->batch_step * (tiles - whole);
    plan->workspace_floats = plan->counters * splits * row->bm * row->bn;
}

bool tgl_gemm_plan_make(const tgl_gemm_row *row, const tgl_gemm_shape *s, int64_t whole, int splits,
                        tgl_gemm_plan *plan)
{
    *plan = (tgl_gemm_plan){
        .row = row,
        .tiles_m = ceil_div(s->m, row->bm),
        .tiles_n = ceil_div(s->n, row->bn),
        .vec_a = s->trans_a ? copy_width(s->m, s->lda, s->batch, s->stride_a) : 1,
        .vec_b = s->trans_b ? 1 : copy_width(s->n, s->ldb, s->batch, s->stride_b),
        .wide_offsets = is_wide(!s->trans_a, row->bm, row->bk, s->lda) ||
                        is_wide(s->trans_b, row->bn, row->bk, s->ldb),
        .batch_step = s->batch < GRID_Z_MAX ? (int)s->batch : GRID_Z_MAX,
    };
    plan->raster = plan->tiles_m < RASTER ? (int)plan->tiles_m : RASTER;
    const int64_t tiles = plan->tiles_m * plan->tiles_n;
    if (tiles > INT_MAX / SPLITS_MAX && (tiles > INT_MAX || splits > 1)) return false;
    split(s, tiles, whole, splits, plan);
    return true;
}

/* ---- Variants -------------------------------------------------------------------------------- */

bool tgl_gemm_variant_make(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape, int which,
                           tgl_gemm_variant *variant)
{
    const tgl_gemm_row *row = plan->row;
    const bool is_any = which == TGL_GEMM_ANY;
    if (is_any && plan->vec_a == 1 && plan->vec_b == 1) return false;
    snprintf(variant->defines, sizeof variant->defines,
             "BM=%d BN=%d BK=%d WM=%d WN=%d TM=%d TN=%d STAGES=%d MIN_BLOCKS=%d TRANS_A=%d "
             "TRANS_B=%d VEC_A=%d VEC_B=%d SPLIT_K=%d WIDE_OFFSETS=%d",
             row->bm, row->bn, row->bk, row->wm, row->wn, row->tm, row->tn, row->stages,
             row->min_blocks, shape->trans_a, shape->trans_b, is_any ? 1 : plan->vec_a,
             is_any ? 1 : plan->vec_b, plan->splits > 1, plan->wide_offsets);
    variant->kernel = (tgl_kernel){
        .name = row->name,
        .file = "gemm/simt.cu",
        .symbol = "sgemm_simt",
        .defines = variant->defines,
        .block_m = row->bm,
        .block_n = row->bn,
        .threads = tgl_gemm_row_threads(row),
        .dynamic_shared = tgl_gemm_row_shared(row),
    };
    return true;
}

int tgl_gemm_variant_for(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape, const tgl_run *run)
{
    (void)shape;
    const bool is_aligned = (uintptr_t)run->A % (sizeof(float) * (unsigned)plan->vec_a) == 0 &&
                            (uintptr_t)run->B % (sizeof(float) * (unsigned)plan->vec_b) == 0;
    return is_aligned ? TGL_GEMM_ALIGNED : TGL_GEMM_ANY;
}

/* ---- Launches -------------------------------------------------------------------------------- */

void tgl_gemm_launch(const tgl_gemm_plan *plan, const tgl_gemm_shape *s, const tgl_run *run,
                     int64_t first, void *workspace, void *counters, tgl_gemm_args *args,
                     unsigned grid[3])
{
    const bool has_product = run->alpha != 0 && s->k > 0;
    const int64_t tiles = plan->tiles_m * plan->tiles_n;
    const int64_t whole = has_product ? plan->tiles_whole : tiles;
    const int64_t left = s->batch - first;
    *args = (tgl_gemm_args){
        .A = has_product ? (const float *)run->A + first * s->stride_a : NULL,
        .B = has_product ? (const float *)run->B + first * s->stride_b : NULL,
        .C = (float *)run->C + first * s->stride_c,
        .lda = s->lda,
        .ldb = s->ldb,
        .ldc = s->ldc,
        .stride_a = s->stride_a,
        .stride_b = s->stride_b,
        .stride_c = s->stride_c,
        .m = (int)s->m,
        .n = (int)s->n,
        .k = has_product ? (int)s->k : 0,
        .alpha = has_product ? (float)run->alpha : 0,
        .beta = (float)run->beta,
        .raster = plan->raster,
        .tiles_whole = (int)whole,
        .splits = plan->splits,
        .k_chunk = plan->k_chunk,
        .workspace = workspace,
        .counters = counters,
    };
    grid[0] = (unsigned)(whole + (tiles - whole) * plan->splits);
    grid[1] = 1;
    grid[2] = (unsigned)(left < plan->batch_step ? left : plan->batch_step);
}
