/* SPDX-License-Identifier: Apache-2.0
 *
 * Random distributed products between threads of this process, 1 to 8 ranks.
 */
#include "dist_case.h"
#include "thread_transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { CASES = 150, RANKS = 8, TIMEOUT = 60 };

static bool ok[RANKS];

static void run_cases(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    (void)argument;
    ok[rank] = true;
    for (unsigned i = 0; i < CASES && ok[rank]; i++)
        ok[rank] = dist_case_run(dist, dev, 1000 * (unsigned)tgl_dist_ranks(dist) + i);
}

static void random_products(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        thread_run(ranks, TIMEOUT, run_cases, NULL);
        for (int rank = 0; rank < ranks; rank++)
            assert_true(ok[rank]);
    }
}

/* If sums are rounded, all copies of C are still equal to the last bit, and so is the next run's C.
 */
enum { SIDE = 40 };
static float copies[RANKS][SIDE * SIDE];

static void sum_of_ranks(int rank, tgl_dist *dist, tgl_device *dev, void *argument)
{
    (void)dev, (void)argument;
    static float A[RANKS][SIDE * SIDE], B[RANKS][SIDE * SIDE];
    const int ranks = tgl_dist_ranks(dist);
    tgl_problem problem;
    tgl_dist_layout a, b, c;
    tgl_problem_init(&problem, sizeof problem, TGL_F32, SIDE, SIDE, SIDE);
    tgl_dist_columns(&a, sizeof a, SIDE, SIDE, ranks);
    tgl_dist_rows(&b, sizeof b, SIDE, SIDE, ranks);
    tgl_dist_replicated(&c, sizeof c, SIDE, SIDE);
    for (int i = 0; i < SIDE * SIDE; i++) {
        A[rank][i] = (float)(1 + (i * 7 + rank) % 101) / 97.0f;
        B[rank][i] = (float)(1 + (i * 5 + rank) % 103) / 89.0f;
    }
    ok[rank] =
        tgl_dist_gemm(dist, &problem, &a, &b, &c, 1, A[rank], B[rank], 0, copies[rank]) == TGL_OK;
    const float first = copies[rank][SIDE + 1];
    ok[rank] =
        ok[rank] &&
        tgl_dist_gemm(dist, &problem, &a, &b, &c, 1, A[rank], B[rank], 0, copies[rank]) == TGL_OK &&
        copies[rank][SIDE + 1] == first;
}

static void equal_copies(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= RANKS; ranks += 3) {
        thread_run(ranks, TIMEOUT, sum_of_ranks, NULL);
        for (int rank = 0; rank < ranks; rank++) {
            assert_true(ok[rank]);
            assert_memory_equal(copies[rank], copies[0], sizeof copies[0]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_products),
                                       cmocka_unit_test(equal_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
