/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of e4m3, e5m2 and i8 with scales by the cpu device, in all layouts and types.
 */
#include "support.h"

#include "scaled_case.h"
#include "scaled_values.h"

#define E4M3 TGL_F8_E4M3
#define E5M2 TGL_F8_E5M2

/* m, n, k: with one row, one column, few rows, several blocks, threads that share k, and no k. */
static const int64_t sizes[][3] = {{70, 68, 145}, {1, 90, 300},  {65, 1, 40}, {260, 20, 530},
                                   {3, 5, 7},     {8, 16, 5000}, {4, 4, 0}};

static void every_layout(void **state)
{
    static const tgl_type pairs[][2] = {
        {E4M3, E4M3}, {E5M2, E4M3}, {TGL_I8, TGL_I8}, {E4M3, E5M2}, {TGL_I8, TGL_I8}};
    static const tgl_type results[] = {TGL_BF16, TGL_F32, TGL_F16, E4M3, TGL_BF16, E5M2, TGL_I8};
    char fault[512];
    for (unsigned i = 0; i < 8 * COUNT_OF(sizes) * 2; i++) {
        const int64_t *size = sizes[i % COUNT_OF(sizes)];
        const tgl_type *in = pairs[i / 2 % COUNT_OF(pairs)];
        tgl_type result = results[i / 3 % COUNT_OF(results)];
        if ((result == TGL_I8) != (in[0] == TGL_I8) && tgl_type_size(result) == 1) result = in[0];
        scaled_case c = {
            .problem = scaled_problem(in[0], in[1], result, size[0], size[1], size[2]),
            .alpha = i % 3 == 0 ? 1 : -0.75,
            .beta = i % 2 == 0 ? 0 : 0.5,
            .bias = (tgl_bias)(i % 3),
            .activation = i % 4 == 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE,
            .error = in[0] == TGL_I8 ? 0x1p-22 : ((double)size[2] + 8) * 0x1p-24,
            .has_amax = i / 7 % 2 == 0,
            .seed = i,
        };
        tgl_problem *p = &c.problem;
        p->trans_a = i % 2 != 0 ? TGL_TRANS : TGL_NO_TRANS;
        p->trans_b = i / 2 % 2 != 0 ? TGL_TRANS : TGL_NO_TRANS;
        p->order = i % 5 == 0 ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
        const bool swaps = p->order == TGL_COL_MAJOR;
        p->lda = ((p->trans_a == TGL_TRANS) != swaps ? p->m : p->k) + 3;
        p->ldb = ((p->trans_b == TGL_TRANS) != swaps ? p->k : p->n) + i % 2;
        p->ldc = (swaps ? p->m : p->n) + 1;
        p->scaling_a = (tgl_scaling)((i + 1) % 3);
        p->scaling_b = (tgl_scaling)((i / 2 + 2) % 3);
        p->scaling_d = (tgl_scaling)(tgl_type_size(result) == 1 ? 1 + i % 2 : 0);
        if (in[0] == TGL_I8 && p->scaling_a == 0) p->scaling_a = TGL_SCALING_LINE;
        assert_status(scaled_case_run(*state, &c, fault, NULL), TGL_OK);
        assert_string_equal(fault, "");
    }
}

static void values(void **state)
{
    static const char *const planned[] = {NULL};
    check_scaled_values(*state, planned, 1);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static tgl_status check_problem(tgl_type type, tgl_type type_d, tgl_scaling a, tgl_scaling d)
{
    tgl_problem p = scaled_problem(type, type, type_d, 8, 8, 8);
    p.scaling_a = a;
    p.scaling_d = d;
    forget_error();
    return tgl_problem_check(&p);
}

static void problems(void **state)
{
    (void)state;
    assert_status(check_problem(E4M3, E4M3, TGL_SCALING_NONE, TGL_SCALING_NONE), TGL_BAD_TYPE);
    assert_sentence("A is e4m3, B is e4m3, and C is e4m3: that needs a scale");
    assert_status(check_problem(E4M3, E4M3, TGL_SCALING_NONE, TGL_SCALING_TENSOR), TGL_OK);
    assert_status(check_problem(TGL_I8, TGL_BF16, TGL_SCALING_LINE, TGL_SCALING_NONE), TGL_OK);
    assert_status(check_problem(TGL_I8, TGL_I8, (tgl_scaling)6, TGL_SCALING_NONE),
                  TGL_BAD_ARGUMENT);
    tgl_problem p;
    assert_status(tgl_problem_init(&p, sizeof p, E5M2, 8, 8, 8), TGL_OK);
    assert_true(p.type_c == TGL_BF16);
    assert_status(tgl_problem_check(&p), TGL_OK);
}

/* The cpu device refuses scales for types other than 8-bit ones, scales per block for B alone, and
 * scales with results of I32. */
static void unsupported(void **state)
{
    static const tgl_type types[][2] = {
        {TGL_BF16, TGL_BF16}, {TGL_F32, TGL_F32}, {TGL_I8, TGL_I32}, {E4M3, TGL_BF16}};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        tgl_problem p = scaled_problem(types[i][0], types[i][0], types[i][1], 8, 8, 8);
        tgl_plan *plan;
        p.scaling_b = types[i][0] == E4M3 ? TGL_SCALING_BLOCK : TGL_SCALING_TENSOR;
        assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_UNSUPPORTED);
    }
}

/* A pointer to a scale that is missing, misaligned, or given although the problem has no scale. */
static void operands(void **state)
{
    static float factors[8], C[64];
    static unsigned char A[64], B[64];
    tgl_problem p = scaled_problem(E4M3, E4M3, TGL_F32, 8, 8, 8);
    p.scaling_a = TGL_SCALING_LINE;
    p.scaling_d = TGL_SCALING_TENSOR;
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_OK);
    const struct {
        const void *a, *b, *d;
        const char *sentence;
    } rows[] = {{NULL, NULL, factors, "scale_a is NULL"},
                {(char *)factors + 2, NULL, factors, "scale_a is not aligned to its element size"},
                {factors, factors, factors, "scale_b is given, and the problem has none"},
                {factors, NULL, NULL, "scale_d is NULL"}};
    tgl_operands o = {.size = sizeof o, .alpha = 1, .A = A, .B = B, .C = C};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        o.scale_a = rows[i].a, o.scale_b = rows[i].b, o.scale_d = rows[i].d;
        assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_SCALE);
        assert_sentence(rows[i].sentence);
    }
    o.scale_a = o.scale_d = factors;
    o.scale_b = NULL;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    tgl_plan_destroy(plan);
}

/* Which problems may have amax_d. */
static void amax(void **state)
{
    static const struct {
        tgl_type type, result;
        tgl_scaling scaling;
        int amax;
        const char *sentence; /* NULL: it may */
    } rows[] = {
        {E4M3, TGL_BF16, TGL_SCALING_NONE, 1, NULL},
        {TGL_I8, TGL_F32, TGL_SCALING_TENSOR, 1, NULL},
        {TGL_I8, TGL_I32, TGL_SCALING_NONE, 1,
         "epilogue.amax is for products of F8, and of I8 with scales"},
        {TGL_BF16, TGL_BF16, TGL_SCALING_NONE, 1,
         "epilogue.amax is for products of F8, and of I8 with scales"},
        {E4M3, TGL_BF16, TGL_SCALING_NONE, 2, "epilogue.amax is 2; it is 0 or 1"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        tgl_problem p = scaled_problem(rows[i].type, rows[i].type, rows[i].result, 8, 8, 8);
        const tgl_epilogue epilogue = {.size = sizeof epilogue, .amax = rows[i].amax};
        const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
        tgl_plan *plan;
        p.scaling_a = rows[i].scaling;
        assert_status(tgl_plan_create(*state, &p, &options, &plan),
                      rows[i].sentence == NULL ? TGL_OK : TGL_BAD_EPILOGUE);
        if (rows[i].sentence != NULL) assert_sentence(rows[i].sentence);
        tgl_plan_destroy(plan);
    }
}

/* A pointer amax_d that is missing, misaligned, or given although the problem does not ask for it.
 */
static void amax_operand(void **state)
{
    static float C[64], found[2];
    static unsigned char A[64], B[64];
    const struct {
        int amax;
        float *at;
        const char *sentence;
    } rows[] = {{1, NULL, "amax_d is NULL"},
                {1, (float *)((char *)found + 2), "amax_d is not aligned to its element size"},
                {0, found, "amax_d is given, and the plan's epilogue has none"}};
    const tgl_problem p = scaled_problem(E4M3, E4M3, TGL_F32, 8, 8, 8);
    tgl_operands o = {.size = sizeof o, .alpha = 1, .A = A, .B = B, .C = C};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const tgl_epilogue epilogue = {.size = sizeof epilogue, .amax = rows[i].amax};
        const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
        o.amax_d = rows[i].at;
        assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_SCALE);
        assert_sentence(rows[i].sentence);
        tgl_plan_destroy(plan);
    }
}

/* A run that fails does not change amax_d. */
static void amax_of_a_failed_run(void **state)
{
    static unsigned char A[64], B[64];
    static float D[64];
    const void *const none[] = {NULL}, *const b[] = {B};
    void *const d[] = {D};
    tgl_problem p = scaled_problem(E4M3, E4M3, TGL_F32, 8, 8, 8);
    p.batching = TGL_POINTERS;
    const tgl_epilogue epilogue = {.size = sizeof epilogue, .amax = 1};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
    float amax = 5;
    tgl_operands o = {
        .size = sizeof o, .alpha = 1, .A_array = none, .B_array = b, .C_array = d, .amax_d = &amax};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_A);
    assert_true(amax == 5);
    const void *const a[] = {A};
    o.A_array = a;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    assert_true(amax == 0);
    tgl_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout), cmocka_unit_test(values),
        cmocka_unit_test(problems),     cmocka_unit_test(unsupported),
        cmocka_unit_test(operands),     cmocka_unit_test(amax),
        cmocka_unit_test(amax_operand), cmocka_unit_test(amax_of_a_failed_run),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
