/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of 8 and 4 bits on the simulator, which checks races and bounds: the pre-pass that
 * expands them, before kernels of each kind. With TEGULA_TEST_DEVICE=cuda:0 the same cases run on a
 * GPU. With the argument "i/n" it takes the i-th of n parts of all cases, otherwise a few: most of
 * the time is that of compiling a kernel for each.
 */
#include "support.h"
#include "weights_case.h"

static bool takes_all;

static void check(tgl_device *dev, const weights_case *c)
{
    char fault[512], why[512] = "";
    const tgl_status status = weights_case_run(dev, c, fault);
    if (status != TGL_OK) tgl_last_error(why, sizeof why);
    if (why[0] != '\0') print_error("seed %u: %s\n", c->seed, why);
    assert_status(status, TGL_OK);
    assert_string_equal(fault, "");
}

/* Random layouts, factors and types, by the planner's choice. */
static void random_products(void **state)
{
    static const int64_t sizes[][3] = {{20, 70, 150}, {1, 150, 200}, {70, 1, 100}, {130, 140, 90}};
    for (unsigned i = 0; i < (takes_all ? 80 : 10); i++) {
        if (!sweep_has((int)i)) continue;
        const int64_t *size = sizes[i % COUNT_OF(sizes)];
        const weights_case c = weights_random_case(1000 + i, size[0], size[1], size[2]);
        check(*state, &c);
    }
}

/* Kernels that copy by TMA, by cp.async, with strips, and with split-K. */
static void kernels(void **state)
{
    static const char *const names[] = {"wgmma_64x32:exchanged=1", "mma_64x64x128:strips=1",
                                        "wgmma_64x64:splits=2", "mma_32x64x128:splits=2",
                                        "mma_128x64x64"};
    for (unsigned i = 0; i < (takes_all ? COUNT_OF(names) : 2); i++) {
        if (!sweep_has((int)i)) continue;
        weights_case c = {.problem = weights_problem(TGL_BF16, TGL_I4, 66, 65, 161, 32),
                          .alpha = 1,
                          .kernel = names[i],
                          .seed = i};
        c.problem.trans_b = i % 2 == 0 ? TGL_TRANS : TGL_NO_TRANS;
        c.problem.ldb = i % 2 == 0 ? 162 : 66;
        c.problem.type_zero_b = TGL_I8;
        check(*state, &c);
    }
}

/* Makes a product for the kernel for few rows. Types, factors and alignment change from case to
 * case.
 */
static weights_case case_of_rows(unsigned number)
{
    static const int groups[] = {32, 128, 64, 0};
    static const char *const names[][4] = {
        {"dequant_128x8", "dequant_128x16:splits=2", "dequant_256x8:splits=3", "dequant_256x16"},
        {"dequant_128x8_w4", "dequant_128x16_w8", "dequant_128x8_w16:splits=2",
         "dequant_256x16_w8"}};
    const bool is_wide = number / 2 % 2 == 0, has_tma = is_wide && number / 8 % 2 == 0;
    const int ld_factors =
        number / 4 % 2 == 0 ? 160 : 153; /* rows are aligned to 16 bytes or not */
    const tgl_type type_b = number / 3 % 2 == 0 ? TGL_I4 : TGL_I8;
    weights_case c = {.problem = weights_problem(number % 2 == 0 ? TGL_F16 : TGL_BF16, type_b,
                                                 number % 2 == 0 ? 5 : 13, 150, 0,
                                                 groups[(number + number / 4) % 4]),
                      .alpha = 1.5,
                      .beta = number % 3 == 0 ? 0 : -1,
                      .kernel = names[has_tma][(number + number / 4 * 2) % 4],
                      .is_exact = number / 4 % 2 == 1,
                      .seed = number};
    tgl_problem *p = &c.problem;
    p->k = has_tma ? 1632 : is_wide ? 608 : 555;
    p->trans_b = TGL_TRANS;
    p->lda = is_wide ? p->k + 8 : 555;
    p->ldb = is_wide ? p->k + 32 : 556;
    p->ld_scale_b = p->scaling_b == TGL_SCALING_GROUP ? ld_factors : 0;
    if (number % 5 == 4) p->scaling_b = TGL_SCALING_TENSOR, p->scale_group = 0, p->ld_scale_b = 0;
    if (number % 3 != 2) p->type_zero_b = TGL_I8;
    if (number % 3 == 1) p->type_c = TGL_F32;
    c.skip_b = is_wide && number % 4 == 1; /* the kernel for unaligned matrices */
    if (number % 4 != 2 && number % 16 != 0) return c;
    p->batch = 2;
    p->stride_a = p->lda * 16;
    p->stride_b = p->ldb * 150 + (is_wide ? 32 : 2);
    p->stride_c = p->ldc * 16;
    p->stride_scale_b = 60 * ld_factors;
    return c;
}

static void few_rows(void **state)
{
    for (unsigned i = 0; i < (takes_all ? 64 : 8); i++) {
        if (!sweep_has((int)i)) continue;
        const weights_case c = case_of_rows(i);
        check(*state, &c);
    }
}

/* The planner takes the kernel for few rows if the layout permits it. */
static void planned_rows(void **state)
{
    tgl_problem p = weights_problem(TGL_BF16, TGL_I4, 3, 4096, 4096, 128);
    p.trans_b = TGL_TRANS;
    assert_true(plan_explains(*state, &p, "read by the kernel"));
    p.trans_b = TGL_NO_TRANS;
    assert_true(plan_explains(*state, &p, "expanded to 16 bits by a pre-pass"));
}

/* Without workspace, products whose weights are expanded are refused. */
static void no_workspace(void **state)
{
    const tgl_problem p = weights_problem(TGL_BF16, TGL_I4, 66, 66, 160, 32);
    const tgl_plan_options options = {.size = sizeof options, .workspace_limit = -1};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_UNSUPPORTED);
    assert_sentence("weights are expanded in workspace: here 23040 bytes, and the limit is 0");
}

/* With alpha = 0 in device memory neither A nor the factors, which are NaN, have an effect. */
static void device_scalars(void **state)
{
    enum { M = 3, N = 4, K = 64 };
    tgl_problem p = weights_problem(TGL_F16, TGL_I8, M, N, K, 32);
    p.scalars = TGL_SCALARS_DEVICE;
    p.type_c = TGL_F32;
    tgl_plan *plan;
    float d[M * N];
    void *A = constant_floats(*state, M * K / 2, NAN), *B = constant_floats(*state, K * N / 4, 1);
    void *C = constant_floats(*state, M * N, 3), *factors = constant_floats(*state, 2 * N, NAN);
    void *alpha = constant_floats(*state, 1, 0), *beta = constant_floats(*state, 1, 2);
    assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_OK);
    const tgl_operands o = {.size = sizeof o,
                            .alpha_at = alpha,
                            .beta_at = beta,
                            .A = A,
                            .B = B,
                            .C = C,
                            .scale_b = factors};
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    assert_status(tgl_download(*state, d, C, sizeof d, NULL), TGL_OK);
    for (int i = 0; i < M * N; i++)
        assert_true(d[i] == 6);
    tgl_plan_destroy(plan);
    void *const all[] = {A, B, C, factors, alpha, beta};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        tgl_free(*state, all[i]);
}

int main(int argc, char **argv)
{
    takes_all = argc > 1;
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products), cmocka_unit_test(kernels),
        cmocka_unit_test(few_rows),        cmocka_unit_test(planned_rows),
        cmocka_unit_test(no_workspace),    cmocka_unit_test(device_scalars),
    };
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
