/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator on one and on several host threads: results, counts, traces and messages are the
 * same, and launches whose blocks affect each other run on one thread.
 */
#include "list_of_kernel.h"
#include "sim/sim_state.h"
#include "support.h"

enum { THREADS = 3, M = 150, N = 140, ROOM = 150 * 260, TEXT = 1 << 20 };

static tgl_device *open_sim(int threads)
{
    const tgl_device_options options = {.size = sizeof options, .threads = threads};
    tgl_device *dev;
    assert_status(tgl_device_open("sim", &options, &dev), TGL_OK);
    return dev;
}

static int64_t shared_launches(const tgl_device *dev)
{
    const tgl_sim *sim = dev->state;
    return atomic_load(&sim->runner)->threads.shared_launches;
}

/* What a run leaves. A, B and C have the same addresses in all runs, because the trace has them. */
typedef struct outcome {
    tgl_status status;
    tgl_counters counters;
    char message[4096], explanation[1 << 14];
    char *trace;
    float *C;
    int64_t shared; /* launches that several threads ran */
} outcome;

static void *operands(void)
{
    static _Alignas(256) float memory[3 * ROOM];
    for (int i = 0; i < 2 * ROOM; i++)
        memory[i] = (float)(i * 7 % 31) / 16 - 1;
    for (int i = 2 * ROOM; i < 3 * ROOM; i++)
        memory[i] = (float)(i % 5);
    return memory;
}

/* Runs the plan twice, so that what a run leaves behind would show in the next, and destroys
 * it. */
static void run_plan(tgl_device *dev, tgl_plan *plan, double beta, outcome *out)
{
    const int64_t before = shared_launches(dev);
    *out = (outcome){.counters = {.size = sizeof out->counters}, .trace = calloc(1, TEXT)};
    out->C = malloc(ROOM * sizeof(float));
    assert_true(out->trace != NULL && out->C != NULL);
    for (int i = 0; i < 2; i++) {
        float *A = operands(), *C = A + 2 * ROOM;
        out->status = tgl_plan_run(plan, 1, A, A + ROOM, beta, C, NULL);
        if (out->status != TGL_OK)
            tgl_last_error(out->message, sizeof out->message);
        else
            assert_status(tgl_plan_counters(plan, &out->counters), TGL_OK);
        memcpy(out->C, C, ROOM * sizeof(float));
    }
    tgl_plan_trace(plan, out->trace, TEXT);
    tgl_plan_explain(plan, out->explanation, sizeof out->explanation);
    out->shared = shared_launches(dev) - before;
    tgl_plan_destroy(plan);
}

static void free_outcome(outcome *x)
{
    free(x->trace);
    free(x->C);
}

/* Fails unless the outcomes are the same. C is not compared if the run failed: it is then
 * undefined. */
static void assert_same(const outcome *x, const outcome *y)
{
    assert_status(x->status, y->status);
    assert_string_equal(x->message, y->message);
    assert_memory_equal(&x->counters, &y->counters, sizeof x->counters);
    assert_string_equal(x->trace, y->trace);
    assert_string_equal(x->explanation, y->explanation);
    if (x->status == TGL_OK) assert_memory_equal(x->C, y->C, ROOM * sizeof(float));
}

static int count_threads(int asked)
{
    tgl_device *dev = open_sim(asked);
    const tgl_sim *sim = dev->state;
    const int threads = atomic_load(&sim->runner)->threads.pool.threads;
    tgl_device_close(dev);
    return threads;
}

static void number_of_threads(void **state)
{
    (void)state;
    setenv("OMP_NUM_THREADS", "1", 1);
    assert_int_equal(count_threads(0), 1);
    assert_int_equal(count_threads(5), 5);
    assert_int_equal(count_threads(1000), TGL_SIM_HOST_THREADS_MAX);
    unsetenv("OMP_NUM_THREADS");
    assert_in_range(count_threads(0), 1, TGL_SIM_HOST_THREADS_MAX);
}

/* ---- Kernels of the library ------------------------------------------------------------------ */

/* is_shared: several threads run the launch, because its blocks do not wait for each other. The
 * product has several tiles with each kernel. */
typedef struct product {
    const char *kernel;
    tgl_type type;
    int m, n, k;
    bool is_shared;
} product;

static const product products[] = {
    {"ladder/naive", TGL_F32, M, N, 40, true},
    {"ladder/vectorised", TGL_F32, M, N, 40, true},
    {"ladder/slices", TGL_F32, M, N, 40, true},
    {"ladder/split_k", TGL_F32, M, N, 257, false},
    {"ladder/words_promoted", TGL_F32, M, N, 40, true},
    {"ladder/f16_fragments", TGL_F16, M, N, 70, true},
    {"ladder/f16_wgmma", TGL_F16, M, N, 70, true}, /* with a launch that copies an operand */
    {"ladder/f16_specialised", TGL_F16, M, N, 70, true},
    {"ladder/f16_persistent", TGL_F16, 264, 264, 72, true}, /* four clusters, TMA stores */
};

static tgl_plan *plan_of(tgl_device *dev, const product *x)
{
    tgl_problem problem = problem_of(x->type, x->m, x->n, x->k);
    const tgl_plan_options options = {.size = sizeof options, .kernel = x->kernel};
    tgl_plan *plan;
    problem.compute = strstr(x->kernel, "words") != NULL ? TGL_COMPUTE_TF32 : TGL_COMPUTE_DEFAULT;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    return plan;
}

static void compare_kernels(void)
{
    tgl_device *one = open_sim(1), *several = open_sim(THREADS);
    for (size_t i = 0; i < COUNT_OF(products); i++) {
        outcome x, y;
        run_plan(one, plan_of(one, &products[i]), -0.5, &x);
        run_plan(several, plan_of(several, &products[i]), -0.5, &y);
        assert_status(x.status, TGL_OK);
        assert_same(&x, &y);
        assert_int_equal(x.shared, 0);
        if ((y.shared > 0) != products[i].is_shared)
            fail_msg("%s: several threads ran %d launches", products[i].kernel, (int)y.shared);
        free_outcome(&x);
        free_outcome(&y);
    }
    tgl_device_close(one);
    tgl_device_close(several);
}

static void kernels_do_the_same(void **state)
{
    (void)state;
    compare_kernels();
}

static void and_in_a_random_order(void **state)
{
    (void)state;
    setenv("TEGULA_SIM_SEED", "5", 1);
    compare_kernels();
    unsetenv("TEGULA_SIM_SEED");
}

/* ---- Kernels whose blocks affect each other -------------------------------------------------- */

/* is_repeated: the launch is always run again on one thread. With READS_BEFORE_WRITTEN it is not
 * run again if one thread happened to run all blocks that read and write the element. */
static const struct {
    const char *macros;
    tgl_status status;
    const char *says;
    bool is_repeated;
} conflicts[] = {
    {"", TGL_OK, "", false},
    {"#define READS_BEFORE_WRITTEN 1\n", TGL_OK, "", false},
    {"#define READS_AFTER_WRITTEN 1\n", TGL_KERNEL_FAULT, "race: reads row 0, column 0 of C", true},
    {"#define WRITES_TWICE 1\n", TGL_KERNEL_FAULT, "race: writes row 0, column 0 of C", true},
    {"#define HAS_ATOMIC 1\n", TGL_OK, "", true},
};

static tgl_plan *plan_of_conflict(tgl_device *dev, const char *source)
{
    const tgl_problem problem = problem_of(TGL_F32, M, N, 40);
    const lone_kernel kernel = {.name = "order_matters",
                                .file = "broken/order_matters.cu",
                                .symbol = "broken",
                                .source = source,
                                .block_m = 16,
                                .block_n = 16,
                                .threads = 256};
    tgl_plan *plan;
    assert_status(plan_of_kernel(dev, &problem, &kernel, &plan), TGL_OK);
    return plan;
}

static void conflicts_are_those_of_one_thread(void **state)
{
    (void)state;
    char *source = read_text(BROKEN_KERNELS, "order_matters"), text[1 << 14];
    assert_non_null(source);
    tgl_device *one = open_sim(1), *several = open_sim(THREADS);
    for (size_t i = 0; i < COUNT_OF(conflicts); i++) {
        outcome x, y;
        snprintf(text, sizeof text, "%s%s", conflicts[i].macros, source);
        run_plan(one, plan_of_conflict(one, text), 1, &x);
        run_plan(several, plan_of_conflict(several, text), 1, &y);
        assert_status(x.status, conflicts[i].status);
        if (strstr(x.message, conflicts[i].says) == NULL) fail_msg("%s", x.message);
        assert_same(&x, &y);
        if (conflicts[i].is_repeated) assert_int_equal(y.shared, 0);
        free_outcome(&x);
        free_outcome(&y);
    }
    tgl_device_close(one);
    tgl_device_close(several);
    free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(number_of_threads),
        cmocka_unit_test(kernels_do_the_same),
        cmocka_unit_test(and_in_a_random_order),
        cmocka_unit_test(conflicts_are_those_of_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
