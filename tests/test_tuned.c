/* SPDX-License-Identifier: Apache-2.0
 *
 * The tuned table: its rows, and for which products they are taken.
 */
#include "plan/tuned.h"
#include "plan_shape.h"

static void tuned_rows_name_what_there_is(void **state)
{
    (void)state;
    const tgl_tuned *row;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        tgl_request request;
        assert_non_null(tgl_chip_find(row->chip));
        assert_status(tgl_request_make(row->kernel, 0, &request), TGL_OK);
        assert_true(request.is_named && !request.choice.family->is_on_request);
        assert_int_equal(strlen(row->layout), 2);
        assert_true(row->m > 0 && row->n > 0 && row->k > 0 && row->batch > 0);
        const tgl_shape s = shape_of_row(row);
        tgl_candidate best;
        tgl_planner_best_of(tgl_chip_find(row->chip), &s, &request.choice, request.strips,
                            TGL_WORKSPACE_DEFAULT, &best);
        if (best.rejected != NULL)
            fail_msg("%s %dx%dx%d: %s: %s", row->type, row->m, row->n, row->k, row->kernel,
                     best.rejected);
        assert_true(tgl_tuned_is_for(row, "h200", &s));
    }
}

/* What the planner would choose without the row. */
static tgl_candidate choose_without(const tgl_tuned *row, const tgl_chip *chip, const tgl_shape *s)
{
    tgl_chip unknown = *chip; /* a chip without rows in the table */
    unknown.name = "";
    const tgl_candidate predicted = choose_on(&unknown, s, NULL);
    const tgl_tuned *next = tgl_tuned_find(chip->name, s, row);
    if (next == NULL) return predicted;
    const tgl_request request = request_of(next->kernel);
    tgl_candidate similar;
    tgl_planner_best_of(chip, s, &request.choice, -1, TGL_WORKSPACE_DEFAULT, &similar);
    return tgl_tuned_holds(next, chip->name, s, &similar, &predicted) ? similar : predicted;
}

static bool is_needed(const tgl_tuned *row, const char *chip, tgl_type type, tgl_compute compute)
{
    char with[TGL_KERNEL_STRING_SIZE], without[TGL_KERNEL_STRING_SIZE];
    tgl_shape s = shape_of_row(row);
    if (s.type_a == TGL_BF16) s.type_a = s.type_b = s.type_c = s.type_d = type;
    if (s.type_a == TGL_F32 && s.compute != TGL_COMPUTE_TF32) s.compute = compute;
    const tgl_candidate chosen = choose(chip, &s);
    const tgl_candidate other = choose_without(row, chip_of(chip), &s);
    return strcmp(tgl_candidate_string(&chosen, with, sizeof with),
                  tgl_candidate_string(&other, without, sizeof without)) != 0;
}

/* Without its row, the planner would choose another kernel for each product of the table. */
static void no_row_says_what_the_planner_says_anyway(void **state)
{
    (void)state;
    const tgl_tuned *row;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        const char *const chips[] = {row->chip, "h100"}; /* the second takes the rows of h200 */
        bool needed = false;
        for (size_t j = 0; j < COUNT_OF(chips) && !needed; j++)
            needed = is_needed(row, chips[j], TGL_BF16, TGL_COMPUTE_IEEE) ||
                     is_needed(row, chips[j], TGL_F16, TGL_COMPUTE_ACCURATE);
        if (!needed)
            fail_msg("this row may go: %s %s %dx%dx%d, batch %d: %s", row->type, row->layout,
                     row->m, row->n, row->k, row->batch, row->kernel);
    }
}

static void an_h100_has_the_rows_of_an_h200(void **state)
{
    (void)state;
    const tgl_tuned *row;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        const tgl_shape s = shape_of_row(row);
        assert_non_null(tgl_tuned_find("h200", &s, NULL));
        assert_ptr_equal(tgl_tuned_find("h100", &s, NULL), tgl_tuned_find("h200", &s, NULL));
        assert_null(tgl_tuned_find("a100", &s, NULL));
    }
}

/* Measured rows hold on their chip. On an H100 they hold up to 10 % above the best prediction. */
static void rows_of_another_chip_are_advice(void **state)
{
    (void)state;
    const tgl_tuned row = {"h200", "bf16", "NN", 1024, 1024, 1024, 1, "wgmma_128x128"};
    const tgl_shape s = shape_of_row(&row);
    tgl_request request;
    assert_status(tgl_request_make(row.kernel, 0, &request), TGL_OK);
    tgl_candidate tuned = {.choice = request.choice, .seconds = 1.09};
    const tgl_candidate predicted = {.choice = request.choice, .seconds = 1};
    assert_true(tgl_tuned_is_for(&row, "h200", &s));
    assert_false(tgl_tuned_is_for(&row, "h100", &s));
    assert_true(tgl_tuned_holds(&row, "h100", &s, &tuned, &predicted));
    tuned.seconds = 1.11;
    assert_true(tgl_tuned_holds(&row, "h200", &s, &tuned, &predicted));
    assert_false(tgl_tuned_holds(&row, "h100", &s, &tuned, &predicted));
}

/* Rows of f32 were measured in IEEE arithmetic. Kernels of the mode ACCURATE compete with them by
 * prediction. */
static void rows_do_not_hold_against_an_emulation(void **state)
{
    (void)state;
    const tgl_tuned row = {"h200", "f32", "NN", 1024, 1024, 1024, 1, "simt_128x128x8"};
    const tgl_shape s = shape_of_row(&row);
    tgl_request request, emulation;
    assert_status(tgl_request_make(row.kernel, 0, &request), TGL_OK);
    assert_status(tgl_request_make("accurate_128x128", 0, &emulation), TGL_OK);
    const tgl_candidate tuned = {.choice = request.choice, .seconds = 1.2};
    tgl_candidate predicted = {.choice = request.choice, .seconds = 1};
    assert_true(tgl_tuned_holds(&row, "h200", &s, &tuned, &predicted));
    predicted.choice = emulation.choice;
    assert_false(tgl_tuned_holds(&row, "h200", &s, &tuned, &predicted));
}

/* If operands far exceed L2, the memory of an H100 is too slow for 128x128 tiles
 * (docs/notes/2026-11-25-gpu-tensor-cores.md). */
static void an_h100_has_large_tiles_for_large_products(void **state)
{
    (void)state;
    static const int sizes[][3] = {
        {12288, 12288, 12288}, {16384, 16384, 16384}, {4096, 8192, 28672}, {4096, 57344, 8192}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char text[32768];
        tgl_problem problem = problem_of(TGL_BF16, sizes[i][0], sizes[i][1], sizes[i][2]);
        if (i >= 2) problem.trans_b = TGL_TRANS;
        assert_status(tgl_chip_explain("h100", &problem, NULL, text, sizeof text, NULL), TGL_OK);
        if (strstr(text, "\nchoice      wgmma_128x256") == NULL &&
            strstr(text, "\nchoice      wgmma_256x128") == NULL &&
            strstr(text, "\nchoice      wgmma_192x192") == NULL)
            fail_msg("%s", text);
    }
}

/* The kernels of f16 are those of bf16. */
static void f16_has_the_rows_of_bf16(void **state)
{
    (void)state;
    const tgl_tuned *row;
    int found = 0;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        if (strcmp(row->type, "bf16") != 0) continue;
        tgl_shape s = shape_of_row(row);
        s.type_a = s.type_b = s.type_c = s.type_d = TGL_F16;
        assert_true(tgl_tuned_is_for(row, "h200", &s));
        assert_true(tgl_tuned_is_for(tgl_tuned_find(row->chip, &s, NULL), "h200", &s));
        found++;
    }
    assert_true(found > 0);
}

static const tgl_tuned measured = {"h200", "f32", "NN", 1000, 1000, 1000, 1, "simt_128x128x8"};

static void what_holds_nearby_is_not_far_slower(void **state)
{
    (void)state;
    const tgl_shape same = shape_of(1000, 1000, 1000), near = shape_of(1000, 1001, 1000);
    const tgl_candidate predicted = choose_size("h200", 1000, 1000, 1000);
    tgl_candidate tuned = predicted;
    assert_true(tgl_tuned_holds(&measured, "h200", &near, &tuned, &predicted));
    tuned.seconds *= 1.2;
    assert_false(tgl_tuned_holds(&measured, "h200", &near, &tuned, &predicted));
    assert_true(tgl_tuned_holds(&measured, "h200", &same, &tuned,
                                &predicted)); /* an entry of the tuned table */
    tuned = predicted;
    tuned.rejected = "it cannot serve";
    assert_false(tgl_tuned_holds(&measured, "h200", &same, &tuned, &predicted));
}

/* A product with the sizes of a tuned entry that runs another kernel or moves other bytes. */
static tgl_shape shape_like_measured(int difference)
{
    tgl_shape s = shape_of(1000, 1000, 1000);
    switch (difference) {
    case 0:
        s.lda = 1001; /* scalar loads in place of float4 */
        break;
    case 1:
        s.ldb = 1001;
        break;
    case 2:
        s.ldc = s.ldd = 1001; /* scalar stores */
        break;
    case 3:
        s.epilogue.bias = TGL_BIAS_ROW;
        break;
    case 4:
        s.epilogue.activation = TGL_ACTIVATION_RELU;
        break;
    case 5:
        s.epilogue.residual = true;
        s.epilogue.ld_residual = 1000;
        break;
    case 6:
        s.pointers = true;
        break;
    case 7:
        s.type_a = s.type_b = s.type_c = s.type_d = s.type_accumulate = TGL_F64;
        break;
    case 8:
        s.trans_b = true;
        break;
    case 9:
        s.in_place = false; /* C is read as another matrix */
        break;
    case 10:
        s.compute = TGL_COMPUTE_TF32; /* tensor cores may serve it */
        break;
    default:
        s.device_scalars = true;
        break;
    }
    return s;
}

/* An entry of the tuned table replaces the prediction only for products that match the measurement.
 */
static void a_measurement_is_of_its_own_product(void **state)
{
    (void)state;
    const tgl_shape same = shape_of(1000, 1000, 1000);
    const tgl_candidate predicted = choose_size("h200", 1000, 1000, 1000);
    tgl_candidate tuned = predicted;
    tuned.seconds *= 1.2;
    assert_true(tgl_tuned_is_for(&measured, "h200", &same));
    for (int i = 0; i <= 11; i++) {
        const tgl_shape other = shape_like_measured(i);
        if (tgl_tuned_is_for(&measured, "h200", &other) ||
            tgl_tuned_holds(&measured, "h200", &other, &tuned, &predicted))
            fail_msg("difference %d is taken for the product that was measured", i);
    }
    tgl_shape padded = same; /* padded rows that allow the same loads and stores */
    padded.lda = padded.ldb = padded.ldc = padded.ldd = 1024;
    assert_true(tgl_tuned_is_for(&measured, "h200", &padded));
}

/* Elements of 8 bits allow the widest copies from rows of a multiple of 16, whatever the type of D.
 */
static void the_width_of_copies_is_that_of_the_operand(void **state)
{
    (void)state;
    static const struct {
        tgl_tuned row;
        int padding; /* a multiple of 16 bytes in the type of D */
    } table[] = {{{"h200", "e4m3", "NT", 4096, 4096, 4096, 1, "wgmma_128x128"}, 8},
                 {{"h200", "i8", "NT", 4096, 4096, 4096, 1, "wgmma_128x128"}, 4}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        tgl_shape s = shape_of_row(&table[i].row);
        s.lda += 16;
        s.ldd += table[i].padding;
        assert_true(tgl_tuned_is_for(&table[i].row, "h200", &s));
        s.lda += table[i].padding;
        assert_false(tgl_tuned_is_for(&table[i].row, "h200", &s));
        s.lda = 4096;
        s.ldb += table[i].padding;
        assert_false(tgl_tuned_is_for(&table[i].row, "h200", &s));
    }
}

/* Batches with shared matrices, or with matrices that do not allow float4 loads, do not match. */
static void a_measured_batch_is_tight(void **state)
{
    (void)state;
    const tgl_tuned batch = {"h200", "f32", "NN", 20, 20, 20, 4096, "small_batch_32x32"};
    tgl_shape s = shape_of(20, 20, 20);
    make_batch(&s, 4096);
    assert_true(tgl_tuned_is_for(&batch, "h200", &s));
    for (int i = 0; i < 6; i++) {
        tgl_shape other = s;
        int64_t *const strides[] = {&other.stride_a, &other.stride_b, &other.stride_c};
        if (i == 3 || i == 4)
            *strides[i - 3] = 0;
        else
            *strides[i % 3] += 1;
        other.stride_d = other.stride_c;
        if (i == 5) {
            other = s;
            other.pointers = true;
            other.stride_a = other.stride_b = other.stride_c = other.stride_d = 0;
        }
        assert_false(tgl_tuned_is_for(&batch, "h200", &other));
    }
}

/* Whether lines of `ld` floats and of ld + 1 floats allow the same copies. */
static bool allows_the_same(int64_t ld)
{
    return (ld % 4 == 0) == ((ld + 1) % 4 == 0);
}

/* For rows with another leading dimension a tuned entry is used only if it is predicted to be about
 * as fast as the best candidate. */
static void other_products_are_compared_with_the_prediction(void **state)
{
    (void)state;
    const tgl_tuned *row;
    tgl_chip unknown = *chip_of("h200"); /* a chip without a tuned table */
    int compared = 0;
    unknown.name = "";
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        if (strcmp(row->chip, "h200") != 0 || row->batch > 1) continue;
        tgl_shape s = transposed_shape_of(row->m, row->n, row->k, row->layout[0] == 'T',
                                          row->layout[1] == 'T');
        if (allows_the_same(s.lda) && allows_the_same(s.ldb) && allows_the_same(s.ldd)) continue;
        s.lda++, s.ldb++, s.ldc++, s.ldd++;
        const tgl_candidate c = choose_on(chip_of("h200"), &s, NULL);
        const tgl_candidate predicted = choose_on(&unknown, &s, NULL);
        assert_true(!c.is_tuned || c.seconds <= 1.1001 * predicted.seconds);
        compared++;
    }
    assert_true(compared > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tuned_rows_name_what_there_is),
        cmocka_unit_test(no_row_says_what_the_planner_says_anyway),
        cmocka_unit_test(an_h100_has_the_rows_of_an_h200),
        cmocka_unit_test(rows_of_another_chip_are_advice),
        cmocka_unit_test(rows_do_not_hold_against_an_emulation),
        cmocka_unit_test(an_h100_has_large_tiles_for_large_products),
        cmocka_unit_test(f16_has_the_rows_of_bf16),
        cmocka_unit_test(what_holds_nearby_is_not_far_slower),
        cmocka_unit_test(a_measurement_is_of_its_own_product),
        cmocka_unit_test(the_width_of_copies_is_that_of_the_operand),
        cmocka_unit_test(a_measured_batch_is_tight),
        cmocka_unit_test(other_products_are_compared_with_the_prediction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
