/* SPDX-License-Identifier: Apache-2.0
 *
 * What TGL_COMPUTE_DEFAULT means, by chip, type and TEGULA_COMPUTE.
 */
#include "backend/backend.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

static void set_mode(const char *mode)
{
    if (mode != NULL)
        assert_int_equal(setenv("TEGULA_COMPUTE", mode, 1), 0);
    else
        assert_int_equal(unsetenv("TEGULA_COMPUTE"), 0);
}

static int forget_mode(void **state)
{
    (void)state;
    return unsetenv("TEGULA_COMPUTE");
}

/* Fails unless the chip's kernel for a large product has a name that begins with `family`. */
static void assert_kernel(const char *chip, tgl_type type, tgl_compute compute, const char *family)
{
    char text[32768], line[64];
    tgl_problem problem = problem_of(type, 2048, 2048, 2048);
    problem.compute = compute;
    snprintf(line, sizeof line, "\nchoice      %s_", family);
    assert_status(tgl_chip_explain(chip, &problem, NULL, text, sizeof text, NULL), TGL_OK);
    if (strstr(text, line) == NULL) fail_msg("%s is not chosen on %s:\n%s", family, chip, text);
}

static void on_chips(void **state)
{
    (void)state;
    set_mode(NULL);
    assert_kernel("h200", TGL_F32, TGL_COMPUTE_DEFAULT, "accurate");
    assert_kernel("h100", TGL_F32, TGL_COMPUTE_DEFAULT, "accurate");
    assert_kernel("a100", TGL_F32, TGL_COMPUTE_DEFAULT, "simt");
    assert_kernel("h200", TGL_F32, TGL_COMPUTE_IEEE, "simt");
    assert_kernel("h200", TGL_F32, TGL_COMPUTE_TF32, "wgmma");
    assert_kernel("h200", TGL_F64, TGL_COMPUTE_DEFAULT, "dmma");
    assert_kernel("h200", TGL_F16, TGL_COMPUTE_DEFAULT, "wgmma");
}

/* The variable changes neither a mode that the problem asks for, nor other types than F32. */
static void by_environment(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *h200, *a100;
    } rows[] = {{"", "accurate", "simt"},
                {"default", "accurate", "simt"},
                {"ieee", "simt", "simt"},
                {"accurate", "accurate", "simt"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        set_mode(rows[i].mode);
        assert_kernel("h200", TGL_F32, TGL_COMPUTE_DEFAULT, rows[i].h200);
        assert_kernel("a100", TGL_F32, TGL_COMPUTE_DEFAULT, rows[i].a100);
        assert_kernel("h200", TGL_F32, TGL_COMPUTE_IEEE, "simt");
        assert_kernel("h200", TGL_F32, TGL_COMPUTE_ACCURATE, "accurate");
        assert_kernel("h200", TGL_F64, TGL_COMPUTE_DEFAULT, "dmma");
    }
}

/* A device keeps the mode that it was opened with. */
static void of_an_open_device(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        tgl_compute expected;
    } rows[] = {{NULL, TGL_COMPUTE_DEFAULT}, /* the cpu has no chip */
                {"ieee", TGL_COMPUTE_IEEE},
                {"accurate", TGL_COMPUTE_ACCURATE}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const float x[4] = {1, 2, 3, 4};
        float y[4] = {0};
        tgl_device *dev;
        tgl_plan *plan, *other;
        set_mode(rows[i].mode);
        assert_status(tgl_device_open("cpu", NULL, &dev), TGL_OK);
        set_mode("ieee");
        tgl_problem problem = problem_of(TGL_F32, 2, 2, 2);
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
        assert_int_equal(plan->shape.compute, rows[i].expected);
        assert_status(tgl_gemm(dev, &problem, 1, x, x, 0, y, NULL), TGL_OK);
        assert_true(y[0] == 7 && y[3] == 22);
        problem.compute = TGL_COMPUTE_FAST;
        assert_status(tgl_plan_create(dev, &problem, NULL, &other), TGL_OK);
        assert_int_equal(other->shape.compute, TGL_COMPUTE_FAST);
        tgl_plan_destroy(plan);
        tgl_plan_destroy(other);
        tgl_device_close(dev);
    }
}

static void unknown_modes(void **state)
{
    (void)state;
    static const char *const modes[] = {"fast", "tf32", "IEEE", "ieee ", "2", "accurate,tf32"};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        tgl_device *dev = (tgl_device *)modes;
        const tgl_problem problem = problem_of(TGL_F32, 2, 2, 2);
        char sentence[100];
        snprintf(sentence, sizeof sentence,
                 "TEGULA_COMPUTE is \"%s\"; it must be default, ieee or accurate", modes[i]);
        set_mode(modes[i]);
        forget_error();
        assert_status(tgl_device_open("cpu", NULL, &dev), TGL_BAD_SETTING);
        assert_null(dev);
        assert_sentence(sentence);
        forget_error();
        assert_status(tgl_chip_explain("h200", &problem, NULL, NULL, 0, NULL), TGL_BAD_SETTING);
        assert_sentence(sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(on_chips, forget_mode),
        cmocka_unit_test_teardown(by_environment, forget_mode),
        cmocka_unit_test_teardown(of_an_open_device, forget_mode),
        cmocka_unit_test_teardown(unknown_modes, forget_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
