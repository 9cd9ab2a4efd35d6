/* SPDX-License-Identifier: Apache-2.0
 *
 * How programs limit the threads of their BLAS: the variables and the calls of OpenBLAS, MKL and
 * BLIS, and what threadpoolctl looks for.
 */
#include "blas_calls.h"
#include "shim_child.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

void openblas_set_num_threads(int threads);
int openblas_get_num_threads(void);
int scipy_openblas_get_num_threads64_(void);
void tegula_blas_set_num_threads(int threads);
int tegula_blas_get_num_threads(void);

/* In fake_blas.c. */
extern int fake_threads;

static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static bool has_one(void)
{
    return tegula_blas_get_num_threads() == 1;
}

static bool has_more(void)
{
    return tegula_blas_get_num_threads() > 1;
}

static void variables_are_obeyed(void **state)
{
    (void)state;
    static const char *const names[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                        "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_THREAD_LIMIT"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(is_right_in_child(names[i], "1", has_one));
        if (processors() > 1) assert_true(is_right_in_child(names[i], "x", has_more));
    }
    /* The BLAS's own variable comes before OpenMP's, the limit before both. */
    setenv("OMP_NUM_THREADS", "1", 1);
    if (processors() > 1) assert_true(is_right_in_child("OPENBLAS_NUM_THREADS", "2", has_more));
    setenv("OPENBLAS_NUM_THREADS", "2", 1);
    assert_true(is_right_in_child("MKL_NUM_THREADS", "1", has_one));
    assert_true(is_right_in_child("OMP_THREAD_LIMIT", "1", has_one));
    unsetenv("OMP_NUM_THREADS");
    unsetenv("OPENBLAS_NUM_THREADS");
}

static void calls_of_openblas_are_obeyed(void **state)
{
    (void)state;
    openblas_set_num_threads(1);
    assert_int_equal(openblas_get_num_threads(), 1);
    assert_int_equal(scipy_openblas_get_num_threads64_(), 1);
    assert_int_equal(tegula_blas_get_num_threads(), 1);
    assert_int_equal(fake_threads, 1); /* the BLAS behind it, too */
    tegula_blas_set_num_threads(0);
    assert_true(openblas_get_num_threads() >= 1);
    if (processors() > 1) assert_true(openblas_get_num_threads() > 1);
}

/* Looks for a library as threadpoolctl does: its file name begins with libopenblas, and it has the
 * function. */
static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)size;
    if (slash == NULL || strncmp(slash, "/libopenblas_tegula", 19) != 0) return 0;
    *(const char **)data = info->dlpi_name;
    return 1;
}

static void threadpoolctl_finds_the_functions(void **state)
{
    (void)state;
    const char *path = NULL;
    dl_iterate_phdr(look, &path);
    assert_non_null(path);
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    void (*limit)(int);
    *(void **)&limit = dlsym(library, "openblas_set_num_threads");
    assert_non_null(dlsym(library, "openblas_get_num_threads"));
    assert_non_null(limit);
    limit(1);
    assert_int_equal(tegula_blas_get_num_threads(), 1);
    limit(0);
    dlclose(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_obeyed), /* the first: in children without a device */
        cmocka_unit_test(calls_of_openblas_are_obeyed),
        cmocka_unit_test(threadpoolctl_finds_the_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
