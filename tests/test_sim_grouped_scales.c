/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products of 8-bit types with scale factors by kernels: on the simulator, which checks
 * races and bounds, or on the device that TEGULA_TEST_DEVICE names. With the argument "i/n" it
 * takes the i-th of n parts of all cases, otherwise a few: most of the time is that of compiling a
 * kernel for each.
 */
#include "grouped_scale_cases.h"
#include "support.h"

/* As in test_sim_float8.c. */
static const double PROMOTED = 4 * 34 * 0x1p-13, IN_FP32 = 1024 * 0x1p-24;

static bool takes_all;

static double error_of(const char *kernel)
{
    return kernel != NULL && strncmp(kernel, "mma", 3) == 0 ? IN_FP32 : PROMOTED;
}

/* chosen: a bit for each pair of factors in a run without arguments. With arguments a run takes a
 * part of all cases. */
static const struct row {
    const char *kernel;
    unsigned chosen;
} rows[] = {
    {NULL, 0x01},
    {"wgmma_64x64", 0x16},
    {"wgmma_128x128", 0x01},
    {"wgmma_64x32:exchanged=1", 0x21},
    {"mma_64x64x128", 0x25},
    {"mma_16x64x256_s2", 0x01},
    {"wgmma_256x128", 0x00},
    {"wgmma_64x64_s12:exchanged=1", 0x00},
    {"wgmma_128x96", 0x00},
    {"wgmma_128x64_s8:columns=2", 0x00},
    {"mma_128x128x64", 0x00},
};

/* Each kernel takes all pairs of factors; types, layouts and epilogues change from case to case. */
static void every_kernel(void **state)
{
    static const grouped_scale_size sizes[] = {{150, 140, 300}, {132, 144, 272}};
    unsigned number = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int j = 0; j < 2 * SCALE_PAIRS; j++, number++) {
            const struct row *r = &rows[i];
            const int pair = j % SCALE_PAIRS;
            const bool is_chosen = (r->chosen >> pair & 1) != 0 && j < SCALE_PAIRS;
            if (takes_all ? !sweep_has((int)number) : !is_chosen) continue;
            group_list list = {.grouping = (i + (size_t)j + (size_t)pair) % 3 == 2 ||
                                                   !scale_pair_is_of(pair, TGL_GROUPED_ROWS)
                                               ? TGL_GROUPED_MASKED
                                               : TGL_GROUPED_ROWS,
                               .form = TGL_GROUP_SIZES};
            draw_group_list(&list, 5, sizes[j % 2].m, number);
            const scaled_case c = grouped_scale_case(number, &list, &sizes[j % 2], pair, r->kernel,
                                                     error_of(r->kernel));
            check_grouped_scales(*state, &c);
        }
}

/* Sizes of 0 and 1, one group that has all rows, and sizes that are not possible. The kernels must
 * not access factors outside of their arrays. */
static void adversarial_sizes(void **state)
{
    static const char *const kernels[] = {"wgmma_64x64", "wgmma_64x32:exchanged=1", "mma_64x64x128",
                                          "wgmma_256x128"};
    static const group_list lists[] = {
        {TGL_GROUPED_ROWS, TGL_GROUP_SIZES, 4, {0, 0, 0, 0}},
        {TGL_GROUPED_ROWS, TGL_GROUP_SIZES, 4, {1, 1, 1, 1}},
        {TGL_GROUPED_MASKED, TGL_GROUP_SIZES, 4, {0, 130, 1, 65}},
        {TGL_GROUPED_ROWS, TGL_GROUP_SIZES, 4, {0, 0, 130, 0}},
        {TGL_GROUPED_ROWS, TGL_GROUP_ENDS, 4, {100, 20, 200, -7}},
        {TGL_GROUPED_ROWS, TGL_GROUP_SIZES, 4, {-5, 61, -1, 1000}},
        {TGL_GROUPED_MASKED, TGL_GROUP_SIZES, 4, {INT32_MAX, -1, INT32_MIN, 131}},
        {TGL_GROUPED_ROWS, TGL_GROUP_SIZES, 4, {INT32_MAX, INT32_MAX, INT32_MIN, INT32_MAX}},
        {TGL_GROUPED_ROWS, TGL_GROUP_ENDS, 4, {INT32_MIN, 129, INT32_MAX, 7}},
    };
    static const grouped_scale_size size = {130, 140, 200};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (size_t j = 0; j < COUNT_OF(kernels); j++) {
            const scaled_case c =
                grouped_scale_case(8, &lists[i], &size, 0, kernels[j], error_of(kernels[j]));
            check_grouped_scales(*state, &c);
        }
}

/* TMA copies factors of lines if their numbers are multiples of 4, from a multiple of 4 on: groups
 * begin at each of the four places. Tiles of 256 rows have one to four parts of 64 rows. */
static void factors_by_tma(void **state)
{
    static const char *const kernels[] = {"wgmma_256x128", "wgmma_64x32:exchanged=1"};
    static const group_list lists[] = {
        {TGL_GROUPED_ROWS, TGL_GROUP_SIZES, 5, {61, 2, 131, 7, 75}},
        {TGL_GROUPED_MASKED, TGL_GROUP_SIZES, 3, {275, 64, 193}},
    };
    static const grouped_scale_size size = {276, 144, 5 * 128 - 16};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (size_t j = 0; j < COUNT_OF(kernels); j++) {
            const scaled_case c =
                grouped_scale_case(8, &lists[i], &size, 0, kernels[j], error_of(kernels[j]));
            check_grouped_scales(*state, &c);
        }
}

/* If alpha is 0, no factor is read. */
static void without_product(void **state)
{
    static const grouped_scale_size size = {70, 60, 64};
    static const group_list list = {TGL_GROUPED_ROWS, TGL_GROUP_SIZES, 3, {10, 0, 30}};
    static const char *const kernels[] = {"wgmma_64x64", "mma_64x64x128"};
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        scaled_case c = grouped_scale_case(1, &list, &size, 2, kernels[i], error_of(kernels[i]));
        c.alpha = 0;
        check_grouped_scales(*state, &c);
    }
}

/* Products of int8 have factors of groups as well. */
static void integers(void **state)
{
    static const grouped_scale_size size = {150, 72, 80};
    static const group_list list = {TGL_GROUPED_ROWS, TGL_GROUP_SIZES, 3, {70, 0, 33}};
    static const char *const kernels[] = {"wgmma_64x64", "mma_64x64x128"};
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        scaled_case c = grouped_scale_case(0, &list, &size, 2, kernels[i], 0x1p-23);
        c.problem.type_a = c.problem.type_b = TGL_I8;
        check_grouped_scales(*state, &c);
    }
}

int main(int argc, char **argv)
{
    takes_all = argc > 1;
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel),   cmocka_unit_test(adversarial_sizes),
        cmocka_unit_test(factors_by_tma), cmocka_unit_test(without_product),
        cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
