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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
