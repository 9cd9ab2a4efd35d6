/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/mma.cu: products on the tensor cores by mma.sync: f16, bf16, FP32 as tf32, f64, of any
 * shape and alignment. A block computes a tile of D; where tiles are few, or do not fill the last
 * wave, some of them are split over K (split-K).
 */
#include "families/gemm_launch.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef struct mma_row {
    const char *name;
    int bm, bn;    /* the tile of D that a block computes */
    int bk_bytes;  /* its steps along K: bytes of A and of B, whatever their type */
    int wm, wn;    /* of a warp */
    int stages;    /* tiles in shared memory */
    int slices;    /* groups of warps that share the K of a tile */
    int fragments; /* for which a thread has room: FRAGMENTS of mma.cu */
    bool is_f64;   /* for f64; else for the other types */
    int registers; /* of a thread, as compiled for sm_90a: the most of all types and layouts */
} mma_row;

/* From the largest tile to the smallest: name, BM, BN, BK in bytes, WM, WN, STAGES, SLICES,
 * FRAGMENTS, for f64, registers of a thread. Warps of 64 x 64, or 64 x 32 of f64, load the
 * least for each mma.sync, smaller ones leave room for more of them. Rows of up to 96 KB fit the
 * chips with 100 KB of shared memory. A name has the tile, with BK in bytes, _w and the warps where
 * the tile does not tell, _s and the slices, and f64. */
// clang-format off
static const mma_row rows[] = {
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
enum { ROWS = sizeof rows / sizeof rows[0] };

enum { REGISTERS_CROWDED = 250 }; /* of the 255 that a thread may use: no room for narrow copies */

/* splits: blocks that share the K of a tile. whole: tiles that are not split. */
static const char *const options[] = {"splits", "whole", NULL};
enum { SPLITS, WHOLE };

static const char *configuration(int index)
{
    return index >= 0 && index < ROWS ? rows[index].name : NULL;
}

static void tile(int index, int *m, int *n)
{
    *m = rows[index].bm;
    *n = rows[index].bn;
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice serves a shape on a chip. */
typedef struct geometry {
    const mma_row *row;
    int size;                    /* bytes of an element of A and B */
    int threads, dynamic_shared; /* of a block; bytes */
    int batch_step;              /* problems of the batch in a launch */
    int64_t tiles_m, tiles_n;
    int raster;        /* rows of tiles in a band: gemm_args.h */
    int tiles_whole;   /* tiles that one block computes; each of the others has `splits` blocks */
    int splits;        /* blocks that share a tile */
    int k_chunk;       /* K of each of them but the last, which takes the rest */
    int vec_a, vec_b;  /* elements in a copy */
    int64_t workspace; /* partial sums */
    int64_t counters;
} geometry;

enum { RASTER = 8 };

static int64_t tiles_of(const geometry *g)
{
    return g->tiles_m * g->tiles_n;
}

static int sum_bytes(const geometry *g)
{
    return g->row->is_f64 ? 8 : 4;
}

/* Whether 16-bit elements go through registers, because their addresses are odd. */
static bool is_plain(const geometry *g, int vec_a, int vec_b)
{
    return g->size * tgl_min64(vec_a, vec_b) < 4;
}

/* Copies through registers arrive one tile late: more than three stages gain nothing. */
static int stages_of(const geometry *g, int vec_a, int vec_b)
{
    return is_plain(g, vec_a, vec_b) ? 3 : g->row->stages;
}

/* As the kernel has it: stages, whose place the sums of slices and the epilogue's rows take. */
static int shared_bytes(const geometry *g, int vec_a, int vec_b)
{
    const mma_row *t = g->row;
    const int stages = stages_of(g, vec_a, vec_b) * (t->bm + t->bn) * t->bk_bytes;
    const int results = t->bm / t->wm * (t->bn / t->wn) * 16 * (t->wn + 8);
    const int slices = (t->slices - 1) * t->bm * t->bn;
    const int sums = (results > slices ? results : slices) * sum_bytes(g);
    return stages > sums ? stages : sums;
}

/* Splits the tiles from number `whole` on, as far as their K allows. */
static void split_tiles(const tgl_shape *s, const tgl_choice *choice, geometry *g)
{
    const int64_t tiles = tiles_of(g), whole = tgl_option(choice, WHOLE, 0);
    const int64_t asked = tgl_min64(tgl_option(choice, SPLITS, 1), TGL_SPLITS_MAX);
    g->tiles_whole = (int)tiles;
    if (whole >= tiles || asked < 2) return;
    const int64_t chunk = tgl_round_up(tgl_ceil_div(s->k, asked), g->row->bk_bytes / g->size);
    const int64_t splits = chunk > 0 ? tgl_ceil_div(s->k, chunk) : 1;
    if (splits < 2) return; /* too little for a second block */
    g->splits = (int)splits;
    g->k_chunk = (int)chunk;
    g->tiles_whole = (int)whole;
    g->counters = g->batch_step * (tiles - whole);
    g->workspace = g->counters * splits * g->row->bm * g->row->bn;
}

/* NULL, or why the choice cannot serve. */
static const char *make_geometry(const tgl_shape *s, const tgl_choice *choice, geometry *g)
{
    const mma_row *t = &rows[choice->configuration];
    *g = (geometry){.row = t, .size = (int)tgl_type_size(s->type_a), .splits = 1};
    if (t->is_f64 != (s->type_a == TGL_F64))
        return t->is_f64 ? "it is for f64" : "it is for types other than f64";
    g->threads = t->bm / t->wm * (t->bn / t->wn) * 32 * t->slices;
    g->batch_step = (int)tgl_min64(s->batch, TGL_GRID_YZ_MAX);
    g->tiles_m = tgl_ceil_div(s->m, t->bm);
    g->tiles_n = tgl_ceil_div(s->n, t->bn);
    g->raster = (int)tgl_min64(g->tiles_m, RASTER);
    g->vec_a = tgl_copy_width(s, 0, s->lda, s->stride_a);
    g->vec_b = tgl_copy_width(s, 0, s->ldb, s->stride_b);
    const bool is_split = tgl_option(choice, SPLITS, 1) > 1;
    if (tiles_of(g) > (is_split ? TGL_GRID_X_MAX / TGL_SPLITS_MAX : TGL_GRID_X_MAX))
        return tgl_grid_too_large;
    /* The kernel counts split tiles over all problems of a launch. */
    if (is_split && tiles_of(g) > INT_MAX / g->batch_step) return tgl_grid_too_large;
    split_tiles(s, choice, g);
    g->dynamic_shared = shared_bytes(g, g->vec_a, g->vec_b);
    return NULL;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Fitted to times on an H200: of bf16 at 512, 2048 and 4096 cubed, of f64 at 4096 cubed, by tiles
 * of 32 x 32 to 256 x 128, and of 340 products of random sizes up to 5500 in bf16, TF32 and f64. */
enum {
    TILE_CYCLES = 2900,       /* before the first mma.sync of a tile and after its last, without: */
    WARP_RESULT_CYCLES = 1,   /* of each result of a warp, which moves them through shared memory */
    WAIT_CYCLES = 60,         /* of a tile of K: the barrier, and the first fragments after it */
    PLAIN_WAIT_CYCLES = 900,  /* or copies through registers */
    STORE_BYTES_A_CLOCK = 32, /* of D, that an SM stores in aligned groups of four, */
    SINGLE_BYTES_A_CLOCK = 8, /* or as scalars */
    REDUCE_CYCLES = 1600,     /* of a split tile: fences, the counter */
    SPLIT_CYCLES = 130,       /* of each split: its sums are added before those of the next */
    SPLIT_BYTES_A_CLOCK = 26, /* that one block moves between itself and L2 */
    READ_BYTES_A_CLOCK = 128, /* of fragments, from an SM's shared memory */
    COPY_BYTES_A_CLOCK = 32,  /* by cp.async into shared memory, which is not read meanwhile */
    COPY_4_BYTES_A_CLOCK = 20, /* by cp.async of 4 bytes a thread */
    PLAIN_BYTES_A_CLOCK = 14,  /* through registers */
};
static const double LOOP_SHARE =
    0.95; /* fraction of these rates, and of the tensor cores', in main loops */
/* Of the copy rate, that main loops reach; and where tiles have 16 rows or columns. H200, of
 * 4.3 TB/s: 1x28672x8192 bf16 3.0, f64 2.9; 28672x1x8192 2.0. */
static const double MEMORY_SHARE = 0.68, THIN_MEMORY_SHARE = 0.5;

/* Multiply-adds of an SM in a clock by mma.sync. On 9.0 it reaches about 62 % of wgmma's rate, on
 * 10.x a quarter of tcgen05's, and on all chips the full f64 rate. Chips without f64 tensor cores
 * do two in a clock (CUDA programming guide, throughput of arithmetic instructions). */
static double mma_rate(const tgl_chip *chip, tgl_type type)
{
    const double share = chip->capability == 90                               ? 0.62
                         : chip->capability == 100 || chip->capability == 103 ? 0.25
                                                                              : 1;
    const double half = share * chip->tensor_flops / 2, f64 = chip->tensor_f64_flops / 2.0;
    if (type == TGL_F64) return f64 > 0 ? f64 : 2;
    return type == TGL_F32 ? half / 2 : half;
}

/* Cycles of an SM to copy a tile of one operand, edge wide, with `vec` elements a copy. */
static double copy_cycles(const geometry *g, int edge, int vec)
{
    const double bytes = edge * g->row->bk_bytes;
    const int width = g->size * vec;
    return bytes / (width > 4    ? COPY_BYTES_A_CLOCK
                    : width == 4 ? COPY_4_BYTES_A_CLOCK
                                 : PLAIN_BYTES_A_CLOCK);
}

/* Cycles of an SM that multiplies a tile of K of each of `blocks` resident blocks. */
static double step_cycles(const tgl_chip *chip, const tgl_shape *s, const geometry *g, int blocks)
{
    const mma_row *t = g->row;
    const double bk = (double)t->bk_bytes / g->size;
    const double arithmetic = t->bm * t->bn * bk / mma_rate(chip, s->type_a);
    const double reads = ((double)t->bm * t->bn / t->wn + (double)t->bn * t->bm / t->wm) *
                         t->bk_bytes / READ_BYTES_A_CLOCK;
    const double copies = copy_cycles(g, t->bm, g->vec_a) + copy_cycles(g, t->bn, g->vec_b);
    const double longest = tgl_larger(arithmetic, reads + copies) / LOOP_SHARE;
    /* A warp waits for its fragments and the barrier while those of other blocks compute. */
    const int wait = is_plain(g, g->vec_a, g->vec_b) ? PLAIN_WAIT_CYCLES : WAIT_CYCLES;
    return tgl_larger(blocks * longest, longest + wait);
}

/* Cycles of an SM that works on `blocks` blocks at once, each `depth` deep in K. */
static double block_cycles(const tgl_chip *chip, const tgl_shape *s, const geometry *g, int blocks,
                           double depth)
{
    if (blocks == 0) return 0;
    const mma_row *t = g->row;
    const double steps = ceil(depth * g->size / t->bk_bytes);
    return steps * step_cycles(chip, s, g, blocks) + TILE_CYCLES +
           WARP_RESULT_CYCLES * t->wm * t->wn;
}

/* Cycles of an SM to store a tile. */
static double store_cycles(const tgl_shape *s, const geometry *g)
{
    const double bytes = (double)tgl_type_size(s->type_d) * g->row->bm * g->row->bn;
    const int group = tgl_type_size(s->type_d) == 8 ? 2 : 4; /* results in a store */
    return bytes / (s->ldd % group == 0 ? STORE_BYTES_A_CLOCK : SINGLE_BYTES_A_CLOCK);
}

/* Cycles to add up a split tile. */
static double reduce_cycles(const geometry *g)
{
    const double bytes = (double)sum_bytes(g) * g->row->bm * g->row->bn;
    return REDUCE_CYCLES + SPLIT_CYCLES * g->splits + (1 + g->splits) * bytes / SPLIT_BYTES_A_CLOCK;
}

/* Cycles of `count` blocks: full waves, then one that may leave SMs idle. after: cycles of an SM
 * for each block, when it has multiplied. */
static double wave_cycles(const tgl_chip *chip, const tgl_shape *s, const geometry *g, double count,
                          int resident, double depth, double after)
{
    const double slots = (double)chip->sms * resident;
    const double full = floor(count / slots), rest = count - full * slots;
    const int last = (int)ceil(rest / chip->sms);
    return full * (block_cycles(chip, s, g, resident, depth) + resident * after) +
           block_cycles(chip, s, g, last, depth) + last * after;
}

static void predict_time(const tgl_chip *chip, const tgl_shape *s, const geometry *g,
                         tgl_candidate *c)
{
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double tiles = batch * (double)tiles_of(g), size = g->size;
    const double size_d = (double)tgl_type_size(s->type_d);
    const double whole = batch * g->tiles_whole, split = tiles - whole;
    const double share = g->row->bm == 16 || g->row->bn == 16 ? THIN_MEMORY_SHARE : MEMORY_SHARE;
    double cycles = wave_cycles(chip, s, g, whole, c->resident, k, store_cycles(s, g));
    if (g->splits > 1)
        cycles += wave_cycles(chip, s, g, split * g->splits, c->resident, g->k_chunk, 0) +
                  reduce_cycles(g) + store_cycles(s, g);
    c->blocks = whole + split * g->splits;
    c->compute = cycles / (1e6 * chip->clock_mhz);
    if (c->blocks > chip->sms) c->compute += TGL_LATE_LAUNCH_SECONDS;
    c->memory = batch * (size * (m * k + k * n) + size_d * m * n) / (share * chip->memory_rate);
    c->l2 = (size * tiles * (g->row->bm + g->row->bn) * k + size_d * batch * m * n +
             2.0 * sum_bytes(g) * (double)g->workspace) /
            chip->l2_rate;
}

static void predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    geometry g;
    const char *why = make_geometry(s, &c->choice, &g);
    if (why != NULL) {
        tgl_reject(c, why);
        return;
    }
    c->threads = g.threads;
    c->registers = g.row->registers;
    c->shared_bytes = g.dynamic_shared;
    c->splits = g.splits;
    c->workspace_bytes = g.workspace * sum_bytes(&g) + g.counters * (int64_t)sizeof(unsigned);
    c->launches = tgl_ceil_div(s->batch, g.batch_step);
    c->is_predicted = true;
    if (tgl_predict_occupancy(chip, 0, c)) predict_time(chip, s, &g, c);
}

/* ---- Search ---------------------------------------------------------------------------------- */

enum {
    SPLITS_OF_TAIL_MAX = 8, /* of the tiles of the last wave */
    TILES_OF_SPLIT_MIN = 4, /* tiles of K that a block is worth */
};

/* Splits worth a try: all up to 8, then in steps of about a fifth. */
static int next_splits(int splits)
{
    return splits < 8 ? splits + 1 : splits + (splits + 4) / 5;
}

/* All tiles while they do not fill the chip; after that those of the last wave. */
static void search(tgl_search *in)
{
    geometry g;
    const tgl_shape *s = in->shape;
    if (make_geometry(s, &in->best->choice, &g) != NULL) return;
    const int64_t tiles = tiles_of(&g), slots = (int64_t)in->chip->sms * in->best->resident;
    const int64_t whole = tiles / slots * slots;
    const int64_t depth = (int64_t)TILES_OF_SPLIT_MIN * g.row->bk_bytes / g.size;
    const int most = (int)tgl_min64(s->k / depth, TGL_SPLITS_MAX);
    const double all = (double)tiles * (double)s->batch;
    for (int i = 2; i <= most && all * (i - 1) < (double)(2 * slots); i = next_splits(i)) {
        const int64_t values[] = {i};
        tgl_search_try(in, SPLITS, 1, values);
    }
    if (s->batch > 1 || whole == 0 || whole == tiles) return;
    for (int i = 2; i <= most && i <= SPLITS_OF_TAIL_MAX; i++) {
        const int64_t values[] = {i, whole};
        tgl_search_try(in, SPLITS, 2, values);
    }
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* Whether a kernel has registers for fewer fragments than its row says: where copies are narrow,
 * there are more of them. */
static bool is_crowded(const geometry *g, int vec_a, int vec_b)
{
    return g->row->registers >= REGISTERS_CROWDED && g->size * tgl_min64(vec_a, vec_b) < 16;
}

static void add_macros(const geometry *g, const tgl_shape *s, bool is_unaligned,
                       tgl_list_builder *builder)
{
    const mma_row *t = g->row;
    const int vec_a = is_unaligned ? 1 : g->vec_a, vec_b = is_unaligned ? 1 : g->vec_b;
    const int fragments = is_crowded(g, vec_a, vec_b) ? 0 : t->fragments;
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
                                {"TAIL_A", (s->trans_a ? s->m : s->k) % vec_a != 0},
                                {"TAIL_B", (s->trans_b ? s->k : s->n) % vec_b != 0}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

static void launch(const tgl_partition *of, tgl_list_builder *builder)
{
    geometry g;
    const tgl_shape own = tgl_part_shape(of->shape, &of->part);
    const char *why = make_geometry(&own, &of->choice, &g);
    if (why != NULL) {
        tgl_gemm_fail(why, builder);
        return;
    }
    tgl_gemm_step step = {
        .of = of,
        .name = g.row->name,
        .file = "gemm/mma.cu",
        .symbol = "gemm_mma",
        .threads = g.threads,
        .dynamic_shared = g.dynamic_shared,
        .dynamic_shared_unaligned = shared_bytes(&g, 1, 1),
        .vec_a = g.vec_a,
        .vec_b = g.vec_b,
        .blocks = g.tiles_whole + (tiles_of(&g) - g.tiles_whole) * g.splits,
        .tiles = tiles_of(&g),
        .batch_step = g.batch_step,
        .scratch_bytes = g.workspace * sum_bytes(&g),
        .counter_bytes = g.counters * (int64_t)sizeof(unsigned),
        .args = {.raster = g.raster,
                 .tiles_whole = g.tiles_whole,
                 .splits = g.splits,
                 .cluster = 1,
                 .k_chunk = g.k_chunk},
    };
    add_macros(&g, &own, false, builder);
    step.aligned = tgl_gemm_kernel(&step, builder);
    if (tgl_gemm_has_unaligned(of->shape, g.vec_a, g.vec_b)) {
        add_macros(&g, &own, true, builder);
        if (is_crowded(&g, 1, 1)) step.local_bytes = TGL_SPILL_MAX;
        step.unaligned = tgl_gemm_kernel(&step, builder);
    }
    tgl_gemm_add_step(&step, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                    tgl_text *out)
{
    geometry g;
    (void)chip;
    if (make_geometry(shape, choice, &g) != NULL) return;
    if (g.splits > 1)
        tgl_text_add(
            out, "split       k %d ways, %d deep, in %lld of %lld tiles; %.2f MB of partial sums\n",
            g.splits, g.k_chunk, (long long)(tiles_of(&g) - g.tiles_whole), (long long)tiles_of(&g),
            1e-6 * sum_bytes(&g) * (double)g.workspace);
    tgl_gemm_explain_copies(shape, g.vec_a, g.vec_b, out);
}

static bool example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    const bool is_f64 = type == TGL_F64;
    if (type != TGL_F16 && type != TGL_BF16 && type != TGL_F32 && !is_f64) return false;
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    if (type == TGL_F32) shape->compute = TGL_COMPUTE_TF32;
    return rows[index].is_f64 == is_f64;
}

const tgl_family tgl_family_mma = {
    .name = "mma",
    .summary = "f16, bf16, tf32 and f64 on tensor cores, any shape",
    .options = options,
    .configuration = configuration,
    .tile = tile,
    .unsupported_reason = tgl_unsupported_by_mma_sync,
    .search = search,
    .predict = predict,
    .launch = launch,
    .explain = explain,
    .example = example,
};
