/* SPDX-License-Identifier: Apache-2.0
 *
 * Strips: what of C lies beside whole tiles, and when the planner has kernels of its own for it.
 */
#include "plan/planner.h"
#include "plan/tuned.h"
#include "plan_shape.h"
#include "support.h"

#include <math.h>

/* Whether the parts cover C once. */
static void assert_covers(const tgl_candidate *c, int64_t m, int64_t n)
{
    const tgl_gemm_shape shape = shape_of(m, n, 1);
    tgl_gemm_part parts[TGL_PARTS_MOST];
    const int count = tgl_candidate_parts(c, &shape, parts);
    int64_t elements = 0;
    assert_int_equal(count, 1 + c->strip_count);
    for (int i = 0; i < count; i++) {
        const tgl_gemm_part *x = &parts[i];
        assert_true(x->row >= 0 && x->col >= 0 && x->shape.m > 0 && x->shape.n > 0);
        assert_true(x->row + x->shape.m <= m && x->col + x->shape.n <= n);
        elements += x->shape.m * x->shape.n;
        for (int j = 0; j < i; j++) {
            const tgl_gemm_part *y = &parts[j];
            assert_true(x->row >= y->row + y->shape.m || y->row >= x->row + x->shape.m ||
                        x->col >= y->col + y->shape.n || y->col >= x->col + x->shape.n);
        }
        if (i == 0) continue;
        assert_true(x->plan.row->family == TGL_SKINNY || x->plan.row->family == TGL_MATVEC);
        assert_true(x->plan.row->count >= (x->col > 0 ? x->shape.n : x->shape.m));
    }
    assert_int_equal(elements, m * n);
}

static void sizes_just_past_a_tile_get_strips(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        int strips;
    } shapes[] = {
        {1025, 1025, 1025, 2}, {1024, 1025, 1024, 1}, {1025, 1024, 1024, 1}, {2048, 2049, 2048, 1},
        {1120, 1025, 1024, 1}, {1024, 1040, 1024, 1}, {4096, 4096, 4096, 0}, {1024, 1024, 1024, 0},
        {1024, 1080, 1024, 0}, {1024, 1060, 1024, 1}, {128, 128, 128, 0},    {16, 4097, 4096, 0},
        {257, 257, 16, 0},     {2049, 2049, 16, 2},
    };
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const tgl_candidate c = choose_size("h200", shapes[i].m, shapes[i].n, shapes[i].k);
        if (c.strip_count != shapes[i].strips)
            fail_msg("%lld x %lld x %lld has %d strips", (long long)shapes[i].m,
                     (long long)shapes[i].n, (long long)shapes[i].k, c.strip_count);
        assert_covers(&c, shapes[i].m, shapes[i].n);
    }
}

static tgl_candidate best_of_row(const char *chip, const char *row, const tgl_gemm_shape *shape,
                                 tgl_strips strips)
{
    const tgl_plan_options asked = {.size = sizeof asked, .splits = 1, .strips = strips};
    tgl_candidate c;
    tgl_planner_best_of_row(tgl_chip_facts_find(chip), shape, tgl_gemm_row_find(row), &asked, &c);
    return c;
}

/* Blocks of skinny_4_r8 take all registers of a multiprocessor. Beside 99 tiles they would wait for
 * the 33 without one: 204 us were measured, where skinny_4 takes 108. Those of skinny_16 do so too,
 * but nothing else takes 16 columns. */
static void strips_fit_beside_tiles(void **state)
{
    (void)state;
    for (int64_t n = 35; n <= 48; n += 13) {
        const tgl_gemm_shape s = shape_of(8457, n, 4096);
        const tgl_candidate c = best_of_row("h200", "gemm/simt_256x32x8", &s, TGL_STRIPS_ALWAYS);
        assert_null(c.rejected);
        assert_string_equal(c.strips[0].part.plan.row->name,
                            n == 35 ? "gemm/skinny_4" : "gemm/skinny_16");
    }
}

/* Sizes around multiples of the tile, one by one. */
static void strips_are_of_1_to_16(void **state)
{
    (void)state;
    for (int64_t m = 120; m <= 150; m++)
        for (int64_t n = 250; n <= 280; n += 3) {
            const tgl_gemm_shape s = shape_of(m, n, 100);
            const tgl_candidate c =
                best_of_row("h200", "gemm/simt_128x64x16", &s, TGL_STRIPS_ALWAYS);
            const bool below = m > 128 && m <= 144, right = n > 256 && n <= 272;
            assert_int_equal(c.strip_count, below + right);
            assert_true((c.rejected == NULL) == (below || right));
            if (c.rejected == NULL) assert_covers(&c, m, n);
            assert_int_equal(
                best_of_row("h200", "gemm/simt_128x64x16", &s, TGL_STRIPS_NEVER).strip_count, 0);
        }
}

/* Chips of which the driver or the table does not know all: whatever is predicted then, a plan with
 * strips has them all, and C no hole. */
static void strips_are_complete_whatever_is_predicted(void **state)
{
    (void)state;
    static const tgl_strips ways[] = {TGL_STRIPS_AUTO, TGL_STRIPS_ALWAYS};
    const tgl_gemm_row *row = tgl_gemm_row_find("gemm/simt_32x32x32");
    const tgl_gemm_shape s = shape_of(258, 258, 100);
    tgl_chip_facts chips[4];
    for (size_t i = 0; i < COUNT_OF(chips); i++)
        chips[i] = *tgl_chip_facts_find("h200");
    chips[0].fp32_lanes = tgl_chip_fp32_lanes(61);
    chips[1].clock_mhz = 0;
    chips[1].l2_rate = tgl_chip_l2_rate(chips[1].multiprocessors, 0);
    chips[2].memory_rate = 0;
    chips[3].memory_rate = (double)NAN;
    for (size_t i = 0; i < COUNT_OF(chips) * COUNT_OF(ways); i++) {
        const size_t chip = i / COUNT_OF(ways);
        const tgl_plan_options asked = {
            .size = sizeof asked, .splits = 1, .strips = ways[i % COUNT_OF(ways)]};
        tgl_candidate c;
        tgl_planner_best_of_row(&chips[chip], &s, row, &asked, &c);
        assert_null(c.rejected);
        assert_covers(&c, 258, 258);
        if (asked.strips == TGL_STRIPS_ALWAYS) assert_int_equal(c.strip_count, 2);
        tgl_planner_choose(&chips[chip], &s, &asked, &c);
        assert_null(c.rejected);
        assert_covers(&c, 258, 258);
    }
}

/* They cost what they add, which is less where they may begin before the tiles have ended. */
static void strips_cost_time(void **state)
{
    (void)state;
    static const char *const chips[] = {"h200", "a100"};
    for (size_t i = 0; i < COUNT_OF(chips); i++) {
        const tgl_gemm_shape s = shape_of(1025, 1025, 1025);
        tgl_gemm_shape tiles = s;
        tiles.m = tiles.n = 1024;
        const tgl_candidate c = best_of_row(chips[i], "gemm/simt_128x128x8", &s, TGL_STRIPS_ALWAYS);
        const tgl_candidate alone =
            best_of_row(chips[i], "gemm/simt_128x128x8", &tiles, TGL_STRIPS_NEVER);
        double seconds = alone.seconds;
        assert_int_equal(c.strip_count, 2);
        for (int j = 0; j < 2; j++) {
            const tgl_strip *strip = &c.strips[j];
            assert_true(strip->adds > 0 && strip->seconds > 0);
            assert_true(i == 0 ? strip->adds < strip->seconds
                               : strip->adds > 0.99 * strip->seconds);
            seconds += strip->adds;
        }
        assert_true(fabs(c.seconds - seconds) < 1e-9);
    }
}

static void what_has_no_strips(void **state)
{
    (void)state;
    const tgl_gemm_shape fine = shape_of(33, 33, 33);
    tgl_gemm_shape shapes[] = {fine, fine, fine, fine};
    shapes[0].pointers = true;
    shapes[1].epilogue.expression = "";
    shapes[2].batch = 65536;
    shapes[3].m = shapes[3].n = 32;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const char *row = "gemm/simt_32x32x16";
        assert_non_null(best_of_row("h200", row, &shapes[i], TGL_STRIPS_ALWAYS).rejected);
        assert_int_equal(best_of_row("h200", row, &shapes[i], TGL_STRIPS_AUTO).strip_count, 0);
    }
    assert_non_null(
        best_of_row("h200", "gemm/small_batch_48x48", &fine, TGL_STRIPS_ALWAYS).rejected);
    assert_int_equal(
        best_of_row("h200", "gemm/simt_32x32x16", &fine, TGL_STRIPS_ALWAYS).strip_count, 2);
}

/* A part's pointers are where its first row and column are. */
static void parts_begin_at_offsets(void **state)
{
    (void)state;
    static float A[8], bias[8];
    for (int layout = 0; layout < 4; layout++) {
        tgl_gemm_shape s = shape_of(100, 200, 300);
        tgl_gemm_part part;
        s.trans_a = layout & 1;
        s.trans_b = layout & 2;
        s.epilogue.bias = layout & 1 ? TGL_BIAS_ROW : TGL_BIAS_COLUMN;
        s.epilogue.ld_residual = 1000;
        tgl_gemm_part_make(&s, 64, 7, 36, 193, &part);
        const tgl_run run = {.A = A, .B = A, .C = A, .bias = bias, .residual = A};
        const tgl_run own = tgl_gemm_part_run(&part, &run);
        assert_int_equal((const float *)own.A - A, s.trans_a ? 64 : 64 * s.lda);
        assert_int_equal((const float *)own.B - A, s.trans_b ? 7 * s.ldb : 7);
        assert_int_equal((float *)own.C - A, 64 * s.ldc + 7);
        assert_int_equal((const float *)own.bias - bias, layout & 1 ? 64 : 7);
        assert_int_equal((const float *)own.residual - A, 64 * 1000 + 7);
        const tgl_run nothing = {.C = A};
        assert_null(tgl_gemm_part_run(&part, &nothing).A);
    }
}

/* What was measured with strips has them for its own shape; near it the model decides. */
static void measured_strips_hold_for_their_shape(void **state)
{
    (void)state;
    const tgl_tuned row = {"h200", "NN", 1025, 1025, 1025, 1, "gemm/simt_128x128x8", 0, 2};
    const tgl_gemm_shape same = shape_of(1025, 1025, 1025), near = shape_of(1025, 1026, 1025);
    assert_true(tgl_tuned_is_for(&row, &same));
    assert_false(tgl_tuned_is_for(&row, &near));
}

/* What was measured with strips or without is planned so, and near it the model decides. */
static void tuned_strips_are_planned(void **state)
{
    (void)state;
    const tgl_tuned *row;
    int with_strips = 0;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        tgl_gemm_shape s = shape_of(row->m, row->n, row->k);
        s.trans_a = row->layout[0] == 'T';
        s.trans_b = row->layout[1] == 'T';
        s.lda = s.trans_a ? s.m : s.k;
        s.ldb = s.trans_b ? s.k : s.n;
        s.batch = row->batch;
        s.stride_a = s.m * s.k;
        s.stride_b = s.k * s.n;
        s.stride_c = s.m * s.n;
        const tgl_candidate c = choose(row->chip, &s);
        if (row->strips == TGL_STRIPS_AUTO) continue;
        assert_true(c.is_tuned);
        assert_true((c.strip_count > 0) == (row->strips == TGL_STRIPS_ALWAYS));
        with_strips += c.strip_count > 0;
    }
    assert_true(with_strips > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_just_past_a_tile_get_strips),
        cmocka_unit_test(strips_fit_beside_tiles),
        cmocka_unit_test(strips_are_of_1_to_16),
        cmocka_unit_test(strips_are_complete_whatever_is_predicted),
        cmocka_unit_test(strips_cost_time),
        cmocka_unit_test(what_has_no_strips),
        cmocka_unit_test(parts_begin_at_offsets),
        cmocka_unit_test(measured_strips_hold_for_their_shape),
        cmocka_unit_test(tuned_strips_are_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
