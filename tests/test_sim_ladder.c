/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rung of the ladder on the simulator, over small and ragged shapes: every pair of sizes
 * of two dimensions occurs, and every pair of a size and a pair of alpha and beta. An argument
 * "i/n" takes the i-th of n parts of the kernels.
 */
#include "gemm_case.h"
#include "support.h"

static const int64_t sizes[] = {1, 3, 31, 32, 33, 64, 65, 127, 130};
static const double scalars[] = {0, 1, -0.5};
enum { SIZES = COUNT_OF(sizes), SCALARS = COUNT_OF(scalars) };

static int part = 0, parts = 1;

/* Case i*SIZES + j of the array. Any two of the digits i, j, i+j and i+2j, modulo 9, take all 81
 * pairs of values as i and j do, because 2 has an inverse modulo 9. */
static gemm_case make_case(int i, int j)
{
    const int scalar = (i + 2 * j) % SIZES;
    const int layout = i + 5 * j;
    tgl_problem p = problem_of(TGL_F32, sizes[i], sizes[j], sizes[(i + j) % SIZES]);
    if (layout % 2 != 0) { /* some with padding that keeps rows on 16 bytes, some that does not */
        p.lda = (p.k + 3) / 4 * 4 + layout % 5;
        p.ldb = (p.n + 3) / 4 * 4 + layout % 3;
        p.ldc = (p.n + 3) / 4 * 4 + layout % 7;
    }
    return (gemm_case){
        .problem = p,
        .alpha = scalars[scalar / SCALARS],
        .beta = scalars[scalar % SCALARS],
        .fill = UNIFORM_11,
        .at_end = layout % 3 != 0, /* the base is then aligned only as the size is */
        .seed = (uint64_t)(1 + i * SIZES + j),
    };
}

static void run_all_shapes(tgl_device *dev, const char *kernel)
{
    gemm_outcome outcome;
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++) {
            gemm_case c = make_case(i, j);
            c.kernel = kernel;
            gemm_case_run(dev, &c, false, &outcome);
            if (outcome.fault[0] != '\0') fail_msg("%s", outcome.fault);
            assert_status(outcome.status, TGL_OK);
        }
}

static void test_kernels(void **state)
{
    const char *kernel;
    for (int i = 0; (kernel = tgl_kernel_name(*state, i)) != NULL; i++)
        if (strncmp(kernel, "ladder/", 7) == 0 && i % parts == part) run_all_shapes(*state, kernel);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels)};
    if (argc > 1 && (sscanf(argv[1], "%d/%d", &part, &parts) != 2 || parts < 1)) return 2;
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
