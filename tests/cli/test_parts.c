/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the program that judge results: statistics, random inputs, the reference and its
 * error metric. A judge that lets everything pass would not be noticed otherwise.
 */
#include "check_case.h"
#include "check_epilogue.h"
#include "cli.h"
#include "kernel_names.h"
#include "npy.h"
#include "random.h"
#include "reference.h"
#include "stats.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Statistics ------------------------------------------------------------------------------ */

static void quantiles(void **state)
{
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    assert_true(stats_quantile(odd, 3, 0.5) == 3);
    assert_true(stats_quantile(even, 4, 0.5) == 2.5);
    assert_true(stats_quantile(even, 4, 0) == 1);
    assert_true(stats_quantile(even, 4, 1) == 4);
    assert_true(stats_quantile(one, 1, 0.5) == 7);
}

static void geometric_means(void **state)
{
    (void)state;
    geometric_mean g = {0};
    assert_true(geometric_mean_value(&g) == 0);
    geometric_mean_add(&g, 0.5);
    geometric_mean_add(&g, 8);
    assert_true(fabs(geometric_mean_value(&g) - 2) < 1e-12);
}

/* ---- Random numbers -------------------------------------------------------------------------- */

static void seeds_and_streams(void **state)
{
    (void)state;
    random_state a, b, c, d;
    random_seed(&a, 1, 0);
    random_seed(&b, 1, 0);
    random_seed(&c, 1, 1);
    random_seed(&d, 2, 0);
    const uint64_t first = random_bits(&a);
    assert_true(first == random_bits(&b));
    assert_true(first != random_bits(&c) && first != random_bits(&d));
}

static void inputs_are_what_they_are_called(void **state)
{
    (void)state;
    enum { N = 32 };
    double A[N * N], B[N * N];
    random_state r;
    random_seed(&r, 3, 0);
    for (int kind = 0; kind < INPUT_KINDS; kind++) {
        random_inputs(&r, (input_kind)kind, TGL_F32, N, N, N, A, B);
        for (int i = 0; i < N * N; i++) {
            assert_true(isnan(A[i]) || A[i] == (double)(float)A[i]);
            if (kind == INPUT_POSITIVE) assert_true(A[i] >= 0 && A[i] <= 1);
            if (kind == INPUT_SYMMETRIC) assert_true(fabs(A[i]) <= 1);
            if (kind != INPUT_SPECIAL) assert_true(isfinite(A[i]) && isfinite(B[i]));
            if (kind == INPUT_DENORMAL) assert_true(fabs(A[i] * B[i]) < 0x1p-80);
        }
    }
    random_inputs(&r, INPUT_CANCEL, TGL_F64, 1, 1, N, A, B);
    double sum = 0, magnitude = 0;
    for (int p = 0; p < N; p++) {
        sum += A[p] * B[p];
        magnitude += fabs(A[p] * B[p]);
    }
    assert_true(fabs(sum) < 1e-3 * magnitude);
}

/* ---- The reference --------------------------------------------------------------------------- */

static void reference_rows(void **state)
{
    (void)state;
    const double a[] = {1, 2}, B[] = {3, 4, 5, 6}, c[] = {10, 20};
    reference_element out[2];
    for (tgl_type type = TGL_F32; type <= TGL_F64; type++) {
        reference_row(type, 2, 2, 2, a, B, -1, c, out);
        assert_true(out[0].value == 2 * 13 - 10 && out[1].value == 2 * 16 - 20);
        assert_true(out[0].magnitude == 2 * 13 + 10 && out[1].magnitude == 2 * 16 + 20);
    }
}

static void what_is_not_read_does_not_count(void **state)
{
    (void)state;
    const double nan2[] = {NAN, NAN}, one[] = {1, 1};
    reference_element out[2];
    reference_row(TGL_F32, 2, 1, 0, nan2, nan2, 1, one, out);
    assert_true(out[0].value == 1);
    reference_row(TGL_F32, 2, 1, 1, one, one, 0, nan2, out);
    assert_true(out[0].value == 1);
    reference_row(TGL_F64, 2, 0, 1, nan2, nan2, 3, one, out);
    assert_true(out[0].value == 3);
    reference_row(TGL_F64, 2, 1, 1, one, one, NAN, one, out);
    assert_true(isnan(out[0].value));
}

static void rows_longer_than_a_strip(void **state)
{
    (void)state;
    enum { N = 300 };
    double a[2] = {1, -1}, B[2 * N], c[N] = {0};
    for (int j = 0; j < N; j++) {
        B[j] = j;
        B[N + j] = 1;
    }
    reference_element out[N];
    for (tgl_type type = TGL_F32; type <= TGL_F64; type++) {
        reference_row(type, N, 2, 1, a, B, 0, c, out);
        for (int j = 0; j < N; j++)
            assert_true(out[j].value == j - 1);
    }
}

/* ---- The metric ------------------------------------------------------------------------------ */

static bool passes(tgl_type type, double c, long double value, long double magnitude)
{
    error_summary s = {0};
    double error;
    const reference_element r = {value, magnitude};
    const bool ok = error_add(&s, type, c, &r, 4, &error);
    assert_int_equal(s.wrong, ok ? 0 : 1);
    return ok;
}

static void units(void **state)
{
    (void)state;
    error_summary s = {0};
    double error;
    const reference_element r = {1, 2};
    assert_true(error_add(&s, TGL_F32, 1 + 0x1p-22, &r, 4, &error));
    assert_true(fabs(error - 2) < 1e-6); /* 2^-22 in units of 2^-24 * 2 */
    assert_true(fabs(error_rms(&s) - 2) < 1e-6);
    assert_true(fabs(error_frobenius(&s) - 0x1p-22) < 1e-9);
    assert_false(error_add(&s, TGL_F64, 1 + 0x1p-22, &r, 4, &error));
    assert_true(error_bound(0) == 4 && error_bound(10) == 14 && error_bound(10000) == 804);
}

static void not_finite(void **state)
{
    (void)state;
    assert_true(passes(TGL_F32, NAN, NAN, NAN));
    assert_false(passes(TGL_F32, NAN, 1, 1));
    assert_false(passes(TGL_F32, 1, NAN, NAN));
    assert_false(passes(TGL_F32, INFINITY, NAN, NAN));
    assert_true(passes(TGL_F64, INFINITY, INFINITY, INFINITY));
    assert_false(passes(TGL_F64, -INFINITY, INFINITY, INFINITY));
    assert_false(passes(TGL_F64, INFINITY, 1, 1));
    assert_false(passes(TGL_F64, DBL_MAX, INFINITY, INFINITY));
    assert_false(passes(TGL_F32, NAN, INFINITY, INFINITY));
    assert_true(passes(TGL_F32, INFINITY, 1e39L, 1e39L)); /* more than f32 holds */
}

static void denormals(void **state)
{
    (void)state;
    assert_true(passes(TGL_F32, 0x1p-149, 1.5L * 0x1p-149L, 1.5L * 0x1p-149L));
    assert_false(passes(TGL_F32, 0, 0x1p-130L, 0x1p-130L)); /* flushed to zero */
    assert_true(passes(TGL_F64, 0, 0, 0));
}

/* An epilogue that makes a number of an infinite sum does not make every number right. */
static void epilogues_of_infinite_sums(void **state)
{
    (void)state;
    const long double sums[] = {-INFINITY, -1e39L}; /* the second is more than f32 holds */
    const tgl_epilogue epilogues[] = {{.activation = TGL_ACTIVATION_RELU}, {.expression = "..."}};
    for (int i = 0; i < 4; i++) {
        check_case c = {.problem = cli_problem(TGL_F32, 1, 1, 1), .epilogue = epilogues[i / 2]};
        reference_element r = {sums[i % 2], -sums[i % 2]};
        check_epilogue_finish(&c, 0, 0, &r);
        assert_true(r.value == 0);
        assert_true(passes(TGL_F32, 0, r.value, r.magnitude));
        assert_false(passes(TGL_F32, 1, r.value, r.magnitude));
        r = (reference_element){-sums[i % 2], -sums[i % 2]};
        check_epilogue_finish(&c, 0, 0, &r);
        assert_true(passes(TGL_F32, INFINITY, r.value, r.magnitude));
        assert_false(passes(TGL_F32, 1, r.value, r.magnitude));
    }
}

/* ---- Cases of `tegula check` ----------------------------------------------------------------- */

static void *copy_of_result(const check_case *c)
{
    const check_buffer *result = check_case_result(c);
    const size_t size = (size_t)result->size * tgl_type_size(c->problem.type_c);
    void *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, result->image, size);
    return copy;
}

/* The first case with something to compute, on finite inputs. is_separate: with a D other than C.
 */
static void find_case(check_case *c, bool is_separate)
{
    const check_drawing from = {.seed = 1, .type = TGL_F64, .scale = SCALE_MEDIUM};
    for (int64_t number = 0;; number++) {
        assert_true(check_case_make(c, &from, number));
        const tgl_problem *p = &c->problem;
        if (p->m * p->n * p->k * p->batch > 0 && c->inputs == INPUT_SYMMETRIC && c->alpha == 1 &&
            isfinite(c->beta) && (c->d.size > 0) == is_separate)
            return;
        check_case_free(c);
    }
}

static void see_what_is_wrong(bool is_separate)
{
    check_case c = {0};
    find_case(&c, is_separate);
    double *after = copy_of_result(&c);
    const tgl_problem *p = &c.problem;
    const check_view *v = &check_case_result(&c)->view;
    const reference_element *r = c.reference;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++)
                after[v->offset + b * v->batch + i * v->row + j * v->column] = (double)r++->value;

    error_summary errors = {0};
    check_verdict verdict;
    check_case_compare(&c, (unsigned char *)after, &errors, &verdict);
    assert_string_equal(verdict.text, "");
    assert_true(errors.max <= 1);

    after[v->offset] = NAN;
    check_case_compare(&c, (unsigned char *)after, &errors, &verdict);
    assert_non_null(strstr(verdict.text, is_separate ? "D[0](0, 0) is nan" : "C[0](0, 0) is nan"));
    after[v->offset] = (double)c.reference->value;

    uint64_t *bits = (uint64_t *)after;
    bits[v->offset - 1] ^= 1;
    check_case_compare(&c, (unsigned char *)after, &errors, &verdict);
    assert_non_null(strstr(verdict.text, "was written, -1 elements"));
    free(after);
    check_case_free(&c);
}

static void a_case_sees_what_is_wrong(void **state)
{
    (void)state;
    see_what_is_wrong(false);
    see_what_is_wrong(true);
}

/* Each in some of the cases, and all of them problems that the library takes. */
static void cases_have_all_kinds_of_results_and_scalars(void **state)
{
    (void)state;
    const check_drawing from = {.seed = 1, .scale = SCALE_SMALL};
    int separate = 0, shared = 0, scalars = 0, no_beta = 0, workspace = 0;
    for (int64_t number = 0; number < 1000; number++) {
        check_case c = {0};
        assert_true(check_case_make(&c, &from, number));
        assert_int_equal(tgl_problem_check(&c.problem), TGL_OK);
        separate += c.d.size > 0;
        shared += c.d.size > 0 && c.problem.batch > 1 && c.problem.stride_c == 0;
        scalars += c.problem.scalars == TGL_SCALARS_DEVICE;
        no_beta += c.no_beta;
        workspace += c.own_workspace;
        check_case_free(&c);
    }
    assert_true(separate > 0 && shared > 0 && scalars > 0 && no_beta > 0 && workspace > 0);
}

static void a_case_is_the_same_every_time(void **state)
{
    (void)state;
    for (int64_t number = 0; number < 90; number++) {
        const check_drawing from = {.seed = 9, .scale = (check_scale)(number % 3)};
        check_case a = {0}, b = {0};
        assert_true(check_case_make(&a, &from, number) && check_case_make(&b, &from, number));
        char text_a[512], text_b[512];
        check_case_describe(&a, text_a, sizeof text_a);
        check_case_describe(&b, text_b, sizeof text_b);
        assert_string_equal(text_a, text_b);
        const size_t size = (size_t)a.c.size * tgl_type_size(a.problem.type_c);
        assert_memory_equal(a.c.image, b.c.image, size);
        assert_int_equal(tgl_problem_check(&a.problem), TGL_OK);
        check_case_free(&a);
        check_case_free(&b);
    }
}

/* ---- Names of kernels ------------------------------------------------------------------------ */

static void kernels_that_are_asked_for(void **state)
{
    (void)state;
    tgl_device *dev;
    assert_int_equal(tgl_device_open("cpu", NULL, &dev), TGL_OK);
    const char *name = tgl_kernel_name(dev, 0), *other = tgl_kernel_name(dev, 1);
    assert_non_null(name);
    assert_true(kernel_is_asked(dev, "all", name) && kernel_is_asked(dev, "gemm", name));
    assert_true(kernel_is_asked(dev, "cpu", name) && kernel_is_asked(dev, name, name));
    assert_false(kernel_is_asked(dev, "cp", name) || kernel_is_asked(dev, "ladder", name));
    assert_false(kernel_is_asked(dev, "auto", name));
    assert_true(other == NULL || !kernel_is_asked(dev, name, other));
    assert_true(kernel_is_auto_asked(dev, "all") && !kernel_is_auto_asked(dev, name));
    assert_true(kernel_is_rung("ladder/naive") && !kernel_is_rung(name));
    assert_false(kernel_has_option(name, "splits=2"));
    tgl_device_close(dev);
}

static void options_that_kernels_have(void **state)
{
    (void)state;
    assert_true(kernel_has_option("simt_128x256x8", "splits=2,whole=1,depth=32"));
    assert_true(kernel_has_option("simt_128x256x8:splits=3", "strips=1"));
    assert_true(kernel_has_option("skinny_4", "splits=2"));
    assert_true(kernel_has_option("skinny_4", "blocks=1"));
    assert_false(kernel_has_option("gemv", "splits=2"));
    assert_false(kernel_has_option("simt_128x256x8", "blocks=1"));
    assert_false(kernel_has_option("nonsense", "splits=2"));
}

/* ---- NumPy headers --------------------------------------------------------------------------- */

static void headers_come_back(void **state)
{
    (void)state;
    const npy_header header = {.type = TGL_F64, .fortran_order = true, .rows = 3, .columns = 0};
    char text[NPY_HEADER_MAX], message[200];
    const size_t length = npy_format(&header, text);
    assert_int_equal(length % 64, 0);
    npy_header again;
    assert_true(npy_parse((unsigned char *)text, length, &again, message, sizeof message));
    assert_true(again.type == TGL_F64 && again.fortran_order);
    assert_true(again.rows == 3 && again.columns == 0 && again.data_offset == length);
    for (size_t cut = 0; cut < length; cut++)
        assert_false(npy_parse((unsigned char *)text, cut, &again, message, sizeof message));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles),
        cmocka_unit_test(geometric_means),
        cmocka_unit_test(seeds_and_streams),
        cmocka_unit_test(inputs_are_what_they_are_called),
        cmocka_unit_test(reference_rows),
        cmocka_unit_test(what_is_not_read_does_not_count),
        cmocka_unit_test(rows_longer_than_a_strip),
        cmocka_unit_test(units),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(denormals),
        cmocka_unit_test(epilogues_of_infinite_sums),
        cmocka_unit_test(a_case_sees_what_is_wrong),
        cmocka_unit_test(a_case_is_the_same_every_time),
        cmocka_unit_test(cases_have_all_kinds_of_results_and_scalars),
        cmocka_unit_test(kernels_that_are_asked_for),
        cmocka_unit_test(options_that_kernels_have),
        cmocka_unit_test(headers_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
