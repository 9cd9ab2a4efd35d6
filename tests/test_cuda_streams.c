/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and graphs on a real GPU; skipped if there is none. Plans with split-K have a workspace,
 * which runs on different streams and in graphs must not share.
 */
#include "driver_calls.h"

#include <pthread.h>

enum { SIDE = 200, DEPTH = 1024, BATCH_MAX = 3, STREAMS = 3, NON_BLOCKING = 1 };

/* A kernel (NULL: the planner's choice), and the number of products of a batch. Each product has
 * its own sums in the workspace. 4 splits are reduced in a cluster (if there are clusters), 11 in
 * the workspace, 16 in both. */
typedef struct sharing {
    const char *kernel;
    int batch;
} sharing;

static const sharing ways[] = {
    {NULL, 1},
    {"simt_32x32x32:splits=1,strips=0", 1},
    {"simt_32x32x32:splits=4,strips=0", 1},
    {"simt_32x32x32:splits=11,strips=0", 1},
    {"simt_32x32x32:splits=16,strips=0", 1},
    {"simt_32x32x32:splits=1,strips=1", 1},
    {"simt_32x32x32:splits=4,strips=1", 1},
    {"simt_32x32x32:splits=11,strips=1", 1},
    {"simt_32x32x32:splits=11,strips=0", BATCH_MAX},
    {"simt_32x32x32:splits=11,strips=1", BATCH_MAX},
};

/* C := A*B + C with A of ones: increments each element of C by DEPTH times the value of B, exactly.
 */
typedef struct adder {
    tgl_device *dev;
    tgl_plan *plan;
    void *A, *B;
} adder;

static void *room_for_C(tgl_device *dev)
{
    return constant_floats(dev, (size_t)BATCH_MAX * SIDE * SIDE, 0);
}

/* The value of B's elements in a product of the batch. */
static float value_of_B(size_t product)
{
    return (float)(2 + product);
}

static void *make_B(tgl_device *dev, int batch)
{
    static const size_t count = (size_t)DEPTH * SIDE;
    float *host = malloc((size_t)batch * count * sizeof *host);
    void *memory;
    assert_non_null(host);
    for (size_t i = 0; i < (size_t)batch * count; i++)
        host[i] = value_of_B(i / count);
    assert_ok(tgl_alloc(dev, (size_t)batch * count * sizeof *host, &memory));
    assert_ok(tgl_upload(dev, memory, host, (size_t)batch * count * sizeof *host, NULL));
    free(host);
    return memory;
}

static adder make_adder(tgl_device *dev, sharing how)
{
    tgl_problem problem = problem_of(TGL_F32, SIDE, SIDE, DEPTH);
    problem.batch = how.batch;
    problem.stride_b = DEPTH * SIDE;
    problem.stride_c = SIDE * SIDE;
    const tgl_plan_options options = {.size = sizeof options, .kernel = how.kernel};
    adder x = {.dev = dev,
               .A = constant_floats(dev, (size_t)SIDE * DEPTH, 1),
               .B = make_B(dev, how.batch)};
    assert_ok(tgl_plan_create(dev, &problem, &options, &x.plan));
    return x;
}

static void add(const adder *x, void *C, void *stream)
{
    assert_ok(tgl_plan_run(x->plan, 1, x->A, x->B, 1, C, stream));
}

static void free_adder(adder *x)
{
    tgl_plan_destroy(x->plan);
    tgl_free(x->dev, x->A);
    tgl_free(x->dev, x->B);
}

/* Fails unless C has been incremented `times` times; then frees it. */
static void finish(tgl_device *dev, void *C, int batch, int times)
{
    static const size_t count = (size_t)SIDE * SIDE;
    float *host = malloc((size_t)batch * count * sizeof *host);
    assert_non_null(host);
    assert_ok(tgl_download(dev, host, C, (size_t)batch * count * sizeof *host, NULL));
    for (size_t i = 0; i < (size_t)batch * count; i++) {
        const float expected = value_of_B(i / count) * DEPTH * (float)times;
        if (host[i] != expected)
            fail_msg("element %zu is %g, not %g", i, (double)host[i], (double)expected);
    }
    free(host);
    tgl_free(dev, C);
}

/* ---- The driver ------------------------------------------------------------------------------ */

/* The device's primary context, as cudart would retain it. */
static int push_primary(void **state)
{
    DRIVER(retain, "cuDevicePrimaryCtxRetain", void **, int);
    DRIVER(push, "cuCtxPushCurrent_v2", void *);
    (void)state;
    void *context;
    return retain(&context, 0) == 0 && push(context) == 0 ? 0 : -1;
}

static int pop_primary(void **state)
{
    DRIVER(release, "cuDevicePrimaryCtxRelease_v2", int);
    DRIVER(pop, "cuCtxPopCurrent_v2", void **);
    (void)state;
    void *context;
    return pop(&context) == 0 && release(0) == 0 ? 0 : -1;
}

static void *make_stream(void)
{
    DRIVER(create, "cuStreamCreate", void **, unsigned);
    void *stream;
    assert_int_equal(create(&stream, NON_BLOCKING), 0);
    return stream;
}

static void destroy_stream(void *stream)
{
    DRIVER(wait, "cuStreamSynchronize", void *);
    DRIVER(destroy, "cuStreamDestroy_v2", void *);
    assert_int_equal(wait(stream), 0);
    assert_int_equal(destroy(stream), 0);
}

/* During a capture a call that waits needs the relaxed mode, also if the caller makes it. */
static void destroy_stream_relaxed(void *stream)
{
    DRIVER(exchange, "cuThreadExchangeStreamCaptureMode", int *);
    int mode = 2;
    exchange(&mode);
    destroy_stream(stream);
    exchange(&mode);
}

/* A graph of two runs of the plan, one after the other. */
static void *capture_graph(const adder *x, void *C, void *stream)
{
    DRIVER(begin, "cuStreamBeginCapture_v2", void *, int);
    DRIVER(end, "cuStreamEndCapture", void *, void **);
    enum { GLOBAL_CAPTURE = 0 };
    void *graph;
    assert_int_equal(begin(stream, GLOBAL_CAPTURE), 0);
    add(x, C, stream);
    add(x, C, stream);
    assert_int_equal(end(stream, &graph), 0);
    return graph;
}

static void *make_executable(void *graph)
{
    DRIVER(make, "cuGraphInstantiateWithFlags", void **, void *, unsigned long long);
    void *executable;
    assert_int_equal(make(&executable, graph, 0), 0);
    return executable;
}

static void destroy_graph(void *graph)
{
    DRIVER(destroy, "cuGraphDestroy", void *);
    assert_int_equal(destroy(graph), 0);
}

static void free_executable(void *executable)
{
    DRIVER(destroy, "cuGraphExecDestroy", void *);
    assert_int_equal(destroy(executable), 0);
}

static void launch_executable(void *executable, void *stream)
{
    DRIVER(launch, "cuGraphLaunch", void *, void *);
    assert_int_equal(launch(executable, stream), 0);
}

/* An executable of the graph that capture_graph() makes. */
static void *capture(const adder *x, void *C, void *stream)
{
    void *graph = capture_graph(x, C, stream), *executable = make_executable(graph);
    destroy_graph(graph);
    return executable;
}

static void *clone_graph(void *graph)
{
    DRIVER(clone, "cuGraphClone", void **, void *);
    void *made;
    assert_int_equal(clone(&made, graph), 0);
    return made;
}

static void *new_graph(void)
{
    DRIVER(create, "cuGraphCreate", void **, unsigned);
    void *graph;
    assert_int_equal(create(&graph, 0), 0);
    return graph;
}

/* A graph with this one as child. */
static void *embed_graph(void *graph)
{
    DRIVER(embed, "cuGraphAddChildGraphNode", void **, void *, const void *, size_t, void *);
    void *parent = new_graph(), *node;
    assert_int_equal(embed(&node, parent, NULL, 0, graph), 0);
    return parent;
}

/* CUgraphNodeParams of a conditional node. */
typedef struct conditional_node {
    int type, reserved[3];
    unsigned long long handle;
    int condition;
    unsigned bodies;
    void **body; /* the driver's */
    void *context;
    char pad[208];
} conditional_node;

/* Adds an "if" whose condition is true; returns the graph that is its body. */
static void *add_condition(void *graph)
{
    enum { CONDITIONAL = 13, ASSIGN_DEFAULT = 1 };
    DRIVER(create, "cuGraphConditionalHandleCreate", unsigned long long *, void *, void *, unsigned,
           unsigned);
    DRIVER(add_node, "cuGraphAddNode_v2", void **, void *, const void *, const void *, size_t,
           void *);
    DRIVER(current, "cuCtxGetCurrent", void **);
    conditional_node parameters = {.type = CONDITIONAL, .bodies = 1};
    void *node;
    assert_int_equal(current(&parameters.context), 0);
    assert_int_equal(create(&parameters.handle, graph, parameters.context, 1, ASSIGN_DEFAULT), 0);
    assert_int_equal(add_node(&node, graph, NULL, NULL, 0, &parameters), 0);
    return parameters.body[0];
}

/* ---- The tests ------------------------------------------------------------------------------- */

static void work_goes_to_the_caller_s_stream(void **state)
{
    enum { RUNS = 20 };
    void *streams[STREAMS], *C[STREAMS];
    adder work[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = make_stream();
        work[i] = make_adder(*state, ways[0]);
        C[i] = room_for_C(*state);
    }
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < STREAMS; i++)
            add(&work[i], C[i], streams[i]);
    for (int i = 0; i < STREAMS; i++) {
        destroy_stream(streams[i]);
        finish(*state, C[i], ways[0].batch, RUNS);
        free_adder(&work[i]);
    }
}

static void a_plan_can_be_captured_into_a_graph(void **state)
{
    DRIVER(launch, "cuGraphLaunch", void *, void *);
    DRIVER(destroy, "cuGraphExecDestroy", void *);
    enum { LAUNCHES = 5 };
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        adder work = make_adder(*state, ways[way]);
        void *stream = make_stream(), *C = room_for_C(*state);
        void *graph = capture(&work, C, stream);
        for (int i = 0; i < LAUNCHES; i++)
            assert_int_equal(launch(graph, stream), 0);
        destroy_stream(stream);
        assert_int_equal(destroy(graph), 0);
        finish(*state, C, ways[way].batch, 2 * LAUNCHES);
        free_adder(&work);
    }
}

static void a_graph_is_cloned_embedded_and_instantiated_twice(void **state)
{
    enum { EXECUTABLES = 4, LAUNCHES = 3 };
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        adder work = make_adder(*state, ways[way]);
        void *stream = make_stream(), *C = room_for_C(*state);
        void *graph = capture_graph(&work, C, stream), *clone = clone_graph(graph);
        void *parent = embed_graph(graph);
        void *executables[EXECUTABLES] = {make_executable(graph), make_executable(graph),
                                          make_executable(clone), make_executable(parent)};
        destroy_graph(graph);
        destroy_graph(clone);
        destroy_graph(parent);
        assert_ok(tgl_device_trim(*state));
        for (int i = 0; i < LAUNCHES * EXECUTABLES; i++)
            launch_executable(executables[i % EXECUTABLES], stream);
        for (int i = 0; i < EXECUTABLES; i++)
            free_executable(executables[i]); /* they may still run */
        destroy_stream(stream);
        finish(*state, C, ways[way].batch, 2 * LAUNCHES * EXECUTABLES);
        free_adder(&work);
    }
}

/* Drivers before CUDA 12.3 have no conditional nodes. */
static void a_product_in_the_body_of_a_conditional_node(void **state)
{
    enum { LAUNCHES = 3, RELAXED_CAPTURE = 2, CONDITIONAL_VERSION = 12030 };
    DRIVER(get_version, "cuDriverGetVersion", int *);
    int version;
    assert_int_equal(get_version(&version), 0);
    if (version < CONDITIONAL_VERSION) skip();
    DRIVER(begin, "cuStreamBeginCaptureToGraph", void *, void *, const void *, const void *, size_t,
           int);
    DRIVER(end, "cuStreamEndCapture", void *, void **);
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        adder work = make_adder(*state, ways[way]);
        void *stream = make_stream(), *C = room_for_C(*state), *out;
        void *graph = new_graph(), *body = add_condition(graph);
        assert_int_equal(begin(stream, body, NULL, NULL, 0, RELAXED_CAPTURE), 0);
        add(&work, C, stream);
        assert_int_equal(end(stream, &out), 0);
        void *executable = make_executable(graph);
        destroy_graph(graph);
        assert_ok(tgl_device_trim(*state)); /* the executable has the memory of the body */
        for (int i = 0; i < LAUNCHES; i++)
            launch_executable(executable, stream);
        destroy_stream(stream);
        free_executable(executable);
        finish(*state, C, ways[way].batch, LAUNCHES);
        free_adder(&work);
    }
}

static size_t free_memory(void)
{
    DRIVER(ask, "cuMemGetInfo_v2", size_t *, size_t *);
    size_t free_bytes, total;
    assert_int_equal(ask(&free_bytes, &total), 0);
    return free_bytes;
}

/* The memory of graphs that are destroyed goes to the next ones. The driver destroys user objects
 * a little later. */
static void graphs_come_and_go(void **state)
{
    enum { GRAPHS = 1000, GROWTH = 64 << 20 };
    adder work = make_adder(*state, ways[3]);
    void *stream = make_stream(), *C = room_for_C(*state);
    free_executable(capture(&work, C, stream));
    const size_t before = free_memory();
    for (int i = 0; i < GRAPHS; i++) {
        void *graph = capture_graph(&work, C, stream), *clone = clone_graph(graph);
        void *executables[] = {make_executable(graph), make_executable(graph),
                               make_executable(clone)};
        destroy_graph(graph);
        destroy_graph(clone);
        for (size_t j = 0; j < COUNT_OF(executables); j++) {
            launch_executable(executables[j], stream);
            free_executable(executables[j]);
        }
    }
    assert_true(free_memory() + GROWTH >= before);
    destroy_stream(stream);
    finish(*state, C, 1, 2 * 3 * GRAPHS);
    free_adder(&work);
}

/* Runs one plan concurrently on the default stream, on streams that do not synchronise with it, and
 * in a graph. The default stream is used first, last and in between. */
static void a_plan_is_shared_by_streams_and_a_graph(void **state)
{
    DRIVER(launch, "cuGraphLaunch", void *, void *);
    DRIVER(destroy, "cuGraphExecDestroy", void *);
    enum { RUNS = 40 };
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        adder work = make_adder(*state, ways[way]);
        void *streams[STREAMS + 1] = {NULL}, *C[STREAMS + 1], *in_graph = room_for_C(*state);
        for (int i = 0; i <= STREAMS; i++) {
            if (i > 0) streams[i] = make_stream();
            C[i] = room_for_C(*state);
        }
        void *graph_stream = make_stream(), *graph = capture(&work, in_graph, graph_stream);
        for (int run = 0; run < RUNS; run++) {
            assert_int_equal(launch(graph, graph_stream), 0);
            for (int i = 0; i <= STREAMS; i++)
                add(&work, C[i], streams[i]);
            add(&work, C[0], NULL);
            add(&work, C[0], NULL);
        }
        destroy_stream(graph_stream);
        assert_int_equal(destroy(graph), 0);
        finish(*state, in_graph, ways[way].batch, 2 * RUNS);
        for (int i = 0; i <= STREAMS; i++) {
            if (i > 0) destroy_stream(streams[i]);
            finish(*state, C[i], ways[way].batch, i > 0 ? RUNS : 3 * RUNS);
        }
        free_adder(&work);
    }
}

/* Plans alternate, so that the arena of each stream grows while runs are under way. */
static void arenas_grow_under_load(void **state)
{
    enum { RUNS = 30 };
    static const sharing how[] = {{"simt_32x32x32:splits=4,strips=0", 1},
                                  {"simt_32x32x32:splits=11,strips=0", 1},
                                  {"simt_32x32x32:splits=64,strips=0", BATCH_MAX}};
    adder work[COUNT_OF(how)];
    void *streams[STREAMS + 1] = {NULL}, *C[STREAMS + 1][COUNT_OF(how)];
    for (size_t w = 0; w < COUNT_OF(how); w++)
        work[w] = make_adder(*state, how[w]);
    for (int i = 0; i <= STREAMS; i++) {
        if (i > 0) streams[i] = make_stream();
        for (size_t w = 0; w < COUNT_OF(how); w++)
            C[i][w] = room_for_C(*state);
    }
    for (int run = 0; run < RUNS; run++)
        for (size_t w = 0; w < COUNT_OF(how); w++)
            for (int i = 0; i <= STREAMS; i++)
                add(&work[w], C[i][w], streams[i]);
    for (int i = 0; i <= STREAMS; i++) {
        if (i > 0) destroy_stream(streams[i]);
        for (size_t w = 0; w < COUNT_OF(how); w++)
            finish(*state, C[i][w], how[w].batch, RUNS);
    }
    for (size_t w = 0; w < COUNT_OF(how); w++)
        free_adder(&work[w]);
}

/* More streams than there are arenas, destroyed while their work is under way. */
static void streams_come_and_go(void **state)
{
    DRIVER(destroy, "cuStreamDestroy_v2", void *);
    DRIVER(wait, "cuCtxSynchronize", void);
    enum { MANY = 300 };
    adder work = make_adder(*state, (sharing){"simt_32x32x32:splits=11,strips=0", 1});
    void *C[MANY];
    for (int i = 0; i < MANY; i++) {
        void *stream = make_stream();
        C[i] = room_for_C(*state);
        for (int run = 0; run < 3; run++)
            add(&work, C[i], stream);
        assert_int_equal(destroy(stream), 0);
    }
    assert_int_equal(wait(), 0);
    for (int i = 0; i < MANY; i++)
        finish(*state, C[i], 1, 3);
    free_adder(&work);
}

/* A product in the default mode, and the matrices of all threads. */
typedef struct default_product {
    const tgl_plan *plan;
    void *A, *B, *C;
} default_product;

/* The thread ends while its own default stream still has work. */
static void *multiply_and_end(void *data)
{
    static void *const per_thread = (void *)2; /* CU_STREAM_PER_THREAD */
    const default_product *x = data;
    for (int i = 0; i < 3; i++)
        if (tgl_plan_run(x->plan, 1, x->A, x->B, 0, x->C, per_thread) != TGL_OK) abort();
    return NULL;
}

/* Such threads once did not end, and neither did the work that came after them
 * (docs/notes/2026-11-26-per-thread-stream.md). All threads write the same elements. */
static void threads_end_while_their_default_stream_has_work(void **state)
{
    enum { N = 2048, ROUNDS = 50, THREADS = 20 };
    static const size_t count = (size_t)N * N;
    const tgl_problem problem = problem_of(TGL_F32, N, N, N);
    tgl_plan *plan;
    float last;
    assert_ok(tgl_plan_create(*state, &problem, NULL, &plan));
    default_product x = {plan, constant_floats(*state, count, 1), constant_floats(*state, count, 2),
                         constant_floats(*state, count, 0)};
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, multiply_and_end, &x), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    assert_ok(tgl_device_sync(*state));
    assert_ok(tgl_download(*state, &last, (float *)x.C + count - 1, sizeof last, NULL));
    assert_true(last == 2 * N);
    tgl_plan_destroy(plan);
    tgl_free(*state, x.A);
    tgl_free(*state, x.B);
    tgl_free(*state, x.C);
}

/* All bytes of the caller's workspace are overwritten before; it need not be zero. */
static void the_caller_s_workspace_need_not_be_clean(void **state)
{
    DRIVER(fill, "cuMemsetD8_v2", void *, unsigned char, size_t);
    DRIVER(wait, "cuCtxSynchronize", void);
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        adder work = make_adder(*state, ways[way]);
        const size_t bytes = tgl_plan_workspace_size(work.plan);
        void *stream = make_stream(), *C = room_for_C(*state), *memory = NULL;
        if (bytes > 0) {
            assert_ok(tgl_alloc(*state, bytes, &memory));
            assert_int_equal(fill(memory, 0xff, bytes), 0);
            assert_int_equal(wait(), 0); /* the stream of the runs does not wait for the fill */
        }
        const tgl_operands operands = {.size = sizeof operands,
                                       .alpha = 1,
                                       .beta = 1,
                                       .A = work.A,
                                       .B = work.B,
                                       .C = C,
                                       .workspace = memory,
                                       .workspace_bytes = bytes};
        for (int run = 0; run < 5; run++)
            assert_ok(tgl_plan_run_operands(work.plan, &operands, stream));
        destroy_stream(stream);
        finish(*state, C, ways[way].batch, 5);
        tgl_free(*state, memory);
        free_adder(&work);
    }
}

/* While a stream is captured in the global mode, this thread plans, loads, allocates, copies, runs
 * products and closes a device. */
static void a_capture_survives_all_else(void **state)
{
    DRIVER(begin, "cuStreamBeginCapture_v2", void *, int);
    DRIVER(end, "cuStreamEndCapture", void *, void **);
    DRIVER(instantiate, "cuGraphInstantiateWithFlags", void **, void *, unsigned long long);
    DRIVER(launch, "cuGraphLaunch", void *, void *);
    DRIVER(destroy, "cuGraphDestroy", void *);
    DRIVER(destroy_executable, "cuGraphExecDestroy", void *);
    void *captured = make_stream(), *stream = make_stream(), *graph, *executable;
    void *in_graph = room_for_C(*state);
    tgl_device *second;
    adder work = make_adder(*state, ways[3]);
    assert_int_equal(begin(captured, 0), 0);
    add(&work, in_graph, captured);
    assert_ok(tgl_device_open("cuda:0", NULL, &second));
    /* The adder copies on the default stream. The capture permits that, because the captured stream
     * does not synchronise with the default stream. */
    adder other = make_adder(second, ways[4]);
    void *C = room_for_C(second);
    add(&other, C, stream);
    destroy_stream_relaxed(stream);
    finish(second, C, ways[4].batch, 1);
    free_adder(&other);
    tgl_device_close(second);
    add(&work, in_graph, captured);
    assert_int_equal(end(captured, &graph), 0);
    assert_int_equal(instantiate(&executable, graph, 0), 0);
    assert_int_equal(destroy(graph), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(launch(executable, captured), 0);
    destroy_stream(captured);
    assert_int_equal(destroy_executable(executable), 0);
    finish(*state, in_graph, 1, 6);
    free_adder(&work);
}

/* ---- Strips ---------------------------------------------------------------------------------- */

/* A strip starts concurrently with the tiles and reads an A that the launch before the tiles has
 * just written. It must not read an old A from its caches. A := alpha * ones * ones, with a
 * different alpha each time; then C := A*B, each time into another C. */
static void strips_read_what_was_just_written(void **state)
{
    enum { TIMES = 96, INNER = 8, VALUES = 13 };
    tgl_device *dev = *state;
    const tgl_problem writes = problem_of(TGL_F32, SIDE, DEPTH, INNER);
    const tgl_problem reads = problem_of(TGL_F32, SIDE, SIDE, DEPTH);
    void *left = constant_floats(dev, (size_t)SIDE * INNER, 1);
    void *right = constant_floats(dev, (size_t)INNER * DEPTH, 1);
    void *A = constant_floats(dev, (size_t)SIDE * DEPTH, 0), *B = make_B(dev, 1);
    void *C = constant_floats(dev, (size_t)TIMES * SIDE * SIDE, 0);
    float *host = malloc((size_t)TIMES * SIDE * SIDE * sizeof *host);
    tgl_plan *writer;
    assert_non_null(host);
    assert_ok(tgl_plan_create(dev, &writes, NULL, &writer));
    for (size_t w = 0; w < COUNT_OF(ways); w++) {
        if (ways[w].kernel == NULL || ways[w].batch > 1 || !strstr(ways[w].kernel, "strips=1"))
            continue;
        const tgl_plan_options options = {.size = sizeof options, .kernel = ways[w].kernel};
        tgl_plan *reader;
        assert_ok(tgl_plan_create(dev, &reads, &options, &reader));
        for (int i = 0; i < TIMES; i++) {
            float *to = (float *)C + (size_t)i * SIDE * SIDE;
            assert_ok(tgl_plan_run(writer, 1 + i % VALUES, left, right, 0, A, NULL));
            assert_ok(tgl_plan_run(reader, 1, A, B, 0, to, NULL));
        }
        assert_ok(tgl_download(dev, host, C, (size_t)TIMES * SIDE * SIDE * sizeof *host, NULL));
        for (size_t e = 0; e < (size_t)TIMES * SIDE * SIDE; e++) {
            const size_t i = e / (SIDE * SIDE);
            const float expected = (float)((1 + i % VALUES) * INNER * DEPTH) * value_of_B(0);
            if (host[e] != expected)
                fail_msg("%s: element %zu of product %zu is %g, not %g", ways[w].kernel,
                         e % (SIDE * SIDE), i, (double)host[e], (double)expected);
        }
        tgl_plan_destroy(reader);
    }
    tgl_plan_destroy(writer);
    free(host);
    void *const all[] = {left, right, A, B, C};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        tgl_free(dev, all[i]);
}

static int setup(void **state)
{
    return tgl_device_open("cuda:0", NULL, (tgl_device **)state) == TGL_OK ? 0 : -1;
}

int main(void)
{
    tgl_device *dev;
    const tgl_status status = tgl_device_open("cuda", NULL, &dev);
    if (status == TGL_NO_DEVICE || status == TGL_NO_COMPILER) {
        printf("skipped: %s\n", tgl_status_text(status));
        return 77;
    }
    tgl_device_close(dev);
#define TEST(name) cmocka_unit_test_setup_teardown(name, push_primary, pop_primary)
    const struct CMUnitTest tests[] = {
        TEST(work_goes_to_the_caller_s_stream),
        TEST(a_plan_can_be_captured_into_a_graph),
        TEST(a_graph_is_cloned_embedded_and_instantiated_twice),
        TEST(a_product_in_the_body_of_a_conditional_node),
        TEST(graphs_come_and_go),
        TEST(a_plan_is_shared_by_streams_and_a_graph),
        TEST(arenas_grow_under_load),
        TEST(streams_come_and_go),
        TEST(threads_end_while_their_default_stream_has_work),
        TEST(the_caller_s_workspace_need_not_be_clean),
        TEST(a_capture_survives_all_else),
        TEST(strips_read_what_was_just_written),
    };
    return cmocka_run_group_tests(tests, setup, teardown_device);
}
