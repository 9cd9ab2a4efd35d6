/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors relative to a reference of higher precision, for every kernel and distribution, compared
 * with those of a plain loop of fused multiply-adds on the same inputs.
 */
#include "support.h"

static const struct {
    int64_t m, n, k;
    tgl_transpose trans_a, trans_b;
} shapes[] = {
    {64, 64, 64, TGL_NO_TRANS, TGL_NO_TRANS}, {20, 33, 1000, TGL_NO_TRANS, TGL_NO_TRANS},
    {9, 33, 2500, TGL_TRANS, TGL_NO_TRANS},   {20, 1, 3000, TGL_NO_TRANS, TGL_NO_TRANS},
    {1, 20, 3000, TGL_NO_TRANS, TGL_TRANS},   {5, 9, 8000, TGL_NO_TRANS, TGL_NO_TRANS},
    {70, 60, 300, TGL_NO_TRANS, TGL_TRANS},   {7, 9, 11, TGL_TRANS, TGL_TRANS},
};

/* The larger of two shares. The root mean square of our errors may exceed theirs by a quarter plus
 * a tenth of a unit, since the portable tier may round products too, and a plain loop may happen to
 * have no error at all. The maximum of a few hundred errors is random, so ours is only limited to
 * twice theirs. */
static double share_of_allowed(const gemm_errors *ours, const gemm_errors *theirs)
{
    const double rms = ours->rms / (1.25 * theirs->rms + 0.1);
    const double max = ours->max / (2 * theirs->max + 0.5);
    return rms > max ? rms : max;
}

static void check_accuracy(tgl_device *dev, const gemm_case *c, double *worst)
{
    gemm_outcome outcome;
    gemm_case_run(dev, c, true, &outcome);
    if (outcome.fault[0] != '\0') fail_msg("%s", outcome.fault);
    assert_status(outcome.status, TGL_OK);
    const gemm_errors *ours = &outcome.ours, *theirs = &outcome.sequential;
    const double share = share_of_allowed(ours, theirs);
    if (share > *worst) *worst = share;
    if (!(share <= 1)) {
        char text[400];
        gemm_case_describe(c, text, sizeof text);
        fail_msg("max %.2f and rms %.3f units; the plain loop has %.2f and %.3f: %s", ours->max,
                 ours->rms, theirs->max, theirs->rms, text);
    }
}

static void check_type(tgl_device *dev, tgl_type type)
{
    static const double scalars[][2] = {{1, 0}, {-0.7, 1.3}};
    const char *kernel;
    for (int choice = 0; kernel_choice(dev, choice, &kernel); choice++)
        for (int fill = UNIFORM_01; fill <= DENORMAL; fill++) {
            double worst = 0;
            uint64_t seed = 5;
            for (size_t s = 0; s < COUNT_OF(shapes); s++)
                for (size_t i = 0; i < COUNT_OF(scalars); i++) {
                    gemm_case c = {.problem =
                                       problem_of(type, shapes[s].m, shapes[s].n, shapes[s].k),
                                   .alpha = scalars[i][0],
                                   .beta = scalars[i][1],
                                   .kernel = kernel,
                                   .fill = (inputs)fill,
                                   .seed = random_bits(&seed)};
                    c.problem.trans_a = shapes[s].trans_a;
                    c.problem.trans_b = shapes[s].trans_b;
                    check_accuracy(dev, &c, &worst);
                }
            printf("%-14s %-14s %.2f of what is allowed\n", kernel != NULL ? kernel : "planner",
                   inputs_name((inputs)fill), worst);
        }
}

static void f32_errs_no_more_than_a_plain_loop(void **state)
{
    check_type(*state, TGL_F32);
}

static void f64_errs_no_more_than_a_plain_loop(void **state)
{
    check_type(*state, TGL_F64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_errs_no_more_than_a_plain_loop),
        cmocka_unit_test(f64_errs_no_more_than_a_plain_loop),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
