/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of 8 and 4 bits: the checks of problems and operands, and products by the cpu device.
 */
#include "scaled_case.h"
#include "support.h"
#include "weights_case.h"

static void check(tgl_device *dev, const weights_case *c)
{
    char fault[512];
    assert_status(weights_case_run(dev, c, fault), TGL_OK);
    assert_string_equal(fault, "");
}

/* Products of up to a few blocks, of one row or column, and of a long k that threads share. */
static void random_products(void **state)
{
    static const int64_t sizes[][3] = {{40, 70, 300}, {1, 300, 700},  {300, 1, 300},
                                       {3, 20, 3000}, {300, 300, 40}, {16, 600, 600}};
    for (unsigned i = 0; i < 300; i++) {
        const int64_t *size = sizes[i % COUNT_OF(sizes)];
        const weights_case c = weights_random_case(i, size[0], size[1], size[2]);
        check(*state, &c);
    }
}

/* Tests all values of a byte of B, so that each integer occurs with each possible neighbour. A
 * selects one k, and the factors are exact, so that D must be the weight itself. */
static void every_integer(void **state)
{
    enum { K = 256 };
    static uint8_t bytes[K];
    static uint16_t one[K];
    static float d[2 * K];
    for (int i = 0; i < K; i++)
        bytes[i] = (uint8_t)i;
    const float factor = -0.5f;
    const int8_t zero = 5;
    for (int is_i4 = 0; is_i4 < 2; is_i4++)
        for (int k = 0; k < K; k++) {
            tgl_problem p = weights_problem(TGL_F16, is_i4 ? TGL_I4 : TGL_I8, 1, is_i4 + 1, K, 0);
            p.type_c = TGL_F32;
            p.ldb = is_i4 ? 2 : 1;
            p.scaling_b = TGL_SCALING_TENSOR;
            p.type_zero_b = TGL_I8;
            memset(one, 0, sizeof one);
            one[k] = 0x3c00;
            tgl_plan *plan;
            assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_OK);
            const tgl_operands o = {.size = sizeof o,
                                    .alpha = 1,
                                    .A = one,
                                    .B = bytes,
                                    .C = d,
                                    .scale_b = &factor,
                                    .zero_b = &zero};
            assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
            tgl_plan_destroy(plan);
            const int low = is_i4 ? (k & 15) - (k & 8) * 2 : (int8_t)k;
            assert_true(d[0] == (float)(low - zero) * factor);
            if (is_i4) assert_true(d[1] == (float)((k >> 4) - (k >> 7) * 16 - zero) * factor);
        }
}

/* A NaN or Inf factor reaches the results of its own column only. */
static void special_factors(void **state)
{
    enum { N = 3, K = 64 };
    static uint16_t a[K];
    static int8_t b[K][N];
    float factors[2][N] = {{1, NAN, 1}, {1, 1, INFINITY}}, d[N];
    for (int i = 0; i < K; i++)
        a[i] = 0x3f80, b[i][0] = b[i][1] = b[i][2] = 1;
    tgl_problem problem = weights_problem(TGL_BF16, TGL_I8, 1, N, K, 32);
    problem.type_c = TGL_F32;
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
    const tgl_operands o = {
        .size = sizeof o, .alpha = 1, .A = a, .B = b, .C = d, .scale_b = factors};
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    tgl_plan_destroy(plan);
    assert_true(d[0] == K && isnan(d[1]) && isinf(d[2]));
}

/* ---- Errors ---------------------------------------------------------------------------------- */

#define SET(member, value) p.member = value

static void expect(const tgl_problem *p, tgl_status status, const char *sentence)
{
    forget_error();
    assert_status(tgl_problem_check(p), status);
    if (status != TGL_OK) assert_sentence(sentence);
}

/* Checks a problem of BF16 and I4, 7x140x200 with groups of 64, after these changes. */
#define EXPECT(status, sentence, ...)                                                              \
    do {                                                                                           \
        tgl_problem p = weights_problem(TGL_BF16, TGL_I4, 7, 140, 200, 64);                        \
        __VA_ARGS__;                                                                               \
        expect(&p, status, sentence);                                                              \
    } while (0)

static void types(void **state)
{
    (void)state;
    EXPECT(TGL_OK, "", (void)0);
    EXPECT(TGL_OK, "", SET(type_c, TGL_F32));
    EXPECT(TGL_OK, "", SET(type_b, TGL_I8));
    EXPECT(TGL_BAD_TYPE, "A is i4 and B is bf16: i4 is for weights: B is i4, and A is f16 or bf16",
           SET(type_a, TGL_I4), SET(type_b, TGL_BF16));
    EXPECT(TGL_BAD_TYPE, "A is i4 and B is i4: i4 is for weights: B is i4, and A is f16 or bf16",
           SET(type_a, TGL_I4));
    EXPECT(TGL_BAD_TYPE, "A is f32 and B is i4: i4 is for weights: B is i4, and A is f16 or bf16",
           SET(type_a, TGL_F32));
    EXPECT(TGL_BAD_TYPE, "A is f32 and B is i8: these types cannot be combined",
           SET(type_a, TGL_F32), SET(type_b, TGL_I8));
    EXPECT(TGL_BAD_TYPE,
           "A is i8 and B is f16: weights are B: exchange A and B, and transpose the product",
           SET(type_a, TGL_I8), SET(type_b, TGL_F16));
    EXPECT(TGL_BAD_TYPE, "A is bf16, B is i4, and C is f16: these types cannot be combined",
           SET(type_c, TGL_F16));
    EXPECT(TGL_BAD_TYPE, "A is bf16, B is i4, and C is i4: these types cannot be combined",
           SET(type_c, TGL_I4));
    assert_true(tgl_type_size(TGL_I4) == 0);
}

static void layouts(void **state)
{
    (void)state;
    EXPECT(TGL_BAD_LDB, "ldb is 141; it must be even, because B is i4", SET(ldb, 141));
    EXPECT(TGL_OK, "", SET(ldb, 141), SET(type_b, TGL_I8));
    EXPECT(TGL_OK, "", SET(ldb, 0), SET(n, 139), SET(ldc, 139));
    EXPECT(TGL_BAD_STRIDE_B, "stride_b is 28001; it must be even, because B is i4",
           SET(stride_b, 28001), SET(batch, 2), SET(stride_c, 980));
    EXPECT(TGL_UNSUPPORTED, "weights are supported for TGL_STRIDED only",
           SET(batching, TGL_POINTERS));
    EXPECT(TGL_UNSUPPORTED, "weights are not supported in products with a grouping",
           SET(grouping, TGL_GROUPED_ROWS), SET(batch, 2), SET(stride_b, 28000));
}

static void factors(void **state)
{
    (void)state;
    EXPECT(TGL_BAD_SCALE, "scale_group is 48; it must be 32, 64 or 128", SET(scale_group, 48));
    EXPECT(TGL_BAD_SCALE, "scale_group is 0; it must be 32, 64 or 128", SET(scale_group, 0));
    EXPECT(TGL_BAD_SCALE, "scale_group is 64; it must be 0, because no factors are of groups",
           SET(scaling_b, TGL_SCALING_LINE));
    EXPECT(TGL_OK, "", SET(scaling_b, TGL_SCALING_NONE), SET(scale_group, 0));
    EXPECT(TGL_OK, "", SET(ld_scale_b, 140));
    EXPECT(TGL_BAD_SCALE, "ld_scale_b is 139; it must be 0 or at least 140", SET(ld_scale_b, 139));
    EXPECT(TGL_BAD_SCALE, "the factors of B would not fit in memory", SET(ld_scale_b, INT64_MAX));
    EXPECT(TGL_BAD_SCALE, "stride_scale_b is -1; it must not be negative", SET(stride_scale_b, -1));
    EXPECT(TGL_BAD_TYPE, "type_zero_b is 4; it must be 0 or TGL_I8", SET(type_zero_b, TGL_BF16));
    EXPECT(TGL_BAD_SCALE, "B has zero points and no factors: give both", SET(type_zero_b, TGL_I8),
           SET(scaling_b, TGL_SCALING_NONE), SET(scale_group, 0));
    EXPECT(TGL_UNSUPPORTED, "in products of weights only B, the weights, has factors",
           SET(scaling_a, TGL_SCALING_LINE));
    EXPECT(TGL_UNSUPPORTED, "scaling_a is for groups; only the weights, B, have such factors",
           SET(scaling_a, TGL_SCALING_GROUP));
    EXPECT(TGL_UNSUPPORTED, "scaling_b is for blocks, and scaling_a is not: both or none must be",
           SET(scaling_b, TGL_SCALING_BLOCK), SET(scale_group, 0));
}

/* Members that only problems with weights may set. */
static void without_weights(void **state)
{
    (void)state;
    EXPECT(TGL_UNSUPPORTED, "factors of groups are for B of i8 or i4 and A of f16 or bf16",
           SET(type_b, TGL_BF16));
    EXPECT(TGL_BAD_SCALE, "type_zero_b is given, and B has no weights of i8 or i4",
           SET(type_b, TGL_BF16), SET(scaling_b, TGL_SCALING_NONE), SET(scale_group, 0),
           SET(type_zero_b, TGL_I8));
    EXPECT(TGL_BAD_SCALE, "stride_scale_b is given, and B has no weights of i8 or i4",
           SET(type_b, TGL_BF16), SET(scaling_b, TGL_SCALING_NONE), SET(scale_group, 0),
           SET(stride_scale_b, 1));
    EXPECT(TGL_BAD_SCALE, "scale_group is 64; it must be 0, because no factors are of groups",
           SET(type_b, TGL_BF16), SET(scaling_b, TGL_SCALING_NONE));
}

/* A stride of factors for a batch without factors is refused. */
static void stride_without_factors(void **state)
{
    (void)state;
    EXPECT(TGL_BAD_SCALE, "stride_scale_b is given, and B has no factors",
           SET(scaling_b, TGL_SCALING_NONE), SET(scale_group, 0), SET(type_zero_b, 0),
           SET(stride_scale_b, 1));
}

/* The pointers of a run: C keeps its elements after an error. */
static void operands(void **state)
{
    static uint16_t a[64], d[4];
    static uint8_t b[128];
    static float room[16];
    const struct {
        const void *factors, *zeros;
        const char *sentence;
    } rows[] = {{NULL, room, "scale_b is NULL"},
                {(char *)room + 2, room, "scale_b is not aligned to its element size"},
                {room, NULL, "zero_b is NULL"}};
    tgl_problem p = weights_problem(TGL_F16, TGL_I4, 1, 4, 64, 32);
    p.type_zero_b = TGL_I8;
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_OK);
    tgl_operands o = {.size = sizeof o, .alpha = 1, .A = a, .B = b, .C = d};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        d[0] = 77;
        o.scale_b = rows[i].factors, o.zero_b = rows[i].zeros;
        assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_SCALE);
        assert_sentence(rows[i].sentence);
        assert_int_equal(d[0], 77);
    }
    o.scale_b = o.zero_b = room;
    o.scale_a = room;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_SCALE);
    assert_sentence("scale_a is given, and the problem has none");
    tgl_plan_destroy(plan);

    p.type_zero_b = 0;
    assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_OK);
    o.scale_a = NULL;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_SCALE);
    assert_sentence("zero_b is given, and the problem has none");
    tgl_plan_destroy(plan);
}

/* ---- Choices on a GPU ------------------------------------------------------------------------ */

/* The choices on an H200 that are the fastest of those measured. */
static void choices(void **state)
{
    (void)state;
    static const struct {
        tgl_type type;
        int64_t m, side; /* side: n and k */
        const char *line;
    } rows[] = {
        {TGL_I4, 1, 16384, "\nchoice      dequant_128x8_w4, "},
        {TGL_I4, 8, 16384, "\nchoice      dequant_128x8_w4, "},
        {TGL_I4, 16, 16384, "\nchoice      dequant_256x16_w8:splits=2, "},
        {TGL_I4, 8, 4096, "\nchoice      dequant_128x8_w8:splits=4, "},
        {TGL_I8, 1, 16384, "\nchoice      dequant_128x8_w16, "},
        {TGL_I8, 8, 16384, "\nchoice      dequant_128x8_w16, "},
        {TGL_I8, 16, 16384, "\nchoice      dequant_128x16_w8, "},
        {TGL_I8, 8, 4096, "\nchoice      dequant_128x8_w8:splits=4, "},
        {TGL_I8, 16, 4096, "\nchoice      dequant_128x16_w8:splits=4, "},
        {TGL_I4, 17, 16384, "expanded to 16 bits by a pre-pass"},
        {TGL_I8, 17, 4096, "expanded to 16 bits by a pre-pass"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[65536];
        const int64_t side = rows[i].side;
        tgl_problem p = weights_problem(TGL_BF16, rows[i].type, rows[i].m, side, side, 128);
        p.trans_b = TGL_TRANS;
        p.ldb = side;
        assert_status(tgl_chip_explain("h200", &p, NULL, text, sizeof text, NULL), TGL_OK);
        if (strstr(text, rows[i].line) == NULL) fail_msg("no %s in:\n%s", rows[i].line, text);
    }
}

/* Callers of older headers have structs that end before the members of weights. */
static void older_header(void **state)
{
    tgl_problem p = scaled_problem(TGL_F16, TGL_F16, TGL_F16, 2, 2, 2);
    p.size = offsetof(tgl_problem, scale_group);
    p.scale_group = 48; /* behind the struct */
    assert_status(tgl_problem_check(&p), TGL_OK);

    static uint16_t x[3][4];
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_OK);
    tgl_operands o = {.size = offsetof(tgl_operands, zero_b), .alpha = 1};
    o.A = x[0], o.B = x[1], o.C = x[2], o.zero_b = x;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    tgl_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products), cmocka_unit_test(every_integer),
        cmocka_unit_test(special_factors), cmocka_unit_test(types),
        cmocka_unit_test(layouts),         cmocka_unit_test(factors),
        cmocka_unit_test(without_weights), cmocka_unit_test(stride_without_factors),
        cmocka_unit_test(operands),        cmocka_unit_test(older_header),
        cmocka_unit_test(choices),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
