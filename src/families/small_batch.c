/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/small_batch.cu: batches of small products on CUDA cores. A block computes whole products,
 * one or two at a time, and loops over the batch.
 */
#include "families/gemm_launch.h"
#include "families/unsupported.h"

#include <limits.h>
#include <math.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef struct small_batch_row {
    const char *name;
    int bm, bn, bk; /* maximum m and n of the product; depth of a tile in K */
    int tm, tn;     /* the part of the tile that a thread computes */
    int stages;     /* number of tiles of A and B, bk deep, in shared memory */
    int per_block;  /* products that a block computes at once */
    int min_blocks; /* minimum resident blocks of an SM, which limits the registers */
    int registers;  /* per thread, as compiled for sm_90a */
    int min_blocks_more, registers_more; /* the same for kernels that need more registers
                                            (needs_more()) */
} small_batch_row;

/* Name, BM, BN, BK, TM, TN, STAGES, PER_BLOCK, MIN_BLOCKS, registers; MIN_BLOCKS and registers of
 * kernels that need more: see needs_more(). */
// clang-format off
static const small_batch_row small_batch_rows[] = {
    {"small_batch_16x16", 16, 16, 16, 4, 4, 2, 2, 18,  96, 12, 168},
    {"small_batch_32x32", 32, 32, 32, 4, 4, 2, 1,  9,  96,  6, 168},
    {"small_batch_48x48", 48, 48, 48, 4, 4, 2, 2,  2,  96,  1, 168},
    {"small_batch_64x64", 64, 64, 32, 8, 4, 2, 1,  3, 168,  2, 255},
    {"small_batch_16x128", 16, 128, 32, 4, 4, 2, 1, 5, 96, 3, 168},
    {"small_batch_128x16", 128, 16, 32, 4, 4, 2, 1, 5, 96, 3, 168},
    {"small_batch_32x96", 32, 96, 32, 8, 4, 2, 1, 4, 168, 2, 255},
    {"small_batch_96x32", 96, 32, 32, 8, 4, 2, 1, 4, 168, 2, 255},
    {"small_batch_32x144", 32, 144, 32, 4, 4, 2, 1, 2, 96, 1, 168},
    {"small_batch_144x32", 144, 32, 32, 4, 4, 2, 1, 2, 96, 1, 168},
};
// clang-format on

/* blocks: the maximum number of blocks, which divide the batch among them. By default there is one
 * block for every per_block products. */
static const char *const small_batch_options[] = {"blocks", NULL};
enum { BLOCKS };

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice (a configuration and its options) computes a product. */
typedef struct small_batch_geometry {
    const small_batch_row *row;
    tgl_gemm_step step;
} small_batch_geometry;

/* Bytes of a tile in shared memory. K-major tiles have 16 bytes of padding after every four
 * lines. */
static int tile_bytes(int edge, int bk, bool k_major, int size)
{
    return edge * bk * size + (k_major ? edge / 4 * 16 : 0);
}

static int stage_bytes(const small_batch_row *t, const tgl_shape *s)
{
    const int size = (int)tgl_type_size(s->type_a);
    const int both =
        tile_bytes(t->bm, t->bk, !s->trans_a, size) + tile_bytes(t->bn, t->bk, s->trans_b, size);
    return (both + 127) / 128 * 128 + 64;
}

/* Threads that compute a product. */
static int group_of(const small_batch_row *t)
{
    return t->bm / t->tm * (t->bn / t->tn);
}

/* Bytes of shared memory through which lanes exchange results: two times four of each thread, if
 * all lanes of a warp compute the same product. */
static int result_bytes(const small_batch_row *t, const tgl_shape *s)
{
    const int size = (int)tgl_type_size(s->type_accumulate);
    return group_of(t) % 32 == 0 ? group_of(t) * t->per_block * 8 * size : 0;
}

/* Whether offsets within a tile, in elements, need more than 31 bits. */
static bool small_batch_is_wide(const small_batch_row *t, const tgl_shape *s)
{
    const int edge = t->bm > t->bn ? t->bm : t->bn, largest = edge > t->bk ? edge : t->bk;
    return (s->lda > s->ldb ? s->lda : s->ldb) >= INT_MAX / largest;
}

/* Whether a kernel with copies of these widths needs more registers: F64, and 16-bit types whose
 * copies are narrower than 16 bytes. */
static bool needs_more(const tgl_shape *s, int vec_a, int vec_b)
{
    const int size = (int)tgl_type_size(s->type_a);
    return size == 8 || (size == 2 && (vec_a < 8 || vec_b < 8));
}

/* Returns NULL, or why the choice cannot compute the product. */
static const char *small_batch_make_geometry(const tgl_shape *s, const tgl_choice *choice,
                                             small_batch_geometry *g)
{
    enum { BATCH_MAX = INT_MAX / 2 };
    const small_batch_row *t = tgl_choice_row(choice);
    const int64_t blocks = tgl_option(choice, BLOCKS, 0),
                  products_max = tgl_min64(s->batch, BATCH_MAX);
    const int64_t needed = tgl_ceil_div(products_max, t->per_block);
    const int vec_a = tgl_copy_width(s, s->trans_a ? s->m : s->k, s->lda, s->stride_a);
    const int vec_b = tgl_copy_width(s, s->trans_b ? s->k : s->n, s->ldb, s->stride_b);
    *g = (small_batch_geometry){.row = t};
    if (s->m > t->bm || s->n > t->bn) return "it takes fewer rows or columns";
    if (small_batch_is_wide(t, s)) return "the leading dimensions are too large for it";
    g->step = (tgl_gemm_step){
        .name = t->name,
        .file = "gemm/small_batch.cu",
        .symbol = "sgemm_small_batch",
        .threads = group_of(t) * t->per_block,
        .registers = needs_more(s, vec_a, vec_b) ? t->registers_more : t->registers,
        .local_bytes = TGL_SPILL_MAX,
        .dynamic_shared = t->stages * t->per_block * stage_bytes(t, s) + result_bytes(t, s),
        .vec_a = vec_a,
        .vec_b = vec_b,
        .blocks = tgl_min64(needed, blocks > 0 ? blocks : needed),
        .batch_step = (int)products_max,
        .loops_over_batch = true,
        .args = {.splits = 1, .cluster = 1},
    };
    return NULL;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Constants of the cost model, fitted to 38 measurements on an H200: batches of 16x16x16 to
 * 64x64x64 in FP32, and of odd sizes up to 176. */
enum {
    LAUNCH_CYCLES = 1000, /* fixed cycles of a launch */
    BLOCK_CYCLES = 350,   /* cycles of a block before its first tile arrives */
    TILE_CYCLES = 1000,   /* minimum cycles of a block for one tile of K (bk elements) */
};
static const double FFMA_SHARE = 0.55; /* fraction of the time of FFMAs that loads do not hide */
/* Factor on the time of FMAs of f64 at the full rate. It is above 1, because it contains time of
 * loads: they have twice the bytes, by fewer resident warps, and take longer than the FMAs. Fitted
 * to 50 times of 16 batches (docs/notes/2026-11-29-gpu.md). */
static const double F64_FMA_SHARE = 1.2;
/* Cycles of an SM for a warp's copy instruction of 16 bytes per thread, and of fewer bytes. They
 * were fitted to an older kernel, in which a copy took 18 instructions instead of 6. Five products
 * take 0.8 to 1.4 times the predicted time (docs/notes/2026-11-29-gpu.md). */
static const double COPY_CYCLES = 6.5, NARROW_COPY_CYCLES = 13;

/* Lines of a tile that a thread copies between two branches: CHUNK_MAX of the kernel. */
enum { CHUNK = 8 };

/* An operand, as a kernel copies it. */
typedef struct small_batch_operand {
    int edge, vec; /* rows or columns of a tile; elements of a copy */
    bool k_major;  /* lines of a tile are its rows or columns, not its k */
} small_batch_operand;

/* The copy instructions of a warp for a tile of which `depth` of K exist. Lines of k that are not
 * multiplied are left out by whole chunks. */
static double small_batch_copies(const small_batch_row *t, const small_batch_operand *x,
                                 int64_t depth)
{
    const int per_line = (x->k_major ? t->bk : x->edge) / x->vec;
    const int64_t chunk = CHUNK * (group_of(t) / per_line);
    const int64_t k = tgl_min64(tgl_ceil_div(depth, chunk) * chunk, t->bk);
    return (double)((x->k_major ? x->edge : k) * per_line) / 32;
}

/* Cycles that an SM takes to copy one operand of a product. */
static double small_batch_copy_cycles(const small_batch_row *t, const tgl_shape *s,
                                      const small_batch_operand *x)
{
    const int64_t whole = s->k / t->bk, rest = s->k % t->bk;
    const double copies = (double)whole * small_batch_copies(t, x, t->bk) +
                          (rest > 0 ? small_batch_copies(t, x, rest) : 0);
    const int bytes = x->vec * (int)tgl_type_size(s->type_a);
    return copies * (bytes == 16 ? COPY_CYCLES : NARROW_COPY_CYCLES);
}

/* Cycles that an SM takes for a product, apart from the loads. */
static double small_batch_product_cycles(const tgl_chip *chip, const tgl_shape *s,
                                         const small_batch_geometry *g)
{
    const small_batch_row *t = g->row;
    const small_batch_operand a = {t->bm, g->step.vec_a, !s->trans_a},
                              b = {t->bn, g->step.vec_b, s->trans_b};
    const double ffmas = (double)(t->bm * t->bn) * 4 * (double)tgl_ceil_div(s->k, 4);
    const double share = s->type_accumulate == TGL_F64 ? F64_FMA_SHARE : FFMA_SHARE;
    return ffmas / tgl_fma_lanes(chip, s->type_accumulate) * share +
           small_batch_copy_cycles(t, s, &a) + small_batch_copy_cycles(t, s, &b);
}

/* of_sm: number of blocks on the SM that has the most blocks. */
static void small_batch_predict_time(const tgl_chip *chip, const tgl_shape *s,
                                     const small_batch_geometry *g, tgl_candidate *c)
{
    const small_batch_row *t = g->row;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    const double clock = 1e6 * chip->clock_mhz, slots = (double)chip->sms * c->resident;
    c->blocks = (double)g->step.blocks;
    const double active = c->blocks < slots ? c->blocks : slots, of_sm = ceil(active / chip->sms);
    const double rounds = ceil(c->blocks / slots);
    /* Number of times that a slot (room for a block on an SM) computes per_block products, one
     * after the other, over all its blocks. */
    const double turns = rounds * (double)tgl_ceil_div(s->batch, g->step.blocks * t->per_block);
    const double in_flight = (double)tgl_type_size(s->type_a) * t->per_block * (t->stages - 1) *
                             (m + n) * (k < t->bk ? k : t->bk);
    const double bytes = tgl_operand_bytes(s);
    const double products = of_sm * turns * t->per_block;
    const double work = products * small_batch_product_cycles(chip, s, g) / clock;
    const double around = (LAUNCH_CYCLES + BLOCK_CYCLES * rounds) / clock;
    c->memory = bytes / tgl_stream_rate(chip, active, in_flight) + work + around;
    c->compute = around + TILE_CYCLES * turns * ceil(k / t->bk) / clock;
    c->l2 = bytes / chip->l2_rate;
}

static void small_batch_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    small_batch_geometry g;
    const char *why = small_batch_make_geometry(s, &c->choice, &g);
    if (tgl_gemm_predict(chip, s, why, &g.step, c)) small_batch_predict_time(chip, s, &g, c);
}

/* Tries as many blocks as the chip holds at once, so that each gets an equal part of the batch. */
static void small_batch_search(tgl_search *in)
{
    const int64_t blocks = (int64_t)in->chip->sms * in->best->resident;
    tgl_search_try(in, BLOCKS, 1, &blocks, 0);
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void small_batch_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                                   tgl_list_builder *builder)
{
    const small_batch_geometry *g = geometry;
    const small_batch_row *t = g->row;
    const int vec_a = is_unaligned ? 1 : g->step.vec_a, vec_b = is_unaligned ? 1 : g->step.vec_b;
    const bool more = needs_more(s, vec_a, vec_b);
    const tgl_macro macros[] = {{"BM", t->bm},
                                {"BN", t->bn},
                                {"BK", t->bk},
                                {"TM", t->tm},
                                {"TN", t->tn},
                                {"STAGES", t->stages},
                                {"PER_BLOCK", t->per_block},
                                {"MIN_BLOCKS", more ? t->min_blocks_more : t->min_blocks},
                                {"TRANS_A", s->trans_a},
                                {"TRANS_B", s->trans_b},
                                {"VEC_A", vec_a},
                                {"VEC_B", vec_b}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

static void small_batch_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    small_batch_geometry g;
    const tgl_shape own = tgl_part_shape(of->shape, &of->part);
    if (tgl_gemm_fails(small_batch_make_geometry(&own, &of->choice, &g), builder)) return;
    tgl_gemm_launch(of, &g.step, small_batch_add_macros, &g, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void small_batch_explain(const tgl_chip *chip, const tgl_shape *shape,
                                const tgl_choice *choice, tgl_text *out)
{
    small_batch_geometry g;
    (void)chip;
    if (small_batch_make_geometry(shape, choice, &g) == NULL)
        tgl_gemm_explain_copies(shape, &g.step, out);
}

static bool small_batch_example(int index, tgl_type type, bool trans_a, bool trans_b,
                                tgl_shape *shape)
{
    *shape = tgl_example_shape(type, small_batch_rows[index].bm, small_batch_rows[index].bn,
                               trans_a, trans_b);
    return true;
}

const tgl_family tgl_family_small_batch = {
    .name = "small_batch",
    .summary = "batches of small products on CUDA cores",
    .options = small_batch_options,
    .may_overlap = true,
    TGL_ROWS(small_batch_rows),
    .unsupported_reason = tgl_unsupported_on_cuda_cores,
    .search = small_batch_search,
    .predict = small_batch_predict,
    .launch = small_batch_launch,
    .explain = small_batch_explain,
    .example = small_batch_example,
};
