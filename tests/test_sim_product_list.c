/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of products by kernels: on the simulator, which checks races and bounds, or on the device
 * that TEGULA_TEST_DEVICE names.
 */
#include "product_list_case.h"
#include "weights_case.h"

/* Whether this run takes all lists (a part of them, with the argument "i/n"). Otherwise it takes
 * the short mixed lists, and a quarter of the others. */
static bool takes_all;

/* Lists of products of all types, layouts and alignments. */
static void mixed_lists(void **state)
{
    static const int counts[] = {1, 2, 5, 40, 200};
    for (unsigned i = 0; i < COUNT_OF(counts); i++) {
        if (takes_all ? !sweep_has((int)i) : counts[i] > 5) continue;
        const product_list_case c = {
            .count = counts[i], .side = 70, .seed = 10 + i, .is_mixed = true};
        check_product_list(*state, &c);
    }
}

/* All products share bundles: every layout of each type, with aligned matrices or not. */
static void lists_of_one_class(void **state)
{
    static const struct {
        tgl_type type;
        tgl_compute compute;
    } kinds[] = {{TGL_F32, TGL_COMPUTE_DEFAULT},
                 {TGL_F32, TGL_COMPUTE_TF32},
                 {TGL_F64, TGL_COMPUTE_DEFAULT},
                 {TGL_BF16, TGL_COMPUTE_DEFAULT},
                 {TGL_I8, TGL_COMPUTE_DEFAULT}};
    for (unsigned i = 0; i < 8 * COUNT_OF(kinds); i++) {
        const bool is_chosen = i % 4 == i / 8 % 4;
        if (takes_all ? !sweep_has((int)i) : !is_chosen) continue;
        const product_list_case c = {
            .count = i % 8 != 0  ? 9
                     : takes_all ? 120
                                 : 30,
            .side = takes_all ? 110 : 80, /* more than the side of a tile, 64 */
            .seed = 100 + i,
            .type = kinds[i / 8].type,
            .compute = kinds[i / 8].compute,
            .trans_a = i % 2 != 0,
            .trans_b = i / 2 % 2 != 0,
            .is_aligned = i / 4 % 2 != 0,
        };
        check_product_list(*state, &c);
    }
}

enum { SIDE = 48, PARTS = 4 };

/* A list of products of one matrix of ones, whose results are rectangles of one matrix, one beside
 * the other. Its addresses interlace. */
static void fill_rectangles(tgl_problem *problems, tgl_operands *operands, float *A, float *C)
{
    for (int i = 0; i < PARTS * PARTS; i++) {
        tgl_problem *p = &problems[i];
        const int row = i / PARTS * (SIDE / PARTS), col = i % PARTS * (SIDE / PARTS);
        assert_status(
            tgl_problem_init(p, sizeof *p, TGL_F32, SIDE / PARTS, SIDE / PARTS, 5 + i % 7), TGL_OK);
        p->lda = p->ldb = p->ldc = SIDE;
        operands[i] = (tgl_operands){.size = sizeof *operands,
                                     .alpha = 1,
                                     .A = A + row,
                                     .B = A + col,
                                     .C = C + row * SIDE + col};
    }
}

static void interlaced_results(void **state)
{
    tgl_device *dev = *state;
    tgl_problem problems[PARTS * PARTS];
    tgl_operands operands[PARTS * PARTS];
    float found[SIDE * SIDE];
    float *A = constant_floats(dev, SIDE * SIDE, 1), *C = constant_floats(dev, SIDE * SIDE, 9);
    fill_rectangles(problems, operands, A, C);
    assert_status(tgl_grouped_list(dev, PARTS * PARTS, problems, operands, NULL), TGL_OK);
    assert_status(tgl_download(dev, found, C, sizeof found, NULL), TGL_OK);
    for (int i = 0; i < SIDE * SIDE; i++) {
        const int row = i / SIDE, col = i % SIDE;
        const int part = row / (SIDE / PARTS) * PARTS + col / (SIDE / PARTS);
        assert_true(found[i] == (float)(5 + part % 7));
    }
    tgl_free(dev, A);
    tgl_free(dev, C);
}

/* Products with weights run alone: a bundle would read B as BF16. All operands are ones, given by
 * the bits of two BF16 or four I8, and the factors of columns are 2. */
static void weights_run_alone(void **state)
{
    enum { COUNT = 3, DEPTH = 32, SIZE = SIDE * SIDE };
    static const union {
        unsigned bits;
        float value;
    } ones = {0x3f803f80}, ones_i8 = {0x01010101};
    tgl_device *dev = *state;
    tgl_problem problems[COUNT];
    tgl_operands operands[COUNT];
    float found[COUNT * SIZE];
    float *A = constant_floats(dev, SIDE * DEPTH, ones.value);
    float *B = constant_floats(dev, SIDE * DEPTH, ones_i8.value);
    float *factors = constant_floats(dev, SIDE, 2), *D = constant_floats(dev, COUNT * SIZE, 9);
    for (int i = 0; i < COUNT; i++) {
        problems[i] = weights_problem(TGL_BF16, TGL_I8, SIDE, SIDE, DEPTH, 0);
        problems[i].type_c = TGL_F32;
        operands[i] = (tgl_operands){.size = sizeof *operands,
                                     .alpha = 1,
                                     .A = A,
                                     .B = B,
                                     .C = D + i * SIZE,
                                     .scale_b = factors};
    }
    assert_status(tgl_grouped_list(dev, COUNT, problems, operands, NULL), TGL_OK);
    assert_status(tgl_download(dev, found, D, sizeof found, NULL), TGL_OK);
    for (int i = 0; i < COUNT * SIZE; i++)
        assert_true(found[i] == 2 * DEPTH);
    tgl_free(dev, A);
    tgl_free(dev, B);
    tgl_free(dev, factors);
    tgl_free(dev, D);
}

/* Results that overlap are not allowed; the simulator finds them. */
static void overlapping_results(void **state)
{
    tgl_device *dev = *state;
    tgl_problem problems[PARTS * PARTS];
    tgl_operands operands[PARTS * PARTS];
    if (getenv("TEGULA_TEST_DEVICE") != NULL) skip();
    float *A = constant_floats(dev, SIDE * SIDE, 1), *C = constant_floats(dev, SIDE * SIDE, 9);
    fill_rectangles(problems, operands, A, C);
    operands[6].C = (float *)operands[5].C + 1;
    char why[700];
    assert_status(tgl_grouped_list(dev, PARTS * PARTS, problems, operands, NULL), TGL_KERNEL_FAULT);
    tgl_last_error(why, sizeof why);
    if (strstr(why, "race: writes row") == NULL) fail_msg("%s", why);
    tgl_free(dev, A);
    tgl_free(dev, C);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_lists),         cmocka_unit_test(lists_of_one_class),
        cmocka_unit_test(interlaced_results),  cmocka_unit_test(weights_run_alone),
        cmocka_unit_test(overlapping_results),
    };
    takes_all = argc > 1;
    sweep_arguments(argc, argv);
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
