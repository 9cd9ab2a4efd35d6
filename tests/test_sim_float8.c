/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of e4m3, e5m2 and i8 with scales by mma.sync and wgmma: in all layouts, alignments and
 * types, within the error bounds of docs/accuracy.md. The simulator checks races and bounds. With
 * TEGULA_TEST_DEVICE=cuda:0 the same cases run on a GPU.
 */
#include "support.h"

#include "scaled_case.h"

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

/* Transposes A and B as bits 0 and 1 of `way` say; with bit 2 lines begin at any byte. */
static void lay_out(tgl_problem *p, unsigned way)
{
    const int64_t more = way / 4 % 2 != 0 ? 3 : 0;
    p->trans_a = way % 2 != 0 ? TGL_TRANS : TGL_NO_TRANS;
    p->trans_b = way / 2 % 2 != 0 ? TGL_TRANS : TGL_NO_TRANS;
    p->lda = (way % 2 != 0 ? p->m : p->k) + more;
    p->ldb = (way / 2 % 2 != 0 ? p->k : p->n) + more;
    p->ldc = p->n + more;
}

/* Each kernel takes all layouts; types, scales and epilogues change from case to case. */
static void every_layout(void **state)
{
    static const tgl_type pairs[][2] = {
        {E4M3, E4M3}, {E5M2, E4M3}, {TGL_I8, TGL_I8}, {E4M3, E5M2}, {E5M2, E5M2}};
    static const tgl_type results[] = {TGL_BF16, TGL_F32, TGL_F16, E4M3, TGL_BF16, E5M2, TGL_I8};
    unsigned number = 0;
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        for (unsigned way = 0; way < 8; way++, number++) {
            const tgl_type *in = pairs[number % COUNT_OF(pairs)];
            tgl_type result = results[number % COUNT_OF(results)];
            if ((result == TGL_I8) != (in[0] == TGL_I8) && tgl_type_size(result) == 1)
                result = in[0]; /* 8-bit results are of the kind of the operands */
            scaled_case c = {
                .problem = scaled_problem(in[0], in[1], result, 70 + 2 * (way < 4), 68, 144 + way),
                .alpha = way % 3 == 0 ? 1 : -0.75,
                .beta = way % 2 == 0 ? 0 : 0.5,
                .bias = (tgl_bias)(number % 3),
                .activation = number % 4 == 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE,
                .kernel = kernels[i],
                .error = error_of(kernels[i], in[0]),
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

/* Column-major problems exchange A and B, and the lines of D become columns. D is another matrix.
 */
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

/* Sums of positive products lose a part of each addend without promotion. The same holds for split
 * sums. mma.sync adds in FP32. */
static void promotion(void **state)
{
    static const char *const some[] = {"wgmma_64x64", "wgmma_64x64:splits=2", "mma_64x64x128"};
    double errors[2][3] = {{0}};
    for (int fast = 0; fast < 2; fast++)
        for (int i = 0; i < 3; i++) {
            char fault[512];
            scaled_case c = {.problem = scaled_problem(E4M3, E4M3, TGL_F32, 8, 16, 8192),
                             .alpha = 1,
                             .kernel = some[i],
                             .error = 1,
                             .is_positive = true,
                             .seed = 7};
            c.problem.trans_b = TGL_TRANS;
            c.problem.ldb = 8192;
            c.problem.compute = fast ? TGL_COMPUTE_FAST : TGL_COMPUTE_DEFAULT;
            assert_status(scaled_case_run(*state, &c, fault, &errors[fast][i]), TGL_OK);
        }
    for (int i = 0; i < 2; i++) {
        assert_true(errors[0][i] < 4 * 0x1p-12);
        assert_true(errors[1][i] > 2 * errors[0][i]);
    }
    assert_true(errors[0][2] < 0x1p-18 && errors[1][2] < 0x1p-18);
}

/* ---- Values that are not finite -------------------------------------------------------------- */

/* A, B: 32 x 32, zeros but for one element, and B the identity times 1. Returns D[0][0] and the
 * element beside it. */
static void product_of_one(tgl_device *dev, const char *kernel, tgl_type type, tgl_type type_d,
                           unsigned char element, const float scales[3], double d[2])
{
    enum { N = 32 };
    static unsigned char a[N * N], b[N * N], out[N * N * 4];
    void *A = NULL, *B = NULL, *D = NULL, *S = NULL;
    tgl_problem p = scaled_problem(type, type, type_d, N, N, N);
    p.scaling_a = p.scaling_b = p.scaling_d = TGL_SCALING_TENSOR;
    p.trans_b = TGL_TRANS;
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &p, &options, &plan), TGL_OK);
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    a[0] = element;
    for (int i = 0; i < N; i++)
        b[i * N + i] = type == E4M3 ? 0x38 : type == E5M2 ? 0x3c : 1;
    assert_status(tgl_alloc(dev, sizeof a, &A), TGL_OK);
    assert_status(tgl_alloc(dev, sizeof b, &B), TGL_OK);
    assert_status(tgl_alloc(dev, sizeof out, &D), TGL_OK);
    assert_status(tgl_alloc(dev, 3 * sizeof *scales, &S), TGL_OK);
    assert_status(tgl_upload(dev, A, a, sizeof a, NULL), TGL_OK);
    assert_status(tgl_upload(dev, B, b, sizeof b, NULL), TGL_OK);
    assert_status(tgl_upload(dev, S, scales, 3 * sizeof *scales, NULL), TGL_OK);
    const float *s = S;
    const tgl_operands o = {.size = sizeof o,
                            .alpha = 1,
                            .A = A,
                            .B = B,
                            .C = D,
                            .scale_a = s,
                            .scale_b = s + 1,
                            .scale_d = s + 2};
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    assert_status(tgl_download(dev, out, D, N * N * tgl_type_size(type_d), NULL), TGL_OK);
    d[0] = scaled_load(type_d, out, 0);
    d[1] = scaled_load(type_d, out, N + 1);
    tgl_plan_destroy(plan);
    tgl_free(dev, A);
    tgl_free(dev, B);
    tgl_free(dev, D);
    tgl_free(dev, S);
}

/* All elements of both formats, alone: denormals, the largest ones, Inf and NaN. */
static void every_element(void **state)
{
    static const float ones[] = {1, 1, 1};
    static const tgl_type types[] = {E4M3, E5M2, TGL_I8};
    double d[2];
    for (unsigned i = 0; i < 3 * 256; i += 5) {
        const tgl_type type = types[i % 3];
        const unsigned char element = (unsigned char)(i / 3);
        const double x = scaled_load(type, &element, 0);
        product_of_one(*state, i % 2 ? "mma_64x64x128" : "wgmma_64x32", type, TGL_F32, element,
                       ones, d);
        assert_true(isnan(x) || isinf(x) ? !isfinite(d[0]) && isnan(d[0]) == isnan(x) : d[0] == x);
        assert_true(d[1] == 0 || isnan(x) || isinf(x));
    }
}

/* Results of 8 bits saturate, Inf too; NaN stays NaN. Factors of 0, Inf and NaN act as in the
 * formula. */
static void saturation(void **state)
{
    static const struct row {
        tgl_type type, type_d;
        unsigned char element;
        float scales[3];
        double d;
    } rows[] = {
        {E4M3, E4M3, 0x7e, {2, 1, 1}, 448},
        {E4M3, E4M3, 0xfe, {1, 1, 1.5F}, -448},
        {E4M3, E4M3, 0x38, {465, 1, 1}, 448},
        {E4M3, E5M2, 0x38, {60000, 1, 1}, 57344},
        {E5M2, E5M2, 0xfb, {1, 2, 1}, -57344},
        {E5M2, E5M2, 0x7c, {1, 1, 1}, 57344},
        {E5M2, E4M3, 0x7d, {1, 1, 1}, NAN},
        {E4M3, E4M3, 0x7f, {1, 1, 1}, NAN},
        {E4M3, E4M3, 0x01, {1, 1, 0.5F}, 0},
        {E4M3, E4M3, 0x01, {1.5F, 1, 1}, 0x1p-8},
        {E4M3, TGL_BF16, 0x38, {INFINITY, 1, 1}, INFINITY},
        {E4M3, TGL_F32, 0x38, {0, INFINITY, 1}, NAN},
        {E4M3, TGL_F32, 0x38, {0, 3, 1}, 0},
        {E4M3, TGL_F16, 0x38, {1, NAN, 1}, NAN},
        {E4M3, E4M3, 0x38, {1, 1, INFINITY}, 448},
        {TGL_I8, TGL_I8, 0x7f, {2, 1, 1}, 127},
        {TGL_I8, TGL_I8, 0x80, {2, 1, 1}, -128},
        {TGL_I8, TGL_I8, 5, {0.5F, 1, 1}, 2},
        {TGL_I8, TGL_I8, 7, {0.5F, 1, 1}, 4},
        {TGL_I8, TGL_I8, 1, {1, INFINITY, 1}, 127},
        {TGL_I8, TGL_I8, 1, {NAN, 1, 1}, 0},
        {TGL_I8, TGL_F16, 3, {0x1p15F, 1, 1}, INFINITY},
    };
    double d[2];
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        const struct row *r = &rows[i / 2];
        product_of_one(*state, i % 2 ? "mma_64x64x128" : "wgmma_64x32", r->type, r->type_d,
                       r->element, r->scales, d);
        if (isnan(r->d) ? !isnan(d[0]) : d[0] != r->d)
            fail_msg("row %zu gives %g, not %g", i / 2, d[0], r->d);
    }
}

/* alpha 0: neither A, B nor their factors are read. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout), cmocka_unit_test(column_major_batches),
        cmocka_unit_test(promotion),    cmocka_unit_test(every_element),
        cmocka_unit_test(saturation),   cmocka_unit_test(without_a_product),
    };
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
