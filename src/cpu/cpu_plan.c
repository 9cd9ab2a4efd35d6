/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides how a product is computed: path, packing, blocking, threads. Then says why.
 */
#include "cpu/cpu.h"

/* Multiply-adds that pay for waking a second thread, and for each further one. */
static const double WORK_PER_THREAD = 4e5;

static size_t aligned(size_t bytes)
{
    return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

/* The number of blocks of at most `most` that `total` is cut into decides their size, so that they
 * are nearly equal. */
static int64_t even_block(int64_t total, int64_t most, int64_t unit)
{
    int64_t block = total;
    if (total > most)
        block = tgl_min64(most, tgl_round_up(cpu_ceil_div(total, cpu_ceil_div(total, most)), unit));
    return block > 1 ? block : 1;
}

/* The piece of C that the busiest thread computes. */
typedef struct piece {
    int64_t rows, columns;
} piece;

/* A thread's rectangle is cut at whole tiles and vectors. */
static piece largest_piece(const tgl_shape *s, const cpu_plan *plan)
{
    const int64_t mr = plan->kernels->mr, vector = plan->kernels->vector;
    const int64_t tiles = cpu_ceil_div(cpu_ceil_div(s->m, mr), plan->grid_m);
    const int64_t vectors = cpu_ceil_div(cpu_ceil_div(s->n, vector), plan->grid_n);
    return (piece){tgl_min64(s->m, tiles * mr), tgl_min64(s->n, vectors * vector)};
}

/* Steps of k between two visits to a tile of C. */
static int64_t choose_kc(piece of, const cpu_plan *plan, const cpu_facts *facts)
{
    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    const int64_t usual = plan->kernels->kc, least = 48;
    if (of.columns > 0 && of.columns <= 2 * nr) {
        /* All of B's block fits in L2, and rows of A are read to their end. */
        const int64_t room = (int64_t)(facts->l2 / 4 / plan->kernels->element) / of.columns;
        return room > usual ? room : usual;
    }
    /* A B that comes from memory is best read in few long rows at a time; the fewer the rows of
     * C, the less it costs to visit them more often. */
    if (plan->fetch && of.rows < usual) return of.rows > least ? of.rows : least;
    return usual;
}

static void choose_blocks(piece of, const tgl_shape *s, const cpu_facts *facts, cpu_plan *plan)
{
    const cpu_kernels *kernels = plan->kernels;
    const int64_t nr = (int64_t)kernels->nv * kernels->vector;
    plan->kc = even_block(s->k, choose_kc(of, plan, facts), 8);

    /* A block of A stays in a fifth of L2, beside panels of B and tiles of C passing through. */
    const int64_t element = (int64_t)kernels->element;
    const int64_t mc = (int64_t)facts->l2 / 5 / element / plan->kc;
    plan->mc = even_block(of.rows, mc > 4 * kernels->mr ? mc : 4 * kernels->mr, kernels->mr);
    plan->keep_b = plan->mc < of.rows;

    const int64_t nc = (int64_t)(8 << 20) / element / plan->kc;
    plan->nc = even_block(of.columns, nc > nr ? tgl_round_up(nc, nr) : nr, nr);
}

/* Threads form a grid over C whose pieces are as square as they come. */
static void choose_grid(const tgl_shape *s, cpu_plan *plan)
{
    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    const int64_t tiles_m = cpu_ceil_div(s->m, plan->kernels->mr);
    const int64_t tiles_n = cpu_ceil_div(s->n, nr);
    double best = 0;
    plan->grid_m = plan->grid_n = 1;
    if (plan->sharing != CPU_SHARE_C) return;
    for (int m = 1; m <= plan->threads; m++) {
        if (plan->threads % m != 0) continue;
        const int n = plan->threads / m;
        /* The slowest thread's tiles, and a little for each row and column that it must load. */
        const int64_t rows = cpu_ceil_div(tiles_m, m), columns = cpu_ceil_div(tiles_n, n);
        const double cost = (double)rows * (double)columns * (1 + 0.02 * (m - 1)) +
                            0.001 * (double)(rows + columns);
        if (best == 0 || cost < best) {
            best = cost;
            plan->grid_m = m;
            plan->grid_n = n;
        }
    }
}

static void choose_threads(const tgl_shape *s, int most, cpu_plan *plan)
{
    const double products = (double)s->m * (double)s->n * (double)s->k;
    const double worth = products * (double)s->batch / WORK_PER_THREAD;
    plan->threads = worth < 2 ? 1 : worth < most ? (int)worth : most;
    plan->sharing = CPU_SHARE_C;
    plan->parts = 1;
    if (plan->threads == 1) return;

    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    const int64_t tiles = cpu_ceil_div(s->m, plan->kernels->mr) * cpu_ceil_div(s->n, nr);
    if (s->batch >= plan->threads && products < 64 * WORK_PER_THREAD)
        plan->sharing = CPU_SHARE_BATCH;
    else if (s->k >= 16 * (s->m > s->n ? s->m : s->n) && tiles < 64 * plan->threads) {
        plan->sharing = CPU_SHARE_K;
        plan->parts = plan->threads;
    }
}

/* What is read seldom, or lies well already, is not packed. */
static void choose_packing(piece of, const tgl_shape *s, const cpu_facts *facts, cpu_plan *plan)
{
    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    const double products = (double)of.rows * (double)of.columns * (double)s->k;
    const double b_bytes = (double)s->k * (double)of.columns * (double)plan->kernels->element;
    const int64_t few_rows = (of.columns <= 2 * nr ? 8 : 4) * plan->kernels->mr;
    plan->pack_b = s->trans_b || (products > 2e6 && of.rows > few_rows);
    plan->pack_a = s->trans_a && !(of.columns <= 2 * nr || products <= 2e7);
    plan->fetch = b_bytes > (double)facts->l2 / 8;
}

static void size_workspace(const tgl_shape *s, cpu_plan *plan)
{
    const size_t element = plan->kernels->element;
    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    const int64_t columns = plan->keep_b ? tgl_round_up(plan->nc, plan->kernels->vector) : nr;
    if (plan->pack_a) plan->a_bytes = aligned((size_t)(plan->mc * plan->kc) * element);
    if (plan->pack_b) plan->b_bytes = aligned((size_t)(columns * plan->kc) * element);
    if (plan->sharing == CPU_SHARE_K) plan->part_bytes = aligned((size_t)(s->m * s->n) * element);
    plan->workspace = (size_t)plan->threads * (plan->a_bytes + plan->b_bytes) +
                      (size_t)plan->parts * plan->part_bytes;
}

static void plan_vector(const tgl_shape *s, int most, cpu_plan *plan)
{
    const double worth = (double)s->m * (double)s->n * (double)s->k / WORK_PER_THREAD * 4;
    plan->path = CPU_PATH_VECTOR;
    plan->threads = worth < 2 ? 1 : worth < most ? (int)worth : most;
    const size_t element = plan->kernels->element;
    const bool side_by_side = s->n == 1 ? s->trans_b || s->ldb == 1 : !s->trans_a || s->lda == 1;
    if (!side_by_side) plan->a_bytes = aligned((size_t)s->k * element);
    plan->part_bytes = aligned((size_t)(s->m * s->n) * element);
    plan->workspace = plan->a_bytes + plan->part_bytes;
}

void tgl_cpu_plan(const tgl_shape *s, const cpu_kernels *kernels, const cpu_device *cpu,
                  cpu_plan *plan)
{
    *plan = (cpu_plan){.kernels = kernels, .path = CPU_PATH_GEMM, .threads = 1, .parts = 1};
    if (s->k <= 0) {
        plan->path = CPU_PATH_SCALE;
    } else if (s->m <= 1 || s->n <= 1) {
        plan_vector(s, cpu->threads, plan);
    } else {
        choose_threads(s, cpu->threads, plan);
        choose_grid(s, plan);
        const piece of = largest_piece(s, plan);
        choose_packing(of, s, &cpu->facts, plan);
        choose_blocks(of, s, &cpu->facts, plan);
        size_workspace(s, plan);
    }
}

/* ---- Explaining ------------------------------------------------------------------------------ */

static void explain_problem(tgl_text *out, const tgl_shape *s)
{
    const bool f32 = s->type_d == TGL_F32;
    tgl_text_add(out, "problem    %s, m %lld, n %lld, k %lld", f32 ? "f32" : "f64", (long long)s->m,
                 (long long)s->n, (long long)s->k);
    if (s->batch > 1) tgl_text_add(out, ", batch %lld", (long long)s->batch);
    if (s->pointers) tgl_text_add(out, " by pointers");
    if (!s->in_place) tgl_text_add(out, ", D another matrix");
    tgl_text_add(out, ", row-major%s%s%s\n", s->trans_a ? ", A transposed" : "",
                 s->trans_b ? ", B transposed" : "",
                 s->swapped ? " (column-major, so A and B, m and n are exchanged)" : "");
    const double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    const double bytes =
        (f32 ? 4.0 : 8.0) * ((double)s->m * (double)s->k + (double)s->k * (double)s->n +
                             2 * (double)s->m * (double)s->n);
    tgl_text_add(out,
                 "intensity  %.1f FLOP/byte (%.3g MFLOP, %.3g MB if each element moves once)\n",
                 flops / bytes, flops * 1e-6, bytes * 1e-6);
    char epilogue[120];
    tgl_epilogue_describe(s, epilogue, sizeof epilogue);
    if (epilogue[0] != '\0') tgl_text_add(out, "epilogue   %s\n", epilogue);
}

static void explain_blocks(tgl_text *out, const tgl_shape *s, const cpu_plan *p,
                           const cpu_facts *facts)
{
    const double element = (double)p->kernels->element;
    const int64_t nr = (int64_t)p->kernels->nv * p->kernels->vector;
    tgl_text_add(out, "tile       %d x %lld in registers (%d rows, %d vectors of %d)\n",
                 p->kernels->mr, (long long)nr, p->kernels->mr, p->kernels->nv, p->kernels->vector);
    tgl_text_add(out, "blocks     MC %lld, KC %lld, NC %lld\n", (long long)p->mc, (long long)p->kc,
                 (long long)p->nc);
    tgl_text_add(out, "           KC x %lld of B: %.1f KB, of the L1's %.0f KB\n", (long long)nr,
                 (double)(p->kc * nr) * element / 1024, (double)facts->l1d / 1024);
    tgl_text_add(out, "           MC x KC of A: %.1f KB, of the L2's %.0f KB\n",
                 (double)(p->mc * p->kc) * element / 1024, (double)facts->l2 / 1024);
    tgl_text_add(out, "packing    A %s\n",
                 p->pack_a    ? "transposed, a block at a time"
                 : s->trans_a ? "in place: it is read too seldom to pay"
                              : "in place: its rows are read as they lie");
    tgl_text_add(out, "           B %s\n",
                 !p->pack_b   ? "in place: it is read too seldom to pay"
                 : s->trans_b ? "transposed, panel by panel"
                              : "by the first tile that meets a panel");
}

static void explain_threads(tgl_text *out, const cpu_plan *p, int most)
{
    tgl_text_add(out, "threads    %d of %d", p->threads, most);
    if (p->threads == 1)
        tgl_text_add(out, most > 1 ? ": too little work to share\n" : "\n");
    else if (p->path == CPU_PATH_VECTOR)
        tgl_text_add(out, ", each a part of the result\n");
    else if (p->sharing == CPU_SHARE_BATCH)
        tgl_text_add(out, ", each with products of its own\n");
    else if (p->sharing == CPU_SHARE_K)
        tgl_text_add(out, ", each a part of the sum over k, added in a fixed order\n");
    else
        tgl_text_add(out, ", %d along m times %d along n\n", p->grid_m, p->grid_n);
}

void tgl_cpu_explain(const tgl_plan *plan, tgl_text *out)
{
    const cpu_plan *p = plan->state;
    const cpu_device *cpu = plan->dev->state;
    explain_problem(out, &plan->shape);
    tgl_text_add(out, "kernel     %s\n", plan->kernel);
    if (p->path == CPU_PATH_SCALE)
        tgl_text_add(out, "path       k is 0: %c := beta*C\n", plan->shape.in_place ? 'C' : 'D');
    else if (p->path == CPU_PATH_VECTOR)
        tgl_text_add(
            out, "path       matrix times vector: every element of the matrix is used once, where "
                 "it lies\n");
    else
        explain_blocks(out, &plan->shape, p, &cpu->facts);
    explain_threads(out, p, cpu->threads);
    tgl_text_add(out, "workspace  %.1f KB\n", (double)p->workspace / 1024);
}
