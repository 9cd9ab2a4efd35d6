/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula dist bench`. The elements of A and B are small integers that depend only on their places
 * in the whole matrices. So every rank can compute any element of C exactly.
 */
#include "dist_bench.h"

#include "cli.h"
#include "dist_world.h"
#include "elements.h"
#include "problem_options.h"
#include "stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct bench_part {
    const tgl_dist_layout *layout;
    tgl_type type;
    int64_t rows, columns; /* size of the part of the matrix that this rank stores */
    char *host;            /* the elements of this rank, tight and row-major, in host memory */
    void *memory;          /* a copy of `host` in device memory; on the cpu device `host` itself */
} bench_part;

typedef struct bench {
    tgl_dist *dist;
    tgl_device *dev;
    const tgl_problem *problem;
    bench_part a, b, c;
    tgl_dist_plan *plan;
} bench;

/* The elements of A and B repeat every ROWS rows, so that most rows of a large matrix can be
 * copied. */
enum { ROWS = 61 };

/* A pseudorandom element of A (salt 1) or B (salt 2): an integer from -1 to 2. It depends only on
 * its place in the whole matrix. */
static int element_at(int64_t row, int64_t column, unsigned salt)
{
    uint64_t x = (uint64_t)(row % ROWS) * 0x9e3779b97f4a7c15u +
                 (uint64_t)column * 0xc2b2ae3d27d4eb4fu + salt;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return (int)(x >> 40 & 3) - 1;
}

static bool is_cpu(const tgl_device *dev)
{
    return strcmp(tgl_device_name(dev), "cpu") == 0;
}

/* *memory := device memory with a copy of `host`; on the cpu device `host` itself. False: the
 * memory could not be allocated or filled. */
static bool to_device(tgl_device *dev, char *host, size_t size, void **memory)
{
    *memory = host;
    return is_cpu(dev) || size == 0 ||
           (tgl_alloc(dev, size, memory) == TGL_OK &&
            tgl_upload(dev, *memory, host, size, NULL) == TGL_OK);
}

static void free_part(tgl_device *dev, bench_part *x)
{
    if (x->memory != x->host) tgl_free(dev, x->memory);
    free(x->host);
}

/* Fills row i of this rank's part. If row i - ROWS of the part has the same elements, it is copied.
 * False: tgl_dist_index() failed. */
static bool make_row(const bench *s, const bench_part *x, unsigned salt, int64_t i)
{
    const size_t size = tgl_type_size(x->type), line = (size_t)x->columns * size;
    const int rank = tgl_dist_rank(s->dist);
    int64_t row, before = 0, column;
    if (tgl_dist_index(x->layout, rank, i, 0, &row, &column) != TGL_OK) return false;
    if (i >= ROWS && tgl_dist_index(x->layout, rank, i - ROWS, 0, &before, &column) == TGL_OK &&
        before % ROWS == row % ROWS) {
        memcpy(x->host + (size_t)i * line, x->host + (size_t)(i - ROWS) * line, line);
        return true;
    }
    for (int64_t j = 0; j < x->columns; j++) {
        if (tgl_dist_index(x->layout, rank, i, j, &row, &column) != TGL_OK) return false;
        element_set(x->type, x->host, i * x->columns + j, element_at(row, column, salt));
    }
    return true;
}

static bool make_part(const bench *s, bench_part *x, unsigned salt)
{
    const int rank = tgl_dist_rank(s->dist);
    if (tgl_dist_local(x->layout, rank, &x->rows, &x->columns) != TGL_OK) return false;
    const size_t size = tgl_type_size(x->type), count = (size_t)(x->rows * x->columns);
    x->host = calloc(count + 1, size);
    if (x->host == NULL) return false;
    for (int64_t i = 0; salt > 0 && x->columns > 0 && i < x->rows; i++)
        if (!make_row(s, x, salt, i)) return false;
    return to_device(s->dev, x->host, count * size, &x->memory);
}

/* Whether up to SAMPLES elements of this rank's part of C are right. */
static bool check_result(const bench *s)
{
    enum { SAMPLES = 16 };
    const tgl_problem *p = s->problem;
    const bool a = p->trans_a != TGL_NO_TRANS, b = p->trans_b != TGL_NO_TRANS;
    const int64_t count = s->c.rows * s->c.columns;
    if (s->c.memory != s->c.host &&
        tgl_download(s->dev, s->c.host, s->c.memory, (size_t)count * tgl_type_size(s->c.type),
                     NULL) != TGL_OK)
        return false;
    for (int64_t sample = 0; sample < SAMPLES && count > 0; sample++) {
        const int64_t at = count / SAMPLES * sample + sample % (count / SAMPLES + 1);
        int64_t row, column;
        double sum = 0;
        if (tgl_dist_index(s->c.layout, tgl_dist_rank(s->dist), at / s->c.columns,
                           at % s->c.columns, &row, &column) != TGL_OK)
            return false;
        for (int64_t k = 0; k < p->k; k++)
            sum += element_at(a ? k : row, a ? row : k, 1) *
                   element_at(b ? column : k, b ? k : column, 2);
        const double unit = element_unit(s->c.type), got = element_get(s->c.type, s->c.host, at);
        if (!(got - sum <= unit * (sum < 0 ? -sum : sum) &&
              sum - got <= unit * (sum < 0 ? -sum : sum)))
            return false;
    }
    return true;
}

/* ---- Times ----------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static tgl_status run(const bench *s)
{
    return tgl_dist_plan_run(s->plan, 1, s->a.memory, s->b.memory, 0, s->c.memory, NULL);
}

/* Computes, on this rank alone and without communication, a product of the size that the busiest
 * rank computes. */
static tgl_status run_local(const bench *s, const tgl_problem *local, const bench_part part[3])
{
    return tgl_gemm(s->dev, local, 1, part[0].memory, part[1].memory, 0, part[2].memory, NULL);
}

/* Makes the operands of the local product. False: out of memory. */
static bool make_local(const bench *s, const tgl_problem *local, bench_part part[3])
{
    part[0] = (bench_part){.type = local->type_a, .rows = local->m, .columns = local->k};
    part[1] = (bench_part){.type = local->type_b, .rows = local->k, .columns = local->n};
    part[2] = (bench_part){.type = local->type_c, .rows = local->m, .columns = local->n};
    for (int x = 0; x < 3; x++) {
        const size_t size = tgl_type_size(part[x].type);
        const int64_t count = part[x].rows * part[x].columns;
        part[x].host = calloc((size_t)count + 1, size);
        if (part[x].host == NULL) return false;
        for (int64_t i = 0; x < 2 && i < count; i++)
            if (i < (1 << 20))
                element_set(part[x].type, part[x].host, i, element_at(i, x + 1, (unsigned)x + 1));
            else
                memcpy(part[x].host + (size_t)i * size,
                       part[x].host + (size_t)(i % (1 << 20)) * size, size);
        if (!to_device(s->dev, part[x].host, (size_t)count * size, &part[x].memory)) return false;
    }
    return true;
}

static tgl_problem local_problem(const bench *s, const tgl_dist_figures *f)
{
    tgl_problem local = *s->problem;
    local.m = (local.m + f->parts_m - 1) / f->parts_m;
    local.n = (local.n + f->parts_n - 1) / f->parts_n;
    local.k = (local.k + f->parts_k - 1) / f->parts_k;
    return local;
}

/* The number of products that are enqueued one after the other and then waited for together: 1 on
 * the cpu device, else 10. */
static int runs_of(const bench *s)
{
    return is_cpu(s->dev) ? 1 : 10;
}

static tgl_status time_product(const bench *s, double *seconds)
{
    const double start = now();
    for (int i = 0; i < runs_of(s); i++)
        CLI_TRY(run(s));
    CLI_TRY(tgl_dist_synchronize(s->dist));
    *seconds = (now() - start) / runs_of(s);
    return TGL_OK;
}

static tgl_status time_local(const bench *s, const tgl_problem *local, const bench_part part[3],
                             double *seconds)
{
    const double start = now();
    for (int i = 0; i < runs_of(s); i++)
        CLI_TRY(run_local(s, local, part));
    CLI_TRY(tgl_device_sync(s->dev));
    *seconds = (now() - start) / runs_of(s);
    return TGL_OK;
}

/* *product := the median time in seconds of the distributed product, *alone := that of the local
 * one. The two are timed in turn, `repeats` times. tgl_dist_plan_run() begins and ends with an
 * exchange of the ranks' statuses, so all ranks start a distributed product together. */
static tgl_status measure(const bench *s, const tgl_dist_figures *f, int repeats, double *product,
                          double *alone)
{
    const tgl_problem local = local_problem(s, f);
    bench_part part[3] = {{.host = NULL}};
    double *times = malloc(sizeof *times * 2 * (size_t)repeats);
    tgl_status status = times != NULL && make_local(s, &local, part) ? TGL_OK : TGL_NO_MEMORY;
    if (status == TGL_OK && !is_cpu(s->dev)) status = time_local(s, &local, part, alone);
    for (int i = 0; status == TGL_OK && i < repeats; i++) {
        status = time_product(s, &times[i]);
        if (status == TGL_OK) status = time_local(s, &local, part, &times[repeats + i]);
    }
    if (status == TGL_OK) {
        *product = stats_quantile(times, repeats, 0.5);
        *alone = stats_quantile(times + repeats, repeats, 0.5);
    }
    for (int i = 0; i < 3; i++)
        free_part(s->dev, &part[i]);
    free(times);
    return status;
}

static void print_table(const bench *s, const tgl_dist_figures *f, double seconds, double alone)
{
    const tgl_problem *p = s->problem;
    printf("%" PRId64 " x %" PRId64 " x %" PRId64 " %s on %d ranks, %s\n", p->m, p->n, p->k,
           problem_type_label(p).text, tgl_dist_ranks(s->dist), tgl_device_name(s->dev));
    printf("grid %dx%dx%d, %" PRId64 " panels of %" PRId64 "\n", f->parts_m, f->parts_n, f->parts_k,
           f->panels, f->panel);
    puts("seconds     GFLOP/s  products alone  received MB  bound MB");
    printf("%-10.6f  %-7.1f  %5.1f %%         %-11.3f  %.3f\n", seconds,
           1e-9 * problem_flops(p) / seconds, 100 * alone / seconds, 1e-6 * f->received_bytes,
           1e-6 * f->bound_bytes);
}

static tgl_status bench_run(bench *s, int repeats)
{
    tgl_dist_figures figures = {.size = sizeof figures};
    double seconds = 0, alone = 0;
    CLI_TRY(tgl_dist_plan_create(s->dist, s->problem, s->a.layout, s->b.layout, s->c.layout, NULL,
                                 &s->plan));
    CLI_TRY(run(s));
    CLI_TRY(tgl_dist_synchronize(s->dist));
    if (!check_result(s)) {
        cli_fail("rank %d: an element of the product is wrong", tgl_dist_rank(s->dist));
        return TGL_KERNEL_FAULT;
    }
    CLI_TRY(tgl_dist_plan_figures(s->plan, &figures));
    CLI_TRY(measure(s, &figures, repeats, &seconds, &alone));
    if (tgl_dist_rank(s->dist) == 0) print_table(s, &figures, seconds, alone);
    return TGL_OK;
}

int dist_bench(tgl_dist *dist, tgl_device *dev, const tgl_problem *problem,
               const dist_layouts *layouts, int repeats)
{
    bench s = {.dist = dist,
               .dev = dev,
               .problem = problem,
               .a = {.layout = &layouts->a, .type = problem->type_a},
               .b = {.layout = &layouts->b, .type = problem->type_b},
               .c = {.layout = &layouts->c, .type = problem->type_c}};
    int code = EXIT_FAILED;
    if (!make_part(&s, &s.a, 1) || !make_part(&s, &s.b, 2) || !make_part(&s, &s.c, 0)) {
        cli_fail("no memory for the matrices of rank %d", tgl_dist_rank(dist));
    } else {
        const tgl_status status = bench_run(&s, repeats);
        code = status == TGL_OK ? EXIT_DONE : dist_fail_status(dist, status);
    }
    tgl_dist_plan_destroy(s.plan);
    free_part(dev, &s.a), free_part(dev, &s.b), free_part(dev, &s.c);
    return code;
}
