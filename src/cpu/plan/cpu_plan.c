/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses how a product is computed: path, packing, blocking, threads.
 */
#include "cpu/plan/cpu_plan.h"
#include "cpu/kernels/shares.h"

#include <string.h>

/* Multiply-adds that outweigh the cost of one more thread, if threads still wait for work: 1 to 2
 * us. With 4e5, 96 and 128 cubed ran at half the speed on 16 cores of an Intel Xeon (AVX-512), and
 * 66 to 80 cubed at two thirds on two of an AMD EPYC; with 5e4 nothing was faster. */
static const double WORK_PER_THREAD = 1e5;

size_t tgl_cpu_aligned(size_t bytes)
{
    return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

/* The size of a block when `total` is cut into as few blocks of at most `most` as possible, all of
 * nearly equal size: a multiple of `unit`. */
static int64_t even_block(int64_t total, int64_t most, int64_t unit)
{
    int64_t block = total;
    if (total > most)
        block = tgl_min64(most, tgl_round_up(cpu_ceil_div(total, cpu_ceil_div(total, most)), unit));
    return block > 1 ? block : 1;
}

/* The largest rectangle of C. */
typedef struct piece {
    int64_t rows, columns;
} piece;

/* A rectangle consists of whole tiles and vectors. */
static piece largest_piece(const tgl_shape *s, const cpu_plan *plan)
{
    const int64_t mr = plan->kernels->mr, vector = plan->kernels->vector;
    const int64_t tiles = cpu_ceil_div(cpu_ceil_div(s->m, mr), plan->grid_m);
    const int64_t vectors = cpu_ceil_div(cpu_ceil_div(s->n, vector), plan->grid_n);
    return (piece){tgl_min64(s->m, tiles * mr), tgl_min64(s->n, vectors * vector)};
}

static bool is_intel(const cpu_facts *facts)
{
    return strncmp(facts->model, "GenuineIntel", strlen("GenuineIntel")) == 0;
}

/* The elements of a block of A, if A has several. The rest of L2 is for the panels of B and the
 * tiles of C. A fifth of L2 is slower than two sevenths: 15 products of 350 to 2048 cubed by 0.3
 * to 1.7 % (f32) and 2.1 to 2.3 % (f64) on Emerald Rapids (L2 of 2 MB), 12 products on Zen 4 (1 MB)
 * by 0.2 to 0.7 %. B is read once for each block of A, so with less than 160 KB it is read too
 * often: with a third of an L2 of 512 KB (Zen 3) products of 1000 to 2000 cubed are 1 to 2 % (f32)
 * and 2 to 5 % (f64) faster than with a fifth. */
static int64_t a_room(const cpu_facts *facts, const cpu_kernels *kernels)
{
    const int64_t l2 = (int64_t)facts->l2, enough = 160 << 10;
    const int64_t least = tgl_min64(l2 / 3, enough), usual = l2 / 7 * 2;
    return (usual > least ? usual : least) / (int64_t)kernels->element;
}

/* The most rows of a block of A that the planner chooses. Each row of C lies in other pages: with
 * more rows 1334 x 2550 x 60 in f32 with AVX-512 is 7 to 16 % slower, 2000 x 1000 x 64 4 to 11 %,
 * and with 128 to 512 rows both are as fast (Zen 4). */
enum { MOST_ROWS = 512 };

/* Whether A is one block: its rows fit in three fifths of L2. Then a panel of B is not kept for
 * other blocks, and all panels are copied to the same memory, which stays in the caches. In f64 300
 * x 2000 x 1000 TT is 10 to 15 % faster on Emerald Rapids (L2 of 2 MB) and 3 to 6 % on Zen 4 (1
 * MB), in f32 450 x 1500 x 600 is 3 to 8 % and 0 to 2 % faster. A limit of three quarters is no
 * faster or slower. */
static bool is_one_block(int64_t rows, const cpu_facts *facts, const cpu_plan *plan)
{
    const double bytes = (double)rows * (double)plan->kc * (double)plan->kernels->element;
    const double share_of_l2 = 0.6;
    return rows <= MOST_ROWS && bytes <= share_of_l2 * (double)facts->l2;
}

/* Whether B, or what a thread multiplies of it, is prefetched because it exceeds L2. */
static bool is_large_b(double bytes, const cpu_facts *facts)
{
    return bytes > (double)facts->l2 / 8;
}

/* Whether the first panel of the next block of B is prefetched while the last one of a block is
 * multiplied. If a row of B has less than 256 bytes or one panel, B is one stream, which the
 * hardware follows: 4096 x 16 x 4096 and 24 x 24 x 30000 would be 3 to 5 % slower. 64 x 64 x 65536
 * is 3 (f64) to 8 % (f32) faster, 48 x 64 x 30000 with AVX2 9 to 26 % (AMD EPYC, Zen 4). */
static bool fetches_next_block(const tgl_shape *s, int64_t columns, const cpu_kernels *kernels,
                               const cpu_facts *facts)
{
    const int64_t nr = (int64_t)kernels->nv * kernels->vector;
    const int64_t row_bytes = columns * (int64_t)kernels->element, least_bytes = 256;
    return !s->trans_b && columns > nr && row_bytes >= least_bytes &&
           is_large_b((double)row_bytes * (double)s->k, facts);
}

/* How many steps of k a block has if C has few rows and B comes from memory: long rows of B are
 * read fastest a few at a time, and with few rows of C it is cheap to visit C once for each block.
 */
typedef struct few_steps {
    int64_t each_row, least;
} few_steps;

/* An AMD EPYC (Zen 5) was fastest with 128 of 48 to 768 steps for 16 rows and with 384 for 64, in
 * both tiers and types. On an Intel Xeon with AMX products with 16 rows are twice as fast with
 * 48 steps as with 128, with 36 rows 20 to 30 % faster (48 to 96 steps), with 64 rows 25 % (128).
 * Each row of B lies in another page, and the first TLB has 96 entries. */
static few_steps few_steps_of(const cpu_facts *facts)
{
    return is_intel(facts) ? (few_steps){2, 48} : (few_steps){6, 128};
}

/* Steps of k between two visits to a tile of C. They depend on the whole product, not on what one
 * thread computes of it: threads that share rows and columns of C then have the same bits, however
 * many they are. */
static int64_t choose_kc(const tgl_shape *s, int64_t usual, const cpu_plan *plan,
                         const cpu_facts *facts)
{
    const piece of = {s->m, s->n};
    const double b_bytes = (double)s->n * (double)s->k * plan->kernels->element;
    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    if (of.columns > 0 && of.columns <= 2 * nr) {
        /* The block of B fits in L2, also beside the next one, and rows of A are read without
         * interruption. */
        const int64_t part = fetches_next_block(s, of.columns, plan->kernels, facts) ? 8 : 4;
        const int64_t room =
            (int64_t)facts->l2 / part / (int64_t)plan->kernels->element / of.columns;
        return room > usual ? room : usual;
    }
    const few_steps steps = few_steps_of(facts);
    const int64_t room = a_room(facts, plan->kernels) / of.rows; /* all rows of A fit */
    int64_t few = tgl_min64(steps.each_row * of.rows, room > of.rows ? room : of.rows);
    if (few < steps.least) few = steps.least;
    return is_large_b(b_bytes, facts) && of.rows < usual && few < usual ? few : usual;
}

/* A model and vectors with which bands were measured to be faster, and the cache that C exceeds. */
typedef struct band_model {
    const char *model;
    int64_t vector_bytes;
    bool beyond_l3; /* else L2 */
} band_model;

/* Zen 3: 1334 x 1275 x 94 by 26 to 33 %, 1334 x 2550 x 60 by 38 % (f32), 1000 x 1003 x 94 by 19 to
 * 36 % (f64) while the other hardware thread was busy; with aligned rows of C and an idle core they
 * may be 6 % slower. Zen 4: the first two by 5 to 17 and 38 % with AVX2; with AVX-512 they are 1 to
 * 8 % slower. Emerald Rapids: 402 x 1842 x 48 TT by 8 (f32) and 14 % (f64), 1000 x 1000 x 64 by 6
 * and 3 %, 2000 x 3000 x 64 by 6 and 31 %; bands of 8, 24 and 32 rows are 0 to 4 % slower than
 * those of 16, and products with 150 to 300 steps of k are as fast without bands. Sapphire Rapids
 * (6.143) has the same core and was not measured. */
static const band_model band_models[] = {
    {"AuthenticAMD 25.1", 32, true},
    {"AuthenticAMD 25.17", 32, true},
    {"GenuineIntel 6.207", 64, false},
    {"GenuineIntel 6.143", 64, false},
};

/* Whether C is computed in bands of a few rows. With the usual blocks a panel of C is finished
 * before the next begins: 64 bytes in each of many rows. If k is short and C comes from a far cache
 * or from memory, that is slower than to write long parts of a few rows. One core is assumed to
 * have an eighth of L3, as on a chiplet of 8 cores. */
static bool is_in_bands(const tgl_shape *s, const cpu_facts *facts, const cpu_plan *plan)
{
    const int64_t short_k = 128, element = (int64_t)plan->kernels->element;
    const int sharers = plan->sharing == CPU_SHARE_C ? plan->threads : 1;
    const double bytes = (double)s->m * (double)s->n * (double)element / sharers;
    if (s->k >= short_k || !plan->pack_b) return false;
    for (size_t i = 0; i < sizeof band_models / sizeof band_models[0]; i++) {
        const band_model *row = &band_models[i];
        const size_t cache = row->beyond_l3 ? facts->l3 / 8 : facts->l2;
        if (plan->kernels->vector * element == row->vector_bytes &&
            strcmp(facts->model, row->model) == 0)
            return bytes > (double)cache;
    }
    return false;
}

static void choose_blocks(piece of, const tgl_shape *s, cpu_blocking blocking,
                          const cpu_facts *facts, cpu_plan *plan)
{
    const cpu_kernels *kernels = plan->kernels;
    const int64_t mr = kernels->mr, nr = (int64_t)kernels->nv * kernels->vector;
    const int64_t usual = blocking.kc > 0 ? blocking.kc : kernels->kc;
    plan->kc = even_block(s->k, choose_kc(s, usual, plan, facts), 8);

    const int64_t element = (int64_t)kernels->element;
    plan->in_bands = blocking.mc == 0 && is_in_bands(s, facts, plan);
    const int64_t least = 4 * mr, room = a_room(facts, kernels) / plan->kc;
    int64_t mc = room > least ? tgl_min64(room, MOST_ROWS) : least;
    if (is_one_block(of.rows, facts, plan)) mc = of.rows;
    if (plan->in_bands) mc = 2 * mr;
    if (blocking.mc > 0) mc = blocking.mc > mr ? blocking.mc : mr;
    /* If there are several blocks, all but the last one consist of whole tiles: shorter tiles are
     * slower. */
    plan->mc = mc >= of.rows ? of.rows : even_block(of.rows, mc / mr * mr, mr);
    plan->keep_b = plan->mc < of.rows;

    const int64_t b_room = plan->in_bands ? (int64_t)facts->l2 / 2 : 8 << 20;
    const int64_t nc = b_room / element / plan->kc;
    plan->nc = even_block(of.columns, nc > nr ? tgl_round_up(nc, nr) : nr, nr);
}

/* Arranges the threads as a grid over C. Nearly square rectangles need the fewest loads. With a
 * transposed A 16 threads along n ran at half of the speed of 4 x 4 (1024 cubed in f32, Xeon). If
 * fewer threads finish as soon, only those are used: 5 take as long for 16 rows of tiles as 4. */
static void choose_grid(const tgl_shape *s, cpu_plan *plan)
{
    const int64_t tiles = cpu_ceil_div(s->m, plan->kernels->mr);
    const int64_t vectors = cpu_ceil_div(s->n, plan->kernels->vector);
    double best = 0;
    plan->grid_m = plan->grid_n = 1;
    if (plan->sharing != CPU_SHARE_C) return;
    for (int m = 1; m <= plan->threads; m++) {
        const int n = plan->threads / m;
        /* What the slowest thread computes, and a penalty for each row and column that it loads. */
        const int64_t rows = cpu_ceil_div(tiles, m), columns = cpu_ceil_div(vectors, n);
        const double narrow = columns == 1 ? 1.1 : 1; /* as many loads as multiply-adds */
        /* Each thread packs its rows of a transposed A, which takes about as long as to multiply
         * them by a vector. */
        const double packing = s->trans_a ? (double)rows : 0;
        /* Each row of the grid loads B. With a quarter of a multiply-add for each vector of a
         * row, 12 rows are not cut and 4096 x 16 is cut along m, as measured. */
        const double loading = 0.25 * (double)columns;
        const double cost = (double)rows * (double)columns * narrow + packing + loading +
                            0.001 * (double)(rows + columns);
        if (best == 0 || cost < best) {
            best = cost;
            plan->grid_m = (int)cpu_ceil_div(tiles, rows);
            plan->grid_n = (int)cpu_ceil_div(vectors, columns);
        }
    }
    plan->threads = plan->grid_m * plan->grid_n;
}

/* Cuts the rectangles of the grid in halves, so that each thread computes several of them and those
 * that are faster compute more: another program may delay a thread, or its processor may be slower.
 * A rectangle is cut along n if it has at least as many columns as rows, or at least 640 columns
 * and A is not transposed: each rectangle packs its own panels of B, and its rows of a transposed
 * A. Else it is cut along m. The half has 48 rows or columns at least, because narrower ones were
 * slower, and 2 * 10^6 multiply-adds, so that B is packed as before (choose_packing()).
 *
 * On 16 processors of an Intel Xeon, which other virtual machines used too, products of 500 to 3000
 * cubed ran at 1.1 to 1.5 times the speed of one rectangle a thread. On two idle processors (Zen 4)
 * they are 1 to 2 % slower. */
static void cut_grid(const tgl_shape *s, cpu_plan *plan)
{
    enum { SHORTEST = 48, WIDE = 320, SHORT_K = 128, FEW = 4, MANY = 8 };
    const double least_of_many = 6e7, least = s->trans_a ? least_of_many : 2e6; /* multiply-adds */
    if (plan->sharing != CPU_SHARE_C || plan->threads == 1) return;
    if (s->trans_b && s->k < SHORT_K) return; /* B takes too long to pack */
    for (;;) {
        const double rows = (double)s->m / plan->grid_m, columns = (double)s->n / plan->grid_n;
        const int64_t parts = (int64_t)plan->grid_m * plan->grid_n / plan->threads;
        const double half = rows * columns * (double)s->k / 2;
        if (parts >= MANY || half < (parts >= FEW ? least_of_many : least)) return;
        const bool along_n = columns >= rows || (columns >= 2 * WIDE && !s->trans_a);
        if (rows < SHORTEST || (along_n ? columns : rows) < 2 * SHORTEST) return;
        *(along_n ? &plan->grid_n : &plan->grid_m) *= 2;
    }
}

/* Whether it pays to prefetch the next product of a batch. The products must be large enough,
 * without much memory between their rows, and the batch must lie where the hardware does not fetch
 * from in time: beyond the L2 cache; on Zen 4 beyond L3, of which other cores use a part. In L3 of
 * Zen 4 100 products of 64 cubed are 4 to 8 % faster without prefetches, in memory 64 cubed in f64
 * takes 1.3 to 1.6 of the time without. If B has one panel, the hardware reads it as one stream,
 * and prefetches pay from 32 KB a product only: 1000 of 32 cubed in f64 with AVX-512 are 7 (Zen 4)
 * to 17 % (Xeon with AMX) slower with them. */
static bool fetches_products(const tgl_shape *s, const cpu_kernels *kernels, const cpu_facts *facts)
{
    const bool zen4 = strcmp(facts->model, "AuthenticAMD 25.17") == 0;
    const int64_t bytes = (s->m * s->k + s->k * s->n + s->m * s->n) * (int64_t)kernels->element;
    const int64_t l2 = (int64_t)facts->l2, l3_share = (int64_t)facts->l3 / 8 * 3;
    const int64_t cached = zen4 && l3_share > l2 ? l3_share : l2;
    const bool one_panel = !s->trans_b && s->n <= (int64_t)kernels->small_nv * kernels->vector;
    const int64_t least = one_panel ? 32 << 10 : zen4 ? 16 << 10 : 8 << 10;
    return bytes >= least && bytes * s->batch > cached &&
           s->lda <= 2 * (s->trans_a ? s->m : s->k) && s->ldb <= 2 * (s->trans_b ? s->k : s->n) &&
           s->ldd <= 2 * s->n;
}

/* Each product of a batch costs as much as some 1,000 multiply-adds beside its own. */
static void plan_small(const tgl_shape *s, const cpu_machine *machine, cpu_plan *plan)
{
    const int most = machine->threads;
    const double products = (double)s->m * (double)s->n * (double)s->k + 1000;
    const double worth = products * (double)s->batch / WORK_PER_THREAD;
    plan->path = CPU_PATH_SMALL;
    plan->fetch = fetches_products(s, plan->kernels, &machine->facts);
    plan->sharing = CPU_SHARE_BATCH;
    if (worth >= 2 && s->batch >= 2)
        plan->threads = (int)tgl_min64(s->batch, worth < most ? (int64_t)worth : most);
}

static void choose_threads(const tgl_shape *s, int most, cpu_plan *plan)
{
    const double products = (double)s->m * (double)s->n * (double)s->k;
    const double weight = plan->kernels->element == sizeof(double) ? 2 : 1;
    const double worth = weight * products * (double)s->batch / WORK_PER_THREAD;
    plan->threads = worth < 2 ? 1 : worth < most ? (int)worth : most;
    plan->sharing = CPU_SHARE_C;
    plan->parts = 1;
    if (plan->threads == 1) return;

    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    const int64_t tiles = cpu_ceil_div(s->m, plan->kernels->mr) * cpu_ceil_div(s->n, nr);
    if (s->batch >= plan->threads && products < 256 * WORK_PER_THREAD)
        plan->sharing = CPU_SHARE_BATCH;
    else if (s->k >= 16 * (s->m > s->n ? s->m : s->n) && tiles < 64 * plan->threads) {
        plan->sharing = CPU_SHARE_K;
        plan->parts = plan->threads;
    }
}

/* Whether the rows of A lie in few sets of the caches, because they are about a multiple of 4 KB
 * apart (those of a tile drift by a cache line at most), and A comes from beyond L2. On an Intel
 * Xeon with AMX packing it makes f64 at 2048 cubed 17 to 20 % faster, at 1023 and 1024 cubed 5 to
 * 11 %, and f32 at 2048 cubed 2 to 3 %; where A is in L2, or its rows lie elsewhere, 1 to 4 %
 * slower. */
static bool rows_share_few_sets(piece of, const tgl_shape *s, const cpu_facts *facts,
                                const cpu_kernels *kernels)
{
    const int64_t page = 4096, line = 64, element = (int64_t)kernels->element;
    const int64_t step = s->lda * element, beyond = step % page, drift = line / kernels->mr;
    const bool few_sets = step >= page - drift && (beyond <= drift || beyond >= page - drift);
    return is_intel(facts) && few_sets && of.rows * s->k * element > (int64_t)facts->l2;
}

/* Whether tiles read a copy of A's rows so much faster that it pays. On Zen 4 with AVX2 they are 1
 * to 2 % faster, and 5 to 7 % while the core's other hardware thread is busy. The copy takes 3 % of
 * the time at 200 columns; products of 1000 to 2000 cubed are 0.5 to 3 % faster in f32, 0.5 to 1 %
 * in f64. With AVX-512 they are 1 % slower. */
static bool is_faster_copied(piece of, const cpu_facts *facts, const cpu_kernels *kernels)
{
    const int64_t many_columns = 900;
    return of.columns >= many_columns && kernels->vector * (int64_t)kernels->element == 32 &&
           strcmp(facts->model, "AuthenticAMD 25.17") == 0;
}

/* An operand is not packed if it is used too few times, or if it is contiguous along the loop that
 * reads it and a copy is not faster. */
static void choose_packing(piece of, const tgl_shape *s, const cpu_facts *facts, cpu_plan *plan)
{
    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    const double products = (double)of.rows * (double)of.columns * (double)s->k;
    const double b_bytes = (double)s->k * (double)of.columns * (double)plan->kernels->element;
    const int64_t few_rows = (of.columns <= 2 * nr ? 8 : 4) * plan->kernels->mr;
    /* Elements of B that are a multiple of a page apart share a set of the L1 cache, which holds 8
     * to 12 lines. The second tile of a panel would not find the lines that the first has read. */
    const bool alias = s->ldb * (int64_t)plan->kernels->element % 4096 == 0;
    plan->pack_b =
        s->trans_b || (products > 2e6 && of.rows > (alias ? plan->kernels->mr : few_rows));
    const bool is_used_often = of.columns > 2 * nr && products > 2e7;
    plan->pack_a =
        is_used_often && (s->trans_a || rows_share_few_sets(of, s, facts, plan->kernels) ||
                          is_faster_copied(of, facts, plan->kernels));
    plan->fetch = is_large_b(b_bytes, facts);
    plan->fetch_next_block = fetches_next_block(s, of.columns, plan->kernels, facts);
}

static void size_workspace(const tgl_shape *s, cpu_plan *plan)
{
    const size_t element = plan->kernels->element;
    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    const int64_t columns = plan->keep_b ? tgl_round_up(plan->nc, plan->kernels->vector) : nr;
    if (plan->pack_a) plan->a_bytes = tgl_cpu_aligned((size_t)(plan->mc * plan->kc) * element);
    if (plan->pack_b) plan->b_bytes = tgl_cpu_aligned((size_t)(columns * plan->kc) * element);
    if (plan->sharing == CPU_SHARE_K)
        plan->part_bytes = tgl_cpu_aligned((size_t)(s->m * s->n) * element);
    plan->workspace = (size_t)plan->threads * (plan->a_bytes + plan->b_bytes) +
                      (size_t)plan->parts * plan->part_bytes;
}

static void plan_vector(const tgl_shape *s, int most, cpu_plan *plan)
{
    const double worth = (double)s->m * (double)s->n * (double)s->k / WORK_PER_THREAD;
    plan->path = CPU_PATH_VECTOR;
    plan->threads = worth < 2 ? 1 : worth < most ? (int)worth : most;
    const size_t element = plan->kernels->element;
    const bool side_by_side = s->n == 1 ? s->trans_b || s->ldb == 1 : !s->trans_a || s->lda == 1;
    if (!side_by_side) plan->a_bytes = tgl_cpu_aligned((size_t)s->k * element);
    plan->part_bytes = tgl_cpu_aligned((size_t)(s->m * s->n) * element);
    plan->workspace = plan->a_bytes + plan->part_bytes;
}

/* Whether a product takes the vector path, whose sums have another order than those of the tiles.
 * Small products with one row or one column take the tiles, so that a row is bitwise the same
 * whether it is computed alone or as a part of a larger product. The testers of LAPACK rely on
 * that. At these sizes the tiles take 0.55 to 1.1 of the time of the vector path, but 1.2 (30 ns
 * more) if a row is multiplied by a transposed B (AMD EPYC with AVX-512). */
static bool is_vector(const tgl_shape *s)
{
    const int64_t small = 64, short_k = 16;
    if (s->m > 1 && s->n > 1) return false;
    if (s->m == 0 || s->n == 0) return true; /* nothing to do */
    return s->k > short_k || s->m > small || s->n > small || s->m * s->n * s->k > small;
}

void tgl_cpu_plan(const tgl_shape *s, const cpu_kernels *kernels, cpu_blocking blocking,
                  const cpu_machine *machine, cpu_plan *plan)
{
    *plan = (cpu_plan){.kernels = kernels, .path = CPU_PATH_GEMM, .threads = 1, .parts = 1};
    if (s->k <= 0) {
        plan->path = CPU_PATH_SCALE;
    } else if (is_vector(s)) {
        plan_vector(s, machine->threads, plan);
    } else if (cpu_is_small(s->m, s->n, s->k)) {
        plan_small(s, machine, plan);
    } else {
        choose_threads(s, machine->threads, plan);
        choose_grid(s, plan);
        cut_grid(s, plan);
        const piece of = largest_piece(s, plan);
        choose_packing(of, s, &machine->facts, plan);
        choose_blocks(of, s, blocking, &machine->facts, plan);
        size_workspace(s, plan);
    }
}
