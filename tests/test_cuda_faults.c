/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuda device over the fake libraries when all is well and when something fails: products,
 * the caller's context, the disk cache, memory, compilers, and kernels that fault.
 */
#include "fake_cuda/setup.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- All is well ----------------------------------------------------------------------------- */

static void every_kernel_multiplies(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    const char *kernel;
    for (int i = 0; (kernel = tgl_kernel_name(dev, i)) != NULL; i++) {
        const bool is_skinny =
            strncmp(kernel, "gemm/skinny", 11) == 0 || strncmp(kernel, "gemm/matvec", 11) == 0;
        const bool is_small = strncmp(kernel, "gemm/small_batch", 16) == 0;
        assert_product(dev, kernel, is_skinny ? 1 : is_small ? 7 : 33, is_small ? 9 : 65, 17);
    }
    assert_product(dev, NULL, 130, 3, 64);
    tgl_device_close(dev);
}

static void without_a_product_neither_operand_is_read(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_problem problem = tgl_problem_make(TGL_F32, 2, 2, 3);
    float C[4] = {1, 2, 3, 4};
    assert_status(tgl_gemm(dev, &problem, 0, NULL, NULL, 2, C, NULL), TGL_OK);
    problem.k = 0;
    assert_status(tgl_gemm(dev, &problem, (double)INFINITY, NULL, NULL, 1, C, NULL), TGL_OK);
    assert_status(tgl_gemm(dev, &problem, (double)NAN, NULL, NULL, 0.5, C, NULL), TGL_OK);
    for (int i = 0; i < 4; i++)
        assert_true(C[i] == (float)(i + 1));
    tgl_device_close(dev);
}

static void column_major_is_row_major_exchanged(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    /* (1 2; 3 4) (5; 6) = (17; 39), columns first */
    const float A[4] = {1, 3, 2, 4}, B[2] = {5, 6};
    float C[2] = {0, 0};
    assert_status(
        tgl_sgemm(dev, TGL_COL_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, 2, 1, 2, 1, A, 2, B, 2, 0, C, 2),
        TGL_OK);
    assert_true(C[0] == 17 && C[1] == 39);
    tgl_device_close(dev);
}

static void explain_tells_the_launch(void **state)
{
    (void)state;
    static const char *const words[] = {"ladder/naive", "registers   40",
                                        "occupancy",    "waves",
                                        "FLOP/byte",    "kernels/ladder/01_naive.cu"};
    tgl_device *dev = open_device("cuda");
    const tgl_problem problem = tgl_problem_make(TGL_F32, 100, 200, 300);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "ladder/naive"};
    char text[2048], little[10];
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    size_t length = tgl_plan_explain(plan, text, sizeof text);
    assert_int_equal(length, strlen(text));
    for (size_t i = 0; i < COUNT_OF(words); i++)
        assert_non_null(strstr(text, words[i]));
    assert_int_equal(tgl_plan_explain(plan, NULL, 0), length);
    assert_int_equal(tgl_plan_explain(plan, little, sizeof little), length);
    assert_int_equal(strlen(little), sizeof little - 1);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void ceilings_are_measured(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    for (int ceiling = TGL_CEILING_FMA_F32; ceiling <= TGL_CEILING_COPY; ceiling++) {
        double value = 0;
        assert_status(tgl_device_measure(dev, (tgl_ceiling)ceiling, &value), TGL_OK);
        assert_true(value > 0);
    }
    tgl_device_close(dev);
}

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
        setenv("FAKE_NVRTC_ARCHS", i == 2 ? "80,87" : "80,90", 1); /* code for older chips */
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

/* ---- The caller's context -------------------------------------------------------------------- */

static void use_everything(tgl_device *dev)
{
    double seconds;
    tgl_timer *timer;
    assert_status(tgl_timer_create(dev, &timer), TGL_OK);
    assert_status(tgl_timer_start(timer, NULL), TGL_OK);
    assert_product(dev, NULL, 5, 6, 7);
    assert_status(tgl_device_sync(dev), TGL_OK);
    assert_status(tgl_timer_stop(timer, NULL, &seconds), TGL_OK);
    assert_true(seconds >= 1e-3);
    tgl_timer_destroy(timer);
}

static void the_caller_s_context_stays(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*push)(CUcontext), (*pop)(CUcontext *), (*release)(CUdevice), (*get)(CUcontext *);
    *(void **)&retain = fake_function("cuDevicePrimaryCtxRetain");
    *(void **)&release = fake_function("cuDevicePrimaryCtxRelease_v2");
    *(void **)&push = fake_function("cuCtxPushCurrent_v2");
    *(void **)&pop = fake_function("cuCtxPopCurrent_v2");
    *(void **)&get = fake_function("cuCtxGetCurrent");
    for (int mine = 0; mine < 2; mine++) { /* the device's own context, then another's */
        CUcontext context, now;
        assert_int_equal(retain(&context, mine), CUDA_SUCCESS);
        assert_int_equal(push(context), CUDA_SUCCESS);
        tgl_device *dev = open_device("cuda:0");
        use_everything(dev);
        setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2,cuModuleLoadData=1,cuLaunchKernel=1", 1);
        void *memory;
        assert_status(tgl_alloc(dev, 100, &memory), TGL_NO_MEMORY);
        assert_product_fails(dev, TGL_DRIVER);
        unsetenv("FAKE_CUDA_FAIL");
        assert_int_equal(get(&now), CUDA_SUCCESS);
        assert_ptr_equal(now, context);
        tgl_device_close(dev);
        assert_int_equal(context_depth(), 1);
        pop(&now);
        release(mine);
    }
}

static void *many_products(void *dev)
{
    for (int i = 1; i < 40; i++)
        assert_product(dev, "ladder/naive", i, 40 - i, i);
    return NULL;
}

static void many_threads_share_a_device(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    tgl_device *dev = open_device("cuda");
    const int before = compilations();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_products, dev), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(compilations(), before + 1);
    tgl_device_close(dev);
}

/* ---- Requests that no kernel takes ----------------------------------------------------------- */

static void what_no_kernel_takes(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    enum { LARGEST = INT32_MAX - 1024 };
    tgl_problem rows[7];
    tgl_status expected[7] = {TGL_UNSUPPORTED, TGL_UNSUPPORTED,    TGL_UNSUPPORTED, TGL_UNSUPPORTED,
                              TGL_UNSUPPORTED, TGL_GRID_TOO_LARGE, TGL_UNSUPPORTED};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        rows[i] = tgl_problem_make(i == 0 ? TGL_F64 : TGL_F32, 2, 2, 2);
    rows[1].trans_a = TGL_TRANS;
    rows[2].batch = 2;
    rows[2].stride_c = 4;
    rows[3].n = LARGEST + 1;
    rows[4].compute = TGL_COMPUTE_TF32;
    rows[5].m = LARGEST;
    rows[6].k = rows[6].lda = LARGEST + 1;
    const tgl_plan_options options = {.size = sizeof options, .kernel = "ladder/naive"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        tgl_plan *plan;
        assert_status(tgl_plan_create(dev, &rows[i], &options, &plan), expected[i]);
        assert_null(plan);
        assert_true(tgl_last_error(dev, NULL, 0) > 20);
    }
    tgl_plan *plan;
    const tgl_problem wide = tgl_problem_make(TGL_F32, 2, LARGEST, 2);
    assert_status(tgl_plan_create(dev, &wide, &options, &plan), TGL_OK);
    tgl_plan_destroy(plan);
    const tgl_plan_options unknown = {.size = sizeof unknown, .kernel = "ladder/no such"};
    const tgl_problem problem = tgl_problem_make(TGL_F32, 2, 2, 2);
    assert_status(tgl_plan_create(dev, &problem, &unknown, &plan), TGL_UNKNOWN_KERNEL);
    tgl_device_close(dev);
}

/* ---- Memory and compilers that fail ---------------------------------------------------------- */

static void out_of_device_memory(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_MEMORY", "1048576", 1);
    tgl_device *dev = open_device("cuda");
    void *memory, *more;
    assert_status(tgl_alloc(dev, 1 << 19, &memory), TGL_OK);
    assert_int_equal((uintptr_t)memory % 256, 0);
    assert_status(tgl_alloc(dev, 1 << 20, &more), TGL_NO_MEMORY);
    assert_null(more);
    assert_last_error(dev, "0 MiB of 1 MiB are free");
    tgl_free(dev, memory);
    assert_product(dev, NULL, 5, 5, 5); /* nothing is lost by it */
    tgl_device_close(dev);
}

static void a_compile_error_carries_the_log(void **state)
{
    (void)state;
    setenv("FAKE_NVRTC_ERROR", "01_naive.cu(12): error: expected a \";\"", 1);
    tgl_device *dev = open_device("cuda");
    assert_product_fails(dev, TGL_COMPILE);
    assert_last_error(dev, "expected a \";\"");
    unsetenv("FAKE_NVRTC_ERROR");
    assert_product(dev, NULL, 2, 2, 2);
    tgl_device_close(dev);
}

static void loading_fails(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuModuleLoadData=1", "cuModuleGetFunction=500",
                                        "cuFuncGetAttribute=1", "cuLaunchKernel=701"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        tgl_device *dev = open_device("cuda");
        setenv("FAKE_CUDA_FAIL", calls[i], 1);
        assert_product_fails(dev, TGL_DRIVER);
        unsetenv("FAKE_CUDA_FAIL");
        tgl_device_close(dev);
    }
}

static void a_driver_older_than_the_compiler_is_named(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_VERSION", "12040", 1);
    setenv("FAKE_CUDA_FAIL", "cuModuleLoadData=200", 1);
    tgl_device *dev = open_device("cuda");
    assert_product_fails(dev, TGL_DRIVER);
    assert_last_error(dev, "the driver, for CUDA 12.4");
    tgl_device_close(dev);
}

/* ---- The disk cache -------------------------------------------------------------------------- */

static void multiply_anew(void)
{
    tgl_device *dev = open_device("cuda");
    assert_product(dev, "ladder/naive", 4, 4, 4);
    tgl_device_close(dev);
}

static void a_kernel_is_compiled_once(void **state)
{
    (void)state;
    const int before = compilations();
    multiply_anew();
    multiply_anew();
    assert_int_equal(compilations(), before + 1);
    setenv("FAKE_CUDA_CAPABILITY", "80", 1); /* another chip */
    multiply_anew();
    assert_int_equal(compilations(), before + 2);
}

static void another_chip_s_code_in_the_cache_is_rebuilt(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
    setenv("FAKE_NVRTC_OUTPUT", "sm_90a", 1);
    tgl_device *dev = open_device("cuda");
    assert_product_fails(dev, TGL_DRIVER); /* as fresh as it can be: nothing to be done */
    tgl_device_close(dev);
    unsetenv("FAKE_NVRTC_OUTPUT");
    const int before = compilations();
    multiply_anew();
    assert_int_equal(compilations(), before + 1);
    multiply_anew();
    assert_int_equal(compilations(), before + 1);
}

static void without_a_cache_it_only_takes_longer(void **state)
{
    (void)state;
    char file[1024];
    snprintf(file, sizeof file, "%s/file", cache_folder());
    fclose(fopen(file, "w"));
    const char *const settings[] = {file, "off", "", "/proc/no such folder"};
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        setenv("TEGULA_CACHE", settings[i], 1);
        const int before = compilations();
        multiply_anew();
        multiply_anew();
        assert_int_equal(compilations(), before + 2);
        tgl_device *dev = open_device("cuda");
        assert_memory_equal(property_of(dev, "cache"), "off (", 5);
        tgl_device_close(dev);
    }
}

/* Both compile, as the first is not done when the second looks; the entry is whole all the same. */
static void two_processes_compile_at_once(void **state)
{
    (void)state;
    setenv("FAKE_NVRTC_DELAY", "100", 1);
    pid_t children[2];
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            multiply_anew();
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int result = -1;
        waitpid(children[i], &result, 0);
        assert_int_equal(result, 0);
    }
    int entries = 0;
    DIR *folder = opendir(cache_folder());
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        entries += entry->d_name[0] != '.';
    closedir(folder);
    assert_int_equal(entries, 1);
    const int before = compilations();
    multiply_anew();
    assert_int_equal(compilations(), before);
}

/* ---- Kernels that fault ---------------------------------------------------------------------- */

/* After a fault nothing but closing works, and says so; `other` goes on. */
static void assert_lost(tgl_device *dev, tgl_device *other)
{
    void *memory;
    double value;
    tgl_timer *timer;
    char text[256];
    assert_product_fails(dev, TGL_DEVICE_LOST);
    assert_last_error(dev, "close");
    assert_status(tgl_alloc(dev, 10, &memory), TGL_DEVICE_LOST);
    assert_status(tgl_upload(dev, text, text, 1), TGL_DEVICE_LOST);
    assert_status(tgl_download(dev, text, text, 1), TGL_DEVICE_LOST);
    assert_status(tgl_device_sync(dev), TGL_DEVICE_LOST);
    assert_status(tgl_timer_create(dev, &timer), TGL_DEVICE_LOST);
    assert_status(tgl_device_measure(dev, TGL_CEILING_COPY, &value), TGL_DEVICE_LOST);
    assert_product(other, NULL, 3, 3, 3);
}

static void a_fault_loses_the_device(void **state)
{
    (void)state;
    static const char *const faults[] = {"cuLaunchKernel=700", "cuCtxSynchronize=700",
                                         "cuCtxSynchronize=719"};
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    tgl_device *other = open_device("cuda:1");
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        tgl_device *dev = open_device("cuda:0");
        const tgl_problem problem = tgl_problem_make(TGL_F32, 1, 1, 0);
        float C = 0;
        tgl_plan *plan;
        tgl_timer *timer;
        assert_status(tgl_timer_create(dev, &timer), TGL_OK);
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
        setenv("FAKE_CUDA_FAIL", faults[i], 1);
        tgl_status status = tgl_plan_run(plan, 1, NULL, NULL, 0, &C, NULL);
        assert_status(status, i == 0 ? TGL_DEVICE_LOST : TGL_OK);
        assert_status(tgl_device_sync(dev), TGL_DEVICE_LOST);
        unsetenv("FAKE_CUDA_FAIL");
        assert_status(tgl_plan_run(plan, 1, NULL, NULL, 0, &C, NULL), TGL_DEVICE_LOST);
        assert_lost(dev, other);
        char text[512];
        assert_true(tgl_plan_explain(plan, text, sizeof text) > 0);
        tgl_plan_destroy(plan);
        tgl_timer_destroy(timer);
        tgl_device_close(dev);

        dev = open_device("cuda:0"); /* a new context */
        assert_product(dev, NULL, 3, 3, 3);
        tgl_device_close(dev);
    }
    tgl_device_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kernel_multiplies),
        TEST(without_a_product_neither_operand_is_read),
        TEST(column_major_is_row_major_exchanged),
        TEST(explain_tells_the_launch),
        TEST(a_split_plan_has_a_workspace),
        TEST(runs_of_a_split_plan_take_turns),
        TEST(launches_overlap_and_lie_in_clusters),
        TEST(short_blocks_overlap),
        TEST(older_chips_drivers_and_compilers_launch_plainly),
        TEST(strips_follow_their_tiles),
        TEST(one_strip_is_the_last),
        TEST(older_chips_launch_strips_in_turn),
        TEST(a_strip_that_cannot_be_launched_fails_the_run),
        TEST(strips_have_partial_sums_of_their_own),
        TEST(ceilings_are_measured),
        TEST(the_caller_s_context_stays),
        TEST(many_threads_share_a_device),
        TEST(what_no_kernel_takes),
        TEST(out_of_device_memory),
        TEST(a_compile_error_carries_the_log),
        TEST(loading_fails),
        TEST(a_driver_older_than_the_compiler_is_named),
        TEST(a_kernel_is_compiled_once),
        TEST(another_chip_s_code_in_the_cache_is_rebuilt),
        TEST(without_a_cache_it_only_takes_longer),
        TEST(two_processes_compile_at_once),
        TEST(a_fault_loses_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
