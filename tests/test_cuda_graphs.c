/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace of runs that are captured into CUDA graphs, with the fake libraries: its lifetime, its
 * bound, streams and threads. The fake reports calls of the driver in the destructor of a user
 * object: see fake_cuda/fake_cuda.h.
 */
#include "split_case.h"

#include "cuda/arena.h"

#include <pthread.h>

static void add_run(const tgl_plan *plan, void *stream)
{
    assert_status(tgl_plan_run(plan, 1, A, B, 0, C, stream), TGL_OK);
    assert_int_equal(latest_launch().is_captured, 1);
}

static const void *latest_workspace(void)
{
    return latest_launch().args.counters;
}

/* A graph of two runs of the plan. */
static void *capture(const tgl_plan *plan, void *stream)
{
    begin_capture(stream);
    add_run(plan, stream);
    add_run(plan, stream);
    return end_capture(stream);
}

static void assert_computes(void *graph, void *stream)
{
    memset(C, 0, sizeof C);
    launch_graph(graph, stream);
    assert_true(is_product());
}

/* ---- What can be done with a graph ----------------------------------------------------------- */

static void graphs_can_be_cloned_embedded_and_instantiated_twice(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream(), *graph = capture(plan, stream);
    assert_int_equal(memory_nodes(graph), 0);
    void *made[] = {clone_graph(graph), embed_graph(graph), instantiate_graph(graph),
                    instantiate_graph(graph)};
    assert_computes(graph, stream);
    destroy_graph(graph);
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        assert_non_null(made[i]);
        assert_status(tgl_device_trim(dev), TGL_OK); /* the others still have the memory */
        assert_computes(made[i], stream);
        void *executable = instantiate_graph(made[i]);
        destroy_graph(made[i]);
        assert_computes(executable, stream);
        destroy_graph(executable);
    }
    assert_status(tgl_device_trim(dev), TGL_OK);
    assert_int_equal(memory_taken(), 0);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* A graph is captured in two parts, as with the body of a conditional node. Each capture has memory
 * of its own, because the order of the two parts in the graph is not known. */
static void a_graph_is_captured_in_two_parts(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream(), *graph = embed_graph(NULL), *out;
    const void *spaces[2];
    for (int i = 0; i < 2; i++) {
        begin_capture_to(graph, stream);
        add_run(plan, stream);
        spaces[i] = latest_workspace();
        out = end_capture(stream);
        assert_ptr_equal(out, graph);
    }
    assert_ptr_not_equal(spaces[0], spaces[1]);
    assert_computes(graph, stream);
    destroy_graph(graph);
    assert_status(tgl_device_trim(dev), TGL_OK);
    assert_int_equal(memory_taken(), 0);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void the_caller_s_workspace_is_used(void **state)
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
    assert_ptr_equal(latest_workspace(), memory);
    void *graph = end_capture(stream), *clone = clone_graph(graph);
    assert_int_equal(memory_taken(), bytes);
    destroy_graph(graph);
    assert_computes(clone, stream);
    destroy_graph(clone);
    tgl_free(dev, memory);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void many_graphs_do_not_grow_memory(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream();
    size_t taken = 0;
    for (int i = 0; i < 1000; i++) {
        void *graph = capture(plan, stream), *clone = clone_graph(graph);
        void *executables[] = {instantiate_graph(graph), instantiate_graph(clone)};
        if (i == 0) taken = memory_taken();
        setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2", 1); /* later graphs get the same memory */
        assert_int_equal(memory_nodes(graph), 0);
        assert_int_equal(memory_taken(), taken);
        destroy_graph(graph);
        destroy_graph(clone);
        if (i % 100 == 0) assert_computes(executables[1], stream);
        destroy_graph(executables[0]);
        destroy_graph(executables[1]);
    }
    unsetenv("FAKE_CUDA_FAIL");
    assert_in_range(taken, tgl_plan_workspace_size(plan), 1 << 20);
    assert_status(tgl_device_trim(dev), TGL_OK);
    assert_int_equal(memory_taken(), 0);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Graphs beyond the limit have memory nodes, until the memory of another graph is unused. */
static void memory_is_bounded(void **state)
{
    (void)state;
    enum { MEMORY = 64 << 20, GRAPHS = 20 };
    setenv("FAKE_CUDA_MEMORY", "67108864", 1); /* MEMORY */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 16);
    void *stream = create_stream(), *graphs[GRAPHS];
    int with_nodes = 0;
    for (int i = 0; i < GRAPHS; i++) {
        const size_t before = memory_taken();
        begin_capture(stream);
        assert_status(run_empty(plan, stream), TGL_OK);
        graphs[i] = end_capture(stream);
        if (memory_nodes(graphs[i]) > 0)
            with_nodes++;
        else
            assert_true(with_nodes == 0 && before < MEMORY / 8);
        if (with_nodes == 0) assert_in_range(memory_taken(), before + 1, MEMORY / 8);
    }
    assert_in_range(with_nodes, 1, GRAPHS - 1);
    destroy_graph(graphs[0]);
    begin_capture(stream);
    assert_status(run_empty(plan, stream), TGL_OK);
    graphs[0] = end_capture(stream);
    assert_int_equal(memory_nodes(graphs[0]), 0);
    for (int i = 0; i < GRAPHS; i++)
        destroy_graph(graphs[i]);
    assert_status(tgl_device_trim(dev), TGL_OK);
    assert_int_equal(memory_taken(), 0);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* A small graph does not get the memory of a large one, which is freed when memory is allocated. */
static void a_small_graph_keeps_no_large_memory(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *little = split_plan(dev, K, 1), *large = split_plan(dev, K, 64);
    void *stream = create_stream();
    begin_capture(stream);
    assert_status(run_empty(large, stream), TGL_OK);
    destroy_graph(end_capture(stream));
    assert_true(memory_taken() >= tgl_plan_workspace_size(large));
    void *graph = capture(little, stream);
    assert_in_range(memory_taken(), 1, tgl_plan_workspace_size(large) / 2);
    destroy_graph(graph);
    tgl_plan_destroy(little);
    tgl_plan_destroy(large);
    tgl_device_close(dev);
}

/* Each allocation of a capture is twice as large as the one before it. */
static void a_graph_has_few_memories(void **state)
{
    (void)state;
    enum { BATCHES = 32, MEMORIES_MAX = 6 };
    tgl_device *dev = open_device("cuda");
    tgl_plan *plans[BATCHES];
    const void *space = NULL;
    void *stream = create_stream();
    int memories = 0;
    for (int i = 0; i < BATCHES; i++)
        plans[i] = split_plan(dev, K, i + 1);
    begin_capture(stream);
    for (int i = 0; i < BATCHES; i++) {
        assert_status(run_empty(plans[i], stream), TGL_OK);
        memories += latest_workspace() != space;
        space = latest_workspace();
    }
    void *graph = end_capture(stream);
    assert_int_equal(memory_nodes(graph), 0);
    assert_in_range(memories, 2, MEMORIES_MAX);
    destroy_graph(graph);
    for (int i = 0; i < BATCHES; i++)
        tgl_plan_destroy(plans[i]);
    tgl_device_close(dev);
}

/* If the device's memory is exhausted, arenas and unused memory of graphs make room. */
static void unused_memory_makes_room(void **state)
{
    (void)state;
    enum { MEMORY = 64 << 20, ARENA = (2 << 20) + (64 << 10), REST = 1000 };
    setenv("FAKE_CUDA_MEMORY", "67108864", 1); /* MEMORY */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream(), *memory;
    assert_status(tgl_plan_run(plan, 1, A, B, 0, C, stream), TGL_OK); /* makes an arena */
    assert_int_equal(memory_taken(), ARENA);
    assert_status(tgl_alloc(dev, MEMORY - ARENA - REST, &memory), TGL_OK);
    void *graph = capture(plan, stream); /* evicts the arena */
    assert_int_equal(latest_launch().args.splits, 11);
    assert_int_equal(memory_nodes(graph), 0);
    assert_in_range(memory_taken(), MEMORY - ARENA, MEMORY - REST - 1);
    destroy_graph(graph);
    assert_status(tgl_plan_run(plan, 1, A, B, 0, C, stream), TGL_OK); /* makes one again */
    assert_int_equal(latest_launch().args.splits, 11);
    assert_int_equal(memory_taken(), MEMORY - REST);
    tgl_free(dev, memory);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Graphs may be destroyed after the plan and the device. */
static void a_device_closes_before_its_graphs(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream(), *graph = capture(plan, stream);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    assert_int_equal(memory_taken(), 0);
    destroy_graph(graph);
}

/* ---- Streams and threads --------------------------------------------------------------------- */

/* The runs of a stream share memory. A stream that joins the capture gets other memory, because
 * its runs may overlap those of the first. */
static void streams_of_one_capture(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1), *large = split_plan(dev, K, 4);
    void *stream = create_stream(), *side = create_stream();
    begin_capture(stream);
    wait_for_stream(side, stream);
    add_run(plan, stream);
    const void *space = latest_workspace();
    add_run(plan, side);
    const void *side_space = latest_workspace();
    assert_ptr_not_equal(space, side_space);
    add_run(plan, stream);
    assert_ptr_equal(latest_workspace(), space);
    assert_status(run_empty(large, stream), TGL_OK);
    const void *large_space = latest_workspace();
    assert_true(large_space != space && large_space != side_space);
    add_run(plan, stream);
    assert_ptr_equal(latest_workspace(), large_space);
    add_run(plan, side);
    assert_ptr_equal(latest_workspace(), side_space);
    wait_for_stream(stream, side);
    void *graph = end_capture(stream);
    assert_int_equal(memory_nodes(graph), 0);
    void *other = capture(plan, stream); /* the first graph has its memory for itself */
    assert_true(latest_workspace() != space && latest_workspace() != side_space &&
                latest_workspace() != large_space);
    destroy_graph(other);
    destroy_graph(graph);
    tgl_plan_destroy(plan);
    tgl_plan_destroy(large);
    tgl_device_close(dev);
}

/* The driver destroys user objects late, in the middle of a call that the library makes with its
 * lock, or after the device is closed. */
static void destructors_come_late(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_LATE", "1", 1);
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream(), *graph = capture(plan, stream);
    const size_t taken = memory_taken();
    destroy_graph(graph);
    graph = capture(plan, stream); /* the first memory becomes unused in cuMemAlloc() */
    assert_int_equal(memory_taken(), 2 * taken);
    assert_int_equal(late_destructors(), 0);
    void *second = capture(plan, stream);
    assert_int_equal(memory_taken(), 2 * taken);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    assert_int_equal(memory_taken(), 0);
    destroy_graph(graph);
    destroy_graph(second);
    assert_int_equal(late_destructors(), 2);
}

static void *capture_often(void *data)
{
    const tgl_plan *plan = data;
    void *stream = create_stream();
    for (int i = 0; i < 100; i++) {
        begin_capture(stream);
        if (run_empty(plan, stream) != TGL_OK) abort();
        void *graph = end_capture(stream), *executable = instantiate_graph(graph);
        if (memory_nodes(graph) != 0) abort();
        destroy_graph(graph);
        destroy_graph(executable);
    }
    return NULL;
}

static void *trim_often(void *data)
{
    for (int i = 0; i < 100; i++)
        if (tgl_device_trim(data) != TGL_OK) abort();
    return NULL;
}

static void threads_capture(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    pthread_t threads[THREADS + 1];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, capture_often, plan), 0);
    assert_int_equal(pthread_create(&threads[THREADS], NULL, trim_often, dev), 0);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_status(tgl_device_trim(dev), TGL_OK);
    assert_int_equal(memory_taken(), 0);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* ---- Fallbacks ------------------------------------------------------------------------------- */

/* Memory nodes are the last resort: they are used without memory and without user objects. */
static void memory_nodes_are_the_last_resort(void **state)
{
    (void)state;
    static const char *const failures[] = {"cuMemAlloc_v2=2", "cuUserObjectCreate=801",
                                           "cuGraphRetainUserObject=801"};
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream();
    for (size_t i = 0; i <= COUNT_OF(failures); i++) {
        if (i < COUNT_OF(failures)) setenv("FAKE_CUDA_FAIL", failures[i], 1);
        void *graph = capture(plan, stream);
        unsetenv("FAKE_CUDA_FAIL");
        assert_int_equal(memory_nodes(graph), i < COUNT_OF(failures) ? 2 : 0);
        assert_computes(graph, stream);
        destroy_graph(graph);
    }
    begin_capture(stream);
    setenv("FAKE_CUDA_FAIL", "cuStreamGetCaptureInfo_v2=1", 1);
    assert_status(run_empty(plan, stream), TGL_DRIVER);
    setenv("FAKE_CUDA_FAIL", "cuMemsetD8Async=1", 1);
    assert_status(run_empty(plan, stream), TGL_DRIVER);
    unsetenv("FAKE_CUDA_FAIL");
    add_run(plan, stream); /* nobody holds the lock */
    destroy_graph(end_capture(stream));
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void a_capture_that_has_failed(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream();
    begin_capture(stream);
    end_captures();
    assert_status(run_empty(plan, stream), TGL_DRIVER);
    fail_capture(stream);
    destroy_graph(capture(plan, stream));
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Devices without stream-ordered memory can capture, too, as long as there is room. */
static void devices_without_stream_ordered_memory(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_POOLS", "0", 1);
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = split_plan(dev, K, 1);
    void *stream = create_stream(), *graph = capture(plan, stream);
    assert_computes(graph, stream);
    destroy_graph(graph);
    assert_status(tgl_device_trim(dev), TGL_OK);
    begin_capture(stream);
    setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2", 1);
    assert_status(run_empty(plan, stream), TGL_UNSUPPORTED);
    unsetenv("FAKE_CUDA_FAIL");
    assert_last_error("give the run a workspace");
    destroy_graph(end_capture(stream));
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(graphs_can_be_cloned_embedded_and_instantiated_twice),
        TEST(a_graph_is_captured_in_two_parts),
        TEST(the_caller_s_workspace_is_used),
        TEST(many_graphs_do_not_grow_memory),
        TEST(memory_is_bounded),
        TEST(a_small_graph_keeps_no_large_memory),
        TEST(a_graph_has_few_memories),
        TEST(unused_memory_makes_room),
        TEST(a_device_closes_before_its_graphs),
        TEST(streams_of_one_capture),
        TEST(destructors_come_late),
        TEST(threads_capture),
        TEST(memory_nodes_are_the_last_resort),
        TEST(a_capture_that_has_failed),
        TEST(devices_without_stream_ordered_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
