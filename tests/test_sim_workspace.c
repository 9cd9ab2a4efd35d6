/* SPDX-License-Identifier: Apache-2.0
 *
 * Split-K and the workspace, on the simulator, where the host can read it: counters are zero again
 * after every run, products of a batch have separate sums and counters, and results do not depend
 * on which block finishes last.
 */
#include "backend/backend.h"
#include "support.h"

/* Kernel strings and products: split over blocks, over clusters, and over units of work. */
static const struct {
    const char *kernel;
    int64_t m, n, k;
} products[] = {
    {"simt_32x32x32:splits=11,strips=0", 2, 2, 352},
    {"simt_32x32x32:splits=10,strips=0", 2, 2, 320},
    {"skinny_4:splits=3", 3, 300, 800},
};

enum { SLOW = 2 }; /* this product takes most of the time */

enum { BATCH = 3, OPERAND_MAX = 800 * 300, C_MAX = 3 * 300 };

/* All products of the batch have the same A and B. */
static tgl_plan *make_plan(tgl_device *dev, size_t product, int batch)
{
    tgl_problem problem =
        problem_of(TGL_F32, products[product].m, products[product].n, products[product].k);
    problem.batch = batch;
    problem.stride_c = C_MAX;
    const tgl_plan_options options = {.size = sizeof options, .kernel = products[product].kernel};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_true(plan->list.scratch_bytes > 0 && plan->list.counter_bytes > 0);
    return plan;
}

static const float *ones(void)
{
    static float x[OPERAND_MAX];
    for (int i = 0; i < OPERAND_MAX; i++)
        x[i] = 1;
    return x;
}

/* Numbers whose sum depends on the order of the additions. */
static const float *fractions(void)
{
    static float x[OPERAND_MAX];
    for (int i = 0; i < OPERAND_MAX; i++)
        x[i] = 1.0f / (float)(1 + i % 1001);
    return x;
}

static void fill(float *x, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        x[i] = value;
}

/* A workspace for a plan, filled with arbitrary values. */
static char *make_workspace(const tgl_plan *plan)
{
    const size_t bytes = tgl_plan_workspace_size(plan);
    char *workspace = aligned_alloc(256, bytes);
    assert_non_null(workspace);
    fill((float *)(void *)workspace, bytes / 4, -1);
    return workspace;
}

static void run(const tgl_plan *plan, double alpha, const float *x, double beta, float *C,
                char *workspace)
{
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = alpha,
                                   .beta = beta,
                                   .A = x,
                                   .B = x,
                                   .C = C,
                                   .workspace = workspace,
                                   .workspace_bytes = tgl_plan_workspace_size(plan)};
    char text[1024];
    const tgl_status status = tgl_plan_run_operands(plan, &operands, NULL);
    tgl_last_error(text, sizeof text);
    if (status != TGL_OK) fail_msg("%s", text);
}

static const float *scratch_of(const tgl_plan *plan, const char *workspace)
{
    return (const float *)(const void *)(workspace + plan->list.counter_bytes);
}

static void assert_counters(const tgl_plan *plan, const char *workspace)
{
    for (size_t i = 0; i < plan->list.counter_bytes; i++)
        assert_int_equal(workspace[i], 0);
}

static void assert_all(const float *C, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        assert_true(C[i] == value);
}

/* If the counters were not zero, no block of the next run would be the last one of its tile, and C
 * would not be written. C := beta*C, without a product, does not change the counters. */
static void counters_are_zero_after_every_run(void **state)
{
    static float C[C_MAX];
    for (size_t i = 0; i < COUNT_OF(products); i++) {
        const int64_t elements = products[i].m * products[i].n;
        tgl_plan *plan = make_plan(*state, i, 1);
        char *workspace = make_workspace(plan);
        fill(C, C_MAX, 4);
        run(plan, 0, NULL, 0.5, C, workspace);
        assert_all(C, elements, 2);
        assert_counters(plan, workspace);
        for (int again = 0; again < 2; again++) {
            fill(C, C_MAX, NAN);
            run(plan, 1, ones(), 0, C, workspace);
            assert_all(C, elements, (float)products[i].k);
            assert_counters(plan, workspace);
        }
        free(workspace);
        tgl_plan_destroy(plan);
    }
}

/* All products have the same sums, each at its own place. */
static void problems_of_a_batch_have_workspaces_of_their_own(void **state)
{
    static float C[BATCH * C_MAX];
    for (size_t i = 0; i < COUNT_OF(products); i++) {
        tgl_plan *plan = make_plan(*state, i, BATCH);
        char *workspace = make_workspace(plan);
        const float *scratch = scratch_of(plan, workspace);
        const size_t own = plan->list.scratch_bytes / sizeof(float) / BATCH;
        run(plan, 1, ones(), 0, C, workspace);
        assert_counters(plan, workspace);
        assert_true(scratch[0] > 0);
        for (size_t j = 1; j < BATCH; j++)
            assert_memory_equal(scratch + j * own, scratch, own * sizeof *scratch);
        free(workspace);
        tgl_plan_destroy(plan);
    }
}

/* A plan that needs more workspace than the one before it, and another that needs less. */
static void plans_share_the_workspace_of_the_device(void **state)
{
    static float C[BATCH * C_MAX];
    tgl_plan *small = make_plan(*state, 1, 1), *large = make_plan(*state, 0, BATCH);
    assert_true(tgl_plan_workspace_size(small) < tgl_plan_workspace_size(large));
    tgl_plan *const order[] = {small, large, small};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        fill(C, C_MAX, NAN);
        run(order[i], 1, ones(), 0, C, NULL);
        assert_all(C, 4, order[i] == small ? 320 : 352);
    }
    tgl_plan_destroy(small);
    tgl_plan_destroy(large);
}

/* Runs the blocks of a tile in many orders. The first block does not store its sums if it finishes
 * last; this must have happened in at least one order. */
static void the_order_of_blocks_does_not_matter(void **state)
{
    enum { SEEDS = 30 };
    static float expected[COUNT_OF(products)][C_MAX], C[C_MAX];
    bool first_was_last = false;
    for (size_t i = 0; i < COUNT_OF(products); i++) {
        tgl_plan *plan = make_plan(*state, i, 1);
        run(plan, 1, fractions(), 0, expected[i], NULL);
        tgl_plan_destroy(plan);
    }
    for (int seed = 0; seed < SEEDS; seed++) {
        char text[16];
        tgl_device *dev;
        snprintf(text, sizeof text, "%d", seed);
        setenv("TEGULA_SIM_SEED", text, 1);
        assert_status(tgl_device_open("sim", NULL, &dev), TGL_OK);
        unsetenv("TEGULA_SIM_SEED");
        for (size_t i = 0; i < COUNT_OF(products); i++) {
            if (i == SLOW && seed % 3 != 0) continue;
            tgl_plan *plan = make_plan(dev, i, 1);
            char *workspace = make_workspace(plan);
            run(plan, 1, fractions(), 0, C, workspace);
            assert_memory_equal(C, expected[i],
                                (size_t)(products[i].m * products[i].n) * sizeof *C);
            if (i == 0 && scratch_of(plan, workspace)[0] == -1) first_was_last = true;
            free(workspace);
            tgl_plan_destroy(plan);
        }
        tgl_device_close(dev);
    }
    assert_true(first_was_last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_zero_after_every_run),
        cmocka_unit_test(problems_of_a_batch_have_workspaces_of_their_own),
        cmocka_unit_test(plans_share_the_workspace_of_the_device),
        cmocka_unit_test(the_order_of_blocks_does_not_matter),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
