/* SPDX-License-Identifier: Apache-2.0
 *
 * Strips: the rows and columns of D beyond whole tiles, and when the planner uses separate kernels
 * for them.
 */
#include "plan/tuned.h"
#include "plan_shape.h"

/* Fails unless the partitions of a candidate's launches cover D exactly once, and all but the first
 * are strips. */
static void assert_covers(const tgl_chip *chip, const tgl_candidate *c, int64_t m, int64_t n)
{
    const tgl_shape shape = shape_of(m, n, 100);
    tgl_launch_list list = list_of(chip, &shape, c);
    int64_t elements = 0;
    assert_int_equal(list.step_count, 1 + c->strip_count);
    for (int i = 0; i < list.step_count; i++) {
        const tgl_rectangle x = launch_of(&list, i)->part;
        assert_true(x.row >= 0 && x.col >= 0 && x.m > 0 && x.n > 0);
        assert_true(x.row + x.m <= m && x.col + x.n <= n);
        elements += x.m * x.n;
        for (int j = 0; j < i; j++) {
            const tgl_rectangle y = launch_of(&list, j)->part;
            assert_true(x.row >= y.row + y.m || y.row >= x.row + x.m || x.col >= y.col + y.n ||
                        y.col >= x.col + x.n);
        }
        if (i == 0) continue;
        const tgl_strip *strip = &c->strips[i - 1];
        assert_memory_equal(&strip->part, &x, sizeof x);
        assert_true(is_of_family(&strip->choice, "skinny") || is_of_family(&strip->choice, "gemv"));
        assert_true(strip->choice.family->serves_strips);
        assert_true(lines_of(&strip->choice) >= (x.col > 0 ? x.n : x.m));
    }
    assert_int_equal(elements, m * n);
    tgl_list_free(&list);
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
        {1024, 1080, 1024, 0}, {1024, 1060, 1024, 0}, {128, 128, 128, 0},    {16, 4097, 4096, 0},
        {257, 257, 16, 0},     {2049, 2049, 16, 2},
    };
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const tgl_candidate c = choose_size("h200", shapes[i].m, shapes[i].n, shapes[i].k);
        if (c.strip_count != shapes[i].strips)
            fail_msg("%lld x %lld x %lld has %d strips", (long long)shapes[i].m,
                     (long long)shapes[i].n, (long long)shapes[i].k, c.strip_count);
        const tgl_shape s = shape_of(shapes[i].m, shapes[i].n, shapes[i].k);
        tgl_launch_list list = list_of(chip_of("h200"), &s, &c);
        assert_int_equal(list.step_count, 1 + shapes[i].strips);
        tgl_list_free(&list);
        assert_covers(chip_of("h200"), &c, shapes[i].m, shapes[i].n);
    }
}

/* Blocks of skinny_4_r8 take all registers of an SM. While 99 tiles run, only the other 33 SMs
 * could run them: the product took 204 us, and 108 us with skinny_4. Blocks of skinny_16 take all
 * registers, too, but no other kernel supports 16 columns. */
static void strips_fit_beside_tiles(void **state)
{
    (void)state;
    for (int64_t n = 35; n <= 48; n += 13) {
        const tgl_shape s = shape_of(8457, n, 4096);
        const tgl_candidate c = best_of(chip_of("h200"), &s, "simt_256x32x8:splits=1,strips=1");
        assert_null(c.rejected);
        assert_string_equal(tgl_choice_name(&c.strips[0].choice),
                            n == 35 ? "skinny_4" : "skinny_16");
    }
}

/* Sizes around multiples of the tile: strips have 1 to 16 rows or columns. */
static void strips_are_of_1_to_16(void **state)
{
    (void)state;
    const tgl_chip *chip = chip_of("h200");
    for (int64_t m = 120; m <= 150; m++)
        for (int64_t n = 250; n <= 280; n += 3) {
            const tgl_shape s = shape_of(m, n, 100);
            const tgl_candidate c = best_of(chip, &s, "simt_128x64x16:splits=1,strips=1");
            const bool below = m > 128 && m <= 144, right = n > 256 && n <= 272;
            assert_int_equal(c.strip_count, below + right);
            assert_true((c.rejected == NULL) == (below || right));
            if (c.rejected == NULL) assert_covers(chip, &c, m, n);
            assert_int_equal(best_of(chip, &s, "simt_128x64x16:splits=1,strips=0").strip_count, 0);
        }
}

/* On chips with unknown properties, whatever is predicted, a plan with strips has all of them and
 * covers D. */
static void strips_are_complete_whatever_is_predicted(void **state)
{
    (void)state;
    static const char *const ways[] = {"simt_32x32x32:splits=1", "simt_32x32x32:splits=1,strips=1"};
    const tgl_shape s = shape_of(258, 258, 100);
    tgl_chip chips[4];
    for (size_t i = 0; i < COUNT_OF(chips); i++)
        chips[i] = *chip_of("h200");
    chips[0].fp32_lanes = tgl_chip_fp32_lanes(61);
    chips[1].clock_mhz = 0;
    chips[1].l2_rate = tgl_chip_l2_rate(chips[1].sms, 0);
    chips[2].memory_rate = 0;
    chips[3].memory_rate = (double)NAN;
    for (size_t i = 0; i < COUNT_OF(chips) * COUNT_OF(ways); i++) {
        const tgl_chip *chip = &chips[i / COUNT_OF(ways)];
        tgl_candidate c = best_of(chip, &s, ways[i % COUNT_OF(ways)]);
        assert_null(c.rejected);
        assert_covers(chip, &c, 258, 258);
        if (i % COUNT_OF(ways) == 1) assert_int_equal(c.strip_count, 2);
        c = choose_on(chip, &s, NULL);
        assert_covers(chip, &c, 258, 258);
    }
}

/* A strip costs its additional time, which is less if it may start before the tiles have ended. */
static void strips_cost_time(void **state)
{
    (void)state;
    static const char *const chips[] = {"h200", "a100"};
    for (size_t i = 0; i < COUNT_OF(chips); i++) {
        const tgl_chip *chip = chip_of(chips[i]);
        const tgl_shape s = shape_of(1025, 1025, 1025);
        tgl_shape tiles = s;
        tiles.m = tiles.n = 1024;
        const tgl_candidate c = best_of(chip, &s, "simt_128x128x8:splits=1,strips=1");
        const tgl_candidate alone = best_of(chip, &tiles, "simt_128x128x8:splits=1,strips=0");
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
    const tgl_chip *chip = chip_of("h200");
    const tgl_shape fine = shape_of(33, 33, 33);
    tgl_shape shapes[] = {fine, fine, fine, fine};
    shapes[0].pointers = true;
    shapes[1].epilogue.expression = "";
    shapes[2].batch = 65536;
    shapes[3].m = shapes[3].n = 32;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        assert_non_null(best_of(chip, &shapes[i], "simt_32x32x16:splits=1,strips=1").rejected);
        assert_int_equal(best_of(chip, &shapes[i], "simt_32x32x16:splits=1").strip_count, 0);
    }
    assert_int_equal(best_of(chip, &fine, "simt_32x32x16:splits=1,strips=1").strip_count, 2);
    /* Families without tiles do not have this option. */
    tgl_request request;
    assert_status(tgl_request_make("small_batch_48x48:strips=1", 0, &request), TGL_BAD_ARGUMENT);
}

/* The distance between the operand's base and a launch's pointer, in floats. */
static int64_t offset_of(const void *found, const tgl_run *run, tgl_operand operand)
{
    const int64_t bytes = (const char *)found - (const char *)run->at[operand];
    assert_int_equal(bytes % (int64_t)sizeof(float), 0);
    return bytes / (int64_t)sizeof(float);
}

/* The pointers of a strip are those of its first row and column, also those of C if D is another
 * matrix. */
static void strips_begin_at_offsets(void **state)
{
    (void)state;
    for (int layout = 0; layout < 8; layout++) {
        tgl_shape s = transposed_shape_of(100, 200, 300, layout & 1, layout & 2);
        s.in_place = !(layout & 4);
        s.ldd = 205;
        s.ldc = s.in_place ? s.ldd : 203;
        s.epilogue.bias = layout & 1 ? TGL_BIAS_ROW : TGL_BIAS_COLUMN;
        s.epilogue.residual = true;
        s.epilogue.ld_residual = 1000;
        made m = make(chip_of("h200"), &s, "simt_32x64x16:splits=1,strips=1");
        const tgl_run run = run_of(true, 0);
        assert_int_equal(m.list.step_count, 3);
        for (int i = 0; i < 3; i++) {
            static const int64_t rows[] = {0, 0, 96}, columns[] = {0, 192, 0};
            const int64_t row = rows[i], col = columns[i];
            const tgl_launch *launch = tgl_step_choose(&m.list.steps[i], &run);
            struct tgl_gemm_args args;
            assert_int_equal(launch->part.row, row);
            assert_int_equal(launch->part.col, col);
            assert_int_equal(launch->argument_bytes, sizeof args);
            assert_status(tgl_launch_fill(&m.list, launch, &run, address(4096), address(4096), 0,
                                          NULL, NULL, (unsigned char *)&args),
                          TGL_OK);
            assert_int_equal(args.m, launch->part.m);
            assert_int_equal(args.n, launch->part.n);
            assert_int_equal(offset_of(args.A, &run, TGL_AT_A), s.trans_a ? row : row * s.lda);
            assert_int_equal(offset_of(args.B, &run, TGL_AT_B), s.trans_b ? col * s.ldb : col);
            assert_int_equal(offset_of(args.D, &run, TGL_AT_D), row * s.ldd + col);
            if (!s.in_place) assert_int_equal(offset_of(args.C, &run, TGL_AT_C), row * s.ldc + col);
            assert_int_equal(offset_of(args.bias, &run, TGL_AT_BIAS), layout & 1 ? row : col);
            assert_int_equal(offset_of(args.residual, &run, TGL_AT_RESIDUAL), row * 1000 + col);
        }
        tgl_list_free(&m.list);
    }
}

/* A strip may run concurrently with the tiles. The first launch waits for all earlier ones, and the
 * last one ends after the tiles. */
static void strips_run_beside_tiles(void **state)
{
    (void)state;
    const tgl_shape s = shape_of(100, 200, 300);
    made m = make(chip_of("h200"), &s, "simt_32x64x16:splits=1,strips=1");
    assert_int_equal(m.list.step_count, 3);
    assert_true(m.args.overlaps && !m.args.waits_at_end);
    assert_true(m.launch->order != TGL_BESIDE);
    for (int i = 1; i < 3; i++) {
        const tgl_launch *strip = launch_of(&m.list, i);
        const struct tgl_gemm_args args = args_of(strip);
        assert_int_equal(strip->order, TGL_BESIDE);
        assert_true(args.waits_at_end);
        if (i == 1) assert_true(args.overlaps); /* another launch follows */
    }
    tgl_list_free(&m.list);
}

/* A tuned entry with strips has strips for its own shape; for similar shapes the model decides. */
static void measured_strips_hold_for_their_shape(void **state)
{
    (void)state;
    const tgl_tuned row = {"h200", "f32", "NN", 1025, 1025, 1025, 1, "simt_128x128x8:strips=1"};
    const tgl_shape same = shape_of(1025, 1025, 1025), near = shape_of(1025, 1026, 1025);
    assert_true(tgl_tuned_is_for(&row, "h200", &same));
    assert_false(tgl_tuned_is_for(&row, "h200", &near));
}

/* A tuned entry with or without strips is planned accordingly; for similar shapes the model
 * decides. */
static void tuned_strips_are_planned(void **state)
{
    (void)state;
    const tgl_tuned *row;
    int with_strips = 0;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        const tgl_shape s = shape_of_row(row);
        const tgl_request request = request_of(row->kernel);
        const tgl_candidate c = choose(row->chip, &s);
        if (request.strips == -1) continue;
        assert_true(c.is_tuned);
        assert_true((c.strip_count > 0) == (request.strips == 1));
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
        cmocka_unit_test(strips_begin_at_offsets),
        cmocka_unit_test(strips_run_beside_tiles),
        cmocka_unit_test(measured_strips_hold_for_their_shape),
        cmocka_unit_test(tuned_strips_are_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
