/* SPDX-License-Identifier: Apache-2.0
 *
 * The production families: their configurations, and what a problem makes of one.
 */
#include "plan/gemm.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Kernels count in ints, and look up to the size of a tile past the end of a matrix. */
enum { EXTENT_MAX = INT_MAX - 1024, GRID_Z_MAX = 65535, RASTER = 8, SPLITS_MAX = 256 };

/* Bytes that a thread may spill on some chip where MIN_BLOCKS bounds its registers: another block
 * on the multiprocessor is worth more. */
enum { SPILL_MOST = 64 };

/* Columns of gemm/simt.cu: name, BM, BN, BK, WM, WN, TM, TN, STAGES, SLICES, MIN_BLOCKS, registers
 * of a thread. From the largest tile to the smallest; thread tiles of 16 x 8 have the most FFMAs to
 * a load, smaller ones leave room for more warps, and slices give a small tile more of them. A name
 * ends in the thread tile where the block tile does not tell, and in the slices if there are any.
 * Columns of gemm/skinny.cu: name, COUNT; WARPS, RESULTS, LANES_K, UNROLL, STAGES, DEPTH,
 * MIN_BLOCKS, registers where the big operand lies along its length, then where it lies along k.
 * Columns of gemm/matvec.cu: name, COUNT, registers; LINES and UNROLL where the matrix lies along
 * k, UNROLL where it lies along its length. Columns of gemm/small_batch.cu: name, BM, BN, BK, TM,
 * TN, STAGES, PER_BLOCK, MIN_BLOCKS, registers. */
// clang-format off
#define SIMT(name_, ...) {.name = "gemm/simt_" name_, .family = TGL_SIMT, .simt = {__VA_ARGS__}}
#define SKINNY(name_, count_, length_, k_) {.name = "gemm/skinny_" name_, .family = TGL_SKINNY, .count = count_, .along_length = length_, .along_k = k_}
#define MATVEC(name_, count_, ...) {.name = "gemm/matvec" name_, .family = TGL_MATVEC, .count = count_, .matvec = {__VA_ARGS__}}
#define SMALL_BATCH(name_, ...) {.name = "gemm/small_batch_" name_, .family = TGL_SMALL_BATCH, .small_batch = {__VA_ARGS__}}
#define ALONG(...) {__VA_ARGS__}
static const tgl_gemm_row rows[] = {
    SIMT("128x256x8",    128, 256,  8, 64, 64, 16, 8, 4, 1, 1, 255),
    SIMT("256x128x8",    256, 128,  8, 64, 64, 16, 8, 4, 1, 1, 255),
    SIMT("128x128x8",    128, 128,  8, 64, 64, 16, 8, 4, 1, 1, 255),
    SIMT("128x128x16",   128, 128, 16, 32, 64,  8, 8, 2, 1, 2, 128),
    SIMT("128x128x16_1", 128, 128, 16, 32, 64,  8, 8, 3, 1, 1, 152),
    SIMT("64x256x8",      64, 256,  8, 64, 64, 16, 8, 4, 1, 1, 255),
    SIMT("128x64x16",    128,  64, 16, 32, 64,  8, 8, 3, 1, 1, 152),
    SIMT("128x64x8",     128,  64,  8, 32, 64,  8, 8, 3, 1, 1, 152),
    SIMT("64x128x8",      64, 128,  8, 32, 64,  8, 8, 4, 1, 1, 144),
    SIMT("64x128x16",     64, 128, 16, 32, 64,  8, 8, 3, 1, 1, 152),
    SIMT("64x64x16",      64,  64, 16, 32, 64,  8, 8, 3, 1, 1, 160),
    SIMT("64x64x16_8x4",  64,  64, 16, 32, 32,  8, 4, 3, 1, 1, 120),
    SIMT("64x64x16_4x4",  64,  64, 16, 32, 16,  4, 4, 3, 1, 1, 104),
    SIMT("256x32x8",     256,  32,  8, 64, 32,  8, 8, 4, 1, 1, 168),
    SIMT("128x32x32",    128,  32, 32, 32, 32,  8, 4, 2, 1, 1, 128),
    SIMT("64x32x32",      64,  32, 32, 32, 32,  8, 4, 2, 1, 1, 144),
    SIMT("32x64x16",      32,  64, 16, 32, 32,  8, 4, 3, 1, 1, 120),
    SIMT("32x64x16_4x4",  32,  64, 16, 32, 16,  4, 4, 3, 1, 1, 104),
    SIMT("32x64x32",      32,  64, 32, 32, 32,  8, 4, 2, 1, 1, 144),
    SIMT("32x32x16",      32,  32, 16, 32, 16,  4, 4, 3, 1, 1, 104),
    SIMT("32x32x32",      32,  32, 32, 32, 16,  4, 4, 3, 1, 1, 112),
    SIMT("16x128x32",     16, 128, 32, 16, 64,  4, 8, 2, 1, 2, 168),
    SIMT("128x64x8_s4",    128,  64,  8, 64, 64, 16, 8, 3, 4, 1, 244),
    SIMT("64x128x8_s4",     64, 128,  8, 64, 64, 16, 8, 3, 4, 1, 244),
    SIMT("96x128x8_s2",     96, 128,  8, 48, 64, 12, 8, 3, 2, 1, 200),
    SIMT("64x64x8_s4",      64,  64,  8, 32, 64,  8, 8, 3, 4, 1, 168),
    SIMT("32x64x8_s8",      32,  64,  8, 32, 64,  8, 8, 3, 8, 1, 208),
    SIMT("32x64x8_s4",      32,  64,  8, 32, 64,  8, 8, 3, 4, 1, 234),
    SIMT("32x64x8_8x4_s4",  32,  64,  8, 32, 32,  8, 4, 3, 4, 1, 128),
    SIMT("32x32x16_s4",     32,  32, 16, 32, 16,  4, 4, 3, 4, 1, 112),
    SIMT("32x32x16_s2",     32,  32, 16, 32, 16,  4, 4, 3, 2, 1, 112),
    SKINNY("1",   1, ALONG(16, 4, 1, 2, 3, 4096, 1, 126), ALONG(16, 2, 32, 4, 4, 4096, 1, 126)),
    SKINNY("2",   2, ALONG( 8, 4, 1, 2, 3, 1024, 2, 128), ALONG( 8, 4,  8, 2, 3, 1024, 2, 128)),
    SKINNY("4",   4, ALONG( 8, 8, 1, 1, 2,  512, 2, 128), ALONG( 8, 4,  8, 2, 3, 1024, 2, 128)),
    SKINNY("4_r8", 4, ALONG( 8, 8, 1, 1, 2,  512, 2, 128), ALONG( 8, 8,  8, 2, 2, 1024, 1, 255)),
    SKINNY("8",   8, ALONG( 8, 4, 1, 1, 3,  512, 2, 128), ALONG(12, 4,  8, 2, 3,  512, 1, 168)),
    SKINNY("16", 16, ALONG(12, 4, 1, 2, 3,  384, 1, 168), ALONG(12, 4,  8, 2, 3,  512, 1, 168)),
    MATVEC("",   1,  64, 1, 4, 8),
    MATVEC("_2", 2,  64, 1, 4, 8),
    MATVEC("_4", 4, 128, 2, 4, 8),
    SMALL_BATCH("16x16", 16, 16, 16, 4, 4, 2, 2, 18,  96),
    SMALL_BATCH("32x32", 32, 32, 32, 4, 4, 2, 1,  9,  96),
    SMALL_BATCH("48x48", 48, 48, 48, 4, 4, 2, 2,  2,  96),
    SMALL_BATCH("64x64", 64, 64, 32, 8, 4, 2, 1,  3, 168),
};

/* Columns: configuration, layout, floats to a copy or store (tgl_simt_schedule);
 * COPY_FROM, COPY_EVERY, LOAD_FROM, LOAD_EVERY, COLUMN_ORDER. Found on an H200 with NVRTC 13.0. */
static const tgl_simt_schedule schedules[] = {
    {"gemm/simt_128x256x8", "NN", 4, 46, 7, 7, 2, 1},
    {"gemm/simt_128x256x8", "NN", 1, 33, 7, 9, 2, 0},
    {"gemm/simt_128x256x8", "NT", 4, 13, 6, 4, 2, 1},
    {"gemm/simt_128x256x8", "NT", 1, 13, 6, 4, 2, 1},
    {"gemm/simt_128x256x8", "TN", 4, 0, 55, 9, 5, 1},
    {"gemm/simt_128x256x8", "TN", 1, 21, 5, 6, 2, 1},
    {"gemm/simt_128x256x8", "TT", 4, 39, 3, 1, 3, 0},
    {"gemm/simt_128x256x8", "TT", 1, 13, 8, 8, 3, 1},
    {"gemm/simt_256x128x8", "NN", 4, 30, 4, 0, 1, 1},
    {"gemm/simt_256x128x8", "NN", 1, 48, 3, 5, 2, 1},
    {"gemm/simt_256x128x8", "NT", 4, 13, 6, 4, 2, 1},
    {"gemm/simt_256x128x8", "NT", 1, 23, 4, 8, 1, 1},
    {"gemm/simt_256x128x8", "TN", 4, 13, 12, 7, 2, 1},
    {"gemm/simt_256x128x8", "TN", 1, 28, 3, 0, 2, 1},
    {"gemm/simt_256x128x8", "TT", 4, 62, 5, 5, 2, 1},
    {"gemm/simt_256x128x8", "TT", 1, 14, 2, 1, 1, 0},
    {"gemm/simt_128x64x8_s4", "NN", 4, 5, 3, 4, 2, 1},
    {"gemm/simt_128x64x8_s4", "NN", 1, 8, 4, 1, 2, 1},
    {"gemm/simt_128x64x8_s4", "NT", 4, 2, 4, 9, 3, 1},
    {"gemm/simt_128x64x8_s4", "NT", 1, 2, 4, 9, 3, 1},
    {"gemm/simt_128x64x8_s4", "TN", 4, 40, 7, 4, 5, 0},
    {"gemm/simt_128x64x8_s4", "TN", 1, 24, 3, 4, 2, 1},
    {"gemm/simt_128x64x8_s4", "TT", 4, 9, 5, 9, 6, 0},
    {"gemm/simt_128x64x8_s4", "TT", 1, 3, 4, 1, 3, 1},
    {"gemm/simt_64x128x8_s4", "NN", 4, 7, 3, 8, 5, 1},
    {"gemm/simt_64x128x8_s4", "NN", 1, 8, 4, 8, 4, 1},
    {"gemm/simt_64x128x8_s4", "NT", 4, 3, 4, 1, 3, 1},
    {"gemm/simt_64x128x8_s4", "NT", 1, 3, 4, 1, 3, 1},
    {"gemm/simt_64x128x8_s4", "TN", 4, 24, 4, 8, 4, 1},
    {"gemm/simt_64x128x8_s4", "TN", 1, 15, 2, 4, 2, 1},
    {"gemm/simt_64x128x8_s4", "TT", 4, 40, 2, 9, 1, 1},
    {"gemm/simt_64x128x8_s4", "TT", 1, 3, 4, 1, 3, 1},
    {"gemm/simt_64x64x8_s4", "NN", 4, 12, 4, 4, 1, 1},
    {"gemm/simt_64x64x8_s4", "NN", 1, 4, 3, 1, 2, 1},
};
// clang-format on
enum { ROWS = sizeof rows / sizeof rows[0] };

const char tgl_gemm_grid_too_large[] = "its grid would be too large";

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

const char *tgl_gemm_lacks(const tgl_gemm_shape *s)
{
    if (s->type_a != TGL_F32 || s->type_b != TGL_F32 || s->type_c != TGL_F32 ||
        s->compute != TGL_COMPUTE_DEFAULT)
        return "there are CUDA kernels for FP32 in IEEE arithmetic only; use the device \"cpu\"";
    if (s->m > EXTENT_MAX || s->n > EXTENT_MAX || s->k > EXTENT_MAX)
        return "CUDA kernels take m, n and k up to 2147482623";
    return NULL;
}

/* ---- A plan ---------------------------------------------------------------------------------- */

int tgl_gemm_copy_width(const tgl_gemm_shape *s, int64_t edge, int64_t ld, int64_t stride)
{
    const int64_t promised = s->alignment / (int64_t)sizeof(float);
    const int64_t apart = s->pointers ? (promised > 0 ? promised : 1) : s->batch > 1 ? stride : 0;
    const int64_t together = edge | ld | apart;
    return together % 4 == 0 ? 4 : together % 2 == 0 ? 2 : 1;
}

int tgl_gemm_store_width(const tgl_gemm_shape *s)
{
    return s->ldc % 4 == 0 ? 4 : 1;
}

/* Whether byte offsets within a tile pass 32 bits: `edge` of it times `bk`. */
static bool is_wide(bool along_k, int edge, int bk, int64_t ld)
{
    const int64_t lines = along_k ? edge : bk;
    return ld >= ((int64_t)UINT32_MAX / 4 - edge - bk) / lines;
}

/* As struct stage of the kernel has it: padded rows of both tiles, for each slice. Partial sums of
 * slices and split tiles take their place. */
static int simt_shared(const tgl_gemm_plan *plan)
{
    enum { PAD = 4 };
    const tgl_simt_row *t = &plan->row->simt;
    const int stages = t->stages * t->bk * (t->bm + PAD + t->bn + PAD), tile = t->bm * t->bn;
    const bool has_sums = plan->cluster > 1 || t->slices > 1;
    return t->slices * (has_sums && tile > stages ? tile : stages) * (int)sizeof(float);
}

/* Whether `blocks` in clusters of this size find a multiprocessor each, if there are enough: those
 * of a cluster must lie in one group of multiprocessors (a GPC), which has some 14 to 18. Where
 * they do not, a cluster's blocks share multiprocessors while others idle. */
static bool has_room(int cluster, double blocks, int multiprocessors)
{
    static const double shares[] = {1, 1, 1, 0.88, 0.90, 0.83, 0.77, 0.79, 0.90};
    return blocks <= shares[cluster] * multiprocessors * ceil(blocks / multiprocessors);
}

enum { GROUPS_MOST = 16 }; /* that are added up quickly enough */

/* The largest cluster that `splits` is a multiple of and that has room, else pairs or none, unless
 * that leaves too many groups. The `whole` blocks of tiles that are not split come in clusters,
 * too. */
static int cluster_of(const tgl_gemm_split *split, int splits, double whole, double blocks)
{
    int largest = 1;
    for (int c = split->cluster_most; c > 1; c--) {
        if (splits % c != 0) continue;
        if (has_room(c, whole, split->multiprocessors) &&
            has_room(c, blocks, split->multiprocessors))
            return c;
        largest = c > largest ? c : largest;
    }
    const int small = largest > 1 && splits % 2 == 0 ? 2 : 1;
    return splits / small <= GROUPS_MOST ? small : largest;
}

static void split_tiles(const tgl_gemm_shape *s, const tgl_gemm_split *split, tgl_gemm_plan *plan)
{
    const tgl_simt_row *t = &plan->row->simt;
    const int64_t tiles = plan->tiles_m * plan->tiles_n;
    plan->tiles_whole = (int)tiles;
    if (split->whole >= tiles || split->splits < 2) return;
    const int64_t asked = split->splits < SPLITS_MAX ? split->splits : SPLITS_MAX;
    const int64_t part = split->chunk > 0 ? split->chunk : tgl_ceil_div(s->k, asked);
    if (part >= s->k) return; /* too little for a second */
    const int64_t chunk = tgl_ceil_div(part, tgl_simt_step(t)) * tgl_simt_step(t);
    const int64_t most = tgl_ceil_div(s->k, chunk);
    const int64_t splits = most < asked ? most : asked;
    if (splits < 2) return;
    plan->splits = (int)splits;
    plan->k_chunk = (int)chunk;
    const double whole = (double)split->whole * (double)s->batch;
    const double pieces = (double)((tiles - split->whole) * splits) * (double)s->batch;
    if (split->chunk == 0) plan->cluster = cluster_of(split, plan->splits, whole, whole + pieces);
    plan->tiles_whole = (int)(split->whole - split->whole % plan->cluster);
    const int64_t groups = splits / plan->cluster;
    if (groups == 1) return;
    plan->counters = plan->batch_step * (tiles - plan->tiles_whole) * plan->cluster;
    plan->workspace_floats =
        plan->batch_step * (tiles - plan->tiles_whole) * groups * t->bm * t->bn;
}

static const char *simt_plan_make(const tgl_gemm_shape *s, const tgl_gemm_split *split,
                                  tgl_gemm_plan *plan)
{
    const tgl_simt_row *t = &plan->row->simt;
    if (t->min_blocks > 1 && !s->trans_a && s->trans_b)
        return "copies along k of both operands need more registers than it has";
    plan->is_bounded = t->min_blocks > 1;
    plan->threads = t->bm / t->wm * (t->bn / t->wn) * 32 * t->slices;
    plan->registers = t->registers;
    plan->static_shared = 0;
    plan->tiles_m = tgl_ceil_div(s->m, t->bm);
    plan->tiles_n = tgl_ceil_div(s->n, t->bn);
    plan->raster = plan->tiles_m < RASTER ? (int)plan->tiles_m : RASTER;
    plan->vec_a = s->trans_a ? tgl_gemm_copy_width(s, s->m, s->lda, s->stride_a) : 1;
    plan->vec_b = s->trans_b ? 1 : tgl_gemm_copy_width(s, s->n, s->ldb, s->stride_b);
    plan->wide_offsets =
        is_wide(!s->trans_a, t->bm, t->bk, s->lda) || is_wide(s->trans_b, t->bn, t->bk, s->ldb);
    const int64_t tiles = plan->tiles_m * plan->tiles_n;
    if (tiles > (split->splits > 1 ? INT_MAX / SPLITS_MAX : INT_MAX))
        return tgl_gemm_grid_too_large;
    /* The kernel counts split tiles over all problems of a launch. */
    if (split->splits > 1 && tiles > INT_MAX / plan->batch_step) return tgl_gemm_grid_too_large;
    split_tiles(s, split, plan);
    plan->dynamic_shared = simt_shared(plan);
    return NULL;
}

const char *tgl_gemm_plan_make(const tgl_gemm_row *row, const tgl_gemm_shape *s,
                               const tgl_gemm_split *split, tgl_gemm_plan *plan)
{
    *plan = (tgl_gemm_plan){
        .row = row,
        .splits = 1,
        .cluster = 1,
        .batch_step = s->batch < GRID_Z_MAX ? (int)s->batch : GRID_Z_MAX,
    };
    switch (row->family) {
    case TGL_SKINNY:
        return tgl_skinny_plan_make(s, split, plan);
    case TGL_SMALL_BATCH:
        return tgl_small_batch_plan_make(s, split, plan);
    case TGL_MATVEC:
        return tgl_matvec_plan_make(s, split, plan);
    case TGL_SIMT:
        break;
    }
    return simt_plan_make(s, split, plan);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

void tgl_gemm_part_make(const tgl_gemm_shape *shape, int64_t row, int64_t col, int64_t m, int64_t n,
                        tgl_gemm_part *part)
{
    *part = (tgl_gemm_part){.row = row, .col = col, .shape = *shape};
    part->shape.m = m;
    part->shape.n = n;
}

static const float *offset(const void *base, int64_t elements)
{
    return base != NULL ? (const float *)base + elements : NULL;
}

tgl_run tgl_gemm_part_run(const tgl_gemm_part *part, const tgl_run *run)
{
    const tgl_gemm_shape *s = &part->shape;
    const int64_t row = part->row, col = part->col;
    tgl_run own = *run;
    if (row == 0 && col == 0) return own;
    own.A = offset(run->A, row * (s->trans_a ? 1 : s->lda));
    own.B = offset(run->B, col * (s->trans_b ? s->ldb : 1));
    own.C = (float *)run->C + row * s->ldc + col;
    own.bias = offset(run->bias, s->epilogue.bias == TGL_BIAS_ROW ? row : col);
    own.residual = offset(run->residual, row * s->epilogue.ld_residual + col);
    return own;
}

static const char *lacks_strips(const tgl_gemm_row *row, const tgl_gemm_shape *s)
{
    if (row->family != TGL_SIMT) return "strips lie beside tiles of gemm/simt.cu only";
    if (s->pointers) return "strips are at no offset from what arrays of pointers lead to";
    if (s->epilogue.expression != NULL) return "in a strip an expression's row and col are others";
    if (s->batch > GRID_Z_MAX) return "strips are for batches of a single launch";
    return NULL;
}

/* What of `size` lies past the last whole tile, if a strip can take it; else 0. */
static int64_t strip_width(int64_t size, int tile)
{
    return size > tile && size % tile <= TGL_STRIP_WIDTH_MOST ? size % tile : 0;
}

int tgl_gemm_strips(const tgl_gemm_row *row, const tgl_gemm_shape *s, tgl_gemm_part *tiles,
                    tgl_gemm_part strips[TGL_STRIPS_MOST], const char **why)
{
    int count = 0;
    *why = lacks_strips(row, s);
    if (*why != NULL) return 0;
    const int64_t below = strip_width(s->m, row->simt.bm), right = strip_width(s->n, row->simt.bn);
    const int64_t m = s->m - below, n = s->n - right;
    tgl_gemm_part_make(s, 0, 0, m, n, tiles);
    if (right > 0) tgl_gemm_part_make(s, 0, n, s->m, right, &strips[count++]);
    if (below > 0) tgl_gemm_part_make(s, m, 0, below, n, &strips[count++]);
    if (count == 0) *why = "its tiles leave no strip of 1 to 16 rows or columns";
    return count;
}

/* ---- Variants -------------------------------------------------------------------------------- */

static const tgl_simt_schedule *tried;

void tgl_simt_schedule_try(const tgl_simt_schedule *when)
{
    tried = when;
}

static bool is_for(const tgl_simt_schedule *when, const tgl_gemm_row *row, const tgl_gemm_shape *s,
                   int vec_a, int vec_b, int vec_c)
{
    const bool is_along_k = !s->trans_a && s->trans_b; /* both operands */
    return strcmp(when->name, row->name) == 0 && s->trans_a == (when->layout[0] == 'T') &&
           s->trans_b == (when->layout[1] == 'T') && (!s->trans_a || vec_a == when->width) &&
           (s->trans_b || vec_b == when->width) && (!is_along_k || vec_c == when->width);
}

const tgl_simt_schedule *tgl_simt_schedule_find(const tgl_gemm_row *row, const tgl_gemm_shape *s,
                                                int vec_a, int vec_b, int vec_c)
{
    if (tried != NULL && is_for(tried, row, s, vec_a, vec_b, vec_c)) return tried;
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++)
        if (is_for(&schedules[i], row, s, vec_a, vec_b, vec_c)) return &schedules[i];
    return NULL;
}

/* INSIDE matters to narrow copies along an edge only. */
static void simt_defines(const tgl_gemm_plan *plan, const tgl_gemm_shape *s, bool is_any,
                         char *text, size_t size)
{
    const tgl_simt_row *t = &plan->row->simt;
    const int vec_a = is_any ? 1 : plan->vec_a, vec_b = is_any ? 1 : plan->vec_b;
    const int vec_c = is_any ? 1 : tgl_gemm_store_width(s);
    const tgl_simt_schedule *when = tgl_simt_schedule_find(plan->row, s, vec_a, vec_b, vec_c);
    const bool is_narrow = (s->trans_a && vec_a < 4) || (!s->trans_b && vec_b < 4);
    snprintf(text, size,
             "BM=%d BN=%d BK=%d WM=%d WN=%d TM=%d TN=%d STAGES=%d SLICES=%d MIN_BLOCKS=%d "
             "TRANS_A=%d TRANS_B=%d VEC_A=%d VEC_B=%d WIDE_OFFSETS=%d INSIDE=%d LINES_OF_C=%d",
             t->bm, t->bn, t->bk, t->wm, t->wn, t->tm, t->tn, t->stages, t->slices, t->min_blocks,
             s->trans_a, s->trans_b, vec_a, vec_b, plan->wide_offsets,
             is_narrow && s->m >= t->bm && s->n >= t->bn, t->slices == 1 && vec_c == 1);
    const size_t length = strlen(text);
    if (when != NULL)
        snprintf(text + length, size - length,
                 " COPY_FROM=%d COPY_EVERY=%d LOAD_FROM=%d LOAD_EVERY=%d COLUMN_ORDER=%d",
                 when->copy_from, when->copy_every, when->load_from, when->load_every,
                 when->column_order);
}

/* What an epilogue adds to a kernel's macros. */
static void add_epilogue(const tgl_gemm_epilogue *e, char *text, size_t size)
{
    const struct {
        const char *name;
        int value;
    } macros[] = {{"BIAS", (int)e->bias},
                  {"ACTIVATION", (int)e->activation},
                  {"RESIDUAL", e->residual},
                  {"EXPRESSION", e->expression != NULL}};
    for (size_t i = 0; i < sizeof macros / sizeof macros[0]; i++) {
        const size_t length = strlen(text);
        if (macros[i].value != 0)
            snprintf(text + length, size - length, " %s=%d", macros[i].name, macros[i].value);
    }
}

bool tgl_gemm_variant_make(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape, int which,
                           tgl_gemm_variant *variant)
{
    static const char *const files[] = {"gemm/simt.cu", "gemm/skinny.cu", "gemm/small_batch.cu",
                                        "gemm/matvec.cu"};
    static const char *const symbols[] = {"sgemm_simt", "sgemm_skinny", "sgemm_small_batch",
                                          "sgemm_matvec"};
    const tgl_gemm_row *row = plan->row;
    const bool is_any = which == TGL_GEMM_ANY;
    if (is_any && (shape->pointers || (plan->vec_a == 1 && plan->vec_b == 1))) return false;
    int block_m = row->simt.bm, block_n = row->simt.bn, loop_ffmas = 0;
    switch (row->family) {
    case TGL_SIMT:
        simt_defines(plan, shape, is_any, variant->defines, sizeof variant->defines);
        loop_ffmas = row->simt.bk * row->simt.tm * row->simt.tn;
        break;
    case TGL_SKINNY:
    case TGL_MATVEC:
        (row->family == TGL_SKINNY ? tgl_skinny_defines : tgl_matvec_defines)(
            plan, is_any, variant->defines, sizeof variant->defines);
        block_m = plan->big_a ? plan->per_block : row->count;
        block_n = plan->big_a ? row->count : plan->per_block;
        break;
    case TGL_SMALL_BATCH:
        tgl_small_batch_defines(plan, shape, is_any, variant->defines, sizeof variant->defines);
        block_m = row->small_batch.bm, block_n = row->small_batch.bn;
        break;
    }
    add_epilogue(&shape->epilogue, variant->defines, sizeof variant->defines);
    variant->kernel = (tgl_kernel){
        .name = row->name,
        .file = files[row->family],
        .symbol = symbols[row->family],
        .defines = variant->defines,
        .block_m = block_m,
        .block_n = block_n,
        .threads = plan->threads,
        .dynamic_shared = tgl_gemm_dynamic_shared(plan, which),
        .loop_ffmas = loop_ffmas,
        .local_bytes = plan->is_bounded ? SPILL_MOST : 0,
        .expression = shape->epilogue.expression,
    };
    return true;
}

int tgl_gemm_dynamic_shared(const tgl_gemm_plan *plan, int which)
{
    const bool differs = which == TGL_GEMM_ANY && plan->dynamic_shared_any > 0;
    return differs ? plan->dynamic_shared_any : plan->dynamic_shared;
}

int tgl_gemm_variant_for(const tgl_gemm_plan *plan, const tgl_run *run)
{
    const bool is_aligned = (uintptr_t)run->A % (sizeof(float) * (unsigned)plan->vec_a) == 0 &&
                            (uintptr_t)run->B % (sizeof(float) * (unsigned)plan->vec_b) == 0;
    return is_aligned ? TGL_GEMM_ALIGNED : TGL_GEMM_ANY;
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void set_grid(const tgl_gemm_plan *plan, bool has_product, tgl_gemm_args *args,
                     unsigned grid[3])
{
    grid[1] = 1;
    if (plan->row->family != TGL_SIMT) {
        grid[0] = (unsigned)plan->blocks;
        return;
    }
    const int64_t tiles = plan->tiles_m * plan->tiles_n;
    const int64_t whole = has_product ? plan->tiles_whole : tiles;
    args->tiles_whole = (int)whole;
    grid[0] = (unsigned)(whole + (tiles - whole) * plan->splits);
}

void tgl_gemm_launch(const tgl_gemm_plan *plan, const tgl_gemm_shape *s, const tgl_run *run,
                     int64_t first, void *workspace, void *counters, tgl_gemm_args *args,
                     unsigned grid[3])
{
    const bool has_product = run->alpha != 0 && s->k > 0;
    const int64_t left = s->batch - first;
    const tgl_gemm_epilogue *e = &s->epilogue;
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
        .splits = plan->splits,
        .cluster = has_product ? plan->cluster : 1,
        .k_chunk = plan->k_chunk,
        .workspace = workspace,
        .counters = counters,
        .small_along_k = plan->big_a ? s->trans_b : !s->trans_a,
    };
    if (s->pointers) {
        args->A_array = has_product ? (const float *const *)run->A_array + first : NULL;
        args->B_array = has_product ? (const float *const *)run->B_array + first : NULL;
        args->C_array = (float *const *)run->C_array + first;
    }
    if (e->bias != TGL_BIAS_NONE) {
        args->bias = (const float *)run->bias + first * e->stride_bias;
        args->stride_bias = e->stride_bias;
    }
    if (e->residual) {
        args->residual = (const float *)run->residual + first * e->stride_residual;
        args->ld_residual = e->ld_residual;
        args->stride_residual = e->stride_residual;
    }
    set_grid(plan, has_product, args, grid);
    args->batch = (int)(left < plan->batch_step ? left : plan->batch_step);
    grid[2] = plan->row->family == TGL_SMALL_BATCH ? 1 : (unsigned)args->batch;
}
