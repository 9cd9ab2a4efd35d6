/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/accurate.cu: FP32 products on Hopper's f16 tensor cores, within the error bound of FP32 sums
 * (docs/accuracy.md). A pre-pass (decompose.h) writes each element as two words of f16, hi and lo.
 * It also writes tables of panels: a panel lists those elements of 64 rows of op(A), or of 64
 * columns of op(B), that two words cannot represent. The main kernel adds the products hi*hi, hi*lo
 * and lo*hi.
 */
#include "families/decompose.h"
#include "families/gemm_arguments.h"
#include "families/gemm_launch.h"
#include "families/unsupported.h"

#include "../../kernels/lib/decompose_args.h"

#include <math.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef struct accurate_row {
    const char *name;
    int bm, bn;    /* the tile that a block computes */
    int consumers; /* warpgroups that multiply, with 64 rows each */
    int stages;    /* stages in shared memory, each of bm + bn lines of 128 bytes */
    int registers; /* per thread at launch, as compiled for sm_90a */
    bool spills;   /* the compiler spills registers, but not in the main loop */
    double share;  /* fraction of the f16 peak that the main loop reaches at full clock; fitted to
                      the same times as UNIT_CYCLES */
} accurate_row;

/* Name, BM, BN, CONSUMERS, STAGES, registers, spills, share. A thread of a consumer holds BN / 2
 * FP32 sums and BN / 2 accumulators of wgmma. */
// clang-format off
static const accurate_row accurate_rows[] = {
    {"accurate_128x192", 128, 192, 2, 5, 168, false, 0.80},
    {"accurate_128x160", 128, 160, 2, 5, 168, false, 0.74},
    {"accurate_128x128", 128, 128, 2, 6, 168, false, 0.72},
    {"accurate_192x128", 192, 128, 3, 4, 128, true, 0.805},
    {"accurate_128x96",  128,  96, 2, 7, 168, false, 0.67},
    {"accurate_128x64",  128,  64, 2, 8, 168, false, 0.53},
};
// clang-format on

/* chunks: the number of parts into which the columns of D are divided. The parts are computed one
 * after the other. The workspace then holds the words (hi and lo in f16) of all of A, and those of
 * a single part of B. */
static const char *const accurate_options[] = {"chunks", NULL};
enum { CHUNKS };

/* Minimum K: below it, FFMA has smaller errors than two words of f16 (docs/accuracy.md). */
enum { DEPTH_MIN = 256 };

static const char *accurate_unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
{
    if (s->type_a != TGL_F32 || s->type_b != TGL_F32 || s->type_accumulate != TGL_F32)
        return "it multiplies f32 matrices only";
    if (s->compute != TGL_COMPUTE_ACCURATE)
        return "it multiplies FP32 in compute mode accurate only";
    if (s->k < DEPTH_MIN) return "below k = 256 it is less accurate than FFMA";
    if ((chip->features & TGL_HAS_WGMMA) == 0) return "the chip has no wgmma";
    if ((chip->features & TGL_HAS_TMA) == 0) return "the chip or its driver has no TMA";
    if (s->pointers) return "it takes no batches of pointers";
    if (s->batch > TGL_EXTENT_MAX) return "it counts the problems of a batch in 31 bits";
    return tgl_gemm_unsupported_reason(s);
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice (a configuration and its options) computes a product. With several chunks, the
 * members describe the first chunk, which is the widest. */
typedef struct accurate_geometry {
    const accurate_row *row;
    int64_t tile_rows, tile_columns;
    int64_t units;         /* tiles of all problems of the batch */
    int64_t chunk, chunks; /* columns of D in a chunk; number of chunks */
    tgl_decompose operands[2];
    tgl_gemm_step step; /* accurate_launch() adds the tensor maps */
} accurate_geometry;

enum {
    LINE_BYTES = 128,
    BK = 64,          /* elements of K in a stage */
    CHUNKS_MAX = 256, /* maximum number of chunks: each takes two launches of the list */
};

/* Bytes of struct accurate_shared in gemm/accurate.cu. */
static int accurate_shared_bytes(const accurate_row *t)
{
    enum {
        BARRIER = 8,
        CHUNK = 16 * 40 /* WARP_CHUNK of lib/accurate_tiles.h */,
        ORDER = 128 * (int)sizeof(int),
        SINGLES = 8 * (int)sizeof(int)
    };
    return t->stages * ((t->bm + t->bn) * LINE_BYTES + 2 * BARRIER) +
           t->consumers * (4 * CHUNK * (int)sizeof(float) + t->bn * (int)sizeof(int) + ORDER +
                           SINGLES + BARRIER);
}

static tgl_decompose operand_of(const tgl_shape *s, const tgl_rectangle *part, bool is_a)
{
    tgl_decompose d = {
        .operand = is_a ? TGL_AT_A : TGL_AT_B,
        .transposes = is_a ? s->trans_a : !s->trans_b,
        .pairs = is_a ? 0 : s->pairs_b,
        .offset = is_a ? tgl_gemm_offset_a(s, part) : tgl_gemm_offset_b(s, part),
        .lines = is_a ? part->m : part->n,
        .length = s->k,
        .ld = is_a ? s->lda : s->ldb,
        .stride = is_a ? s->stride_a : s->stride_b,
    };
    d.count = d.stride == 0 ? 1 : s->batch;
    return d;
}

/* Sets the number and width of chunks. Each chunk begins at a multiple of BN and of the 64 columns
 * of a panel (TGL_PANEL_LINES, decompose_args.h). The results are then bitwise equal to those
 * without chunks. */
static void choose_chunks(const accurate_row *t, int64_t n, int64_t chunks, accurate_geometry *g)
{
    const int64_t unit = t->bn % TGL_PANEL_LINES == 0 ? t->bn : 2 * t->bn;
    g->chunk = tgl_min64(n, tgl_round_up(tgl_ceil_div(n, chunks), unit));
    g->chunks = tgl_ceil_div(n, g->chunk);
}

/* Sets the operands of a chunk. If there is only one chunk, its words (hi and lo) are kept for
 * later runs. */
static void place_operands(const tgl_shape *s, const tgl_rectangle *part, accurate_geometry *g)
{
    for (int i = 0; i < 2; i++) {
        g->operands[i] = operand_of(s, part, i == 0);
        g->operands[i].is_kept = g->chunks == 1;
        tgl_decompose_place(&g->operands[i]);
    }
}

static int64_t workspace_of(const accurate_geometry *g)
{
    int64_t bytes = 0;
    for (int i = 0; i < 2; i++)
        bytes += g->operands[i].bytes + tgl_round_up(tgl_decompose_counter_bytes(&g->operands[i]),
                                                     TGL_WORKSPACE_ALIGNMENT);
    return bytes;
}

/* Returns NULL, or why the choice cannot compute `part`, a rectangle of D. */
static const char *accurate_make_geometry(const tgl_chip *chip, const tgl_shape *s,
                                          const tgl_rectangle *part, const tgl_choice *choice,
                                          accurate_geometry *g)
{
    const accurate_row *t = tgl_choice_row(choice);
    const int64_t chunks = tgl_option(choice, CHUNKS, 1);
    *g = (accurate_geometry){.row = t,
                             .step = {.name = t->name,
                                      .file = "gemm/accurate.cu",
                                      .symbol = "gemm_accurate",
                                      .needs = TGL_HAS_WGMMA | TGL_HAS_TMA,
                                      .threads = tgl_ring_threads(t->consumers),
                                      .registers = t->registers,
                                      .local_bytes = t->spills ? TGL_SPILL_MAX : 0,
                                      .static_shared = TGL_RING_STATIC_SHARED,
                                      .dynamic_shared = accurate_shared_bytes(t),
                                      .vec_a = 1,
                                      .vec_b = 1,
                                      .batch_step = (int)s->batch,
                                      .loops_over_batch = true,
                                      .is_persistent = true,
                                      .keeps_operands = true,
                                      .args = {.splits = 1, .cluster = 1}}};
    if (chunks < 1 || chunks > CHUNKS_MAX) return "it has 1 to 256 chunks";
    if (chunks > 1 && s->epilogue.expression != NULL)
        return "chunks are not supported with an epilogue expression";
    choose_chunks(t, part->n, chunks, g);
    const tgl_rectangle chunk = {part->row, part->col, part->m, g->chunk};
    place_operands(s, &chunk, g);
    g->tile_rows = tgl_ceil_div(part->m, t->bm);
    g->tile_columns = tgl_ceil_div(g->chunk, t->bn);
    /* The kernel numbers tiles in an int. A block adds gridDim.x to the number of its last tile,
     * too, so this sum must also fit in an int. */
    if ((double)g->tile_rows * (double)g->tile_columns * (double)s->batch > TGL_GRID_X_MAX / 2.0)
        return tgl_grid_too_large;
    const char *why = tgl_decompose_fault(chip, g->operands);
    if (why != NULL) return why;
    g->units = g->tile_rows * g->tile_columns * s->batch;
    g->step.args.raster = tgl_square_raster(chip, t->bm, t->bn, 1, g->tile_rows);
    g->step.blocks = tgl_persistent_blocks(chip, 1, 1, g->units);
    return NULL;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Constants of the cost model, fitted to the times of all configurations on an H200, for 19
 * products: m = n = k from 512 to 16384, and linear layers. Nearly all predictions are off by less
 * than 10 %. */
enum {
    UNIT_CYCLES =
        3100, /* cycles of a tile before its first wgmma and after its last one, without stores */
    STORE_BYTES_A_CLOCK = 7, /* bytes of FP32 sums per clock that an SM multiplies by the lines'
                                scales and stores */
};
static const double MEMORY_SHARE = 0.85; /* reached fraction of tgl_chip.memory_rate */

/* Factor on the time of the main loops: long kernels reach the power limit, which lowers the clock.
 * seconds: time of the main loops at full clock. */
static double accurate_slowed(double seconds)
{
    static const double SLOWDOWN_MAX = 0.35; /* maximum slowdown, as a fraction; half of it at
                                        HALF_SECONDS */
    static const double HALF_SECONDS = 5e-4;
    return 1 + SLOWDOWN_MAX * seconds / (seconds + HALF_SECONDS);
}

/* Cycles of an SM at the f16 peak to multiply one stage (BK of K) of a tile: three products, hi*hi,
 * hi*lo and lo*hi. */
static double least_cycles(const tgl_chip *chip, const accurate_row *t)
{
    enum { PRODUCTS = 3 };
    return PRODUCTS * 2.0 * t->bm * t->bn * BK / chip->tensor_flops;
}

static void accurate_predict_time(const tgl_chip *chip, const tgl_shape *s,
                                  const accurate_geometry *g, tgl_candidate *c)
{
    const accurate_row *t = g->row;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k, batch = (double)s->batch;
    const double depth = ceil(k / BK), clock = 1e6 * chip->clock_mhz;
    const double chunks = (double)g->chunks, units = (double)g->units;
    const double waves = ceil(units / (double)chip->sms); /* tiles of the busiest SM, in a chunk */
    const double tail = UNIT_CYCLES + 4.0 * t->bm * t->bn / STORE_BYTES_A_CLOCK;
    const double least = depth * least_cycles(chip, t) / t->share;
    const double all = tgl_larger(units, chip->sms);
    /* Seconds of arithmetic per SM at full clock. */
    const double busy = all / chip->sms * depth * least_cycles(chip, t) / clock;
    const double cycles = waves * (least * accurate_slowed(busy) + tail);
    const double start = tgl_decompose_seconds(chip, g->operands, TGL_DECOMPOSE_BOTH) +
                         (chunks - 1) * tgl_decompose_seconds(chip, g->operands, TGL_DECOMPOSE_B);
    c->blocks = (double)g->step.blocks;
    c->compute = start + chunks * cycles / clock;
    c->memory =
        start + 4 * batch * (chunks * m * k + k * n + m * n) / (MEMORY_SHARE * chip->memory_rate);
    c->l2 = start + 2 * chunks * units * depth * LINE_BYTES * (t->bm + t->bn) / chip->l2_rate;
}

static void accurate_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    accurate_geometry g;
    const tgl_rectangle all = tgl_whole(s);
    const char *why = accurate_make_geometry(chip, s, &all, &c->choice, &g);
    if (!tgl_gemm_predict(chip, s, why, &g.step, c)) return;
    c->workspace_bytes = workspace_of(&g);
    /* The panels follow the words, so the offset of the panels is the size of the words in
     * bytes. */
    c->repacked_bytes = g.operands[0].panels + g.operands[1].panels;
    c->launches = 2 * g.chunks;
    accurate_predict_time(chip, s, &g, c);
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* The tensor map of an operand's words (hi and lo in f16). edge: rows or columns of a tile. */
static tgl_tensor accurate_tensor_of(const tgl_decompose *d, int edge)
{
    const int64_t size = (int64_t)tgl_type_size(TGL_F16), pitch = tgl_decompose_pitch(d);
    return (tgl_tensor){
        .base = d->is_kept ? TGL_VALUE_KEPT : TGL_VALUE_SCRATCH,
        .operand = (int)d->operand,
        .offset = d->is_kept ? d->words : d->at + d->words,
        .type = TGL_F16,
        .rank = 3,
        .size = {d->length, d->lines, 2 * d->count},
        .stride = {size, pitch * size, d->lines * pitch * size},
        .box = {BK, edge, 1},
        .swizzle_bytes = LINE_BYTES,
    };
}

static void accurate_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                                tgl_list_builder *builder)
{
    const accurate_geometry *g = geometry;
    const accurate_row *t = g->row;
    (void)is_unaligned;
    const tgl_macro macros[] = {{"BM", t->bm},
                                {"BN", t->bn},
                                {"STAGES", t->stages},
                                {"CONSUMERS", t->consumers},
                                {"A_ALONG_K", !s->trans_a},
                                {"B_ALONG_K", s->trans_b}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
    if (s->pairs_b != 0) tgl_list_macro(builder, "PAIRS", s->pairs_b);
}

/* Reserves memory for the words and tables of both operands. */
static void add_scratch(accurate_geometry *g, tgl_list_builder *builder)
{
    for (int i = 0; i < 2; i++) {
        tgl_decompose *d = &g->operands[i];
        d->counters = tgl_list_counters(builder, tgl_decompose_counter_bytes(d));
        if (d->is_kept)
            tgl_list_keep(builder, d->operand, d->bytes);
        else
            d->at = tgl_list_scratch(builder, d->bytes);
    }
}

/* Adds the pre-pass and the main kernel for the chunk of D that begins at column `col` of the part.
 * The words of this chunk's B overwrite those of the previous chunk. */
static void add_chunk(const tgl_partition *of, const accurate_geometry *first, int64_t col,
                      tgl_list_builder *builder)
{
    tgl_partition chunk = *of;
    accurate_geometry g = *first;
    chunk.part.col += col;
    chunk.part.n = tgl_min64(first->chunk, of->part.n - col);
    chunk.is_last = of->is_last && col + first->chunk >= of->part.n;
    tgl_decompose *b = &g.operands[1];
    const tgl_decompose before = *b;
    *b = operand_of(of->shape, &chunk.part, false);
    b->is_kept = before.is_kept;
    b->at = before.at;
    b->counters = before.counters;
    tgl_decompose_place(b);
    g.units = g.tile_rows * tgl_ceil_div(chunk.part.n, g.row->bn) * of->shape->batch;
    tgl_decompose_add_step(&chunk, g.operands, col == 0 ? TGL_DECOMPOSE_BOTH : TGL_DECOMPOSE_B,
                           builder);
    const tgl_tensor maps[] = {accurate_tensor_of(&g.operands[0], g.row->bm),
                               accurate_tensor_of(b, g.row->bn)};
    g.step.blocks = tgl_persistent_blocks(of->chip, 1, 1, g.units);
    g.step.maps = maps;
    g.step.map_count = 2;
    g.step.tables = g.operands;
    tgl_gemm_launch(&chunk, &g.step, accurate_add_macros, &g, builder);
}

static void accurate_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    accurate_geometry g;
    const char *why = accurate_make_geometry(of->chip, of->shape, &of->part, &of->choice, &g);
    if (tgl_gemm_fails(why, builder)) return;
    add_scratch(&g, builder);
    for (int64_t col = 0; col < of->part.n; col += g.chunk)
        add_chunk(of, &g, col, builder);
}

/* Tries the smallest number of chunks (a power of two) whose workspace is within the limit. */
static void accurate_shrink(tgl_search *search)
{
    for (int64_t chunks = 2; chunks <= CHUNKS_MAX; chunks *= 2)
        if (tgl_search_try(search, CHUNKS, 1, &chunks, 0)) return;
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void accurate_explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                             tgl_text *out)
{
    accurate_geometry g;
    const tgl_rectangle part = tgl_whole(shape);
    if (accurate_make_geometry(chip, shape, &part, choice, &g) != NULL) return;
    tgl_text_add(out,
                 "arithmetic  three f16 products of scaled words, added in FP32 every %d of k;\n"
                 "            FFMA for tiles with Inf, NaN or too wide exponents\n",
                 BK);
    tgl_text_add(
        out,
        "bound       |error| <= %.0f * 2^-24 * (|op(A)||op(B)|), + 1 for each listed element;\n"
        "            %.0f in tiles that FFMA computes\n",
        2.0 * ceil((double)shape->k / BK) + 52, (double)shape->k);
    tgl_text_add(out, "tiles       %lld x %lld, bands of %d rows\n", (long long)g.tile_rows,
                 (long long)g.tile_columns, g.step.args.raster);
    const int64_t words = g.operands[0].panels + g.operands[1].panels;
    const int64_t bytes = workspace_of(&g);
    tgl_text_add(out, "words       %.2f MB, and %.2f MB of tables\n", 1e-6 * (double)words,
                 1e-6 * (double)(bytes - words));
    if (g.chunks > 1)
        tgl_text_add(out, "chunks      %lld, of %lld columns of D\n", (long long)g.chunks,
                     (long long)g.chunk);
}

static bool accurate_example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    (void)index;
    *shape = tgl_example_shape(type, TGL_EXAMPLE_SIDE, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    shape->compute = TGL_COMPUTE_ACCURATE;
    return type == TGL_F32;
}

const tgl_family tgl_family_accurate = {
    .name = "accurate",
    .summary = "FP32 accuracy from the f16 tensor cores of sm_90a",
    .options = accurate_options,
    .is_emulation = true,
    .reads = TGL_DIRECT_PAIRS_B,
    TGL_ROWS(accurate_rows),
    .unsupported_reason = accurate_unsupported_reason,
    .shrink = accurate_shrink,
    .predict = accurate_predict,
    .launch = accurate_launch,
    .explain = accurate_explain,
    .example = accurate_example,
};
