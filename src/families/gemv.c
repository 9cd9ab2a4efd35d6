/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/gemv.cu: a matrix times one to four vectors. The time is the time to read the matrix once.
 * Each block runs for a short time. The size of blocks depends on the matrix and the chip.
 */
#include "families/gemm_launch.h"
#include "families/thin.h"
#include "families/unsupported.h"

#include <limits.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef struct gemv_row {
    const char *name;
    int count; /* maximum number of vectors */
    struct gemv_layout {
        int registers;       /* per thread; an SM holds as many threads as these allow */
        int lines;           /* lines (along K) of a K-major matrix that a thread multiplies */
        int unroll_k_major;  /* 16-byte loads that a thread issues at once per line, if K-major */
        int unroll_mn_major; /* 16-byte loads that a thread issues at once if MN-major */
    } f32, bits16, f64;
} gemv_row;

/* Name, COUNT; then for each of F32, 16-bit types and F64: registers, LINES and UNROLL with a
 * K-major matrix, UNROLL with an MN-major one. */
static const gemv_row gemv_rows[] = {
    {"gemv", 1, {64, 1, 4, 8}, {64, 1, 4, 4}, {64, 1, 4, 8}},
    {"gemv_2", 2, {64, 1, 4, 8}, {64, 2, 2, 2}, {64, 1, 4, 8}},
    {"gemv_4", 4, {128, 2, 4, 8}, {128, 2, 4, 4}, {128, 2, 4, 8}},
};

static const char *const gemv_options[] = {NULL};

static int gemv_lines(int index)
{
    return gemv_rows[index].count;
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a choice (a configuration and its options) computes a product. */
typedef struct gemv_geometry {
    const gemv_row *row;
    const struct gemv_layout *layout;
    int size;        /* bytes of an element of A or B */
    tgl_thin thin;   /* big operand: the matrix; lines of the small one: vectors */
    bool is_strided; /* the single vector is strided, and the matrix is K-major */
    int64_t k;       /* K, complex numbers if the matrix is complex and MN-major */
    int threads;     /* threads of a block */
    int lanes_k;     /* threads that divide K among them */
    tgl_gemm_step step;
} gemv_geometry;

/* Threads that an SM holds at once: it has 65536 registers from compute capability 5.0 to 12.0. */
static int resident_threads(const gemv_geometry *g)
{
    enum { REGISTERS_PER_SM = 65536 };
    return REGISTERS_PER_SM / g->layout->registers;
}

/* Elements of A or B in 16 bytes. */
static int gemv_pack_of(const gemv_geometry *g)
{
    return 16 / g->size;
}

/* The number of 16-byte loads of the matrix that a thread issues at once. For two complex
 * vectors and an MN-major matrix, 64 registers suffice for half as many loads. */
static int loads_of(const gemv_geometry *g)
{
    const struct gemv_layout *l = g->layout;
    if (g->thin.k_major) return l->lines * l->unroll_k_major;
    return g->thin.big_parts == 2 && g->row->count == 2 ? l->unroll_mn_major / 2
                                                        : l->unroll_mn_major;
}

/* The number of lines of the matrix that a thread multiplies. An element of a strided vector takes
 * a load of its own and occupies a line of L1. A thread therefore multiplies each such element with
 * as many lines of the matrix as the thread has loads in flight. */
static int lines_of(const gemv_geometry *g)
{
    if (g->is_strided) return loads_of(g);
    return g->thin.k_major ? g->layout->lines : 1;
}

static int gemv_unroll_of(const gemv_geometry *g)
{
    return loads_of(g) / lines_of(g);
}

/* Sets the threads for a K-major matrix. As many threads divide K among them as are needed to read
 * a line in one step; but at most 256, or 512 if the launch has fewer blocks than the chip has SMs.
 *
 * If the matrix has 16-bit elements and many lines, a block has four warps, and at most two of them
 * divide K. Then the incomplete last step of K wastes less time, and small blocks do not all end at
 * once. With this rule 1x28672x3584 takes 48 us on an H200, without it 56 us
 * (docs/notes/2026-11-26-gpu-planner.md). */
static void share_lines(int sms, gemv_geometry *g)
{
    enum { MANY_LINES = 16 /* per SM */, FEW_LANES = 64, SMALL_BLOCK = 128 };
    const int64_t groups = tgl_ceil_div(g->thin.length, lines_of(g));
    const int lanes_max = groups * g->step.batch_step < sms ? 512 : 256;
    g->lanes_k = 4;
    while (g->lanes_k < lanes_max && gemv_pack_of(g) * gemv_unroll_of(g) * g->lanes_k < g->k)
        g->lanes_k *= 2;
    g->threads = g->lanes_k > 256 ? g->lanes_k : 256;
    const bool has_many_lines = g->thin.length >= MANY_LINES * (int64_t)sms;
    if (g->size == 2 && !g->is_strided && has_many_lines && g->lanes_k > FEW_LANES) {
        g->lanes_k = FEW_LANES;
        g->threads = SMALL_BLOCK;
    }
}

/* The minimum number of threads that divide K among them if the matrix is MN-major: a block of 256
 * threads has as many. It is also a limit on K: with less K than this, some of the threads would
 * have none of it, and a block gets fewer (is_short()). */
enum { LANES_MIN = 8 };

/* Whether an MN-major matrix has less K than LANES_MIN threads need. */
static bool is_short(const gemv_geometry *g)
{
    return !g->thin.k_major && g->k < LANES_MIN;
}

/* Sets the threads for an MN-major matrix. As many threads divide K among them as the chip has room
 * for, but the elements that a block loads at once must not be more than K. Long or many matrices
 * keep the chip busy with blocks of any shape. 512 threads per SM are enough to keep the memory
 * busy. More would only divide the matrix into narrower columns. If K is short, a block has fewer
 * warps, so that each has some of the K. */
static void share_columns(int sms, gemv_geometry *g)
{
    enum { ENOUGH_THREADS = 512 };
    const int64_t room = (int64_t)ENOUGH_THREADS * sms;
    const int64_t packs = tgl_ceil_div(g->thin.length, gemv_pack_of(g)) * g->step.batch_step;
    const int resident = resident_threads(g);
    const int lanes_max = 8 * packs > room ? resident / 32 : resident / 8;
    g->lanes_k = LANES_MIN;
    while (g->lanes_k < lanes_max && 2 * gemv_unroll_of(g) * g->lanes_k <= g->k &&
           (8 * packs > room || 2 * g->lanes_k * packs <= room))
        g->lanes_k *= 2;
    while (is_short(g) && g->lanes_k > 1 && g->lanes_k * gemv_unroll_of(g) >= 2 * g->k)
        g->lanes_k /= 2;
    g->threads = is_short(g)                  ? 32 * g->lanes_k
                 : g->lanes_k < resident / 32 ? 256
                 : g->lanes_k < resident / 8  ? resident / 2
                                              : resident;
    /* A 16-byte load covers twice as many columns of a 16-bit type as of F32, so there are half as
     * many blocks. Halving the size of the blocks doubles their number again. */
    if (g->size == 2 && g->threads == resident && packs * g->lanes_k < (int64_t)resident * sms)
        g->threads = resident / 2;
}

/* The number of packs of each line that a thread loads at once: no more than K has, if it is short.
 */
static int step_unroll_of(const gemv_geometry *g)
{
    const int64_t of_lane = tgl_ceil_div(g->k, g->lanes_k);
    if (!is_short(g)) return gemv_unroll_of(g);
    return of_lane < 1 ? 1 : (int)tgl_min64(of_lane, gemv_unroll_of(g));
}

/* The number of elements in a load of the matrix; 4 or 1 for F32 that is not complex. If the matrix
 * is K-major and its loads have 16 bytes, the loads of several vectors must have 16 bytes, too. The
 * kernel itself tests whether a single vector is aligned. */
static int width_of(const tgl_shape *s, const gemv_geometry *g)
{
    const int matrix = tgl_thin_width(s, &g->thin), vectors = tgl_thin_small_width(s, &g->thin);
    const int pack = gemv_pack_of(g);
    const bool is_wide =
        matrix == pack && (vectors == pack || !g->thin.k_major || g->row->count == 1);
    if (is_wide) return pack;
    return g->size == 4 && s->pairs_b == 0 ? 1 : matrix < pack ? matrix : pack / 2;
}

/* Sets which operand is the matrix, the layout of both, and the width of their loads. Returns NULL,
 * or why the configuration does not support them. */
static const char *gemv_look_at_operands(const tgl_shape *s, gemv_geometry *g)
{
    const int count = g->row->count;
    g->thin = tgl_thin_of(s);
    const char *why = tgl_thin_unsupported(&g->thin, count);
    if (why != NULL) return why;
    g->size = (int)tgl_type_size(s->type_a);
    g->layout = g->size == 2 ? &g->row->bits16 : g->size == 8 ? &g->row->f64 : &g->row->f32;
    g->k = s->k / g->thin.big_parts;
    const int64_t one = s->pairs_b != 0 ? 2 : 1; /* numbers of an element */
    const bool has_gaps = g->thin.big_a ? !s->trans_b && s->ldb > one : s->trans_a && s->lda > one;
    g->is_strided = g->thin.k_major && has_gaps;
    if (g->is_strided && count > 1) return "its vectors must be contiguous";
    const int width = width_of(s, g);
    const bool is_wide_in_both = g->thin.k_major && count > 1 && width == gemv_pack_of(g);
    g->step.vec_a = g->thin.big_a || is_wide_in_both ? width : 1;
    g->step.vec_b = !g->thin.big_a || is_wide_in_both ? width : 1;
    return NULL;
}

/* Returns NULL, or why the choice cannot compute the product. */
static const char *gemv_make_geometry(const tgl_chip *chip, const tgl_shape *s,
                                      const tgl_choice *choice, gemv_geometry *g)
{
    *g = (gemv_geometry){.row = tgl_choice_row(choice)};
    const char *why = gemv_look_at_operands(s, g);
    if (why != NULL) return why;
    tgl_gemm_step *step = &g->step;
    step->batch_step = (int)tgl_min64(s->batch, TGL_GRID_YZ_MAX);
    (g->thin.k_major ? share_lines : share_columns)(chip->sms, g);
    const int warps_of_k = (g->thin.k_major ? g->lanes_k : g->threads) / 32;
    const int tile = g->threads / g->lanes_k * (g->thin.k_major ? lines_of(g) : gemv_pack_of(g));
    step->name = g->row->name;
    step->file = "gemm/gemv.cu";
    step->symbol = "sgemm_gemv";
    step->threads = g->threads;
    step->registers = g->layout->registers;
    step->local_bytes = TGL_SPILL_MAX;
    step->static_shared = (warps_of_k > 0 ? warps_of_k : 1) * tile * g->row->count *
                          (int)tgl_type_size(s->type_accumulate);
    step->blocks = tgl_ceil_div(g->thin.length, tile);
    step->args.splits = step->args.cluster = 1;
    step->args.k_chunk = INT_MAX;
    step->args.small_k_major = g->thin.big_a ? s->trans_b : !s->trans_a;
    return NULL;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Constants of the cost model, fitted to measurements on an H200. MORE_CYCLES and FFMA_SHARE are
 * fitted to two products with several vectors (docs/notes/2026-11-26-gpu-planner.md). */
enum {
    LAUNCH_CYCLES = 2500, /* fixed cycles of a launch */
    MORE_CYCLES = 2500,   /* additional cycles of a launch with several vectors (COUNT > 1) */
    SECTOR_BYTES = 32,    /* bytes read from L2 for an element of a strided vector */
    L1_LINE_BYTES = 128,  /* bytes of L1 that an element of a strided vector occupies */
};
static const double LOADS_SHARE = 0.75; /* fraction of the loads of a block that are in flight */
/* Fraction of the FFMA time of the second and later vectors that loads do not hide. */
static const double FFMA_SHARE = 0.55;
static const double VECTORS_SHARE = 2.0 / 3; /* fraction of L1 that the vectors can occupy */

/* Bytes of the vectors that are read from L2: once by each SM if its L1 keeps them, else once by
 * each block. */
static double vector_bytes(const tgl_chip *chip, const tgl_shape *s, const gemv_geometry *g,
                           double blocks)
{
    const double elements = (double)g->row->count / g->thin.small_parts * (double)s->k;
    const double in_l1 = elements * (g->is_strided ? L1_LINE_BYTES : g->size);
    const double on_all = (double)s->batch * chip->sms;
    const bool is_kept = in_l1 <= VECTORS_SHARE * chip->shared_per_sm;
    return elements * (g->is_strided ? SECTOR_BYTES : g->size) *
           (is_kept && on_all < blocks ? on_all : blocks);
}

/* Seconds to load a strided vector. The L1 of an SM delivers one strided element per cycle. */
static double strided_seconds(const tgl_chip *chip, const tgl_shape *s, const gemv_geometry *g)
{
    if (!g->is_strided) return 0;
    const double loads = (double)s->batch * (double)g->thin.length * (double)s->k / loads_of(g);
    return loads / chip->sms / (1e6 * chip->clock_mhz);
}

static void gemv_predict_time(const tgl_chip *chip, const tgl_shape *s, const gemv_geometry *g,
                              tgl_candidate *c)
{
    const double k = (double)s->k, batch = (double)s->batch, length = (double)g->thin.length;
    const double slots = (double)chip->sms * c->resident, count = g->row->count;
    c->blocks = batch * (double)g->step.blocks;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double in_flight = LOADS_SHARE * 16 * g->threads * lines_of(g) * step_unroll_of(g);
    const double clock = 1e6 * chip->clock_mhz;
    const double around = (LAUNCH_CYCLES + (g->row->count > 1 ? MORE_CYCLES : 0)) / clock;
    const double ffmas =
        batch * length * k / (tgl_fma_lanes(chip, s->type_accumulate) * chip->sms) / clock;
    c->compute = count * ffmas + around;
    c->memory = tgl_operand_bytes(s) / tgl_stream_rate(chip, active, in_flight) +
                FFMA_SHARE * (count - 1) * ffmas + strided_seconds(chip, s, g) + around;
    c->l2 = (g->size * batch * length * (double)g->k + vector_bytes(chip, s, g, c->blocks)) /
            chip->l2_rate;
}

static void gemv_predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    gemv_geometry g;
    const char *why = gemv_make_geometry(chip, s, &c->choice, &g);
    if (tgl_gemm_predict(chip, s, why, &g.step, c)) gemv_predict_time(chip, s, &g, c);
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void gemv_add_macros(const void *geometry, const tgl_shape *s, bool is_unaligned,
                            tgl_list_builder *builder)
{
    /* Each scalar load of an MN-major matrix needs a register for its address, and a 16-bit load
     * another one for its element. More loads at once would exceed the registers for 16-bit
     * elements and, with several vectors, for other types, too. */
    enum { NARROW_UNROLL_MAX = 4, NARROW_UNROLL_MAX_OF_16_BITS = 2 };
    const gemv_geometry *g = geometry;
    const int count = g->row->count, unroll = step_unroll_of(g);
    const int width = is_unaligned ? 1 : g->thin.big_a ? g->step.vec_a : g->step.vec_b;
    const int unroll_max = width > 1      ? unroll
                           : g->size == 2 ? NARROW_UNROLL_MAX_OF_16_BITS
                           : count > 1    ? NARROW_UNROLL_MAX
                                          : unroll;
    const bool has_whole_packs =
        g->thin.k_major && width == gemv_pack_of(g) && s->k % gemv_pack_of(g) == 0;
    const tgl_macro macros[] = {{"BIG_A", g->thin.big_a},
                                {"ALONG_K", g->thin.k_major},
                                {"COUNT", count},
                                {"VEC", width},
                                {"WHOLE_PACKS", has_whole_packs},
                                {"WARPS", g->threads / 32},
                                {"LANES_K", g->lanes_k},
                                {"LINES", lines_of(g)},
                                {"UNROLL", unroll < unroll_max ? unroll : unroll_max},
                                {"MIN_BLOCKS", resident_threads(g) / g->threads}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
    if (s->pairs_b != 0) tgl_list_macro(builder, "PAIRS", g->thin.pairs);
}

static void gemv_launch(const tgl_partition *of, tgl_list_builder *builder)
{
    gemv_geometry g;
    const tgl_shape own = tgl_part_shape(of->shape, &of->part);
    if (tgl_gemm_fails(gemv_make_geometry(of->chip, &own, &of->choice, &g), builder)) return;
    tgl_gemm_launch(of, &g.step, gemv_add_macros, &g, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void gemv_explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                         tgl_text *out)
{
    gemv_geometry g;
    if (gemv_make_geometry(chip, shape, choice, &g) == NULL)
        tgl_gemm_explain_copies(shape, &g.step, out);
}

/* In this example the vectors are rows of A. If A is transposed they are strided, which with a
 * K-major B only "gemv" supports. */
static bool gemv_example(int index, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape)
{
    *shape = tgl_example_shape(type, gemv_rows[index].count, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    gemv_geometry g = {.row = &gemv_rows[index]};
    return gemv_look_at_operands(shape, &g) == NULL;
}

const tgl_family tgl_family_gemv = {
    .name = "gemv",
    .summary = "a matrix times up to 4 vectors",
    .reads = TGL_DIRECT_PAIRS,
    .options = gemv_options,
    .serves_strips = true,
    .may_overlap = true,
    TGL_ROWS(gemv_rows),
    .lines = gemv_lines,
    .unsupported_reason = tgl_unsupported_on_cuda_cores,
    .predict = gemv_predict,
    .launch = gemv_launch,
    .explain = gemv_explain,
    .example = gemv_example,
};
