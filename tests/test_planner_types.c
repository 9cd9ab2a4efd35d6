/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner chooses for products of 16-bit types, TF32 and f64, and for ragged batches, on
 * an H200. Each choice is the fastest of the configurations that were measured there, or within a
 * twentieth of it.
 */
#include "plan_shape.h"

static tgl_shape product(tgl_type type, int64_t m, int64_t n, int64_t k, bool trans_b)
{
    tgl_shape s = transposed_shape_of(m, n, k, false, trans_b);
    s.type_a = s.type_b = s.type_c = s.type_d = type;
    if (type == TGL_F32) s.compute = TGL_COMPUTE_TF32;
    return s;
}

/* The best candidate of the configurations whose names begin with `prefix`. */
static tgl_candidate best_named(const char *prefix, const tgl_shape *shape)
{
    const tgl_chip *chip = chip_of("h200");
    tgl_candidate best = {.seconds = 1e9}, c;
    tgl_choice choice;
    for (int i = 0; tgl_configuration_at(i, &choice); i++) {
        if (strncmp(tgl_choice_name(&choice), prefix, strlen(prefix)) != 0) continue;
        tgl_planner_best_of(chip, shape, &choice, -1, TGL_WORKSPACE_DEFAULT, &c);
        if (c.rejected == NULL && c.seconds < best.seconds) best = c;
    }
    assert_non_null(best.choice.family);
    return best;
}

/* Fails unless the configuration's name is in `names`, where a blank follows each. */
static void assert_one_of(const tgl_candidate *c, const char *names)
{
    char text[300], name[80];
    snprintf(name, sizeof name, "%s ", tgl_choice_name(&c->choice));
    if (strstr(names, name) == NULL)
        fail_msg("%s is none of %s", tgl_candidate_string(c, text, sizeof text), names);
}

static void assert_time(const tgl_candidate *c, double microseconds)
{
    assert_true(c->seconds > 0.85e-6 * microseconds && c->seconds < 1.15e-6 * microseconds);
}

static void squares(void **state)
{
    (void)state;
    static const struct {
        tgl_type type;
        int64_t side;
        const char *names;
        double microseconds; /* measured */
    } cases[] = {
        {TGL_BF16, 1024, "wgmma_64x128_s8 ", 6.8},
        {TGL_BF16, 2048, "wgmma_128x128 wgmma_128x128_alt wgmma_128x256 ", 25.8},
        {TGL_BF16, 4096, "wgmma_128x128_alt wgmma_128x256 wgmma_256x128 ", 178},
        {TGL_F16, 8192, "wgmma_128x256 wgmma_256x128 wgmma_192x192 ", 1550},
        {TGL_F32, 4096, "wgmma_128x128_alt wgmma_128x256 ", 350},
        {TGL_F32, 8192, "wgmma_128x128 wgmma_128x128_alt wgmma_256x128 wgmma_128x256 ", 3060},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const int64_t side = cases[i].side;
        const tgl_shape s = product(cases[i].type, side, side, side, cases[i].type == TGL_F32);
        const tgl_candidate c = choose("h200", &s);
        assert_one_of(&c, cases[i].names);
        assert_time(&c, cases[i].microseconds);
    }
}

/* Random sizes of which `tegula tune` measured all candidates on an H200: the fastest. */
static void random_sizes(void **state)
{
    (void)state;
    static const struct {
        tgl_type type;
        int64_t m, n, k;
        bool trans_b;
        const char *names;
        double microseconds; /* measured */
    } cases[] = {
        {TGL_BF16, 216, 120, 2544, true, "wgmma_64x16 ", 5.3}, /* 4 splits */
        {TGL_F32, 2888, 3312, 360, true, "wgmma_128x160_alt ", 36.0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const tgl_shape s =
            product(cases[i].type, cases[i].m, cases[i].n, cases[i].k, cases[i].trans_b);
        const tgl_candidate c = choose("h200", &s);
        assert_one_of(&c, cases[i].names);
        assert_time(&c, cases[i].microseconds);
    }
}

/* 288 tiles of 128 x 256 are 2.2 waves: narrower tiles are faster. */
static void last_waves_are_filled(void **state)
{
    (void)state;
    const tgl_shape s = product(TGL_BF16, 3001, 3001, 3001, false);
    const tgl_candidate c = choose("h200", &s);
    assert_true(c.seconds < 120e-6); /* 145 us with 128 x 96 */
    const tgl_candidate tiles = choose_on(chip_of("h200"), &s, "wgmma_128x256:splits=1");
    assert_true(c.seconds < 0.9 * tiles.seconds);
}

/* Memory limits products with few rows. The operands are exchanged, so that n lies along wgmma's
 * rows, and the tiles have enough bytes in flight to use the whole bandwidth. */
static void few_rows(void **state)
{
    (void)state;
    static const struct {
        int64_t m;
        const char *names;
        double microseconds; /* measured at least */
    } cases[] = {
        {16, "wgmma_64x16 ", 20},
        {64, "wgmma_64x64 wgmma_64x64_s12 wgmma_64x128 wgmma_128x64_s8 ", 21},
        {128, "wgmma_128x128 wgmma_128x64_s8 ", 24},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const tgl_shape s = product(TGL_BF16, cases[i].m, 8192, 4096, true);
        const tgl_candidate c = best_named("wgmma_", &s);
        assert_one_of(&c, cases[i].names);
        assert_time(&c, cases[i].microseconds);
    }
    for (int64_t n = 28672; n <= 57344; n += 28672) {
        const tgl_shape s = product(TGL_BF16, 16, n, 8192, true);
        const tgl_candidate c = best_named("wgmma_", &s);
        /* Measured: 16x28672x3584 takes 51.4 us with tiles of 64x224 and 52.1 us with 64x16;
         * 16x57344x4096 takes 115.7 us and 113.7 us. */
        assert_one_of(&c, "wgmma_64x16 wgmma_64x32 wgmma_64x224 ");
        assert_true((double)(n * 8192 * 2) / c.seconds > 3.8e12);
    }
}

/* Layers whose weights are read from memory once: the two tiles of D^T that need the same weights
 * form a cluster, with K split (the first two) or not. Measured on an H200 without and with
 * clusters: 49.1 and 41.7 us, 28.0 and 25.2, 24.8 and 19.5. */
static void tiles_share_weights(void **state)
{
    enum { SPLITS = 0, EXCHANGED = 1, COLUMNS = 6 }; /* options of wgmma */
    (void)state;
    static const struct {
        int64_t m, n, k;
        bool trans_b;
        int64_t splits;
        double microseconds; /* measured */
    } cases[] = {{180, 4096, 14336, true, 2, 41.7},
                 {176, 4048, 5448, false, 2, 25.2},
                 {159, 6144, 4096, true, 1, 19.5}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const tgl_shape s = product(TGL_F16, cases[i].m, cases[i].n, cases[i].k, cases[i].trans_b);
        const tgl_candidate c = choose("h200", &s);
        assert_int_equal(c.choice.option[SPLITS], cases[i].splits);
        assert_int_equal(c.choice.option[EXCHANGED], 1);
        assert_int_equal(c.choice.option[COLUMNS], 2);
        assert_time(&c, cases[i].microseconds);
    }
}

/* TMA is slower where the rows of a box straddle two cache lines of L2: rows of 4816 and 3600
 * bytes. */
static void straddling_lines_are_slow(void **state)
{
    (void)state;
    const tgl_shape s = product(TGL_BF16, 2160, 1800, 2408, false),
                    even = product(TGL_BF16, 2160, 1792, 2432, false);
    const char *const tiles = "wgmma_128x128:splits=1,exchanged=0,cluster=1";
    const tgl_candidate slow = choose_on(chip_of("h200"), &s, tiles),
                        fast = choose_on(chip_of("h200"), &even, tiles);
    assert_time(&slow, 50); /* measured */
    assert_true(slow.seconds > 1.3 * fast.seconds);
}

/* A B of few columns that is MN-major is transposed by a pre-pass if the product is large. */
static void slivers_are_transposed(void **state)
{
    (void)state;
    const tgl_chip *chip = chip_of("h200");
    const tgl_shape large = product(TGL_BF16, 28672, 8, 8192, false),
                    small = product(TGL_BF16, 2048, 8, 8192, false),
                    wide = product(TGL_BF16, 28672, 16, 8192, false);
    assert_in_range(choose_on(chip, &large, "wgmma_64x16").repacked_bytes, 2 * 8 * 8192,
                    2 * 8 * 8192 + 256);
    assert_int_equal(choose_on(chip, &small, "wgmma_64x16").repacked_bytes, 0);
    assert_int_equal(choose_on(chip, &wide, "wgmma_64x16").repacked_bytes, 0);
}

/* An H200 has room for 30 clusters of four blocks at once, and for 66 of two. 3040x416x2648 TT has
 * 120 tiles of 128x96. Their rows straddle two cache lines of L2, so that clusters of four blocks,
 * which share them, are faster. */
static void clusters_of_four(void **state)
{
    (void)state;
    const tgl_chip *chip = chip_of("h200");
    const tgl_shape square = product(TGL_BF16, 4096, 4096, 4096, true);
    assert_true(choose_on(chip, &square, "wgmma_128x256:cluster=4").blocks == 120);
    assert_true(choose_on(chip, &square, "wgmma_128x256:cluster=2,columns=2").blocks == 120);
    assert_true(choose_on(chip, &square, "wgmma_128x256:cluster=2").blocks == 132);
    tgl_shape s = product(TGL_BF16, 3040, 416, 2648, true);
    s.trans_a = true;
    s.lda = s.m;
    const tgl_candidate best = choose("h200", &s),
                        pairs = choose_on(chip, &s, "wgmma_128x96:cluster=2");
    char text[160];
    assert_non_null(strstr(tgl_candidate_string(&best, text, sizeof text), "cluster=4"));
    assert_time(&best, 15.6);  /* measured */
    assert_time(&pairs, 18.8); /* measured */
}

/* Operands that TMA cannot read are repacked, which costs about as much as copying them. */
static void repacking_is_predicted(void **state)
{
    (void)state;
    const tgl_shape even = product(TGL_BF16, 4096, 4096, 4096, false);
    tgl_shape odd = even;
    odd.lda++;
    const tgl_chip *chip = chip_of("h200");
    const tgl_candidate as_is = choose_on(chip, &even, "wgmma_128x256"),
                        repacked = choose_on(chip, &odd, "wgmma_128x256");
    assert_int_equal(as_is.launches, 1);
    assert_int_equal(repacked.launches, 2);
    const double copy = 4.0 * 4096 * 4096 / chip->memory_rate;
    assert_true(repacked.seconds > as_is.seconds + copy);
    assert_true(repacked.seconds < as_is.seconds + 2 * copy + 5e-6);
    assert_in_range(repacked.repacked_bytes, 2 * 4096 * 4096, 3 * 4096 * 4096);
}

/* If the left operand is TF32 and contiguous in its rows, wgmma takes it from registers where the
 * tile leaves room for them. */
static void left_operands_of_tf32(void **state)
{
    (void)state;
    const tgl_chip *chip = chip_of("h200");
    tgl_shape s = product(TGL_F32, 4096, 4096, 4096, true);
    s.trans_a = true; /* T, and B is K-major */
    s.lda = s.m;
    tgl_candidate c = choose("h200", &s);
    char text[160];
    assert_non_null(strstr(tgl_candidate_string(&c, text, sizeof text), "left_registers=1"));
    assert_true(c.repacked_bytes == 0);
    const tgl_request request = request_of("wgmma_256x128:left_registers=1");
    assert_status(tgl_planner_choose(chip, &s, &request, &c), TGL_UNSUPPORTED);
    c = choose_on(chip, &s, "wgmma_256x128");
    assert_null(c.rejected);
    assert_null(strstr(tgl_candidate_string(&c, text, sizeof text), "left_registers"));
}

/* The boxes from which TMA stores 16-bit results take the place of a stage of 40 KB, with tiles of
 * 128x192. */
static void boxes_and_stages_share_memory(void **state)
{
    (void)state;
    const tgl_chip *chip = chip_of("h200");
    const tgl_shape half = product(TGL_BF16, 4096, 4096, 4096, false);
    tgl_shape wide = half;
    wide.type_c = wide.type_d = TGL_F32;
    const tgl_candidate boxes = choose_on(chip, &half, "wgmma_128x192"),
                        threads = choose_on(chip, &wide, "wgmma_128x192");
    enum { STAGE = 40960, BOXES = 2 * 3 * 8192, CHUNKS = 2 * 10240, OTHERS = 2048 };
    assert_in_range(boxes.shared_bytes, 4 * STAGE + BOXES, 4 * STAGE + BOXES + OTHERS);
    assert_in_range(threads.shared_bytes, 5 * STAGE + CHUNKS, 5 * STAGE + CHUNKS + OTHERS);
    assert_in_range(threads.shared_bytes, 1, chip->shared_per_block);
}

/* Fails unless the planner chooses a configuration that the row names, for each row. */
static void assert_choices(const tgl_tuned *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const tgl_shape s = shape_of_row(&rows[i]);
        const tgl_candidate c = choose("h200", &s);
        assert_one_of(&c, rows[i].kernel);
    }
}

/* The fastest kernels of batches of odd sizes, measured on an H200 (docs/notes/2026-11-28-gpu.md).
 */
static void ragged_batches(void **state)
{
    static const tgl_tuned rows[] = {
        {"h200", "bf16", "TN", 121, 163, 70, 2842, "batch_mma_128x256 "},
        {"h200", "bf16", "TT", 8, 175, 19, 922, "batch_mma_16x256 "},
        {"h200", "bf16", "NT", 94, 26, 99, 121, "batch_mma_128x64 "},
        {"h200", "bf16", "TN", 122, 23, 97, 888, "batch_mma_128x32 "},
        {"h200", "bf16", "TN", 124, 25, 185, 131, "batch_mma_128x64 "},
        {"h200", "tf32", "TN", 11, 155, 27, 2753, "batch_mma_16x256 "},
        {"h200", "tf32", "TN", 177, 46, 69, 458, "batch_mma_64x64 "},
        {"h200", "tf32", "TT", 14, 21, 23, 887, "batch_mma_32x32 "},
        {"h200", "f64", "NT", 16, 33, 53, 2073, "batch_mma_16x64_f64 "},
        {"h200", "f64", "NN", 94, 13, 69, 217, "batch_mma_64x16_f64 "},
        {"h200", "f64", "TT", 158, 28, 43, 751, "batch_mma_64x32_f64 "},
        {"h200", "f64", "NT", 53, 53, 130, 3879, "batch_mma_64x64_f64 "},
        {"h200", "f64", "TT", 13, 15, 37, 223, "batch_mma_16x16_f64 "},
        {"h200", "f32", "TT", 43, 15, 176, 320, "simt_32x32x16 "},
        {"h200", "f32", "NN", 9, 127, 16, 1590, "small_batch_16x128 "},
        {"h200", "f32", "NN", 9, 123, 35, 102, "small_batch_16x128 "},
        {"h200", "f32", "TN", 105, 8, 29, 93, "small_batch_128x16 "},
        {"h200", "f32", "TN", 143, 31, 14, 1343, "small_batch_144x32 "},
        {"h200", "f32", "NN", 92, 22, 38, 541, "small_batch_96x32 "},
        {"h200", "tf32", "TN", 29, 56, 26, 3301, "simt_32x64x16 "}};
    (void)state;
    assert_choices(rows, COUNT_OF(rows));
}

/* The predicted seconds of f32 133x33x35952 TT by this kernel. */
static double seconds_of(const char *kernel)
{
    tgl_request request;
    tgl_candidate c;
    const tgl_shape s = transposed_shape_of(133, 33, 35952, true, true);
    assert_status(tgl_request_make(kernel, 0, &request), TGL_OK);
    tgl_planner_best_of(chip_of("h200"), &s, &request.choice, request.strips, TGL_WORKSPACE_DEFAULT,
                        &c);
    assert_null(c.rejected);
    return c.seconds;
}

/* 25 splits of each of five tiles are clusters of five, of which 22 are resident on an H200 with a
 * block on an SM: measured 48.1 us, and 30.4 with 24 splits. */
static void clusters_that_do_not_fit_at_once(void **state)
{
    (void)state;
    const double fit = seconds_of("simt_32x64x8_s4:splits=24,strips=0");
    assert_true(fit > 0.85 * 30.4e-6 && fit < 1.15 * 30.4e-6);
    assert_true(seconds_of("simt_32x64x8_s4:splits=25,strips=0") > 1.3 * fit);
}

/* Products of f64 whose fastest kernels have tiles of 96 rows or columns, measured on an H200. */
static void tiles_of_96(void **state)
{
    static const tgl_tuned rows[] = {
        {"h200", "f64", "TN", 1136, 480, 232, 1, "dmma_64x96_s2 dmma_96x64_s2 "},
        {"h200", "f64", "TN", 1664, 1872, 368, 1, "dmma_128x96 dmma_64x96_s2 "},
        {"h200", "f64", "NT", 2008, 5440, 440, 1, "dmma_128x96 dmma_96x128 "},
        {"h200", "f64", "NN", 960, 168, 3648, 1, "dmma_64x96_s2 "}};
    (void)state;
    assert_choices(rows, COUNT_OF(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_operands_of_tf32),
        cmocka_unit_test(boxes_and_stages_share_memory),
        cmocka_unit_test(squares),
        cmocka_unit_test(random_sizes),
        cmocka_unit_test(last_waves_are_filled),
        cmocka_unit_test(few_rows),
        cmocka_unit_test(tiles_share_weights),
        cmocka_unit_test(straddling_lines_are_slow),
        cmocka_unit_test(slivers_are_transposed),
        cmocka_unit_test(clusters_of_four),
        cmocka_unit_test(repacking_is_predicted),
        cmocka_unit_test(ragged_batches),
        cmocka_unit_test(clusters_that_do_not_fit_at_once),
        cmocka_unit_test(tiles_of_96),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
