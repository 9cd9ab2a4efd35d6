/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of f16 and bf16 on the cpu device (src/cpu/run/cpu_blocks.c), and the conversions of
 * each tier (src/cpu/kernels/template_convert.h).
 */
#include "support.h"

#include "backend/backend.h"
#include "cpu/run/cpu_state.h"
#include "elements.h"

static const tgl_type types[] = {TGL_F16, TGL_BF16};

/* ---- Conversions ----------------------------------------------------------------------------- */

/* The tiers of this machine, one after the other; NULL after the last. */
static const cpu_conversions *conversions_of_tier(int i)
{
    cpu_facts facts;
    tgl_cpu_detect(&facts);
    const cpu_tier *tiers[CPU_MAX_TIERS];
    int count;
    assert_status(tgl_cpu_choose_tiers(facts.features, NULL, tiers, &count), TGL_OK);
    return i < count ? tiers[i]->conversions : NULL;
}

static void every_number_is_widened(void **state)
{
    (void)state;
    enum { COUNT = (1 << 16) + 45 }; /* no multiple of the length of a vector */
    static uint16_t halves[COUNT];
    static float floats[COUNT];
    for (int i = 0; i < COUNT; i++)
        halves[i] = (uint16_t)i;
    const cpu_conversions *half;
    for (int tier = 0; (half = conversions_of_tier(tier)) != NULL; tier++)
        for (int t = 0; t < 2; t++) {
            half->widen[t](floats, halves, COUNT);
            for (int i = 0; i < COUNT; i++) {
                const double expected = element_get(types[t], halves, i);
                if (isnan(expected)
                        ? !isnan(floats[i])
                        : floats[i] != expected || !signbit(floats[i]) != !signbit(expected))
                    fail_msg("type %d: 0x%04x is %g, not %g", types[t], i, floats[i], expected);
            }
        }
}

/* Fills `floats` with numbers around the middle between a number of 16 bits and the next one, where
 * rounding decides. */
static int floats_around(const cpu_conversions *half, int t, uint16_t number, float floats[8])
{
    const uint16_t pair[2] = {number, (uint16_t)(number + 1)};
    float ends[2];
    half->widen[t](ends, pair, 2);
    if (!isfinite(ends[0]) || isnan(ends[1])) return 0;
    const float next = isinf(ends[1]) ? ldexpf(copysignf(1, ends[1]), t == 0 ? 16 : 127) : ends[1];
    const float middle = ends[0] / 2 + next / 2;
    const float around[] = {ends[0], nextafterf(middle, -INFINITY), middle,
                            nextafterf(middle, INFINITY), ends[1]};
    memcpy(floats, around, sizeof around);
    return COUNT_OF(around);
}

/* Checks how `count` numbers are rounded, as elements of whole vectors and as the rest of an array.
 */
static void check_rounding(const cpu_conversions *half, int t, const float floats[8], int count)
{
    enum { MANY = 45 }; /* vectors of 16, 8 and 4, and a rest */
    float from[MANY];
    uint16_t found[MANY];
    for (int j = 0; j < MANY && count > 0; j++)
        from[j] = floats[j % count];
    if (count > 0) half->narrow[t](found, from, MANY);
    for (int j = 0; j < MANY && count > 0; j++) {
        uint16_t expected;
        element_set(types[t], &expected, 0, from[j]);
        if (isnan(from[j]) ? !isnan(element_get(types[t], found, j)) : found[j] != expected)
            fail_msg("type %d: %a becomes 0x%04x, not 0x%04x", types[t], from[j], found[j],
                     expected);
    }
}

static void numbers_are_rounded_to_nearest_even(void **state)
{
    (void)state;
    static const float special[8] = {NAN,    -NAN,    INFINITY, -INFINITY,
                                     1e-45F, -1e-45F, 3.4e38F,  -3.4e38F};
    const cpu_conversions *half;
    for (int tier = 0; (half = conversions_of_tier(tier)) != NULL; tier++)
        for (int t = 0; t < 2; t++) {
            check_rounding(half, t, special, 8);
            for (int i = 0; i < 0xffff; i++) {
                float floats[8];
                check_rounding(half, t, floats, floats_around(half, t, (uint16_t)i, floats));
            }
        }
}

/* ---- Products -------------------------------------------------------------------------------- */

static tgl_type one_of(uint64_t *seed, tgl_type x, tgl_type y, tgl_type z)
{
    const tgl_type choice[] = {x, y, z};
    return choice[random_int(seed, 0, 2)];
}

/* Draws a case of the type: types of C and D, an epilogue, and types of its operands. */
static gemm_case draw_case(uint64_t *seed, tgl_type type, int64_t largest)
{
    static const double alphas[] = {0, 1, -0.7};
    gemm_case c = {
        .problem = random_problem(seed, type, largest),
        .alpha = alphas[random_int(seed, 0, 2)],
        .beta = random_int(seed, 0, 2) * 0.6,
        .pointers = random_int(seed, 0, 3) == 0,
        .fill = (inputs)random_int(seed, 0, INPUTS_END - 1),
        .at_end = random_int(seed, 0, 1) == 1,
        .seed = random_bits(seed),
    };
    c.problem.type_c = one_of(seed, type, type, TGL_F32);
    vary_case(seed, &c);
    if (c.problem.type_d != 0) c.problem.type_d = one_of(seed, type, type, TGL_F32);
    if (random_int(seed, 0, 1) == 0) return c;
    const int64_t row = c.problem.order == TGL_COL_MAJOR ? c.problem.m : c.problem.n;
    c.epilogue = (tgl_epilogue){
        .size = sizeof c.epilogue,
        .bias = (tgl_bias)random_int(seed, TGL_BIAS_NONE, TGL_BIAS_COLUMN),
        .activation = (tgl_activation)random_int(seed, TGL_ACTIVATION_NONE, TGL_ACTIVATION_SILU),
        .residual = (int)random_int(seed, 0, 1),
        .type_bias = one_of(seed, TGL_F16, TGL_BF16, TGL_F32),
        .type_residual = one_of(seed, TGL_F16, TGL_BF16, TGL_F32),
    };
    if (c.epilogue.residual) c.epilogue.ld_residual = (row > 0 ? row : 1) + random_int(seed, 0, 3);
    return c;
}

static void random_problems_are_right(void **state)
{
    uint64_t seed = 15;
    for (int i = 0; i < 600; i++) {
        const gemm_case c = draw_case(&seed, types[i % 2], i % 40 == 0 ? 150 : 30);
        assert_true(check_case(*state, &c));
    }
}

/* Products of several blocks along m, n and k, and with one row or one column. */
static void large_problems_are_right(void **state)
{
    static const int64_t sizes[][3] = {{300, 270, 600}, {1, 700, 1100}, {530, 1, 90},
                                       {257, 3, 1025},  {2, 2, 5000},   {64, 512, 40}};
    uint64_t seed = 16;
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (int i = 0; i < 4; i++) {
            gemm_case c = {.problem =
                               problem_of(types[i % 2], sizes[s][0], sizes[s][1], sizes[s][2]),
                           .alpha = 1.1,
                           .beta = i < 2 ? 0 : -0.5,
                           .fill = UNIFORM_11,
                           .seed = random_bits(&seed)};
            c.problem.trans_a = i % 2 ? TGL_TRANS : TGL_NO_TRANS;
            c.problem.trans_b = i / 2 ? TGL_TRANS : TGL_NO_TRANS;
            assert_true(check_case(*state, &c));
        }
}

/* A matrix times a vector: contiguous and strided vectors, results with and without padding, more
 * lines and steps than one block has. */
static void vectors_are_right(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 70},  {1, 300, 1030}, {1, 4200, 17}, {1, 7, 4100},
                                       {17, 1, 33}, {300, 1, 4100}, {4200, 1, 18}, {2, 1, 1}};
    uint64_t seed = 17;
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (int i = 0; i < 16; i++) {
            tgl_problem problem = padded_problem(types[i / 8], sizes[s], (unsigned)i);
            if (i % 3 == 0) problem.type_c = TGL_F32;
            const gemm_case c = {.problem = problem,
                                 .alpha = i % 3 == 0 ? 1 : -0.7,
                                 .beta = i % 3 == 0 ? 0 : 0.6,
                                 .fill = i % 5 == 0 ? NON_FINITE : NORMAL,
                                 .at_end = i % 2 == 0,
                                 .seed = random_bits(&seed)};
            assert_true(check_case(*state, &c));
        }
}

/* A batch of two products with a long k, each of one block. */
static gemm_case batch_of_deep(tgl_type type)
{
    enum { M = 30, N = 60, K = 5000 };
    gemm_case c = {.problem = problem_of(type, M, N, K),
                   .alpha = -0.7,
                   .beta = 0.6,
                   .fill = UNIFORM_11,
                   .seed = 27};
    c.problem.batch = 2;
    c.problem.stride_a = M * K;
    c.problem.stride_b = K * N;
    c.problem.stride_c = M * N;
    return c;
}

/* A team that is smaller than the plan's number of threads computes the same bits. */
static void a_smaller_team_adds_the_same_parts(void **state)
{
    (void)state;
    enum { M = 60, N = 50, K = 9000 };
    static uint16_t A[M * K], B[K * N];
    static float first[M * N], again[M * N];
    tgl_device *dev = open_cpu(5);
    uint64_t seed = 28;
    for (int i = 0; i < M * K; i++)
        element_set(TGL_BF16, A, i, random_unit(&seed));
    for (int i = 0; i < K * N; i++)
        element_set(TGL_BF16, B, i, random_unit(&seed));
    tgl_problem problem = problem_of(TGL_BF16, M, N, K);
    problem.type_c = TGL_F32;
    assert_true(plan_explains(dev, &problem, "one of 5 parts of k"));
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 1, A, B, 0, first, NULL), TGL_OK);
    for (int team = 1; team < 5; team++) {
        ((cpu_device *)dev->state)->threads.threads = team;
        memset(again, 0xff, sizeof again);
        assert_status(tgl_plan_run(plan, 1, A, B, 0, again, NULL), TGL_OK);
        assert_memory_equal(first, again, sizeof first);
    }
    ((cpu_device *)dev->state)->threads.threads = 5;
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* If there are more threads than blocks of D, each sums a part of k, and the sums are added. */
static void parts_of_k_are_added(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{16, 24, 20001}, {33, 40, 9000}, {20, 100, 7000}};
    tgl_device *dev = open_cpu(5);
    uint64_t seed = 21;
    const gemm_case batch = batch_of_deep(TGL_BF16);
    assert_true(plan_explains(dev, &batch.problem, "one of 2 parts of k"));
    assert_true(check_case(dev, &batch));
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (int i = 0; i < 8; i++) {
            gemm_case c = draw_case(&seed, types[i % 2], 1);
            c.problem = padded_problem(types[i % 2], sizes[s], (unsigned)i);
            c.alpha = i < 2 ? 1 : c.alpha;
            c.beta = i < 2 ? 0 : c.beta;
            c.problem.type_c = i % 4 < 2 ? TGL_F32 : c.problem.type_c;
            c.epilogue = (tgl_epilogue){.size = 0};
            if (i >= 4)
                c.epilogue = (tgl_epilogue){.size = sizeof c.epilogue,
                                            .bias = TGL_BIAS_COLUMN,
                                            .activation = TGL_ACTIVATION_RELU,
                                            .type_bias = TGL_F32};
            assert_true(plan_explains(dev, &c.problem, "parts of k"));
            assert_true(check_case(dev, &c));
        }
    tgl_device_close(dev);
}

static void results_do_not_depend_on_the_run(void **state)
{
    enum { M = 200, N = 150, K = 700 };
    static uint16_t A[M * K], B[K * N], first[M * N], again[M * N];
    uint64_t seed = 3;
    for (int i = 0; i < M * K; i++)
        element_set(TGL_BF16, A, i, random_unit(&seed));
    for (int i = 0; i < K * N; i++)
        element_set(TGL_BF16, B, i, random_unit(&seed));
    const tgl_problem problem = problem_of(TGL_BF16, M, N, K);
    assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, first, NULL), TGL_OK);
    for (int i = 0; i < 5; i++) {
        memset(again, 0xff, sizeof again);
        assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, again, NULL), TGL_OK);
        assert_memory_equal(first, again, sizeof first);
    }
}

/* The sum is rounded to f16 once: 1 + 2^-11 + 2^-11 would be 1 if each step were rounded. */
static void sums_are_rounded_once(void **state)
{
    enum { K = 3 };
    static const double terms[K] = {1, 0x1p-11, 0x1p-11};
    uint16_t A[K], B[K], C[1];
    for (int i = 0; i < K; i++) {
        element_set(TGL_F16, A, i, terms[i]);
        element_set(TGL_F16, B, i, 1);
    }
    const tgl_problem problem = problem_of(TGL_F16, 1, 1, K);
    assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
    assert_true(element_get(TGL_F16, C, 0) == 1 + 0x1p-10);
    element_set(TGL_F16, A, 0, 65504); /* the greatest f16 */
    element_set(TGL_F16, A, 1, 65504);
    assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
    assert_true(element_get(TGL_F16, C, 0) == INFINITY);
    assert_status(tgl_gemm(*state, &problem, 0.25, A, B, 0, C, NULL), TGL_OK);
    assert_true(element_get(TGL_F16, C, 0) == 32752);
}

/* beta = 0 does not read C, alpha = 0 reads neither A nor B. */
static void what_is_not_needed_is_not_read(void **state)
{
    enum { M = 3, N = 5, K = 4 };
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        uint16_t A[M * K], B[K * N], C[M * N];
        for (int i = 0; i < K * N; i++) {
            if (i < M * K) element_set(types[t], A, i, 1);
            if (i < M * N) element_set(types[t], C, i, NAN);
            element_set(types[t], B, i, 2);
        }
        const tgl_problem problem = problem_of(types[t], M, N, K);
        assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
        for (int i = 0; i < M * N; i++)
            assert_true(element_get(types[t], C, i) == 2 * K);
        assert_status(tgl_gemm(*state, &problem, 0, NULL, NULL, 0.5, C, NULL), TGL_OK);
        for (int i = 0; i < M * N; i++)
            assert_true(element_get(types[t], C, i) == K);
        assert_status(tgl_gemm(*state, &problem, 0, NULL, NULL, 0, C, NULL), TGL_OK);
        for (int i = 0; i < M * N; i++)
            assert_true(element_get(types[t], C, i) == 0);
    }
}

static void unsupported_types_are_named(void **state)
{
    tgl_problem problem = problem_of(TGL_F32, 4, 4, 4);
    tgl_epilogue epilogue = {.size = sizeof epilogue, .bias = TGL_BIAS_ROW, .type_bias = TGL_F16};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
    problem = problem_of(TGL_BF16, 4, 4, 4);
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    char text[2000];
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "converted to f32"));
    tgl_plan_destroy(plan);
    epilogue.type_bias = TGL_F64;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
    problem = problem_of(TGL_F8_E4M3, 4, 4, 4);
    problem.type_d = TGL_F16;
    problem.scaling_d = TGL_SCALING_TENSOR;
    problem.type_a = problem.type_b = TGL_BF16;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_BAD_TYPE);
    problem.type_d = TGL_F32;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_UNSUPPORTED);
    assert_sentence(
        "the cpu device has kernels for f32, f64, c64, c128, f16, bf16, e4m3, e5m2, and "
        "i8 with results of i32 or scales");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_widened),
        cmocka_unit_test(numbers_are_rounded_to_nearest_even),
        cmocka_unit_test(random_problems_are_right),
        cmocka_unit_test(large_problems_are_right),
        cmocka_unit_test(vectors_are_right),
        cmocka_unit_test(parts_of_k_are_added),
        cmocka_unit_test(a_smaller_team_adds_the_same_parts),
        cmocka_unit_test(results_do_not_depend_on_the_run),
        cmocka_unit_test(sums_are_rounded_once),
        cmocka_unit_test(what_is_not_needed_is_not_read),
        cmocka_unit_test(unsupported_types_are_named),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
