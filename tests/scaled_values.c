/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks special values of 8-bit types and of their factors (scaled_values.h).
 */
#include "scaled_values.h"
#include "scaled_case.h"
#include "support.h"

#include <math.h>

#define E4M3 TGL_F8_E4M3
#define E5M2 TGL_F8_E5M2

/* Computes D := A*B of 32 x 32 matrices. A is zero except for A[0][0] = element, and B is the
 * identity. scales: the factors of A, B and D. d := D[0][0], D[1][1], and the largest magnitude of
 * D before its factor. */
static void product_of_one(tgl_device *dev, const char *kernel, tgl_type type, tgl_type type_d,
                           unsigned char element, const float scales[3], double d[3])
{
    enum { N = 32 };
    static unsigned char a[N * N], b[N * N], out[N * N * 4];
    void *A = NULL, *B = NULL, *D = NULL, *S = NULL;
    tgl_problem p = scaled_problem(type, type, type_d, N, N, N);
    p.scaling_a = p.scaling_b = p.scaling_d = TGL_SCALING_TENSOR;
    p.trans_b = TGL_TRANS;
    const tgl_epilogue epilogue = {.size = sizeof epilogue, .amax = 1};
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = kernel, .epilogue = &epilogue};
    tgl_plan *plan;
    float amax;
    assert_status(tgl_plan_create(dev, &p, &options, &plan), TGL_OK);
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    a[0] = element;
    for (int i = 0; i < N; i++)
        b[i * N + i] = type == E4M3 ? 0x38 : type == E5M2 ? 0x3c : 1;
    assert_status(tgl_alloc(dev, sizeof a, &A), TGL_OK);
    assert_status(tgl_alloc(dev, sizeof b, &B), TGL_OK);
    assert_status(tgl_alloc(dev, sizeof out, &D), TGL_OK);
    assert_status(tgl_alloc(dev, 4 * sizeof *scales, &S), TGL_OK);
    assert_status(tgl_upload(dev, A, a, sizeof a, NULL), TGL_OK);
    assert_status(tgl_upload(dev, B, b, sizeof b, NULL), TGL_OK);
    assert_status(tgl_upload(dev, S, scales, 3 * sizeof *scales, NULL), TGL_OK);
    float *s = S;
    const tgl_operands o = {.size = sizeof o,
                            .alpha = 1,
                            .A = A,
                            .B = B,
                            .C = D,
                            .scale_a = s,
                            .scale_b = s + 1,
                            .scale_d = s + 2,
                            .amax_d = s + 3};
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    assert_status(tgl_download(dev, out, D, N * N * tgl_type_size(type_d), NULL), TGL_OK);
    d[0] = scaled_load(type_d, out, 0);
    d[1] = scaled_load(type_d, out, N + 1);
    assert_status(tgl_download(dev, &amax, s + 3, sizeof amax, NULL), TGL_OK);
    d[2] = amax;
    tgl_plan_destroy(plan);
    tgl_free(dev, A);
    tgl_free(dev, B);
    tgl_free(dev, D);
    tgl_free(dev, S);
}

/* Tests that an element times 1 is the element. The other elements of its row are 0 times it, so
 * the largest magnitude is NaN if the element is Inf or NaN. */
static void one_element(tgl_device *dev, const char *kernel, tgl_type type, unsigned char element)
{
    static const float ones[] = {1, 1, 1};
    double d[3];
    const double x = scaled_load(type, &element, 0);
    product_of_one(dev, kernel, type, TGL_F32, element, ones, d);
    const bool is_right = (isnan(x) ? isnan(d[0]) : d[0] == x) && d[1] == 0 &&
                          (isfinite(x) ? d[2] == fabs(x) : isnan(d[2]));
    if (!is_right)
        fail_msg("%s: element 0x%02x, %g, gives %g, %g, amax_d %g",
                 kernel != NULL ? kernel : "auto", element, x, d[0], d[1], d[2]);
}

/* Tests products of a single element of e4m3, e5m2 or i8: about 20 elements of each type, denormal
 * ones among them, then the largest elements, Inf and NaN. */
static void elements(tgl_device *dev, const char *const *kernels, size_t count)
{
    static const tgl_type types[] = {E4M3, E5M2, TGL_I8};
    static const struct row {
        tgl_type type;
        unsigned char element;
    } rows[] = {{E4M3, 0x7e}, {E4M3, 0x7f}, {E4M3, 0xfe}, {E4M3, 0xff},   {E5M2, 0x7b},
                {E5M2, 0x7c}, {E5M2, 0x7d}, {E5M2, 0x7f}, {E5M2, 0xfb},   {E5M2, 0xfc},
                {E5M2, 0xfd}, {E5M2, 0xfe}, {E5M2, 0xff}, {TGL_I8, 0x7f}, {TGL_I8, 0x80}};
    for (unsigned i = 0; i < 3 * 256; i += 13)
        one_element(dev, kernels[i % count], types[i % 3], (unsigned char)(i / 3));
    for (size_t i = 0; i < count * COUNT_OF(rows); i++)
        one_element(dev, kernels[i % count], rows[i / count].type, rows[i / count].element);
}

/* Tests that results of 8 bits saturate, even Inf, that NaN stays NaN, and that factors of 0, Inf
 * and NaN have the effect that the formula in tegula.h gives. */
static void saturation(tgl_device *dev, const char *const *kernels, size_t count)
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
    double d[3];
    for (size_t i = 0; i < count * COUNT_OF(rows); i++) {
        const struct row *r = &rows[i / count];
        product_of_one(dev, kernels[i % count], r->type, r->type_d, r->element, r->scales, d);
        if (isnan(r->d) ? !isnan(d[0]) : d[0] != r->d)
            fail_msg("row %zu gives %g, not %g", i / count, d[0], r->d);
        const double x = scaled_load(r->type, &r->element, 0);
        /* The other elements of D are 0 times the factors, which may be NaN. */
        const double amax = isfinite(x) && isfinite(r->scales[0]) && isfinite(r->scales[1])
                                ? fabs(x * r->scales[0] * r->scales[1])
                                : NAN;
        if (isnan(amax) ? !isnan(d[2]) : d[2] != amax)
            fail_msg("row %zu gives amax_d %g, not %g", i / count, d[2], amax);
    }
}

void check_scaled_values(tgl_device *dev, const char *const *kernels, size_t count)
{
    elements(dev, kernels, count);
    saturation(dev, kernels, count);
}
