/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops around the microkernel.
 *
 *     for each block of nc columns of C and B
 *         for each block of kc of k:        pack B's block, kc x nc, together
 *             for each block of mc rows:    pack A's block, mc x kc, each thread its own
 *                 for each panel of B, up to nv vectors wide    (it stays in L1)
 *                     for each panel of A, up to mr rows        (it comes from L2)
 *                         one register tile
 *
 * Rows and columns are cut into nearly equal tiles, not into full ones and a rest. Whatever the
 * number of threads, each element of C is summed by one of them in the order of k.
 */
#include "cpu.h"

/* One product as the loops see it. */
typedef struct product {
    const tgl_gemm_shape *shape;
    const cpu_plan *plan;
    int64_t k; /* of this product: a part of the shape's under CPU_SHARE_K */
    double alpha, beta;
    const char *A, *B;
    char *C;
    int64_t ldc;
    char *packed_b; /* shared by the team */
    char *packed_a; /* the team's, plan->a_bytes a thread */
} product;

/* A half-open range. */
typedef struct range {
    int64_t begin, end;
} range;

static range share(range all, int64_t unit, int64_t parts, int64_t index)
{
    const int64_t total = all.end - all.begin, units = cpu_ceil_div(total, unit);
    const int64_t begin = cpu_share(units, parts, index) * unit;
    const int64_t end = cpu_share(units, parts, index + 1) * unit;
    return (range){all.begin + cpu_least(begin, total), all.begin + cpu_least(end, total)};
}

static const char *a_at(const product *x, int64_t i, int64_t p)
{
    const tgl_gemm_shape *s = x->shape;
    return x->A +
           (s->trans_a ? p * s->lda + i : i * s->lda + p) * (int64_t)x->plan->kernels->element;
}

static const char *b_at(const product *x, int64_t p, int64_t j)
{
    const tgl_gemm_shape *s = x->shape;
    return x->B +
           (s->trans_b ? j * s->ldb + p : p * s->ldb + j) * (int64_t)x->plan->kernels->element;
}

/* ---- Panels ---------------------------------------------------------------------------------- */

/* The columns of a block, cut into panels of whole vectors. */
typedef struct columns {
    range all;
    int64_t vectors, panels;
    int vector;
} columns;

static columns cut_columns(const cpu_kernels *kernels, range all)
{
    const int64_t vectors = cpu_ceil_div(all.end - all.begin, kernels->vector);
    return (columns){all, vectors, cpu_ceil_div(vectors, kernels->nv), kernels->vector};
}

/* Where panel q begins, counted from the block's first column; the last may end past the block. */
static int64_t panel_column(const columns *c, int64_t q)
{
    return cpu_share(c->vectors, c->panels, q) * c->vector;
}

static void pack_b(const product *x, const columns *c, range k, int64_t first, int64_t last)
{
    const cpu_kernels *kernels = x->plan->kernels;
    cpu_pack_fn *pack = x->shape->trans_b ? kernels->interleave : kernels->copy;
    for (int64_t q = first; q < last; q++) {
        const int64_t column = panel_column(c, q), width = panel_column(c, q + 1) - column;
        const int64_t count = cpu_least(width, c->all.end - c->all.begin - column);
        pack(x->packed_b + column * (k.end - k.begin) * (int64_t)kernels->element, width,
             b_at(x, k.begin, c->all.begin + column), x->shape->ldb, count, k.end - k.begin);
    }
}

static void pack_a(const product *x, char *to, range rows, range k)
{
    const cpu_kernels *kernels = x->plan->kernels;
    cpu_pack_fn *pack = x->shape->trans_a ? kernels->copy : kernels->interleave;
    const int64_t total = rows.end - rows.begin, panels = cpu_ceil_div(total, kernels->mr);
    for (int64_t q = 0; q < panels; q++) {
        const int64_t row = cpu_share(total, panels, q);
        const int64_t count = cpu_share(total, panels, q + 1) - row;
        pack(to + row * (k.end - k.begin) * (int64_t)kernels->element, count,
             a_at(x, rows.begin + row, k.begin), x->shape->lda, count, k.end - k.begin);
    }
}

/* ---- The two inner loops --------------------------------------------------------------------- */

/* What one panel of B meets: a block of rows. */
typedef struct row_block {
    range rows, k;
    const char *packed; /* NULL: A is read in place */
    double beta;
} row_block;

static void multiply_panel(const product *x, const row_block *block, const char *b, int64_t ldb,
                           int64_t column, int64_t count)
{
    const cpu_kernels *kernels = x->plan->kernels;
    const int64_t element = (int64_t)kernels->element, k = block->k.end - block->k.begin;
    const int64_t vectors = cpu_ceil_div(count, kernels->vector);
    const int tail = (int)(count - (vectors - 1) * kernels->vector);
    const bool in_rows = block->packed == NULL && !x->shape->trans_a;
    cpu_tile_fn *const *tiles =
        kernels->tile[in_rows ? CPU_A_ROWS : CPU_A_COLS][tail < kernels->vector][vectors - 1];

    const int64_t total = block->rows.end - block->rows.begin;
    const int64_t panels = cpu_ceil_div(total, kernels->mr);
    char *c = x->C + (block->rows.begin * x->ldc + column) * element;
    int64_t row = 0;
    for (int64_t q = 0; q < panels; q++) {
        const int64_t next = cpu_share(total, panels, q + 1), count_rows = next - row;
        const char *a = block->packed != NULL ? block->packed + row * k * element
                                              : a_at(x, block->rows.begin + row, block->k.begin);
        const int64_t a_stride = block->packed != NULL ? count_rows : x->shape->lda;
        tiles[count_rows - 1](k, a, a_stride, b, ldb, c + row * x->ldc * element, x->ldc, tail,
                              x->alpha, block->beta);
        row = next;
    }
}

static void multiply_block(const product *x, const row_block *block, const columns *c,
                           int64_t first, int64_t last)
{
    const int64_t element = (int64_t)x->plan->kernels->element;
    for (int64_t q = first; q < last; q++) {
        const int64_t column = panel_column(c, q), width = panel_column(c, q + 1) - column;
        const int64_t count = cpu_least(width, c->all.end - c->all.begin - column);
        const bool packed = x->plan->pack_b;
        const char *b = packed ? x->packed_b + column * (block->k.end - block->k.begin) * element
                               : b_at(x, block->k.begin, c->all.begin + column);
        multiply_panel(x, block, b, packed ? width : x->shape->ldb, c->all.begin + column, count);
    }
}

/* ---- The outer loops ------------------------------------------------------------------------- */

/* One thread's share of a block of B: its rows, block by block, times its panels. */
static void multiply_rows(const product *x, const columns *c, range k, int thread, int team)
{
    const cpu_plan *plan = x->plan;
    const bool planned = team == plan->threads && plan->sharing == CPU_SHARE_C;
    const int grid_m = planned ? plan->grid_m : team, grid_n = planned ? plan->grid_n : 1;
    const range all_rows = {0, x->shape->m};
    const range rows = share(all_rows, plan->kernels->mr, grid_m, thread / grid_n);
    const int64_t first = cpu_share(c->panels, grid_n, thread % grid_n);
    const int64_t last = cpu_share(c->panels, grid_n, thread % grid_n + 1);
    if (rows.begin == rows.end || first == last) return;

    char *packed_a = plan->pack_a ? x->packed_a + (size_t)thread * plan->a_bytes : NULL;
    const int64_t blocks = cpu_ceil_div(rows.end - rows.begin, plan->mc);
    for (int64_t q = 0; q < blocks; q++) {
        row_block block = {
            .rows = share(rows, 1, blocks, q),
            .k = k,
            .packed = packed_a,
            .beta = k.begin == 0 ? x->beta : 1,
        };
        if (packed_a != NULL) pack_a(x, packed_a, block.rows, k);
        multiply_block(x, &block, c, first, last);
    }
}

static void multiply(const product *x, int thread, int team)
{
    const cpu_plan *plan = x->plan;
    const int64_t n = x->shape->n;
    for (int64_t j = 0; j < n; j += plan->nc) {
        const columns c = cut_columns(plan->kernels, (range){j, cpu_least(n, j + plan->nc)});
        for (int64_t p = 0; p < x->k; p += plan->kc) {
            const range k = {p, cpu_least(x->k, p + plan->kc)};
            if (plan->pack_b) {
                if (j > 0 || p > 0) cpu_team_wait(team); /* the last block is done with */
                pack_b(x, &c, k, cpu_share(c.panels, team, thread),
                       cpu_share(c.panels, team, thread + 1));
                cpu_team_wait(team);
            }
            multiply_rows(x, &c, k, thread, team);
        }
    }
}

/* ---- Ways to share --------------------------------------------------------------------------- */

typedef struct gemm_job {
    const tgl_gemm_shape *shape;
    const cpu_plan *plan;
    const tgl_run *run;
    char *workspace;
} gemm_job;

/* Product i of the batch; packing buffers are the caller's to set. */
static product product_at(const gemm_job *job, int64_t i)
{
    const tgl_gemm_shape *s = job->shape;
    const int64_t element = (int64_t)job->plan->kernels->element;
    return (product){
        .shape = s,
        .plan = job->plan,
        .k = s->k,
        .alpha = job->run->alpha,
        .beta = job->run->beta,
        .A = (const char *)job->run->A + i * s->stride_a * element,
        .B = (const char *)job->run->B + i * s->stride_b * element,
        .C = (char *)job->run->C + i * s->stride_c * element,
        .ldc = s->ldc,
    };
}

static void share_c(void *context, int thread, int team)
{
    const gemm_job *job = context;
    for (int64_t i = 0; i < job->shape->batch; i++) {
        product x = product_at(job, i);
        x.packed_b = job->workspace;
        x.packed_a = job->workspace + job->plan->b_bytes;
        if (i > 0) cpu_team_wait(team); /* the last product is done with the packed B */
        multiply(&x, thread, team);
    }
}

/* Buffers of one thread that works alone. */
static void use_own_buffers(product *x, const gemm_job *job, int thread)
{
    const cpu_plan *plan = job->plan;
    x->packed_b = job->workspace + (size_t)thread * (plan->a_bytes + plan->b_bytes);
    x->packed_a = x->packed_b + plan->b_bytes;
}

static void share_batch(void *context, int thread, int team)
{
    const gemm_job *job = context;
    const int64_t end = cpu_share(job->shape->batch, team, thread + 1);
    for (int64_t i = cpu_share(job->shape->batch, team, thread); i < end; i++) {
        product x = product_at(job, i);
        use_own_buffers(&x, job, thread);
        multiply(&x, 0, 1);
    }
}

static void share_k(void *context, int thread, int team)
{
    const gemm_job *job = context;
    const tgl_gemm_shape *s = job->shape;
    const cpu_plan *plan = job->plan;
    const int64_t element = (int64_t)plan->kernels->element;
    char *sums = job->workspace + (size_t)plan->threads * (plan->a_bytes + plan->b_bytes);
    for (int64_t i = 0; i < s->batch; i++) {
        if (i > 0) cpu_team_wait(team);
        for (int64_t part = thread; part < plan->parts; part += team) {
            product x = product_at(job, i);
            const range k = share((range){0, s->k}, 1, plan->parts, part);
            x.A = a_at(&x, 0, k.begin);
            x.B = b_at(&x, k.begin, 0);
            x.k = k.end - k.begin;
            x.alpha = 1;
            x.beta = 0;
            x.C = sums + (size_t)part * plan->part_bytes;
            x.ldc = s->n;
            use_own_buffers(&x, job, thread);
            multiply(&x, 0, 1);
        }
        cpu_team_wait(team);
        const product whole = product_at(job, i);
        const range rows = share((range){0, s->m}, 1, team, thread);
        for (int64_t row = rows.begin; row < rows.end; row++)
            plan->kernels->reduce(whole.C + row * s->ldc * element, 1, s->n,
                                  sums + row * s->n * element, (int64_t)plan->part_bytes / element,
                                  plan->parts, whole.alpha, whole.beta);
    }
}

void tgl_cpu_gemm(const tgl_gemm_shape *shape, const cpu_plan *plan, const tgl_run *run,
                  char *workspace)
{
    static cpu_team_fn *const ways[] = {
        [CPU_SHARE_C] = share_c, [CPU_SHARE_BATCH] = share_batch, [CPU_SHARE_K] = share_k};
    gemm_job job = {shape, plan, run, workspace};
    cpu_team(plan->threads, ways[plan->sharing], &job);
}

void tgl_cpu_scale(const tgl_gemm_shape *s, const cpu_kernels *kernels, double beta, void *C)
{
    if (beta == 1) return;
    for (int64_t i = 0; i < s->batch; i++)
        for (int64_t row = 0; row < s->m; row++)
            kernels->scale((char *)C + (i * s->stride_c + row * s->ldc) * (int64_t)kernels->element,
                           s->n, beta);
}
