/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products on the cpu device, the checks of their problems, and lists of products.
 */
#include "grouped_case.h"

static const grouped_case basic = {.list.grouping = TGL_GROUPED_ROWS,
                                   .list.form = TGL_GROUP_ENDS,
                                   .rows = 50,
                                   .n = 20,
                                   .k = 30,
                                   .type = TGL_F32,
                                   .result = TGL_F32,
                                   .alpha = 1};

static void every_grouping_and_type(void **state)
{
    static const tgl_type types[] = {TGL_F32, TGL_F64, TGL_F16, TGL_BF16};
    for (int way = 0; way < 96; way++) {
        grouped_case c = basic;
        c.list.grouping = (tgl_grouping)(1 + way % 3);
        c.list.form =
            c.list.grouping == TGL_GROUPED_MASKED ? TGL_GROUP_SIZES : (tgl_group_form)(way / 3 % 2);
        c.type = c.result = types[way / 6 % 4];
        c.trans_a = way / 24 % 2 != 0;
        c.trans_b = way / 48 != 0;
        c.is_column_major = c.list.grouping == TGL_GROUPED_DEPTH && way % 2 != 0;
        c.beta = way % 4 == 0 ? 0 : -2;
        c.pad_a = way % 2, c.pad_b = way % 3, c.pad_c = way % 5;
        c.seed = (uint64_t)way;
        draw_group_list(&c.list, 1 + way % 7, c.list.grouping == TGL_GROUPED_DEPTH ? c.k : c.rows,
                        c.seed);
        assert_status(run_grouped(*state, &c), TGL_OK);
    }
}

static void epilogues_by_group(void **state)
{
    for (int way = 0; way < 12; way++) {
        grouped_case c = basic;
        c.list.grouping = (tgl_grouping)(1 + way % 3);
        c.list.form = TGL_GROUP_SIZES;
        c.bias = way / 3 % 2 != 0 ? TGL_BIAS_ROW : TGL_BIAS_COLUMN;
        c.has_relu = true;
        c.has_residual = way / 6 != 0;
        c.separate_d = true;
        c.beta = 2;
        draw_group_list(&c.list, 4, 30, (uint64_t)way);
        assert_status(run_grouped(*state, &c), TGL_OK);
    }
}

/* The host reads the sizes before it computes anything. */
static void impossible_sizes(void **state)
{
    static const int32_t lists[][3] = {{-1, 2, 3}, {10, 5, 20}, {10, 20, 51}, {0, 0, INT32_MAX}};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        grouped_case c = basic;
        memcpy(c.list.groups, lists[i], sizeof lists[i]);
        c.list.count = 3;
        assert_status(run_grouped(*state, &c), TGL_BAD_GROUPS);
        c.list.grouping = TGL_GROUPED_DEPTH;
        assert_status(run_grouped(*state, &c), TGL_BAD_GROUPS);
    }
    grouped_case c = basic;
    c.list.form = TGL_GROUP_SIZES;
    c.list.count = 3;
    c.list.groups[0] = c.list.groups[1] = c.list.groups[2] = 17; /* 51 in all */
    assert_status(run_grouped(*state, &c), TGL_BAD_GROUPS);
    assert_sentence("group 2 ends at 51, and m is 50");
}

static tgl_problem grouped_problem(tgl_grouping grouping)
{
    tgl_problem p;
    assert_status(tgl_problem_init(&p, sizeof p, TGL_F32, 8, 8, 8), TGL_OK);
    p.grouping = grouping;
    p.group_form = TGL_GROUP_SIZES;
    p.batch = 2;
    p.stride_b = grouping == TGL_GROUPED_DEPTH ? 0 : 64;
    p.stride_c = grouping == TGL_GROUPED_ROWS ? 0 : 64;
    p.stride_a = grouping == TGL_GROUPED_MASKED ? 64 : 0;
    return p;
}

static void invalid_problems(void **state)
{
    (void)state;
    for (int g = TGL_GROUPED_ROWS; g <= TGL_GROUPED_MASKED; g++) {
        tgl_problem p = grouped_problem((tgl_grouping)g);
        assert_status(tgl_problem_check(&p), TGL_OK);
        p.batching = TGL_POINTERS;
        p.stride_a = p.stride_b = p.stride_c = 0;
        assert_status(tgl_problem_check(&p), TGL_BAD_GROUPS);
        p = grouped_problem((tgl_grouping)g);
        p.group_form = (tgl_group_form)2;
        assert_status(tgl_problem_check(&p), TGL_BAD_GROUPS);
        p = grouped_problem((tgl_grouping)g);
        p.order = TGL_COL_MAJOR;
        assert_status(tgl_problem_check(&p), g == TGL_GROUPED_DEPTH ? TGL_OK : TGL_BAD_GROUPS);
        p = grouped_problem((tgl_grouping)g);
        p.stride_a += g == TGL_GROUPED_MASKED ? 0 : 8;
        assert_status(tgl_problem_check(&p), g == TGL_GROUPED_MASKED ? TGL_OK : TGL_BAD_STRIDE_A);
    }
    tgl_problem p = grouped_problem((tgl_grouping)4);
    assert_status(tgl_problem_check(&p), TGL_BAD_GROUPS);
    p = grouped_problem(TGL_GROUPED_NONE);
    assert_status(tgl_problem_check(&p), TGL_BAD_GROUPS);
    p = grouped_problem(TGL_GROUPED_MASKED);
    p.group_form = TGL_GROUP_ENDS;
    assert_status(tgl_problem_check(&p), TGL_BAD_GROUPS);
    p = grouped_problem(TGL_GROUPED_ROWS);
    p.stride_c = 8;
    assert_status(tgl_problem_check(&p), TGL_BAD_STRIDE_C);
    p = grouped_problem(TGL_GROUPED_DEPTH);
    p.stride_b = 8;
    assert_status(tgl_problem_check(&p), TGL_BAD_STRIDE_B);
}

static void one_shot_calls(void **state)
{
    float A[4] = {1, 2, 3, 4}, B[2] = {10, 100}, C[4] = {0};
    const int32_t ends[2] = {1, 3};
    tgl_problem p;
    assert_status(tgl_problem_init(&p, sizeof p, TGL_F32, 4, 1, 1), TGL_OK);
    p.batch = 2;
    p.stride_b = 1;
    p.stride_c = 4;
    assert_status(tgl_grouped_gemm(*state, &p, 1, A, B, 0, C, ends, NULL), TGL_BAD_GROUPS);
    p.stride_c = 0;
    p.grouping = TGL_GROUPED_ROWS;
    assert_status(tgl_grouped_gemm(*state, &p, 1, A, B, 0, C, ends, NULL), TGL_OK);
    const float expected[4] = {10, 200, 300, 0};
    assert_memory_equal(C, expected, sizeof C);
    assert_status(tgl_grouped_gemm(*state, &p, 1, A, B, 0, C, NULL, NULL), TGL_BAD_GROUPS);
    assert_status(tgl_gemm(*state, &p, 1, A, B, 0, C, NULL), TGL_BAD_GROUPS);
    p.batch = 1; /* not a small product */
    assert_status(tgl_gemm(*state, &p, 1, A, B, 0, C, NULL), TGL_BAD_GROUPS);
    const tgl_operands o = {.size = sizeof o, .alpha = 1, .A = A, .B = B, .C = C, .groups = ends};
    assert_status(tgl_gemm_host(*state, &p, &o), TGL_UNSUPPORTED);
}

/* A list of two products of different sizes and types. At first the second one has no B, and none
 * is computed. */
static void lists(void **state)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[3] = {1, 1, 1}, c[2] = {0};
    double x[1] = {3}, y[1] = {5}, z[1] = {0};
    tgl_problem p[2];
    assert_status(tgl_problem_init(&p[0], sizeof p[0], TGL_F32, 2, 1, 3), TGL_OK);
    assert_status(tgl_problem_init(&p[1], sizeof p[1], TGL_F64, 1, 1, 1), TGL_OK);
    tgl_operands o[2] = {{.size = sizeof *o, .alpha = 1, .A = a, .B = b, .C = c},
                         {.size = sizeof *o, .alpha = 2, .A = x, .B = NULL, .C = z}};
    assert_status(tgl_grouped_list(*state, 2, p, o, NULL), TGL_BAD_B);
    assert_true(c[0] == 0 && c[1] == 0);
    o[1].B = y;
    assert_status(tgl_grouped_list(*state, 2, p, o, NULL), TGL_OK);
    assert_true(c[0] == 6 && c[1] == 15 && z[0] == 30);
    assert_status(tgl_grouped_list(*state, 0, NULL, NULL, NULL), TGL_OK);
    assert_status(tgl_grouped_list(*state, -1, p, o, NULL), TGL_BAD_ARGUMENT);
    assert_status(tgl_grouped_list(*state, 1, NULL, o, NULL), TGL_BAD_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_grouping_and_type), cmocka_unit_test(epilogues_by_group),
        cmocka_unit_test(impossible_sizes),        cmocka_unit_test(invalid_problems),
        cmocka_unit_test(one_shot_calls),          cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
