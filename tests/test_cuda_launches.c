/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan of the cuda device launches, over the fake libraries: workspaces, what overlaps and
 * lies in clusters, and strips.
 */
#include "fake_cuda/setup.h"

#include "cuda/state.h"

/* ---- Plans that split k ---------------------------------------------------------------------- */

static tgl_plan *split_plan(tgl_device *dev)
{
    const tgl_problem problem = tgl_problem_make(TGL_F32, 64, 64, 1024);
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = "gemm/simt_32x32x32", .splits = 4};
    tgl_plan *plan = NULL;
    const tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
    assert_true((status == TGL_OK) == (plan != NULL));
    return plan;
}

static void a_split_plan_has_a_workspace(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuMemAlloc_v2=2", "cuMemsetD8Async=1", "cuEventCreate=1"};
    tgl_device *dev = open_device("cuda");
    const int before = live_objects();
    tgl_plan *plan = split_plan(dev);
    assert_non_null(plan);
    char text[8192];
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "split       k 4 ways, 256 deep, in 4 of 4 tiles"));
    tgl_plan_destroy(plan);
    assert_int_equal(live_objects(), before + 2); /* the modules stay */
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        setenv("FAKE_CUDA_FAIL", calls[i], 1);
        assert_null(split_plan(dev));
        unsetenv("FAKE_CUDA_FAIL");
        assert_int_equal(live_objects(), before + 2);
    }
    tgl_device_close(dev);
}

/* Runs on different streams wait for each other by an event, which a graph's capture must not see.
 * Those on the default stream follow one another without. */
static void runs_of_a_split_plan_take_turns(void **state)
{
    (void)state;
    static const struct {
        const char *fails;
        bool on_a_stream;
        tgl_status status;
    } runs[] = {
        {"cuStreamWaitEvent=1,cuEventRecord=1,cuStreamIsCapturing=1", false, TGL_OK},
        {"cuStreamIsCapturing=1", true, TGL_DRIVER},
        {"cuEventRecord=1", true, TGL_DRIVER}, /* of what the default stream has been given */
        {"cuStreamWaitEvent=1", true, TGL_DRIVER},
        {"", true, TGL_OK},
        {"cuStreamWaitEvent=1", false, TGL_DRIVER},
        {"cuEventRecord=1,cuStreamIsCapturing=1", false, TGL_OK},
        {"cuStreamWaitEvent=1,cuEventRecord=1,cuStreamIsCapturing=1", false, TGL_OK},
    };
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev);
    int somewhere;
    void *A, *C, *stream = &somewhere; /* the stand-in does not look at it */
    assert_status(tgl_alloc(dev, 64 * 1024 * sizeof(float), &A), TGL_OK);
    assert_status(tgl_alloc(dev, 64 * 64 * sizeof(float), &C), TGL_OK);
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        setenv("FAKE_CUDA_FAIL", runs[i].fails, 1);
        assert_status(tgl_plan_run(plan, 0, A, A, 0, C, runs[i].on_a_stream ? stream : NULL),
                      runs[i].status);
    }
    setenv("FAKE_CUDA_FAIL", "cuStreamWaitEvent=1,cuEventRecord=1", 1);
    setenv("FAKE_CUDA_CAPTURES", "1", 1);
    assert_status(tgl_plan_run(plan, 0, A, A, 0, C, stream), TGL_OK);
    unsetenv("FAKE_CUDA_FAIL");
    tgl_free(dev, A);
    tgl_free(dev, C);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Whose event would be the default stream's, which is not to be asked without need. */
static void the_first_run_waits_for_nobody(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev);
    int somewhere;
    void *C, *stream = &somewhere;
    assert_status(tgl_alloc(dev, 64 * 64 * sizeof(float), &C), TGL_OK);
    setenv("FAKE_CUDA_FAIL", "cuStreamWaitEvent=1", 1);
    assert_status(tgl_plan_run(plan, 0, NULL, NULL, 0, C, stream), TGL_OK);
    assert_status(tgl_plan_run(plan, 0, NULL, NULL, 0, C, stream), TGL_DRIVER);
    unsetenv("FAKE_CUDA_FAIL");
    tgl_free(dev, C);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Bytes of the device that are taken. */
static size_t memory_taken(tgl_device *dev)
{
    tgl_cuda_scope scope;
    size_t free_bytes, total;
    assert_status(tgl_cuda_enter(dev, &scope), TGL_OK);
    assert_int_equal(scope.driver->cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
    tgl_cuda_leave(&scope);
    return total - free_bytes;
}

/* Of one run each, and none for graphs. A device with room for a few of them serves any number of
 * shapes, and plans of the caller's besides. */
static void workspaces_of_one_shot_products_give_way(void **state)
{
    (void)state;
    enum { N = 100, K = 32768, MOST = 1 << 22 };
    setenv("FAKE_CUDA_MEMORY", "4194304", 1);
    tgl_device *dev = open_device("cuda");
    static float C[128 * N]; /* the stand-in takes any memory */
    tgl_problem problem = tgl_problem_make(TGL_F32, 100, N, K);
    tgl_plan *plan;
    assert_status(tgl_gemm(dev, &problem, 0, NULL, NULL, 0, C, NULL), TGL_OK);
    const size_t one = memory_taken(dev);
    assert_in_range(one, 1, MOST / 4);
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    assert_int_equal(memory_taken(dev), 3 * one);
    tgl_plan_destroy(plan);
    for (problem.m = 90; problem.m < 128; problem.m++) {
        assert_status(tgl_gemm(dev, &problem, 0, NULL, NULL, 0, C, NULL), TGL_OK);
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
        tgl_plan_destroy(plan);
    }
    tgl_device_close(dev);
}

/* A graph would outlive the workspace of a plan that tgl_gemm() keeps. Found out before anything is
 * done that a capture forbids; products without a workspace, and plans of the caller's, are taken.
 */
static void one_shot_products_with_a_workspace_are_not_captured(void **state)
{
    (void)state;
    const tgl_problem problem = tgl_problem_make(TGL_F32, 64, 64, 32768);
    const tgl_problem small = tgl_problem_make(TGL_F32, 8, 8, 8);
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan;
    int somewhere;
    void *C, *stream = &somewhere;
    assert_status(tgl_alloc(dev, 64 * 64 * sizeof(float), &C), TGL_OK);
    const int before = live_objects(), compiled = compilations();
    for (int i = 0; i < 2; i++) {
        setenv("FAKE_CUDA_CAPTURES", "1", 1);
        assert_status(tgl_gemm(dev, &problem, 0, NULL, NULL, 0, C, stream), TGL_UNSUPPORTED);
        assert_last_error(dev, "capture tgl_plan_run() of a plan that outlives the graph");
        if (i == 0) assert_int_equal(live_objects(), before);
        if (i == 0) assert_int_equal(compilations(), compiled);
        assert_status(tgl_gemm(dev, &problem, 0, NULL, NULL, 0, C, NULL), TGL_OK);
        unsetenv("FAKE_CUDA_CAPTURES"); /* the second time the plan is there */
        assert_status(tgl_gemm(dev, &problem, 0, NULL, NULL, 0, C, stream), TGL_OK);
    }
    setenv("FAKE_CUDA_CAPTURES", "1", 1);
    assert_status(tgl_gemm(dev, &small, 0, NULL, NULL, 0, C, stream), TGL_OK);
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 0, NULL, NULL, 0, C, stream), TGL_OK);
    tgl_plan_destroy(plan);
    tgl_free(dev, C);
    tgl_device_close(dev);
}

/* ---- How kernels are launched ---------------------------------------------------------------- */

/* m x n x 1024 by tiles of 32 x 32 with so many splits, of ones: what it was launched with. */
static fake_cuda_launch launch_of(tgl_device *dev, int m, int n, int splits, double alpha)
{
    const tgl_problem problem = tgl_problem_make(TGL_F32, m, n, 1024);
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = "gemm/simt_32x32x32", .splits = splits};
    const size_t elements = 64 * 1024;
    float *A = malloc(elements * sizeof *A), *C = malloc(elements * sizeof *C);
    tgl_plan *plan;
    if (A == NULL || C == NULL) abort();
    for (size_t i = 0; i < elements; i++)
        A[i] = 1;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, alpha, A, A, 0, C, NULL), TGL_OK);
    assert_true((double)C[m * n - 1] == alpha * 1024);
    tgl_plan_destroy(plan);
    free(A);
    free(C);
    return latest_launch();
}

/* The stand-in has four multiprocessors: larger grids wait for the launch before them. */
static void launches_overlap_and_lie_in_clusters(void **state)
{
    (void)state;
    static const struct {
        int m, n, splits;
        double alpha;
        unsigned blocks, cluster;
        int overlaps;
    } runs[] = {
        {32, 32, 1, 1, 1, 1, 1},  {32, 32, 2, 1, 2, 2, 1}, {32, 64, 2, 1, 4, 2, 1},
        {64, 64, 4, 1, 16, 2, 0}, {64, 64, 4, 0, 4, 1, 1}, {64, 64, 5, 1, 20, 1, 0},
    };
    tgl_device *dev = open_device("cuda");
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        const fake_cuda_launch l =
            launch_of(dev, runs[i].m, runs[i].n, runs[i].splits, runs[i].alpha);
        assert_int_equal(l.grid[0], runs[i].blocks);
        assert_int_equal(l.cluster, runs[i].cluster);
        assert_int_equal(l.overlaps, runs[i].overlaps);
    }
    tgl_device_close(dev);
}

/* Of a matrix times a vector they do however many blocks there are. */
static void short_blocks_overlap(void **state)
{
    (void)state;
    enum { LENGTH = 3000, K = 16 };
    tgl_device *dev = open_device("cuda");
    const tgl_problem problem = tgl_problem_make(TGL_F32, 1, LENGTH, K);
    float *B = malloc(LENGTH * K * sizeof *B), A[K], C[LENGTH];
    tgl_plan *plan;
    assert_non_null(B);
    for (int i = 0; i < LENGTH * K; i++)
        B[i] = A[i % K] = 1;
    const tgl_plan_options options = {.size = sizeof options, .kernel = "gemm/matvec"};
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
    assert_true(C[LENGTH - 1] == K);
    assert_in_range(latest_launch().grid[0], 5, LENGTH);
    assert_int_equal(latest_launch().overlaps, 1);
    tgl_plan_destroy(plan);
    free(B);
    tgl_device_close(dev);
}

static void older_chips_drivers_and_compilers_launch_plainly(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        setenv("FAKE_CUDA_VERSION", i == 0 ? "12020" : "13000", 1);
        setenv("FAKE_CUDA_CAPABILITY", i == 1 ? "80" : "90", 1);
        setenv("FAKE_NVRTC_ARCHS", i == 2 ? "80,86" : "80,90", 1); /* code for older chips */
        tgl_device *dev = open_device("cuda");
        const fake_cuda_launch l = launch_of(dev, 32, 32, 2, 1);
        assert_int_equal(l.grid[0], 2);
        assert_int_equal(l.cluster, 1);
        assert_int_equal(l.overlaps, 0);
        tgl_device_close(dev);
    }
}

/* ---- Strips ---------------------------------------------------------------------------------- */

enum { STRIPS_MOST = 200, DEEP = 8192, ROOM = 48 * DEEP };

/* m x n x k by tiles of 32 x 32 with strips, run once: C := 2*A*B + C, of small integers. */
static tgl_plan *run_strips(tgl_device *dev, int m, int n, int k, int splits, float *C)
{
    static float A[ROOM], B[ROOM];
    const tgl_problem problem = tgl_problem_make(TGL_F32, m, n, k);
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = "gemm/simt_32x32x32",
                                      .splits = splits,
                                      .strips = TGL_STRIPS_ALWAYS};
    tgl_plan *plan;
    for (int i = 0; i < m * k; i++)
        A[i] = (float)(i % 5 - 2);
    for (int i = 0; i < k * n; i++)
        B[i] = (float)(i % 7 - 3);
    for (int i = 0; i < m * n; i++)
        C[i] = (float)i;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 2, A, B, 1, C, NULL), TGL_OK);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            assert_true(C[i * n + j] == 2 * sum + (float)(i * n + j));
        }
    return plan;
}

static int blocks_of(const fake_cuda_launch *l)
{
    return (int)(l->grid[0] * l->grid[1] * l->grid[2]);
}

/* The tiles, the columns right of them, the rows below. A strip begins while the launch before it
 * runs, however large that is, and sees to it that whatever follows comes after both. On four
 * multiprocessors a run lets the next one begin only if all its launches are small. */
static void strips_follow_their_tiles(void **state)
{
    (void)state;
    static float C[STRIPS_MOST * STRIPS_MOST];
    static const struct {
        int m, n, tiles;
    } shapes[] = {{98, 131, 12}, {34, 65, 2}};
    tgl_device *dev = open_device("cuda");
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const int m = shapes[i].m, n = shapes[i].n, m_tiles = m / 32 * 32, n_tiles = n / 32 * 32;
        tgl_plan_destroy(run_strips(dev, m, n, 33, 1, C));
        const fake_cuda_launch tiles = earlier_launch(2), right = earlier_launch(1),
                               below = earlier_launch(0);
        assert_int_equal(tiles.args.m, m_tiles);
        assert_int_equal(tiles.args.n, n_tiles);
        assert_ptr_equal(tiles.args.C, C);
        assert_int_equal(blocks_of(&tiles), shapes[i].tiles);
        assert_int_equal(right.args.m, m);
        assert_int_equal(right.args.n, n - n_tiles);
        assert_ptr_equal(right.args.C, C + n_tiles);
        assert_int_equal(below.args.m, m - m_tiles);
        assert_int_equal(below.args.n, n_tiles);
        assert_ptr_equal(below.args.C, C + (ptrdiff_t)m_tiles * n);

        const bool is_small = shapes[i].tiles <= 4;
        assert_int_equal(tiles.overlaps, is_small);
        assert_true(tiles.args.overlaps && !tiles.args.waits_at_end);
        assert_int_equal(right.overlaps, 1);
        assert_true(right.args.overlaps && right.args.waits_at_end);
        assert_int_equal(below.overlaps, 1);
        assert_true(below.args.waits_at_end);
        assert_int_equal(below.args.overlaps,
                         is_small && blocks_of(&right) <= 4 && blocks_of(&below) <= 4);
    }
    tgl_device_close(dev);
}

static void one_strip_is_the_last(void **state)
{
    (void)state;
    static float C[STRIPS_MOST * STRIPS_MOST];
    tgl_device *dev = open_device("cuda");
    tgl_plan_destroy(run_strips(dev, 96, 97, 40, 1, C));
    const fake_cuda_launch tiles = earlier_launch(1), strip = earlier_launch(0);
    assert_int_equal(blocks_of(&tiles), 9);
    assert_true(tiles.args.overlaps);
    assert_true(strip.overlaps && strip.args.waits_at_end && !strip.args.overlaps);
    tgl_device_close(dev);
}

static void older_chips_launch_strips_in_turn(void **state)
{
    (void)state;
    static float C[STRIPS_MOST * STRIPS_MOST];
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
    tgl_device *dev = open_device("cuda");
    tgl_plan_destroy(run_strips(dev, 34, 65, 33, 1, C));
    for (int back = 0; back < 3; back++)
        assert_int_equal(earlier_launch(back).overlaps, 0);
    tgl_device_close(dev);
}

/* Its tiles are under way all the same, and the next run that has their workspace waits for them.
 */
static void a_strip_that_cannot_be_launched_fails_the_run(void **state)
{
    (void)state;
    static float C[STRIPS_MOST * STRIPS_MOST];
    int somewhere;
    void *stream = &somewhere; /* the stand-in does not look at it */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = run_strips(dev, 98, 131, 704, 11, C);
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernelEx=1", 1);
    assert_status(tgl_plan_run(plan, 0, C, C, 1, C, stream), TGL_DRIVER);
    assert_int_equal(latest_launch().args.m, 96);
    setenv("FAKE_CUDA_FAIL", "cuStreamWaitEvent=1", 1);
    assert_status(tgl_plan_run(plan, 0, C, C, 1, C, NULL), TGL_DRIVER);
    unsetenv("FAKE_CUDA_FAIL");
    assert_status(tgl_plan_run(plan, 0, C, C, 1, C, NULL), TGL_OK);
    assert_int_equal(latest_launch().args.m, 2);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Parts that are under way at once have partial sums of their own, in one piece of memory. */
static void strips_have_partial_sums_of_their_own(void **state)
{
    (void)state;
    static float C[STRIPS_MOST * STRIPS_MOST];
    tgl_device *dev = open_device("cuda");
    const int before = live_objects();
    tgl_plan *plan = run_strips(dev, 48, 48, DEEP, 11, C);
    const fake_cuda_launch tiles = earlier_launch(2), right = earlier_launch(1),
                           below = earlier_launch(0);
    const char *const regions[] = {
        (const char *)tiles.args.workspace, (const char *)tiles.args.counters,
        (const char *)right.args.workspace, (const char *)right.args.counters,
        (const char *)below.args.workspace, (const char *)below.args.counters};
    assert_int_equal(tiles.args.splits, 11);
    assert_true(right.args.k_chunk < DEEP && below.args.k_chunk < DEEP);
    for (size_t i = 0; i + 1 < COUNT_OF(regions); i++)
        assert_true(regions[i] < regions[i + 1]);
    assert_true(regions[1] - regions[0] >= 11 * 32 * 32 * (int)sizeof(float));
    char text[16384];
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(
        strstr(text, "strip       48 x 16 of C from row 0, column 32 on: gemm/skinny_16"));
    assert_non_null(
        strstr(text, "strip       16 x 32 of C from row 32, column 0 on: gemm/skinny_16"));
    tgl_plan_destroy(plan);
    const int modules = live_objects() - before;
    plan = run_strips(dev, 48, 48, DEEP, 11, C);
    assert_int_equal(live_objects(), before + modules + 2); /* the memory, and an event */
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_split_plan_has_a_workspace),
        TEST(runs_of_a_split_plan_take_turns),
        TEST(the_first_run_waits_for_nobody),
        TEST(workspaces_of_one_shot_products_give_way),
        TEST(one_shot_products_with_a_workspace_are_not_captured),
        TEST(launches_overlap_and_lie_in_clusters),
        TEST(short_blocks_overlap),
        TEST(older_chips_drivers_and_compilers_launch_plainly),
        TEST(strips_follow_their_tiles),
        TEST(one_strip_is_the_last),
        TEST(older_chips_launch_strips_in_turn),
        TEST(a_strip_that_cannot_be_launched_fails_the_run),
        TEST(strips_have_partial_sums_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
