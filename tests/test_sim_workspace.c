/* SPDX-License-Identifier: Apache-2.0
 *
 * What blocks that share k do with a plan's workspace, on the simulator, where it can be looked at:
 * counters are zero again after every run, and problems of a batch have sums and counters of their
 * own. Its blocks run one after the other, so that results alone would not tell.
 */
#include "device.h"
#include "sim/state.h"
#include "support.h"

/* Columns: a configuration, a product, splits: by blocks alone, by clusters, by units of work. */
static const struct {
    const char *kernel;
    int64_t m, n, k;
    int splits;
} products[] = {
    {"gemm/simt_32x32x32", 2, 2, 352, 11},
    {"gemm/simt_32x32x32", 2, 2, 320, 10},
    {"gemm/skinny_4", 3, 300, 800, 3},
};

enum { BATCH = 3, OPERAND_MOST = 800 * 300, C_MOST = 3 * 300 };

/* Its matrices A and B are the same for all problems of the batch. */
static tgl_plan *make_plan(tgl_device *dev, size_t product, int batch)
{
    tgl_problem problem =
        tgl_problem_make(TGL_F32, products[product].m, products[product].n, products[product].k);
    problem.batch = batch;
    problem.stride_c = C_MOST;
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = products[product].kernel,
                                      .splits = products[product].splits,
                                      .strips = TGL_STRIPS_NEVER};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    return plan;
}

static const float *ones(void)
{
    static float x[OPERAND_MOST];
    for (int i = 0; i < OPERAND_MOST; i++)
        x[i] = 1;
    return x;
}

static const tgl_sim_part *part_of(const tgl_plan *plan)
{
    const tgl_sim_part *part = &((const tgl_sim_plan *)plan->state)->parts[0];
    assert_true(part->of.plan.workspace_floats > 0 && part->of.plan.counters > 0);
    return part;
}

static unsigned *counters_of(const tgl_sim_part *part)
{
    return (unsigned *)(part->workspace + part->of.plan.workspace_floats);
}

static void assert_counters(const tgl_plan *plan, unsigned expected)
{
    const tgl_sim_part *part = part_of(plan);
    for (int64_t i = 0; i < part->of.plan.counters; i++)
        assert_int_equal(counters_of(part)[i], expected);
}

static void fill(float *C, int count, float value)
{
    for (int i = 0; i < count; i++)
        C[i] = value;
}

static void assert_all(const float *C, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        assert_true(C[i] == value);
}

/* Else the next run would have no last block, and C would stay as it is. Without a product, C :=
 * beta*C, no counter moves. */
static void counters_are_zero_after_every_run(void **state)
{
    static float C[C_MOST];
    for (size_t i = 0; i < COUNT_OF(products); i++) {
        const int64_t elements = products[i].m * products[i].n;
        tgl_plan *plan = make_plan(*state, i, 1);
        fill(C, C_MOST, 4);
        assert_status(tgl_plan_run(plan, 0, NULL, NULL, 0.5, C, NULL), TGL_OK);
        assert_all(C, elements, 2);
        assert_counters(plan, 0);
        for (int again = 0; again < 2; again++) {
            fill(C, C_MOST, NAN);
            assert_status(tgl_plan_run(plan, 1, ones(), ones(), 0, C, NULL), TGL_OK);
            assert_all(C, elements, (float)products[i].k);
            assert_counters(plan, 0);
        }
        tgl_plan_destroy(plan);
    }
}

/* Counters that are far past the end let no block be the last: then all keep how many blocks have
 * counted, and each problem's sums are left where its own have their place. */
static void problems_of_a_batch_have_workspaces_of_their_own(void **state)
{
    enum { PAST = 1000 };
    static float C[BATCH * C_MOST];
    for (size_t i = 0; i < COUNT_OF(products); i++) {
        tgl_plan *plan = make_plan(*state, i, BATCH);
        const tgl_sim_part *part = part_of(plan);
        const tgl_gemm_plan *of = &part->of.plan;
        const int64_t own = of->workspace_floats / BATCH;
        fill(part->workspace, (int)of->workspace_floats, -1);
        for (int64_t j = 0; j < of->counters; j++)
            counters_of(part)[j] = PAST;
        assert_status(tgl_plan_run(plan, 1, ones(), ones(), 0, C, NULL), TGL_OK);
        assert_counters(plan, PAST + (unsigned)(of->splits / of->cluster));
        for (int64_t j = 1; j < BATCH; j++)
            assert_memory_equal(part->workspace + j * own, part->workspace,
                                (size_t)own * sizeof *part->workspace);
        tgl_plan_destroy(plan);
    }
}

/* The first block of a split tile, which here runs first, finds the others' counts and sums as if
 * they had come: it adds these to its own, without leaving it, and stores the tile. The others then
 * count anew, and none of them is the last. */
static void first_block_may_be_the_last(void **state)
{
    enum { SUM = 2 };
    static float C[C_MOST];
    tgl_plan *plan = make_plan(*state, 0, 1);
    const tgl_sim_part *part = part_of(plan);
    const tgl_gemm_plan *of = &part->of.plan;
    const int others = of->splits - 1;
    const int64_t tile = of->workspace_floats / of->splits;
    assert_int_equal(of->cluster, 1);
    fill(part->workspace, (int)of->workspace_floats, SUM);
    fill(part->workspace, (int)tile, NAN);
    for (int64_t i = 0; i < of->counters; i++)
        counters_of(part)[i] = (unsigned)others;
    assert_status(tgl_plan_run(plan, 1, ones(), ones(), 0, C, NULL), TGL_OK);
    assert_all(C, products[0].m * products[0].n,
               (float)(tgl_gemm_first_depth(of, &part->of.shape) + (int64_t)others * SUM));
    assert_true(isnan(part->workspace[0]));
    assert_counters(plan, (unsigned)others);
    tgl_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_zero_after_every_run),
        cmocka_unit_test(problems_of_a_batch_have_workspaces_of_their_own),
        cmocka_unit_test(first_block_may_be_the_last),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
