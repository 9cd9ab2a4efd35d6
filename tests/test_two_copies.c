/* SPDX-License-Identifier: Apache-2.0
 *
 * Two copies of the library in a process, as when a Python package brings one and a preloaded
 * drop-in another. Here the other copy is this program, which exports functions of the same names.
 * The loader finds those first: calls within the library must not reach them. A drop-in asks for
 * the version of the symbols, which this copy does not have.
 */
#include "tegula/tegula.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int strayed; /* calls of the functions below */

#define EXPORT __attribute__((visibility("default")))

/* The public functions that the library itself calls. */
EXPORT void tgl_device_close(tgl_device *dev)
{
    (void)dev;
    strayed++;
}

EXPORT tgl_status tgl_device_open(const char *name, const tgl_device_options *options,
                                  tgl_device **dev)
{
    (void)name, (void)options, (void)dev;
    strayed++;
    return TGL_DRIVER;
}

EXPORT size_t tgl_last_error(char *text, size_t size)
{
    (void)text, (void)size;
    strayed++;
    return 0;
}

EXPORT tgl_status tgl_plan_run_operands(const tgl_plan *plan, const tgl_operands *operands,
                                        void *stream)
{
    (void)plan, (void)operands, (void)stream;
    strayed++;
    return TGL_DRIVER;
}

EXPORT size_t tgl_type_size(tgl_type type)
{
    (void)type;
    strayed++;
    return 0;
}

EXPORT const char *tgl_version(void)
{
    strayed++;
    return "another copy";
}

typedef struct copy {
    __typeof__(&tgl_device_open) open;
    __typeof__(&tgl_device_close) close;
    __typeof__(&tgl_problem_init) problem_init;
    __typeof__(&tgl_plan_create) plan_create;
    __typeof__(&tgl_plan_run) plan_run;
    __typeof__(&tgl_plan_destroy) plan_destroy;
    __typeof__(&tgl_dgemm) dgemm;
} copy;

static void load(copy *c)
{
    void *handle = dlopen(SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) fail_msg("%s", dlerror());
    *(void **)&c->open = dlsym(handle, "tgl_device_open");
    *(void **)&c->close = dlsym(handle, "tgl_device_close");
    *(void **)&c->problem_init = dlsym(handle, "tgl_problem_init");
    *(void **)&c->plan_create = dlsym(handle, "tgl_plan_create");
    *(void **)&c->plan_run = dlsym(handle, "tgl_plan_run");
    *(void **)&c->plan_destroy = dlsym(handle, "tgl_plan_destroy");
    *(void **)&c->dgemm = dlsym(handle, "tgl_dgemm");
}

enum { N = 100 };
static double A[N * N], C[N * N];

static void calls_stay_in_their_copy(void **state)
{
    (void)state;
    copy c;
    tgl_device *dev;
    tgl_problem problem;
    tgl_plan *plan;
    load(&c);
    assert_ptr_not_equal(c.open, tgl_device_open);
    for (int i = 0; i < N * N; i++)
        A[i] = 1;
    assert_int_equal(c.open("cpu", NULL, &dev), TGL_OK);
    assert_int_equal(c.dgemm(dev, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, N, N, N, 1, A, N, A, N,
                             0, C, N, NULL),
                     TGL_OK);
    assert_true(C[N * N - 1] == N);
    assert_int_equal(c.problem_init(&problem, sizeof problem, TGL_F64, N, N, N), TGL_OK);
    assert_int_equal(c.plan_create(dev, &problem, NULL, &plan), TGL_OK);
    C[0] = 0;
    assert_int_equal(c.plan_run(plan, 1, A, A, 0, C, NULL), TGL_OK);
    assert_true(C[0] == N);
    c.plan_destroy(plan);
    c.close(dev);
    assert_int_equal(strayed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_stay_in_their_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
