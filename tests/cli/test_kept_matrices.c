/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrices that the shapes of a suite share on the host: each shape finds in them what it would
 * find in matrices of its own, whatever shapes came before it.
 */
#include "fake_cuda/setup.h"

#include "problem_options.h"
#include "timed_operands.h"

/* Fails unless the latest set of A and B on the device has these elements. */
static void assert_uploaded(const operands *o, const void *expected_a, const void *expected_b)
{
    const operand_set set = operands_for(o, o->sets - 1);
    char *a = malloc(o->size_a), *b = malloc(o->size_b);
    assert_non_null(a);
    assert_non_null(b);
    assert_status(tgl_download(o->dev, a, set.A, o->size_a, NULL), TGL_OK);
    assert_status(tgl_download(o->dev, b, set.B, o->size_b, NULL), TGL_OK);
    assert_memory_equal(a, expected_a, o->size_a);
    assert_memory_equal(b, expected_b, o->size_b);
    free(a);
    free(b);
}

static void try_shape(tgl_device *dev, const tgl_problem *p, kept_matrices *kept)
{
    operands alone, o;
    assert_status(operands_make(&alone, dev, p, false), TGL_OK);
    assert_status(operands_make_kept(&o, dev, p, kept), TGL_OK);
    assert_true(o.sets > 1);
    assert_memory_equal(o.host_a, alone.host_a, o.size_a);
    assert_memory_equal(o.host_b, alone.host_b, o.size_b);
    assert_uploaded(&o, alone.host_a, alone.host_b);
    memset(o.host_c, 0xff, o.size_c);
    operands_release(&o);
    operands_release(&alone);
}

/* Elements repeat from the 1048583rd on; the matrices of some shapes are larger. */
static void every_shape_has_its_elements(void **state)
{
    (void)state;
    static const struct {
        tgl_type type;
        int m, n, k;
    } rows[] = {
        {TGL_F32, 7, 5, 33},      {TGL_F32, 3, 2, 9},       {TGL_F32, 1100, 900, 1000},
        {TGL_F32, 600, 1200, 30}, {TGL_F32, 2500, 3, 1000}, {TGL_BF16, 50, 1100, 1100},
        {TGL_BF16, 800, 40, 700}, {TGL_F64, 20, 30, 40},    {TGL_F32, 2500, 1300, 1000},
    };
    kept_matrices kept = {0};
    tgl_device *dev = open_device("cuda");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const tgl_problem p = problem_of(rows[i].type, rows[i].m, rows[i].n, rows[i].k);
        try_shape(dev, &p, &kept);
    }
    kept_matrices_free(&kept);
    tgl_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_shape_has_its_elements, fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
