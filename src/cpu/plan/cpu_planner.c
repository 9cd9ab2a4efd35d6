/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses how a product is computed: path, packing, blocks. cpu_sharing.c chooses the threads.
 * Values that differ by processor model are in the table of cpu_models.c.
 *
 * Terms: a rectangle is the part of C that a thread computes at once (cpu_sharing.c). A tile of
 * rows is mr rows, the height of a register tile. A panel of B is a strip as wide as a register
 * tile. The comment of a constant begins with its source. F: a formula or a manual. M: measured
 * (docs/notes/2026-11-26-cpu-planner.md). C: chosen by judgment, without a measurement of its own.
 */
#include "cpu/kernels/shares.h"
#include "cpu/plan/block_plan.h"
#include "cpu/plan/cpu_models.h"
#include "cpu/plan/cpu_plan.h"
#include "cpu/plan/cpu_sharing.h"

/* A product, and everything else that its plan depends on. */
typedef struct plan_input {
    const tgl_shape *shape;
    const cpu_kernels *kernels;
    const cpu_model *model;
    cpu_blocking blocking;   /* block sizes requested by the caller, or measured (cpu_models.c); 0:
                                to be computed */
    int threads;             /* maximum number of threads */
    int64_t l2, l3;          /* bytes */
    int64_t element, mr, nr; /* bytes of an element; rows and columns of the largest tile */
    cpu_rectangle largest;   /* size of the largest rectangle of C that a thread computes at once */
} plan_input;

/* Limits that hold for all processors. */
enum {
    /* Caches */
    LINE = 64,          /* F: bytes of a cache line */
    PAGE = 64 * LINE,   /* F: bytes of one line in each of the 64 sets of an L1 cache; addresses at
                           this distance share a set */
    L3_CORES = 8,       /* F: cores of an AMD chiplet (CCX), which share an L3 */
    CORES_OF_BATCH = 3, /* C: a batch that fits in this many cores' shares of L3 is not
                           prefetched */

    /* Packing and prefetching */
    NARROW_PANELS = 2,     /* C: C is narrow if its columns fit in this many panels of B */
    LARGE_B = 8,           /* C: B is large if it exceeds L2 / LARGE_B */
    MIN_ROW_BYTES = 256,   /* M: in bytes; hardware prefetchers alone read shorter rows of B fast
                              enough */
    MIN_PANEL_KB = 32,     /* M: minimum KB of a prefetched product of a batch if B is one panel */
    MAX_SPREAD = 2,        /* C: a batch is prefetched only if no leading dimension exceeds this
                              many times the row length */
    MIN_READ_A = 40000000, /* M, on Zen 3: pack A if packing_reads() of a rectangle exceeds this */
    MIN_READ_B = 9000000,  /* M, on Zen 3: the same for B */
    TILES_IN_PLACE = 4,    /* C: B is not packed if a rectangle is at most this many tiles high. The
                              limit is twice as high if C is narrow, and 1 if the rows of B share a
                              set of L1 */

    /* Blocks */
    SMALL_L2_SHARE = 3,  /* M: a_block_min_kb of cpu_models.c is limited to L2 / 3 */
    MIN_BLOCK_TILES = 4, /* C: minimum height of a block of A, in tiles of rows */
    NARROW_B = 4,        /* C: if C is narrow, a block of B takes at most L2 / NARROW_B */
    STEPS_UNIT = 8, /* F: if k is divided into blocks, kc, the steps of k of a block, is a multiple
                       of this: one cache line of f64 */
    SHORT_K = 128,  /* M: bands are used only for k below this; with k = 150 they gain
                       nothing */
    BAND_TILES = 2, /* M: height of a band in tiles of rows; 1, 3 and 4 are 0 to 4 % slower */
    BAND_B = 2,     /* C: if C is computed in bands, a block of B takes L2 / BAND_B */
    MAX_B_BYTES = 8 << 20, /* C: maximum bytes of a block of B if C is not computed in bands */

    /* Strips (measured: docs/notes/2026-11-28-cpu-short-k.md) */
    FLAT_SIDE = 8,  /* M, on Zen 3: C is flat if it has at most this many rows or columns */
    FLAT_STEPS = 8, /* M, on Zen 3: a flat C is computed in strips on all processors if k is at most
                       this and B is not transposed */
    STRIP_ROWS = 48,    /* M: height of a strip: whole tiles of every tier. Its rows of C lie in as
                           many pages, and the first TLB of Zen 3 has 64 entries */
    STRIP_B = 16 << 10, /* M: bytes of a packed block of B, which stays in L1 */
    STRIP_COLUMNS = 64, /* M: least columns of such a block, rounded to whole panels */
    STRIP_ROW_BYTES = 1024, /* M: C is computed in strips only if a row of op(A) has at most this
                               many bytes */

    /* Small products */
    CALL = 1000, /* C: fixed cost of a small product, in multiply-adds */
};

size_t tgl_cpu_aligned(size_t bytes)
{
    return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

static int64_t max64(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static double multiply_adds(int64_t m, int64_t n, int64_t k)
{
    return (double)m * (double)n * (double)k;
}

static bool is_narrow(const plan_input *in, int64_t columns)
{
    return columns <= NARROW_PANELS * in->nr;
}

/* Whether this many columns of B exceed the part of L2 that is left beside A and C. If so, B is
 * prefetched. */
static bool is_large_b(const plan_input *in, int64_t columns)
{
    const double bytes = (double)in->shape->k * (double)columns * (double)in->element;
    return bytes > (double)in->l2 / LARGE_B;
}

/* Whether to prefetch the first panel of the next block of B while the last panel of a block is
 * multiplied. If B has short rows or is one panel, it is read as one stream, which the hardware
 * prefetches: software prefetches would make the product slower
 * (docs/notes/2026-11-26-cpu-planner.md). */
static bool fetches_next_block(const plan_input *in, int64_t columns)
{
    return !in->shape->trans_b && columns > in->nr && columns * in->element >= MIN_ROW_BYTES &&
           is_large_b(in, columns);
}

/* ---- Packing --------------------------------------------------------------------------------- */

/* Whether A exceeds L2 and its rows compete for few sets of the caches: lda in bytes is nearly a
 * multiple of PAGE, so that the rows of one tile spread over at most two neighbouring sets. */
static bool rows_share_few_sets(const plan_input *in)
{
    const int64_t step = in->shape->lda * in->element, beyond = step % PAGE;
    const int64_t drift = LINE / in->mr;
    return step >= PAGE - drift && (beyond <= drift || beyond >= PAGE - drift) &&
           in->largest.rows * in->shape->k * in->element > in->l2;
}

/* The number of columns of a rectangle of C from which on packed copies of the rows of A are faster
 * to read, even if the rows do not share few sets; INT64_MAX: they never are. */
static int64_t copy_columns(const plan_input *in)
{
    return in->model->copy_min_columns > 0 ? in->model->copy_min_columns : INT64_MAX;
}

/* Whether packing an untransposed A pays, because the tiles read the packed copy faster. */
static bool is_copy_faster(const plan_input *in)
{
    return (in->model->copies_few_sets && rows_share_few_sets(in)) ||
           in->largest.columns >= copy_columns(in);
}

/* Bytes of A that the multiply-adds of a rectangle read, if each reads its element from memory. The
 * limits from which packing pays are the same for all types in this unit. */
static double packing_reads(const plan_input *in, int64_t rows, int64_t columns)
{
    const double work = multiply_adds(rows, columns, in->shape->k) * (double)in->element;
    /* A complex multiply-add is four real ones, of numbers of half the size. */
    return tgl_type_is_complex(in->shape->type_a) ? 2 * work : work;
}

/* Chooses whether A and B are packed. An operand is not packed if a rectangle of C uses each of its
 * elements too few times. Nor is it packed if the tiles read it contiguously and a copy would not
 * be faster to read. */
static void choose_packing(const plan_input *in, cpu_plan *plan)
{
    const tgl_shape *s = in->shape;
    const int64_t rows = in->largest.rows, columns = in->largest.columns;
    const double reads = packing_reads(in, rows, columns);
    const bool narrow = is_narrow(in, columns);
    /* An L1 set holds 8 to 12 cache lines. If all rows of B map to the same set, the lines that the
     * first tile reads are evicted before the second tile of the panel reads them again. */
    const bool shares_set = s->ldb * in->element % PAGE == 0;
    const int64_t in_place = shares_set ? 1 : (narrow ? 2 : 1) * TILES_IN_PLACE;
    plan->pack_b = s->trans_b || (reads > MIN_READ_B && rows > in_place * in->mr);
    plan->pack_a = !narrow && reads > MIN_READ_A && (s->trans_a || is_copy_faster(in));
    plan->fetch = is_large_b(in, columns);
    plan->fetch_next_block = fetches_next_block(in, columns);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Divides `total` into the fewest blocks of at most `max`, nearly equal in size. Returns the block
 * size, a multiple of `unit`. */
static int64_t even_block(int64_t total, int64_t max, int64_t unit)
{
    if (total <= max) return max64(total, 1);
    const int64_t even = cpu_ceil_div(total, cpu_ceil_div(total, max));
    return max64(tgl_min64(max, tgl_round_up(even, unit)), 1);
}

/* Elements of a block of A, if A has several blocks. The panels of B and the tiles of C use the
 * rest of L2. A block must not be small, because B is read once for each block of A. */
static int64_t elements_of_a(const plan_input *in)
{
    const cpu_fraction share = in->model->a_block;
    const int64_t min =
        tgl_min64(in->l2 / SMALL_L2_SHARE, (int64_t)in->model->a_block_min_kb << 10);
    return max64(in->l2 / share.of * share.parts, min) / in->element;
}

/* kc if C is narrow: the largest kc with which the block of B (and the next one, if it is
 * prefetched) fits in L2 / NARROW_B. A large kc reads long contiguous parts of the rows of A. */
static int64_t steps_if_narrow(const plan_input *in)
{
    const int64_t columns = in->shape->n, blocks = fetches_next_block(in, columns) ? 2 : 1;
    return in->l2 / (NARROW_B * blocks) / in->element / columns;
}

/* kc if C has few rows and B, which is not transposed, comes from memory. This kc is small for two
 * reasons: memory delivers long rows of B fastest if only a few rows are read at a time; and
 * loading and storing C once for each block costs little if C has few rows. */
static int64_t steps_of_few_rows(const plan_input *in)
{
    const int64_t rows = in->shape->m, a_fits = elements_of_a(in) / rows;
    const int64_t steps = in->model->few_row_steps.each_row * rows;
    return max64(tgl_min64(steps, max64(a_fits, rows)), in->model->few_row_steps.min);
}

/* The maximum kc. It depends on the whole product, not on a thread's part of it: if threads divide
 * the rows and columns of C, results are then bitwise equal for any number of threads. */
static int64_t max_steps(const plan_input *in)
{
    const int64_t usual = in->blocking.kc > 0 ? in->blocking.kc : in->kernels->kc;
    if (is_narrow(in, in->shape->n)) return max64(usual, steps_if_narrow(in));
    const bool few_rows =
        in->shape->m < usual && !in->shape->trans_b && is_large_b(in, in->shape->n);
    return few_rows ? tgl_min64(usual, steps_of_few_rows(in)) : usual;
}

/* Whether C is computed in bands of a few rows. Without bands, a panel of C, which is as wide as a
 * register tile and has many rows, is finished before the next panel begins. If k is short and C
 * comes from L3 or memory, this is slower than writing long contiguous parts of a few rows. */
static bool is_in_bands(const plan_input *in, const cpu_plan *plan)
{
    const tgl_shape *s = in->shape;
    const int sharers = plan->sharing == CPU_SHARE_C ? plan->threads : 1;
    const double bytes = (double)s->m * (double)s->n * (double)in->element / sharers;
    const int64_t cache = in->model->bands == CPU_BEYOND_L3 ? in->l3 / L3_CORES : in->l2;
    return in->model->bands != CPU_NEVER && s->k < SHORT_K && plan->pack_b && bytes > (double)cache;
}

/* Whether A is one block. Each packed panel of B is then needed for one block of A only, so that
 * all panels are packed into the same memory, which stays in the caches. */
static bool is_one_block(const plan_input *in, int64_t kc)
{
    const cpu_fraction share = in->model->a_one_block;
    const int64_t rows = in->largest.rows;
    return rows <= in->model->a_block_max_rows &&
           rows * kc * in->element * share.of <= in->l2 * share.parts;
}

/* The maximum mc, the rows of a block of A. */
static int64_t max_rows(const plan_input *in, const cpu_plan *plan)
{
    if (in->blocking.mc > 0) return max64(in->blocking.mc, in->mr);
    if (plan->in_bands) return BAND_TILES * in->mr;
    if (is_one_block(in, plan->kc)) return in->largest.rows;
    const int64_t fit = tgl_min64(elements_of_a(in) / plan->kc, in->model->a_block_max_rows);
    return max64(fit, MIN_BLOCK_TILES * in->mr);
}

/* Whether C is computed in strips, which are small products. A small product takes one call for all
 * tiles that read a panel of B. A call for each tile takes about as long as 8 steps of k. On a
 * processor with strips they also replace bands. */
static bool is_in_strips(const plan_input *in, const cpu_plan *plan)
{
    const tgl_shape *s = in->shape;
    const bool is_flat = tgl_min64(in->largest.rows, in->largest.columns) <= FLAT_SIDE &&
                         s->k <= FLAT_STEPS && !s->trans_b;
    const int steps = in->model->strip_steps;
    const bool is_short = (s->k <= steps || (steps > 0 && is_in_bands(in, plan))) &&
                          s->k * in->element <= STRIP_ROW_BYTES;
    return (is_flat || is_short) && plan->sharing != CPU_SHARE_K && in->blocking.kc == 0 &&
           in->blocking.mc == 0;
}

static void choose_strips(const plan_input *in, cpu_plan *plan)
{
    const tgl_shape *s = in->shape;
    const int64_t mr = in->mr, nr = in->nr, rows = in->largest.rows;
    const int64_t fit = tgl_min64(STRIP_B / (in->element * s->k), CPU_SMALL_PANELS * nr);
    plan->in_strips = true;
    plan->pack_a = false;
    plan->fetch_c = (double)s->m * (double)s->n * (double)in->element > (double)in->l2;
    plan->kc = s->k;
    plan->mc = rows <= STRIP_ROWS ? rows : even_block(rows, STRIP_ROWS, mr);
    plan->keep_b = plan->mc < rows;
    plan->nc = even_block(in->largest.columns, max64(fit, STRIP_COLUMNS) / nr * nr, nr);
}

static void choose_blocks(const plan_input *in, cpu_plan *plan)
{
    const int64_t mr = in->mr, nr = in->nr, rows = in->largest.rows;
    plan->kc = even_block(in->shape->k, max_steps(in), STEPS_UNIT);
    plan->in_bands = in->blocking.mc == 0 && is_in_bands(in, plan);

    /* If A has several blocks of rows, all but the last consist of full tiles, because tiles with
     * fewer rows are slower. */
    const int64_t mc = max_rows(in, plan);
    plan->mc = mc >= rows ? rows : even_block(rows, mc / mr * mr, mr);
    plan->keep_b = plan->mc < rows;

    const int64_t b_bytes = plan->in_bands ? in->l2 / BAND_B : MAX_B_BYTES;
    const int64_t nc = tgl_round_up(b_bytes / in->element / plan->kc, nr);
    plan->nc = even_block(in->largest.columns, max64(nc, nr), nr);
}

static void size_workspace(const plan_input *in, cpu_plan *plan)
{
    const size_t element = in->kernels->element;
    const int64_t vector = in->kernels->vector;
    const int64_t columns = plan->in_strips ? tgl_cpu_strip_ld(plan->nc, vector)
                            : plan->keep_b  ? tgl_round_up(plan->nc, vector)
                                            : in->nr;
    if (plan->pack_a) plan->a_bytes = tgl_cpu_aligned((size_t)(plan->mc * plan->kc) * element);
    if (plan->pack_b) plan->b_bytes = tgl_cpu_aligned((size_t)(columns * plan->kc) * element);
    if (plan->sharing == CPU_SHARE_K)
        plan->part_bytes = tgl_cpu_aligned((size_t)(in->shape->m * in->shape->n) * element);
    plan->workspace = (size_t)plan->threads * (plan->a_bytes + plan->b_bytes) +
                      (size_t)plan->parts * plan->part_bytes;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

static void plan_gemm(plan_input *in, cpu_plan *plan)
{
    plan->path = CPU_PATH_GEMM;
    const bool has_copies = in->shape->k > in->model->strip_steps; /* strips never pack A */
    in->largest =
        tgl_cpu_share(in->shape, in->threads, has_copies ? copy_columns(in) : INT64_MAX, plan);
    choose_packing(in, plan);
    if (is_in_strips(in, plan))
        choose_strips(in, plan);
    else
        choose_blocks(in, plan);
    size_workspace(in, plan);
}

/* Whether to prefetch the next product of a batch. It pays if three conditions hold: the products
 * are large enough; they have little unused memory between their rows; and the batch exceeds the
 * caches whose latency hardware prefetchers hide. If B is one panel, it is one stream, which the
 * hardware prefetches; the products must then be larger: MIN_PANEL_KB. */
static bool fetches_products(const plan_input *in)
{
    const tgl_shape *s = in->shape;
    const int64_t bytes = (s->m * s->k + s->k * s->n + s->m * s->n) * in->element;
    const int64_t l3 = in->model->batches == CPU_BEYOND_L3 ? in->l3 / L3_CORES * CORES_OF_BATCH : 0;
    const int64_t panel = (int64_t)in->kernels->small_nv * in->kernels->vector;
    const int64_t min_kb = !s->trans_b && s->n <= panel ? MIN_PANEL_KB : in->model->batch_min_kb;
    return in->model->batches != CPU_NEVER && bytes >= min_kb << 10 &&
           bytes * s->batch > max64(l3, in->l2) &&
           s->lda <= MAX_SPREAD * (s->trans_a ? s->m : s->k) &&
           s->ldb <= MAX_SPREAD * (s->trans_b ? s->k : s->n) && s->ldd <= MAX_SPREAD * s->n;
}

static void plan_small(const plan_input *in, cpu_plan *plan)
{
    const tgl_shape *s = in->shape;
    const double work = (multiply_adds(s->m, s->n, s->k) + CALL) * (double)s->batch;
    plan->path = CPU_PATH_SMALL;
    plan->fetch = fetches_products(in);
    plan->sharing = CPU_SHARE_BATCH;
    if (s->batch > 1)
        plan->threads = (int)tgl_min64(s->batch, tgl_cpu_threads_for(work, in->threads));
}

static void plan_vector(const plan_input *in, cpu_plan *plan)
{
    const tgl_shape *s = in->shape;
    const size_t element = in->kernels->element;
    plan->path = CPU_PATH_VECTOR;
    plan->threads = tgl_cpu_threads_for(multiply_adds(s->m, s->n, s->k), in->threads);
    const bool contiguous = s->n == 1 ? s->trans_b || s->ldb == 1 : !s->trans_a || s->lda == 1;
    const bool conjugates = s->conj_a != s->conj_b; /* the vector is copied to conjugate it
                                                       (cpu_vector.c) */
    if (!contiguous || conjugates) plan->a_bytes = tgl_cpu_aligned((size_t)s->k * element);
    plan->part_bytes = tgl_cpu_aligned((size_t)(s->m * s->n) * element);
    plan->workspace = plan->a_bytes + plan->part_bytes;
}

void tgl_cpu_plan(const tgl_shape *s, const cpu_kernels *kernels, cpu_blocking blocking,
                  const cpu_machine *machine, cpu_plan *plan)
{
    plan_input in = {
        .shape = s,
        .kernels = kernels,
        .model = blocking.row > 0
                     ? &tgl_cpu_models[blocking.row - 1]
                     : tgl_cpu_model_find(tgl_cpu_models, machine->facts.model, kernels),
        .blocking = blocking,
        .threads = machine->threads,
        .l2 = (int64_t)machine->facts.l2,
        .l3 = (int64_t)machine->facts.l3,
        .element = (int64_t)kernels->element,
        .mr = kernels->mr,
        .nr = (int64_t)kernels->nv * kernels->vector,
    };
    if (blocking.kc == 0 && blocking.mc == 0)
        in.blocking = tgl_cpu_measured_blocking(in.model, kernels);
    *plan = (cpu_plan){.kernels = kernels, .path = CPU_PATH_SCALE, .threads = 1, .parts = 1};
    if (s->k <= 0) return;
    if (cpu_is_vector(s->m, s->n, s->k))
        plan_vector(&in, plan);
    else if (cpu_is_small(s->m, s->n, s->k))
        plan_small(&in, plan);
    else
        plan_gemm(&in, plan);
}

/* Whether two plans are equal in all members except the sizes of the workspace and `blocks`. */
static bool is_same_product(const cpu_plan *x, const cpu_plan *y)
{
    return x->kernels == y->kernels && x->path == y->path && x->sharing == y->sharing &&
           x->threads == y->threads && x->grid_m == y->grid_m && x->grid_n == y->grid_n &&
           x->parts == y->parts && x->pack_a == y->pack_a && x->pack_b == y->pack_b &&
           x->keep_b == y->keep_b && x->in_bands == y->in_bands && x->in_strips == y->in_strips &&
           x->fetch_c == y->fetch_c && x->fetch == y->fetch &&
           x->fetch_next_block == y->fetch_next_block && x->mc == y->mc && x->nc == y->nc &&
           x->kc == y->kc;
}

bool tgl_cpu_plan_is_same(const cpu_plan *x, const cpu_plan *y)
{
    if (!is_same_product(x, y)) return false;
    return x->blocks == NULL || is_same_product(&x->blocks->product, &y->blocks->product);
}
