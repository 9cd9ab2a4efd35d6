/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a reader's kernel on the simulator or on a GPU. Elements are small multiples of 1/4, except
 * in check_order() and check_error(), so that all sums are exact and the result must be equal to
 * the reference, whatever the order of summation.
 */
#include "learn_check.h"
#include "cublas.h"
#include "elements.h"
#include "learn_gates.h"
#include "learn_process.h"
#include "learn_source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A product that the kernel is checked with. pad: number of unused elements after each row of each
 * matrix. shift: number of unused elements before the first element of each matrix, which misalign
 * it. k = 0: the kernel must not read A and B. */
typedef struct learn_case {
    int m, n, k, pad, shift;
    double alpha, beta;
} learn_case;

static const learn_case cases[] = {
    {64, 64, 64, 0, 0, 1, 0},    {1, 1, 1, 0, 0, 1, 0},    {33, 29, 37, 2, 0, 1, 0},
    {70, 65, 19, 4, 0, 0.5, -1}, {40, 68, 36, 0, 1, 1, 2}, {5, 7, 0, 0, 0, 1, 2},
    {33, 40, 300, 4, 0, 1, 0},   {30, 29, 37, 3, 0, 1, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* The exercise, the device, and the matrices of the product that is being computed. */
typedef struct learner {
    const exercise *e;
    const char *file, *source, *device;
    int side; /* m, n and k of the product that is timed on a GPU */
    tgl_device *dev;
    learn_case at; /* the product that is being computed */
    tgl_problem problem;
    tgl_plan *plan;
    void *memory[3];            /* allocations of A, B and C on the device */
    char *host[3];              /* allocations of A, B and C on the host */
    const char *A, *B, *C, *C0; /* first elements on the host; C0: a copy of C from before the
                                   run */
} learner;

/* Whether the device is the simulator, which counts accesses; on a GPU, times are taken instead. */
static bool is_simulated(const learner *l)
{
    return strcmp(l->device, "sim") == 0;
}

/* The address on the device of the first element of matrix `number` (0: A, 1: B, 2: C). */
static void *operand(const learner *l, int number)
{
    return (char *)l->memory[number] + (size_t)l->at.shift * tgl_type_size(l->e->type);
}

/* ---- A run ----------------------------------------------------------------------------------- */

/* The next number of a linear congruential generator. is_exact: a multiple of 1/4 in [-1, 1];
 * otherwise any number in [-1, 1), so that sums depend on the order of summation. */
static double next_element(unsigned *state, bool is_exact)
{
    *state = *state * 1664525u + 1013904223u;
    return is_exact ? (int)((*state >> 16) % 9) * 0.25 - 1 : (double)*state / 2147483648.0 - 1;
}

/* Allocates matrix `number` (0: A, 1: B, 2: C) on the host and on the device, and fills it with NaN
 * if is_nan, else with numbers of next_element(). */
static tgl_status make_matrix(learner *l, int number, int64_t elements, bool is_exact, bool is_nan)
{
    const tgl_type type = l->e->type;
    const int64_t room = elements + l->at.shift + 1;
    const size_t bytes = (size_t)room * tgl_type_size(type);
    unsigned state = (unsigned)number;
    l->host[number] = malloc(bytes);
    if (l->host[number] == NULL) return TGL_NO_MEMORY;
    for (int64_t i = 0; i < room; i++)
        element_set(type, l->host[number], i, is_nan ? NAN : next_element(&state, is_exact));
    CLI_TRY(tgl_alloc(l->dev, bytes, &l->memory[number]));
    return tgl_upload(l->dev, l->memory[number], l->host[number], bytes, NULL);
}

static tgl_status make_matrices(learner *l, bool is_exact)
{
    const learn_case *c = &l->at;
    const int64_t elements = c->m * l->problem.ldc;
    const size_t size = tgl_type_size(l->e->type), skip = (size_t)c->shift * size;
    CLI_TRY(make_matrix(l, 0, c->m * l->problem.lda, is_exact, false));
    CLI_TRY(make_matrix(l, 1, c->k * l->problem.ldb, is_exact, false));
    CLI_TRY(make_matrix(l, 2, elements, true, c->beta == 0));
    const size_t bytes = (size_t)(elements + 1) * size; /* + 1, so that the size is not 0 */
    char *before = malloc(bytes);
    if (before == NULL) return TGL_NO_MEMORY;
    memcpy(before, l->host[2] + skip, bytes);
    l->A = l->host[0] + skip;
    l->B = l->host[1] + skip;
    l->C = l->host[2] + skip;
    l->C0 = before;
    return TGL_OK;
}

static void release_case(learner *l)
{
    tgl_plan_destroy(l->plan);
    for (int i = 0; i < 3; i++) {
        tgl_free(l->dev, l->memory[i]);
        free(l->host[i]);
    }
    free((char *)l->C0);
    l->plan = NULL;
    memset(l->memory, 0, sizeof l->memory);
    memset(l->host, 0, sizeof l->host);
    l->A = l->B = l->C = l->C0 = NULL;
}

/* Changes a product so that TMA can copy its matrices: every row must begin at a multiple of 16
 * bytes, which is 8 elements of f16. */
static void align(learn_case *c)
{
    c->n = (c->n + 7) / 8 * 8;
    c->k = (c->k + 7) / 8 * 8;
    c->pad *= 8;
    c->shift = 0;
}

/* Makes a plan and matrices for a product, runs the kernel once, and downloads the result. The
 * caller must call release_case() even after a failure. */
static tgl_status run_case(learner *l, const learn_case *c, bool is_exact)
{
    l->at = *c;
    if (l->e->columns > 0) l->at.n = l->e->columns;
    if (l->e->maps > 0) align(&l->at);
    l->problem = cli_problem(l->e->type, l->at.m, l->at.n, l->at.k);
    l->problem.lda = l->at.k + l->at.pad > 0 ? l->at.k + l->at.pad : 1;
    l->problem.ldb = l->at.n + l->at.pad;
    l->problem.ldc = l->at.n + l->at.pad;
    CLI_TRY(make_matrices(l, is_exact));
    CLI_TRY(learn_plan_make(l->dev, &l->problem, l->e, l->file, l->source, &l->plan));
    CLI_TRY(tgl_plan_run(l->plan, c->alpha, operand(l, 0), operand(l, 1), c->beta, operand(l, 2),
                         NULL));
    return tgl_download(l->dev, l->host[2] + (l->C - l->host[2]), operand(l, 2),
                        (size_t)(l->at.m * l->problem.ldc) * tgl_type_size(l->e->type), NULL);
}

/* The first line of a compiler's log, apart from the log's first line, that begins with this file's
 * name and a line number, as "FILE:12"; NULL: there is none. */
static const char *complaint_of(const char *log, const char *file)
{
    const size_t length = strlen(file);
    while ((log = strchr(log, '\n')) != NULL) {
        log++;
        if (strncmp(log, file, length) == 0 && log[length] == ':' && log[length + 1] >= '0' &&
            log[length + 1] <= '9')
            return log;
    }
    return NULL;
}

/* Whether the first error in a compiler's log is in "kernel.c", which is code that the simulator
 * writes to call the kernel, and not in the reader's file. */
static bool is_of_caller(const char *log, const char *file)
{
    const char *caller = complaint_of(log, "kernel.c"), *own = complaint_of(log, file);
    return caller != NULL && (own == NULL || caller < own);
}

/* Prints why the run of a product failed. Always returns false. */
static bool say_failure(const learner *l, tgl_status status)
{
    char message[8192];
    if (tgl_last_error(message, sizeof message) == 0)
        snprintf(message, sizeof message, "%s", tgl_status_text(status));
    if (status == TGL_COMPILE && is_of_caller(message, l->file))
        printf(
            "error     %s: the kernel %s cannot be launched: it keeps its name and the parameters "
            "of the starter\n",
            l->file, l->e->name);
    else if (status == TGL_COMPILE)
        printf("error     %s\n", message);
    else
        printf("error     at m = %d, n = %d, k = %d:\n          %s\n", l->at.m, l->at.n, l->at.k,
               message);
    return false;
}

/* ---- Results --------------------------------------------------------------------------------- */

static double expected_at(const learner *l, int row, int col)
{
    const tgl_type type = l->e->type;
    const tgl_problem *p = &l->problem;
    double sum = 0;
    for (int i = 0; i < l->at.k; i++)
        sum +=
            element_get(type, l->A, row * p->lda + i) * element_get(type, l->B, i * p->ldb + col);
    sum *= l->at.alpha;
    if (l->at.beta != 0) sum += l->at.beta * element_get(type, l->C0, row * p->ldc + col);
    return element_round(type, sum);
}

static bool is_right(const learner *l)
{
    for (int row = 0; row < l->at.m; row++)
        for (int col = 0; col < l->at.n; col++) {
            const double found = element_get(l->e->type, l->C, row * l->problem.ldc + col);
            const double expected = expected_at(l, row, col);
            if (found == expected) continue;
            printf("results   WRONG at m = %d, n = %d, k = %d, alpha = %g, beta = %g: row %d, "
                   "column %d of C is %g and must be %g\n",
                   l->at.m, l->at.n, l->at.k, l->at.alpha, l->at.beta, row, col, found, expected);
            return false;
        }
    return true;
}

static bool check_results(learner *l)
{
    for (int i = 0; i < CASES; i++) {
        const tgl_status status = run_case(l, &cases[i], true);
        const bool ok = status == TGL_OK ? is_right(l) : say_failure(l, status);
        release_case(l);
        if (!ok) return false;
    }
    printf("results   right at %d sizes%s\n", CASES, is_simulated(l) ? ", without races" : "");
    return true;
}

/* ---- The same sums in any order of the blocks ------------------------------------------------ */

/* Runs the kernel on a new device; the simulator runs its blocks in a random order, determined by
 * `seed`. C: memory for the result without padding. */
static tgl_status run_shuffled(learner *l, const learn_case *c, int seed, char *C)
{
    char text[16];
    const tgl_device_options options = {.size = sizeof options, .threads = 1};
    tgl_device *const first = l->dev;
    snprintf(text, sizeof text, "%d", seed);
    setenv("TEGULA_SIM_SEED", text, 1);
    CLI_TRY(tgl_device_open(l->device, &options, &l->dev));
    const tgl_status status = run_case(l, c, false);
    if (status == TGL_OK) memcpy(C, l->C, (size_t)(c->m * c->n) * sizeof(float));
    release_case(l);
    tgl_device_close(l->dev);
    l->dev = first;
    return status;
}

static bool check_order(learner *l)
{
    enum { ORDERS = 4, SIDE = 32 };
    static const learn_case c = {SIDE, SIDE, 700, 0, 0, 1, 0};
    char results[2][SIDE * SIDE * sizeof(float)] = {{0}}; /* the first, and the latest */
    for (int seed = 1; seed <= ORDERS; seed++) {
        const tgl_status status = run_shuffled(l, &c, seed, results[seed > 1]);
        if (status != TGL_OK) return say_failure(l, status);
        if (seed > 1 && memcmp(results[0], results[1], sizeof results[0]) != 0) {
            printf("results   NOT REPEATABLE: the sums depend on the order in which the blocks "
                   "finish\n");
            return false;
        }
    }
    printf("results   the same bits in %d %s\n", ORDERS,
           is_simulated(l) ? "orders of the blocks" : "runs");
    return true;
}

/* ---- Gates ----------------------------------------------------------------------------------- */

static bool check_gates(learner *l)
{
    const exercise *e = l->e;
    const learn_case c = {e->gate_m, e->gate_m, e->gate_k, 0, 0, 1, 0};
    const tgl_status status = run_case(l, &c, true);
    const bool ok = status == TGL_OK
                        ? is_right(l) && learn_gates_check(e, &l->problem, l->plan, l->file)
                        : say_failure(l, status);
    release_case(l);
    return ok;
}

/* ---- Accuracy -------------------------------------------------------------------------------- */

/* The greatest error of an element of C, relative to the sum of |a*b| of its products, in units of
 * 2^-24. */
static double error_of(const learner *l)
{
    const tgl_problem *p = &l->problem;
    const tgl_type type = l->e->type;
    double max = 0;
    for (int row = 0; row < l->at.m; row++)
        for (int col = 0; col < l->at.n; col++) {
            double sum = 0, scale = 0;
            for (int i = 0; i < l->at.k; i++) {
                const double product = element_get(type, l->A, row * p->lda + i) *
                                       element_get(type, l->B, i * p->ldb + col);
                sum += product;
                scale += fabs(product);
            }
            const double error = fabs(element_get(type, l->C, row * p->ldc + col) - sum) / scale;
            if (!(error <= max)) max = error; /* also true if the error is NaN */
        }
    return ldexp(max, 24);
}

/* Checks the error of a product of numbers with 24 significant bits, whose sums are not exact. */
static bool check_error(learner *l)
{
    static const learn_case c = {64, 64, 64, 0, 0, 1, 0};
    const tgl_status status = run_case(l, &c, false);
    const double error = status == TGL_OK ? error_of(l) : 0;
    const bool ok = error <= l->e->error_max;
    release_case(l);
    if (status != TGL_OK) return say_failure(l, status);
    printf("gate      %-28s %8.2f, wanted at most %d.00: %s\n"
           "          = largest error of an element / sum of its |a * b|, in units of 2^-24\n",
           "error of other numbers", error, l->e->error_max, ok ? "passed" : "FAILED");
    return ok;
}

/* ---- Times ----------------------------------------------------------------------------------- */

enum { TIMED_RUNS = 7 };

/* *seconds := the shortest of TIMED_RUNS runs of a plan with the matrices of the current
 * product. */
static tgl_status time_plan(const learner *l, tgl_plan *plan, tgl_timer *timer, double *seconds)
{
    *seconds = INFINITY;
    for (int i = 0; i < TIMED_RUNS; i++) {
        double now;
        CLI_TRY(tgl_timer_start(timer, NULL));
        CLI_TRY(tgl_plan_run(plan, 1, operand(l, 0), operand(l, 1), 0, operand(l, 2), NULL));
        CLI_TRY(tgl_timer_stop(timer, NULL, &now));
        if (now < *seconds) *seconds = now;
    }
    return TGL_OK;
}

/* *seconds := the shortest of TIMED_RUNS runs of a product of cuBLAS. */
static tgl_status time_cublas(const cublas_product *x, operand_set set, tgl_timer *timer,
                              double *seconds)
{
    *seconds = INFINITY;
    for (int i = 0; i < TIMED_RUNS; i++) {
        double now;
        CLI_TRY(tgl_timer_start(timer, NULL));
        if (!cublas_run(x, set)) return TGL_DRIVER;
        CLI_TRY(tgl_timer_stop(timer, NULL, &now));
        if (now < *seconds) *seconds = now;
    }
    return TGL_OK;
}

static void say_time(const learner *l, const char *name, double seconds)
{
    const double flops = 2.0 * l->at.m * (double)l->at.n * l->at.k;
    printf("time      %-28s %10.3f ms, %8.3f TFLOP/s\n", name, seconds * 1e3,
           flops / seconds / 1e12);
}

/* Times cuBLAS on random matrices for the same problem, and prints the time, or why there is
 * none. */
static tgl_status compare_cublas(const learner *l, tgl_timer *timer)
{
    char message[1024];
    cublas *library = cublas_open(l->dev, message, sizeof message);
    if (library == NULL) {
        printf("time      %-28s %s\n", "cuBLAS", message);
        return TGL_OK;
    }
    operands o;
    double seconds;
    tgl_status status = operands_make(&o, l->dev, &l->problem, false);
    cublas_product *product =
        status == TGL_OK ? cublas_prepare(library, CUBLAS_DEFAULT, &o, message, sizeof message)
                         : NULL;
    if (product != NULL) {
        status = time_cublas(product, operands_for(&o, 0), timer, &seconds);
        if (status == TGL_OK) say_time(l, "cuBLAS", seconds);
    } else if (status == TGL_OK) {
        printf("time      %-28s %s\n", "cuBLAS", message);
    }
    cublas_release(product);
    operands_release(&o);
    cublas_close(library);
    return status;
}

static tgl_status compare_rung(learner *l, tgl_timer *timer)
{
    char kernel[64];
    double seconds;
    snprintf(kernel, sizeof kernel, "ladder/%s", l->e->rung);
    tgl_plan *rung;
    CLI_TRY(cli_plan(l->dev, &l->problem, kernel, &rung));
    const tgl_status status = time_plan(l, rung, timer, &seconds);
    if (status == TGL_OK) say_time(l, kernel, seconds);
    tgl_plan_destroy(rung);
    return status;
}

/* Times the reader's kernel, the kernel of the ladder with the same idea, and cuBLAS, and prints
 * the times. */
static tgl_status compare_times(learner *l, tgl_timer *timer)
{
    const learn_case c = {l->side, l->side, l->side, 0, 0, 1, 0};
    double seconds;
    CLI_TRY(run_case(l, &c, true));
    CLI_TRY(time_plan(l, l->plan, timer, &seconds));
    printf("times     at m = %d, n = %d, k = %d\n", l->at.m, l->at.n, l->at.k);
    say_time(l, l->file, seconds);
    if (l->e->error_max > 0) l->problem.compute = TGL_COMPUTE_TF32;
    if (l->e->rung != NULL) CLI_TRY(compare_rung(l, timer));
    return compare_cublas(l, timer);
}

static bool check_times(learner *l)
{
    tgl_timer *timer;
    tgl_status status = tgl_timer_create(l->dev, &timer);
    if (status == TGL_OK) status = compare_times(l, timer);
    tgl_timer_destroy(timer);
    release_case(l);
    if (status != TGL_OK) return say_failure(l, status);
    puts("the gates are those of the simulator: check without --device");
    return true;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* The arguments of learn_check(), which the process of the check gets. */
typedef struct task {
    const exercise *e;
    const char *file, *source, *device;
    int side;
} task;

static bool check_all(const void *context)
{
    const task *of = context;
    learner l = {
        .e = of->e, .file = of->file, .source = of->source, .device = of->device, .side = of->side};
    const tgl_device_options options = {.size = sizeof options, .threads = 1};
    const tgl_status status = tgl_device_open(l.device, &options, &l.dev);
    if (status != TGL_OK) {
        cli_fail_status(status);
        return false;
    }
    bool ok = check_results(&l);
    ok = ok && (!l.e->is_split || check_order(&l));
    const bool is_accurate = !ok || l.e->error_max == 0 || check_error(&l);
    ok = ok && (is_simulated(&l) ? check_gates(&l) : check_times(&l)) && is_accurate;
    tgl_device_close(l.dev);
    return ok;
}

bool learn_check(const exercise *e, const char *file, const char *source, const char *device,
                 int side, bool is_quiet)
{
    const task of = {e, file, source, device, side};
    char why[512];
    if (!is_quiet) printf("%s: %s\n", e->name, e->title);
    if (!learn_source_is_refused(e, source, why, sizeof why))
        return learn_run(file, strcmp(device, "sim") == 0, is_quiet, check_all, &of);
    if (!is_quiet) printf("error     %s: %s\n", file, why);
    return false;
}
