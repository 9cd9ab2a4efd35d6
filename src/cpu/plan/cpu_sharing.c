/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides a product among threads. Each thread gets whole products of a batch, a part of k, or
 * rectangles of C, which form a grid.
 *
 * A tile of rows is mr rows of C, the height of a register tile. The comment of a constant begins
 * with its source. F: a formula. M: measured (docs/notes/2026-11-26-cpu-planner.md,
 * 2026-11-28-cpu-threads.md). C: chosen by judgment, without a measurement of its own.
 */
#include "cpu/plan/cpu_sharing.h"
#include "cpu/kernels/shares.h"

enum {
    LARGE_PRODUCT = 256, /* C: in a batch, all threads work on one product at a time if it has work
                            for this many threads */
    DEEP = 16,           /* C: split-K only if k >= DEEP * max(m, n) */
    FEW_TILES = 64,      /* C: split-K only if C has fewer tiles per thread than this */
    MAX_RECTANGLES = 8,  /* M: maximum number of rectangles per thread. There are also at most as
                            many as threads: a few threads lose little time if one is delayed, and
                            each cut repeats some packing */
    RECTANGLES = 4,      /* M: a thread gets more rectangles than this only if each has at least
                            LARGE_WORK */
    MIN_SIDE = 48,       /* M: C is cut no further if a rectangle has fewer rows than this, or would
                            have fewer rows or columns after the cut: narrow ones are slower */
    WIDE = 640,          /* M: rectangles with at least this many columns are cut along n, not m,
                            if A is not packed */
    SHORT_K = 128,       /* M: below this k, C is not cut further if B is transposed: each rectangle
                            would have to pack B again */
};

/* Amounts of work, in multiply-adds of f32. */
static const double WORK_PER_THREAD = 1e5; /* M: minimum work of a thread, 1 to 2 us */
static const double MIN_WORK =
    2.25e6; /* F: minimum work of a rectangle: MIN_READ_B of cpu_planner.c / sizeof(float), so that
               the halves of a product pack B if the whole does */
static const double LARGE_WORK = 6e7; /* M: minimum work of a rectangle that packs a transposed A */

/* Costs in cost(). Unit: the time to multiply a tile of rows by one vector of columns. */
static const double ONE_VECTOR = 1.1; /* C: factor on the time of rectangles one vector wide, which
                                         is limited by loads */
static const double LOAD_B = 0.25;    /* M: loading a vector of B. With 0.25 a C of 4096 x 16 is
                                         divided along m, and a C of 12 rows is not */
static const double PACK_A = 1;       /* C: packing one tile of rows of a transposed A */
static const double SIDE = 0.001; /* C: added per tile of rows and per vector of columns, to prefer
                                     square rectangles */

int tgl_cpu_threads_for(double work, int max)
{
    const double threads = work / WORK_PER_THREAD;
    return threads < 2 ? 1 : threads < max ? (int)threads : max;
}

/* The time of a multiply-add of the kernels' type, divided by the time of a multiply-add of f32. In
 * f64 it takes twice as long, because a vector has half as many lanes. A complex multiply-add
 * consists of four real ones. */
static double weight_of(const cpu_kernels *kernels)
{
    return (double)kernels->element / sizeof(float) * kernels->parts;
}

static void choose_sharing(const tgl_shape *s, int max, cpu_plan *plan)
{
    const double products = (double)s->m * (double)s->n * (double)s->k;
    const double weight = weight_of(plan->kernels);
    plan->threads = tgl_cpu_threads_for(weight * products * (double)s->batch, max);
    plan->sharing = CPU_SHARE_C;
    if (plan->threads == 1) return;

    const int64_t nr = (int64_t)plan->kernels->nv * plan->kernels->vector;
    const int64_t tiles = cpu_ceil_div(s->m, plan->kernels->mr) * cpu_ceil_div(s->n, nr);
    if (s->batch >= plan->threads && products < LARGE_PRODUCT * WORK_PER_THREAD) {
        plan->sharing = CPU_SHARE_BATCH;
    } else if (s->k >= DEEP * (s->m > s->n ? s->m : s->n) && tiles < FEW_TILES * plan->threads) {
        plan->sharing = CPU_SHARE_K;
        plan->parts = plan->threads;
    }
}

/* The relative time of a rectangle of `tiles` tiles of rows by `vectors` vectors of columns. */
static double cost(const tgl_shape *s, double tiles, double vectors)
{
    const double products = tiles * vectors * (vectors == 1 ? ONE_VECTOR : 1);
    const double packing = s->trans_a ? PACK_A * tiles : 0;
    return products + packing + LOAD_B * vectors + SIDE * (tiles + vectors);
}

/* Arranges the threads as a grid over C, grid_m x grid_n. Uses fewer threads if that takes no
 * longer: for 16 tiles of rows, 5 threads take as long as 4. */
static void choose_grid(const tgl_shape *s, cpu_plan *plan)
{
    const int64_t tiles = cpu_ceil_div(s->m, plan->kernels->mr);
    const int64_t vectors = cpu_ceil_div(s->n, plan->kernels->vector);
    double best = 0;
    for (int m = 1; m <= plan->threads; m++) {
        const int64_t rows = cpu_ceil_div(tiles, m);
        const int64_t columns = cpu_ceil_div(vectors, plan->threads / m);
        const double slowest = cost(s, (double)rows, (double)columns);
        if (best == 0 || slowest < best) {
            best = slowest;
            plan->grid_m = (int)cpu_ceil_div(tiles, rows);
            plan->grid_n = (int)cpu_ceil_div(vectors, columns);
        }
    }
    plan->threads = plan->grid_m * plan->grid_n;
}

/* Cuts the rectangles of the grid in halves until each thread has several. A thread that is not
 * delayed, or runs on a faster core, then computes more rectangles than the others. A rectangle is
 * cut along n if it has at least as many columns as rows, or if it is WIDE and A is not packed. The
 * reason is packing: two rectangles that were cut along m both pack the same panels of B; two that
 * were cut along n both pack the same rows of A, if A is packed. Here A counts as packed if it is
 * transposed or if the rectangle has copy_columns columns. */
static void cut_grid(const tgl_shape *s, int64_t copy_columns, cpu_plan *plan)
{
    if (plan->threads == 1 || (s->trans_b && s->k < SHORT_K)) return;
    const int max = plan->threads < MAX_RECTANGLES ? plan->threads : MAX_RECTANGLES;
    for (;;) {
        const double rows = (double)s->m / plan->grid_m, columns = (double)s->n / plan->grid_n;
        const int64_t each = (int64_t)plan->grid_m * plan->grid_n / plan->threads;
        const double half = rows * columns * (double)s->k / 2;
        const double min = s->trans_a || each >= RECTANGLES ? LARGE_WORK : MIN_WORK;
        if (2 * each > max || half < min) return;
        const bool packs_a = s->trans_a || columns >= (double)copy_columns;
        const bool along_n = columns >= rows || (columns >= WIDE && !packs_a);
        if (rows < MIN_SIDE || (along_n ? columns : rows) < 2 * MIN_SIDE) return;
        *(along_n ? &plan->grid_n : &plan->grid_m) *= 2;
    }
}

/* The size of the largest rectangle of the grid. Rectangles consist of whole tiles and vectors. */
static cpu_rectangle largest_rectangle(const tgl_shape *s, const cpu_plan *plan)
{
    const int64_t mr = plan->kernels->mr, vector = plan->kernels->vector;
    const int64_t tiles = cpu_ceil_div(cpu_ceil_div(s->m, mr), plan->grid_m);
    const int64_t vectors = cpu_ceil_div(cpu_ceil_div(s->n, vector), plan->grid_n);
    return (cpu_rectangle){tgl_min64(s->m, tiles * mr), tgl_min64(s->n, vectors * vector)};
}

cpu_rectangle tgl_cpu_share(const tgl_shape *s, int max, int64_t copy_columns, cpu_plan *plan)
{
    plan->grid_m = plan->grid_n = 1;
    choose_sharing(s, max, plan);
    if (plan->sharing == CPU_SHARE_C) {
        choose_grid(s, plan);
        cut_grid(s, copy_columns, plan);
    }
    return largest_rectangle(s, plan);
}
