/* SPDX-License-Identifier: Apache-2.0
 *
 * Factors of blocks: the checks of problems, and products by the cpu device.
 */
#include "block_scale_cases.h"
#include "support.h"

#define E4M3 TGL_F8_E4M3

/* m, n, k: with partial blocks, one row, one column, threads that share k, and no k. */
static const int64_t sizes[][3] = {{70, 300, 145}, {1, 140, 300}, {130, 1, 257}, {260, 20, 530},
                                   {3, 5, 7},      {8, 16, 5000}, {4, 4, 0}};

static void every_layout(void **state)
{
    char fault[512];
    for (unsigned i = 0; i < 16 * COUNT_OF(sizes); i++) {
        const int64_t *size = sizes[i % COUNT_OF(sizes)];
        const scaled_case c = block_scale_case(i, size, NULL, ((double)size[2] + 8) * 0x1p-24);
        assert_status(scaled_case_run(*state, &c, fault, NULL), TGL_OK);
        assert_string_equal(fault, "");
    }
}

static void batch(void **state)
{
    static const int64_t size[] = {20, 140, 200};
    char fault[512];
    scaled_case c = block_scale_case(0, size, NULL, 256 * 0x1p-24);
    c.problem.batch = 3;
    c.problem.stride_a = c.problem.lda * size[0];
    c.problem.stride_b = c.problem.ldb * size[1];
    c.problem.stride_c = c.problem.ldc * size[0];
    assert_status(scaled_case_run(*state, &c, fault, NULL), TGL_OK);
    assert_string_equal(fault, "");
}

static void special_factors(void **state)
{
    check_special_factors(*state, NULL);
}

static void problems(void **state)
{
    enum { NONE = TGL_SCALING_NONE, TENSOR, LINE, BLOCK, LINE_128 };
    static const struct {
        tgl_type type;
        int a, b, d;
        int64_t ld_a, ld_b;
        tgl_status status;
        const char *sentence;
    } rows[] = {
        {E4M3, LINE_128, BLOCK, NONE, 0, 0, TGL_OK, ""},
        {E4M3, BLOCK, LINE_128, LINE, 2, 140, TGL_OK, ""},
        {E4M3, BLOCK, BLOCK, NONE, 4, 4, TGL_OK, ""},
        {E4M3, LINE_128, LINE_128, TENSOR, 7, 141, TGL_OK, ""},
        {E4M3, LINE_128, LINE, NONE, 0, 0, TGL_UNSUPPORTED,
         "scaling_a is for blocks, and scaling_b is not: both or none must be"},
        {E4M3, NONE, BLOCK, NONE, 0, 0, TGL_UNSUPPORTED,
         "scaling_b is for blocks, and scaling_a is not: both or none must be"},
        {E4M3, LINE_128, BLOCK, BLOCK, 0, 0, TGL_UNSUPPORTED,
         "scaling_d is for blocks; D has factors for all of it or for its rows"},
        {TGL_I8, LINE_128, BLOCK, NONE, 0, 0, TGL_UNSUPPORTED,
         "factors of blocks are for products of F8_E4M3 and F8_E5M2"},
        {E4M3, LINE_128, BLOCK, NONE, 6, 0, TGL_BAD_SCALE,
         "ld_scale_a is 6; it must be 0 or at least 7"},
        {E4M3, LINE_128, BLOCK, NONE, 0, 1, TGL_BAD_SCALE,
         "ld_scale_b is 1; it must be 0 or at least 2"},
        {E4M3, LINE, LINE, NONE, 7, 0, TGL_BAD_SCALE,
         "ld_scale_a is 7; it must be 0, because no factors are of blocks"},
        {E4M3, LINE_128, LINE_128, NONE, -1, 0, TGL_BAD_SCALE,
         "ld_scale_a is -1; it must be 0 or at least 7"},
        {E4M3, LINE_128, LINE_128, NONE, INT64_MAX, 0, TGL_BAD_SCALE,
         "ld_scale_a is 9223372036854775807: the factors would not fit in memory"},
        {E4M3, 6, BLOCK, NONE, 0, 0, TGL_BAD_ARGUMENT,
         "scaling_a is 6, which is not a tgl_scaling"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const tgl_type result = rows[i].type == TGL_I8 ? TGL_F32 : TGL_BF16;
        tgl_problem p = scaled_problem(rows[i].type, rows[i].type, result, 7, 140, 200);
        p.scaling_a = (tgl_scaling)rows[i].a;
        p.scaling_b = (tgl_scaling)rows[i].b;
        p.scaling_d = (tgl_scaling)rows[i].d;
        p.ld_scale_a = rows[i].ld_a;
        p.ld_scale_b = rows[i].ld_b;
        forget_error();
        assert_status(tgl_problem_check(&p), rows[i].status);
        if (rows[i].status != TGL_OK) assert_sentence(rows[i].sentence);
    }
}

/* The struct of a caller with an older header ends before ld_scale_a. */
static void older_header(void **state)
{
    (void)state;
    tgl_problem p = scaled_problem(E4M3, E4M3, TGL_BF16, 7, 140, 200);
    p.scaling_a = TGL_SCALING_LINE_128;
    p.scaling_b = TGL_SCALING_BLOCK;
    p.size = offsetof(tgl_problem, ld_scale_a);
    p.ld_scale_a = 1; /* behind the end that size names */
    assert_status(tgl_problem_check(&p), TGL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout),    cmocka_unit_test(batch),
        cmocka_unit_test(special_factors), cmocka_unit_test(problems),
        cmocka_unit_test(older_header),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
