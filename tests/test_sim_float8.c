/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of e4m3, e5m2 and i8 with scales by mma.sync and wgmma: in all layouts, alignments and
 * types, within the error bounds of docs/accuracy.md. The simulator checks races and bounds. With
 * TEGULA_TEST_DEVICE=cuda:0 the same cases run on a GPU. With the argument "i/n" it takes the i-th
 * of n parts of all layouts, otherwise a quarter: most of the time is that of compiling a kernel
 * for each.
 */
#include "support.h"

#include "scaled_case.h"
#include "scaled_values.h"

#define E4M3 TGL_F8_E4M3
#define E5M2 TGL_F8_E5M2

/* wgmma adds 33 terms with 13 bits of fraction, and cuts the sum to 13 bits, four times in a stage.
 * FP32 sums of k products: k * 2^-24. */
static const double PROMOTED = 4 * 34 * 0x1p-13, IN_FP32 = 1024 * 0x1p-24;

static const char *const kernels[] = {
    "mma_64x64x128_s2:splits=2", "wgmma_64x32:exchanged=1", "wgmma_128x128",
    "mma_16x64x256_s2",          "wgmma_64x64:splits=2",    "wgmma_64x64_s12:splits=2,in_cluster=1",
    "wgmma_256x128:cluster=2",   "mma_128x64x64",
};

static double error_of(const char *kernel, tgl_type type)
{
    return type == TGL_I8 ? 0x1p-22 : strncmp(kernel, "mma", 3) == 0 ? IN_FP32 : PROMOTED;
}

static void check_scaled(tgl_device *dev, const scaled_case *c)
{
    char fault[512];
    assert_status(scaled_case_run(dev, c, fault, NULL), TGL_OK);
    assert_string_equal(fault, "");
}

/* Transposes A by bit 0 of `way` and B by bit 1. With bit 2, rows in memory begin at any byte. */
static void lay_out(tgl_problem *p, unsigned way)
{
    const int64_t more = way / 4 % 2 != 0 ? 3 : 0;
    p->trans_a = way % 2 != 0 ? TGL_TRANS : TGL_NO_TRANS;
    p->trans_b = way / 2 % 2 != 0 ? TGL_TRANS : TGL_NO_TRANS;
    p->lda = (way % 2 != 0 ? p->m : p->k) + more;
    p->ldb = (way / 2 % 2 != 0 ? p->k : p->n) + more;
    p->ldc = p->n + more;
}

static bool takes_all;

/* Each kernel takes all layouts; types, scales and epilogues change from case to case. In a run
 * without arguments each kernel takes two layouts, and each layout two kernels. */
static void every_layout(void **state)
{
    static const tgl_type pairs[][2] = {
        {E4M3, E4M3}, {E5M2, E4M3}, {TGL_I8, TGL_I8}, {E4M3, E5M2}, {E5M2, E5M2}};
    static const tgl_type results[] = {TGL_BF16, TGL_F32, TGL_F16, E4M3, TGL_BF16, E5M2, TGL_I8};
    unsigned number = 0;
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        for (unsigned way = 0; way < 8; way++, number++) {
            const bool is_chosen = (way + i) % 8 == 0 || (way + 3 * i) % 8 == 5;
            if (takes_all ? !sweep_has((int)number) : !is_chosen) continue;
            const tgl_type *in = pairs[number % COUNT_OF(pairs)];
            tgl_type result = results[number % COUNT_OF(results)];
            if ((result == TGL_I8) != (in[0] == TGL_I8) && tgl_type_size(result) == 1)
                result = in[0]; /* only I8 operands have results of I8, and F8 of F8 */
            scaled_case c = {
                .problem = scaled_problem(in[0], in[1], result, 70 + 2 * (way < 4), 68, 144 + way),
                .alpha = way % 3 == 0 ? 1 : -0.75,
                .beta = way % 2 == 0 ? 0 : 0.5,
                .bias = (tgl_bias)(number % 3),
                .activation = number % 4 == 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE,
                .kernel = kernels[i],
                .error = error_of(kernels[i], in[0]),
                .has_amax = way / 2 % 2 == 0,
                .seed = number,
            };
            lay_out(&c.problem, way);
            c.problem.scaling_a = (tgl_scaling)((number + 1) % 3);
            c.problem.scaling_b = (tgl_scaling)((number / 2 + 2) % 3);
            c.problem.scaling_d = (tgl_scaling)(tgl_type_size(result) == 1 ? 1 + number % 2 : 0);
            if (in[0] == TGL_I8 && c.problem.scaling_a == 0) c.problem.scaling_a = TGL_SCALING_LINE;
            check_scaled(*state, &c);
        }
}

/* In column-major problems A and B change places, and so do their factors. D is another matrix. */
static void column_major_batches(void **state)
{
    static const tgl_type results[] = {E4M3, TGL_F16, TGL_F32};
    for (unsigned i = 0; i < 6; i++) {
        scaled_case c = {.problem = scaled_problem(E5M2, E4M3, results[i % 3], 40, 72, 96),
                         .alpha = 1,
                         .beta = i % 2 == 0 ? 0 : -1,
                         .bias = TGL_BIAS_ROW,
                         .kernel = kernels[i],
                         .error = error_of(kernels[i], E4M3),
                         .has_amax = i % 2 == 0,
                         .seed = 100 + i};
        tgl_problem *p = &c.problem;
        p->order = TGL_COL_MAJOR;
        p->type_c = TGL_BF16;
        p->type_d = results[i % 3];
        p->lda = 40, p->ldb = 97, p->ldc = 40, p->ldd = 48;
        p->batch = 3;
        p->stride_a = 40 * 96, p->stride_b = 97 * 72 + 5, p->stride_c = 40 * 72,
        p->stride_d = 48 * 72;
        p->scaling_a = TGL_SCALING_LINE;
        p->scaling_b = i % 2 == 0 ? TGL_SCALING_LINE : TGL_SCALING_TENSOR;
        p->scaling_d = TGL_SCALING_LINE;
        check_scaled(*state, &c);
    }
}

/* Without promotion, sums of positive products lose a part of each product, also with split-K.
 * mma.sync adds in FP32. */
static void promotion(void **state)
{
    static const char *const some[] = {"wgmma_64x64", "wgmma_64x64:splits=2", "mma_64x64x128"};
    double errors[2][3] = {{0}};
    for (int fast = 0; fast < 2; fast++)
        for (int i = 0; i < 3; i++) {
            char fault[512];
            scaled_case c = {.problem = scaled_problem(E4M3, E4M3, TGL_F32, 4, 8, 4096),
                             .alpha = 1,
                             .kernel = some[i],
                             .error = 1,
                             .is_positive = true,
                             .seed = 7};
            c.problem.trans_b = TGL_TRANS;
            c.problem.ldb = 4096;
            c.problem.compute = fast ? TGL_COMPUTE_FAST : TGL_COMPUTE_DEFAULT;
            assert_status(scaled_case_run(*state, &c, fault, &errors[fast][i]), TGL_OK);
        }
    for (int i = 0; i < 2; i++) {
        assert_true(errors[0][i] < 4 * 0x1p-12);
        assert_true(errors[1][i] > 2 * errors[0][i]);
    }
    assert_true(errors[0][2] < 0x1p-18 && errors[1][2] < 0x1p-18);
}

/* A block has several tiles: their factors replace those of the tile before. An H200 has 132 SMs,
 * which have a block of these kernels each. */
static void several_tiles(void **state)
{
    enum { LONG = 64 * 140, SHORT = 8 };
    for (int exchanged = 0; exchanged < 2; exchanged++) {
        scaled_case c = {.problem = scaled_problem(E4M3, E4M3, TGL_BF16, exchanged ? SHORT : LONG,
                                                   exchanged ? LONG : SHORT, 32),
                         .alpha = 1,
                         .kernel = exchanged ? "wgmma_64x64_s12:exchanged=1"
                                             : "wgmma_64x64_s12:exchanged=0",
                         .error = PROMOTED,
                         .seed = 200 + (unsigned)exchanged};
        lay_out(&c.problem, 2);
        c.problem.scaling_a = c.problem.scaling_b = TGL_SCALING_LINE;
        check_scaled(*state, &c);
    }
}

static void values(void **state)
{
    static const char *const some[] = {"wgmma_64x32", "mma_64x64x128"};
    check_scaled_values(*state, some, COUNT_OF(some));
}

/* If alpha is 0, neither A, B nor their factors are read. */
static void without_a_product(void **state)
{
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        tgl_problem p = scaled_problem(E4M3, E4M3, TGL_F32, 3, 5, 7);
        p.scaling_a = TGL_SCALING_LINE;
        p.scaling_b = TGL_SCALING_TENSOR;
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernels[i]};
        const float one = 1;
        float out[15];
        tgl_plan *plan;
        void *factor = NULL, *C = constant_floats(*state, 15, 3);
        assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
        assert_status(tgl_alloc(*state, 3 * sizeof one, &factor), TGL_OK);
        const tgl_operands o = {
            .size = sizeof o, .beta = 2, .C = C, .scale_a = factor, .scale_b = factor};
        assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
        assert_status(tgl_download(*state, out, C, sizeof out, NULL), TGL_OK);
        for (int e = 0; e < 15; e++)
            assert_true(out[e] == 6);
        tgl_plan_destroy(plan);
        tgl_free(*state, C);
        tgl_free(*state, factor);
    }
}

/* alpha is 0 in memory of the device: the factors have no effect, although they are Inf. */
static void without_a_product_on_the_device(void **state)
{
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        tgl_problem p = scaled_problem(E4M3, E4M3, TGL_F32, 3, 5, 7);
        p.scaling_a = p.scaling_b = TGL_SCALING_LINE;
        p.scalars = TGL_SCALARS_DEVICE;
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernels[i]};
        float out[15];
        tgl_plan *plan;
        void *C = constant_floats(*state, 15, 3), *factor = constant_floats(*state, 5, INFINITY);
        void *alpha = constant_floats(*state, 1, 0), *beta = constant_floats(*state, 1, 2);
        void *zeros = constant_floats(*state, 16, 0);
        assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
        const tgl_operands o = {.size = sizeof o,
                                .alpha_at = alpha,
                                .beta_at = beta,
                                .A = zeros,
                                .B = zeros,
                                .C = C,
                                .scale_a = factor,
                                .scale_b = factor};
        assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
        assert_status(tgl_download(*state, out, C, sizeof out, NULL), TGL_OK);
        for (int e = 0; e < 15; e++)
            assert_true(out[e] == 6);
        tgl_plan_destroy(plan);
        void *const all[] = {C, factor, alpha, beta, zeros};
        for (size_t j = 0; j < COUNT_OF(all); j++)
            tgl_free(*state, all[j]);
    }
}

int main(int argc, char **argv)
{
    takes_all = argc > 1;
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout),
        cmocka_unit_test(column_major_batches),
        cmocka_unit_test(promotion),
        cmocka_unit_test(several_tiles),
        cmocka_unit_test(values),
        cmocka_unit_test(without_a_product),
        cmocka_unit_test(without_a_product_on_the_device),
    };
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
