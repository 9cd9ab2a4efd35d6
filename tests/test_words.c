/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by words of the cpu device (src/cpu/plan/word_plan.c, src/cpu/run/multiply_words.c):
 * when they are chosen, results, and blocks that words must not multiply.
 */
#include "words_case.h"

#include "elements.h"

#include <float.h>

static void the_planner_chooses(void **state)
{
    static const struct {
        tgl_type type;
        tgl_compute compute;
        int64_t m, n, k;
        bool words;
    } table[] = {{TGL_BF16, TGL_COMPUTE_DEFAULT, 1000, 1000, 1000, true},
                 {TGL_BF16, TGL_COMPUTE_ACCURATE, 64, 64, 64, true},
                 {TGL_BF16, TGL_COMPUTE_IEEE, 64, 64, 64, true}, /* if it rounds to nearest */
                 {TGL_BF16, TGL_COMPUTE_DEFAULT, 8, 8, 8, false},
                 {TGL_BF16, TGL_COMPUTE_DEFAULT, 1, 4096, 4096, false},
                 {TGL_BF16, TGL_COMPUTE_DEFAULT, 100, 100, 0, false},
                 {TGL_F16, TGL_COMPUTE_DEFAULT, 1000, 1000, 1000, true},
                 {TGL_F16, TGL_COMPUTE_IEEE, 1000, 1000, 1000, false},
                 {TGL_F32, TGL_COMPUTE_ACCURATE, 1000, 1000, 1000, true},
                 {TGL_F32, TGL_COMPUTE_ACCURATE, 64, 64, 64, false},
                 {TGL_F32, TGL_COMPUTE_DEFAULT, 1000, 1000, 1000, false},
                 {TGL_F32, TGL_COMPUTE_IEEE, 1000, 1000, 1000, false},
                 {TGL_F64, TGL_COMPUTE_ACCURATE, 1000, 1000, 1000, false},
                 {TGL_I8, TGL_COMPUTE_DEFAULT, 1000, 1000, 1000, true},
                 {TGL_I8, TGL_COMPUTE_IEEE, 1000, 1000, 1000, true},
                 {TGL_I8, TGL_COMPUTE_DEFAULT, 8, 8, 8, true},
                 {TGL_I8, TGL_COMPUTE_DEFAULT, 100, 100, 0, false}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        tgl_problem problem = problem_of(table[i].type, table[i].m, table[i].n, table[i].k);
        problem.compute = table[i].compute;
        if (table[i].type == TGL_I8) problem.type_c = TGL_I32;
        const bool rounds = table[i].type == TGL_BF16 && words->rounds_to_odd;
        const bool expected = table[i].words && has_type(table[i].type) &&
                              !(rounds && table[i].compute == TGL_COMPUTE_IEEE);
        if (takes_words(*state, &problem) != expected) fail_msg("row %d", (int)i);
    }
}

/* Tests all kinds of inputs, Inf, NaN and denormal numbers among them, with several blocks along k
 * and with different types of C and D. */
static void products_are_right(void **state)
{
    static const int64_t sizes[][3] = {
        {290, 320, 300}, {300, 289, 260}, {320, 290, 530}, {320, 290, 512}};
    uint64_t seed = 4;
    for (int fill = 0; fill < INPUTS_END; fill++)
        for (int i = 0; i < CPU_WORDS_I8; i++) { /* of f32 also by digits */
            const int64_t *size = sizes[(fill + i) % 4];
            if (!has_kind((cpu_word_kind)i)) continue;
            gemm_case c = {.problem =
                               accurate(problem_of(types_of_words[i], size[0], size[1], size[2])),
                           .alpha = fill % 2 ? 1 : -0.7,
                           .beta = fill % 2 ? 0 : 1.2,
                           .fill = (inputs)fill,
                           .at_end = true,
                           .seed = random_bits(&seed)};
            c.problem.trans_a = random_int(&seed, 0, 1) ? TGL_TRANS : TGL_NO_TRANS;
            c.problem.trans_b = random_int(&seed, 0, 1) ? TGL_TRANS : TGL_NO_TRANS;
            if (fill % 3 == 0) c.problem.type_c = TGL_F32;
            vary_case(&seed, &c);
            assert_true(takes_words(*state, &c.problem));
            assert_true(check_case(*state, &c));
        }
}

/* Threads sum parts of k of f32 products, by digits, words or FMAs. The parts are then added. */
static void parts_of_accurate_products_are_added(void **state)
{
    (void)state;
    if (!has_kind(CPU_WORDS_F32)) skip();
    tgl_device *dev = open_cpu(5);
    uint64_t seed = 26;
    for (int fill = 0; fill < INPUTS_END; fill++) {
        gemm_case c = {.problem = accurate(problem_of(TGL_F32, 120, 100, 9000)),
                       .alpha = fill % 2 ? 1 : -0.7,
                       .beta = fill % 3 ? 0 : 1.2,
                       .fill = (inputs)fill,
                       .at_end = true,
                       .seed = random_bits(&seed)};
        assert_true(plan_explains(dev, &c.problem, "parts of k"));
        assert_true(check_case(dev, &c));
    }
    tgl_device_close(dev);
}

/* Products of int8 are exact modulo 2^32. */
static void integer_products_are_exact(void **state)
{
    enum { M = 70, N = 90, K = 2100, ALPHA = -3, BETA = 5 };
    static int8_t A[M * K], B[K * N];
    static int32_t C[M * N], before[M * N];
    uint64_t seed = 7;
    if (!has_kind(CPU_WORDS_I8)) skip();
    for (int i = 0; i < M * K; i++)
        A[i] = (int8_t)random_int(&seed, -128, 127);
    for (int i = 0; i < K * N; i++)
        B[i] = (int8_t)random_int(&seed, -128, 127);
    for (int trans = 0; trans < 4; trans++) {
        tgl_problem problem = problem_of(TGL_I8, M, N, K);
        problem.type_c = TGL_I32;
        problem.trans_a = trans & 1 ? TGL_TRANS : TGL_NO_TRANS;
        problem.trans_b = trans & 2 ? TGL_TRANS : TGL_NO_TRANS;
        problem.lda = trans & 1 ? M : K;
        problem.ldb = trans & 2 ? K : N;
        assert_true(takes_words(*state, &problem));
        for (int i = 0; i < M * N; i++)
            C[i] = before[i] = (int32_t)random_bits(&seed);
        assert_status(tgl_gemm(*state, &problem, ALPHA, A, B, BETA, C, NULL), TGL_OK);
        for (int i = 0; i < M * N; i++) {
            const int row = i / N, column = i % N;
            int32_t sum = 0;
            for (int p = 0; p < K; p++)
                sum += A[trans & 1 ? p * M + row : row * K + p] *
                       B[trans & 2 ? column * K + p : p * N + column];
            const uint32_t expected = (uint32_t)ALPHA * (uint32_t)sum + BETA * (uint32_t)before[i];
            assert_int_equal((uint32_t)C[i], expected);
        }
    }
}

/* Blocks with numbers that AMX would treat as zero, or whose sums would overflow in some order, are
 * computed by FMAs, also after blocks that were computed by words. */
static void extremes_take_fma(void **state)
{
    enum { M = 70, N = 90, K = 2300, AT = K - 5 }; /* more than one block for each thread */
    static const double pairs[][2] = {
        {0x1p-70, 0x1p-70}, /* a denormal product */
        {0x1p-130, 0x1p20}, /* a denormal element */
        {0x1p-63, 0x1p-63}, /* the least normal product */
        {0x1p-100, 0x1p127},
        {0x1p127, 0x1p-126},
        {0x1p127, 2}, /* the sum overflows */
        {0x1.fep127, 0x1.fep-8},
        {INFINITY, 1},
        {INFINITY, 0},
        {-INFINITY, 0x1p-130},
        {NAN, 0},
    };
    tgl_problem problem = problem_of(TGL_BF16, M, N, K);
    problem.type_c = TGL_F32;
    if (!has_kind(CPU_WORDS_BF16)) skip();
    assert_true(takes_words(*state, &problem));
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        static uint16_t A[M * K], B[K * N];
        static float C[M * N];
        memset(A, 0, sizeof A);
        memset(B, 0, sizeof B);
        for (int row = 0; row < M; row++)
            element_set(TGL_BF16, A, (int64_t)row * K + AT, pairs[i][0]);
        for (int column = 0; column < N; column++)
            element_set(TGL_BF16, B, (int64_t)AT * N + column, pairs[i][1]);
        /* Normal numbers in the first block of k, where row and column are even. */
        for (int row = 0; row < M; row += 2)
            element_set(TGL_BF16, A, (int64_t)row * K, 1);
        for (int column = 0; column < N; column += 2)
            element_set(TGL_BF16, B, column, 3);
        assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
        for (int q = 0; q < M * N; q++) {
            const bool has_first = q / N % 2 == 0 && q % N % 2 == 0;
            const float expected =
                fmaf((float)pairs[i][0], (float)pairs[i][1], has_first ? 3.0F : 0.0F);
            if (isnan(expected) ? !isnan(C[q]) : C[q] != expected)
                fail_msg("%a * %a + %d is %a, not %a", pairs[i][0], pairs[i][1], has_first ? 3 : 0,
                         (double)C[q], (double)expected);
        }
    }
}

/* One element of A is Inf, or becomes Inf when it is rounded to a word. The elements of B are
 * small, so that no sum is near the greatest number. */
static void infinite_words_take_fma(void **state)
{
    enum { N = 256 };
    static const struct {
        cpu_word_kind kind;
        double large, small;
    } table[] = {{CPU_WORDS_BF16, INFINITY, 0x1p-40}, {CPU_WORDS_F16, INFINITY, 0x1p-12},
                 {CPU_WORDS_F32, INFINITY, 0x1p-40},  {CPU_WORDS_F32, FLT_MAX, 0x1p-40},
                 {CPU_WORDS_F32, -FLT_MAX, 0x1p-20},  {CPU_WORDS_BF16, 0x1.fep127, 0x1p-40}};
    static float A[N * N], B[N * N], C[N * N]; /* of any type */
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_type type = types_of_words[table[i].kind];
        tgl_problem problem = accurate(problem_of(type, N, N, N));
        problem.type_c = TGL_F32;
        if (!has_kind(table[i].kind)) continue;
        assert_true(takes_words(*state, &problem));
        for (int q = 0; q < N * N; q++) {
            element_set(type, A, q, q == 0 ? table[i].large : 1);
            element_set(type, B, q, table[i].small);
        }
        assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
        for (int q = 0; q < N * N; q++) {
            const double expected = q < N ? table[i].large * table[i].small : N * table[i].small;
            if (C[q] != (float)expected)
                fail_msg("row %d: %a, not %a", (int)i, (double)C[q], expected);
        }
    }
}

/* The greatest error is within the bound that docs/accuracy.md derives from FMA's. The RMS is at
 * most that of FMAs, and half of it for the larger k. */
static void accurate_errs_less_than_fma(void **state)
{
    static const struct {
        int64_t k;
        double share; /* of the RMS of FMAs, at most */
    } depths[] = {{256, 1}, {1024, 0.5}};
    if (!has_kind(CPU_WORDS_F32)) skip();
    for (int fill = UNIFORM_01; fill <= NORMAL; fill++)
        for (size_t i = 0; i < COUNT_OF(depths); i++) {
            const gemm_case c = {.problem = accurate(problem_of(TGL_F32, 224, 224, depths[i].k)),
                                 .alpha = 1,
                                 .fill = (inputs)fill,
                                 .seed = 6};
            gemm_outcome outcome;
            assert_true(takes_words(*state, &c.problem));
            gemm_case_run(*state, &c, true, &outcome);
            assert_string_equal(outcome.fault, "");
            const gemm_errors *ours = &outcome.ours, *fma = &outcome.sequential;
            printf("%-12s k %4d: max %.2f, RMS %.3f; FMA %.2f, %.3f\n", inputs_name((inputs)fill),
                   (int)depths[i].k, ours->max, ours->rms, fma->max, fma->rms);
            assert_true(ours->max <= fmax(1.1 * fma->max, 10));
            assert_true(ours->rms <= depths[i].share * fma->rms);
        }
}

static int test_tier(const char *tier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_planner_chooses),
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(parts_of_accurate_products_are_added),
        cmocka_unit_test(integer_products_are_exact),
        cmocka_unit_test(extremes_take_fma),
        cmocka_unit_test(infinite_words_take_fma),
        cmocka_unit_test(accurate_errs_less_than_fma),
    };
    return cmocka_run_group_tests_name(tier, tests, setup_cpu, teardown_device);
}

int main(void)
{
    return run_tiers_with_words(test_tier, NULL);
}
