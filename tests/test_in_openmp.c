/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that uses OpenMP itself: within its parallel regions a product uses the calling thread
 * only, outside it uses all threads of the device. Compiled with OpenMP; the library is not.
 */
#include "support.h"

#include <omp.h>

enum { THREADS = 3, N = 160 };

static float A[N * N], results[8][N * N];

static bool multiplies(tgl_device *dev, float *C)
{
    const tgl_problem problem = problem_of(TGL_F32, N, N, N);
    return tgl_gemm(dev, &problem, 1, A, A, 0, C, NULL) == TGL_OK && C[0] == N && C[N * N - 1] == N;
}

static void a_parallel_region_gets_no_more_threads(void **state)
{
    (void)state;
    for (int i = 0; i < N * N; i++)
        A[i] = 1;
    tgl_device *dev = open_cpu(THREADS);
    int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
    wrong += omp_get_num_threads() != 4;
    assert_int_equal(wrong, 0);
    const int before = threads_of_process(); /* those of OpenMP exist now */
#pragma omp parallel for num_threads(4) reduction(+ : wrong)
    for (int i = 0; i < 8; i++)
        wrong += !multiplies(dev, results[i]);
    assert_int_equal(wrong, 0);
    assert_int_equal(threads_of_process(), before);

    assert_true(multiplies(dev, results[0]));
    assert_int_equal(threads_of_process(), before + THREADS - 1);
    tgl_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parallel_region_gets_no_more_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
