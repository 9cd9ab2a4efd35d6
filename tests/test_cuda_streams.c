/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and graphs on a real GPU; skipped where there is none. Plans that share k among blocks
 * have a workspace that their runs, on whatever streams and in graphs, must not fight over.
 */
#include "driver_calls.h"

enum { SIDE = 200, DEPTH = 1024, BATCH_MOST = 3, STREAMS = 3, NON_BLOCKING = 1 };

/* How k is shared. 0: as the planner likes; 4: within a cluster, where there are clusters; 11: by
 * the workspace; 16: by both. Whether all of C is covered by tiles; and products of a batch, each
 * with sums of its own in the workspace. */
typedef struct sharing {
    int splits;
    tgl_strips strips;
    int batch;
} sharing;

static const sharing ways[] = {
    {0, TGL_STRIPS_AUTO, 1},
    {1, TGL_STRIPS_NEVER, 1},
    {4, TGL_STRIPS_NEVER, 1},
    {11, TGL_STRIPS_NEVER, 1},
    {16, TGL_STRIPS_NEVER, 1},
    {1, TGL_STRIPS_ALWAYS, 1},
    {4, TGL_STRIPS_ALWAYS, 1},
    {11, TGL_STRIPS_ALWAYS, 1},
    {11, TGL_STRIPS_NEVER, BATCH_MOST},
    {11, TGL_STRIPS_ALWAYS, BATCH_MOST},
};

/* C := A*B + C with A of ones: adds DEPTH times B's value to each element of C, exactly. */
typedef struct adder {
    tgl_device *dev;
    tgl_plan *plan;
    void *A, *B;
} adder;

static void *room_for_C(tgl_device *dev)
{
    return constant_floats(dev, (size_t)BATCH_MOST * SIDE * SIDE, 0);
}

/* What the elements of B are in a product of the batch. */
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
    assert_ok(dev, tgl_alloc(dev, (size_t)batch * count * sizeof *host, &memory));
    assert_ok(dev, tgl_upload(dev, memory, host, (size_t)batch * count * sizeof *host));
    free(host);
    return memory;
}

static adder make_adder(tgl_device *dev, sharing how)
{
    tgl_problem problem = tgl_problem_make(TGL_F32, SIDE, SIDE, DEPTH);
    problem.batch = how.batch;
    problem.stride_b = DEPTH * SIDE;
    problem.stride_c = SIDE * SIDE;
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = how.splits > 0 ? "gemm/simt_32x32x32" : NULL,
                                      .splits = how.splits,
                                      .strips = how.strips};
    adder x = {.dev = dev,
               .A = constant_floats(dev, (size_t)SIDE * DEPTH, 1),
               .B = make_B(dev, how.batch)};
    assert_ok(dev, tgl_plan_create(dev, &problem, &options, &x.plan));
    return x;
}

static void add(const adder *x, void *C, void *stream)
{
    assert_ok(x->dev, tgl_plan_run(x->plan, 1, x->A, x->B, 1, C, stream));
}

static void free_adder(adder *x)
{
    tgl_plan_destroy(x->plan);
    tgl_free(x->dev, x->A);
    tgl_free(x->dev, x->B);
}

/* Fails unless `times` runs have added up in C; then frees it. */
static void finish(tgl_device *dev, void *C, int batch, int times)
{
    static const size_t count = (size_t)SIDE * SIDE;
    float *host = malloc((size_t)batch * count * sizeof *host);
    assert_non_null(host);
    assert_ok(dev, tgl_download(dev, host, C, (size_t)batch * count * sizeof *host));
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

/* A graph of two runs of the plan, one after the other. */
static void *capture(const adder *x, void *C, void *stream)
{
    DRIVER(begin, "cuStreamBeginCapture_v2", void *, int);
    DRIVER(end, "cuStreamEndCapture", void *, void **);
    DRIVER(instantiate, "cuGraphInstantiateWithFlags", void **, void *, unsigned long long);
    DRIVER(destroy, "cuGraphDestroy", void *);
    enum { GLOBAL_CAPTURE = 0 };
    void *graph, *executable;
    assert_int_equal(begin(stream, GLOBAL_CAPTURE), 0);
    add(x, C, stream);
    add(x, C, stream);
    assert_int_equal(end(stream, &graph), 0);
    assert_int_equal(instantiate(&executable, graph, 0), 0);
    assert_int_equal(destroy(graph), 0);
    return executable;
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

/* One plan on the default stream, on others that do not wait for it, and in a graph, all at once.
 * The default stream comes first, last and in between. */
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
        TEST(a_plan_is_shared_by_streams_and_a_graph),
    };
    return cmocka_run_group_tests(tests, setup, teardown_device);
}
