/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of the ladder's results: right results pass, and results with one wrong element do not,
 * whether the element is compared with double precision or with another result.
 */
#include "cli.h"
#include "truth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    tgl_device *dev;
    operands operands;
    truth *truth;
    void *result; /* right */
    float *C;     /* the same, if it is of f32 */
    int64_t count;
} fixture;

static fixture *make_fixture_of(tgl_type type, int64_t m, int64_t n, int64_t k)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_int_equal(tgl_device_open("cpu", NULL, &f->dev), TGL_OK);
    const tgl_problem problem = cli_problem(type, m, n, k);
    assert_int_equal(operands_make(&f->operands, f->dev, &problem, true), TGL_OK);
    assert_int_equal(f->operands.sets, 1); /* a host device's memory is used as it is */
    f->truth = truth_make(&f->operands);
    assert_non_null(f->truth);
    const operand_set set = operands_for(&f->operands, 7);
    assert_int_equal(tgl_gemm(f->dev, &problem, 1, set.A, set.B, 0, set.C, NULL), TGL_OK);
    f->result = set.C;
    f->C = type == TGL_F32 ? set.C : NULL;
    f->count = m * n;
    return f;
}

static fixture *make_fixture(int64_t m, int64_t n, int64_t k)
{
    return make_fixture_of(TGL_F32, m, n, k);
}

static void free_fixture(fixture *f)
{
    truth_free(f->truth);
    operands_release(&f->operands);
    tgl_device_close(f->dev);
    free(f);
}

/* Fails the test unless the result is refused with `value` at C[at]. */
static void assert_refused(fixture *f, int64_t at, float value)
{
    const float kept = f->C[at];
    f->C[at] = value;
    const verdict v = truth_judge(f->truth, "other", f->C);
    assert_false(v.right);
    assert_true(v.why[0] != '\0');
    f->C[at] = kept;
}

static void assert_faults_refused(fixture *f)
{
    for (int64_t at = 0; at < f->count; at += f->count / 11 + 1) {
        assert_refused(f, at, NAN);
        assert_refused(f, at, INFINITY);
        assert_refused(f, at, f->C[at] + 1);
        assert_refused(f, at, 0);
    }
    assert_refused(f, f->count - 1, NAN);
}

static void small_results_are_known_everywhere(void **state)
{
    (void)state;
    fixture *f = make_fixture(37, 53, 41);
    assert_true(truth_is_whole(f->truth));
    assert_faults_refused(f);
    const verdict v = truth_judge(f->truth, "cpu", f->C);
    assert_true(v.right);
    assert_int_equal(v.exact, f->count);
    assert_true(v.max_error > 0 && v.max_error < 41 && v.rms_error < v.max_error);
    assert_null(truth_peer(f->truth));
    free_fixture(f);
}

/* Above a thousand cubed, elements are compared with the first right result. */
static void large_results_are_compared_with_the_first(void **state)
{
    (void)state;
    fixture *f = make_fixture(1031, 1030, 1033);
    assert_false(truth_is_whole(f->truth));
    const int64_t unknown = 500 * 1030 + 501;
    assert_refused(f, unknown, NAN); /* also without another result to compare with */
    assert_refused(f, 0, NAN);
    assert_null(truth_peer(f->truth));
    assert_true(truth_judge(f->truth, "first", f->C).right);
    assert_string_equal(truth_peer(f->truth), "first");
    assert_faults_refused(f);
    assert_refused(f, unknown, NAN);
    assert_refused(f, unknown, f->C[unknown] + 0.1f);
    const verdict v = truth_judge(f->truth, "second", f->C);
    assert_true(v.right);
    assert_string_equal(truth_peer(f->truth), "first");
    assert_true(v.exact >= 2 * 4 * 1030 && v.exact < f->count);
    free_fixture(f);
}

/* Whether the result passes with these bits at `at`. */
static bool is_right_with(fixture *f, int64_t at, uint16_t bits)
{
    uint16_t *C = f->result;
    const uint16_t kept = C[at];
    C[at] = bits;
    const bool right = truth_judge(f->truth, "other", C).right;
    C[at] = kept;
    return right;
}

/* A result of f16 may be rounded, and is compared with others that are, too. */
static void results_of_f16(void **state)
{
    (void)state;
    enum { A_NAN = 0x7e00, AN_INFINITY = 0x7c00, EIGHT = 0x4800, SIXTEEN = 0x4c00 };
    fixture *f = make_fixture_of(TGL_F16, 37, 53, 41);
    const uint16_t *C = f->result;
    for (int64_t at = 0; at < f->count; at += f->count / 11 + 1) {
        assert_true(is_right_with(f, at, C[at]));
        assert_false(is_right_with(f, at, A_NAN) || is_right_with(f, at, AN_INFINITY));
        assert_false(is_right_with(f, at, C[at] ^ 4)); /* four units in the last place */
    }
    free_fixture(f);

    f = make_fixture_of(TGL_F16, 1031, 1030, 1033);
    C = f->result;
    assert_false(truth_is_whole(f->truth));
    assert_true(truth_judge(f->truth, "first", C).right);
    int64_t unknown = 500 * 1030 + 501;
    while (C[unknown] < EIGHT || C[unknown] >= SIXTEEN - 32)
        unknown++;
    assert_true(is_right_with(f, unknown, C[unknown] + 2));
    assert_false(is_right_with(f, unknown, C[unknown] + 16));
    assert_false(is_right_with(f, unknown, A_NAN));
    free_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_of_f16),
        cmocka_unit_test(small_results_are_known_everywhere),
        cmocka_unit_test(large_results_are_compared_with_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
