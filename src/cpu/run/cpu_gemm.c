/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops around the register tile. A job (cpu_jobs.h) is a rectangle of C:
 *
 *     for each block of nc columns of C and B
 *         for each block of kc steps of k
 *             for each block of mc rows:        pack A's block, mc x kc, if that pays
 *                 for each panel of B, up to nv vectors wide
 *                     for each panel of A, up to mr rows
 *                         one register tile
 *
 * If packing B pays and B is not transposed, B is packed while it is used: the first tile that
 * reads a panel of B also copies it, and the tiles below read the packed copy. All blocks of rows
 * but the last consist of full tiles. Columns, and the rows of the last block, are cut into tiles
 * of nearly equal size, not into full tiles and a small remainder. Each element of C is summed in
 * the order of k.
 */
#include "cpu/run/cpu_gemm.h"
#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_epilogue.h"
#include "cpu/run/cpu_jobs.h"
#include "cpu/run/cpu_strips.h"

/* The rectangle of C that a job computes, and the operands of its product. */
typedef struct rectangle {
    const cpu_product *product;
    const tgl_shape *shape;
    const cpu_plan *plan;
    const cpu_job *job;
    double alpha, beta;
    tgl_complex_part complex; /* imaginary parts and conjugation, for complex types */
    const char *A, *B;
    char *C; /* the output: D, in which C has been copied; or, with split-K, the job's sums */
    int64_t ldc;
} rectangle;

static const char *a_at(const rectangle *x, int64_t i, int64_t p)
{
    const tgl_shape *s = x->shape;
    const int64_t index = s->trans_a ? p * s->lda + i : i * s->lda + p;
    return x->A + index * (int64_t)x->plan->kernels->element;
}

static const char *b_at(const rectangle *x, int64_t p, int64_t j)
{
    const tgl_shape *s = x->shape;
    const int64_t index = s->trans_b ? j * s->ldb + p : p * s->ldb + j;
    return x->B + index * (int64_t)x->plan->kernels->element;
}

/* ---- One block of A -------------------------------------------------------------------------- */

/* A block of mc rows of A, cut into tiles. The first tile has min(mr, rows) rows, because tiles
 * that copy B exist only for mr rows. The others have `base` rows, the first `rest` of them one
 * more. */
typedef struct row_block {
    cpu_range rows, k;
    int64_t tiles, first, base, rest;
    const char *packed; /* NULL: A is read in place */
    double beta;        /* beta for this block of k: the caller's for the first block, then 1 */
    tgl_complex_part complex;
} row_block;

static void cut_rows(row_block *block, int mr)
{
    const int64_t total = cpu_length(block->rows);
    block->tiles = cpu_ceil_div(total, mr);
    block->first = tgl_min64(mr, total);
    if (block->tiles == 1) return;
    block->base = (total - block->first) / (block->tiles - 1);
    block->rest = (total - block->first) % (block->tiles - 1);
}

/* The number of rows of tile q. */
static int64_t tile_height(const row_block *block, int64_t q)
{
    return q == 0 ? block->first : block->base + (q <= block->rest);
}

/* Packs a block of an untransposed A, tile by tile. */
static void pack_a_rows(const rectangle *x, const row_block *block)
{
    const cpu_kernels *kernels = x->plan->kernels;
    const int64_t k = cpu_length(block->k);
    for (int64_t q = 0, row = 0; q < block->tiles; q++) {
        const int64_t height = tile_height(block, q);
        kernels->interleave(x->job->memory + row * k * (int64_t)kernels->element, height,
                            a_at(x, block->rows.begin + row, block->k.begin), x->shape->lda, height,
                            k);
        row += height;
    }
}

/* Packs a block of a transposed A, whose steps of k are lda elements apart: a few steps for all
 * rows of the block, while the next few steps are prefetched. */
static void pack_a_columns(const rectangle *x, const row_block *block)
{
    enum { STEPS = 8, LINE = 64 };
    const cpu_kernels *kernels = x->plan->kernels;
    const int64_t element = (int64_t)kernels->element, k = cpu_length(block->k);
    const int64_t lda = x->shape->lda;
    for (int64_t p = 0; p < k; p += STEPS) {
        const int64_t steps = tgl_min64(STEPS, k - p);
        const char *from = a_at(x, block->rows.begin, block->k.begin + p);
        for (int64_t i = STEPS; i < 2 * STEPS; i++)
            for (int64_t byte = 0; byte < cpu_length(block->rows) * element; byte += LINE)
                __builtin_prefetch(from + i * lda * element + byte);
        for (int64_t q = 0, row = 0; q < block->tiles; q++) {
            const int64_t height = tile_height(block, q);
            kernels->copy(x->job->memory + (row * k + p * height) * element, height,
                          from + row * element, lda, height, steps);
            row += height;
        }
    }
}

/* A panel of B, and the next panel, which is prefetched while this one is multiplied. */
typedef struct panel {
    int64_t column, count, width; /* first column of C; number of columns; columns rounded up to
                                     whole vectors */
    const char *b;                /* address of the panel */
    int64_t ldb;
    cpu_use use; /* what the first tile does with the panel in addition to multiplying; the other
                    tiles only read it */
    char *copy;  /* CPU_B_COPY: where the first tile writes the packed panel */
    const char *next; /* the next panel, of which each tile prefetches a part; NULL: none */
    int64_t next_ld, next_rows;
    int64_t next_pieces; /* number of pieces of a row of `next`, each as wide as a tile */
} panel;

static cpu_layout layout_of_a(const rectangle *x, const row_block *block)
{
    return block->packed == NULL && !x->shape->trans_a ? CPU_A_ROWS : CPU_A_COLS;
}

/* Chooses which part of the next panel tile q of a block prefetches: some rows of one piece
 * (panel.next_pieces). If there are fewer tiles than pieces, the last pieces are not prefetched. */
static void fetch_part(const row_block *block, const panel *y, int64_t element, int64_t q,
                       cpu_beside *beside)
{
    if (y->next == NULL) return;
    int64_t shares = block->tiles, piece = 0, share = q;
    if (y->next_pieces > 1) {
        shares = shares > y->next_pieces ? shares / y->next_pieces : 1;
        piece = q / shares;
        share = q % shares;
    }
    if (piece >= y->next_pieces) return;
    const int64_t row = cpu_share(y->next_rows, shares, share);
    beside->ahead = y->next + (row * y->next_ld + piece * y->width) * element;
    beside->ahead_step = y->next_ld * element;
    beside->ahead_rows = cpu_share(y->next_rows, shares, share + 1) - row;
}

/* Multiplies a block of A by a panel of B, tile by tile. */
static void multiply_panel(const rectangle *x, const row_block *block, panel y)
{
    const cpu_kernels *kernels = x->plan->kernels;
    const int64_t element = (int64_t)kernels->element, k = cpu_length(block->k);
    const int64_t vectors = y.width / kernels->vector;
    const int tail = (int)(y.count - (vectors - 1) * kernels->vector);
    const cpu_layout layout = layout_of_a(x, block);
    const bool partial = tail < kernels->vector;

    char *c = x->C + (block->rows.begin * x->ldc + y.column) * element;
    int64_t row = 0;
    for (int64_t q = 0; q < block->tiles; q++) {
        const int64_t rows = tile_height(block, q);
        const char *a = block->packed != NULL ? block->packed + row * k * element
                                              : a_at(x, block->rows.begin + row, block->k.begin);
        const int64_t a_stride = block->packed != NULL ? rows : x->shape->lda;
        cpu_tile_fn *tile = y.use != CPU_B_READ
                                ? kernels->tallest_tile[y.use][layout][partial][vectors - 1]
                                : kernels->tile[layout][partial][vectors - 1][rows - 1];
        cpu_beside beside = {.copy = y.copy, .fetch_c = true, .complex = &block->complex};
        fetch_part(block, &y, element, q, &beside);
        tile(k, a, a_stride, y.b, y.ldb, c + row * x->ldc * element, x->ldc, tail, x->alpha,
             block->beta, &beside);
        if (y.use == CPU_B_COPY) {
            y.b = y.copy;
            y.ldb = y.width;
        }
        y.use = CPU_B_READ;
        row += rows;
    }
}

/* ---- One block of B -------------------------------------------------------------------------- */

/* If A and B are neither packed nor transposed and a block has at most this many tiles, its first
 * tile, if it has mr rows, alone prefetches the next panel of B: one row in each step of k. If
 * instead these few tiles shared the prefetches, each would prefetch more cache lines at once than
 * a core can have in flight: with shared prefetches, products with few rows took 3 to 25 % longer
 * (Zen 4). */
enum { FEW_TILES = 4 };

/* A panel of a transposed B is prefetched only if its rows have at least this many steps of k: with
 * 48 steps, prefetching made a product 8 % slower (Intel Xeon). */
enum { LONG_ROW = 128 };

/* Chooses the part of the unpacked B that is prefetched while a panel is multiplied: the next panel
 * or, at the last panel of a block of columns, the first panel of the next block along k. */
static void choose_next_panel(const rectangle *x, const row_block *block, cpu_range columns,
                              bool last, panel *y)
{
    const cpu_plan *plan = x->plan;
    const int64_t k = cpu_length(block->k), element = (int64_t)plan->kernels->element;
    const int64_t left = x->job->k.end - block->k.end; /* steps of k after this block */
    y->next_ld = y->ldb;
    y->next_rows = k;
    if (last) {
        if (!plan->fetch_next_block || block->rows.end != x->job->rows.end || left == 0) return;
        y->next = b_at(x, block->k.end, columns.begin);
        y->next_rows = tgl_min64(k, left);
    } else if (!plan->fetch) {
        return;
    } else if (x->shape->trans_b) {
        if (k < LONG_ROW) return;
        y->next = y->b + y->width * y->ldb * element;
        y->next_rows = tgl_min64(y->width, columns.end - y->column - y->width);
        y->next_pieces = cpu_ceil_div(k, y->width);
    } else if (!plan->pack_b && block->tiles <= FEW_TILES && block->first == plan->kernels->mr &&
               layout_of_a(x, block) == CPU_A_ROWS) {
        y->use = CPU_B_FETCH;
    } else {
        y->next = y->b + y->width * element;
    }
}

/* Packs a panel of B, or lets the first tile that uses the panel pack it while multiplying
 * (CPU_B_COPY). */
static void pack_panel(const rectangle *x, const row_block *block, panel *y, char *copy)
{
    const cpu_kernels *kernels = x->plan->kernels;
    const bool trans_b = x->shape->trans_b;
    if (!trans_b && cpu_length(block->rows) >= kernels->mr) {
        y->use = CPU_B_COPY;
        y->copy = copy;
        return;
    }
    (trans_b ? kernels->interleave : kernels->copy)(copy, y->width, y->b, y->ldb, y->count,
                                                    cpu_length(block->k));
    y->b = copy;
    y->ldb = y->width;
}

/* The panel of B that begins at vector `first` of a block of columns and is `vectors` wide. packed:
 * true if an earlier block of rows has packed it. */
static panel find_panel(const rectangle *x, const row_block *block, cpu_range columns,
                        int64_t first, int64_t vectors, bool packed)
{
    const cpu_plan *plan = x->plan;
    const int64_t offset = first * plan->kernels->vector, k = cpu_length(block->k);
    const int64_t element = (int64_t)plan->kernels->element;
    panel y = {
        .column = columns.begin + offset,
        .width = vectors * plan->kernels->vector,
        .b = b_at(x, block->k.begin, columns.begin + offset),
        .ldb = x->shape->ldb,
        .next_pieces = 1,
    };
    y.count = tgl_min64(y.width, columns.end - y.column);
    const bool last = y.column + y.count == columns.end;
    if (last || !packed) choose_next_panel(x, block, columns, last, &y);
    if (!plan->pack_b) return y;

    char *copy = x->job->memory + plan->a_bytes;
    if (plan->keep_b) copy += offset * k * element;
    if (!packed) {
        pack_panel(x, block, &y, copy);
        return y;
    }
    y.b = copy;
    y.ldb = y.width;
    if (!last && !plan->in_bands) {
        y.next = copy + y.width * k * element;
        y.next_ld = y.width;
        y.next_rows = k;
    }
    return y;
}

static void multiply_columns(const rectangle *x, cpu_range columns, cpu_range k)
{
    const cpu_plan *plan = x->plan;
    const int64_t vectors = cpu_ceil_div(cpu_length(columns), plan->kernels->vector);
    const int64_t panels = cpu_ceil_div(vectors, plan->kernels->nv);
    const int64_t blocks = cpu_ceil_div(cpu_length(x->job->rows), plan->mc);
    for (int64_t q = 0; q < blocks; q++) {
        row_block block = {
            .rows = cpu_part(x->job->rows, plan->kernels->mr, blocks, q),
            .k = k,
            .packed = plan->pack_a ? x->job->memory : NULL,
            .beta = k.begin == x->job->k.begin ? x->beta : 1,
            .complex = x->complex,
        };
        if (k.begin != x->job->k.begin) block.complex.beta_imag = 0;
        cut_rows(&block, plan->kernels->mr);
        if (plan->pack_a) (x->shape->trans_a ? pack_a_columns : pack_a_rows)(x, &block);
        for (int64_t i = 0; i < panels; i++) {
            const int64_t first = cpu_share(vectors, panels, i);
            const int64_t wide = cpu_share(vectors, panels, i + 1) - first;
            multiply_panel(x, &block, find_panel(x, &block, columns, first, wide, q > 0));
        }
        if (x->job->sums == NULL && k.end == x->job->k.end)
            tgl_cpu_epilogue(x->product, x->job->problem, block.rows, columns);
    }
}

static void multiply_rectangle(const rectangle *x)
{
    for (int64_t j = x->job->columns.begin; j < x->job->columns.end; j += x->plan->nc) {
        const cpu_range columns = {j, tgl_min64(x->job->columns.end, j + x->plan->nc)};
        for (int64_t p = x->job->k.begin; p < x->job->k.end; p += x->plan->kc)
            multiply_columns(x, columns, (cpu_range){p, tgl_min64(x->job->k.end, p + x->plan->kc)});
    }
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static rectangle rectangle_of(const cpu_product *product, const cpu_job *job)
{
    const tgl_shape *s = product->shape;
    const int64_t element = (int64_t)product->plan->kernels->element;
    return (rectangle){
        .product = product,
        .shape = s,
        .plan = product->plan,
        .job = job,
        .alpha = product->run->alpha,
        .beta = product->run->beta,
        .complex = tgl_cpu_complex_part(s, product->run),
        .A = tgl_cpu_a_of(s, product->run, job->problem, element),
        .B = tgl_cpu_b_of(s, product->run, job->problem, element),
        .C = tgl_cpu_d_of(s, product->run, job->problem, element),
        .ldc = s->ldd,
    };
}

static void compute_rectangle(const cpu_product *product, const cpu_job *job)
{
    rectangle x = rectangle_of(product, job);
    if (job->sums != NULL) {
        x.alpha = 1;
        x.beta = 0;
        x.complex.alpha_imag = x.complex.beta_imag = 0;
        x.C = job->sums;
        x.ldc = product->shape->n;
    }
    multiply_rectangle(&x);
}

static void add_parts_of_rectangle(const cpu_product *product, const cpu_job *job, cpu_range rows)
{
    const cpu_plan *plan = product->plan;
    rectangle x = rectangle_of(product, job);
    const int64_t element = (int64_t)plan->kernels->element, n = product->shape->n;
    x.complex.conj_a = false; /* the elements were conjugated when the parts of k were multiplied */
    for (int64_t row = rows.begin; row < rows.end; row++)
        plan->kernels->reduce(x.C + row * x.ldc * element, 1, n, job->sums + row * n * element,
                              (int64_t)plan->part_bytes / element, plan->parts, x.alpha, x.beta,
                              &x.complex);
    tgl_cpu_epilogue(product, job->problem, rows, job->columns);
}

void tgl_cpu_gemm(const cpu_product *product)
{
    const cpu_plan *plan = product->plan;
    const cpu_cut cut = {
        .grid_m = plan->grid_m,
        .grid_n = plan->grid_n,
        .parts = plan->parts,
        .unit_m = plan->kernels->mr,
        .unit_n = plan->kernels->vector,
        .unit_k = 1,
        .problems = plan->parts > 1 ? 1 : product->shape->batch,
        .thread_bytes = plan->a_bytes + plan->b_bytes,
        .sum_bytes = plan->part_bytes,
        .compute = plan->in_strips ? tgl_cpu_compute_strips : compute_rectangle,
        .add_parts = add_parts_of_rectangle,
    };
    tgl_cpu_run_jobs(product, &cut);
}

void tgl_cpu_scale(const cpu_product *product)
{
    const tgl_shape *s = product->shape;
    const cpu_kernels *kernels = product->plan->kernels;
    const tgl_run *run = product->run;
    const int64_t element = (int64_t)kernels->element;
    const cpu_range rows = {0, s->m}, columns = {0, s->n};
    for (int64_t i = 0; i < s->batch; i++) {
        char *D = tgl_cpu_d_of(s, run, i, element);
        for (int64_t row = 0; row < s->m && (run->beta != 1 || run->beta_imag != 0); row++)
            kernels->scale(D + row * s->ldd * element, s->n, run->beta, run->beta_imag);
        tgl_cpu_epilogue(product, i, rows, columns);
    }
}
