/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of products on the cpu device. test_sim_product_list.c tests them on devices that compute
 * several products of a list in one launch.
 */
#include "product_list_case.h"

/* Lists of 1 to 200 products of all types. */
static void random_lists(void **state)
{
    static const int counts[] = {1, 2, 3, 7, 20, 64, 200};
    for (unsigned i = 0; i < 3 * COUNT_OF(counts); i++) {
        const product_list_case c = {
            .count = counts[i % COUNT_OF(counts)], .side = 70, .seed = i, .is_mixed = true};
        check_product_list(*state, &c);
    }
}

/* Nothing is computed if any product of the list is wrong. */
static void one_wrong_product(void **state)
{
    enum { WRONG = 7 };
    const product_list_case c = {.count = 12, .side = 30, .seed = 1, .is_mixed = true};
    product_list list = make_product_list(*state, &c);
    tgl_problem *p = &list.problems[WRONG];
    const int64_t ldb = p->ldb;
    p->m = p->n = p->k = 5;
    p->ldb = 3;
    assert_status(tgl_grouped_list(*state, c.count, list.problems, list.operands, NULL),
                  TGL_BAD_LDB);
    assert_no_products(*state, &list);
    p->ldb = ldb + 5;
    list.operands[WRONG].alpha = 1;
    list.operands[WRONG].A = NULL;
    assert_status(tgl_grouped_list(*state, c.count, list.problems, list.operands, NULL), TGL_BAD_A);
    assert_no_products(*state, &list);
    free_product_list(*state, &list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lists),
        cmocka_unit_test(one_wrong_product),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
