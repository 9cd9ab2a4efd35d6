/* SPDX-License-Identifier: Apache-2.0
 *
 * tegula/nccl.h between threads, each with a device of the fake driver: how failures are reported,
 * and that all ranks hear of them.
 */
#include "gpu_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

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

/* Rank 1 cannot make a stream or an event. The other ranks do not wait for it. */
static void no_streams(void **state)
{
    (void)state;
    static const char *const functions[] = {"cuStreamCreateWithPriority", "cuEventCreate"};
    enum { SECONDS = 5 }; /* less than TIMEOUT */
    for (int i = 0; i < 4; i++) {
        rank_state states[RANKS];
        char text[60];
        snprintf(text, sizeof text, "%s=%d@1", functions[i / 2], i % 2 == 0 ? 304 : 2);
        setenv("FAKE_CUDA_FAIL", text, 1);
        const time_t start = time(NULL);
        run_ranks(states, 3, TGL_NCCL_ENGINE_AUTO, TIMEOUT, no_work);
        assert_true(time(NULL) - start < SECONDS);
        snprintf(text, sizeof text, "rank 1: %s() failed", functions[i / 2]);
        assert_all_fail(states, 3, i % 2 == 0 ? TGL_DRIVER : TGL_NO_MEMORY, text);
    }
}

/* Rank 1 of 2 does not open the communicator. Rank 0 gives up after the timeout. */
static void absent_rank(void **state)
{
    (void)state;
    rank_state states[RANKS];
    const time_t start = time(NULL);
    ranks_in_id = 2;
    run_ranks(states, 1, TGL_NCCL_ENGINE_AUTO, 0.5, no_work);
    ranks_in_id = 0;
    assert_true(time(NULL) - start < TIMEOUT);
    assert_all_fail(states, 1, TGL_COMMUNICATION, "did not answer within the timeout");
    static const char *const left[] = {"joined-0", "left-0", ""}; /* by the fake NCCL */
    for (int i = 0; i < 3; i++) {
        char path[TGL_NCCL_ID_BYTES + 10];
        snprintf(path, sizeof path, "%s/%s", (const char *)states[0].id, left[i]);
        assert_int_equal(remove(path), 0);
    }
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

/* One rank has another m: all ranks get the status for m. */
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

/* A plan of 8 x 8 matrices: A in bands of rows, B and D of columns. */
static tgl_status create_plan(const rank_state *s, tgl_problem *problem, tgl_dist_plan **plan)
{
    tgl_dist_layout a, b, c;
    tgl_problem_init(problem, sizeof *problem, TGL_F32, 8, 8, 8);
    tgl_dist_rows(&a, sizeof a, 8, 8, s->ranks);
    tgl_dist_columns(&b, sizeof b, 8, 8, s->ranks);
    tgl_dist_columns(&c, sizeof c, 8, 8, s->ranks);
    return tgl_dist_plan_create(s->dist, problem, &a, &b, &c, NULL, plan);
}

static tgl_dist_plan *make_plan(const rank_state *s, tgl_problem *problem)
{
    tgl_dist_plan *plan;
    if (create_plan(s, problem, &plan) != TGL_OK) abort();
    return plan;
}

/* Rank 0 runs a plan, and rank 1 makes another one or closes the communicator at the same time. */
static void call_others(rank_state *s, bool closes)
{
    tgl_problem problem;
    tgl_dist_plan *plan, *second = NULL;
    void *memory;
    plan = make_plan(s, &problem);
    if (tgl_alloc(s->dev, 8 * 8 * sizeof(float), &memory) != TGL_OK) abort();
    if (s->rank == 0)
        s->status = tgl_dist_plan_run(plan, 1, memory, memory, 0, memory, NULL);
    else if (!closes)
        s->status = create_plan(s, &problem, &second);
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
    for (int i = 0; i < 4; i++) {
        const int engine = i % 2 == 0 ? TGL_NCCL_ENGINE_AUTO : TGL_NCCL_ENGINE_NCCL;
        prefers_collectives = i >= 2;
        run_ranks(states, 2, (tgl_nccl_engine)engine, TIMEOUT, create_meanwhile);
        assert_all_fail(states, 2, TGL_BAD_ARGUMENT, "rank 0 runs plan 1, while rank 1 creates a");
        assert_true(states[0].ok && states[1].ok);
    }
    run_ranks(states, 2, TGL_NCCL_ENGINE_AUTO, TIMEOUT, close_meanwhile);
    assert_int_equal(states[0].status, TGL_COMMUNICATION);
    assert_non_null(strstr(states[0].error, "only be closed"));
}

/* The device memory that rank 1 has left, in MiB. */
static int left_mib;

/* Plans a product of which 8 MiB of A go to each rank. Afterwards other plans can be made as
 * before.
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
    tgl_dist_plan *plan;
    void *memory;
    plan = make_plan(s, &problem);
    if (tgl_alloc(s->dev, 8 * 8 * sizeof(float), &memory) != TGL_OK) abort();
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
    for (int i = 0; i < 2; i++) {
        prefers_collectives = i == 1;
        run_ranks(states, 2, TGL_NCCL_ENGINE_AUTO, 0.5, stay_away);
        assert_int_equal(states[0].status, TGL_COMMUNICATION);
        assert_int_equal(states[1].status, TGL_OK);
        assert_true(states[0].ok && states[1].ok);
    }
}

/* Memory that a lost rank may have mapped is not freed. */
static int check_misuses(void **state)
{
    (void)state;
    unsetenv("FAKE_NCCL_COLLECT");
    prefers_collectives = false;
    return fake_number("fake_cuda_misuses") + fake_number("fake_cuda_mapped");
}

/* A stream does not end. NCCL reports an error, or the timeout passes. */
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

/* A plan with an all-gather of NCCL, which fails; the second run does not begin. */
static void run_twice(rank_state *s)
{
    tgl_problem problem;
    tgl_dist_plan *plan = make_plan(s, &problem);
    void *memory;
    if (tgl_alloc(s->dev, 8 * 8 * sizeof(float), &memory) != TGL_OK) abort();
    s->status = tgl_dist_plan_run(plan, 1, memory, memory, 0, memory, NULL);
    tgl_dist_last_error(s->error, sizeof s->error);
    s->ok = tgl_dist_plan_run(plan, 1, memory, memory, 0, memory, NULL) == TGL_COMMUNICATION &&
            tgl_dist_synchronize(s->dist) == TGL_COMMUNICATION;
    tgl_free(s->dev, memory);
    tgl_dist_plan_destroy(plan);
}

static void failed_collective(void **state)
{
    (void)state;
    rank_state states[RANKS];
    prefers_collectives = true;
    setenv("FAKE_NCCL_COLLECT", "6", 1); /* ncclRemoteError */
    run_ranks(states, 2, TGL_NCCL_ENGINE_AUTO, TIMEOUT, run_twice);
    for (int rank = 0; rank < 2; rank++)
        assert_true(states[rank].status == TGL_COMMUNICATION && states[rank].ok);
    assert_non_null(strstr(states[0].error, "remote process exited"));
}

/* Creates a plan and runs it: A and B are divided along k, so that sums of the ranks are added. */
static void run_once(rank_state *s)
{
    enum { M = 9, N = 8, K = 12 };
    tgl_problem problem;
    tgl_dist_layout a, b, c;
    tgl_dist_plan *plan;
    void *memory;
    if (tgl_alloc(s->dev, M * K * sizeof(float), &memory) != TGL_OK) abort();
    tgl_problem_init(&problem, sizeof problem, TGL_F32, M, N, K);
    tgl_dist_columns(&a, sizeof a, M, K, s->ranks);
    tgl_dist_rows(&b, sizeof b, K, N, s->ranks);
    tgl_dist_rows(&c, sizeof c, M, N, s->ranks);
    s->status = tgl_dist_plan_create(s->dist, &problem, &a, &b, &c, NULL, &plan);
    if (s->status == TGL_OK) {
        s->status = tgl_dist_plan_run(plan, 1, memory, memory, 1, memory, NULL);
        if (s->status == TGL_OK) s->status = tgl_dist_synchronize(s->dist);
        tgl_dist_last_error(s->error, sizeof s->error);
        tgl_dist_plan_destroy(plan);
    }
    tgl_free(s->dev, memory);
}

/* Gives rank 1 more and more memory, until it suffices. Fails if a rank waits for rank 1, or takes
 * a failed product for a right one. Returns the number of failures. */
static int fail_each_allocation(tgl_nccl_engine engine)
{
    enum { ALLOCATIONS_MAX = 60, SECONDS = 5 }; /* SECONDS is less than TIMEOUT */
    rank_state states[RANKS];
    for (spare_allocations = 0; spare_allocations < ALLOCATIONS_MAX; spare_allocations++) {
        const time_t start = time(NULL);
        run_ranks(states, 3, engine, TIMEOUT, run_once);
        if (time(NULL) - start > SECONDS)
            fail_msg("engine %d: after %d allocations the ranks wait: %s", (int)engine,
                     spare_allocations, states[0].error);
        for (int rank = 0; rank < 3; rank++)
            if ((states[rank].status == TGL_OK) != (states[1].status == TGL_OK))
                fail_msg("engine %d: after %d allocations rank %d: %s", (int)engine,
                         spare_allocations, rank, tgl_status_name(states[rank].status));
        if (states[1].status == TGL_OK) return spare_allocations;
    }
    return ALLOCATIONS_MAX;
}

static void no_host_memory(void **state)
{
    (void)state;
#ifndef OWN_ALLOCATOR
    for (int i = 0; i < 4; i++) {
        prefers_collectives = i >= 2;
        const int failures =
            fail_each_allocation(i % 2 == 0 ? TGL_NCCL_ENGINE_AUTO : TGL_NCCL_ENGINE_NCCL);
        spare_allocations = -1;
        assert_in_range(failures, 5, 59);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(shared_gpu, check_fakes),
        cmocka_unit_test_teardown(no_streams, check_fakes),
        cmocka_unit_test_teardown(absent_rank, check_fakes),
        cmocka_unit_test_teardown(no_nccl, check_fakes),
        cmocka_unit_test_teardown(different_shapes, check_fakes),
        cmocka_unit_test_teardown(little_memory, check_fakes),
        cmocka_unit_test_teardown(failed_link, check_fakes),
        cmocka_unit_test_teardown(different_calls, check_misuses),
        cmocka_unit_test_teardown(failed_collective, check_misuses),
        cmocka_unit_test_teardown(no_host_memory, check_misuses),
        cmocka_unit_test_teardown(lost_rank, check_misuses), /* the last one: it leaves memory */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
