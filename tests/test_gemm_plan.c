/* SPDX-License-Identifier: Apache-2.0
 *
 * What a problem makes of a configuration (src/plan/gemm.c): copies, splits, macros, schedules.
 */
#include "plan/gemm.h"
#include "plan_shape.h"
#include "support.h"

static void make(const char *name, const tgl_gemm_shape *shape, int splits, tgl_gemm_plan *plan)
{
    const tgl_gemm_split split = {.splits = splits};
    assert_null(tgl_gemm_plan_make(tgl_gemm_row_find(name), shape, &split, plan));
}

static void copies_are_as_wide_as_every_row_allows(void **state)
{
    (void)state;
    tgl_gemm_plan plan;
    tgl_gemm_shape s = shape_of(100, 100, 50);
    make("gemm/simt_64x64x16", &s, 1, &plan);
    assert_int_equal(plan.vec_a, 1); /* lies along k */
    assert_int_equal(plan.vec_b, 4);
    s.trans_a = s.trans_b = true;
    s.lda = 102;
    make("gemm/simt_64x64x16", &s, 1, &plan);
    assert_int_equal(plan.vec_a, 2);
    assert_int_equal(plan.vec_b, 1);
    s.lda = 104;
    s.batch = 2;
    s.stride_a = 104 * 50 + 1;
    make("gemm/simt_64x64x16", &s, 1, &plan);
    assert_int_equal(plan.vec_a, 1);
    s.stride_a = 0;
    make("gemm/simt_64x64x16", &s, 1, &plan);
    assert_int_equal(plan.vec_a, 4);
}

/* And one variant is enough for them. */
static void pointers_are_copied_as_promised(void **state)
{
    (void)state;
    static const struct {
        int64_t promised;
        int width;
    } promises[] = {{0, 1}, {1, 1}, {4, 1}, {8, 2}, {16, 4}, {256, 4}};
    for (size_t i = 0; i < COUNT_OF(promises); i++)
        for (int batch = 1; batch <= 2; batch++) {
            tgl_gemm_shape s = shape_of(100, 100, 50);
            tgl_gemm_plan plan;
            tgl_gemm_variant variant;
            s.batch = batch;
            s.pointers = true;
            s.alignment = promises[i].promised;
            make("gemm/simt_64x64x16", &s, 1, &plan);
            assert_int_equal(plan.vec_a, 1);
            assert_int_equal(plan.vec_b, promises[i].width);
            assert_true(tgl_gemm_variant_make(&plan, &s, TGL_GEMM_ALIGNED, &variant));
            assert_false(tgl_gemm_variant_make(&plan, &s, TGL_GEMM_ANY, &variant));
            const tgl_run run = {.alpha = 1};
            assert_int_equal(tgl_gemm_variant_for(&plan, &run), TGL_GEMM_ALIGNED);
        }
}

static void splits_cover_k_once(void **state)
{
    (void)state;
    tgl_gemm_plan plan;
    for (int64_t k = 1; k < 2000; k += 37)
        for (int splits = 1; splits < 40; splits++) {
            const tgl_gemm_shape s = shape_of(32, 32, k);
            make("gemm/simt_32x32x32", &s, splits, &plan);
            assert_in_range(plan.splits, 1, splits);
            if (plan.splits == 1) continue;
            const int64_t first = k - (int64_t)(plan.splits - 1) * plan.k_chunk;
            assert_in_range(first, 1, plan.k_chunk);
            assert_int_equal(plan.k_chunk % 32, 0);
        }
}

static void wide_rows_take_wide_offsets(void **state)
{
    (void)state;
    tgl_gemm_plan plan;
    tgl_gemm_shape s = shape_of(1000, 1000, 1000);
    make("gemm/simt_128x128x8", &s, 1, &plan);
    assert_false(plan.wide_offsets);
    s.lda = 10 * 1000 * 1000;
    make("gemm/simt_128x128x8", &s, 1, &plan);
    assert_true(plan.wide_offsets);
}

/* Copies and loads are issued when the kernel has a place for them, which it says by #error. */
static void assert_fits(const tgl_simt_row *t, const tgl_gemm_plan *plan,
                        const tgl_simt_schedule *when)
{
    const int threads = plan->threads / t->slices;
    const int64_t copies = tgl_ceil_div(t->bk * t->bm / plan->vec_a, threads) +
                           tgl_ceil_div(t->bk * t->bn / plan->vec_b, threads);
    const int64_t loads = (t->tm + t->tn) / 4, step = t->tm * t->tn;
    assert_true(when->copy_from + (copies - 1) * when->copy_every < (t->bk - 1) * t->tm);
    assert_true(when->load_every > 0);
    assert_true(when->load_from + (loads - 1) * when->load_every < step);
}

/* Of each layout and width of copies or stores, all that the table has; for copies of two floats
 * there is none. */
static void schedules_fit_their_tiles(void **state)
{
    (void)state;
    enum { SCHEDULES = 34 };
    /* Copies of 4, 1 and 2 floats, stores of 4, 1 and 1. */
    static const int sizes[] = {1024, 1023, 1022};
    const tgl_gemm_row *row;
    int found = 0;
    for (int i = 0; (row = tgl_gemm_row_at(i)) != NULL; i++)
        for (int j = 0; j < 4 * 3; j++) {
            const tgl_gemm_split whole = {.splits = 1};
            tgl_gemm_shape s = shape_of(sizes[j / 4], sizes[j / 4], 1024);
            tgl_gemm_plan plan;
            s.trans_a = j & 1;
            s.trans_b = j & 2;
            s.lda = s.ldb = s.ldc = sizes[j / 4];
            if (tgl_gemm_plan_make(row, &s, &whole, &plan) != NULL) continue;
            const tgl_simt_schedule *when =
                tgl_simt_schedule_find(row, &s, plan.vec_a, plan.vec_b, tgl_gemm_store_width(&s));
            if (sizes[j / 4] == 1022 && (s.trans_a || !s.trans_b)) assert_null(when);
            if (when == NULL) continue;
            assert_string_equal(when->name, row->name);
            assert_int_equal(when->width, s.trans_a    ? plan.vec_a
                                          : !s.trans_b ? plan.vec_b
                                                       : tgl_gemm_store_width(&s));
            assert_fits(&row->simt, &plan, when);
            found += sizes[j / 4] != 1022;
        }
    assert_int_equal(found, SCHEDULES);
}

/* Pointers that allow only single floats get the kernel that sizes which do get. */
static void any_pointers_have_their_schedule(void **state)
{
    (void)state;
    const tgl_gemm_row *row = tgl_gemm_row_find("gemm/simt_128x256x8");
    const tgl_gemm_split whole = {.splits = 1};
    const tgl_gemm_shape even = shape_of(1024, 1024, 1024), odd = shape_of(1023, 1023, 1024);
    tgl_gemm_plan plan;
    tgl_gemm_variant aligned, any, narrow;
    assert_null(tgl_gemm_plan_make(row, &even, &whole, &plan));
    assert_true(tgl_gemm_variant_make(&plan, &even, TGL_GEMM_ALIGNED, &aligned));
    assert_true(tgl_gemm_variant_make(&plan, &even, TGL_GEMM_ANY, &any));
    assert_null(tgl_gemm_plan_make(row, &odd, &whole, &plan));
    assert_true(tgl_gemm_variant_make(&plan, &odd, TGL_GEMM_ALIGNED, &narrow));
    assert_string_equal(any.defines, narrow.defines);
    assert_string_not_equal(any.defines, aligned.defines);
}

/* Only where it fits. */
static void another_schedule_can_be_tried(void **state)
{
    (void)state;
    static const tgl_simt_schedule other = {"gemm/simt_128x256x8", "TN", 4, 1, 2, 3, 4, 0};
    const tgl_gemm_row *row = tgl_gemm_row_find(other.name);
    tgl_gemm_shape s = shape_of(1024, 1024, 1024);
    s.trans_a = true;
    const tgl_simt_schedule *own = tgl_simt_schedule_find(row, &s, 4, 4, 4);
    tgl_simt_schedule_try(&other);
    assert_ptr_equal(tgl_simt_schedule_find(row, &s, 4, 4, 4), &other);
    assert_ptr_not_equal(tgl_simt_schedule_find(row, &s, 1, 1, 1), &other);
    assert_ptr_not_equal(
        tgl_simt_schedule_find(tgl_gemm_row_find("gemm/simt_256x128x8"), &s, 4, 4, 4), &other);
    s.trans_b = true;
    assert_ptr_not_equal(tgl_simt_schedule_find(row, &s, 4, 1, 4), &other);
    s.trans_b = false;
    tgl_simt_schedule_try(NULL);
    assert_ptr_equal(tgl_simt_schedule_find(row, &s, 4, 4, 4), own);
}

/* Slices are more threads, tiles in shared memory and sums of one block, and steps of k. */
static void slices_share_a_block(void **state)
{
    (void)state;
    const tgl_gemm_row *row = tgl_gemm_row_find("gemm/simt_64x64x8_s4");
    const tgl_simt_row *t = &row->simt;
    const tgl_gemm_shape s = shape_of(512, 512, 1000);
    const tgl_gemm_split split = {.splits = 3, .cluster_most = 1, .multiprocessors = 132};
    tgl_gemm_plan plan;
    tgl_gemm_variant variant;
    assert_int_equal(t->slices, 4);
    assert_int_equal(tgl_simt_step(t), 32);
    assert_null(tgl_gemm_plan_make(row, &s, &split, &plan));
    assert_int_equal(plan.threads, 4 * 64 * 64 / (t->tm * t->tn));
    assert_int_equal(plan.k_chunk, 352); /* 1000 / 3, in steps */
    assert_int_equal(plan.dynamic_shared, 4 * 64 * 64 * (int)sizeof(float));
    assert_true(tgl_gemm_variant_make(&plan, &s, TGL_GEMM_ALIGNED, &variant));
    assert_non_null(strstr(variant.defines, " SLICES=4 "));
}

static bool is_inside(int64_t m, int64_t n, bool trans_a, bool trans_b)
{
    const tgl_gemm_row *row = tgl_gemm_row_find("gemm/simt_128x64x16");
    const tgl_gemm_split whole = {.splits = 1};
    tgl_gemm_shape s = shape_of(m, n, 512);
    tgl_gemm_plan plan;
    tgl_gemm_variant variant;
    s.trans_a = trans_a, s.trans_b = trans_b;
    s.lda = trans_a ? m : 512, s.ldb = trans_b ? 512 : n;
    assert_null(tgl_gemm_plan_make(row, &s, &whole, &plan));
    assert_true(tgl_gemm_variant_make(&plan, &s, TGL_GEMM_ALIGNED, &variant));
    return strstr(variant.defines, "INSIDE=1") != NULL;
}

/* The kernel must not be told that tiles lie inside where one does not; and where it does not
 * matter, one kernel serves both. */
static void narrow_copies_know_of_edges(void **state)
{
    (void)state;
    assert_true(is_inside(128, 65, false, false));
    assert_true(is_inside(129, 64, true, true));
    assert_false(is_inside(127, 65, false, false));
    assert_false(is_inside(129, 63, true, false));
    assert_false(is_inside(128, 64, true, false)); /* copies of four floats */
    assert_false(is_inside(129, 65, false, true)); /* both lie along k */
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
