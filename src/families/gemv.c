/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm/gemv.cu: an FP32 matrix times one vector, or up to four, bound by reading the matrix once.
 * Blocks are short, and as wide as the matrix and the chip suggest.
 */
#include "families/gemm_launch.h"

#include <limits.h>

/* ---- Configurations -------------------------------------------------------------------------- */

typedef struct gemv_row {
    const char *name;
    int count;           /* vectors, at most */
    int registers;       /* of a thread; an SM holds as many threads as these allow */
    int lines;           /* of a thread, where the matrix is K-major */
    int unroll_k_major;  /* float4 of each line that a thread loads at once */
    int unroll_mn_major; /* float4 that it loads at once where the matrix is MN-major */
} gemv_row;

/* Name, COUNT, registers; LINES and UNROLL where the matrix is K-major; UNROLL where it is
 * MN-major.
 */
static const gemv_row rows[] = {
    {"gemv", 1, 64, 1, 4, 8},
    {"gemv_2", 2, 64, 1, 4, 8},
    {"gemv_4", 4, 128, 2, 4, 8},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const char *const options[] = {NULL};

static const char *configuration(int index)
{
    return index >= 0 && index < ROWS ? rows[index].name : NULL;
}

static int lines(int index)
{
    return rows[index].count;
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* How a configuration serves a shape on a chip. */
typedef struct geometry {
    const gemv_row *row;
    int threads, static_shared; /* of a block; bytes */
    int batch_step;             /* problems of the batch in a launch */
    bool big_a;                 /* A is the matrix, B the vectors */
    bool k_major;               /* the matrix is contiguous in K */
    bool is_strided;            /* the vector is not contiguous, and the matrix is K-major */
    int64_t length;             /* rows or columns of the matrix in D */
    int vec_a, vec_b;           /* elements in a load */
    int lanes_k;                /* threads that share K */
    int tile;                   /* results (times count) of a block */
    int blocks;                 /* of the grid, in x */
} geometry;

/* Threads of an SM, by their registers: an SM has 65536 from compute
 * capability 5.0 to 12.0. */
static int resident_threads(const geometry *g)
{
    enum { REGISTERS_PER_SM = 65536 };
    return REGISTERS_PER_SM / g->row->registers;
}

/* float4 of the matrix that a thread loads at once. */
static int loads_of(const geometry *g)
{
    return g->k_major ? g->row->lines * g->row->unroll_k_major : g->row->unroll_mn_major;
}

/* Lines of a thread. An element of a strided vector is a load, and a place in L1, of its own: it
 * serves as many lines as a thread has loads in flight. */
static int lines_of(const geometry *g)
{
    if (g->is_strided) return loads_of(g);
    return g->k_major ? g->row->lines : 1;
}

static int unroll_of(const geometry *g)
{
    return loads_of(g) / lines_of(g);
}

/* K-major: as many threads share K as take it in one step, within a block of the usual size; more
 * where a launch has fewer blocks than the chip has SMs. */
static void share_lines(const tgl_shape *s, int sms, geometry *g)
{
    const int64_t groups = tgl_ceil_div(g->length, lines_of(g));
    const int most = groups * g->batch_step < sms ? 512 : 256;
    g->lanes_k = 4;
    while (g->lanes_k < most && 4 * unroll_of(g) * g->lanes_k < s->k)
        g->lanes_k *= 2;
    g->threads = g->lanes_k > 256 ? g->lanes_k : 256;
}

/* MN-major: as many threads share K as the chip has room for, though a step must not be longer than
 * K. Long matrices, and many in a launch, keep the chip busy however wide the blocks are. 512
 * threads of an SM are enough to keep the memory busy; more only cut the matrix into narrower
 * columns. */
static void share_columns(const tgl_shape *s, int sms, geometry *g)
{
    enum { ENOUGH_THREADS = 512 };
    const int64_t room = (int64_t)ENOUGH_THREADS * sms;
    const int64_t quads = tgl_ceil_div(g->length, 4) * g->batch_step;
    const int resident = resident_threads(g);
    const int most = 8 * quads > room ? resident / 32 : resident / 8;
    g->lanes_k = 8;
    while (g->lanes_k < most && 2 * unroll_of(g) * g->lanes_k <= s->k &&
           (8 * quads > room || 2 * g->lanes_k * quads <= room))
        g->lanes_k *= 2;
    g->threads = g->lanes_k < resident / 32  ? 256
                 : g->lanes_k < resident / 8 ? resident / 2
                                             : resident;
}

/* Elements in a load of the matrix: 4 or 1. Those of several vectors have to be as wide where the
 * matrix is K-major; whether a single one is aligned the kernel finds out. */
static int width_of(const tgl_shape *s, const geometry *g)
{
    const int a = tgl_copy_width(s, 0, s->lda, s->stride_a);
    const int b = tgl_copy_width(s, 0, s->ldb, s->stride_b);
    const int matrix = g->big_a ? a : b, vectors = g->big_a ? b : a;
    const bool is_wide = matrix == 4 && (g->k_major || g->length % 4 == 0) &&
                         (vectors == 4 || !g->k_major || g->row->count == 1);
    return is_wide ? 4 : 1;
}

/* Which operand is the matrix, how both lie, and how wide their loads are. */
static const char *look_at_operands(const tgl_shape *s, geometry *g)
{
    const int count = g->row->count;
    if (tgl_min64(s->m, s->n) > count)
        return count == 1 ? "it takes one row or column" : "it takes fewer rows or columns";
    g->big_a = s->m > s->n;
    g->k_major = g->big_a ? !s->trans_a : s->trans_b;
    g->length = g->big_a ? s->m : s->n;
    const bool is_apart = g->big_a ? !s->trans_b && s->ldb > 1 : s->trans_a && s->lda > 1;
    g->is_strided = g->k_major && is_apart;
    if (g->is_strided && count > 1) return "its vectors must be contiguous";
    const int width = width_of(s, g);
    const bool is_wide_in_both = g->k_major && count > 1;
    g->vec_a = g->big_a || is_wide_in_both ? width : 1;
    g->vec_b = !g->big_a || is_wide_in_both ? width : 1;
    return NULL;
}

/* NULL, or why the choice cannot serve. */
static const char *make_geometry(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice,
                                 geometry *g)
{
    *g = (geometry){.row = &rows[choice->configuration]};
    const char *why = look_at_operands(s, g);
    if (why != NULL) return why;
    g->batch_step = (int)tgl_min64(s->batch, TGL_GRID_YZ_MAX);
    (g->k_major ? share_lines : share_columns)(s, chip->sms, g);
    const int warps = g->k_major ? g->lanes_k / 32 : g->threads / 32; /* that share K */
    g->tile = g->threads / g->lanes_k * (g->k_major ? lines_of(g) : 4);
    g->static_shared = (warps > 0 ? warps : 1) * g->tile * g->row->count * (int)sizeof(float);
    g->blocks = (int)tgl_ceil_div(g->length, g->tile);
    return NULL;
}

/* ---- Predicted time -------------------------------------------------------------------------- */

/* Fitted to measurements on an H200; what several vectors add, to two products on it, 2x4096x4096
 * NT (18.1 us) and 4x4096x4096 NN (18.5 us). */
enum {
    LAUNCH_CYCLES = 2500, /* of a launch, */
    MORE_CYCLES = 2500,   /* and of several vectors */
    SECTOR_BYTES = 32,    /* that an element of a strided vector takes of L2, */
    L1_LINE_BYTES = 128,  /* and of L1 */
};
static const double LOADS_SHARE = 0.75;      /* of their loads, that blocks have in flight */
static const double FFMA_SHARE = 0.5;        /* of further vectors' FFMAs, not hidden by loads */
static const double VECTORS_SHARE = 2.0 / 3; /* of L1, that keeps them while the matrix passes */

/* Bytes of the vectors that come from L2: to each SM once if its L1 keeps them, else to each block.
 */
static double vector_bytes(const tgl_chip *chip, const tgl_shape *s, const geometry *g,
                           double blocks)
{
    const double elements = g->row->count * (double)s->k;
    const double in_l1 = elements * (g->is_strided ? L1_LINE_BYTES : 4);
    const double on_all = (double)s->batch * chip->sms;
    const bool is_kept = in_l1 <= VECTORS_SHARE * chip->shared_per_sm;
    return elements * (g->is_strided ? SECTOR_BYTES : 4) *
           (is_kept && on_all < blocks ? on_all : blocks);
}

/* Seconds of loads of a strided vector: L1 finds one element in a cycle. */
static double strided_seconds(const tgl_chip *chip, const tgl_shape *s, const geometry *g)
{
    if (!g->is_strided) return 0;
    const double loads = (double)s->batch * (double)g->length * (double)s->k / loads_of(g);
    return loads / chip->sms / (1e6 * chip->clock_mhz);
}

static void predict_time(const tgl_chip *chip, const tgl_shape *s, const geometry *g,
                         tgl_candidate *c)
{
    const double k = (double)s->k, batch = (double)s->batch, length = (double)g->length;
    const double slots = (double)chip->sms * c->resident, count = g->row->count;
    c->blocks = batch * g->blocks;
    const double active = c->blocks < slots ? c->blocks : slots;
    const double in_flight = LOADS_SHARE * 16 * g->threads * loads_of(g);
    const double clock = 1e6 * chip->clock_mhz;
    const double around = (LAUNCH_CYCLES + (g->row->count > 1 ? MORE_CYCLES : 0)) / clock;
    const double ffmas = batch * length * k / ((double)chip->fp32_lanes * chip->sms) / clock;
    c->compute = count * ffmas + around;
    c->memory =
        4 * batch * (length * k + count * (length + k)) / tgl_stream_rate(chip, active, in_flight) +
        FFMA_SHARE * (count - 1) * ffmas + strided_seconds(chip, s, g) + around;
    c->l2 = (4 * batch * length * k + vector_bytes(chip, s, g, c->blocks)) / chip->l2_rate;
}

static void predict(const tgl_chip *chip, const tgl_shape *s, tgl_candidate *c)
{
    geometry g;
    const char *why = make_geometry(chip, s, &c->choice, &g);
    if (why != NULL) {
        tgl_reject(c, why);
        return;
    }
    c->threads = g.threads;
    c->registers = g.row->registers;
    c->shared_bytes = g.static_shared;
    c->splits = 1;
    c->launches = tgl_ceil_div(s->batch, g.batch_step);
    c->is_predicted = true;
    if (tgl_predict_occupancy(chip, 0, c)) predict_time(chip, s, &g, c);
}

/* ---- Launches -------------------------------------------------------------------------------- */

static void add_macros(const geometry *g, bool is_unaligned, tgl_list_builder *builder)
{
    /* A scalar load of an MN-major matrix takes an address of its own: with several vectors, more
     * than so many would not find registers. */
    enum { NARROW_UNROLL_MAX = 4 };
    const int count = g->row->count, unroll = unroll_of(g);
    const int width = is_unaligned ? 1 : g->big_a ? g->vec_a : g->vec_b;
    const bool is_less = width == 1 && count > 1 && unroll > NARROW_UNROLL_MAX;
    const tgl_macro macros[] = {{"BIG_A", g->big_a},
                                {"ALONG_K", g->k_major},
                                {"COUNT", count},
                                {"VEC", width},
                                {"WARPS", g->threads / 32},
                                {"LANES_K", g->lanes_k},
                                {"LINES", lines_of(g)},
                                {"UNROLL", is_less ? NARROW_UNROLL_MAX : unroll},
                                {"MIN_BLOCKS", resident_threads(g) / g->threads}};
    tgl_add_macros(builder, macros, sizeof macros / sizeof macros[0]);
}

static void launch(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                   const tgl_rectangle *part, bool is_strip, bool is_last,
                   tgl_list_builder *builder)
{
    geometry g;
    const tgl_shape own = tgl_part_shape(shape, part);
    const char *why = make_geometry(chip, &own, choice, &g);
    if (why != NULL) {
        tgl_gemm_fail(why, builder);
        return;
    }
    tgl_gemm_step step = {
        .chip = chip,
        .shape = shape,
        .part = part,
        .is_strip = is_strip,
        .is_last = is_last,
        .name = g.row->name,
        .file = "gemm/gemv.cu",
        .symbol = "sgemm_gemv",
        .local_bytes = TGL_SPILL_MAX,
        .threads = g.threads,
        .vec_a = g.vec_a,
        .vec_b = g.vec_b,
        .blocks = g.blocks,
        .batch_step = g.batch_step,
        .args = {.splits = 1,
                 .cluster = 1,
                 .k_chunk = INT_MAX,
                 .small_k_major = g.big_a ? shape->trans_b : !shape->trans_a},
    };
    add_macros(&g, false, builder);
    step.aligned = tgl_gemm_kernel(&step, builder);
    if (tgl_gemm_has_unaligned(shape, g.vec_a, g.vec_b)) {
        add_macros(&g, true, builder);
        step.unaligned = tgl_gemm_kernel(&step, builder);
    }
    tgl_gemm_add_step(&step, builder);
}

/* ---- Text and examples ----------------------------------------------------------------------- */

static void explain(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                    tgl_text *out)
{
    geometry g;
    if (make_geometry(chip, shape, choice, &g) == NULL)
        tgl_gemm_explain_copies(shape, g.vec_a, g.vec_b, out);
}

/* Vectors as rows of A: with A transposed they are strided, which several must not be. */
static bool example(int index, bool trans_a, bool trans_b, tgl_shape *shape)
{
    *shape = tgl_example_shape(rows[index].count, TGL_EXAMPLE_SIDE, trans_a, trans_b);
    geometry g = {.row = &rows[index]};
    return look_at_operands(shape, &g) == NULL;
}

const tgl_family tgl_family_gemv = {
    .name = "gemv",
    .summary = "an FP32 matrix times up to 4 vectors",
    .options = options,
    .serves_strips = true,
    .has_short_blocks = true,
    .configuration = configuration,
    .lines = lines,
    .unsupported_reason = tgl_gemm_unsupported_reason,
    .predict = predict,
    .launch = launch,
    .explain = explain,
    .example = example,
};
