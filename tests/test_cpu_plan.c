/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of the cpu device's plans, and what holds for all of them (src/cpu/plan/cpu_planner.c).
 */
#include "cpu_plan_case.h"

static void small_products_stay_simple(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= CPU_SMALL; n++) {
        const tgl_shape shape = shape_of(n, n, n, n % 2 == 0, n % 3 == 0);
        const cpu_plan plan = plan_of(&shape, 8);
        assert_int_equal(plan.path, CPU_PATH_SMALL);
        assert_int_equal(plan.threads, 1);
        assert_int_equal(plan.workspace, 0);
    }
    for (int dimension = 0; dimension < 3; dimension++) {
        int64_t n[] = {CPU_SMALL, CPU_SMALL, CPU_SMALL};
        n[dimension]++;
        const tgl_shape shape = shape_of(n[0], n[1], n[2], false, false);
        assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_GEMM);
    }
}

static void paths_follow_the_shape(void **state)
{
    (void)state;
    tgl_shape shape = shape_of(100, 100, 0, false, false);
    assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_SCALE);
    shape = shape_of(1, 5000, 5000, false, false);
    assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_VECTOR);
    shape = shape_of(5000, 1, 5000, true, true);
    assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_VECTOR);
    shape = shape_of(1000, 1000, 1000, true, true);
    assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_GEMM);
}

/* Small products with one row or one column take the register tiles of larger products, which add
 * the terms of a sum in the same order. */
static void small_vectors_take_the_tiles(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        cpu_path path;
    } table[] = {{1, 1, 1, CPU_PATH_GEMM},
                 {8, 1, 8, CPU_PATH_GEMM},
                 {1, 8, 8, CPU_PATH_GEMM},
                 {64, 1, 1, CPU_PATH_GEMM},
                 {1, 4, 16, CPU_PATH_GEMM},
                 {1, 3, 17, CPU_PATH_VECTOR},
                 {9, 1, 8, CPU_PATH_VECTOR},
                 {1, 65, 1, CPU_PATH_VECTOR},
                 {65, 1, 1, CPU_PATH_VECTOR},
                 {1, 1, INT64_MAX / 8, CPU_PATH_VECTOR},
                 {1, INT64_MAX / 128, 16, CPU_PATH_VECTOR}};
    for (size_t i = 0; i < COUNT_OF(table); i++)
        for (int trans = 0; trans < 4; trans++) {
            const tgl_shape shape =
                shape_of(table[i].m, table[i].n, table[i].k, trans & 1, trans & 2);
            assert_int_equal(plan_of(&shape, 8).path, table[i].path);
        }
}

/* Block sizes are positive, each rectangle of C has rows and columns, blocks of A are whole tiles
 * if there are several, and buffers are large enough for the blocks. */
static void plans_are_consistent(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int i = 0; i < 20000; i++) {
        const int64_t largest = (int64_t)1 << random_int(&seed, 1, 14);
        const tgl_shape shape = shape_of(
            random_int(&seed, 2, largest), random_int(&seed, 2, largest),
            random_int(&seed, 1, largest), random_int(&seed, 0, 1), random_int(&seed, 0, 1));
        cpu_kernels table = tgl_cpu_kernels_portable_f32;
        table.mr = (int)random_int(&seed, 2, 4) * 2;
        cpu_machine device = server;
        device.threads = (int)random_int(&seed, 1, 70);
        device.facts.l2 = (size_t)256 << 10 << random_int(&seed, 0, 3);
        cpu_blocking blocking = {0};
        if (random_int(&seed, 0, 3) == 0) blocking.mc = (int)random_int(&seed, 1, 2 * largest);
        if (random_int(&seed, 0, 3) == 0) blocking.kc = (int)random_int(&seed, 1, 2 * largest);
        cpu_plan plan;
        tgl_cpu_plan(&shape, &table, blocking, &device, &plan);
        const cpu_kernels *kernels = plan.kernels;
        if (plan.path == CPU_PATH_SMALL) {
            assert_int_equal(plan.workspace, 0);
            continue;
        }
        assert_true(plan.mc > 0 && plan.nc > 0 && plan.kc > 0 && plan.threads > 0);
        if (plan.sharing == CPU_SHARE_C) {
            assert_int_equal(plan.grid_m * plan.grid_n % plan.threads, 0);
            assert_true((plan.grid_m - 1) * kernels->mr < shape.m); /* each rectangle has rows */
            assert_true((plan.grid_n - 1) * kernels->vector < shape.n);
        }
        if (plan.pack_a)
            assert_true(plan.a_bytes >= (size_t)(plan.mc * plan.kc) * kernels->element);
        if (plan.keep_b) assert_int_equal(plan.mc % kernels->mr, 0); /* blocks are whole tiles */
        const int64_t width = (int64_t)kernels->nv * kernels->vector;
        const int64_t columns = plan.keep_b ? plan.nc : plan.nc < width ? plan.nc : width;
        if (plan.pack_b)
            assert_true(plan.b_bytes >= (size_t)(columns * plan.kc) * kernels->element);
        assert_true(plan.workspace >= (size_t)plan.threads * (plan.a_bytes + plan.b_bytes));
    }
}

static void plans_explain_themselves(void **state)
{
    tgl_device *dev = *state;
    static const struct {
        int64_t m, n, k;
        const char *word;
    } table[] = {{1000, 1000, 1000, "blocks"},
                 {1000, 1, 1000, "matrix-vector product"},
                 {10, 10, 0, "k is 0"},
                 {30, 40, 50, "register tiles"},
                 {48, 48, 100000, "partial sums"}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_problem problem = problem_of(TGL_F64, table[i].m, table[i].n, table[i].k);
        tgl_plan *plan;
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
        char text[2000], start[10];
        const size_t length = tgl_plan_explain(plan, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_int_equal(tgl_plan_explain(plan, start, sizeof start), length);
        assert_int_equal(strlen(start), sizeof start - 1);
        assert_int_equal(tgl_plan_explain(plan, NULL, 0), length);
        const bool one_thread = strstr(text, "of 1") != NULL;
        if (!one_thread || i < 4) assert_non_null(strstr(text, table[i].word));
        assert_non_null(strstr(text, tgl_plan_kernel(plan)));
        tgl_plan_destroy(plan);
    }

    const tgl_device_options options = {.size = sizeof options, .threads = 4};
    tgl_device *four;
    assert_status(tgl_device_open("cpu", &options, &four), TGL_OK);
    const tgl_problem problem = problem_of(TGL_F64, 1000, 1000, 1000);
    tgl_plan *plan;
    assert_status(tgl_plan_create(four, &problem, NULL, &plan), TGL_OK);
    char text[2000];
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "threads     4 of 4, which take "));
    assert_non_null(strstr(text, "rectangles of C"));
    tgl_plan_destroy(plan);
    tgl_device_close(four);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_products_stay_simple),
        cmocka_unit_test(paths_follow_the_shape),
        cmocka_unit_test(small_vectors_take_the_tiles),
        cmocka_unit_test(plans_are_consistent),
        cmocka_unit_test_setup_teardown(plans_explain_themselves, setup_cpu, teardown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
