/* SPDX-License-Identifier: Apache-2.0
 *
 * BLAS semantics: alpha, beta and sizes of zero, and the propagation of NaN and infinities. For
 * every kernel and type.
 */
#include "support.h"

enum { LARGEST = 40, ROOM = LARGEST * LARGEST };
static const tgl_type types[] = {TGL_F32, TGL_F64};
static const int64_t sizes[][3] = {{1, 1, 1}, {1, 17, 5}, {17, 1, 5}, {5, 6, 7}, {33, 40, 19}};

/* Calls the function for every kernel, type and size. */
static void for_each_problem(tgl_device *dev,
                             void (*check)(tgl_device *, const char *kernel, const tgl_problem *))
{
    const char *kernel;
    for (int choice = 0; kernel_choice(dev, choice, &kernel); choice++)
        for (size_t t = 0; t < COUNT_OF(types); t++)
            for (size_t s = 0; s < COUNT_OF(sizes); s++) {
                const tgl_problem problem =
                    problem_of(types[t], sizes[s][0], sizes[s][1], sizes[s][2]);
                check(dev, kernel, &problem);
            }
}

/* The variants of a run: in place with host scalars, with a separate D, with device scalars, with
 * both. */
enum { SEPARATE_D = 1, DEVICE_SCALARS = 2, WAYS = 4 };

static double element(const void *matrix, tgl_type type, int64_t i)
{
    return type == TGL_F32 ? (double)((const float *)matrix)[i] : ((const double *)matrix)[i];
}

/* Fails unless the matrices are equal. All NaN are equal here. */
static void assert_same(const void *x, const void *y, const tgl_problem *problem)
{
    for (int64_t i = 0; i < problem->m * problem->n; i++) {
        const double a = element(x, problem->type_c, i), b = element(y, problem->type_c, i);
        if (isnan(a) ? !isnan(b) : a != b || signbit(a) != signbit(b))
            fail_msg("element %lld is %g and %g", (long long)i, a, b);
    }
}

/* Runs a plan with this kernel in each variant with the same C. The results must be equal. */
static void run(tgl_device *dev, const char *kernel, const tgl_problem *problem, double alpha,
                const void *A, const void *B, double beta, void *C)
{
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    const bool is_f32 = problem->type_c == TGL_F32;
    const float narrow[] = {(float)alpha, (float)beta};
    const double wide[] = {alpha, beta};
    const bool has_memory = C != NULL && C != (void *)1;
    double before[ROOM], first[ROOM];
    if (has_memory) memcpy(before, C, sizeof before);
    for (int way = 0; way < WAYS; way++) {
        tgl_problem own = *problem;
        tgl_operands operands = {.size = sizeof operands, .A = A, .B = B, .C = C};
        double D[ROOM];
        tgl_plan *plan;
        if (has_memory) memcpy(C, before, sizeof before);
        if (way & SEPARATE_D) {
            memset(D, 0x5a, sizeof D);
            own.type_d = problem->type_c;
            own.stride_d = problem->stride_c;
            operands.D = has_memory ? D : C;
            if (beta == 0) operands.C = NULL;
        }
        if (way & DEVICE_SCALARS) {
            own.scalars = TGL_SCALARS_DEVICE;
            operands.alpha_at = is_f32 ? (const void *)&narrow[0] : (const void *)&wide[0];
            operands.beta_at = is_f32 ? (const void *)&narrow[1] : (const void *)&wide[1];
            if (A == NULL && problem->k > 0)
                operands.A = operands.B = before; /* must not be read */
            if (operands.C == NULL) operands.C = C;
        } else {
            operands.alpha = alpha;
            operands.beta = beta;
        }
        assert_status(tgl_plan_create(dev, &own, &options, &plan), TGL_OK);
        assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
        tgl_plan_destroy(plan);
        if (!has_memory) continue;
        const void *result = way & SEPARATE_D ? D : C;
        if (way & SEPARATE_D) assert_memory_equal(C, before, sizeof before);
        if (way == 0) memcpy(first, C, sizeof first);
        assert_same(result, first, problem);
    }
    if (has_memory) memcpy(C, first, sizeof first);
}

static void fill(void *matrix, tgl_type type, double value)
{
    for (int i = 0; i < ROOM; i++)
        if (type == TGL_F32)
            ((float *)matrix)[i] = (float)value;
        else
            ((double *)matrix)[i] = value;
}

/* Fails unless all m x n elements are `value` (NaN is equal to NaN here), and no zero is -0. */
static void assert_all(const void *matrix, const tgl_problem *problem, double value)
{
    for (int64_t i = 0; i < problem->m * problem->n; i++) {
        const double x = element(matrix, problem->type_c, i);
        if (isnan(value) ? !isnan(x) : x != value || signbit(x) != signbit(value))
            fail_msg("element %lld is %g, not %g", (long long)i, x, value);
    }
}

/* ---- alpha ----------------------------------------------------------------------------------- */

static void check_alpha_0(tgl_device *dev, const char *kernel, const tgl_problem *problem)
{
    double nan_matrix[ROOM], C[ROOM];
    fill(nan_matrix, problem->type_a, (double)NAN);
    static const double betas[] = {0, 1, -2};
    for (size_t i = 0; i < COUNT_OF(betas); i++)
        for (int null = 0; null <= 1; null++) {
            fill(C, problem->type_c, 3);
            const void *x = null ? NULL : nan_matrix;
            run(dev, kernel, problem, i == 1 ? -0.0 : 0, x, x, betas[i], C);
            assert_all(C, problem, betas[i] * 3);
        }
}

static void alpha_0_reads_neither_a_nor_b(void **state)
{
    for_each_problem(*state, check_alpha_0);
}

static void check_nan_alpha(tgl_device *dev, const char *kernel, const tgl_problem *problem)
{
    double ones[ROOM], C[ROOM];
    fill(ones, problem->type_a, 1);
    fill(C, problem->type_c, 3);
    run(dev, kernel, problem, (double)NAN, ones, ones, 0, C);
    assert_all(C, problem, (double)NAN);
}

static void a_nan_alpha_makes_all_nan(void **state)
{
    for_each_problem(*state, check_nan_alpha);
}

static void check_zero_times_alpha(tgl_device *dev, const char *kernel, const tgl_problem *problem)
{
    double zeros[ROOM], ones[ROOM], C[ROOM];
    fill(zeros, problem->type_a, 0);
    fill(ones, problem->type_a, 1);
    fill(C, problem->type_c, 3);
    run(dev, kernel, problem, (double)INFINITY, zeros, ones, 1, C);
    assert_all(C, problem, (double)NAN); /* Inf * (0 * 1) */
    run(dev, kernel, problem, -(double)INFINITY, ones, ones, 0, C);
    assert_all(C, problem, -(double)INFINITY);
}

static void an_infinite_alpha_follows_the_formula(void **state)
{
    for_each_problem(*state, check_zero_times_alpha);
}

/* ---- beta ------------------------------------------------------------------------------------ */

static void check_beta_0(tgl_device *dev, const char *kernel, const tgl_problem *problem)
{
    static const double poison[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    double ones[ROOM], C[ROOM];
    fill(ones, problem->type_a, 1);
    for (size_t i = 0; i < COUNT_OF(poison); i++) {
        fill(C, problem->type_c, poison[i]);
        run(dev, kernel, problem, 0.5, ones, ones, i == 1 ? -0.0 : 0, C);
        assert_all(C, problem, 0.5 * (double)problem->k);
        fill(C, problem->type_c, poison[i]);
        run(dev, kernel, problem, 0, ones, ones, 0, C);
        assert_all(C, problem, 0);
    }
}

static void beta_0_does_not_read_c(void **state)
{
    for_each_problem(*state, check_beta_0);
}

static void check_nan_beta(tgl_device *dev, const char *kernel, const tgl_problem *problem)
{
    double ones[ROOM], C[ROOM];
    fill(ones, problem->type_a, 1);
    for (int alpha = 0; alpha <= 1; alpha++) {
        fill(C, problem->type_c, 0);
        run(dev, kernel, problem, alpha, ones, ones, (double)NAN, C);
        assert_all(C, problem, (double)NAN);
        fill(C, problem->type_c, 0);
        run(dev, kernel, problem, alpha, ones, ones, (double)INFINITY, C);
        assert_all(C, problem, (double)NAN); /* Inf * 0 */
    }
}

static void a_nan_beta_is_not_lost(void **state)
{
    for_each_problem(*state, check_nan_beta);
}

/* ---- Sizes of zero --------------------------------------------------------------------------- */

static void check_k_0(tgl_device *dev, const char *kernel, const tgl_problem *problem)
{
    static const double betas[] = {0, 1, 0.5, -3, (double)NAN};
    tgl_problem empty_sum = *problem;
    empty_sum.k = 0;
    double C[ROOM];
    for (size_t i = 0; i < COUNT_OF(betas); i++)
        for (int alpha = 0; alpha <= 2; alpha++) {
            fill(C, problem->type_c, betas[i] == 0 ? (double)NAN : 4);
            const double alphas[] = {1, 0, (double)NAN};
            run(dev, kernel, &empty_sum, alphas[alpha], NULL, NULL, betas[i], C);
            assert_all(C, problem, betas[i] * 4);
        }
}

static void k_0_scales_c(void **state)
{
    for_each_problem(*state, check_k_0);
}

static void check_empty(tgl_device *dev, const char *kernel, const tgl_problem *problem)
{
    for (int member = 0; member < 3; member++) {
        tgl_problem empty = *problem;
        *(member == 0 ? &empty.m : member == 1 ? &empty.n : &empty.batch) = 0;
        run(dev, kernel, &empty, 1, NULL, NULL, 2, NULL);
        run(dev, kernel, &empty, (double)NAN, NULL, NULL, (double)NAN, NULL);
        run(dev, kernel, &empty, 1, (void *)1, (void *)1, 0, (void *)1);
    }
}

static void empty_products_touch_nothing(void **state)
{
    for_each_problem(*state, check_empty);
}

/* A product with alpha 0 is planned with k = 0, so any k is accepted (test_sim_operands.c tests
 * this on a device whose kernels use int). */
static void alpha_0_takes_any_k(void **state)
{
    static const int64_t huge[] = {(int64_t)1 << 31, (int64_t)1 << 40, INT64_MAX / 8};
    for (size_t i = 0; i < COUNT_OF(huge); i++) {
        const tgl_problem problem = problem_of(TGL_F32, 1, 1, huge[i]);
        float c = 3;
        assert_status(tgl_gemm(*state, &problem, 0, NULL, NULL, -2, &c, NULL), TGL_OK);
        assert_true(c == -6);
        assert_status(tgl_gemm(*state, &problem, 1e-60, NULL, NULL, 0, &c, NULL), TGL_OK);
        assert_true(c == 0);
    }
}

/* ---- NaN and infinities inside the matrices -------------------------------------------------- */

static void non_finite_elements_follow_the_formula(void **state)
{
    static const double scalars[] = {1, 0, -0.5, (double)NAN, (double)INFINITY, -(double)INFINITY};
    tgl_device *dev = *state;
    const char *kernel;
    for (int choice = 0; kernel_choice(dev, choice, &kernel); choice++) {
        uint64_t seed = 4;
        for (int i = 0; i < 300; i++) {
            const gemm_case c = {.problem = random_problem(&seed, types[i % 2], 30),
                                 .alpha = scalars[random_int(&seed, 0, 5)],
                                 .beta = scalars[random_int(&seed, 0, 5)],
                                 .kernel = kernel,
                                 .fill = NON_FINITE,
                                 .at_end = true,
                                 .seed = random_bits(&seed)};
            assert_true(check_case(dev, &c));
            gemm_case varied = c;
            vary_case(&seed, &varied);
            assert_true(check_case(dev, &varied));
        }
    }
}

/* ---- The argument list of BLAS --------------------------------------------------------------- */

static void blas_calls_multiply(void **state)
{
    tgl_device *dev = *state;
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 0, 1, 3}; /* 2 x 3, 3 x 2 */
    const double x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 0, 2, 0, 1, 3};
    const float expected[] = {8, 9, 20, 18}; /* row-major 2 x 2 */
    float c[] = {1, 1, 1, 1};
    double z[] = {1, 1, 1, 1};

    assert_status(tgl_sgemm(dev, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, 2, 2, 3, 1, a, 3, b, 2,
                            0, c, 2, NULL),
                  TGL_OK);
    assert_memory_equal(c, expected, sizeof c);
    assert_status(tgl_dgemm(dev, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, 2, 2, 3, 2, x, 3, y, 2,
                            -1, z, 2, NULL),
                  TGL_OK);
    for (int i = 0; i < 4; i++)
        assert_true(z[i] == 2 * (double)expected[i] - 1);

    /* The same memory in column-major order holds the transposes, and gives C transposed. */
    assert_status(tgl_sgemm(dev, TGL_COL_MAJOR, TGL_TRANS, TGL_CONJ_TRANS, 2, 2, 3, 1, a, 3, b, 2,
                            0, c, 2, NULL),
                  TGL_OK);
    for (int i = 0; i < 4; i++)
        assert_true(c[i] == expected[i % 2 * 2 + i / 2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alpha_0_reads_neither_a_nor_b),
        cmocka_unit_test(a_nan_alpha_makes_all_nan),
        cmocka_unit_test(an_infinite_alpha_follows_the_formula),
        cmocka_unit_test(beta_0_does_not_read_c),
        cmocka_unit_test(a_nan_beta_is_not_lost),
        cmocka_unit_test(k_0_scales_c),
        cmocka_unit_test(empty_products_touch_nothing),
        cmocka_unit_test(alpha_0_takes_any_k),
        cmocka_unit_test(non_finite_elements_follow_the_formula),
        cmocka_unit_test(blas_calls_multiply),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
