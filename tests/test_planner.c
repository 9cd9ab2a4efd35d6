/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's decisions, chip by chip, without a chip.
 */
#include "plan/planner.h"
#include "plan/tuned.h"
#include "plan_shape.h"
#include "support.h"

#include <math.h>

static int64_t tile(const tgl_candidate *c)
{
    return (int64_t)c->plan.row->simt.bm * c->plan.row->simt.bn;
}

/* ---- Choices --------------------------------------------------------------------------------- */

static void large_products_get_large_tiles(void **state)
{
    (void)state;
    for (int64_t side = 4096; side <= 12288; side += 1024) {
        const tgl_candidate c = choose_size("h200", side, side, side);
        assert_in_range(tile(&c), 96 * 128, 256 * 256);
        assert_true(c.compute > c.memory && c.compute > c.l2);
    }
}

static void small_products_fill_the_chip(void **state)
{
    (void)state;
    for (int64_t side = 256; side <= 1024; side *= 2) {
        const tgl_candidate c = choose_size("h200", side, side, side);
        assert_true(c.blocks >= 60);
    }
}

static void deep_products_split_k(void **state)
{
    (void)state;
    tgl_candidate c = choose_size("h200", 64, 64, 65536);
    assert_true(c.plan.splits >= 32);
    assert_int_equal(c.plan.tiles_whole, 0);
    c = choose_size("h200", 128, 128, 16384);
    assert_true(c.plan.splits >= 16);
    c = choose_size("h200", 4096, 4096, 16); /* nothing to split */
    assert_int_equal(c.plan.splits, 1);
}

/* By the kernel for few rows or columns that suits them best, or, of eight rows and more, by tiles
 * of sixteen rows, which are the faster of the two for some (tuned_h200.inc). */
static bool is_streamed(const tgl_candidate *c, int64_t rows, int64_t columns)
{
    const int64_t small = rows < columns ? rows : columns;
    const tgl_gemm_row *row = c->plan.row;
    return row->count > 0 ? row->count >= small && row->count <= 16
                          : rows >= 8 && rows <= 16 && row->simt.bm == 16;
}

static void few_rows_or_columns_are_streamed(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 4, 8};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        tgl_candidate c = choose_size("h200", counts[i], 14336, 4096);
        assert_true(is_streamed(&c, counts[i], 14336));
        assert_false(c.plan.big_a);
        c = choose_size("h200", 14336, counts[i], 4096);
        assert_true(is_streamed(&c, 14336, counts[i]));
        assert_true(c.plan.big_a);
    }
    const tgl_candidate c = choose_size("h200", 17, 14336, 4096);
    assert_int_equal(c.plan.row->count, 0);
    assert_true(choose_size("l40s", 1, 4096, 4096).plan.row->count >
                0); /* though one does not fit */
}

/* Blocks share the work evenly, and leave few partial sums. */
static void all_multiprocessors_stream(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 16; count *= 2)
        for (int layout = 0; layout < 4; layout++) {
            const bool tall = layout & 1;
            tgl_gemm_shape s = shape_of(tall ? 57344 : count, tall ? count : 57344, 8192);
            s.trans_a = tall && layout & 2;
            s.trans_b = !tall && layout & 2;
            s.lda = s.trans_a ? s.m : s.k;
            s.ldb = s.trans_b ? s.k : s.n;
            const tgl_candidate c = choose("h200", &s);
            assert_true(c.plan.row->count == count ||
                        (c.plan.row->count == 0 && is_streamed(&c, s.m, s.n)));
            assert_true(c.blocks >= 0.8 * 132);
            assert_true(4.0 * (double)c.plan.workspace_floats < 0.01 * 4 * 57344 * 8192);
            assert_true(c.seconds < 1.4 * 4 * 57344 * 8192 / 4.3e12);
        }
}

static tgl_candidate matvec_of(int64_t length, int64_t k, bool along_k)
{
    tgl_gemm_shape s = shape_of(1, length, k);
    s.trans_b = along_k;
    s.ldb = along_k ? k : length;
    return choose("h200", &s);
}

/* Blocks of a matrix times vector: a row at a time if rows are long, else as many as take k in one
 * step; columns narrow enough for blocks on every multiprocessor. */
static void one_row_has_short_blocks(void **state)
{
    (void)state;
    for (int64_t k = 64; k <= 65536; k *= 4) {
        const tgl_candidate c = matvec_of(20000, k, true);
        assert_string_equal(c.plan.row->name, "gemm/matvec");
        assert_int_equal(c.plan.lanes_k, k >= 4096 ? 256 : k / 16);
        assert_int_equal(c.plan.per_block, c.plan.threads / c.plan.lanes_k);
    }
    assert_int_equal(matvec_of(100, 65536, true).plan.threads, 512);
    for (int64_t length = 2048; length <= 65536; length *= 2) {
        const tgl_candidate c = matvec_of(length, 8192, false);
        assert_string_equal(c.plan.row->name, "gemm/matvec");
        assert_in_range(c.plan.per_block, 32, 128);
        assert_true(length < 4096 || c.blocks > 0.9 * 132);
        assert_int_equal(c.plan.threads * 4, c.plan.lanes_k * c.plan.per_block);
    }
    assert_int_equal(matvec_of(100000, 64, false).plan.lanes_k, 8); /* no more than k keeps busy */
}

/* Of few results with much k, and where a vector whose elements lie apart does not fit L1. */
static void one_row_may_need_another_kernel(void **state)
{
    (void)state;
    assert_true(matvec_of(512, 100000, false).plan.splits > 1);
    tgl_gemm_shape s = shape_of(4096, 1, 4096);
    s.ldb = 2;
    assert_string_equal(choose("h200", &s).plan.row->name, "gemm/skinny_1");
    s.trans_a = true; /* then it is read once a block */
    assert_string_equal(choose("h200", &s).plan.row->name, "gemm/matvec");
}

/* A column of B beside tiles is a vector whose elements lie apart: a thread that has one multiplies
 * it with a line more for each load that it does not issue ahead. */
static void a_gathered_vector_serves_several_lines(void **state)
{
    (void)state;
    for (int gathers = 0; gathers < 2; gathers++) {
        tgl_gemm_shape s = shape_of(1024, 1, 1024);
        s.ldb = gathers ? 1025 : 1;
        const tgl_candidate c = choose("h100", &s);
        assert_string_equal(c.plan.row->name, "gemm/matvec");
        assert_int_equal(c.plan.gathers, gathers);
        assert_int_equal(c.plan.lanes_k, gathers ? 256 : 64);
        assert_int_equal(c.plan.per_block, c.plan.threads / c.plan.lanes_k * (gathers ? 4 : 1));
        assert_int_equal(tgl_matvec_fours(&c.plan), 4);
    }
    tgl_gemm_plan plan;
    const tgl_gemm_shape two = shape_of(1024, 2, 1024);
    const tgl_gemm_split whole = {.splits = 1};
    assert_string_equal(tgl_gemm_plan_make(tgl_gemm_row_find("gemm/matvec_2"), &two, &whole, &plan),
                        "the elements of its vectors must lie next to each other");
}

/* Of a few rows or columns likewise, unless the elements of a vector lie apart. */
static void few_rows_have_short_blocks(void **state)
{
    (void)state;
    for (int64_t count = 2; count <= 4; count++)
        for (int i = 0; i < 4; i++) {
            const bool tall = i & 1, along_k = i & 2;
            tgl_gemm_shape s = shape_of(tall ? 4096 : count, tall ? count : 4096, 4096);
            s.trans_a = tall && !along_k;
            s.trans_b = tall || along_k;
            s.lda = s.trans_a ? s.m : s.k;
            s.ldb = s.trans_b ? s.k : s.n;
            const tgl_candidate c = choose("h100", &s); /* has no tuned table */
            assert_string_equal(c.plan.row->name, count == 2 ? "gemm/matvec_2" : "gemm/matvec_4");
            assert_int_equal(c.plan.along_k, along_k);
            assert_true(c.blocks > 0.9 * 132);
            assert_true(c.resident * c.plan.threads >= 512);
            assert_true(c.seconds < 1.3 * 4 * 4096 * 4096 / 3.0e12);
        }
    const tgl_gemm_shape apart = shape_of(4096, 4, 4096);
    assert_int_equal(choose("h100", &apart).plan.row->family, TGL_SKINNY);
}

/* Several vectors along k are loaded as widely as the matrix, so both must allow it. */
static void few_rows_are_as_wide_as_both_allow(void **state)
{
    (void)state;
    const tgl_gemm_split whole = {.splits = 1};
    tgl_gemm_plan plan;
    tgl_gemm_shape s = shape_of(4, 4096, 4096);
    s.trans_b = true;
    for (int i = 0; i < 2; i++) {
        s.lda = 4096 + i;
        const int width = i == 0 ? 4 : 1;
        assert_null(tgl_gemm_plan_make(tgl_gemm_row_find("gemm/matvec_4"), &s, &whole, &plan));
        assert_int_equal(plan.vec_a, width);
        assert_int_equal(plan.vec_b, width);
    }
    s.trans_b = false; /* then they are not loaded in fours */
    assert_null(tgl_gemm_plan_make(tgl_gemm_row_find("gemm/matvec_4"), &s, &whole, &plan));
    assert_int_equal(plan.vec_a, 1);
    assert_int_equal(plan.vec_b, 4);
}

static void small_products_of_a_batch_go_together(void **state)
{
    (void)state;
    for (int64_t side = 8; side <= 64; side += 8) {
        tgl_gemm_shape s = shape_of(side, side, side);
        s.batch = 4096;
        s.stride_a = s.stride_b = s.stride_c = side * side;
        const tgl_candidate c = choose("h200", &s);
        if (side <= 48) assert_int_equal(c.plan.row->family, TGL_SMALL_BATCH);
        assert_int_equal(c.plan.splits, 1);
    }
}

/* Every unit of work belongs to a block, and partial sums have room. */
static void skinny_work_is_shared(void **state)
{
    (void)state;
    for (int splits = 1; splits < 40; splits += 3)
        for (int blocks = 1; blocks < 300; blocks += 23) {
            const tgl_gemm_shape s = shape_of(16, 5000, 3000);
            const tgl_gemm_split split = {.splits = splits, .blocks = blocks};
            tgl_gemm_plan plan;
            assert_null(tgl_gemm_plan_make(tgl_gemm_row_find("gemm/skinny_16"), &s, &split, &plan));
            const int64_t tiles = tgl_ceil_div(5000, plan.per_block);
            const int64_t units =
                tiles * (plan.k_chunk < 3000 ? tgl_ceil_div(3000, plan.k_chunk) : 1);
            assert_true(plan.blocks <= units && plan.blocks <= blocks);
            assert_int_equal(plan.k_chunk < 3000 ? plan.k_chunk % tgl_skinny_step(&plan) : 0, 0);
            if (plan.workspace_floats == 0) continue;
            assert_int_equal(plan.workspace_floats, (int64_t)plan.blocks * 2 * plan.per_block * 16);
            assert_int_equal(plan.counters, tiles);
        }
}

/* Where the pointers do not allow fours, the big operand passes through shared memory. */
static void narrow_copies_take_room(void **state)
{
    (void)state;
    const tgl_gemm_split whole = {.splits = 1};
    tgl_gemm_plan plan;
    tgl_gemm_shape s = shape_of(16, 4096, 4096);
    assert_null(tgl_gemm_plan_make(tgl_gemm_row_find("gemm/skinny_16"), &s, &whole, &plan));
    assert_true(tgl_gemm_dynamic_shared(&plan, TGL_GEMM_ANY) >
                tgl_gemm_dynamic_shared(&plan, TGL_GEMM_ALIGNED));
    s.ldb = 4097;
    assert_null(tgl_gemm_plan_make(tgl_gemm_row_find("gemm/skinny_16"), &s, &whole, &plan));
    assert_int_equal(tgl_gemm_dynamic_shared(&plan, TGL_GEMM_ANY),
                     tgl_gemm_dynamic_shared(&plan, TGL_GEMM_ALIGNED));
}

/* Whose rates are taken as usual ones. */
static void chips_of_unknown_rates_are_predicted(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        {1, 5000, 300}, {3, 5000, 300}, {10, 5000, 300}, {20, 20, 20}, {258, 258, 100}};
    for (size_t i = 0; i < 3 * COUNT_OF(sizes); i++) {
        const int64_t *size = sizes[i / 3];
        tgl_chip_facts chip = *tgl_chip_facts_find("a100");
        if (i % 3 != 0) chip.fp32_lanes = 0;
        if (i % 3 != 1) chip.clock_mhz = 0, chip.l2_rate = 0;
        const tgl_plan_options any = {.size = sizeof any};
        const tgl_gemm_shape s = shape_of(size[0], size[1], size[2]);
        const tgl_gemm_row *row;
        tgl_candidate c;
        for (int j = 0; (row = tgl_gemm_row_at(j)) != NULL; j++) {
            tgl_planner_best_of_row(&chip, &s, row, &any, &c);
            if (c.rejected == NULL) assert_true(isfinite(c.seconds) && c.seconds > 0);
        }
        tgl_planner_choose(&chip, &s, &any, &c);
        assert_null(c.rejected);
        assert_true(isfinite(c.seconds) && c.seconds > 0);
    }
}

static void a_batch_fills_the_chip_without_splits(void **state)
{
    (void)state;
    tgl_gemm_shape shape = shape_of(64, 64, 64);
    shape.batch = 2048;
    shape.stride_a = shape.stride_b = shape.stride_c = 64 * 64;
    const tgl_candidate c = choose("h200", &shape);
    assert_int_equal(c.plan.splits, 1);
    assert_int_equal(c.plan.batch_step, 2048);
    shape.batch = 100000;
    assert_int_equal(choose("h200", &shape).plan.batch_step, 65535);
}

/* As many as there can be, by pointers, so that no size of theirs bounds it: nothing overflows, and
 * nothing is split for the want of blocks. */
static void the_largest_batch_is_planned(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 5000, 300},   {5000, 1, 300},  {3, 4096, 4096},
                                       {16, 4096, 4096}, {30, 30, 30},    {100, 100, 1000000},
                                       {4096, 10, 512},  {300, 300, 300}, {1 << 20, 1 << 20, 64}};
    const tgl_chip_facts *chip;
    for (int i = 0; (chip = tgl_chip_facts_at(i)) != NULL; i++)
        for (size_t j = 0; j < 4 * COUNT_OF(sizes); j++) {
            tgl_gemm_shape shape = shape_of(sizes[j / 4][0], sizes[j / 4][1], sizes[j / 4][2]);
            shape.trans_a = j & 1;
            shape.trans_b = j & 2;
            shape.lda = shape.ldb = shape.ldc = 1 << 20;
            shape.pointers = true;
            shape.batch = INT64_MAX / (int64_t)sizeof(void *);
            const tgl_candidate c = choose(chip->name, &shape);
            assert_int_equal(c.plan.splits, 1);
            assert_true(c.blocks > 0 && isfinite(c.seconds));
        }
}

/* The kernel counts tiles that blocks share, of a whole launch, in an int. */
static void split_tiles_of_a_batch_are_bounded(void **state)
{
    (void)state;
    tgl_gemm_shape shape = shape_of(32 * 1024, 32 * 32, 1000);
    tgl_gemm_plan plan;
    const tgl_gemm_row *row = tgl_gemm_row_find("gemm/simt_32x32x16");
    const tgl_gemm_split whole = {.splits = 1}, pair = {.splits = 2, .cluster_most = 8};
    shape.pointers = true;
    shape.batch = 65535;
    assert_null(tgl_gemm_plan_make(row, &shape, &pair, &plan));
    shape.m += 32;
    assert_ptr_equal(tgl_gemm_plan_make(row, &shape, &pair, &plan), tgl_gemm_grid_too_large);
    assert_null(tgl_gemm_plan_make(row, &shape, &whole, &plan));
}

/* One more row, column or step of k costs about what it adds. Where leading dimensions are no
 * longer multiples of four, the memory system has its say. */
static void there_are_no_cliffs(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1000, 2000, 3000, 4096};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const int64_t s = sizes[i];
        const double at = choose_size("h200", s, s, s).seconds;
        assert_true(choose_size("h200", s + 1, s, s).seconds < 1.10 * at);
        const double more = choose_size("h200", s, s + 1, s).seconds;
        assert_true(more < 1.10 * choose_size("h200", s, s - 1, s).seconds); /* odd, too */
        assert_true(s == 1000 || more < 1.10 * at); /* there copies of floats alone cost 11 % */
        assert_true(choose_size("h200", s, s, s + 1).seconds < 1.10 * at);
    }
}

/* Blocks of whole tiles come in clusters, too, if the last tiles are split so: on an H200 only 15
 * clusters of eight are at work at once, and 128 tiles would take two rounds. */
static void whole_tiles_leave_room_for_clusters(void **state)
{
    (void)state;
    tgl_gemm_plan plan;
    const tgl_gemm_shape shape = shape_of(1429, 768, 6677);
    const tgl_gemm_row *row = tgl_gemm_row_find("gemm/simt_64x128x8_s4");
    tgl_gemm_split split = {.splits = 8, .cluster_most = 8, .multiprocessors = 132};
    for (int whole = 112; whole <= 128; whole += 16) {
        split.whole = whole;
        assert_null(tgl_gemm_plan_make(row, &shape, &split, &plan));
        assert_int_equal(plan.cluster, whole == 112 ? 8 : 2);
        assert_int_equal(plan.tiles_whole, whole);
    }
}

/* Blocks of two warps leave schedulers without work where there are three to a multiprocessor:
 * 375 such tiles take as long as 528. */
static void odd_warps_are_told_from_even(void **state)
{
    (void)state;
    const tgl_plan_options asked = {.size = sizeof asked, .splits = 1};
    const tgl_gemm_row *row = tgl_gemm_row_find("gemm/simt_64x64x16");
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        const tgl_gemm_shape shape = shape_of(64 * (i == 0 ? 375 : 528), 64, 4096);
        tgl_candidate c;
        tgl_planner_best_of_row(tgl_chip_facts_find("h200"), &shape, row, &asked, &c);
        seconds[i] = c.seconds;
    }
    assert_true(seconds[0] > 0.97 * seconds[1] && seconds[0] < seconds[1]);
}

/* Lines that begin anywhere cost a shallow product more than a microsecond, and more yet in slices,
 * which store them float by float. */
static void stores_count(void **state)
{
    (void)state;
    const tgl_plan_options asked = {.size = sizeof asked, .splits = 1, .strips = TGL_STRIPS_NEVER};
    const char *const names[] = {"gemm/simt_96x128x8_s2", "gemm/simt_128x128x16_1"};
    double extra[2];
    for (int i = 0; i < 2; i++) {
        double seconds[2];
        for (int odd = 0; odd < 2; odd++) {
            tgl_gemm_shape shape = shape_of(1024, 1024, 16);
            shape.ldc += odd;
            tgl_candidate c;
            tgl_planner_best_of_row(tgl_chip_facts_find("h200"), &shape,
                                    tgl_gemm_row_find(names[i]), &asked, &c);
            seconds[odd] = c.seconds;
        }
        extra[i] = seconds[1] - seconds[0];
    }
    assert_true(extra[1] > 1e-6 && extra[0] > 1.2 * extra[1]);
}

static void every_chip_has_a_plan_for_everything(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3, 16, 17, 100, 2047, 40000};
    const tgl_chip_facts *chip;
    for (int i = 0; (chip = tgl_chip_facts_at(i)) != NULL; i++)
        for (int j = 0; j < 7 * 7 * 7; j++)
            choose_size(chip->name, sizes[j % 7], sizes[j / 7 % 7], sizes[j / 49]);
}

static void predictions_stay_below_the_peak(void **state)
{
    (void)state;
    const tgl_chip_facts *chip;
    for (int i = 0; (chip = tgl_chip_facts_at(i)) != NULL; i++) {
        const tgl_candidate c = choose_size(chip->name, 8192, 8192, 8192);
        const double peak = 2e6 * chip->clock_mhz * chip->fp32_lanes * chip->multiprocessors;
        const double rate = 2.0 * 8192 * 8192 * 8192 / c.seconds;
        assert_true(rate > 0.6 * peak && rate < 0.95 * peak);
    }
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static void asked_for_splits_are_given(void **state)
{
    (void)state;
    tgl_candidate c;
    const tgl_gemm_shape s = shape_of(4096, 4096, 4096);
    tgl_plan_options asked = {.size = sizeof asked, .splits = 1};
    tgl_planner_best_of_row(tgl_chip_facts_find("h200"), &s,
                            tgl_gemm_row_find("gemm/simt_128x128x8"), &asked, &c);
    assert_int_equal(c.plan.splits, 1);
    const tgl_gemm_shape deep = shape_of(64, 64, 4096);
    asked.splits = 7;
    tgl_planner_best_of_row(tgl_chip_facts_find("h200"), &deep,
                            tgl_gemm_row_find("gemm/simt_32x32x32"), &asked, &c);
    assert_int_equal(c.plan.splits, 7);
    tgl_plan_options options = {
        .size = sizeof options, .kernel = "gemm/simt_32x32x32", .splits = 3};
    char message[200];
    for (int64_t whole = 0; whole <= 4; whole++) { /* of 4 tiles */
        options.whole_tiles = whole;
        assert_int_equal(tgl_planner_plan(tgl_chip_facts_find("h200"), &deep, &options, &c, message,
                                          sizeof message),
                         TGL_OK);
        const int64_t unit = c.plan.cluster > 1 ? c.plan.cluster : 1;
        assert_int_equal(c.plan.tiles_whole, whole < 4 ? whole / unit * unit : 4);
        assert_int_equal(c.plan.splits, whole < 4 ? 3 : 1);
    }
    options.whole_tiles = 1;
    options.split_depth = 100; /* in steps of 32 */
    assert_int_equal(
        tgl_planner_plan(tgl_chip_facts_find("h200"), &deep, &options, &c, message, sizeof message),
        TGL_OK);
    assert_int_equal(c.plan.splits, 3);
    assert_int_equal(c.plan.tiles_whole, 1);
    assert_int_equal(c.plan.k_chunk, 128);
    assert_int_equal(tgl_gemm_first_depth(&c.plan, &deep), 4096 - 2 * 128);
    assert_int_equal(c.plan.cluster, 1);
    static const int64_t too_deep[] = {4096, 4097, INT64_MAX}; /* which leaves the first none */
    for (size_t i = 0; i < COUNT_OF(too_deep); i++) {
        options.split_depth = too_deep[i];
        assert_int_equal(tgl_planner_plan(tgl_chip_facts_find("h200"), &deep, &options, &c, message,
                                          sizeof message),
                         TGL_OK);
        assert_int_equal(c.plan.splits, 1);
        assert_int_equal(c.plan.tiles_whole, 4);
    }
}

/* Which tiles are whole, and how deep pieces are, is asked of the tiles of a kernel that is named.
 */
static void tiles_of_any_kernel_are_not_asked_for(void **state)
{
    (void)state;
    const tgl_gemm_shape s = shape_of(512, 512, 4096);
    const tgl_plan_options usual = {.size = sizeof usual, .splits = 3};
    tgl_plan_options asked = usual;
    tgl_candidate c, expected;
    char message[200];
    asked.whole_tiles = 1;
    asked.split_depth = 64;
    const tgl_chip_facts *chip = tgl_chip_facts_find("h200");
    assert_int_equal(tgl_planner_plan(chip, &s, &usual, &expected, message, sizeof message),
                     TGL_OK);
    assert_int_equal(tgl_planner_plan(chip, &s, &asked, &c, message, sizeof message), TGL_OK);
    assert_ptr_equal(c.plan.row, expected.plan.row);
    assert_int_equal(c.plan.tiles_whole, 0);
    assert_int_equal(c.plan.k_chunk, expected.plan.k_chunk);
}

/* 512 tiles on 132 multiprocessors: three rounds, and 116 tiles of which the 16 others take a part
 * each, in turns that end before the large parts do, though each takes as long as some 20 of k to
 * begin and to leave its sums. Where a strip follows, it needs more room. */
static void last_wave_is_shared_by_all(void **state)
{
    (void)state;
    enum { AROUND = 20, EARLY = 16, LATE = 132 - EARLY };
    tgl_candidate c, whole, beside;
    const tgl_gemm_shape s = shape_of(4096, 4096, 4096), odd = shape_of(4096, 4097, 4096);
    tgl_plan_options asked = {.size = sizeof asked}, strips = asked;
    const tgl_gemm_row *row = tgl_gemm_row_find("gemm/simt_128x256x8");
    const tgl_chip_facts *chip = tgl_chip_facts_find("h200");
    strips.strips = TGL_STRIPS_ALWAYS;
    tgl_planner_best_of_row(chip, &s, row, &asked, &c);
    tgl_planner_best_of_row(chip, &odd, row, &strips, &beside);
    asked.splits = 1;
    tgl_planner_best_of_row(chip, &s, row, &asked, &whole);
    const int64_t large = tgl_gemm_first_depth(&c.plan, &s);
    const int64_t turns = tgl_ceil_div(LATE * (c.plan.splits - 1), EARLY);
    assert_int_equal(c.plan.tiles_whole, 396);
    assert_true(c.plan.splits > 1);
    assert_true(turns * (c.plan.k_chunk + AROUND) < (large + AROUND) * 97 / 100);
    assert_true(turns * (c.plan.k_chunk + AROUND) > large * 9 / 10);
    assert_true(c.seconds < 0.99 * whole.seconds);
    assert_int_equal(beside.strip_count, 1);
    assert_int_equal(beside.plan.splits, c.plan.splits);
    assert_true(beside.plan.k_chunk < c.plan.k_chunk);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static void tuned_rows_name_what_there_is(void **state)
{
    (void)state;
    const tgl_tuned *row;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        assert_non_null(tgl_chip_facts_find(row->chip));
        assert_non_null(tgl_gemm_row_find(row->kernel));
        assert_int_equal(strlen(row->layout), 2);
        assert_true(row->m > 0 && row->n > 0 && row->k > 0 && row->batch > 0 && row->splits >= 0);
        assert_in_range(row->strips, TGL_STRIPS_AUTO, TGL_STRIPS_ALWAYS);
    }
}

static void what_holds_nearby_is_not_far_slower(void **state)
{
    (void)state;
    const tgl_tuned row = {"h200", "NN", 1000, 1000, 1000, 1, "gemm/simt_128x128x8", 0, 0};
    const tgl_gemm_shape same = shape_of(1000, 1000, 1000), near = shape_of(1000, 1001, 1000);
    tgl_candidate predicted = choose_size("h200", 1000, 1000, 1000), tuned = predicted;
    assert_true(tgl_tuned_holds(&row, &near, &tuned, &predicted));
    tuned.seconds *= 1.2;
    assert_false(tgl_tuned_holds(&row, &near, &tuned, &predicted));
    assert_true(tgl_tuned_holds(&row, &same, &tuned, &predicted)); /* a measurement */
    tuned = predicted;
    tuned.rejected = "it cannot serve";
    assert_false(tgl_tuned_holds(&row, &same, &tuned, &predicted));
}

/* ---- What is said ---------------------------------------------------------------------------- */

static void a_chip_that_is_not_there_is_explained(void **state)
{
    (void)state;
    static const char *const words[] = {"NVIDIA H200", "candidates", "rejected:", "choice",
                                        "occupancy",   "waves",      "ceiling",   "FLOP/byte"};
    const tgl_problem problem = tgl_problem_make(TGL_F32, 512, 512, 512);
    char text[16384], little[10];
    size_t length, again;
    assert_status(tgl_chip_explain("h200", &problem, NULL, text, sizeof text, &length), TGL_OK);
    assert_int_equal(length, strlen(text));
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strstr(text, words[i]) == NULL) fail_msg("\"%s\" is not in:\n%s", words[i], text);
    assert_status(tgl_chip_explain("h200", &problem, NULL, little, sizeof little, &again), TGL_OK);
    assert_int_equal(again, length);
    assert_int_equal(strlen(little), sizeof little - 1);
    assert_string_equal(tgl_chip_name(0), "h200");
    assert_null(tgl_chip_name(-1));
}

/* With strips of one column in most of them, more lines than configurations. */
static void every_candidate_is_listed(void **state)
{
    (void)state;
    const tgl_problem problem = tgl_problem_make(TGL_F32, 2, 1025, 4096);
    const tgl_gemm_row *row;
    char text[16384], line[64];
    size_t length;
    assert_status(tgl_chip_explain("h200", &problem, NULL, text, sizeof text, &length), TGL_OK);
    assert_true(length < sizeof text);
    for (int i = 0; (row = tgl_gemm_row_at(i)) != NULL; i++) {
        snprintf(line, sizeof line, "\n  %s ", row->name);
        if (strstr(text, line) == NULL) fail_msg("%s is not in:\n%s", row->name, text);
    }
}

static void what_cannot_be_explained(void **state)
{
    (void)state;
    char text[256];
    tgl_problem problem = tgl_problem_make(TGL_F32, 8, 8, 8);
    const tgl_plan_options unknown = {.size = sizeof unknown, .kernel = "gemm/none"};
    assert_status(tgl_chip_explain("no chip", &problem, NULL, text, sizeof text, NULL),
                  TGL_NO_DEVICE);
    assert_status(tgl_chip_explain(NULL, &problem, NULL, text, sizeof text, NULL), TGL_NO_DEVICE);
    assert_status(tgl_chip_explain("a100", &problem, &unknown, text, sizeof text, NULL),
                  TGL_UNKNOWN_KERNEL);
    const tgl_plan_options rung = {.size = sizeof rung, .kernel = "ladder/naive"};
    assert_status(tgl_chip_explain("a100", &problem, &rung, text, sizeof text, NULL),
                  TGL_UNSUPPORTED);
    assert_string_equal(text, "ladder/naive is of the ladder, whose kernels are not planned: each "
                              "runs in one way");
    const tgl_epilogue strange = {.size = sizeof strange, .bias = (tgl_bias)7};
    const tgl_plan_options with_strange = {.size = sizeof with_strange, .epilogue = &strange};
    assert_status(tgl_chip_explain("a100", &problem, &with_strange, text, sizeof text, NULL),
                  TGL_BAD_EPILOGUE);
    problem.lda = 1;
    assert_status(tgl_chip_explain("a100", &problem, NULL, text, sizeof text, NULL), TGL_BAD_LDA);
    problem = tgl_problem_make(TGL_F64, 8, 8, 8);
    assert_status(tgl_chip_explain("a100", &problem, NULL, text, sizeof text, NULL),
                  TGL_UNSUPPORTED);
    problem = tgl_problem_make(TGL_F32, 1 << 30, 1 << 29, 8);
    assert_status(tgl_chip_explain("a100", &problem, NULL, text, sizeof text, NULL),
                  TGL_GRID_TOO_LARGE);
    assert_non_null(strstr(text, "grid"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_products_get_large_tiles),
        cmocka_unit_test(small_products_fill_the_chip),
        cmocka_unit_test(deep_products_split_k),
        cmocka_unit_test(few_rows_or_columns_are_streamed),
        cmocka_unit_test(all_multiprocessors_stream),
        cmocka_unit_test(small_products_of_a_batch_go_together),
        cmocka_unit_test(one_row_has_short_blocks),
        cmocka_unit_test(one_row_may_need_another_kernel),
        cmocka_unit_test(a_gathered_vector_serves_several_lines),
        cmocka_unit_test(few_rows_have_short_blocks),
        cmocka_unit_test(few_rows_are_as_wide_as_both_allow),
        cmocka_unit_test(skinny_work_is_shared),
        cmocka_unit_test(narrow_copies_take_room),
        cmocka_unit_test(chips_of_unknown_rates_are_predicted),
        cmocka_unit_test(a_batch_fills_the_chip_without_splits),
        cmocka_unit_test(the_largest_batch_is_planned),
        cmocka_unit_test(split_tiles_of_a_batch_are_bounded),
        cmocka_unit_test(there_are_no_cliffs),
        cmocka_unit_test(whole_tiles_leave_room_for_clusters),
        cmocka_unit_test(odd_warps_are_told_from_even),
        cmocka_unit_test(stores_count),
        cmocka_unit_test(every_chip_has_a_plan_for_everything),
        cmocka_unit_test(predictions_stay_below_the_peak),
        cmocka_unit_test(asked_for_splits_are_given),
        cmocka_unit_test(tiles_of_any_kernel_are_not_asked_for),
        cmocka_unit_test(last_wave_is_shared_by_all),
        cmocka_unit_test(tuned_rows_name_what_there_is),
        cmocka_unit_test(what_holds_nearby_is_not_far_slower),
        cmocka_unit_test(a_chip_that_is_not_there_is_explained),
        cmocka_unit_test(every_candidate_is_listed),
        cmocka_unit_test(what_cannot_be_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
