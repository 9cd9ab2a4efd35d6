/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of e4m3 and e5m2 with factors of blocks by mma.sync and wgmma: all kinds of factors,
 * layouts and alignments, blocks that are cut. The simulator checks races and bounds. With
 * TEGULA_TEST_DEVICE=cuda:0 the same cases run on a GPU. With the argument "i/n" it takes the i-th
 * of n parts of all cases, otherwise a few: most of the time is that of compiling a kernel for
 * each.
 */
#include "block_scale_cases.h"
#include "support.h"

/* As in test_sim_float8.c. */
static const double PROMOTED = 4 * 34 * 0x1p-13, IN_FP32 = 1024 * 0x1p-24;

static bool takes_all;

/* chosen: the number of the case in a run without arguments; -1: none. With arguments a run takes a
 * part of all cases. */
static const struct row {
    const char *kernel;
    int chosen;
} rows[] = {
    {"mma_64x64x128_s2:splits=2", -1},
    {"wgmma_128x128", 1},
    {"mma_128x128x64", 7},
    {"wgmma_256x128:cluster=2", 4},
    {"wgmma_64x32:exchanged=1", 4},
    {"mma_16x64x256_s2", 1},
    {"wgmma_64x64:splits=2", -1},
    {"wgmma_128x192", -1},
    {"wgmma_64x64_s12:splits=2,in_cluster=1", 2},
    {"mma_64x128x64:splits=3", -1},
    {"wgmma_128x96:exchanged=1", -1},
};

static void check(tgl_device *dev, const scaled_case *c, tgl_status status)
{
    char fault[512];
    const tgl_status got = scaled_case_run(dev, c, fault, NULL);
    char why[1024] = "";
    if (got != status) tgl_last_error(why, sizeof why);
    if (why[0] != '\0') print_error("%s: %s\n", c->kernel != NULL ? c->kernel : "planned", why);
    assert_status(got, status);
    assert_string_equal(fault, "");
}

/* Each kernel takes all kinds of factors; layouts, types and epilogues change from case to case.
 * wgmma copies factors four at a time if their numbers and leading dimensions are multiples of 4.
 */
static void every_kind(void **state)
{
    static const int64_t sizes[][3] = {{70, 150, 300}, {152, 72, 272}};
    unsigned number = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (unsigned j = 0; j < 2 * BLOCK_SCALE_KINDS; j++, number++) {
            const struct row *r = &rows[i];
            if (takes_all ? !sweep_has((int)number) : r->chosen != (int)j) continue;
            const bool is_mma = strncmp(r->kernel, "mma", 3) == 0;
            const scaled_case c =
                block_scale_case(number, sizes[j % 2], r->kernel, is_mma ? IN_FP32 : PROMOTED);
            check(*state, &c, TGL_OK);
        }
}

/* With more steps of K than stages, the factors of a stage replace those of an earlier one. The
 * left operand has factors of rows, and the right one factors of blocks or of columns. */
static void stages_again(void **state)
{
    static const struct {
        const char *kernel;
        unsigned number; /* of block_scale_case(): the kinds of factors */
    } some[] = {{"wgmma_256x128", 0}, {"wgmma_256x128", 1}};
    static const int64_t size[] = {40, 72, 5 * 128 + 16};
    for (unsigned i = 0; i < COUNT_OF(some); i++) {
        if (!sweep_has((int)i)) continue;
        const scaled_case c = block_scale_case(some[i].number, size, some[i].kernel, PROMOTED);
        check(*state, &c, TGL_OK);
    }
}

/* The planner's choices for batches of products with few rows, few columns, a k of 1 and a k of 0.
 */
static void planned(void **state)
{
    static const int64_t sizes[][3] = {{1, 260, 140}, {140, 3, 500}, {33, 65, 1}, {5, 7, 0}};
    for (unsigned i = 0; i < (takes_all ? 2 * COUNT_OF(sizes) : 1); i++) {
        if (!sweep_has((int)i)) continue;
        scaled_case c = block_scale_case(i, sizes[i % COUNT_OF(sizes)], NULL, PROMOTED);
        c.problem.batch = 2;
        c.problem.stride_a = c.problem.lda * 512;
        c.problem.stride_b = c.problem.ldb * 512;
        c.problem.stride_c = c.problem.ldc * 300;
        check(*state, &c, TGL_OK);
    }
}

static void special_factors(void **state)
{
    static const char *const some[] = {"wgmma_64x32:exchanged=1", "mma_16x64x256_s2", "wgmma_64x64",
                                       "mma_64x64x128"};
    for (size_t i = 0; i < (takes_all ? COUNT_OF(some) : 2); i++)
        if (sweep_has((int)i)) check_special_factors(*state, some[i]);
}

/* A tile of 192 columns that begins at column 80, and so has columns of three blocks. */
static void three_blocks(void **state)
{
    static const int64_t size[] = {40, 270, 140};
    const scaled_case c = block_scale_case(0, size, "wgmma_128x192", PROMOTED);
    check(*state, &c, TGL_OK);
}

/* Products with factors of blocks have no strips, whose factors would begin at any line. */
static void no_strips(void **state)
{
    static const int64_t size[] = {40, 130, 140};
    const scaled_case c = block_scale_case(0, size, "mma_64x64x128:strips=1", IN_FP32);
    check(*state, &c, TGL_UNSUPPORTED);
}

/* With compute mode FAST the factors of blocks are applied, too. */
static void fast(void **state)
{
    static const int64_t size[] = {40, 48, 256};
    if (!takes_all) skip();
    scaled_case c = block_scale_case(0, size, "wgmma_64x64", PROMOTED);
    c.problem.compute = TGL_COMPUTE_FAST;
    check(*state, &c, TGL_OK);
}

int main(int argc, char **argv)
{
    takes_all = argc > 1;
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind),   cmocka_unit_test(stages_again),
        cmocka_unit_test(planned),      cmocka_unit_test(special_factors),
        cmocka_unit_test(three_blocks), cmocka_unit_test(no_strips),
        cmocka_unit_test(fast),
    };
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
