/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products of 8-bit types with scale factors: the checks of problems, and products by the
 * cpu device.
 */
#include "grouped_scale_cases.h"
#include "support.h"

#define E4M3 TGL_F8_E4M3

static void every_scaling(void **state)
{
    static const grouped_scale_size sizes[] = {{90, 150, 300}, {40, 17, 130}, {300, 5, 128}};
    for (unsigned i = 0; i < 32 * SCALE_PAIRS; i++) {
        const int pair = (int)(i % SCALE_PAIRS);
        const grouped_scale_size *size = &sizes[i % COUNT_OF(sizes)];
        group_list list = {.grouping = i / 2 % 2 != 0 ? TGL_GROUPED_MASKED : TGL_GROUPED_ROWS,
                           .form = TGL_GROUP_SIZES};
        if (list.grouping == TGL_GROUPED_ROWS) list.form = (tgl_group_form)(i / 4 % 2);
        if (!scale_pair_is_of(pair, list.grouping)) continue;
        draw_group_list(&list, 1 + (int)i % 6, size->m, i);
        const scaled_case c =
            grouped_scale_case(i, &list, size, pair, NULL, ((double)size->k + 8) * 0x1p-24);
        check_grouped_scales(*state, &c);
    }
}

/* Products of int8 have factors of groups as well. */
static void integers(void **state)
{
    static const grouped_scale_size size = {50, 20, 70};
    static const group_list list = {TGL_GROUPED_ROWS, TGL_GROUP_ENDS, 3, {7, 7, 40}};
    for (int pair = 1; pair < 4; pair++) {
        scaled_case c = grouped_scale_case(0, &list, &size, pair, NULL, 0x1p-23);
        c.problem.type_a = c.problem.type_b = TGL_I8;
        check_grouped_scales(*state, &c);
    }
}

static tgl_problem grouped_problem(tgl_grouping grouping, int scaling_a, int scaling_b)
{
    tgl_problem p = scaled_problem(E4M3, E4M3, TGL_BF16, 200, 140, 300);
    p.grouping = grouping;
    p.group_form = TGL_GROUP_SIZES;
    p.batch = 3;
    p.scaling_a = (tgl_scaling)scaling_a;
    p.scaling_b = (tgl_scaling)scaling_b;
    if (grouping != TGL_GROUPED_DEPTH) p.stride_b = p.k * p.n;
    if (grouping == TGL_GROUPED_MASKED) p.stride_a = p.m * p.k;
    if (grouping != TGL_GROUPED_ROWS) p.stride_c = p.m * p.n;
    return p;
}

static void problems(void **state)
{
    enum { NONE = TGL_SCALING_NONE, TENSOR, LINE, BLOCK, LINE_128 };
    static const char no_depth[] = "products with TGL_GROUPED_DEPTH have no scales";
    static const struct {
        tgl_grouping grouping;
        int a, b, d;
        const char *refused;
    } rows[] = {
        {TGL_GROUPED_ROWS, LINE_128, BLOCK, NONE, NULL},
        {TGL_GROUPED_ROWS, TENSOR, LINE, LINE, NULL},
        {TGL_GROUPED_MASKED, BLOCK, BLOCK, TENSOR, NULL},
        {TGL_GROUPED_ROWS, BLOCK, BLOCK, NONE,
         "scaling_a is TGL_SCALING_BLOCK, and a block of 128 rows would have rows of several "
         "groups: use TGL_SCALING_LINE_128"},
        {TGL_GROUPED_DEPTH, NONE, NONE, NONE, NULL},
        {TGL_GROUPED_DEPTH, TENSOR, NONE, NONE, no_depth},
        {TGL_GROUPED_DEPTH, NONE, LINE, NONE, no_depth},
        {TGL_GROUPED_DEPTH, NONE, NONE, TENSOR, no_depth},
        {TGL_GROUPED_DEPTH, LINE_128, BLOCK, NONE, no_depth},
        {TGL_GROUPED_ROWS, LINE_128, LINE, NONE,
         "scaling_a is for blocks, and scaling_b is not: both or none must be"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        tgl_problem p = grouped_problem(rows[i].grouping, rows[i].a, rows[i].b);
        p.scaling_d = (tgl_scaling)rows[i].d;
        forget_error();
        assert_status(tgl_problem_check(&p), rows[i].refused == NULL ? TGL_OK : TGL_UNSUPPORTED);
        if (rows[i].refused != NULL) assert_sentence(rows[i].refused);
    }
}

/* All groups may share B, but each has its own factors, whose number may be too large. */
static void factors_too_large(void **state)
{
    (void)state;
    tgl_problem p = grouped_problem(TGL_GROUPED_ROWS, TGL_SCALING_LINE, TGL_SCALING_LINE);
    p.stride_b = 0;
    p.batch = INT64_MAX / 140;
    assert_status(tgl_problem_check(&p), TGL_TOO_LARGE);
    assert_sentence("the bytes of scale_b do not fit in 63 bits");
    p = grouped_problem(TGL_GROUPED_ROWS, TGL_SCALING_LINE_128, TGL_SCALING_BLOCK);
    p.ld_scale_b = INT64_MAX / 16;
    assert_status(tgl_problem_check(&p), TGL_TOO_LARGE);
    assert_sentence("the bytes of scale_b do not fit in 63 bits");
    p.ld_scale_b = 2;
    assert_status(tgl_problem_check(&p), TGL_BAD_SCALE);
    assert_sentence("ld_scale_b is 2; it must be 0 or at least 3");
}

static void missing_factors(void **state)
{
    static unsigned char bytes[200 * 300 + 3 * 300 * 140];
    static uint16_t results[200 * 140];
    static const int32_t sizes[3] = {1, 0, 2};
    static const float factors[3 * 140] = {1};
    const tgl_problem p = grouped_problem(TGL_GROUPED_ROWS, TGL_SCALING_LINE, TGL_SCALING_LINE);
    tgl_operands o = {.size = sizeof o,
                      .alpha = 1,
                      .A = bytes,
                      .B = bytes,
                      .C = results,
                      .groups = sizes,
                      .scale_a = factors};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_SCALE);
    assert_sentence("scale_b is NULL");
    o.scale_b = (const char *)factors + 2;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_SCALE);
    assert_sentence("scale_b is not aligned to its element size");
    o.scale_b = factors;
    o.scale_d = factors;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_SCALE);
    assert_sentence("scale_d is given, and the problem has none");
    o.scale_d = NULL;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    tgl_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scaling),   cmocka_unit_test(integers),
        cmocka_unit_test(problems),        cmocka_unit_test(factors_too_large),
        cmocka_unit_test(missing_factors),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
