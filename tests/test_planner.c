/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's decisions for several chips, none of which need be present.
 */
#include "plan_shape.h"

/* The number of elements of D that a block computes. */
static int64_t tile(const tgl_candidate *c)
{
    int rows, columns;
    assert_non_null(c->choice.family->tile);
    c->choice.family->tile(c->choice.configuration, &rows, &columns);
    return (int64_t)rows * columns;
}

static void assert_kernel(const tgl_candidate *c, const char *name)
{
    assert_string_equal(tgl_choice_name(&c->choice), name);
}

/* Makes the first launch of the planner's choice for a chip. */
static made made_by(const char *chip, const tgl_shape *shape)
{
    const tgl_candidate c = choose(chip, shape);
    return make_of(chip_of(chip), shape, &c);
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
    assert_true(c.splits >= 32);
    const tgl_shape deep = shape_of(64, 64, 65536);
    made m = make_of(chip_of("h200"), &deep, &c);
    assert_int_equal(m.args.tiles_whole, 0);
    tgl_list_free(&m.list);
    c = choose_size("h200", 128, 128, 16384);
    assert_true(c.splits >= 16);
    c = choose_size("h200", 4096, 4096, 16); /* k is too short to be split */
    assert_int_equal(c.splits, 1);
}

/* Whether the choice is a kernel for few rows or columns that suits them best, or, for eight rows
 * and more, tiles of sixteen rows, which are faster for some shapes (tuned_h200.inc). */
static bool is_streamed(const tgl_candidate *c, int64_t rows, int64_t columns)
{
    const int64_t small = rows < columns ? rows : columns, lines = lines_of(&c->choice);
    int tile_rows = 0, tile_columns;
    if (lines > 0) return lines >= small && lines <= 16;
    if (c->choice.family->tile != NULL)
        c->choice.family->tile(c->choice.configuration, &tile_rows, &tile_columns);
    return rows >= 8 && rows <= 16 && tile_rows == 16;
}

/* Whether the kernel streams A, the large operand, which it reads once. */
static bool has_big_a(const tgl_candidate *c, int64_t m, int64_t n, int64_t k)
{
    const tgl_shape s = shape_of(m, n, k);
    made x = make_of(chip_of("h200"), &s, c);
    const bool has = lines_of(&c->choice) > 0 && macro_of(x.kernel, "BIG_A") == 1;
    tgl_list_free(&x.list);
    return has;
}

static void few_rows_or_columns_are_streamed(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 4, 8};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        tgl_candidate c = choose_size("h200", counts[i], 14336, 4096);
        assert_true(is_streamed(&c, counts[i], 14336));
        assert_false(has_big_a(&c, counts[i], 14336, 4096));
        c = choose_size("h200", 14336, counts[i], 4096);
        assert_true(is_streamed(&c, 14336, counts[i]));
        assert_true(has_big_a(&c, 14336, counts[i], 4096));
    }
    const tgl_candidate c = choose_size("h200", 17, 14336, 4096);
    assert_int_equal(lines_of(&c.choice), 0);
    const tgl_candidate one = choose_size("l40s", 1, 4096, 4096);
    assert_true(lines_of(&one.choice) > 0); /* even if one column does not fit */
}

/* All SMs have work: blocks have equal amounts of it, and few partial sums. */
static void all_sms_stream(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 16; count *= 2)
        for (int layout = 0; layout < 4; layout++) {
            const bool tall = layout & 1;
            tgl_shape s = shape_of(tall ? 57344 : count, tall ? count : 57344, 8192);
            s.trans_a = tall && layout & 2;
            s.trans_b = !tall && layout & 2;
            s.lda = s.trans_a ? s.m : s.k;
            s.ldb = s.trans_b ? s.k : s.n;
            const tgl_candidate c = choose("h200", &s);
            const int lines = lines_of(&c.choice);
            assert_true(lines == count || (lines == 0 && is_streamed(&c, s.m, s.n)));
            assert_true(c.blocks >= 0.8 * 132);
            assert_true((double)c.workspace_bytes < 0.01 * 4 * 57344 * 8192);
            assert_true(c.seconds < 1.4 * 4 * 57344 * 8192 / 4.3e12);
        }
}

static made gemv_of(int64_t length, int64_t k, bool k_major)
{
    const tgl_shape s = transposed_shape_of(1, length, k, false, k_major);
    return made_by("h200", &s);
}

/* The number of rows or columns of the matrix that a block reads, by the kernel's macros. Fails
 * unless the grid agrees. */
static int64_t lines_per_block(const made *m, int64_t length)
{
    const long lanes_k = macro_of(m->kernel, "LANES_K"), lines = macro_of(m->kernel, "LINES");
    const bool k_major = macro_of(m->kernel, "ALONG_K") == 1;
    const int64_t per_block = m->launch->threads / lanes_k * (k_major ? lines : 4);
    assert_int_equal(m->launch->threads, 32 * macro_of(m->kernel, "WARPS"));
    assert_int_equal(m->launch->grid[0], ceil_div(length, per_block));
    return per_block;
}

/* Blocks of a GEMV: one row at a time if rows are long, else the number of rows for which one step
 * covers K; few enough columns per block to have blocks on every SM. */
static void one_row_has_short_blocks(void **state)
{
    (void)state;
    for (int64_t k = 64; k <= 65536; k *= 4) {
        made m = gemv_of(20000, k, true);
        assert_kernel(&m.candidate, "gemv");
        assert_int_equal(macro_of(m.kernel, "LANES_K"), k >= 4096 ? 256 : k / 16);
        assert_int_equal(lines_per_block(&m, 20000),
                         m.launch->threads / macro_of(m.kernel, "LANES_K"));
        tgl_list_free(&m.list);
    }
    made few = gemv_of(100, 65536, true);
    assert_int_equal(few.launch->threads, 512);
    tgl_list_free(&few.list);
    for (int64_t length = 2048; length <= 65536; length *= 2) {
        made m = gemv_of(length, 8192, false);
        assert_kernel(&m.candidate, "gemv");
        assert_in_range(lines_per_block(&m, length), 32, 128);
        assert_true(length < 4096 || m.candidate.blocks > 0.9 * 132);
        tgl_list_free(&m.list);
    }
    made shallow = gemv_of(100000, 64, false);
    assert_int_equal(macro_of(shallow.kernel, "LANES_K"),
                     8); /* a larger value would leave lanes without work */
    tgl_list_free(&shallow.list);
}

/* For one or several vectors of 16 bits times a matrix of many long rows, two warps share K. They
 * do not if one step covers K, or if rows are few. */
static void rows_of_16_bits_have_small_blocks(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        int64_t count, length, k;
        int threads, lanes_k;
    } cases[] = {{"gemv", 1, 28672, 3584, 128, 64},    {"gemv", 1, 2112, 65536, 128, 64},
                 {"gemv", 1, 28672, 2048, 256, 64},    {"gemv", 1, 2111, 65536, 256, 256},
                 {"gemv_2", 2, 28672, 65536, 128, 64}, {"gemv", 1, 100, 65536, 512, 512},
                 {"gemv_2", 2, 2111, 65536, 256, 256}, {"gemv_4", 4, 28672, 3584, 128, 64}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tgl_shape s = transposed_shape_of(cases[i].count, cases[i].length, cases[i].k, false, true);
        s.type_a = s.type_b = s.type_c = s.type_d = TGL_BF16;
        made m = make(chip_of("h200"), &s, cases[i].kernel);
        assert_int_equal(m.launch->threads, cases[i].threads);
        assert_int_equal(macro_of(m.kernel, "LANES_K"), cases[i].lanes_k);
        assert_int_equal(macro_of(m.kernel, "WARPS"), cases[i].threads / 32);
        tgl_list_free(&m.list);
    }
}

/* A GEMV with few results and large K, or with a strided vector that does not fit in L1, uses
 * another kernel. */
static void one_row_may_need_another_kernel(void **state)
{
    (void)state;
    assert_true(choose_size("h200", 1, 512, 100000).splits > 1);
    tgl_shape s = shape_of(4096, 1, 4096);
    s.ldb = 2;
    tgl_candidate c = choose("h200", &s);
    assert_kernel(&c, "skinny_1");
    s.trans_a = true; /* then a block reads it once */
    c = choose("h200", &s);
    assert_kernel(&c, "gemv");
}

/* A strip of one column of B is a strided vector. A thread multiplies each of its elements with
 * several rows of A, one more for each load that it does not issue ahead. */
static void a_strided_vector_serves_several_lines(void **state)
{
    (void)state;
    for (int is_strided = 0; is_strided < 2; is_strided++) {
        tgl_shape s = shape_of(1024, 1, 1024);
        s.ldb = is_strided ? 1025 : 1;
        made m = made_by("h100", &s);
        const long lanes_k = macro_of(m.kernel, "LANES_K");
        assert_kernel(&m.candidate, "gemv");
        assert_int_equal(macro_of(m.kernel, "LINES"), is_strided ? 4 : 1);
        assert_int_equal(lanes_k, is_strided ? 256 : 64);
        assert_int_equal(lines_per_block(&m, 1024),
                         m.launch->threads / lanes_k * (is_strided ? 4 : 1));
        assert_int_equal(macro_of(m.kernel, "LINES") * macro_of(m.kernel, "UNROLL"), 4);
        tgl_list_free(&m.list);
    }
    const tgl_shape two = shape_of(1024, 2, 1024);
    const tgl_candidate c = best_of(chip_of("h200"), &two, "gemv_2");
    assert_non_null(c.rejected);
    assert_non_null(strstr(c.rejected, "vectors must"));
}

/* Products with a few rows or columns use short blocks, too, unless the vectors are strided. */
static void few_rows_have_short_blocks(void **state)
{
    (void)state;
    for (int64_t count = 2; count <= 4; count++)
        for (int i = 0; i < 4; i++) {
            const bool tall = i & 1, k_major = i & 2;
            const tgl_shape s = transposed_shape_of(tall ? 4096 : count, tall ? count : 4096, 4096,
                                                    tall && !k_major, tall || k_major);
            made m = made_by("h100", &s);
            assert_kernel(&m.candidate, count == 2 ? "gemv_2" : "gemv_4");
            assert_int_equal(macro_of(m.kernel, "ALONG_K"), k_major);
            assert_true(m.candidate.blocks > 0.9 * 132);
            assert_true(m.candidate.resident * m.candidate.threads >= 512);
            assert_true(m.candidate.seconds < 1.3 * 4 * 4096 * 4096 / 3.0e12);
            tgl_list_free(&m.list);
        }
    const tgl_shape strided = shape_of(4096, 4, 4096);
    const tgl_candidate c = choose("h100", &strided);
    assert_true(is_of_family(&c.choice, "skinny"));
}

/* The alignment in bytes that a launch requires of an operand; 1: any. */
static int alignment_of(const tgl_launch *launch, tgl_operand operand)
{
    int alignment = 1;
    for (int i = 0; i < launch->condition_count; i++)
        if (launch->conditions[i].kind == TGL_IF_ALIGNED &&
            launch->conditions[i].operand == operand)
            alignment = launch->conditions[i].alignment;
    return alignment;
}

/* Several K-major vectors are loaded with the same width as the matrix, so both must be aligned. */
static void few_rows_are_as_wide_as_both_allow(void **state)
{
    (void)state;
    tgl_shape s = transposed_shape_of(4, 4096, 4096, false, true);
    for (int i = 0; i < 2; i++) {
        s.lda = 4096 + i;
        const int width = i == 0 ? 4 : 1;
        made m = make(chip_of("h200"), &s, "gemv_4");
        assert_int_equal(macro_of(m.kernel, "VEC"), width);
        assert_int_equal(alignment_of(m.launch, TGL_AT_A), width == 4 ? 16 : 1);
        assert_int_equal(alignment_of(m.launch, TGL_AT_B), width == 4 ? 16 : 1);
        tgl_list_free(&m.list);
    }
    s.trans_b = false; /* then there are no float4 loads of the vectors */
    made m = make(chip_of("h200"), &s, "gemv_4");
    assert_int_equal(macro_of(m.kernel, "VEC"), 4);
    assert_int_equal(alignment_of(m.launch, TGL_AT_A), 1);
    assert_int_equal(alignment_of(m.launch, TGL_AT_B), 16);
    tgl_list_free(&m.list);
}

static void small_products_of_a_batch_go_together(void **state)
{
    (void)state;
    for (int64_t side = 8; side <= 64; side += 8) {
        tgl_shape s = shape_of(side, side, side);
        make_batch(&s, 4096);
        const tgl_candidate c = choose("h200", &s);
        if (side <= 48) assert_true(is_of_family(&c.choice, "small_batch"));
        assert_int_equal(c.splits, 1);
    }
}

/* In kernels for few rows every unit of work belongs to one block, and the workspace is large
 * enough for all partial sums. */
static void skinny_work_is_shared(void **state)
{
    (void)state;
    const tgl_shape s = shape_of(16, 5000, 3000);
    for (int splits = 1; splits < 40; splits += 3)
        for (int blocks = 1; blocks < 300; blocks += 23) {
            made m =
                make_with(chip_of("h200"), &s, "skinny_16:splits=%d,blocks=%d", splits, blocks);
            const int64_t per_block = 32 * macro_of(m.kernel, "RESULTS"), grid = m.launch->grid[0];
            const int64_t tiles = ceil_div(5000, per_block), chunk = m.args.k_chunk;
            const int64_t units = tiles * (chunk < 3000 ? ceil_div(3000, chunk) : 1);
            const long step = 4 * macro_of(m.kernel, "UNROLL") * macro_of(m.kernel, "WARPS");
            assert_int_equal(macro_of(m.kernel, "ALONG_K"), 0);
            assert_true(grid <= units && grid <= blocks);
            assert_int_equal(chunk < 3000 ? chunk % step : 0, 0);
            if (m.list.scratch_bytes > 0) {
                assert_int_equal(m.list.scratch_bytes, as_reserved(4 * grid * 2 * per_block * 16));
                assert_int_equal(m.list.counter_bytes, as_reserved(4 * tiles));
                assert_int_equal(tgl_list_workspace(&m.list),
                                 m.list.scratch_bytes + m.list.counter_bytes);
            }
            tgl_list_free(&m.list);
        }
}

/* If the pointers do not allow float4 loads, the large operand is copied through shared memory. */
static void narrow_copies_take_room(void **state)
{
    (void)state;
    const tgl_run any = run_of(true, 4);
    tgl_shape s = shape_of(16, 4096, 4096);
    made wide = make(chip_of("h200"), &s, "skinny_16");
    assert_true(tgl_step_choose(&wide.list.steps[0], &any)->dynamic_shared >
                wide.launch->dynamic_shared);
    s.ldb = 4097;
    made narrow = make(chip_of("h200"), &s, "skinny_16");
    assert_int_equal(tgl_step_choose(&narrow.list.steps[0], &any)->dynamic_shared,
                     narrow.launch->dynamic_shared);
    tgl_list_free(&wide.list);
    tgl_list_free(&narrow.list);
}

/* Typical rates are used for chips with unknown rates. */
static void chips_of_unknown_rates_are_predicted(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        {1, 5000, 300}, {3, 5000, 300}, {10, 5000, 300}, {20, 20, 20}, {258, 258, 100}};
    for (size_t i = 0; i < 3 * COUNT_OF(sizes); i++) {
        const int64_t *size = sizes[i / 3];
        tgl_chip chip = *tgl_chip_find("a100");
        if (i % 3 != 0) chip.fp32_lanes = 0;
        if (i % 3 != 1) chip.clock_mhz = 0, chip.l2_rate = 0;
        const tgl_shape s = shape_of(size[0], size[1], size[2]);
        tgl_choice choice;
        tgl_candidate c;
        for (int j = 0; tgl_configuration_at(j, &choice); j++) {
            if (choice.family->is_on_request) continue;
            tgl_planner_best_of(&chip, &s, &choice, -1, TGL_WORKSPACE_MAX, &c);
            if (c.rejected == NULL) assert_true(isfinite(c.seconds) && c.seconds > 0);
        }
        c = choose_on(&chip, &s, NULL);
        assert_true(isfinite(c.seconds) && c.seconds > 0);
    }
}

static void a_batch_fills_the_chip_without_splits(void **state)
{
    (void)state;
    tgl_shape shape = shape_of(64, 64, 64);
    make_batch(&shape, 2048);
    made m = made_by("h200", &shape);
    assert_int_equal(m.candidate.splits, 1);
    assert_int_equal(m.launch->repeats, 1);
    assert_int_equal(m.launch->last_count, 2048);
    tgl_list_free(&m.list);
    shape.batch = 100000;
    m = made_by("h200", &shape);
    assert_int_equal(m.launch->repeats, 2);
    assert_int_equal(m.launch->count, 65535);
    assert_int_equal(m.launch->last_count, 100000 - 65535);
    assert_true(m.launch->count_in_grid_z);
    tgl_list_free(&m.list);
}

/* The largest possible batch, by pointers, so that no matrix size limits it: nothing overflows, and
 * there is no split-K, because there are enough blocks. */
static void the_largest_batch_is_planned(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 5000, 300},   {5000, 1, 300},  {3, 4096, 4096},
                                       {16, 4096, 4096}, {30, 30, 30},    {100, 100, 1000000},
                                       {4096, 10, 512},  {300, 300, 300}, {1 << 20, 1 << 20, 64}};
    const tgl_chip *chip;
    for (int i = 0; (chip = tgl_chip_at(i)) != NULL; i++)
        for (size_t j = 0; j < 4 * COUNT_OF(sizes); j++) {
            tgl_shape shape = shape_of(sizes[j / 4][0], sizes[j / 4][1], sizes[j / 4][2]);
            shape.trans_a = j & 1;
            shape.trans_b = j & 2;
            shape.lda = shape.ldb = shape.ldc = shape.ldd = 1 << 20;
            shape.pointers = true;
            shape.batch = INT64_MAX / (int64_t)sizeof(void *);
            const tgl_candidate c = choose(chip->name, &shape);
            assert_int_equal(c.splits, 1);
            assert_true(c.blocks > 0 && isfinite(c.seconds));
            tgl_launch_list list = list_of(chip, &shape, &c);
            for (int step = 0; step < list.step_count; step++) {
                const tgl_launch *launch = launch_of(&list, step);
                assert_true(launch->repeats > 0 && launch->count > 0 && launch->last_count > 0);
                assert_true((launch->repeats - 1) <=
                            (shape.batch - launch->last_count) / launch->count);
                assert_int_equal((launch->repeats - 1) * launch->count + launch->last_count,
                                 shape.batch);
            }
            tgl_list_free(&list);
        }
}

/* The kernel counts the split tiles of a launch in an int, so their number is limited. */
static void split_tiles_of_a_batch_are_bounded(void **state)
{
    (void)state;
    tgl_shape shape = shape_of(32 * 1024, 32 * 32, 1000);
    shape.pointers = true;
    shape.batch = 65535;
    const char *const pair = "simt_32x32x16:splits=2,strips=0";
    assert_null(best_of(chip_of("h200"), &shape, pair).rejected);
    shape.m += 32;
    const tgl_candidate c = best_of(chip_of("h200"), &shape, pair);
    assert_non_null(c.rejected);
    assert_status(c.rejected_status, TGL_GRID_TOO_LARGE);
    assert_null(best_of(chip_of("h200"), &shape, "simt_32x32x16:splits=1,strips=0").rejected);
}

/* One more row, column or step along K must cost little more than its work, except for the effect
 * of leading dimensions that are not multiples of four. */
static void there_are_no_cliffs(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1000, 2000, 3000, 4096};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const int64_t s = sizes[i];
        const double at = choose_size("h200", s, s, s).seconds;
        assert_true(choose_size("h200", s + 1, s, s).seconds < 1.10 * at);
        const double more = choose_size("h200", s, s + 1, s).seconds;
        assert_true(more <
                    1.10 * choose_size("h200", s, s - 1, s).seconds); /* the other odd size, too */
        assert_true(s == 1000 || more < 1.10 * at); /* at 1000 scalar copies alone cost 11 % */
        assert_true(choose_size("h200", s, s, s + 1).seconds < 1.10 * at);
    }
}

/* If the last tiles are split, the blocks of whole tiles are in clusters, too. An H200 runs only 15
 * clusters of eight at a time, so 128 tiles would take two waves. */
static void whole_tiles_leave_room_for_clusters(void **state)
{
    (void)state;
    const tgl_shape shape = shape_of(1429, 768, 6677);
    for (int whole = 112; whole <= 128; whole += 16) {
        made m = make_with(chip_of("h200"), &shape, "simt_64x128x8_s4:splits=8,whole=%d,strips=0",
                           whole);
        assert_int_equal(m.args.cluster, whole == 112 ? 8 : 2);
        assert_int_equal(m.launch->cluster[0], m.args.cluster);
        assert_int_equal(m.args.tiles_whole, whole);
        tgl_list_free(&m.list);
    }
}

/* With blocks of two warps and three blocks per SM, some schedulers have no work: 375 such tiles
 * take as long as 528. */
static void odd_warps_are_told_from_even(void **state)
{
    (void)state;
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        const tgl_shape shape = shape_of(64 * (i == 0 ? 375 : 528), 64, 4096);
        seconds[i] = best_of(chip_of("h200"), &shape, "simt_64x64x16:splits=1").seconds;
    }
    assert_true(seconds[0] > 0.97 * seconds[1] && seconds[0] < seconds[1]);
}

/* Unaligned rows of D cost a product with a short k more than a microsecond, and even more with
 * slices, which store single floats. */
static void stores_count(void **state)
{
    (void)state;
    const char *const names[] = {"simt_96x128x8_s2:splits=1,strips=0",
                                 "simt_128x128x16_1:splits=1,strips=0"};
    double extra[2];
    for (int i = 0; i < 2; i++) {
        double seconds[2];
        for (int odd = 0; odd < 2; odd++) {
            tgl_shape shape = shape_of(1024, 1024, 16);
            shape.ldc += odd;
            shape.ldd += odd;
            seconds[odd] = best_of(chip_of("h200"), &shape, names[i]).seconds;
        }
        extra[i] = seconds[1] - seconds[0];
    }
    assert_true(extra[1] > 1e-6 && extra[0] > 1.2 * extra[1]);
}

/* wgmma stores unaligned rows of FP32 results by single floats, which is slower. Rows of 16-bit
 * results take the same time at any alignment. */
static void wgmma_stores_single_floats(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        double seconds[2];
        for (int odd = 0; odd < 2; odd++) {
            tgl_shape shape = transposed_shape_of(2048, 2048, 64, false, true);
            if (half) shape.type_a = shape.type_b = shape.type_c = shape.type_d = TGL_BF16;
            shape.compute = TGL_COMPUTE_TF32;
            shape.ldc += odd, shape.ldd += odd;
            seconds[odd] = best_of(chip_of("h200"), &shape, "wgmma_128x128").seconds;
        }
        if (half)
            assert_true(seconds[0] > 0 && seconds[1] < seconds[0] + 1e-6);
        else
            assert_true(seconds[0] > 0 && seconds[1] > seconds[0] + 1e-6);
    }
    tgl_shape batch = shape_of(166, 50, 36);
    batch.compute = TGL_COMPUTE_TF32;
    make_batch(&batch, 1000);
    const tgl_candidate choice = choose("h200", &batch);
    assert_string_equal(tgl_choice_name(&choice.choice), "batch_mma_64x64");
}

static void every_chip_has_a_plan_for_everything(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3, 16, 17, 100, 2047, 40000};
    const tgl_chip *chip;
    for (int i = 0; (chip = tgl_chip_at(i)) != NULL; i++)
        for (int j = 0; j < 7 * 7 * 7; j++)
            choose_size(chip->name, sizes[j % 7], sizes[j / 7 % 7], sizes[j / 49]);
}

static void predictions_stay_below_the_peak(void **state)
{
    (void)state;
    const tgl_chip *chip;
    for (int i = 0; (chip = tgl_chip_at(i)) != NULL; i++) {
        const tgl_candidate c = choose_size(chip->name, 8192, 8192, 8192);
        const double peak = 2e6 * chip->clock_mhz * chip->fp32_lanes * chip->sms;
        const double rate = 2.0 * 8192 * 8192 * 8192 / c.seconds;
        assert_true(rate > 0.6 * peak && rate < 0.95 * peak);
    }
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static void asked_for_splits_are_given(void **state)
{
    (void)state;
    const tgl_chip *chip = chip_of("h200");
    const tgl_shape s = shape_of(4096, 4096, 4096), deep = shape_of(64, 64, 4096);
    assert_int_equal(best_of(chip, &s, "simt_128x128x8:splits=1").splits, 1);
    assert_int_equal(best_of(chip, &deep, "simt_32x32x32:splits=7").splits, 7);
    for (int whole = 0; whole <= 4; whole++) { /* of 4 tiles */
        made m = make_with(chip, &deep, "simt_32x32x32:splits=3,whole=%d", whole);
        const int unit = m.args.cluster > 1 ? m.args.cluster : 1;
        assert_int_equal(m.args.tiles_whole, whole < 4 ? whole / unit * unit : 4);
        assert_int_equal(m.args.splits, whole < 4 ? 3 : 1);
        tgl_list_free(&m.list);
    }
    made m =
        make(chip, &deep, "simt_32x32x32:splits=3,whole=1,depth=100"); /* rounded to steps of 32 */
    assert_int_equal(m.args.splits, 3);
    assert_int_equal(m.args.tiles_whole, 1);
    assert_int_equal(m.args.k_chunk, 128);
    assert_int_equal(m.args.cluster, 1);
    assert_int_equal(m.launch->grid[0], 1 + 3 * 3);
    tgl_list_free(&m.list);
    static const int too_deep[] = {4096, 4097,
                                   INT32_MAX}; /* no depth is left for the first split */
    for (size_t i = 0; i < COUNT_OF(too_deep); i++) {
        m = make_with(chip, &deep, "simt_32x32x32:splits=3,whole=1,depth=%d", too_deep[i]);
        assert_int_equal(m.args.splits, 1);
        assert_int_equal(m.args.tiles_whole, 4);
        tgl_list_free(&m.list);
    }
}

/* 512 tiles on 132 SMs are three full waves and 116 tiles of a fourth. The 16 SMs that have no tile
 * of the last wave compute parts of its tiles. These small parts must end before the large parts
 * do. Each part also costs as much as about 20 steps along K to start and to store its sums. If a
 * strip follows, it needs more time. */
static void last_wave_is_shared_by_all(void **state)
{
    (void)state;
    enum { AROUND = 20, EARLY = 16, LATE = 132 - EARLY };
    const tgl_shape s = shape_of(4096, 4096, 4096), odd = shape_of(4096, 4097, 4096);
    const tgl_chip *chip = chip_of("h200");
    const tgl_candidate best = best_of(chip, &s, "simt_128x256x8");
    const tgl_candidate with_strip = best_of(chip, &odd, "simt_128x256x8:strips=1");
    const tgl_candidate whole = best_of(chip, &s, "simt_128x256x8:splits=1");
    made m = make_of(chip, &s, &best), beside = make_of(chip, &odd, &with_strip);
    const int64_t large = 4096 - (int64_t)(m.args.splits - 1) * m.args.k_chunk;
    const int64_t turns = ceil_div(LATE * (m.args.splits - 1), EARLY);
    assert_int_equal(m.args.tiles_whole, 396);
    assert_true(m.args.splits > 1);
    assert_true(best.is_uneven);
    assert_true(turns * (m.args.k_chunk + AROUND) < (large + AROUND) * 97 / 100);
    assert_true(turns * (m.args.k_chunk + AROUND) > large * 9 / 10);
    assert_true(best.seconds < 0.99 * whole.seconds);
    assert_int_equal(with_strip.strip_count, 1);
    assert_int_equal(beside.args.splits, m.args.splits);
    assert_true(beside.args.k_chunk < m.args.k_chunk);
    tgl_list_free(&m.list);
    tgl_list_free(&beside.list);
}

/* A product with split-K uses less workspace, or none, if the limit is lower. */
static void workspace_is_limited(void **state)
{
    (void)state;
    const tgl_shape s = shape_of(256, 256, 16384);
    const char *const kernel = "simt_64x64x16"; /* its splits are not all in one cluster */
    static const int64_t limits[] = {0, 1 << 20, 300000, -1};
    int64_t before = INT64_MAX;
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        tgl_request request;
        tgl_candidate c;
        assert_status(tgl_request_make(kernel, limits[i], &request), TGL_OK);
        assert_status(tgl_planner_choose(chip_of("a100"), &s, &request, &c), TGL_OK);
        assert_true(c.workspace_bytes <= before);
        if (i == 0) assert_true(c.workspace_bytes > 1 << 20); /* otherwise nothing is tested */
        if (limits[i] > 0) assert_true(c.workspace_bytes <= limits[i]);
        before = c.workspace_bytes;
    }
    assert_int_equal(before, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_products_get_large_tiles),
        cmocka_unit_test(small_products_fill_the_chip),
        cmocka_unit_test(deep_products_split_k),
        cmocka_unit_test(few_rows_or_columns_are_streamed),
        cmocka_unit_test(all_sms_stream),
        cmocka_unit_test(small_products_of_a_batch_go_together),
        cmocka_unit_test(one_row_has_short_blocks),
        cmocka_unit_test(rows_of_16_bits_have_small_blocks),
        cmocka_unit_test(one_row_may_need_another_kernel),
        cmocka_unit_test(a_strided_vector_serves_several_lines),
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
        cmocka_unit_test(wgmma_stores_single_floats),
        cmocka_unit_test(every_chip_has_a_plan_for_everything),
        cmocka_unit_test(predictions_stay_below_the_peak),
        cmocka_unit_test(asked_for_splits_are_given),
        cmocka_unit_test(last_wave_is_shared_by_all),
        cmocka_unit_test(workspace_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
