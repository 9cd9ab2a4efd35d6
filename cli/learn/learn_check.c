/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a reader's kernel on the simulator. Elements are small multiples of 1/4, so that all sums
 * are exact and the result must be equal to the reference, whatever the order of summation.
 */
#include "learn_check.h"
#include "elements.h"
#include "learn_gates.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SECONDS_MAX = 9,       /* of processor time */
    WALL_SECONDS_MAX = 30, /* a kernel may sleep, and a compiler wait for input */
    CHILD_SOLVED = 10,
    CHILD_UNSOLVED = 11, /* exit codes that no failure has */
};

/* The sizes at which results are checked. pad: elements between the rows of each matrix. shift:
 * elements before its first one, so that it is not aligned. k = 0: there is no product, and A and B
 * must not be read. */
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

/* The device, the kernel, and the matrices of the running case. */
typedef struct learner {
    const exercise *e;
    const char *file, *source;
    tgl_device *dev;
    learn_case at; /* the size */
    tgl_problem problem;
    tgl_plan *plan;
    void *memory[3];      /* of A, B and C */
    char *A, *B, *C, *C0; /* the first elements; C0: a copy of C from before the run */
} learner;

/* ---- A run ----------------------------------------------------------------------------------- */

/* A number from a small generator. is_exact: a multiple of 1/4 in [-1, 1]; otherwise any number in
 * [-1, 1), so that the sum depends on the order of summation. */
static double next_element(unsigned *state, bool is_exact)
{
    *state = *state * 1664525u + 1013904223u;
    return is_exact ? (int)((*state >> 16) % 9) * 0.25 - 1 : (double)*state / 2147483648.0 - 1;
}

/* Allocates and fills a matrix; returns its first element. NULL: no memory. */
static char *make_matrix(learner *l, int number, int64_t elements, bool is_exact)
{
    const tgl_type type = l->e->type;
    const int64_t room = elements + l->at.shift + 1;
    unsigned state = (unsigned)number;
    void **memory = &l->memory[number];
    if (tgl_alloc(l->dev, (size_t)room * tgl_type_size(type), memory) != TGL_OK) return NULL;
    for (int64_t i = 0; i < room; i++)
        element_set(type, *memory, i, next_element(&state, is_exact));
    return (char *)*memory + (size_t)l->at.shift * tgl_type_size(type);
}

static tgl_status make_matrices(learner *l, bool is_exact)
{
    const learn_case *c = &l->at;
    const int64_t elements = c->m * l->problem.ldc;
    const size_t bytes = (size_t)elements * tgl_type_size(l->e->type);
    l->A = make_matrix(l, 0, c->m * l->problem.lda, is_exact);
    l->B = make_matrix(l, 1, c->k * l->problem.ldb, is_exact);
    l->C = make_matrix(l, 2, elements, true);
    l->C0 = malloc(bytes);
    if (l->A == NULL || l->B == NULL || l->C == NULL || l->C0 == NULL) return TGL_NO_MEMORY;
    for (int64_t i = 0; c->beta == 0 && i < elements; i++)
        element_set(l->e->type, l->C, i, NAN);
    memcpy(l->C0, l->C, bytes);
    return TGL_OK;
}

static void release_case(learner *l)
{
    tgl_plan_destroy(l->plan);
    for (int i = 0; i < 3; i++)
        tgl_free(l->dev, l->memory[i]);
    free(l->C0);
    l->plan = NULL;
    memset(l->memory, 0, sizeof l->memory);
    l->A = l->B = l->C = l->C0 = NULL;
}

/* TMA copies from rows that begin at multiples of 16 bytes: 8 elements of f16. */
static void align(learn_case *c)
{
    c->n = (c->n + 7) / 8 * 8;
    c->k = (c->k + 7) / 8 * 8;
    c->pad *= 8;
    c->shift = 0;
}

/* Runs the kernel once; the plan and the matrices stay for release_case(). */
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
    return tgl_plan_run(l->plan, c->alpha, l->A, l->B, c->beta, l->C, NULL);
}

/* Prints why the run of a case failed. */
static bool say_failure(const learner *l, tgl_status status)
{
    char message[8192];
    if (tgl_last_error(message, sizeof message) == 0)
        snprintf(message, sizeof message, "%s", tgl_status_text(status));
    if (status == TGL_COMPILE)
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
    printf("results   right at %d sizes, without races\n", CASES);
    return true;
}

/* ---- The same sums in any order of the blocks ------------------------------------------------ */

/* Runs the kernel with blocks in a random order. C: gets the result, which has no padding. */
static tgl_status run_shuffled(learner *l, const learn_case *c, int seed, char *C)
{
    char text[16];
    const tgl_device_options options = {.size = sizeof options, .threads = 1};
    tgl_device *const first = l->dev;
    snprintf(text, sizeof text, "%d", seed);
    setenv("TEGULA_SIM_SEED", text, 1);
    CLI_TRY(tgl_device_open("sim", &options, &l->dev));
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
    printf("results   the same bits in %d orders of the blocks\n", ORDERS);
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

/* ---- A process of its own -------------------------------------------------------------------- */

static bool check_all(const exercise *e, const char *file, const char *source)
{
    learner l = {.e = e, .file = file, .source = source};
    const tgl_device_options options = {.size = sizeof options, .threads = 1};
    const tgl_status status = tgl_device_open("sim", &options, &l.dev);
    if (status != TGL_OK) {
        cli_fail_status(status);
        return false;
    }
    printf("%s: %s\n", e->name, e->title);
    bool ok = check_results(&l);
    ok = ok && (!e->is_split || check_order(&l));
    ok = ok && check_gates(&l);
    tgl_device_close(l.dev);
    return ok;
}

_Noreturn static void run_child(const exercise *e, const char *file, const char *source)
{
    const struct rlimit seconds = {SECONDS_MAX, SECONDS_MAX + 1}, no_core = {0, 0};
    signal(SIGXCPU, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &seconds);
    alarm(WALL_SECONDS_MAX);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it ends with its parent */
    const bool ok = check_all(e, file, source);
    fflush(stdout);
    _exit(ok ? CHILD_SOLVED : CHILD_UNSOLVED);
}

/* Prints how the process of a check ended, unless it has said so itself. */
static void say_end(const char *file, int ended)
{
    const int number = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
    if (number == SIGALRM)
        printf("error     %s: stopped after %d s: it waits for something\n", file,
               WALL_SECONDS_MAX);
    else if (number == SIGXCPU || number == SIGKILL)
        printf("error     %s: stopped after %d s of processor time: an endless loop, or far more "
               "work than the exercise needs\n",
               file, SECONDS_MAX);
    else if (number == SIGFPE)
        printf("error     %s: a division of integers by zero\n", file);
    else
        printf("error     %s: the kernel crashed (%s): an index or a pointer leads out of an array "
               "in registers, or to nowhere\n",
               file, number != 0 ? strsignal(number) : "unexpected end");
}

bool learn_check(const exercise *e, const char *file, const char *source, bool is_quiet)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return cli_fail_false("cannot start a process: %s", strerror(errno));
    if (child == 0) {
        if (is_quiet && freopen("/dev/null", "w", stdout) == NULL) _exit(CHILD_UNSOLVED);
        run_child(e, file, source);
    }
    int ended;
    while (waitpid(child, &ended, 0) < 0)
        if (errno != EINTR) return cli_fail_false("lost a process: %s", strerror(errno));
    const int code = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    if (code == CHILD_SOLVED) return true;
    if (code != CHILD_UNSOLVED && !is_quiet) say_end(file, ended);
    return false;
}
