/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of complex types: their checks, products of every path of the cpu device, and their
 * plans on chips.
 */
#include "support.h"

static const tgl_type types[] = {TGL_C64, TGL_C128};

/* ---- Wrong arguments ------------------------------------------------------------------------- */

static _Alignas(16) double room[4][8];

static tgl_status run_operands(tgl_device *dev, const tgl_problem *problem,
                               const tgl_plan_options *options, const tgl_operands *operands)
{
    tgl_plan *plan;
    tgl_status status = tgl_plan_create(dev, problem, options, &plan);
    if (status == TGL_OK) status = tgl_plan_run_operands(plan, operands, NULL);
    tgl_plan_destroy(plan);
    return status;
}

/* Elements need the alignment of their real and imaginary parts. */
static void pointers_are_aligned_to_a_part(void **state)
{
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        const size_t part = tgl_type_size(types[i]) / 2;
        const tgl_problem problem = problem_of(types[i], 1, 1, 1);
        char *a = (char *)room[0], *b = (char *)room[1], *c = (char *)room[2];
        assert_status(tgl_gemm(*state, &problem, 1, a + part, b + part, 0, c + part, NULL), TGL_OK);
        forget_error();
        assert_status(tgl_gemm(*state, &problem, 1, a + part / 2, b, 0, c, NULL), TGL_BAD_A);
        assert_sentence("A is not aligned to the size of a part of its elements");
        assert_status(tgl_gemm(*state, &problem, 1, a, b + part / 2, 0, c, NULL), TGL_BAD_B);
        assert_status(tgl_gemm(*state, &problem, 1, a, b, 0, c + part / 2, NULL), TGL_BAD_C);
        assert_status(tgl_gemm(*state, &problem, 1, a, NULL, 0, c, NULL), TGL_BAD_B);
        /* 1e-60 is 0 in FP32: A and B are not read. */
        assert_status(tgl_gemm(*state, &problem, 1e-60, NULL, NULL, 0, c, NULL),
                      types[i] == TGL_C64 ? TGL_OK : TGL_BAD_A);
    }
}

static void scalars_are_checked(void **state)
{
    const tgl_operands imaginary = {.size = sizeof imaginary,
                                    .alpha = 1,
                                    .A = room[0],
                                    .B = room[1],
                                    .C = room[2],
                                    .alpha_imag = 1};
    const tgl_operands old_beta = {.size = sizeof imaginary,
                                   .alpha = 1,
                                   .A = room[0],
                                   .B = room[1],
                                   .C = room[2],
                                   .beta_imag = -1};
    const tgl_problem real = problem_of(TGL_F32, 1, 1, 1);
    forget_error();
    assert_status(run_operands(*state, &real, NULL, &imaginary), TGL_BAD_SCALAR);
    assert_sentence("alpha_imag is 1; it must be 0 in products of f32");
    assert_status(run_operands(*state, &real, NULL, &old_beta), TGL_BAD_SCALAR);
    assert_sentence("beta_imag is -1; it must be 0 in products of f32");

    const float one[] = {1, 0};
    assert_status(tgl_cgemm(*state, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, 1, 1, 1, NULL,
                            room[0], 1, room[1], 1, one, room[2], 1, NULL),
                  TGL_BAD_SCALAR);
    assert_sentence("alpha is NULL");
    assert_status(tgl_zgemm(*state, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, 1, 1, 1, room[3],
                            room[0], 1, room[1], 1, NULL, room[2], 1, NULL),
                  TGL_BAD_SCALAR);
    assert_sentence("beta is NULL");
}

static void device_scalars_are_aligned_to_a_part(void **state)
{
    tgl_problem problem = problem_of(TGL_C128, 1, 1, 1);
    problem.scalars = TGL_SCALARS_DEVICE;
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha_at = (char *)room[3] + 4,
                                   .A = room[0],
                                   .B = room[1],
                                   .C = room[2]};
    forget_error();
    assert_status(run_operands(*state, &problem, NULL, &operands), TGL_BAD_SCALAR);
    assert_sentence("alpha_at is not aligned to the size of a part of its elements");
}

static void epilogues_are_linear(void **state)
{
    static const struct {
        tgl_type type;
        tgl_epilogue epilogue;
        const char *sentence;
    } cases[] = {
        {TGL_C64,
         {.activation = TGL_ACTIVATION_RELU},
         "epilogue has an activation; products of c64 take none"},
        {TGL_C128, {.expression = "acc"}, "epilogue has an expression; products of c128 take none"},
        {TGL_C64,
         {.bias = TGL_BIAS_ROW, .type_bias = TGL_F32},
         "epilogue.type_bias is f32, and D is c64"},
        {TGL_C128,
         {.residual = 1, .type_residual = TGL_F64},
         "epilogue.type_residual is f64, and D is c128"},
        {TGL_F32,
         {.bias = TGL_BIAS_ROW, .type_bias = TGL_C64},
         "epilogue.type_bias is c64, and D is f32"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tgl_epilogue epilogue = cases[i].epilogue;
        epilogue.size = sizeof epilogue;
        const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
        const tgl_problem problem = problem_of(cases[i].type, 1, 1, 1);
        tgl_plan *plan;
        forget_error();
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_BAD_EPILOGUE);
        assert_sentence(cases[i].sentence);
    }
}

/* ---- Products -------------------------------------------------------------------------------- */

static double random_scalar(uint64_t *seed)
{
    static const double scalars[] = {1, 0, 0, -0.5, 1.25, (double)NAN};
    return scalars[random_int(seed, 0, random_int(seed, 0, 9) == 0 ? 5 : 4)];
}

static gemm_case random_case(uint64_t *seed, tgl_type type, int64_t largest)
{
    gemm_case c = {.problem = random_problem(seed, type, largest),
                   .alpha = random_scalar(seed),
                   .beta = random_scalar(seed),
                   .alpha_imag = random_scalar(seed),
                   .beta_imag = random_scalar(seed),
                   .pointers = random_int(seed, 0, 3) == 0,
                   .fill = random_kind(seed, type),
                   .at_end = random_int(seed, 0, 1) == 1,
                   .seed = random_bits(seed)};
    vary_case(seed, &c);
    return c;
}

static void random_products(void **state)
{
    uint64_t seed = 44;
    for (int i = 0; i < 1000; i++) {
        gemm_case c = random_case(&seed, types[i % 2], i % 40 == 0 ? 150 : i % 3 ? 20 : 70);
        if (i % 5 == 0)
            c.epilogue =
                (tgl_epilogue){.size = sizeof c.epilogue,
                               .bias = (tgl_bias)random_int(&seed, TGL_BIAS_NONE, TGL_BIAS_COLUMN),
                               .residual = (int)random_int(&seed, 0, 1)};
        assert_true(check_case(*state, &c));
    }
}

/* All pairs of transposes and conjugates. The sizes take every path: small products, tiles that
 * copy B or pack A, several blocks of k, parts of k for each thread, one row or column, few rows,
 * and a k of 0. */
static void products_of_every_path(void **state)
{
    static const int64_t shapes[][3] = {
        {4, 4, 4},      {7, 5, 3},     {33, 50, 64},  {3, 700, 2},    {700, 5, 3}, {1, 90, 200},
        {90, 1, 200},   {1, 1, 1},     {1, 12, 5},    {12, 1, 5},     {2, 3, 120}, {130, 70, 66},
        {20, 17, 2500}, {1, 400, 513}, {400, 1, 515}, {90, 260, 600}, {9, 9, 0},   {300, 310, 20},
    };
    uint64_t seed = 45;
    for (size_t i = 0; i < COUNT_OF(shapes) * 32; i++) {
        const int64_t *size = shapes[i / 32];
        /* Large shapes take every fifth combination, others for each shape. */
        if (size[0] * size[1] * size[2] > 500000 && i % 5 != 0) continue;
        tgl_problem p = problem_of(types[i % 2], size[0], size[1], size[2]);
        p.trans_a = (tgl_transpose)(TGL_NO_TRANS + i / 2 % 4);
        p.trans_b = (tgl_transpose)(TGL_NO_TRANS + i / 8 % 4);
        if (i % 3 == 0) p.order = TGL_COL_MAJOR;
        const gemm_case c = {.problem = p,
                             .alpha = i % 5 == 0 ? 0 : 1,
                             .alpha_imag = i % 5 < 2 ? -0.75 : 0,
                             .beta = i % 7 == 0 ? 0.5 : 0,
                             .beta_imag = i % 7 < 2 ? 2 : 0,
                             .fill = i % 4 == 0 ? NON_FINITE : UNIFORM_11,
                             .at_end = i % 2 == 1,
                             .seed = random_bits(&seed)};
        assert_true(check_case(*state, &c));
    }
}

/* Batches of small products whose matrices are prefetched and which threads share. */
static void batches(void **state)
{
    uint64_t seed = 46;
    for (int i = 0; i < 16; i++) {
        gemm_case c = {.problem = problem_of(types[i % 2], 30, 29, 31),
                       .alpha = 0.5,
                       .alpha_imag = i % 3,
                       .beta_imag = i % 4 == 1 ? -1 : 0,
                       .fill = UNIFORM_11,
                       .seed = random_bits(&seed)};
        tgl_problem *p = &c.problem;
        p->trans_a = (tgl_transpose)(TGL_NO_TRANS + i / 2 % 4);
        p->trans_b = (tgl_transpose)(TGL_NO_TRANS + i / 4 % 4);
        p->batch = 100;
        p->stride_a = p->stride_b = p->stride_c = 1000;
        assert_true(check_case(*state, &c));
    }
}

static tgl_status run_by_blas_call(tgl_device *dev, const tgl_problem *p, const tgl_operands *o)
{
    const float single_alpha[] = {(float)o->alpha, (float)o->alpha_imag};
    const float single_beta[] = {(float)o->beta, (float)o->beta_imag};
    const double alpha[] = {o->alpha, o->alpha_imag}, beta[] = {o->beta, o->beta_imag};
    if (p->type_a == TGL_C64)
        return tgl_cgemm(dev, p->order, p->trans_a, p->trans_b, p->m, p->n, p->k, single_alpha,
                         o->A, p->lda, o->B, p->ldb, single_beta, o->C, p->ldc, NULL);
    return tgl_zgemm(dev, p->order, p->trans_a, p->trans_b, p->m, p->n, p->k, alpha, o->A, p->lda,
                     o->B, p->ldb, beta, o->C, p->ldc, NULL);
}

static void blas_calls(void **state)
{
    uint64_t seed = 47;
    for (int i = 0; i < 300; i++) {
        gemm_case c = random_case(&seed, types[i % 2], i % 20 == 0 ? 100 : 20);
        c.pointers = false;
        c.gives_workspace = false;
        c.run = run_by_blas_call;
        tgl_problem *p = &c.problem;
        p->batch = 1;
        p->type_d = (tgl_type)0;
        p->scalars = TGL_SCALARS_HOST;
        p->ldd = p->stride_d = 0;
        if (p->lda == 0) p->lda = 100;
        if (p->ldb == 0) p->ldb = 100;
        if (p->ldc == 0) p->ldc = 100;
        assert_true(check_case(*state, &c));
    }
}

/* Checks a product of 1 x 1 matrices. Each argument: real part, imaginary part. */
static void assert_product(tgl_device *dev, const double alpha[2], const double a[2],
                           tgl_transpose trans_a, const double b[2], tgl_transpose trans_b,
                           const double expected[2])
{
    double c[2] = {7, 7};
    const double zero[] = {0, 0};
    assert_status(tgl_zgemm(dev, TGL_ROW_MAJOR, trans_a, trans_b, 1, 1, 1, alpha, a, 1, b, 1, zero,
                            c, 1, NULL),
                  TGL_OK);
    for (int i = 0; i < 2; i++)
        assert_true(isnan(expected[i]) ? isnan(c[i]) : c[i] == expected[i]);
}

/* Infinities are not recovered from NaN as by Annex G of the C standard. A real alpha scales both
 * parts, and is not multiplied as a complex number with an imaginary part of 0. */
static void infinities_give_what_real_products_give(void **state)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    const double one[] = {1, 0}, real_inf[] = {inf, 0}, z[] = {2, 3}, i[] = {0, 1};
    const double infinite[] = {inf, 1};
    assert_product(*state, one, z, TGL_NO_TRANS, z, TGL_NO_TRANS, (double[]){-5, 12});
    assert_product(*state, one, z, TGL_CONJ_NO_TRANS, z, TGL_NO_TRANS, (double[]){13, 0});
    assert_product(*state, one, z, TGL_CONJ_TRANS, z, TGL_CONJ_TRANS, (double[]){-5, -12});
    assert_product(*state, one, infinite, TGL_NO_TRANS, z, TGL_NO_TRANS, (double[]){inf, inf});
    assert_product(*state, one, infinite, TGL_NO_TRANS, infinite, TGL_NO_TRANS,
                   (double[]){inf, inf});
    assert_product(*state, one, infinite, TGL_NO_TRANS, i, TGL_NO_TRANS, (double[]){nan, inf});
    assert_product(*state, real_inf, z, TGL_NO_TRANS, z, TGL_NO_TRANS, (double[]){-inf, inf});
    assert_product(*state, i, z, TGL_NO_TRANS, z, TGL_NO_TRANS, (double[]){-12, -5});
}

/* Real elements are their own conjugates. */
static void conjugates_of_real_matrices_are_the_matrices(void **state)
{
    uint64_t seed = 48;
    for (int i = 0; i < 100; i++) {
        gemm_case c = {.problem = random_problem(&seed, i % 2 ? TGL_F32 : TGL_F64, 40),
                       .alpha = 2,
                       .beta = -1,
                       .fill = UNIFORM_11,
                       .seed = random_bits(&seed)};
        tgl_problem *p = &c.problem;
        p->trans_a = p->trans_a == TGL_NO_TRANS ? TGL_CONJ_NO_TRANS : TGL_CONJ_TRANS;
        p->trans_b = p->trans_b == TGL_NO_TRANS ? TGL_CONJ_NO_TRANS : TGL_CONJ_TRANS;
        assert_true(check_case(*state, &c));
    }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Each part errs by at most k + 1 units of its sum of magnitudes (docs/accuracy.md), on every path
 * of the device. */
static void parts_err_within_the_bound(void **state)
{
    static const int64_t shapes[][3] = {
        {3, 5, 1},    {4, 4, 4},     {33, 50, 64},  {1, 90, 200},
        {90, 1, 200}, {9, 20, 2500}, {70, 60, 300},
    };
    uint64_t seed = 49;
    double worst = 0;
    for (size_t i = 0; i < COUNT_OF(shapes) * 10; i++) {
        const int64_t *size = shapes[i / 10];
        gemm_case c = {.problem = problem_of(types[i % 2], size[0], size[1], size[2]),
                       .alpha = 1,
                       .fill = (inputs)(UNIFORM_01 + i / 2 % 5),
                       .seed = random_bits(&seed)};
        gemm_outcome outcome;
        c.problem.trans_a = (tgl_transpose)(TGL_NO_TRANS + i % 4);
        c.problem.trans_b = (tgl_transpose)(TGL_NO_TRANS + i / 2 % 4);
        gemm_case_run(*state, &c, false, &outcome);
        assert_string_equal(outcome.fault, "");
        worst = fmax(worst, outcome.ours.max / (double)(size[2] + 1));
    }
    printf("%.3f of the bound\n", worst);
    assert_true(worst > 0 && worst <= 1);
}

/* ---- Devices --------------------------------------------------------------------------------- */

/* The time of a thin product would be mostly that of the pre-pass that expands B. The planner
 * counts this time, and prefers a kernel that reads the complex B. */
static void the_planner_counts_prepasses(void **state)
{
    const tgl_problem problem = problem_of(TGL_C128, 40, 6040, 968);
    static char text[32000];
    double direct = 0, expanded = 0;
    (void)state;
    assert_status(tgl_chip_explain("h200", &problem, NULL, text, sizeof text, NULL), TGL_OK);
    assert_non_null(strstr(text, "choice      dmma_"));
    assert_int_equal(sscanf(strstr(text, "  dmma_64x64_s2") + 24, "%lf", &direct), 1);
    assert_int_equal(sscanf(strstr(text, "  mma_64x64x128_f64") + 24, "%lf", &expanded), 1);
    /* 94 MB are read and 187 MB written at less than 5 TB/s. */
    assert_true(direct < 70 && expanded > 56 + 40);
}

/* The predicted microseconds of a c128 product on an H200. */
static double microseconds_of(const char *kernel, bool trans_a, bool trans_b, const int64_t size[3])
{
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_problem problem = problem_of(TGL_C128, size[0], size[1], size[2]);
    static char text[32000];
    double microseconds = 0;
    problem.trans_a = trans_a ? TGL_TRANS : TGL_NO_TRANS;
    problem.trans_b = trans_b ? TGL_TRANS : TGL_NO_TRANS;
    problem.lda = trans_a ? size[0] : size[2];
    problem.ldb = trans_b ? size[2] : size[1];
    assert_status(tgl_chip_explain("h200", &problem, &options, text, sizeof text, NULL), TGL_OK);
    assert_non_null(strstr(text, "\npredicted "));
    assert_int_equal(sscanf(strstr(text, "\npredicted "), " predicted %lf", &microseconds), 1);
    return microseconds;
}

/* Predicted times of complex operands are within 10 % of times measured on an H200: with a
 * transposed A, whose tiles are many small copies (the first four); with lines that lie in two
 * lines of L2 (the next two); with a B that a pre-pass expands; and without any of that. */
static void times_of_complex_operands(void **state)
{
    static const struct {
        const char *kernel;
        bool trans_a, trans_b;
        int64_t size[3];
        double microseconds;
    } rows[] = {
        {"dmma_64x32_s2:splits=2,whole=132", true, false, {1097, 165, 4049}, 165.0},
        {"dmma_64x32_s4", true, false, {1048, 232, 8120}, 322.9},
        {"dmma_96x128:splits=3", true, false, {1048, 232, 8120}, 319.5},
        {"dmma_64x64_s2:splits=2", true, false, {664, 176, 1768}, 40.2},
        {"dmma_64x32_s4:splits=2,whole=264", false, true, {752, 426, 747}, 56.1},
        {"dmma_16x64", false, true, {752, 426, 747}, 68.9},
        {"mma_32x32x256_s2_f64:strips=0", false, false, {120, 312, 16}, 7.6},
        {"dmma_128x128:splits=3,whole=264", false, false, {3795, 637, 1315}, 444.4},
        {"dmma_128x128:splits=7", true, false, {1048, 232, 8120}, 352.7},
        {"dmma_16x128", false, true, {2048, 2048, 2048}, 1276.2},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const double ratio =
            microseconds_of(rows[i].kernel, rows[i].trans_a, rows[i].trans_b, rows[i].size) /
            rows[i].microseconds;
        if (ratio < 0.9 || ratio > 1.1) printf("%s: %.3f\n", rows[i].kernel, ratio);
        assert_true(ratio > 0.9 && ratio < 1.1);
    }
}

/* A complex row or column counts as two for the thin kernels in some layouts: they refuse more than
 * they can count, and say what they counted. */
static void thin_kernels_count_complex_lines_twice(void **state)
{
    static const struct {
        const char *kernel;
        int64_t size[3];
        bool trans_a, trans_b;
        const char *sentence;
    } rows[] = {
        {"gemv", {1200000000, 1, 4}, true, false, "counts as two if its operand is MN-major"},
        {"skinny_1", {1200000000, 1, 4}, true, false, "counts as two if its operand is MN-major"},
        {"gemv", {1, 4000, 4000}, false, true, "a complex one counts as two"},
        {"skinny_1", {1, 4000, 4000}, false, true, "a complex one counts as two"},
        {"gemv", {2, 4000, 4000}, false, false, "it takes one row or column"},
    };
    static char text[32000];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const int64_t *size = rows[i].size;
        const tgl_plan_options options = {.size = sizeof options, .kernel = rows[i].kernel};
        tgl_problem problem = problem_of(TGL_C64, size[0], size[1], size[2]);
        problem.trans_a = rows[i].trans_a ? TGL_TRANS : TGL_NO_TRANS;
        problem.trans_b = rows[i].trans_b ? TGL_TRANS : TGL_NO_TRANS;
        problem.lda = problem.ldb = 0;
        forget_error();
        assert_status(tgl_chip_explain("h200", &problem, &options, text, sizeof text, NULL),
                      TGL_UNSUPPORTED);
        tgl_last_error(text, sizeof text);
        assert_non_null(strstr(text, rows[i].sentence));
    }
    tgl_problem problem = problem_of(TGL_C64, 1200000000, 1, 4);
    problem.trans_a = TGL_TRANS;
    problem.lda = 0;
    assert_status(tgl_chip_explain("h200", &problem, NULL, text, sizeof text, NULL), TGL_OK);
    assert_null(strstr(text, "choice      gemv"));
    assert_null(strstr(text, "choice      skinny"));
}

static void chips_plan_real_products(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        for (int chip = 0; tgl_chip_name(chip) != NULL; chip++) {
            const tgl_problem problem = problem_of(types[i], 100, 200, 300);
            char text[400];
            const tgl_status status =
                tgl_chip_explain(tgl_chip_name(chip), &problem, NULL, text, sizeof text, NULL);
            if (types[i] == TGL_C128 && status == TGL_UNSUPPORTED) continue; /* as F64 is */
            assert_status(status, TGL_OK);
            assert_non_null(strstr(text, types[i] == TGL_C64 ? "as 100 x 400 x 600 in f32"
                                                             : "as 100 x 400 x 600 in f64"));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pointers_are_aligned_to_a_part, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(scalars_are_checked, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(device_scalars_are_aligned_to_a_part, setup_cpu,
                                        teardown_device),
        cmocka_unit_test_setup_teardown(epilogues_are_linear, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(random_products, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(products_of_every_path, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(batches, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(blas_calls, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(infinities_give_what_real_products_give, setup_cpu,
                                        teardown_device),
        cmocka_unit_test_setup_teardown(conjugates_of_real_matrices_are_the_matrices, setup_cpu,
                                        teardown_device),
        cmocka_unit_test_setup_teardown(parts_err_within_the_bound, setup_cpu, teardown_device),
        cmocka_unit_test(the_planner_counts_prepasses),
        cmocka_unit_test(times_of_complex_operands),
        cmocka_unit_test(thin_kernels_count_complex_lines_twice),
        cmocka_unit_test(chips_plan_real_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
