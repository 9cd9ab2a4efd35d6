/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that give different arguments, cannot do their part, have little memory, or do not come:
 * all ranks return the same status, and none waits longer than the timeout.
 */
#include "thread_transport.h"
#ifndef OWN_ALLOCATOR
#include "few_allocations.h"
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { RANKS = 3, ODD = 1, M = 24, N = 20, K = 60 }; /* rank ODD is the one that differs */

typedef struct given {
    tgl_problem problem;
    tgl_dist_layout a, b, c;
    tgl_dist_options options;
    struct newer_epilogue { /* of a later header */
        tgl_epilogue known;
        int64_t later;
    } epilogue;
    double alpha;
    const double *A;
    double A_memory[M * K], B[K * N], C[M * N]; /* large enough for any rank */
} given;

static void correct(given *g)
{
    memset(g, 0, sizeof *g);
    tgl_problem_init(&g->problem, sizeof g->problem, TGL_F64, M, N, K);
    tgl_dist_rows(&g->a, sizeof g->a, M, K, RANKS);
    tgl_dist_rows(&g->b, sizeof g->b, K, N, RANKS);
    tgl_dist_rows(&g->c, sizeof g->c, M, N, RANKS);
    g->options.size = sizeof g->options;
    g->alpha = 1;
    g->A = g->A_memory;
    for (int i = 0; i < M * N; i++)
        g->C[i] = 7;
}

/* How rank ODD differs, and the status that all ranks get. */
typedef struct fault {
    const char *name;
    void (*spoil)(given *g);
    tgl_status status;
    const char *message; /* a part of it */
} fault;

static void other_m(given *g)
{
    g->problem.m = g->a.rows = g->c.rows = M - 1;
}
static void other_trans(given *g)
{
    g->problem.trans_b = TGL_TRANS;
    tgl_dist_rows(&g->b, sizeof g->b, N, K, RANKS);
}
static void other_type(given *g)
{
    g->problem.type_a = g->problem.type_b = g->problem.type_c = TGL_F32;
}
static void complex_type(given *g)
{
    g->problem.type_a = g->problem.type_b = g->problem.type_c = TGL_C128;
}
static void single_complex_type(given *g)
{
    g->problem.type_a = g->problem.type_b = g->problem.type_c = TGL_C64;
}
static void float_of_8_bits(given *g)
{
    g->problem.type_a = TGL_F8_E4M3;
    g->problem.type_b = TGL_F8_E5M2;
    g->problem.type_c = TGL_F32;
}
static void weights(given *g)
{
    g->problem.type_a = g->problem.type_c = TGL_F16;
    g->problem.type_b = TGL_I4;
}
static void other_block(given *g)
{
    g->b.block_rows--;
}
static void other_panel(given *g)
{
    g->options.panel = 5;
}
static void invalid_problem(given *g)
{
    g->problem.k = -1;
}
static void invalid_layout(given *g)
{
    g->c.block_columns = 0;
}
static void misfit(given *g)
{
    g->a.columns = K + 1;
}
static void short_ld(given *g)
{
    g->c.ld = N - 1;
}
static void old_options(given *g)
{
    g->options.size = 1;
}
static void other_alpha(given *g)
{
    g->alpha = 2;
}
static void null_a(given *g)
{
    g->A = NULL;
}
static void no_memory(given *g)
{
    g->options.memory_limit = 1;
}

static void grouping(given *g)
{
    g->problem.grouping = TGL_GROUPED_ROWS;
}
static void block_scales(given *g)
{
    g->problem.ld_scale_a = K;
}
static void any_epilogue(given *g)
{
    g->epilogue.known = (tgl_epilogue){.size = sizeof g->epilogue.known};
    g->options.epilogue = &g->epilogue.known;
}
static void amax(given *g)
{
    any_epilogue(g);
    g->epilogue.known.amax = 1;
}
static void short_epilogue(given *g)
{
    any_epilogue(g);
    g->epilogue.known.size = offsetof(tgl_epilogue, type_bias);
}
static void newer_epilogue(given *g)
{
    any_epilogue(g);
    g->epilogue.known.size = sizeof g->epilogue;
    g->epilogue.later = 1;
}

static const fault faults[] = {
    {"m", other_m, TGL_BAD_M, "m of the problem is 24 on rank 0, and 23 on rank 1"},
    {"trans", other_trans, TGL_BAD_TRANS_B, "trans_b"},
    {"type", other_type, TGL_BAD_TYPE, "type_a"},
    {"c128", complex_type, TGL_UNSUPPORTED, "rank 1: distributed products of complex types"},
    {"c64", single_complex_type, TGL_UNSUPPORTED, "rank 1: distributed products of complex types"},
    {"f8", float_of_8_bits, TGL_UNSUPPORTED, "rank 1: distributed products of complex types"},
    {"weights", weights, TGL_UNSUPPORTED, "rank 1: distributed products of weights"},
    {"block", other_block, TGL_BAD_ARGUMENT, "block_rows of the layout of B"},
    {"panel", other_panel, TGL_BAD_ARGUMENT, "panel of the options"},
    {"problem", invalid_problem, TGL_BAD_K, "rank 1: "},
    {"layout", invalid_layout, TGL_BAD_ARGUMENT, "rank 1: the layout of C: a block size"},
    {"misfit", misfit, TGL_BAD_ARGUMENT, "rank 1: A is 24 x 60 in the problem"},
    {"ld", short_ld, TGL_BAD_LDC, "rank 1: ld of C"},
    {"options", old_options, TGL_BAD_ARGUMENT, "rank 1: the size of the options"},
    {"alpha", other_alpha, TGL_BAD_SCALAR, "rank 1"},
    {"A", null_a, TGL_BAD_A, "rank 1: A is NULL"},
    {"memory", no_memory, TGL_NO_MEMORY, "the limit is 1"},
    {"grouping", grouping, TGL_UNSUPPORTED, "rank 1: distributed products have no grouping"},
    {"block scales", block_scales, TGL_BAD_SCALE, "rank 1: ld_scale_a is 60"},
    {"amax", amax, TGL_UNSUPPORTED, "rank 1: distributed products do not find the largest"},
    {"short epilogue", short_epilogue, TGL_BAD_EPILOGUE, "rank 1: the size of the epilogue"},
    {"newer epilogue", newer_epilogue, TGL_BAD_EPILOGUE, "rank 1: the size of the epilogue"},
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

static given inputs[RANKS];
static tgl_status results[RANKS];
static char messages[RANKS][400];

static tgl_status multiply(tgl_dist *dist, given *g)
{
    tgl_dist_plan *plan;
    tgl_status status =
        tgl_dist_plan_create(dist, &g->problem, &g->a, &g->b, &g->c, &g->options, &plan);
    if (status != TGL_OK) return status;
    status = tgl_dist_plan_run(plan, g->alpha, g->A, g->B, 0, g->C, NULL);
    tgl_dist_plan_destroy(plan);
    return status;
}

static void run_fault(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    const fault *f = argument;
    given *g = &inputs[rank];
    (void)dev;
    correct(g);
    if (rank == ODD) f->spoil(g);
    results[rank] = multiply(dist, g);
    tgl_dist_last_error(messages[rank], sizeof messages[rank]);
    correct(g); /* the communicator still works */
    if (multiply(dist, g) != TGL_OK || g->C[0] != 0) results[rank] = TGL_OK;
}

static void same_status(void **state)
{
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        thread_run(RANKS, 60, run_fault, (void *)&faults[i]);
        for (int rank = 0; rank < RANKS; rank++) {
            if (results[rank] != faults[i].status ||
                strstr(messages[rank], faults[i].message) == NULL)
                fail_msg("%s: rank %d: %s: %s", faults[i].name, rank,
                         tgl_status_name(results[rank]), messages[rank]);
        }
    }
}

/* Ranks may give TGL_TRANS and TGL_CONJ_TRANS, which mean the same for real elements. */
static void other_words(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    (void)dev;
    given *g = &inputs[rank];
    const bool transposed = *(const bool *)argument;
    correct(g);
    if (transposed) {
        tgl_dist_rows(&g->b, sizeof g->b, N, K, RANKS);
        g->problem.trans_b = rank == ODD ? TGL_CONJ_TRANS : TGL_TRANS;
    } else {
        g->problem.trans_b = rank == ODD ? TGL_CONJ_NO_TRANS : TGL_NO_TRANS;
    }
    results[rank] = multiply(dist, g);
}

static void conjugates(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        bool transposed = i == 1;
        thread_run(RANKS, 60, other_words, &transposed);
        for (int rank = 0; rank < RANKS; rank++)
            assert_int_equal(results[rank], TGL_OK);
    }
}

/* Rank ODD was compiled with the first header, or with a later one whose new members are 0. After
 * its older structs there is other memory, which is not read. */
static void other_header(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    (void)dev;
    given *g = &inputs[rank];
    const bool is_later = *(const bool *)argument;
    correct(g);
    any_epilogue(g);
    g->epilogue.known.activation = TGL_ACTIVATION_RELU;
    if (rank == ODD && is_later) g->epilogue.known.size = sizeof g->epilogue;
    if (rank == ODD && !is_later) {
        g->problem.size = offsetof(tgl_problem, type_scale) + sizeof g->problem.type_scale;
        g->problem.grouping = TGL_GROUPED_ROWS;
        g->epilogue.known.size = offsetof(tgl_epilogue, amax);
        g->epilogue.known.amax = 1;
    }
    results[rank] = multiply(dist, g);
    if (results[rank] == TGL_OK && g->C[0] != 0) results[rank] = TGL_BAD_C;
}

static void other_headers(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        bool is_later = i == 1;
        thread_run(RANKS, 60, other_header, &is_later);
        for (int rank = 0; rank < RANKS; rank++)
            assert_int_equal(results[rank], TGL_OK);
    }
}

/* Rank ODD creates a plan while the others run one, and then runs another one than they. */
static void call_differently(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    (void)dev, (void)argument;
    given *g = &inputs[rank];
    tgl_dist_plan *plan[3] = {NULL, NULL, NULL};
    correct(g);
    for (int i = 0; i < 2; i++)
        if (tgl_dist_plan_create(dist, &g->problem, &g->a, &g->b, &g->c, NULL, &plan[i]) != TGL_OK)
            return;
    results[rank] =
        rank == ODD ? tgl_dist_plan_create(dist, &g->problem, &g->a, &g->b, &g->c, NULL, &plan[2])
                    : tgl_dist_plan_run(plan[0], 1, g->A, g->B, 0, g->C, NULL);
    tgl_dist_last_error(messages[rank], sizeof messages[rank]);
    if (strcmp(messages[rank], "rank 0 runs plan 1, while rank 1 creates a plan") != 0 ||
        tgl_dist_plan_run(plan[rank == ODD], 1, g->A, g->B, 0, g->C, NULL) != TGL_BAD_ARGUMENT ||
        g->C[0] != 7 || tgl_dist_plan_run(plan[1], 1, g->A, g->B, 0, g->C, NULL) != TGL_OK ||
        g->C[0] != 0)
        results[rank] = TGL_OK;
    for (int i = 0; i < 3; i++)
        tgl_dist_plan_destroy(plan[i]);
}

static void different_calls(void **state)
{
    (void)state;
    thread_run(RANKS, 10, call_differently, NULL);
    for (int rank = 0; rank < RANKS; rank++)
        if (results[rank] != TGL_BAD_ARGUMENT)
            fail_msg("rank %d: %s: %s", rank, tgl_status_name(results[rank]), messages[rank]);
}

/* A limit on one rank's memory shortens the panels of all. */
static void little_memory(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    (void)dev, (void)argument;
    given *g = &inputs[rank];
    correct(g);
    tgl_dist_figures free_figures = {.size = sizeof free_figures}, figures = free_figures;
    tgl_dist_plan *plan;
    results[rank] = tgl_dist_plan_create(dist, &g->problem, &g->a, &g->b, &g->c, NULL, &plan);
    if (results[rank] != TGL_OK) return;
    tgl_dist_plan_figures(plan, &free_figures);
    tgl_dist_plan_destroy(plan);
    g->options.memory_limit = rank == ODD ? 2048 : 0;
    results[rank] =
        tgl_dist_plan_create(dist, &g->problem, &g->a, &g->b, &g->c, &g->options, &plan);
    if (results[rank] != TGL_OK) return;
    tgl_dist_plan_figures(plan, &figures);
    if (figures.panel >= free_figures.panel || (rank == ODD && figures.memory_bytes > 2048))
        results[rank] = TGL_NO_MEMORY;
    tgl_dist_plan_destroy(plan);
}

static void shorter_panels(void **state)
{
    (void)state;
    thread_run(RANKS, 60, little_memory, NULL);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(results[rank], TGL_OK);
}

/* Scalars of int32 products must be integers. C is not changed. */
static void half_of_int8(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    (void)dev, (void)argument;
    given *g = &inputs[rank];
    correct(g);
    g->problem.type_a = g->problem.type_b = TGL_I8;
    g->problem.type_c = TGL_I32;
    g->alpha = 0.5;
    g->options.parts_m = g->options.parts_n =
        1; /* C is multiplied by beta before anything is added */
    g->options.parts_k = RANKS;
    results[rank] = multiply(dist, g);
    tgl_dist_last_error(messages[rank], sizeof messages[rank]);
    if (g->C[0] != 7) results[rank] = TGL_OK;
}

static void whole_numbers(void **state)
{
    (void)state;
    thread_run(RANKS, 60, half_of_int8, NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(results[rank], TGL_BAD_SCALAR);
        assert_non_null(strstr(messages[rank], "alpha is 0.5"));
    }
}

#ifndef OWN_ALLOCATOR
/* When a rank has no memory left, all ranks return the error, and none waits. */
static void run_without_memory(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    (void)dev;
    given *g = &inputs[rank];
    correct(g);
    if (rank == ODD) allocations_left = *(const int *)argument;
    results[rank] = multiply(dist, g);
    allocations_left = -1;
    correct(g);
    if (multiply(dist, g) != TGL_OK) results[rank] = TGL_COMMUNICATION;
}

static void no_malloc(void **state)
{
    (void)state;
    int failures = 0;
    for (int left = 0; left < 40; left++) {
        thread_run(RANKS, 10, run_without_memory, &left);
        for (int rank = 0; rank < RANKS; rank++) {
            assert_int_equal(results[rank], results[0]);
            assert_true(results[rank] == TGL_OK || results[rank] == TGL_NO_MEMORY);
        }
        failures += results[0] != TGL_OK;
    }
    assert_true(failures >= 3);
}
#else
static void no_malloc(void **state)
{
    (void)state; /* the sanitizer has its own allocator */
}
#endif

/* The buffers of messages that are under way when a rank is lost stay allocated on purpose. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:allocate_panels\nleak:allocate_slots\n";
}

/* Rank ODD creates a plan and then does not run it. */
static void stay_away(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    (void)argument;
    given *g = &inputs[rank];
    correct(g);
    tgl_dist_plan *plan;
    results[rank] = tgl_dist_plan_create(dist, &g->problem, &g->a, &g->b, &g->c, NULL, &plan);
    if (results[rank] != TGL_OK) return;
    if (rank == ODD) {
        tgl_dist_plan_destroy(plan);
        return;
    }
    results[rank] = tgl_dist_plan_run(plan, 1, g->A, g->B, 0, g->C, NULL);
    if (results[rank] == TGL_COMMUNICATION) { /* later calls fail without waiting */
        results[rank] = tgl_dist_plan_run(plan, 1, g->A, g->B, 0, g->C, NULL);
        tgl_dist_last_error(messages[rank], sizeof messages[rank]);
        if (strstr(messages[rank], "lost a rank before") == NULL) results[rank] = TGL_OK;
    }
    tgl_dist_plan_destroy(plan);
    g->problem.m = 4; /* the device works as before */
    if (tgl_gemm(dev, &g->problem, 1, g->A, g->B, 0, g->C, NULL) != TGL_OK)
        results[rank] = TGL_DRIVER;
}

static void lost_rank(void **state)
{
    (void)state;
    const time_t start = time(NULL);
    thread_run(RANKS, 0.5, stay_away, NULL);
    assert_true(time(NULL) - start < 20);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(results[rank], rank == ODD ? TGL_OK : TGL_COMMUNICATION);
}

/* ---- Transports ------------------------------------------------------------------------------ */

static int closed;

/* An all-gather of two ranks that give the same. */
static tgl_status gather_two(void *state, const void *mine, void *all, size_t bytes)
{
    (void)state;
    if (all == NULL) return TGL_OK;
    memcpy(all, mine, bytes);
    memcpy((char *)all + bytes, mine, bytes);
    return TGL_OK;
}

static tgl_status no_begin(void *state, const tgl_dist_message *of, int count, void **group)
{
    (void)state, (void)of, (void)count, (void)group;
    return TGL_COMMUNICATION;
}

static tgl_status no_wait(void *state, void *group)
{
    (void)state, (void)group;
    return TGL_COMMUNICATION;
}

static tgl_status no_collect(void *state, tgl_dist_collective operation, tgl_type type,
                             const void *from, void *to, size_t count)
{
    (void)state, (void)operation, (void)type, (void)from, (void)to, (void)count;
    return TGL_COMMUNICATION;
}

static void no_release(void *state, void *memory)
{
    (void)state, (void)memory;
}

static void count_close(void *state)
{
    (void)state;
    closed++;
}

static void transports_are_checked(void **state)
{
    (void)state;
    const tgl_dist_transport complete = {.size = sizeof complete,
                                         .name = "none",
                                         .ranks = 2,
                                         .gather = gather_two,
                                         .begin = no_begin,
                                         .wait = no_wait,
                                         .close = count_close};
    tgl_dist_transport wrong[] = {complete, complete, complete, complete, complete};
    static const char *const parts[] = {"size", "rank", "lacks", "allocate()", "collect()"};
    wrong[0].size = 8;
    wrong[1].rank = 2;
    wrong[2].wait = NULL;
    wrong[3].release = no_release;
    wrong[4].collect = no_collect;
    tgl_device *dev;
    tgl_dist *dist;
    assert_int_equal(tgl_device_open("cpu", NULL, &dev), TGL_OK);
    for (int i = 0; i < 5; i++) {
        char text[200];
        closed = 0;
        assert_int_equal(tgl_dist_open(&wrong[i], dev, NULL, &dist), TGL_BAD_ARGUMENT);
        tgl_dist_last_error(text, sizeof text);
        assert_non_null(strstr(text, parts[i]));
        assert_null(dist);
        assert_int_equal(closed, 1);
    }
    assert_int_equal(tgl_dist_open(&complete, dev, NULL, &dist), TGL_OK);
    tgl_dist_close(dist);
    tgl_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_status),
                                       cmocka_unit_test(conjugates),
                                       cmocka_unit_test(different_calls),
                                       cmocka_unit_test(shorter_panels),
                                       cmocka_unit_test(whole_numbers),
                                       cmocka_unit_test(no_malloc),
                                       cmocka_unit_test(lost_rank),
                                       cmocka_unit_test(other_headers),
                                       cmocka_unit_test(transports_are_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
