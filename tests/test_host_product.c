/* SPDX-License-Identifier: Apache-2.0
 *
 * tgl_gemm_host() on devices that work on host memory, and its arguments. test_cuda_host_product.c
 * tests the cuda device.
 */
#include "support.h"

static gemm_case random_case(uint64_t *seed, int64_t largest)
{
    static const tgl_type types[] = {TGL_F32, TGL_F64, TGL_F16, TGL_BF16};
    static const double alphas[] = {1, -0.75, 0}, betas[] = {0, 1, -0.5};
    const tgl_type type = types[random_int(seed, 0, 3)];
    gemm_case c = {.problem = random_problem(seed, type, largest),
                   .alpha = alphas[random_int(seed, 0, 2)],
                   .beta = betas[random_int(seed, 0, 2)],
                   .run = tgl_gemm_host,
                   .fill = random_once_in(seed, 4) ? NON_FINITE : UNIFORM_11,
                   .at_end = random_once_in(seed, 2)};
    if (random_once_in(seed, 2)) separate_d(seed, &c.problem);
    c.pointers = random_once_in(seed, 4);
    c.seed = random_bits(seed);
    return c;
}

static void check_random(tgl_device *dev, int cases, int64_t largest)
{
    uint64_t seed = 5;
    for (int i = 0; i < cases; i++) {
        const gemm_case c = random_case(&seed, largest);
        assert_true(check_case(dev, &c));
    }
}

static void random_products(void **state)
{
    check_random(*state, 300, 70);
}

static void random_products_on_the_simulator(void **state)
{
    tgl_device *dev;
    (void)state;
    if (tgl_device_open("sim", NULL, &dev) != TGL_OK) skip(); /* built without it */
    check_random(dev, 3, 9);
    tgl_device_close(dev);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static float A[6] = {1, 2, 3, 4, 5, 6}, B[6] = {1, 1, 1, 1, 1, 1}, C[4];

static tgl_operands valid_operands(void)
{
    return (tgl_operands){.size = sizeof(tgl_operands), .alpha = 1, .A = A, .B = B, .C = C};
}

/* Fails unless the call fails like this and leaves C alone. */
static void assert_refused(tgl_device *dev, const tgl_problem *problem,
                           const tgl_operands *operands, tgl_status expected, const char *sentence)
{
    C[0] = 7;
    forget_error();
    assert_status(tgl_gemm_host(dev, problem, operands), expected);
    assert_sentence(sentence);
    assert_true(C[0] == 7);
}

static void invalid_arguments(void **state)
{
    tgl_device *dev = *state;
    const tgl_problem good = problem_of(TGL_F32, 2, 2, 3);
    const tgl_operands given = valid_operands();
    assert_refused(NULL, &good, &given, TGL_BAD_ARGUMENT, "the device is NULL");
    assert_refused(dev, NULL, &given, TGL_BAD_ARGUMENT, "problem is NULL");
    assert_refused(dev, &good, NULL, TGL_BAD_ARGUMENT, "operands is NULL");

    tgl_problem problem = good;
    problem.lda = 2;
    assert_refused(dev, &problem, &given, TGL_BAD_LDA, "lda is 2; it must be at least 3");
    problem = good;
    problem.scalars = TGL_SCALARS_DEVICE;
    tgl_operands operands = given;
    operands.alpha_at = A;
    assert_refused(dev, &problem, &operands, TGL_UNSUPPORTED,
                   "alpha and beta are in device memory, and all operands of tgl_gemm_host() are "
                   "in host memory");
    operands = given;
    operands.A = NULL;
    assert_refused(dev, &good, &operands, TGL_BAD_A, "A is NULL");
    operands = given;
    operands.D = A;
    assert_refused(dev, &good, &operands, TGL_BAD_D, "D is given, and D is C (type_d is 0)");
    operands = given;
    operands.bias = A;
    assert_refused(dev, &good, &operands, TGL_BAD_BIAS,
                   "bias is given, and the plan's epilogue has none");
    operands = given;
    operands.residual = A;
    assert_refused(dev, &good, &operands, TGL_BAD_RESIDUAL,
                   "residual is given, and the plan's epilogue has none");
    operands = given;
    operands.workspace = A;
    operands.workspace_bytes = sizeof A;
    assert_refused(dev, &good, &operands, TGL_BAD_WORKSPACE,
                   "a workspace is given, and tgl_gemm_host() allocates its own");
    problem = good;
    problem.batching = TGL_POINTERS;
    problem.batch = 2;
    const void *a[] = {A, NULL}, *b[] = {B, B};
    void *c[] = {C, C};
    operands = (tgl_operands){
        .size = sizeof operands, .alpha = 1, .A_array = a, .B_array = b, .C_array = c};
    assert_refused(dev, &problem, &operands, TGL_BAD_A, "A[1] is NULL");
}

static void empty_products(void **state)
{
    const tgl_operands none = {.size = sizeof none, .alpha = 1};
    tgl_problem problem = problem_of(TGL_F32, 0, 2, 3);
    assert_status(tgl_gemm_host(*state, &problem, &none), TGL_OK);
    problem = problem_of(TGL_F32, 2, 2, 3);
    problem.batch = 0;
    assert_status(tgl_gemm_host(*state, &problem, &none), TGL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_products, setup_cpu, teardown_device),
        cmocka_unit_test(random_products_on_the_simulator),
        cmocka_unit_test_setup_teardown(invalid_arguments, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(empty_products, setup_cpu, teardown_device),
    };
    return cmocka_run_group_tests_name("products of host memory", tests, NULL, NULL);
}
