/* SPDX-License-Identifier: Apache-2.0
 *
 * How the tiled kernels (src/families/simt*.c) handle a problem: copy widths, split-K, macros,
 * schedules.
 */
#include "plan_shape.h"

static void copies_are_as_wide_as_every_row_allows(void **state)
{
    (void)state;
    const tgl_chip *chip = chip_of("h200");
    static const struct {
        bool trans;
        int64_t lda, batch, stride_a;
        int vec_a, vec_b;
    } cases[] = {
        {false, 50, 1, 0, 1, 4}, /* A is K-major */
        {true, 102, 1, 0, 2, 1}, {true, 104, 1, 0, 4, 1}, {true, 104, 2, 104 * 50 + 1, 1, 1},
        {true, 104, 2, 0, 4, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tgl_shape s = shape_of(100, 100, 50);
        s.trans_a = s.trans_b = cases[i].trans;
        s.lda = cases[i].lda;
        s.batch = cases[i].batch;
        s.stride_a = cases[i].stride_a;
        made m = make(chip, &s, "simt_64x64x16:splits=1,strips=0");
        assert_int_equal(macro_of(m.kernel, "VEC_A"), cases[i].vec_a);
        assert_int_equal(macro_of(m.kernel, "VEC_B"), cases[i].vec_b);
        tgl_list_free(&m.list);
    }
}

/* Whether any launch depends on the addresses of a run. */
static bool looks_at_addresses(const tgl_launch_list *list)
{
    for (int i = 0; i < list->step_count; i++)
        for (int j = 0; j < list->steps[i].launch_count; j++) {
            const tgl_launch *launch = &list->steps[i].launches[j];
            for (int k = 0; k < launch->condition_count; k++)
                if (launch->conditions[k].kind == TGL_IF_ALIGNED ||
                    launch->conditions[k].kind == TGL_IF_MISALIGNED)
                    return true;
        }
    return false;
}

/* For arrays of pointers one kernel is enough, for the alignment that the problem guarantees. */
static void pointers_are_copied_as_promised(void **state)
{
    (void)state;
    static const struct {
        int64_t promised;
        int width;
    } promises[] = {{0, 1}, {1, 1}, {4, 1}, {8, 2}, {16, 4}, {256, 4}};
    for (size_t i = 0; i < COUNT_OF(promises); i++)
        for (int batch = 1; batch <= 2; batch++) {
            tgl_shape s = shape_of(100, 100, 50);
            s.batch = batch;
            s.pointers = true;
            s.alignment = promises[i].promised;
            made m = make(chip_of("h200"), &s, "simt_64x64x16:splits=1,strips=0");
            assert_int_equal(macro_of(m.kernel, "VEC_A"), 1);
            assert_int_equal(macro_of(m.kernel, "VEC_B"), promises[i].width);
            assert_false(looks_at_addresses(&m.list));
            assert_int_equal(m.list.kernel_count, 1);
            tgl_list_free(&m.list);
        }
}

static void splits_cover_k_once(void **state)
{
    (void)state;
    const tgl_chip chip = without_clusters("h200");
    for (int64_t k = 1; k < 2000; k += 37)
        for (int splits = 1; splits < 40; splits++) {
            const tgl_shape s = shape_of(32, 32, k);
            made m = make_with(&chip, &s, "simt_32x32x32:splits=%d,strips=0", splits);
            assert_in_range(m.args.splits, 1, splits);
            assert_int_equal(m.candidate.splits, m.args.splits);
            assert_int_equal(m.launch->grid[0], m.args.splits);
            if (m.args.splits > 1) {
                const int64_t first = k - (int64_t)(m.args.splits - 1) * m.args.k_chunk;
                assert_in_range(first, 1, m.args.k_chunk);
                assert_int_equal(m.args.k_chunk % 32, 0);
            }
            tgl_list_free(&m.list);
        }
}

static void wide_rows_take_wide_offsets(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        tgl_shape s = shape_of(1000, 1000, 1000);
        if (wide) s.lda = 10 * 1000 * 1000;
        made m = make(chip_of("h200"), &s, "simt_128x128x8:splits=1,strips=0");
        assert_int_equal(macro_of(m.kernel, "WIDE_OFFSETS"), wide);
        tgl_list_free(&m.list);
    }
}

/* The schedule must fit the kernel: its #error directives limit when copies and loads are issued.
 */
static void assert_fits(const tgl_launch *launch)
{
    const tgl_kernel *k = launch->kernel;
    const long bm = macro_of(k, "BM"), bn = macro_of(k, "BN"), bk = macro_of(k, "BK");
    const long tm = macro_of(k, "TM"), tn = macro_of(k, "TN");
    const long threads = launch->threads / macro_of(k, "SLICES");
    const long copies = ceil_div(bk * bm / macro_of(k, "VEC_A"), threads) +
                        ceil_div(bk * bn / macro_of(k, "VEC_B"), threads);
    const long loads = (tm + tn) / 4, step = tm * tn;
    assert_true(macro_of(k, "COPY_FROM") + (copies - 1) * macro_of(k, "COPY_EVERY") <
                (bk - 1) * tm);
    assert_true(macro_of(k, "LOAD_EVERY") > 0);
    assert_true(macro_of(k, "LOAD_FROM") + (loads - 1) * macro_of(k, "LOAD_EVERY") < step);
}

/* Checks all schedules of the table, for each layout and width of copies or stores. There are none
 * for copies of two floats. */
static void schedules_fit_their_tiles(void **state)
{
    (void)state;
    enum { SCHEDULES = 34 };
    /* Copies of 4, 1 and 2 floats; stores of 4, 1 and 1. */
    static const int sizes[] = {1024, 1023, 1022};
    tgl_choice choice;
    int found = 0;
    for (int i = 0; tgl_configuration_at(i, &choice); i++)
        for (int j = 0; j < 4 * 3; j++) {
            const int size = sizes[j / 4];
            tgl_shape s = shape_of(size, size, 1024);
            char kernel[64];
            if (choice.family->tile == NULL) continue;
            s.trans_a = j & 1;
            s.trans_b = j & 2;
            s.lda = s.ldb = s.ldc = s.ldd = size;
            snprintf(kernel, sizeof kernel, "%s:splits=1,strips=0", tgl_choice_name(&choice));
            const tgl_candidate best = best_of(chip_of("h200"), &s, kernel);
            if (best.rejected != NULL) continue;
            made m = make_of(chip_of("h200"), &s, &best);
            const bool has_schedule = has_macro(m.kernel, "COPY_FROM");
            if (size == 1022 && (s.trans_a || !s.trans_b)) assert_false(has_schedule);
            if (has_schedule) assert_fits(m.launch);
            found += has_schedule && size != 1022;
            tgl_list_free(&m.list);
        }
    assert_int_equal(found, SCHEDULES);
}

/* Pointers that allow only scalar copies get the same kernel as sizes that allow only scalar
 * copies. */
static void any_pointers_have_their_schedule(void **state)
{
    (void)state;
    const tgl_shape even = shape_of(1024, 1024, 1024), odd = shape_of(1023, 1023, 1024);
    made wide = make(chip_of("h200"), &even, "simt_128x256x8:splits=1,strips=0");
    made narrow = make(chip_of("h200"), &odd, "simt_128x256x8:splits=1,strips=0");
    const tgl_run run = run_of(true, 4);
    const tgl_launch *any = tgl_step_choose(&wide.list.steps[0], &run);
    assert_non_null(any);
    assert_string_equal(any->kernel->macros, narrow.kernel->macros);
    assert_string_not_equal(any->kernel->macros, wide.kernel->macros);
    assert_ptr_equal(tgl_step_choose(&narrow.list.steps[0], &run)->kernel, narrow.kernel);
    tgl_list_free(&wide.list);
    tgl_list_free(&narrow.list);
}

/* Options of a kernel string replace those of the table's schedule. */
static void another_schedule_can_be_tried(void **state)
{
    (void)state;
    static const char *const names[] = {"COPY_FROM", "COPY_EVERY", "LOAD_FROM", "LOAD_EVERY",
                                        "COLUMN_ORDER"};
    static const int usual[] = {0, 55, 9, 5, 1}, other[] = {1, 2, 3, 4, 0};
    const tgl_shape s = transposed_shape_of(1024, 1024, 1024, true, false);
    made own = make(chip_of("h200"), &s, "simt_128x256x8:splits=1,strips=0");
    made tried = make(chip_of("h200"), &s,
                      "simt_128x256x8:splits=1,copy_from=1,copy_every=2,load_from=3,load_every=4,"
                      "column_order=0,strips=0");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(macro_of(own.kernel, names[i]), usual[i]);
        assert_int_equal(macro_of(tried.kernel, names[i]), other[i]);
    }
    tgl_list_free(&own.list);
    tgl_list_free(&tried.list);
}

/* With slices a block has more threads, more tiles in shared memory, more sums, and larger steps
 * along K. */
static void slices_share_a_block(void **state)
{
    (void)state;
    const tgl_chip chip = without_clusters("h200");
    const tgl_shape s = shape_of(512, 512, 1000);
    made m = make(&chip, &s, "simt_64x64x8_s4:splits=3,strips=0");
    assert_int_equal(macro_of(m.kernel, "SLICES"), 4);
    assert_int_equal(macro_of(m.kernel, "BK"), 8); /* for each slice: steps of 32 */
    assert_int_equal(m.launch->threads,
                     4 * 64 * 64 / (macro_of(m.kernel, "TM") * macro_of(m.kernel, "TN")));
    assert_int_equal(m.args.k_chunk, 352); /* 1000 / 3, rounded up to steps */
    assert_int_equal(m.launch->dynamic_shared, 4 * 64 * 64 * (int)sizeof(float));
    tgl_list_free(&m.list);
}

static bool is_inside(int64_t m, int64_t n, bool trans_a, bool trans_b)
{
    const tgl_shape s = transposed_shape_of(m, n, 512, trans_a, trans_b);
    made x = make(chip_of("h200"), &s, "simt_128x64x16:splits=1,strips=0");
    const bool is = macro_of(x.kernel, "INSIDE") == 1;
    tgl_list_free(&x.list);
    return is;
}

/* INSIDE is 1 only if D is at least as large as a tile, and if an operand is K-major (BK of 16 or
 * more) or copied by less than four floats at a time. In all other cases it has no effect and stays
 * 0, so that there is only one kernel. */
static void narrow_copies_know_of_edges(void **state)
{
    (void)state;
    assert_true(is_inside(128, 65, false, false));
    assert_true(is_inside(129, 64, true, true));
    assert_false(is_inside(127, 65, false, false));
    assert_false(is_inside(129, 63, true, false));
    assert_false(is_inside(128, 64, true, false)); /* copies of four floats */
    assert_true(is_inside(129, 65, false, true));  /* both are K-major */
    assert_false(is_inside(127, 65, false, true));
}

/* Features that only some problems need are macros of the kernel. */
static void operands_are_macros(void **state)
{
    (void)state;
    static const char *const kernels[] = {"simt_64x64x16", "skinny_16", "gemv_4",
                                          "small_batch_16x16"};
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        tgl_shape s = shape_of(4, 16, 16);
        const char *macros[] = {"SEPARATE_D", "DEVICE_SCALARS", "BIAS", "ACTIVATION", "RESIDUAL"};
        s.trans_b = true;
        s.ldb = 16;
        for (int j = -1; j < (int)COUNT_OF(macros); j++) {
            tgl_shape own = s;
            if (j == 0) own.in_place = false;
            if (j == 1) own.device_scalars = true;
            if (j == 2) own.epilogue.bias = TGL_BIAS_ROW;
            if (j == 3) own.epilogue.activation = TGL_ACTIVATION_GELU;
            if (j == 4) own.epilogue.residual = true, own.epilogue.ld_residual = 16;
            made m = make(chip_of("h200"), &own, kernels[i]);
            for (int k = 0; k < (int)COUNT_OF(macros); k++)
                if (k == j)
                    assert_true(macro_of(m.kernel, macros[k]) > 0);
                else if (has_macro(m.kernel, macros[k]))
                    assert_int_equal(macro_of(m.kernel, macros[k]), 0);
            tgl_list_free(&m.list);
        }
    }
}

/* Without a product (k or alpha of 0), A and B must not be read: their pointers may be invalid. */
static void nothing_is_multiplied_without_a_product(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{100, 100, 50}, {64, 64, 20000}, {3, 5000, 4000},
                                       {1, 4096, 512}, {20, 20, 20},    {33, 33, 0}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const tgl_shape s = shape_of(sizes[i][0], sizes[i][1], sizes[i][2]);
        const tgl_candidate c = choose("h200", &s);
        tgl_launch_list list = list_of(chip_of("h200"), &s, &c);
        tgl_run run = run_of(false, 0);
        run.at[TGL_AT_A] = run.at[TGL_AT_B] = NULL;
        for (int j = 0; j < list.step_count; j++) {
            const tgl_launch *launch = tgl_step_choose(&list.steps[j], &run);
            assert_non_null(launch);
            struct tgl_gemm_args args;
            assert_int_equal(launch->argument_bytes, sizeof args);
            assert_status(tgl_launch_fill(&list, launch, &run, address(4096), address(8192), 0,
                                          NULL, NULL, (unsigned char *)&args),
                          TGL_OK);
            assert_int_equal(args.k, 0);
            assert_null(args.A);
            assert_null(args.B);
            assert_true(args.alpha.f32 == 0 && args.beta.f32 == 1);
        }
        tgl_list_free(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_as_wide_as_every_row_allows),
        cmocka_unit_test(pointers_are_copied_as_promised),
        cmocka_unit_test(splits_cover_k_once),
        cmocka_unit_test(wide_rows_take_wide_offsets),
        cmocka_unit_test(schedules_fit_their_tiles),
        cmocka_unit_test(any_pointers_have_their_schedule),
        cmocka_unit_test(another_schedule_can_be_tried),
        cmocka_unit_test(slices_share_a_block),
        cmocka_unit_test(narrow_copies_know_of_edges),
        cmocka_unit_test(operands_are_macros),
        cmocka_unit_test(nothing_is_multiplied_without_a_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
