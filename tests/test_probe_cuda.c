/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe family on a real GPU with TMA; skipped if there is none. Runs on the default stream and
 * in graphs that are captured once and replayed with other data.
 */
#include "probe_case.h"

#include "driver_calls.h"

static void test_results(void **state)
{
    const probe_case *c;
    for (int i = 0; (c = probe_case_at(i)) != NULL; i++)
        probe_case_run(*state, c);
}

static void *make_stream(void)
{
    DRIVER(create, "cuStreamCreate", void **, unsigned);
    enum { NON_BLOCKING = 1 };
    void *stream;
    assert_int_equal(create(&stream, NON_BLOCKING), 0);
    return stream;
}

static void wait_for(void *stream)
{
    DRIVER(wait, "cuStreamSynchronize", void *);
    assert_int_equal(wait(stream), 0);
}

static void *capture(const tgl_plan *plan, const probe_case *c, const probe_operands *x,
                     void *stream)
{
    DRIVER(begin, "cuStreamBeginCapture_v2", void *, int);
    DRIVER(end, "cuStreamEndCapture", void *, void **);
    DRIVER(instantiate, "cuGraphInstantiateWithFlags", void **, void *, unsigned long long);
    DRIVER(destroy, "cuGraphDestroy", void *);
    enum { GLOBAL_CAPTURE = 0 };
    void *graph, *executable;
    assert_int_equal(begin(stream, GLOBAL_CAPTURE), 0);
    assert_ok(probe_run(plan, c, x, stream));
    assert_int_equal(end(stream, &graph), 0);
    assert_int_equal(instantiate(&executable, graph, 0), 0);
    assert_int_equal(destroy(graph), 0);
    return executable;
}

/* The flag is tested when the graph runs, not when it is captured. */
static void replay(tgl_device *dev, const probe_case *c)
{
    DRIVER(launch, "cuGraphLaunch", void *, void *);
    DRIVER(destroy, "cuGraphExecDestroy", void *);
    DRIVER(destroy_stream, "cuStreamDestroy_v2", void *);
    const tgl_problem problem = probe_problem(c);
    probe_operands x;
    tgl_plan *plan;
    assert_ok(plan_of_probe(dev, &problem, &plan));
    probe_operands_make(dev, c, tgl_plan_workspace_size(plan), &x);
    void *stream = make_stream();
    void *graph = capture(plan, c, &x, stream);
    for (int run = 0; run < 6; run++) {
        probe_set_beyond(dev, c, run % 3 == 1, &x);
        probe_reset(dev, &x);
        assert_int_equal(launch(graph, stream), 0);
        wait_for(stream);
        probe_check(dev, c, &x);
    }
    assert_int_equal(destroy(graph), 0);
    assert_int_equal(destroy_stream(stream), 0);
    probe_operands_free(dev, &x);
    tgl_plan_destroy(plan);
}

static void test_graphs(void **state)
{
    const probe_case *c;
    for (int i = 0; (c = probe_case_at(i)) != NULL; i++)
        replay(*state, c);
}

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

static int setup(void **state)
{
    return tgl_device_open("cuda:0", NULL, (tgl_device **)state) == TGL_OK ? 0 : -1;
}

/* Why the probe family cannot run here; NULL: it can. */
static const char *reason_to_skip(void)
{
    tgl_device *dev;
    const tgl_status status = tgl_device_open("cuda", NULL, &dev);
    if (status == TGL_NO_DEVICE || status == TGL_NO_COMPILER) return tgl_status_text(status);
    if (status != TGL_OK) return NULL; /* the tests report the failure */
    const unsigned needs = TGL_HAS_TMA | TGL_HAS_CLUSTERS;
    const bool has_all = (dev->backend->chip(dev)->features & needs) == needs;
    tgl_device_close(dev);
    return has_all ? NULL : "the GPU has no TMA, or no clusters";
}

int main(void)
{
    const char *reason = reason_to_skip();
    if (reason != NULL) {
        printf("skipped: %s\n", reason);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test_setup_teardown(test_graphs, push_primary, pop_primary),
    };
    return cmocka_run_group_tests(tests, setup, teardown_device);
}
