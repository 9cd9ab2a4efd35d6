/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/batch_mma.cu: batches of small products on the tensor cores by mma.sync. A block computes
 * one tile of D at a time, and loops over the tiles of the batch.
 */
#include "families/gemm_launch.h"
#include "families/unsupported.h"

#include <limits.h>
#include <math.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef struct batch_mma_row {
    const char *name;
    int bm, bn;     /* a tile of D */
    int bk;         /* elements of K in a tile; fewer if these exceed LINE_BYTES */
    int wm, wn;     /* the part of the tile that a warp computes */
    int stages;     /* number of tiles of A and B, bk deep, in shared memory */
    int tiles;      /* maximum number of tiles along the rows and along the columns of a product */
    bool is_f64;    /* the configuration is for F64, else for other types */
    int min_blocks; /* minimum resident blocks of an SM, which limits the registers */
    int registers;  /* per thread, as compiled for sm_90a: the maximum of all types and layouts */
} batch_mma_row;

/* Columns: name, BM, BN, BK, WM, WN, STAGES, tiles, whether it is for f64, MIN_BLOCKS, registers of
 * a thread. */
// clang-format off
static const batch_mma_row batch_mma_rows[] = {
    {"batch_mma_16x16",      16,  16, 16, 16, 16, 4, 1, false, 16, 128},
    {"batch_mma_32x32",      32,  32, 32, 16, 32, 3, 1, false,  8, 128},
    {"batch_mma_64x64",      64,  64, 64, 32, 32, 2, 4, false,  4, 128},
    {"batch_mma_32x128",     32, 128, 64, 32, 32, 2, 4, false,  4, 128},
    {"batch_mma_128x32",    128,  32, 64, 32, 32, 2, 4, false,  4, 128},
    {"batch_mma_64x128",     64, 128, 64, 32, 32, 2, 4, false,  2, 128},
    {"batch_mma_128x64",    128,  64, 64, 32, 32, 2, 4, false,  2, 128},
    {"batch_mma_128x128",   128, 128, 64, 64, 32, 2, 4, false,  2, 128},
    {"batch_mma_16x256",     16, 256, 32, 16, 64, 2, 4, false,  4, 128},
    {"batch_mma_128x256",   128, 256, 32, 32, 64, 2, 4, false,  1, 128},
    {"batch_mma_16x16_f64",  16,  16, 16, 16, 16, 4, 1, true,  14, 144},
    {"batch_mma_32x32_f64",  32,  32, 16, 16, 32, 3, 1, true,   6, 168},
    {"batch_mma_16x64_f64",  16,  64, 16, 16, 32, 3, 4, true,   6, 168},
    {"batch_mma_64x16_f64",  64,  16, 16, 16, 16, 3, 4, true,   4, 128},
    {"batch_mma_32x64_f64",  32,  64, 16, 16, 32, 3, 4, true,   4, 128},
    {"batch_mma_64x32_f64",  64,  32, 16, 16, 32, 3, 4, true,   4, 128},
    {"batch_mma_64x64_f64",  64,  64, 16, 16, 32, 3, 4, true,   2, 128},
};
// clang-format on

enum {
    LINE_BYTES = 128, /* bytes of a line of a K-major operand in shared memory */
    /* A configuration whose tile has more than LARGE rows (columns) is only for products that have
     * more than LARGE rows (columns), too. */
    LARGE = 64,
    SPILL_MAX = 400, /* maximum bytes that a thread may spill; it spills addresses, few of which the
                        main loop loads */
};

/* blocks: the maximum number of blocks, which divide the tiles of the batch among them. By default
 * there is one block for each tile. */
static const char *const batch_mma_options[] = {"blocks", NULL};
enum { BLOCKS };

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice (a configuration and its options) computes a product. */
typedef struct batch_mma_geometry {
    const batch_mma_row *row;
    int size;                 /* bytes of an element of A and B */
    int64_t tiles_m, tiles_n; /* tiles of a product along its rows and columns */
    tgl_gemm_step step;
} batch_mma_geometry;

/* Elements of K in a tile. */
static int bk_of(const batch_mma_geometry *g)
{
    return (int)tgl_min64(g->row->bk, LINE_BYTES / g->size);
}

/* Whether the kernel copies whole 16-byte words that contain a line of the operand, because lines
 * need not begin at multiples of 8 bytes ("raw lines": IS_RAW() of kernels/lib/raw_copies.h). */
static bool is_raw(const batch_mma_geometry *g, int vec)
{
    return g->size * vec < 8;
}

/* Bytes of an operand in a stage. Raw lines (is_raw()) are longer, by RAW_PAD() of
 * kernels/lib/raw_copies.h. */
static int batch_mma_operand_bytes(const batch_mma_geometry *g, int edge, int vec, bool is_k_major)
{
    const int bk = bk_of(g), lines = is_k_major ? edge : bk;
    const int pad = g->size == 4 && !is_k_major ? 32 : 16;
    return edge * bk * g->size + (is_raw(g, vec) ? lines * pad : 0);
}

/* Bytes of shared memory of a block: for the stages, and for the results. */
static int batch_mma_shared_bytes(const batch_mma_geometry *g, const tgl_shape *s, int vec_a,
                                  int vec_b)
{
    const batch_mma_row *t = g->row;
    const int warps = t->bm / t->wm * (t->bn / t->wn), sum = g->size == 8 ? 8 : 4;
    const int rows = warps * 16 * (t->wn + 8) * sum; /* 16 rows of results of each warp */
    const int packed = tgl_type_size(s->type_d) == 2 ? t->bm * t->bn * 2 + 16 : 0;
    const int stage = batch_mma_operand_bytes(g, t->bm, vec_a, !s->trans_a) +
                      batch_mma_operand_bytes(g, t->bn, vec_b, s->trans_b);
    return t->stages * stage + (rows > packed ? rows : packed);
}

/* Returns NULL, or why the choice cannot compute the product. */
static const char *batch_mma_make_geometry(const tgl_shape *s, const tgl_choice *choice,
                                           batch_mma_geometry *g)
{
    const batch_mma_row *t = tgl_choice_row(choice);
    if (t->is_f64 != (s->type_a == TGL_F64))
        return t->is_f64 ? "it is for f64" : "it is for types other than f64";
    *g = (batch_mma_geometry){.row = t,
                              .size = (int)tgl_type_size(s->type_a),
                              .tiles_m = tgl_ceil_div(s->m, t->bm),
                              .tiles_n = tgl_ceil_div(s->n, t->bn)};
    if (g->tiles_m > t->tiles || g->tiles_n > t->tiles) return "it takes fewer rows or columns";
    if ((t->bm > LARGE && s->m <= LARGE) || (t->bn > LARGE && s->n <= LARGE))
        return "smaller tiles have all rows and columns";
    const int64_t tiles = g->tiles_m * g->tiles_n;
    const int64_t products = tgl_min64(s->batch, INT_MAX / 2 / tiles), items = products * tiles;
    const int64_t blocks = tgl_option(choice, BLOCKS, 0);
    g->step = (tgl_gemm_step){
        .name = t->name,
        .file = "gemm/batch_mma.cu",
        .symbol = "gemm_batch_mma",
        .threads = t->bm / t->wm * (t->bn / t->wn) * 32,
        .registers = t->registers,
        .local_bytes = SPILL_MAX,
        .vec_a = tgl_copy_width(s, 0, s->lda, s->stride_a),
        .vec_b = tgl_copy_width(s, 0, s->ldb, s->stride_b),
        .blocks = tgl_min64(items, blocks > 0 ? blocks : items),
        .batch_step = (int)products,
        .loops_over_batch = true,
        .args = {.splits = 1, .cluster = 1},
    };
    g->step.dynamic_shared = batch_mma_shared_bytes(g, s, g->step.vec_a, g->step.vec_b);
    g->step.dynamic_shared_unaligned = batch_mma_shared_bytes(g, s, 1, 1);
    return NULL;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Constants of the cost model, fitted to 104 measurements on an H200: batches of 16x16x16 to
 * 64x64x64 in bf16, TF32 and f64, and the configurations for 21 batches of odd sizes up to 185.
 * F64: those of 29 batches (docs/notes/2026-11-29-gpu.md). */
enum {
    BLOCK_CYCLES = 3200,       /* cycles of a block before its first tile and after its last one */
    TILE_CYCLES = 600,         /* minimum cycles of a block for one tile of K (bk elements) */
    COPY_BYTES_A_CLOCK = 100,  /* rate of copies of 16 bytes, in bytes per clock of an SM */
    COPY_8_BYTES_A_CLOCK = 37, /* the same for copies of 8 bytes */
    FRAGMENT_BYTES_A_CLOCK = 136, /* rate at which warps read fragments, if those beyond the
                                     matrices' edges are counted, too */
    RAW_BYTES_A_CLOCK = 88,       /* the same without ldmatrix: if an operand has raw lines
                                     (is_raw()), and of f64 */
    HALF_RATE_WARPS = 5           /* an SM with w warps works at w / (w + 5) of its rate */
};
static const double RAW_CYCLES = 0.18; /* cycles of an SM to copy an element to a raw line */
/* Cycles of an SM per result of a tile and per byte of an element of A. Results of the tile that
 * lie outside D count half. UNALIGNED_16: factor for 16-bit results whose rows are unaligned. */
static const double RESULT_CYCLES = 0.075, F64_RESULT_CYCLES = 0.04, UNALIGNED_16 = 2.7;
static const double OVERLAP = 4; /* exponent p: loads of x seconds and work of y seconds overlap,
                                    and take (x^p + y^p)^(1/p) together */

/* Cycles of an SM to copy `elements` elements of an operand. */
static double batch_mma_copy_cycles(const batch_mma_geometry *g, double elements, int vec)
{
    if (is_raw(g, vec)) return RAW_CYCLES * elements;
    return elements * g->size / (g->size * vec == 8 ? COPY_8_BYTES_A_CLOCK : COPY_BYTES_A_CLOCK);
}

/* Cycles of an SM to compute one tile of D, m x n. */
static double item_cycles(const tgl_shape *s, const batch_mma_geometry *g, double m, double n)
{
    const batch_mma_row *t = g->row;
    const bool has_16_bits = tgl_type_size(s->type_d) == 2;
    const bool is_line = has_16_bits && s->ldd == s->n && g->tiles_n == 1;
    const double factor = has_16_bits && !is_line && s->ldd % 4 != 0 ? UNALIGNED_16 : 1;
    const bool has_raw = is_raw(g, g->step.vec_a) || is_raw(g, g->step.vec_b);
    const double of_result = t->is_f64 ? F64_RESULT_CYCLES : RESULT_CYCLES;
    const double k = (double)s->k;
    const int warps = g->step.threads / 32;
    const double fragments = (double)warps * (t->wm + t->wn) * k * g->size;
    return fragments / (has_raw || t->is_f64 ? RAW_BYTES_A_CLOCK : FRAGMENT_BYTES_A_CLOCK) +
           batch_mma_copy_cycles(g, m * k, g->step.vec_a) +
           batch_mma_copy_cycles(g, n * k, g->step.vec_b) +
           of_result * factor * g->size * (t->bm * t->bn + m * n) / 2;
}

/* of_sm: number of blocks on the SM that has the most blocks. turns: number of tiles of D that a
 * slot (room for a block on an SM) computes, one after the other. */
static void batch_mma_predict_time(const tgl_chip *chip, const tgl_shape *s,
                                   const batch_mma_geometry *g, tgl_candidate *c)
{
    const double k = (double)s->k, items = (double)(s->batch * g->tiles_m * g->tiles_n);
    const double m = (double)s->m / (double)g->tiles_m, n = (double)s->n / (double)g->tiles_n;
    const double clock = 1e6 * chip->clock_mhz, slots = (double)chip->sms * c->resident;
    const int bk = bk_of(g);
    c->blocks = (double)g->step.blocks;
    const double active = c->blocks < slots ? c->blocks : slots, of_sm = ceil(active / chip->sms);
    const double warps = of_sm * g->step.threads / 32, factor = 1 + HALF_RATE_WARPS / warps;
    const double turns = ceil(c->blocks / slots) * ceil(items / c->blocks);
    const double in_flight = (double)g->size * (g->row->stages - 1) * (m + n) * (k < bk ? k : bk);
    const double work = turns * of_sm * factor * item_cycles(s, g, m, n) / clock;
    const double bytes = tgl_operand_bytes(s);
    const double stream = bytes / tgl_stream_rate(chip, active, in_flight);
    const double around = BLOCK_CYCLES * ceil(c->blocks / slots) / clock;
    c->memory = tgl_overlapped(stream, work, 0, OVERLAP) + around;
    c->compute = around + TILE_CYCLES * turns * ceil(k / bk) / clock;
    c->l2 = bytes / chip->l2_rate;
}

static void batch_mma_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    batch_mma_geometry g;
    const char *why = batch_mma_make_geometry(s, &c->choice, &g);
    if (tgl_gemm_predict(chip, s, why, &g.step, c)) batch_mma_predict_time(chip, s, &g, c);
}

static int64_t greatest_common_divisor(int64_t x, int64_t y)
{
    while (y != 0) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

/* Tries as many blocks as the chip holds at once, so that each gets an equal number of tiles. The
 * tiles of one product may differ in size. The number of blocks is therefore reduced until it is
 * coprime to the number of tiles of a product: otherwise a block would compute the same tile of
 * every product. */
static void batch_mma_search(tgl_search *in)
{
    batch_mma_geometry g;
    int64_t blocks = (int64_t)in->chip->sms * in->best->resident;
    if (batch_mma_make_geometry(in->shape, &in->best->choice, &g) != NULL) return;
    while (greatest_common_divisor(blocks, g.tiles_m * g.tiles_n) > 1)
        blocks--;
    tgl_search_try(in, BLOCKS, 1, &blocks, 0);
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void batch_mma_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                                 tgl_list_builder *builder)
{
    const batch_mma_geometry *g = geometry;
    const batch_mma_row *t = g->row;
    const int vec_a = is_unaligned ? 1 : g->step.vec_a, vec_b = is_unaligned ? 1 : g->step.vec_b;
    const tgl_macro macros[] = {{"BM", t->bm},
                                {"BN", t->bn},
                                {"BK", bk_of(g)},
                                {"WM", t->wm},
                                {"WN", t->wn},
                                {"STAGES", t->stages},
                                {"MIN_BLOCKS", t->min_blocks},
                                {"TILED", g->tiles_m * g->tiles_n > 1},
                                {"TRANS_A", s->trans_a},
                                {"TRANS_B", s->trans_b},
                                {"VEC_A", vec_a},
                                {"VEC_B", vec_b},
                                {"TAIL_A", (s->trans_a ? s->m : s->k) % vec_a != 0},
                                {"TAIL_B", (s->trans_b ? s->k : s->n) % vec_b != 0}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

static void batch_mma_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    batch_mma_geometry g;
    const tgl_shape own = tgl_part_shape(of->shape, &of->part);
    if (tgl_gemm_fails(batch_mma_make_geometry(&own, &of->choice, &g), builder)) return;
    tgl_gemm_launch(of, &g.step, batch_mma_add_macros, &g, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void batch_mma_explain(const tgl_chip *chip, const tgl_shape *shape,
                              const tgl_choice *choice, tgl_text *out)
{
    batch_mma_geometry g;
    (void)chip;
    if (batch_mma_make_geometry(shape, choice, &g) == NULL)
        tgl_gemm_explain_copies(shape, &g.step, out);
}

static bool batch_mma_example(int index, tgl_type type, bool trans_a, bool trans_b,
                              tgl_shape *shape)
{
    *shape = tgl_example_shape(type, batch_mma_rows[index].bm, batch_mma_rows[index].bn, trans_a,
                               trans_b);
    if (type == TGL_F32) shape->compute = TGL_COMPUTE_TF32;
    return batch_mma_rows[index].is_f64 == (type == TGL_F64);
}

static const char *batch_mma_unsupported_reason(const tgl_shape *s, const tgl_chip *chip)
{
    if (tgl_type_size(s->type_a) == 1) return "it multiplies f16, bf16, tf32 and f64";
    return tgl_unsupported_by_mma_sync(s, chip);
}

const tgl_family tgl_family_batch_mma = {
    .name = "batch_mma",
    .summary = "batches of small products on tensor cores",
    .options = batch_mma_options,
    .may_overlap = true,
    TGL_ROWS(batch_mma_rows),
    .unsupported_reason = batch_mma_unsupported_reason,
    .search = batch_mma_search,
    .predict = batch_mma_predict,
    .launch = batch_mma_launch,
    .explain = batch_mma_explain,
    .example = batch_mma_example,
};
