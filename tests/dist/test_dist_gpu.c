/* SPDX-License-Identifier: Apache-2.0
 *
 * tegula/nccl.h between threads, each with a device of the fake driver: random products by copy
 * engines and by NCCL, and failures.
 */
#include "dist_case.h"
#include "tegula/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { RANKS = 4, TIMEOUT = 20 };

typedef struct rank_state rank_state;
typedef void rank_function(rank_state *s);

/* What a rank does and finds. */
struct rank_state {
    int rank, ranks;
    unsigned char id[TGL_NCCL_ID_BYTES];
    double timeout_s;
    tgl_nccl_engine engine;
    rank_function *function;
    tgl_device *dev;
    tgl_dist *dist;
    tgl_status status;
    char error[400];
    bool ok;
    double seconds;
    int64_t panels;
};

static int number_of(const char *variable, const char *name)
{
    void *library = dlopen(getenv(variable), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    int (*number)(void) = (int (*)(void))dlsym(library, name);
    assert_non_null(number);
    const int result = number();
    dlclose(library);
    return result;
}

static int fake_number(const char *name)
{
    return number_of("TEGULA_LIBCUDA", name);
}

/* Messages that NCCL has moved. */
static int nccl_messages(void)
{
    return number_of("TEGULA_LIBNCCL", "fake_nccl_messages");
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

/* Ranks of a host; 0: all are of this one. */
static int ranks_of_host;
static _Thread_local char boot_id[40]; /* empty: that of this machine */

/* By this file the library recognizes a host. */
__attribute__((visibility("default"))) FILE *fopen(const char *filename, const char *modes)
{
    if (boot_id[0] != '\0' && strcmp(filename, "/proc/sys/kernel/random/boot_id") == 0)
        return fmemopen(boot_id, strlen(boot_id), "r");
    FILE *(*own)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    return own(filename, modes);
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

static bool uses_defaults; /* the machine of the GPU, not one with slow links */

static void *run_rank(void *argument)
{
    rank_state *s = argument;
    char name[16];
    snprintf(name, sizeof name, "cuda:%d", s->rank);
    if (ranks_of_host > 0) snprintf(boot_id, sizeof boot_id, "host-%d\n", s->rank / ranks_of_host);
    if (tgl_device_open(name, NULL, &s->dev) != TGL_OK) abort();
    tgl_nccl_options options = {.size = sizeof options,
                                .id = s->id,
                                .rank = s->rank,
                                .ranks = s->ranks,
                                .timeout_s = s->timeout_s,
                                .engine = s->engine,
                                .machine = {.flops_per_s = 1e9,
                                            .operand_bytes_per_s = 1e12,
                                            .bytes_per_s = 1e6,
                                            .latency_s = 1e-9,
                                            .product_s = 1e-9}};
    if (uses_defaults) options.machine = (tgl_dist_machine){.size = 0};
    s->status = tgl_dist_open_nccl(&options, s->dev, &s->dist);
    if (s->status == TGL_OK) s->function(s);
    if (s->status != TGL_OK && s->error[0] == '\0') tgl_dist_last_error(s->error, sizeof s->error);
    tgl_dist_close(s->dist);
    tgl_device_close(s->dev);
    return NULL;
}

/* Runs a function on all ranks. */
static void run_ranks(rank_state *states, int ranks, tgl_nccl_engine engine, double timeout_s,
                      rank_function *function)
{
    pthread_t threads[RANKS];
    unsigned char id[TGL_NCCL_ID_BYTES];
    assert_int_equal(tgl_dist_nccl_id(id), TGL_OK);
    for (int rank = 0; rank < ranks; rank++) {
        states[rank] = (rank_state){.rank = rank,
                                    .ranks = ranks,
                                    .timeout_s = timeout_s,
                                    .engine = engine,
                                    .function = function};
        memcpy(states[rank].id, id, sizeof id);
        assert_int_equal(pthread_create(&threads[rank], NULL, run_rank, &states[rank]), 0);
    }
    for (int rank = 0; rank < ranks; rank++)
        pthread_join(threads[rank], NULL);
}

static int check_fakes(void **state)
{
    (void)state;
    unsetenv("FAKE_CUDA_SAME_GPU");
    unsetenv("FAKE_NCCL_ERROR");
    return fake_number("fake_cuda_misuses") + fake_number("fake_cuda_live") +
           fake_number("fake_cuda_mapped");
}

/* ---- Products -------------------------------------------------------------------------------- */

static void run_cases(rank_state *s)
{
    enum { CASES = 16 };
    s->ok = true;
    for (unsigned i = 0; i < CASES && s->ok; i++)
        s->ok = dist_case_run(s->dist, s->dev, 7000 * (unsigned)s->ranks + i);
}

static void random_products(tgl_nccl_engine engine)
{
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        rank_state states[RANKS];
        run_ranks(states, ranks, engine, TIMEOUT, run_cases);
        for (int rank = 0; rank < ranks; rank++) {
            assert_int_equal(states[rank].status, TGL_OK);
            assert_true(states[rank].ok);
        }
    }
}

static void by_copy_engines(void **state)
{
    (void)state;
    const int before = nccl_messages();
    random_products(TGL_NCCL_ENGINE_AUTO);
    assert_int_equal(nccl_messages(), before);
}

/* Ranks of several hosts find by themselves that NCCL has to move the data. */
static void on_two_hosts(void **state)
{
    (void)state;
    const int before = nccl_messages();
    ranks_of_host = 2;
    rank_state states[RANKS];
    run_ranks(states, 3, TGL_NCCL_ENGINE_AUTO, TIMEOUT, run_cases);
    ranks_of_host = 0;
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(states[rank].status, TGL_OK);
        assert_true(states[rank].ok);
    }
    assert_true(nccl_messages() > before);
}

static void by_nccl(void **state)
{
    (void)state;
    random_products(TGL_NCCL_ENGINE_NCCL);
}

/* rank 0's prediction for a product whose operands move, on the machine of the GPU. */
static void predict(rank_state *s)
{
    tgl_problem problem;
    tgl_dist_layout x;
    tgl_dist_plan *plan;
    tgl_dist_figures figures = {.size = sizeof figures};
    tgl_problem_init(&problem, sizeof problem, TGL_F32, 512, 512, 512);
    tgl_dist_rows(&x, sizeof x, 512, 512, s->ranks);
    s->status = tgl_dist_plan_create(s->dist, &problem, &x, &x, &x, NULL, &plan);
    if (s->status != TGL_OK) return;
    tgl_dist_plan_figures(plan, &figures);
    s->seconds = figures.seconds;
    tgl_dist_plan_destroy(plan);
}

/* A network is slower than the links of a host, also if NCCL moves the data there. */
static void plans_for_a_network(void **state)
{
    (void)state;
    rank_state states[3][RANKS];
    uses_defaults = true;
    for (int i = 0; i < 3; i++) {
        ranks_of_host = i < 2 ? 2 : 1;
        run_ranks(states[i], 2, i == 0 ? TGL_NCCL_ENGINE_AUTO : TGL_NCCL_ENGINE_NCCL, TIMEOUT,
                  predict);
        assert_int_equal(states[i][0].status, TGL_OK);
    }
    uses_defaults = false;
    ranks_of_host = 0;
    assert_true(states[0][0].seconds == states[1][0].seconds);
    assert_true(states[2][0].seconds > states[1][0].seconds);
}

/* ---- The ring -------------------------------------------------------------------------------- */

/* A product of small integers whose partial sums go around the ranks. */
typedef struct ring_case {
    int64_t m, n, k;
    tgl_order order;
    bool is_replicated; /* all-reduce; else reduce-scatter */
    double beta;
    bool has_bias;
    int chunks;  /* that the plan must have for all shards; 1: one product */
    int padding; /* elements between the lines of C, times the number of the rank */
} ring_case;

static const ring_case ring_cases[] = {
    {512, 8, 12, TGL_ROW_MAJOR, false, 0, true, 2, 0},
    {512, 8, 12, TGL_ROW_MAJOR, true, 0, false, 2, 0},
    {2048, 5, 7, TGL_ROW_MAJOR, false, 1, false, 8, 0},
    {2048, 3, 9, TGL_ROW_MAJOR, true, -1, true, 8, 0},
    {9, 512, 12, TGL_COL_MAJOR, false, 0, false, 2, 0},
    {700, 4, 6, TGL_ROW_MAJOR, true, 0, true, 2, 0},
    {30, 20, 16, TGL_ROW_MAJOR, false, 2, true, 0, 0},
    {31, 20, 16, TGL_ROW_MAJOR, true, 1, true, 0, 0},
    {20, 33, 16, TGL_COL_MAJOR, false, 1, false, 0, 0},
    {3, 20, 16, TGL_ROW_MAJOR, true, 0, false, 0, 0},
    {512, 8, 12, TGL_ROW_MAJOR, true, 1, true, 2, 3},
    {512, 8, 12, TGL_ROW_MAJOR, false, 1, true, 2, 3},
};

static float small(int64_t i, int64_t salt)
{
    return (float)((i * 7 + salt * 13 + i / 5) % 5 - 2);
}

/* C[i][j] of the whole result. */
static float expected(const ring_case *c, int64_t i, int64_t j)
{
    float sum = (float)c->beta * small(i + 3 * j, 4) + (c->has_bias ? small(j, 3) : 0);
    for (int64_t p = 0; p < c->k; p++)
        sum += small(i * c->k + p, 1) * small(p * c->n + j, 2);
    return sum;
}

typedef struct ring_part {
    tgl_dist_layout layout;
    int64_t rows, columns, ld;
    size_t bytes;
    float *host;
    void *memory;
} ring_part;

static int64_t ld_of(const rank_state *s, const ring_case *c, const ring_part *x, bool is_c)
{
    const int64_t tight = c->order == TGL_ROW_MAJOR ? x->columns : x->rows;
    return tight + (is_c ? s->rank * c->padding : 0);
}

/* salt 1: A, 2: B, 4: C. */
static void make_ring_part(rank_state *s, const ring_case *c, ring_part *x, int salt)
{
    const bool by_rows = c->order == TGL_ROW_MAJOR;
    tgl_dist_local(&x->layout, s->rank, &x->rows, &x->columns);
    x->ld = ld_of(s, c, x, salt == 4);
    x->bytes = sizeof(float) * (size_t)((by_rows ? x->rows : x->columns) * x->ld);
    x->host = calloc(1, x->bytes + 1);
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++) {
            int64_t row, column;
            tgl_dist_index(&x->layout, s->rank, i, j, &row, &column);
            x->host[by_rows ? i * x->ld + j : i + j * x->ld] =
                small(salt == 4 ? row + 3 * column : row * x->layout.columns + column, salt);
        }
    if (tgl_alloc(s->dev, x->bytes, &x->memory) != TGL_OK ||
        (x->bytes > 0 && tgl_upload(s->dev, x->memory, x->host, x->bytes, NULL) != TGL_OK))
        abort();
}

static bool is_right(rank_state *s, const ring_case *c, ring_part *x)
{
    const bool by_rows = c->order == TGL_ROW_MAJOR;
    if (x->bytes > 0 && tgl_download(s->dev, x->host, x->memory, x->bytes, NULL) != TGL_OK)
        return false;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++) {
            int64_t row, column;
            tgl_dist_index(&x->layout, s->rank, i, j, &row, &column);
            const float got = x->host[by_rows ? i * x->ld + j : i + j * x->ld];
            if (got == expected(c, row, column)) continue;
            fprintf(stderr, "rank %d of %d, %lld x %lld: C[%lld][%lld] is %g and not %g\n", s->rank,
                    s->ranks, (long long)c->m, (long long)c->n, (long long)row, (long long)column,
                    (double)got, (double)expected(c, row, column));
            return false;
        }
    return true;
}

static void *make_bias(rank_state *s, const ring_case *c)
{
    float bias[64];
    void *memory = NULL;
    for (int64_t j = 0; c->has_bias && j < c->n; j++)
        bias[j] = small(j, 3);
    if (c->has_bias && (tgl_alloc(s->dev, sizeof bias, &memory) != TGL_OK ||
                        tgl_upload(s->dev, memory, bias, sizeof bias, NULL) != TGL_OK))
        abort();
    return memory;
}

/* Of a plan, a run on freshly made parts. The second run uses all buffers and flags again. */
static bool run_ring_plan(rank_state *s, const ring_case *c, tgl_dist_plan *plan, ring_part part[3])
{
    bool ok = true;
    for (int run = 0; run < 2 && ok; run++) {
        for (int x = 0; x < 3; x++)
            make_ring_part(s, c, &part[x], x == 2 ? 4 : x + 1);
        void *bias = make_bias(s, c);
        ok = tgl_dist_plan_run(plan, 1, part[0].memory, part[1].memory, c->beta, part[2].memory,
                               bias) == TGL_OK &&
             tgl_dist_synchronize(s->dist) == TGL_OK && is_right(s, c, &part[2]);
        tgl_free(s->dev, bias);
        for (int x = 0; x < 3; x++)
            free(part[x].host), tgl_free(s->dev, part[x].memory);
    }
    return ok;
}

static bool run_ring_case(rank_state *s, const ring_case *c)
{
    tgl_problem problem;
    tgl_dist_plan *plan;
    ring_part part[3];
    tgl_problem_init(&problem, sizeof problem, TGL_F32, c->m, c->n, c->k);
    problem.order = c->order;
    tgl_dist_layout *of_a = &part[0].layout, *of_b = &part[1].layout, *of_c = &part[2].layout;
    tgl_dist_columns(of_a, sizeof *of_a, c->m, c->k, s->ranks);
    tgl_dist_rows(of_b, sizeof *of_b, c->k, c->n, s->ranks);
    if (c->is_replicated)
        tgl_dist_replicated(of_c, sizeof *of_c, c->m, c->n);
    else if (c->order == TGL_ROW_MAJOR)
        tgl_dist_rows(of_c, sizeof *of_c, c->m, c->n, s->ranks);
    else
        tgl_dist_columns(of_c, sizeof *of_c, c->m, c->n, s->ranks);
    tgl_dist_local(of_c, s->rank, &part[2].rows, &part[2].columns);
    if (c->padding > 0) of_c->ld = ld_of(s, c, &part[2], true);
    const tgl_epilogue epilogue = {.size = sizeof epilogue, .bias = TGL_BIAS_COLUMN};
    const tgl_dist_options options = {.size = sizeof options,
                                      .epilogue = c->has_bias ? &epilogue : NULL,
                                      .parts_m = 1,
                                      .parts_n = 1,
                                      .parts_k = s->ranks};
    if (tgl_dist_plan_create(s->dist, &problem, of_a, of_b, of_c, &options, &plan) != TGL_OK)
        return false;
    tgl_dist_figures figures = {.size = sizeof figures};
    tgl_dist_plan_figures(plan, &figures);
    const bool is_cut =
        figures.panels == (c->chunks > 0 && s->ranks == 2 ? 2 * c->chunks : figures.panels);
    if (!is_cut) fprintf(stderr, "the plan has %lld panels\n", (long long)figures.panels);
    const bool ok = run_ring_plan(s, c, plan, part);
    tgl_dist_plan_destroy(plan);
    return ok && is_cut;
}

static void run_rings(rank_state *s)
{
    s->ok = true;
    for (size_t i = 0; i < sizeof ring_cases / sizeof ring_cases[0] && s->ok; i++)
        s->ok = run_ring_case(s, &ring_cases[i]);
}

/* Slow links, so that shards are cut into as many chunks as possible. */
static void rings(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= RANKS; ranks++)
        for (int engine = TGL_NCCL_ENGINE_AUTO; engine <= TGL_NCCL_ENGINE_NCCL; engine++) {
            rank_state states[RANKS];
            run_ranks(states, ranks, (tgl_nccl_engine)engine, TIMEOUT, run_rings);
            for (int rank = 0; rank < ranks; rank++) {
                assert_int_equal(states[rank].status, TGL_OK);
                assert_true(states[rank].ok);
            }
        }
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* The layers of Llama-3 70B on two GPUs with the constants of an H200: what stays, and when panels
 * are worth it. */
static void plans_of_layers(void **state)
{
    (void)state;
    static const struct {
        bool gathers, copies;
        int64_t tokens, panels_min, panels_max;
    } layers[] = {{true, false, 64, 1, 1},      {true, false, 4096, 2, 4},
                  {true, false, 16384, 2, 4},   {false, false, 64, 1, 1},
                  {false, false, 256, 1, 1},    {false, false, 2048, 4, 16},
                  {false, false, 16384, 4, 16}, {false, true, 64, 1, 1},
                  {false, true, 256, 1, 1},     {false, true, 4096, 4, 16}};
    const tgl_dist_machine h200 = {.size = sizeof h200,
                                   .flops_per_s = 57e12,
                                   .f32_rate = 0.9,
                                   .half_rate = 11.8,
                                   .operand_bytes_per_s = 3.7e12,
                                   .product_s = 4e-6,
                                   .moves_alone = 1,
                                   .bytes_per_s = 350e9,
                                   .latency_s = 10e-6,
                                   .memory_per_s = 1.7e12};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const int64_t m = layers[i].tokens, n = layers[i].gathers ? 28672 : 8192;
        const int64_t k = layers[i].gathers ? 8192 : 28672;
        tgl_problem problem;
        tgl_dist_layout a, b, c;
        tgl_dist_figures f = {.size = sizeof f};
        char text[2000];
        size_t length;
        tgl_problem_init(&problem, sizeof problem, TGL_BF16, m, n, k);
        if (layers[i].gathers) {
            tgl_dist_rows(&a, sizeof a, m, k, 2);
            tgl_dist_columns(&b, sizeof b, k, n, 2);
            tgl_dist_columns(&c, sizeof c, m, n, 2);
        } else {
            tgl_dist_columns(&a, sizeof a, m, k, 2);
            tgl_dist_rows(&b, sizeof b, k, n, 2);
            tgl_dist_rows(&c, sizeof c, m, n, 2);
            if (layers[i].copies) tgl_dist_replicated(&c, sizeof c, m, n);
        }
        assert_int_equal(
            tgl_dist_explain(&problem, &a, &b, &c, 2, &h200, NULL, &f, text, sizeof text, &length),
            TGL_OK);
        const bool stays = layers[i].gathers ? f.parts_n == 2 : f.parts_k == 2;
        if (!stays || f.panels < layers[i].panels_min || f.panels > layers[i].panels_max)
            fail_msg("%s with %lld tokens: %s", layers[i].gathers ? "all-gather" : "sum",
                     (long long)m, text);
    }
}

/* ---- Failures -------------------------------------------------------------------------------- */

static void no_work(rank_state *s)
{
    s->ok = true;
}

static void assert_all_fail(const rank_state *states, int ranks, tgl_status status,
                            const char *words)
{
    for (int rank = 0; rank < ranks; rank++)
        if (states[rank].status != status || strstr(states[rank].error, words) == NULL)
            fail_msg("rank %d: %s: %s", rank, tgl_status_name(states[rank].status),
                     states[rank].error);
}

static void shared_gpu(void **state)
{
    (void)state;
    rank_state states[RANKS];
    setenv("FAKE_CUDA_SAME_GPU", "1", 1);
    run_ranks(states, 3, TGL_NCCL_ENGINE_AUTO, TIMEOUT, no_work);
    assert_all_fail(states, 3, TGL_BAD_ARGUMENT, "ranks 0 and 1 have the same GPU");
    unsetenv("FAKE_CUDA_SAME_GPU");
    setenv("FAKE_NCCL_ERROR", "5", 1); /* ncclInvalidUsage, as NCCL says it */
    run_ranks(states, 1, TGL_NCCL_ENGINE_NCCL, TIMEOUT, no_work);
    unsetenv("FAKE_NCCL_ERROR");
    assert_all_fail(states, 1, TGL_BAD_ARGUMENT, "each needs a GPU of its own");
}

static void no_nccl(void **state)
{
    (void)state;
    unsigned char id[TGL_NCCL_ID_BYTES];
    char text[400], own[400];
    snprintf(own, sizeof own, "%s", getenv("TEGULA_LIBNCCL"));
    setenv("TEGULA_LIBNCCL", "/nonexistent/libnccl.so", 1);
    assert_int_equal(tgl_dist_nccl_id(id), TGL_UNSUPPORTED);
    setenv("TEGULA_LIBNCCL", own, 1);
    tgl_dist_last_error(text, sizeof text);
    assert_non_null(strstr(text, "NCCL was not found"));
    assert_non_null(strstr(text, "install"));
}

/* A rank has another m: all get the status of m. */
static void differ(rank_state *s)
{
    tgl_problem problem;
    tgl_dist_layout a, b, c;
    tgl_dist_plan *plan;
    const int64_t m = s->rank == 1 ? 7 : 8;
    tgl_problem_init(&problem, sizeof problem, TGL_F32, m, 4, 4);
    tgl_dist_rows(&a, sizeof a, m, 4, s->ranks);
    tgl_dist_columns(&b, sizeof b, 4, 4, s->ranks);
    tgl_dist_columns(&c, sizeof c, m, 4, s->ranks);
    s->status = tgl_dist_plan_create(s->dist, &problem, &a, &b, &c, NULL, &plan);
}

static void different_shapes(void **state)
{
    (void)state;
    rank_state states[RANKS];
    for (int engine = TGL_NCCL_ENGINE_AUTO; engine <= TGL_NCCL_ENGINE_NCCL; engine++) {
        run_ranks(states, 2, (tgl_nccl_engine)engine, TIMEOUT, differ);
        assert_all_fail(states, 2, TGL_BAD_M, "m of the problem is 8 on rank 0, and 7 on rank 1");
    }
}

/* Rank 0 runs a plan, and rank 1 makes another one or closes the communicator at the same time. */
static void call_others(rank_state *s, bool closes)
{
    tgl_problem problem;
    tgl_dist_layout a, b, c;
    tgl_dist_plan *plan, *second = NULL;
    void *memory;
    tgl_problem_init(&problem, sizeof problem, TGL_F32, 8, 8, 8);
    tgl_dist_rows(&a, sizeof a, 8, 8, s->ranks);
    tgl_dist_columns(&b, sizeof b, 8, 8, s->ranks);
    tgl_dist_columns(&c, sizeof c, 8, 8, s->ranks);
    if (tgl_dist_plan_create(s->dist, &problem, &a, &b, &c, NULL, &plan) != TGL_OK ||
        tgl_alloc(s->dev, 8 * 8 * sizeof(float), &memory) != TGL_OK)
        abort();
    if (s->rank == 0)
        s->status = tgl_dist_plan_run(plan, 1, memory, memory, 0, memory, NULL);
    else if (!closes)
        s->status = tgl_dist_plan_create(s->dist, &problem, &a, &b, &c, NULL, &second);
    tgl_dist_last_error(s->error, sizeof s->error);
    if (!closes)
        s->ok = tgl_dist_plan_run(plan, 0, memory, memory, 0, memory, NULL) == TGL_OK &&
                tgl_dist_synchronize(s->dist) == TGL_OK;
    tgl_free(s->dev, memory);
    tgl_dist_plan_destroy(plan);
}

static void create_meanwhile(rank_state *s)
{
    call_others(s, false);
}

static void close_meanwhile(rank_state *s)
{
    call_others(s, true);
}

static void different_calls(void **state)
{
    (void)state;
    rank_state states[RANKS];
    for (int engine = TGL_NCCL_ENGINE_AUTO; engine <= TGL_NCCL_ENGINE_NCCL; engine++) {
        run_ranks(states, 2, (tgl_nccl_engine)engine, TIMEOUT, create_meanwhile);
        assert_all_fail(states, 2, TGL_BAD_ARGUMENT, "rank 0 runs plan 1, while rank 1 creates a");
        assert_true(states[0].ok && states[1].ok);
    }
    run_ranks(states, 2, TGL_NCCL_ENGINE_AUTO, TIMEOUT, close_meanwhile);
    assert_int_equal(states[0].status, TGL_COMMUNICATION);
    assert_non_null(strstr(states[0].error, "only be closed"));
}

/* Rank 1 has so many MiB of device memory left. */
static int left_mib;

/* Plans a product of which 8 MiB of A go to each rank, and makes other plans afterwards as before.
 */
static void plan_with_little(rank_state *s)
{
    enum { M = 4096, K = 512, MIB = 1 << 20, BLOCKS = 256 };
    const tgl_dist_options options = {
        .size = sizeof options, .parts_m = 1, .parts_n = s->ranks, .parts_k = 1};
    void *blocks[BLOCKS] = {NULL};
    tgl_problem problem;
    tgl_dist_layout a, b, c;
    tgl_dist_plan *plan, *second;
    tgl_dist_figures figures = {.size = sizeof figures};
    tgl_problem_init(&problem, sizeof problem, TGL_F32, M, 8, K);
    tgl_dist_rows(&a, sizeof a, M, K, s->ranks);
    tgl_dist_columns(&b, sizeof b, K, 8, s->ranks);
    tgl_dist_columns(&c, sizeof c, M, 8, s->ranks);
    int count = 0;
    while (s->rank == 1 && count < BLOCKS && tgl_alloc(s->dev, MIB, &blocks[count]) == TGL_OK)
        count++;
    for (int i = 0; i < left_mib && i < count; i++)
        tgl_free(s->dev, blocks[--count]);
    s->status = tgl_dist_plan_create(s->dist, &problem, &a, &b, &c, &options, &plan);
    tgl_dist_last_error(s->error, sizeof s->error);
    if (s->status == TGL_OK) tgl_dist_plan_figures(plan, &figures);
    s->panels = figures.panels;
    while (count > 0)
        tgl_free(s->dev, blocks[--count]);
    s->ok = tgl_dist_plan_create(s->dist, &problem, &a, &b, &c, &options, &second) == TGL_OK;
    tgl_dist_plan_destroy(second);
    tgl_dist_plan_destroy(plan);
}

static void little_memory(void **state)
{
    (void)state;
    rank_state states[RANKS];
    int64_t panels[2];
    uses_defaults = true;
    for (int i = 0; i < 2; i++) {
        left_mib = i == 0 ? 200 : 6;
        run_ranks(states, 2, TGL_NCCL_ENGINE_AUTO, TIMEOUT, plan_with_little);
        for (int rank = 0; rank < 2; rank++)
            assert_true(states[rank].status == TGL_OK && states[rank].ok);
        assert_int_equal(states[0].panels, states[1].panels);
        panels[i] = states[0].panels;
    }
    assert_true(panels[1] > panels[0]);
    left_mib = 1;
    run_ranks(states, 2, TGL_NCCL_ENGINE_AUTO, TIMEOUT, plan_with_little);
    uses_defaults = false;
    assert_all_fail(states, 2, TGL_NO_MEMORY, "rank 1: cuMemAlloc()");
    assert_true(states[0].ok && states[1].ok);
}

/* Whether synchronising fails within 10 seconds, although this rank has no work. */
static bool hears_of_the_loss(rank_state *s)
{
    for (int i = 0; i < 1000; i++) {
        if (tgl_dist_synchronize(s->dist) == TGL_COMMUNICATION) return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

/* Rank 1 makes a plan and does not run it. Rank 0 gives up, and rank 1 hears of that. The device of
 * rank 0 works as before. */
static void stay_away(rank_state *s)
{
    tgl_problem problem;
    tgl_dist_layout a, b, c;
    tgl_dist_plan *plan;
    void *memory;
    tgl_problem_init(&problem, sizeof problem, TGL_F32, 8, 8, 8);
    tgl_dist_rows(&a, sizeof a, 8, 8, s->ranks);
    tgl_dist_columns(&b, sizeof b, 8, 8, s->ranks);
    tgl_dist_columns(&c, sizeof c, 8, 8, s->ranks);
    if (tgl_dist_plan_create(s->dist, &problem, &a, &b, &c, NULL, &plan) != TGL_OK ||
        tgl_alloc(s->dev, 8 * 8 * sizeof(float), &memory) != TGL_OK)
        abort();
    s->ok = true;
    if (s->rank == 0) {
        s->status = tgl_dist_plan_run(plan, 1, memory, memory, 0, memory, NULL);
        tgl_dist_last_error(s->error, sizeof s->error);
        s->ok = tgl_gemm(s->dev, &problem, 0, memory, memory, 0, memory, NULL) == TGL_OK &&
                tgl_device_sync(s->dev) == TGL_OK &&
                tgl_dist_synchronize(s->dist) == TGL_COMMUNICATION;
    } else {
        s->ok = hears_of_the_loss(s);
    }
    tgl_free(s->dev, memory);
    tgl_dist_plan_destroy(plan);
}

/* The buffers of messages that are under way when a rank is lost stay allocated on purpose. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:allocate_panels\nleak:allocate_slots\nleak:dist_ring_allocate\n";
}

static void lost_rank(void **state)
{
    (void)state;
    rank_state states[RANKS];
    run_ranks(states, 2, TGL_NCCL_ENGINE_AUTO, 0.5, stay_away);
    assert_int_equal(states[0].status, TGL_COMMUNICATION);
    assert_int_equal(states[1].status, TGL_OK);
    assert_true(states[0].ok && states[1].ok);
}

/* Memory that a lost rank may have mapped is not freed. */
static int check_misuses(void **state)
{
    (void)state;
    return fake_number("fake_cuda_misuses") + fake_number("fake_cuda_mapped");
}

/* A stream that does not come to an end, with an error of NCCL, or without one until the timeout.
 */
static void wait_for_nccl(rank_state *s)
{
    setenv("FAKE_NCCL_ERROR", s->timeout_s < 1 ? "0" : "6", 1);
    setenv("FAKE_CUDA_FAIL", "cuStreamQuery=600", 1);
    s->status = tgl_dist_synchronize(s->dist);
    tgl_dist_last_error(s->error, sizeof s->error);
    unsetenv("FAKE_NCCL_ERROR");
    unsetenv("FAKE_CUDA_FAIL");
}

static void failed_link(void **state)
{
    (void)state;
    rank_state states[RANKS];
    run_ranks(states, 1, TGL_NCCL_ENGINE_NCCL, TIMEOUT, wait_for_nccl);
    assert_all_fail(states, 1, TGL_COMMUNICATION, "remote process exited");
    run_ranks(states, 1, TGL_NCCL_ENGINE_NCCL, 0.3, wait_for_nccl);
    assert_all_fail(states, 1, TGL_COMMUNICATION, "did not answer within the timeout");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(by_copy_engines, check_fakes),
        cmocka_unit_test_teardown(by_nccl, check_fakes),
        cmocka_unit_test_teardown(on_two_hosts, check_fakes),
        cmocka_unit_test_teardown(plans_for_a_network, check_fakes),
        cmocka_unit_test_teardown(rings, check_fakes),
        cmocka_unit_test(plans_of_layers),
        cmocka_unit_test_teardown(shared_gpu, check_fakes),
        cmocka_unit_test_teardown(no_nccl, check_fakes),
        cmocka_unit_test_teardown(different_shapes, check_fakes),
        cmocka_unit_test_teardown(little_memory, check_fakes),
        cmocka_unit_test_teardown(failed_link, check_fakes),
        cmocka_unit_test_teardown(different_calls, check_misuses),
        cmocka_unit_test_teardown(lost_rank, check_misuses), /* the last one: it leaves memory */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
