/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace on the cuda device, with the fake libraries: arenas of streams, captured runs, the
 * caller's memory, and exhausted memory. The fake reports memory of one stream that is used on
 * another or in a graph, memory that is freed too early, and counters that are not zero: see
 * fake_cuda/fake_cuda.h.
 */
#include "split_case.h"

#include "cuda/arena.h"

#include <pthread.h>

enum { ONE_ARENA = (2 << 20) + (64 << 10) };

static tgl_status run(const tgl_plan *plan, void *stream)
{
    memset(C, 0, sizeof C);
    return tgl_plan_run(plan, 1, A, B, 0, C, stream);
}

static void assert_runs(const tgl_plan *plan, void *stream)
{
    assert_status(run(plan, stream), TGL_OK);
    assert_true(is_product());
}

/* ---- Arenas ---------------------------------------------------------------------------------- */

static void a_plan_takes_no_memory_and_no_stream_when_it_is_made(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    setenv("FAKE_CUDA_FAIL",
           "cuMemAlloc_v2=2,cuMemAllocAsync=2,cuMemsetD8Async=1,cuEventCreate=1,"
           "cuStreamSynchronize=1,cuCtxSynchronize=1",
           1);
    tgl_plan *plan = split_plan(dev, K, 1);
    unsetenv("FAKE_CUDA_FAIL");
    assert_int_equal(memory_taken(), 0);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Runs on different streams do not wait for each other and share nothing. */
static void streams_have_arenas_of_their_own(void **state)
{
    (void)state;
    enum { STREAMS = 4 };
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1), *other = split_plan(dev, K / 2, 1);
    void *streams[STREAMS] = {NULL, (void *)2, create_stream(), create_blocking_stream()};
    const void *counters[STREAMS], *sums[STREAMS];
    setenv("FAKE_CUDA_FAIL", "cuStreamWaitEvent=1,cuEventRecord=1,cuStreamSynchronize=1", 1);
    for (int i = 0; i < STREAMS; i++) {
        assert_runs(plan, streams[i]);
        counters[i] = latest_launch().args.counters;
        sums[i] = latest_launch().args.workspace;
        for (int j = 0; j < i; j++)
            assert_true(counters[i] != counters[j] && sums[i] != sums[j]);
    }
    for (int i = STREAMS - 1; i >= 0; i--) { /* all plans share the arena of a stream */
        assert_status(run(other, streams[i]), TGL_OK);
        assert_ptr_equal(latest_launch().args.counters, counters[i]);
        assert_ptr_equal(latest_launch().args.workspace, sums[i]);
    }
    assert_status(run(plan, (void *)1), TGL_OK); /* CU_STREAM_LEGACY, the default stream */
    assert_ptr_equal(latest_launch().args.counters, counters[0]);
    unsetenv("FAKE_CUDA_FAIL");
    assert_int_equal(memory_taken(), STREAMS * ONE_ARENA);
    tgl_plan_destroy(plan);
    tgl_plan_destroy(other);
    tgl_device_close(dev);
}

/* Outside of captures, runs allocate no stream-ordered memory. */
static void runs_have_no_stream_ordered_memory(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    setenv("FAKE_CUDA_FAIL", "cuMemAllocAsync=1,cuMemFreeAsync=1", 1);
    assert_runs(plan, create_stream());
    assert_runs(plan, (void *)2); /* CU_STREAM_PER_THREAD */
    unsetenv("FAKE_CUDA_FAIL");
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* A plan with at least this workspace: a batch of the necessary number of products. */
static tgl_plan *plan_with(tgl_device *dev, size_t bytes)
{
    for (int64_t batch = 1;; batch *= 2) {
        tgl_plan *plan = split_plan(dev, K, batch);
        if (tgl_plan_workspace_size(plan) >= bytes) return plan;
        tgl_plan_destroy(plan);
    }
}

static void arenas_grow(void **state)
{
    (void)state;
    for (int has_pools = 0; has_pools < 2; has_pools++) {
        setenv("FAKE_CUDA_POOLS", has_pools ? "1" : "0", 1);
        tgl_device *dev = open_device("cuda");
        tgl_plan *little = split_plan(dev, K, 1), *large = plan_with(dev, 20 << 20);
        void *stream = create_stream();
        assert_runs(little, stream);
        assert_int_equal(memory_taken(), ONE_ARENA);
        assert_status(run_empty(large, stream), TGL_OK);
        const size_t taken = memory_taken();
        assert_in_range(taken, tgl_plan_workspace_size(large),
                        tgl_plan_workspace_size(large) + ONE_ARENA);
        assert_runs(little, stream);
        assert_int_equal(memory_taken(), taken);
        tgl_plan_destroy(little);
        tgl_plan_destroy(large);
        tgl_device_close(dev);
    }
}

/* The bytes of the arenas of streams and of the shared arena have a limit. A new stream may have
 * the handle of a destroyed one, but it has another arena. */
static void arenas_are_bounded(void **state)
{
    (void)state;
    enum { STREAMS = 200, IN_ARENAS = TGL_STREAMS_BYTES / ONE_ARENA };
    setenv("FAKE_CUDA_MEMORY", "4000000000", 1);
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = create_stream();
        assert_runs(plan, streams[i]);
        if (i % 2 == 0) destroy_stream(streams[i]);
        assert_in_range(memory_taken(), 1, (IN_ARENAS + 1) * ONE_ARENA);
    }
    assert_int_equal(memory_taken(), (IN_ARENAS + 1) * ONE_ARENA);
    const void *shared = latest_launch().args.counters;
    for (int i = 0; i < TGL_ARENA_AGE; i++) /* the arenas of other streams get old */
        assert_runs(plan, streams[1]);
    assert_runs(plan, create_stream());
    assert_true(latest_launch().args.counters != shared);
    assert_int_equal(memory_taken(), (IN_ARENAS + 1) * ONE_ARENA);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* On a small device the limit of the arenas' memory is lower. No arena of a stream in use is
 * evicted, so that the host does not wait for any run. */
static void arenas_are_bounded_by_the_device(void **state)
{
    (void)state;
    enum { BYTES = 40 << 20, STREAMS = 20 };
    setenv("FAKE_CUDA_MEMORY", "41943040", 1); /* BYTES */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = create_stream();
        assert_runs(plan, streams[i]);
        assert_in_range(memory_taken(), 1, BYTES / 4);
    }
    setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2,cuMemFree_v2=1,cuStreamSynchronize=1", 1);
    for (int i = 0; i < STREAMS; i++)
        assert_runs(plan, streams[i]);
    unsetenv("FAKE_CUDA_FAIL");
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* The workspace of the largest product is kept once, in the shared arena, and runs on different
 * streams wait for each other on the GPU. Small products use the arenas of their streams. */
static void large_products_share_memory(void **state)
{
    (void)state;
    enum { STREAMS = 8 };
    setenv("FAKE_CUDA_MEMORY", "4000000000", 1);
    tgl_device *dev = open_device("cuda");
    tgl_plan *little = split_plan(dev, K, 1), *large = plan_with(dev, TGL_STREAM_BYTES + 1);
    void *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = create_stream();
        assert_status(run_empty(large, streams[i]), TGL_OK);
    }
    assert_in_range(memory_taken(), TGL_STREAM_BYTES, tgl_plan_workspace_size(large) + ONE_ARENA);
    setenv("FAKE_CUDA_FAIL", "cuStreamWaitEvent=1", 1);
    assert_status(run_empty(large, streams[0]), TGL_DRIVER);
    assert_status(run_empty(large, streams[STREAMS - 1]), TGL_OK); /* the latest stream */
    assert_runs(little, streams[0]);
    unsetenv("FAKE_CUDA_FAIL");
    tgl_plan_destroy(little);
    tgl_plan_destroy(large);
    tgl_device_close(dev);
}

static void memory_is_given_back(void **state)
{
    (void)state;
    enum { BYTES = 40 << 20 };
    void *memory;
    setenv("FAKE_CUDA_MEMORY", "41943040", 1); /* BYTES */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1), *large = plan_with(dev, 4 << 20);
    void *streams[] = {NULL, create_stream()};
    for (int i = 0; i < 2; i++) {
        assert_runs(plan, streams[0]);
        assert_runs(plan, streams[1]);
        assert_status(run_empty(large, streams[1]), TGL_OK);
        assert_true(memory_taken() > 2 * ONE_ARENA);
        if (i == 0) {
            assert_status(tgl_device_trim(dev), TGL_OK);
            assert_int_equal(memory_taken(), 0);
        }
    }
    assert_status(tgl_alloc(dev, BYTES, &memory), TGL_OK); /* the arenas make room */
    tgl_free(dev, memory);
    assert_status(tgl_device_trim(NULL), TGL_BAD_ARGUMENT);
    tgl_plan_destroy(plan);
    tgl_plan_destroy(large);
    tgl_device_close(dev);
}

/* A product with more workspace than the limit is computed without workspace. */
static void too_much_for_an_arena(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_MEMORY", "8000000", 1); /* a quarter is less than an arena */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    for (int i = 0; i < 3; i++)
        assert_runs(plan, NULL);
    assert_int_equal(memory_taken(), 0);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* An arena cannot be evicted if waiting for its work fails because of another thread's capture. */
static void arenas_that_cannot_be_evicted_stay(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_MEMORY", "10000000", 1); /* room for one arena */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    assert_runs(plan, NULL);
    setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=1", 1);
    assert_runs(plan, create_stream());
    unsetenv("FAKE_CUDA_FAIL");
    assert_int_equal(memory_taken(), ONE_ARENA);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* If memory is exhausted, other streams' arenas are evicted. If that does not suffice, the product
 * is computed without workspace. */
static void out_of_memory(void **state)
{
    (void)state;
    enum { BYTES = 40 << 20 };
    setenv("FAKE_CUDA_MEMORY", "41943040", 1); /* BYTES */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *memory, *rest, *stream = create_stream();
    assert_runs(plan, NULL);
    assert_status(tgl_alloc(dev, BYTES - ONE_ARENA - 1000, &memory), TGL_OK);
    assert_runs(plan, stream);
    assert_int_equal(latest_launch().args.splits, 11);
    assert_int_equal(memory_taken(), BYTES - 1000);
    tgl_plan_destroy(plan);
    tgl_device_close(dev); /* frees the arena, but not the caller's memory */

    dev = open_device("cuda");
    plan = split_plan(dev, K, 1);
    assert_status(tgl_alloc(dev, ONE_ARENA, &rest), TGL_OK);
    assert_runs(plan, stream);
    assert_true(latest_launch().args.splits <= latest_launch().args.cluster);
    tgl_plan_destroy(plan);
    tgl_free(dev, memory);
    tgl_free(dev, rest);
    tgl_device_close(dev);
}

/* If a launch runs out of memory, the product is not computed again without workspace: the launches
 * before it have changed C. */
static void out_of_memory_after_a_launch(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    const tgl_problem problem = problem_of(TGL_F32, 40, 40, K);
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = "simt_32x32x32:splits=11,strips=1"};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(run(plan, NULL), TGL_OK);
    const int before = compilations();
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernelEx=2", 1); /* the strips */
    assert_status(run(plan, NULL), TGL_NO_MEMORY);
    unsetenv("FAKE_CUDA_FAIL");
    assert_int_equal(compilations(), before); /* there was no second plan */
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* The counters of interrupted launches are cleared before the next run. */
static void a_failed_run_clears_the_counters(void **state)
{
    (void)state;
    static const char *const kernel = "simt_32x32x32:splits=11,strips=1";
    tgl_device *dev = open_device("cuda");
    const tgl_problem problem = problem_of(TGL_F32, 40, 40, K);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(run(plan, NULL), TGL_OK);
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernelEx=1", 1); /* the strips */
    setenv("FAKE_CUDA_DIRTY", "1", 1);
    assert_status(run(plan, NULL), TGL_DRIVER);
    unsetenv("FAKE_CUDA_DIRTY");
    setenv("FAKE_CUDA_FAIL", "cuMemsetD8Async=1", 1);
    assert_status(run(plan, NULL), TGL_DRIVER);
    unsetenv("FAKE_CUDA_FAIL");
    assert_status(run(plan, NULL), TGL_OK); /* a misuse if the counters were not cleared */
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

typedef struct worker {
    const tgl_plan *plan;
    void *stream, *C;
} worker;

static void *run_often(void *data)
{
    const worker *w = data;
    for (int i = 0; i < 200; i++)
        if (tgl_plan_run(w->plan, 0, NULL, NULL, 0, w->C, w->stream) != TGL_OK) abort();
    return NULL;
}

/* Two threads per stream, and more streams than arenas fit. */
static void threads_share_streams(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    static float results[THREADS][M * N];
    setenv("FAKE_CUDA_MEMORY", "30000000", 1); /* three arenas */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        void *stream = i % 2 == 0 ? create_stream() : workers[i - 1].stream;
        workers[i] = (worker){plan, stream, results[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* ---- The caller's workspace ------------------------------------------------------------------ */

/* The caller's counters need not be zero, no arena is created, and nothing waits. */
static void the_caller_s_workspace(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    const size_t bytes = tgl_plan_workspace_size(plan);
    void *memory, *stream = create_stream();
    assert_status(tgl_alloc(dev, bytes, &memory), TGL_OK);
    tgl_operands operands = {.size = sizeof operands,
                             .alpha = 1,
                             .A = A,
                             .B = B,
                             .C = C,
                             .workspace = memory,
                             .workspace_bytes = bytes};
    for (int i = 0; i < 2; i++) {
        memset(memory, 0xff, bytes);
        assert_status(tgl_plan_run_operands(plan, &operands, stream), TGL_OK);
        assert_true(C[0] == K);
        assert_ptr_equal(latest_launch().args.counters, memory);
        assert_in_range((char *)latest_launch().args.workspace - (char *)memory, 4, bytes);
    }
    assert_int_equal(memory_taken(), bytes);
    operands.workspace_bytes--;
    assert_status(tgl_plan_run_operands(plan, &operands, stream), TGL_BAD_WORKSPACE);
    tgl_free(dev, memory);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* ---- Captured runs --------------------------------------------------------------------------- */

/* A graph and other runs use different memory: the graph may be launched while they run. */
static void a_captured_run_uses_no_arena(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream(), *other = create_stream();
    assert_runs(plan, stream);
    const void *arena = latest_launch().args.counters;
    begin_capture(stream);
    assert_status(run(plan, stream), TGL_OK);
    assert_true(C[0] == 0);
    assert_int_equal(latest_launch().is_captured, 1);
    assert_true(latest_launch().args.counters != arena);
    assert_status(run(plan, stream), TGL_OK);
    void *graph = end_capture(stream);
    assert_runs(plan, stream);
    assert_ptr_equal(latest_launch().args.counters, arena);
    for (int i = 0; i < 3;
         i++) { /* the kernels leave garbage in the counters; the graph's own memset clears them */
        memset(C, 0, sizeof C);
        launch_graph(graph, i == 1 ? other : stream);
        assert_true(is_product());
    }
    destroy_graph(graph);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void a_captured_run_may_have_the_caller_s_workspace(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    const size_t bytes = tgl_plan_workspace_size(plan);
    void *memory, *stream = create_stream();
    assert_status(tgl_alloc(dev, bytes, &memory), TGL_OK);
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = 1,
                                   .A = A,
                                   .B = B,
                                   .C = C,
                                   .workspace = memory,
                                   .workspace_bytes = bytes};
    begin_capture(stream);
    assert_status(tgl_plan_run_operands(plan, &operands, stream), TGL_OK);
    void *graph = end_capture(stream);
    assert_int_equal(memory_taken(), bytes);
    memset(memory, 0xff, bytes);
    launch_graph(graph, stream);
    assert_true(C[0] == K);
    destroy_graph(graph);
    tgl_free(dev, memory);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void a_captured_run_that_fails_frees_its_memory(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream();
    begin_capture(stream);
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel=1", 1);
    assert_status(run(plan, stream), TGL_DRIVER);
    unsetenv("FAKE_CUDA_FAIL");
    destroy_graph(end_capture(stream));
    assert_status(tgl_device_trim(dev), TGL_OK);
    assert_int_equal(memory_taken(), 0);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void copies_are_not_captured(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    void *stream = create_stream();
    float word = 1;
    begin_capture(stream);
    assert_status(tgl_upload(dev, &word, &word, sizeof word, stream), TGL_UNSUPPORTED);
    assert_last_error("the stream is being captured");
    assert_status(tgl_download(dev, &word, &word, sizeof word, stream), TGL_UNSUPPORTED);
    destroy_graph(end_capture(stream));
    tgl_device_close(dev);
}

/* Uses everything in the capturing thread, for which CUDA's rules are the strictest. */
static void use_everything(tgl_device *dev, tgl_plan *plan)
{
    enum { STREAMS = 8 };
    double seconds;
    float word = 1;
    void *memory, *stream = create_stream();
    tgl_timer *timer;
    for (int i = 0; i < STREAMS; i++) /* more arenas than there is room for */
        assert_runs(plan, i == 0 ? stream : create_stream());
    tgl_plan *large = plan_with(dev, 3 << 20); /* the arena grows */
    assert_status(run_empty(large, stream), TGL_OK);
    tgl_plan_destroy(large);
    assert_status(tgl_alloc(dev, 1000, &memory), TGL_OK);
    assert_status(tgl_upload(dev, memory, &word, sizeof word, stream), TGL_OK);
    assert_status(tgl_download(dev, &word, memory, sizeof word, stream), TGL_OK);
    tgl_free(dev, memory);
    assert_status(tgl_timer_create(dev, &timer), TGL_OK);
    assert_status(tgl_timer_start(timer, stream), TGL_OK);
    assert_status(tgl_timer_stop(timer, stream, &seconds), TGL_OK);
    tgl_timer_destroy(timer);
    tgl_device *second = open_device("cuda");
    tgl_plan *other = split_plan(second, K, 1);
    assert_runs(other, stream);
    tgl_plan_destroy(other);
    assert_status(tgl_device_measure(second, TGL_CEILING_FMA_F32, &seconds), TGL_OK);
    tgl_device_close(second);
}

static void nothing_ends_a_capture_under_way(void **state)
{
    (void)state;
    static const char *const memories[] = {"268435456", "30000000"};
    for (size_t i = 0; i < COUNT_OF(memories); i++) {
        for (int has_pools = 0; has_pools < 2; has_pools++) {
            setenv("FAKE_CUDA_MEMORY", memories[i], 1);
            setenv("FAKE_CUDA_POOLS", has_pools ? "1" : "0", 1);
            tgl_device *dev = open_device("cuda");
            tgl_plan *plan = split_plan(dev, K, 1);
            void *captured = create_stream(), *other = create_blocking_stream();
            begin_capture(captured);
            begin_capture(other);
            use_everything(dev, plan);
            destroy_graph(end_capture(captured));
            destroy_graph(end_capture(other));
            tgl_plan_destroy(plan);
            tgl_device_close(dev);
        }
    }
}

/* The default stream waits for blocking streams, one of which is being captured. */
static void the_default_stream_beside_a_capture(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_blocking_stream();
    float word = 1;
    begin_capture(stream);
    assert_status(run(plan, NULL), TGL_UNSUPPORTED);
    assert_last_error("the default stream cannot be used");
    assert_status(tgl_upload(dev, &word, &word, sizeof word, NULL), TGL_UNSUPPORTED);
    destroy_graph(end_capture(stream));
    assert_runs(plan, NULL);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* ---- Older drivers --------------------------------------------------------------------------- */

/* Such drivers cannot identify streams: there is one arena, whose runs wait for each other. */
static void drivers_without_stream_numbers(void **state)
{
    (void)state;
    use_old_driver("11080");
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream();
    assert_runs(plan, stream);
    assert_runs(plan, NULL);
    assert_int_equal(memory_taken(), ONE_ARENA);
    begin_capture(stream);
    assert_status(run(plan, stream), TGL_OK);
    void *graph = end_capture(stream);
    launch_graph(graph, stream);
    assert_true(C[0] == K);
    destroy_graph(graph);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void drivers_without_memory_in_graphs(void **state)
{
    (void)state;
    use_old_driver("11030");
    setenv("FAKE_NVRTC_VERSION", "11040", 1);
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream();
    begin_capture(stream);
    assert_status(run(plan, stream), TGL_UNSUPPORTED);
    assert_last_error("give the run a workspace");
    destroy_graph(end_capture(stream));
    assert_runs(plan, stream);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* All streams have one arena, and their runs wait for each other by an event. */
static void drivers_without_stream_ordered_memory(void **state)
{
    (void)state;
    use_old_driver("11000");
    setenv("FAKE_CUDA_POOLS", "0", 1);
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1), *large = plan_with(dev, 4 << 20);
    void *streams[] = {create_stream(), create_stream(), NULL};
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        assert_runs(plan, streams[i]);
        assert_int_equal(memory_taken(), ONE_ARENA);
    }
    setenv("FAKE_CUDA_FAIL", "cuStreamWaitEvent=1", 1);
    assert_status(run(plan, streams[0]), TGL_DRIVER);
    setenv("FAKE_CUDA_FAIL", "cuEventRecord=1", 1);
    assert_status(run(plan, streams[0]), TGL_DRIVER);
    unsetenv("FAKE_CUDA_FAIL");
    assert_status(run_empty(large, streams[1]), TGL_OK);
    assert_runs(plan, streams[0]);
    begin_capture(streams[0]);
    assert_status(run(plan, streams[0]), TGL_UNSUPPORTED);
    destroy_graph(end_capture(streams[0]));
    tgl_plan_destroy(plan);
    tgl_plan_destroy(large);
    tgl_device_close(dev);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plan_takes_no_memory_and_no_stream_when_it_is_made),
        TEST(streams_have_arenas_of_their_own),
        TEST(runs_have_no_stream_ordered_memory),
        TEST(arenas_grow),
        TEST(arenas_are_bounded),
        TEST(arenas_are_bounded_by_the_device),
        TEST(large_products_share_memory),
        TEST(memory_is_given_back),
        TEST(too_much_for_an_arena),
        TEST(arenas_that_cannot_be_evicted_stay),
        TEST(out_of_memory),
        TEST(out_of_memory_after_a_launch),
        TEST(a_failed_run_clears_the_counters),
        TEST(threads_share_streams),
        TEST(the_caller_s_workspace),
        TEST(a_captured_run_uses_no_arena),
        TEST(a_captured_run_may_have_the_caller_s_workspace),
        TEST(a_captured_run_that_fails_frees_its_memory),
        TEST(copies_are_not_captured),
        TEST(nothing_ends_a_capture_under_way),
        TEST(the_default_stream_beside_a_capture),
        TEST(drivers_without_stream_numbers),
        TEST(drivers_without_memory_in_graphs),
        TEST(drivers_without_stream_ordered_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
