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
    int bk;         /* elements of K in a tile; fewer if a line of K exceeds LINE_BYTES */
    int odd_bk;     /* the same if copies go through registers, of which a thread has few */
    int wm, wn;     /* the part of the tile that a warp computes */
    int stages;     /* tiles of K in shared memory */
    int tiles;      /* maximum number of tiles along the rows and along the columns of a product */
    bool is_f64;    /* for F64; else for the other types */
    int min_blocks; /* minimum resident blocks of an SM, which limits the registers */
    int registers;  /* of a thread, as compiled for sm_90a: the maximum of all types and layouts */
} batch_mma_row;

/* Name, BM, BN, BK, BK of copies through registers, WM, WN, STAGES, tiles, for f64, MIN_BLOCKS,
 * registers of a thread. */
// clang-format off
static const batch_mma_row batch_mma_rows[] = {
    {"batch_mma_16x16",      16,  16, 16, 16, 16, 16, 4, 1, false, 16, 128},
    {"batch_mma_32x32",      32,  32, 32, 32, 16, 32, 3, 1, false,  8, 128},
    {"batch_mma_64x64",      64,  64, 64, 32, 32, 32, 2, 4, false,  4, 128},
    {"batch_mma_64x128",     64, 128, 64, 32, 32, 32, 2, 4, false,  2, 128},
    {"batch_mma_128x64",    128,  64, 64, 32, 32, 32, 2, 4, false,  2, 128},
    {"batch_mma_128x128",   128, 128, 64, 64, 32, 32, 2, 4, false,  1, 128},
    {"batch_mma_16x16_f64",  16,  16, 16, 16, 16, 16, 4, 1, true,  14, 144},
    {"batch_mma_32x32_f64",  32,  32, 16, 16, 16, 32, 3, 1, true,   6, 168},
    {"batch_mma_64x64_f64",  64,  64, 16, 16, 16, 32, 3, 4, true,   2, 128},
};
// clang-format on

enum { LINE_BYTES = 128 }; /* of a K-major operand in shared memory */

/* blocks: the maximum number of blocks, which share the batch; by default one for each tile. */
static const char *const batch_mma_options[] = {"blocks", NULL};
enum { BLOCKS };

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice computes a product. */
typedef struct batch_mma_geometry {
    const batch_mma_row *row;
    int size;                 /* bytes of an element of A and B */
    int64_t tiles_m, tiles_n; /* tiles of a product along its rows and columns */
    tgl_gemm_step step;
} batch_mma_geometry;

/* Elements of K in a tile. cp.async copies 4 bytes at least. */
static int bk_of(const batch_mma_geometry *g, int vec_a, int vec_b)
{
    const bool is_odd = g->size * tgl_min64(vec_a, vec_b) < 4;
    return (int)tgl_min64(is_odd ? g->row->odd_bk : g->row->bk, LINE_BYTES / g->size);
}

/* Shared memory of the kernel: the tiles, and the results. */
static int batch_mma_shared_bytes(const batch_mma_geometry *g, tgl_type type_d, int bk)
{
    const batch_mma_row *t = g->row;
    const int warps = t->bm / t->wm * (t->bn / t->wn), sum = g->size == 8 ? 8 : 4;
    const int rows = warps * 16 * (t->wn + 8) * sum; /* 16 of each warp */
    const int packed = tgl_type_size(type_d) == 2 ? t->bm * t->bn * 2 + 16 : 0;
    return t->stages * (t->bm + t->bn) * bk * g->size + (rows > packed ? rows : packed);
}

/* NULL, or why the choice cannot compute the product. */
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
    const int64_t tiles = g->tiles_m * g->tiles_n;
    const int64_t products = tgl_min64(s->batch, INT_MAX / 2 / tiles), items = products * tiles;
    const int64_t blocks = tgl_option(choice, BLOCKS, 0);
    g->step = (tgl_gemm_step){
        .name = t->name,
        .file = "gemm/batch_mma.cu",
        .symbol = "gemm_batch_mma",
        .threads = t->bm / t->wm * (t->bn / t->wn) * 32,
        .registers = t->registers,
        .local_bytes = TGL_SPILL_MAX,
        .vec_a = tgl_copy_width(s, 0, s->lda, s->stride_a),
        .vec_b = tgl_copy_width(s, 0, s->ldb, s->stride_b),
        .blocks = tgl_min64(items, blocks > 0 ? blocks : items),
        .batch_step = (int)products,
        .loops_over_batch = true,
        .args = {.splits = 1, .cluster = 1},
    };
    g->step.dynamic_shared =
        batch_mma_shared_bytes(g, s->type_d, bk_of(g, g->step.vec_a, g->step.vec_b));
    g->step.dynamic_shared_unaligned = batch_mma_shared_bytes(g, s->type_d, bk_of(g, 1, 1));
    return NULL;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Fitted to 15 batches on an H200: 16 to 64 cubed, bf16, TF32, f64. */
enum {
    BLOCK_CYCLES = 2200, /* of a block before its first tile arrives and after its last one */
    TILE_CYCLES = 1000,  /* minimum cycles of a tile of K */
};
/* Cycles of an SM per result and byte of an element. Results of a tile outside of D count half. */
static const double RESULT_CYCLES = 0.13;
static const double ODD_CYCLES = 0.08; /* cycles of an SM per element that is copied by registers */
static const double STREAM_SHARE =
    0.91; /* fraction of the read-only rate that loads reach while D is stored */
static const double OVERLAP =
    3; /* p of (x^p + y^p)^(1/p), the time of loads and work that overlap */

/* Cycles of an SM to copy `elements` of an operand through registers; 0 if its copies are wider. */
static double odd_cycles(const batch_mma_geometry *g, double elements, int vec)
{
    return g->size * vec < 4 ? elements * ODD_CYCLES : 0;
}

static void batch_mma_predict_time(const tgl_chip *chip, const tgl_shape *s,
                                   const batch_mma_geometry *g, tgl_candidate *c)
{
    const batch_mma_row *t = g->row;
    const double k = (double)s->k, tiles = (double)(g->tiles_m * g->tiles_n);
    const double m = (double)s->m / (double)g->tiles_m, n = (double)s->n / (double)g->tiles_n;
    const double clock = 1e6 * chip->clock_mhz, slots = (double)chip->sms * c->resident;
    const int bk = bk_of(g, g->step.vec_a, g->step.vec_b);
    c->blocks = (double)g->step.blocks;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double busy = active < chip->sms ? active / chip->sms : 1;
    const double rounds = (double)(int64_t)((c->blocks + slots - 1) / slots);
    const double items = (double)s->batch * tiles, turns = ceil(items / c->blocks);
    const double in_flight = (double)g->size * (t->stages - 1) * (m + n) * (k < bk ? k : bk);
    const double item = RESULT_CYCLES * g->size * (t->bm * t->bn + m * n) / 2 +
                        odd_cycles(g, m * k, g->step.vec_a) + odd_cycles(g, n * k, g->step.vec_b);
    const double work = items * item / (chip->sms * clock * busy);
    const double bytes = tgl_operand_bytes(s);
    const double stream = bytes / (STREAM_SHARE * tgl_stream_rate(chip, active, in_flight));
    const double around = BLOCK_CYCLES * rounds / clock;
    c->memory = pow(pow(stream, OVERLAP) + pow(work, OVERLAP), 1 / OVERLAP) + around;
    c->compute = around + TILE_CYCLES * rounds * turns * ceil(k / bk) / clock;
    c->l2 = bytes / chip->l2_rate;
}

static void batch_mma_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    batch_mma_geometry g;
    const char *why = batch_mma_make_geometry(s, &c->choice, &g);
    if (tgl_gemm_predict(chip, s, why, &g.step, c)) batch_mma_predict_time(chip, s, &g, c);
}

/* Tries as many blocks as the chip holds at once, which share the batch equally. */
static void batch_mma_search(tgl_search *in)
{
    const int64_t blocks = (int64_t)in->chip->sms * in->best->resident;
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
                                {"BK", bk_of(g, vec_a, vec_b)},
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
