/* SPDX-License-Identifier: Apache-2.0
 *
 * The families simt, skinny, gemv and small_batch on the simulator: every configuration with
 * several of the transpositions and copy widths, with and without split-K, on shapes with partial
 * tiles, and shapes for which the planner chooses. An argument "i/n" selects part i of n of the
 * configurations.
 */
#include "plan/family.h"
#include "support.h"

static int part = 0, parts = 1;

static void run(tgl_device *dev, const gemm_case *c)
{
    gemm_outcome outcome;
    gemm_case_run(dev, c, false, &outcome);
    if (outcome.fault[0] != '\0') fail_msg("%s", outcome.fault);
    assert_status(outcome.status, TGL_OK);
}

/* Runs a case that the configuration may not support. */
static void run_if_supported(tgl_device *dev, const gemm_case *c)
{
    gemm_outcome outcome;
    gemm_case_run(dev, c, false, &outcome);
    if (outcome.fault[0] != '\0') fail_msg("%s", outcome.fault);
    if (outcome.status != TGL_UNSUPPORTED) assert_status(outcome.status, TGL_OK);
}

/* ---- Configurations -------------------------------------------------------------------------- */

enum { STAGES_MAX = 4, STRING = 128 };

/* The tile of a configuration, from its name: "simt_64x64x16_8x4_s4" has tiles of 64 x 64 and steps
 * of 4 slices of 16. */
typedef struct tile {
    const char *name;
    int bm, bn, bk, slices;
} tile;

/* Calls visit() for each configuration of a family, with its index among all configurations. */
static void each_of(tgl_device *dev, const char *family,
                    void (*visit)(tgl_device *dev, const tgl_choice *choice, int number))
{
    tgl_choice choice;
    int visited = 0;
    for (int i = 0; tgl_configuration_at(i, &choice); i++)
        if (strcmp(choice.family->name, family) == 0 && visited++ % parts == part)
            visit(dev, &choice, i);
    assert_true(visited > 0);
}

static tile tile_of(const tgl_choice *choice)
{
    tile t = {.name = tgl_choice_name(choice), .slices = 1};
    assert_int_equal(sscanf(strchr(t.name, '_'), "_%dx%dx%d", &t.bm, &t.bn, &t.bk), 3);
    const char *slices = strstr(t.name, "_s");
    if (slices != NULL && slices > t.name) sscanf(slices, "_s%d", &t.slices);
    return t;
}

static int step_of(const tile *t)
{
    return t->bk * t->slices;
}

/* "NAME:splits=3,whole=4,depth=16,strips=0"; options with negative values are omitted. */
static const char *with_options(char text[STRING], const char *name, int splits, int whole,
                                int depth, int strips)
{
    const struct {
        const char *name;
        int value;
    } all[] = {{"splits", splits}, {"whole", whole}, {"depth", depth}, {"strips", strips}};
    char separator = ':';
    int length = snprintf(text, STRING, "%s", name);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (all[i].value < 0) continue;
        length += snprintf(text + length, (size_t)(STRING - length), "%c%s=%d", separator,
                           all[i].name, all[i].value);
        separator = ',';
    }
    return text;
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* A problem whose size follows from the tile t. C has two tiles; the second one begins earlier, so
 * that it ends at the edge of C. With `less`, C has fewer columns than a tile. Without split-K
 * there are more steps along K than stages. width: all leading dimensions and edges are multiples
 * of it. */
static tgl_problem shape_of(const tile *t, int layout, int width, bool less, bool is_split)
{
    const bool is_below = less || layout >= 2;
    const int64_t n = less ? t->bn / 2 + width : is_below ? t->bn : t->bn + width;
    const int steps = is_split ? 3 : STAGES_MAX + 1;
    tgl_problem p = problem_of(TGL_F32, is_below ? t->bm + width : t->bm, n,
                               steps * step_of(t) + (less ? 5 : 0));
    p.trans_a = layout & 1 ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = layout & 2 ? TGL_TRANS : TGL_NO_TRANS;
    p.lda = (p.m > p.k ? p.m : p.k) + 4;
    p.lda += (width - p.lda % width) % width;
    p.ldb = (p.n > p.k ? p.n : p.k) + 4;
    p.ldb += (width - p.ldb % width) % width;
    p.ldc = p.n + width;
    return p;
}

/* Tests a configuration with two layouts, so that both operands have both orientations, and with
 * and without split-K, which is reduced in a cluster or through the workspace. Any 24 consecutive
 * configurations cover every combination of layout, copy width, split-K and kind of shape. */
static void try_configuration(tgl_device *dev, const tgl_choice *choice, int number)
{
    static const int widths[] = {4, 1, 2};
    const tile t = tile_of(choice);
    char kernel[STRING];
    for (int i = 0; i < 2; i++) {
        const int layout = number % 2 == 0 ? 3 * i : 1 + i; /* NN and TT, or TN and NT */
        const int width = widths[(number / 2 + i) % 3];
        const bool is_split = (i + number / 2) % 2 == 1;
        const bool less = (i + number / 4) % 2 == 1;
        gemm_case c = {.problem = shape_of(&t, layout, width, less, is_split),
                       .alpha = layout == 3 ? -0.5 : 1,
                       .beta = layout == 1 ? 2 : 0,
                       .kernel = with_options(kernel, t.name, is_split ? 3 : 1, -1,
                                              is_split && layout < 2 ? step_of(&t) : -1, 0),
                       .fill = UNIFORM_11,
                       .seed = (uint64_t)(number * 4 + layout)};
        (layout == 2 ? run_if_supported : run)(dev, &c);
        c.at_end = true; /* so the alignment of the pointers depends on the sizes */
        c.problem.batch = 2;
        c.problem.stride_a = layout == 2 ? 0 : c.problem.lda * c.problem.lda;
        c.problem.stride_b = c.problem.ldb * c.problem.ldb;
        c.problem.stride_c = c.problem.ldc * c.problem.m;
        if (t.bm * t.bn <= 64 * 64) (layout == 2 ? run_if_supported : run)(dev, &c);
    }
}

static void test_configurations(void **state)
{
    each_of(*state, "simt", try_configuration);
}

/* Whole tiles and split tiles in one launch: clusters of 2, 4 and 3, two clusters of 5, and 11
 * blocks without a cluster. */
static void try_clusters(tgl_device *dev, const tgl_choice *choice, int number)
{
    static const int splits[] = {2, 4, 3, 10, 11};
    const tile t = tile_of(choice);
    char kernel[STRING];
    for (int i = 0; i < 5 && t.bm * t.bn <= 32 * 64; i++) {
        const int layout = (number + i) % 4, step = step_of(&t);
        tgl_problem p = problem_of(TGL_F32, t.bm + 3, 3 * t.bn, (splits[i] - 1) * step + 5);
        p.trans_a = layout & 1 ? TGL_TRANS : TGL_NO_TRANS;
        p.trans_b = layout & 2 ? TGL_TRANS : TGL_NO_TRANS;
        p.lda = ((p.m > p.k ? p.m : p.k) + 4) / 4 * 4 + number % 2;
        p.ldb = ((p.n > p.k ? p.n : p.k) + 4) / 4 * 4 + i % 2;
        p.ldc = p.n + number % 2;
        p.batch = 1 + i % 2;
        p.stride_a = p.lda * (p.m > p.k ? p.m : p.k);
        p.stride_b = p.ldb * (p.n > p.k ? p.n : p.k);
        p.stride_c = p.ldc * p.m;
        gemm_case c = {.problem = p,
                       .alpha = 1,
                       .beta = i % 2,
                       .kernel = with_options(kernel, t.name, splits[i], 4 /* of 6 */, -1, 0),
                       .fill = UNIFORM_11,
                       .seed = (uint64_t)(number * 5 + i)};
        (layout == 2 ? run_if_supported : run)(dev, &c);
    }
}

static void test_clusters(void **state)
{
    each_of(*state, "simt", try_clusters);
}

/* Tests strips beside the tiles of a configuration: on the right, below, or both. Layout, width and
 * splits change from case to case, so that every pair of their values occurs over all
 * configurations. */
static void try_strips(tgl_device *dev, const tgl_choice *choice, int number)
{
    static const int widths[] = {4, 1, 2}, extra[] = {1, 3, 16};
    const tile t = tile_of(choice);
    const int step = step_of(&t);
    char kernel[STRING];
    for (int i = 0; i < 3; i++) {
        const int layout = (number + i) % 4, width = widths[(number + i) % 3];
        const int wanted = extra[(number + 2 * i) % 3], past = wanted < t.bm ? wanted : 1;
        const bool is_split = (number / 4 + i) % 2 == 1;
        const int64_t m = i == 0 ? t.bm / 2 : t.bm + past, n = i == 1 ? t.bn / 2 : t.bn + past;
        tgl_problem p = problem_of(TGL_F32, m, n, 2 * (is_split ? step : t.bk) + 5);
        if (i == 2) p.k = number % 8 == 0 ? 1 : 3 * step;
        p.trans_a = layout & 1 ? TGL_TRANS : TGL_NO_TRANS;
        p.trans_b = layout & 2 ? TGL_TRANS : TGL_NO_TRANS;
        p.lda = ((p.m > p.k ? p.m : p.k) + 4) / 4 * 4 + width % 4;
        p.ldb = ((p.n > p.k ? p.n : p.k) + 4) / 4 * 4 + width % 4;
        p.ldc = p.n + 3;
        gemm_case c = {.problem = p,
                       .alpha = i == 1 ? -0.5 : 1,
                       .beta = i == 0 ? 2 : 0,
                       .kernel = with_options(kernel, t.name, is_split ? 3 : 1, -1, -1, 1),
                       .fill = UNIFORM_11,
                       .at_end = i != 1,
                       .seed = (uint64_t)(number * 3 + i)};
        (layout == 2 ? run_if_supported : run)(dev, &c);
    }
}

static void test_strips(void **state)
{
    each_of(*state, "simt", try_strips);
}

/* Tests strips with all transposes and orders, with batches that have gaps or shared inputs, with
 * the parts of an epilogue, and with alpha = 0. */
static void test_strips_of_everything(void **state)
{
    for (int i = 0; i < 24; i++) {
        if (i % parts != part) continue;
        const int width = i % 3 == 0 ? 4 : 1;
        tgl_problem p = problem_of(TGL_F32, 33 + i % 5, 65 + i % 7, i == 7 ? 0 : 40 + i);
        p.trans_a = i & 1 ? TGL_TRANS : TGL_NO_TRANS;
        p.trans_b = i & 2 ? TGL_TRANS : TGL_NO_TRANS;
        p.order = i & 4 ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
        p.lda = p.ldb = 76 + width % 4;
        p.ldc = 73;
        p.batch = i % 4 == 3 ? 3 : 1;
        p.stride_a = i == 3 ? 0 : p.lda * 76 + width % 4;
        p.stride_b = i == 11 ? 0 : p.ldb * 76 + width % 4;
        p.stride_c = p.ldc * 73;
        gemm_case c = {.problem = p,
                       .alpha = i % 8 == 5 ? 0 : 1,
                       .beta = i % 3 == 0 ? 0 : -0.5,
                       .kernel = i % 2 == 0 ? "simt_32x32x16:splits=1,strips=1"
                                            : "simt_32x32x16:splits=2,strips=1",
                       .fill = i % 6 == 4 ? NON_FINITE : UNIFORM_11,
                       .at_end = i % 2 == 0,
                       .seed = (uint64_t)i};
        if (i >= 12)
            c.epilogue = (tgl_epilogue){.size = sizeof c.epilogue,
                                        .bias = i % 2 == 0 ? TGL_BIAS_ROW : TGL_BIAS_COLUMN,
                                        .activation = (tgl_activation)(i % 4),
                                        .residual = i % 3 != 0,
                                        .ld_residual = 75,
                                        .stride_residual = 75 * 75,
                                        .stride_bias = i % 4 == 0 ? 0 : 80};
        run(*state, &c);
    }
}

/* Tests interleaved batches, in which each matrix has one row (column-major: one column) in every
 * ldc elements, also with a residual. The cases have whole tiles, split-K and strips, and kernels
 * for few rows and for small products. */
static void test_side_by_side(void **state)
{
    static const struct {
        const char *kernel;
        int64_t m, n;
    } some[] = {
        {"simt_32x32x16:splits=1,strips=0", 37, 45},
        {"simt_32x32x16:splits=11,strips=0", 37, 45},
        {"simt_32x32x16:splits=3,strips=1", 37, 45},
        {"skinny_4:splits=3", 3, 140},
        {"gemv", 1, 75},
        {"gemv", 75, 1},
        {"small_batch_32x32", 29, 31},
    };
    for (int i = 0; i < 2 * (int)COUNT_OF(some); i++) {
        if (i % parts != part) continue;
        const bool col_major = i % 2 == 1;
        tgl_problem p = problem_of(TGL_F32, some[i / 2].m, some[i / 2].n, 200);
        p.order = col_major ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
        p.batch = 3;
        p.stride_a = p.m * p.k;
        p.stride_c = (col_major ? p.m : p.n) + i % 3;
        p.ldc = p.batch * p.stride_c + i % 2;
        gemm_case c = {.problem = p,
                       .alpha = 1,
                       .beta = i % 4 == 0 ? 0 : -0.5,
                       .kernel = some[i / 2].kernel,
                       .fill = UNIFORM_11,
                       .at_end = i % 4 < 2,
                       .seed = (uint64_t)i};
        run(*state, &c);
        c.epilogue = (tgl_epilogue){.size = sizeof c.epilogue,
                                    .residual = 1,
                                    .ld_residual = p.ldc,
                                    .stride_residual = p.stride_c};
        run(*state, &c);
    }
}

/* The counts of two strips are added to those of the tiles; the needed bytes are counted once. */
static void test_strips_are_counted(void **state)
{
    if (part != 0) return;
    enum { M = 33, N = 66, K = 40 };
    const tgl_problem problem = problem_of(TGL_F32, M, N, K);
    static float A[M * K], B[K * N], C[M * N];
    tgl_counters counts[2];
    for (int i = 0; i < 2; i++) {
        const tgl_plan_options options = {.size = sizeof options,
                                          .kernel = i == 0 ? "simt_32x32x16:splits=1,strips=0"
                                                           : "simt_32x32x16:splits=1,strips=1"};
        tgl_plan *plan;
        counts[i].size = sizeof counts[i];
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
        assert_status(tgl_plan_counters(plan, &counts[i]), TGL_OK);
        tgl_plan_destroy(plan);
    }
    assert_int_equal(counts[0].blocks, 6);
    assert_true(counts[1].blocks >= 2 + 2);
    assert_true(counts[0].global_store_bytes == 4 * M * N);
    assert_true(counts[1].global_store_bytes >= 4 * M * N);
    assert_int_equal(counts[0].needed_bytes, 4 * (M * K + K * N + M * N));
    assert_int_equal(counts[1].needed_bytes, counts[0].needed_bytes);
}

/* Tests the kernels for few rows with A or B as the large operand, in both orientations, with all
 * copy widths, with and without split-K, and with a K beyond the part of the small operand that
 * shared memory holds. */
static void try_skinny(tgl_device *dev, const tgl_choice *choice, int number)
{
    enum {
        DEPTH_MAX = 1024
    }; /* of the small operand in shared memory; skinny_1 has a larger limit */
    static const int widths[] = {4, 1, 2};
    const char *name = tgl_choice_name(choice);
    const int count_max = tgl_choice_lines(choice);
    const int deep = count_max == 1 ? 4 * DEPTH_MAX : DEPTH_MAX;
    char kernel[STRING];
    for (int layout = 0; layout < 8; layout++) {
        const int width = widths[(number + layout) % 3], small = count_max - layout % 2;
        const int64_t count = small < 1 || 2 * small <= count_max ? count_max : small;
        const bool big_a = layout & 4, is_deep = layout == 2 || layout == 5;
        const int64_t length = 296 + (width < 4 ? width : 0);
        const int64_t k = is_deep ? deep + 60 : layout % 3 == 0 ? 77 : 700;
        tgl_problem p = problem_of(TGL_F32, big_a ? length : count, big_a ? count : length, k);
        p.trans_a = layout & 1 ? TGL_TRANS : TGL_NO_TRANS;
        p.trans_b = layout & 2 ? TGL_TRANS : TGL_NO_TRANS;
        p.lda = ((p.m > p.k ? p.m : p.k) + 4) / 4 * 4 + width % 4;
        p.ldb = ((p.n > p.k ? p.n : p.k) + 4) / 4 * 4 + width % 4;
        gemm_case c = {
            .problem = p,
            .alpha = layout == 3 ? -0.5 : 1,
            .beta = layout == 5 ? 2 : 0,
            .kernel = with_options(kernel, name, layout < 4 ? 1 + number % 2 * 2 : -1, -1, -1, -1),
            .fill = UNIFORM_11,
            .at_end = layout % 2 == 1,
            .seed = (uint64_t)(number * 8 + layout)};
        run(dev, &c);
    }
}

static void test_skinny(void **state)
{
    each_of(*state, "skinny", try_skinny);
}

/* Tests GEMV kernels with as many vectors as they support, and fewer; with the matrix in both
 * orientations, aligned and not; with K shorter and longer than a step, with and without a
 * remainder; with vectors that are contiguous, misaligned or strided; and with alpha = 0, also with
 * results that are not finite. */
static void try_gemv(tgl_device *dev, const tgl_choice *choice, int number)
{
    const int count_max = tgl_choice_lines(choice);
    (void)number;
    static const int64_t depths[] = {1, 64, 67, 300, 4096, 9001}, lengths[] = {1, 37, 300, 4};
    for (int i = 0; i < 28; i++) {
        const bool big_a = i & 1, along_k = i & 2;
        const bool is_strided = i % 3 == 0 && (count_max == 1 || !along_k);
        const int64_t k = i == 24 || i == 27 ? 0 : depths[i % 6];
        const int64_t count = count_max > 2 && i % 3 == 1 ? 3 : count_max;
        const int64_t length = lengths[(i / 4 + i) % 4] + (count > 1 ? 4 : 0);
        tgl_problem p = problem_of(TGL_F32, big_a ? length : count, big_a ? count : length, k);
        const tgl_transpose trans = along_k == big_a ? TGL_NO_TRANS : TGL_TRANS;
        const tgl_transpose other = big_a == is_strided ? TGL_NO_TRANS : TGL_TRANS;
        p.trans_a = big_a ? trans : other;
        p.trans_b = big_a ? other : trans;
        const int64_t ld = (along_k ? k : length) + (i % 5 < 2 ? 3 : 0);
        const int64_t ld_of_vectors = is_strided ? count + 2 : k + (i % 5 == 0 ? count - 1 : 0);
        p.lda = big_a ? ld : ld_of_vectors;
        p.ldb = big_a ? ld_of_vectors : ld;
        p.batch = 1 + i % 2;
        const int64_t gap = i % 4 == 1 ? 1 : 4;
        p.stride_a = i == 5 ? 0 : p.lda * (length > k ? length : k) + gap;
        p.stride_b = i == 6 ? 0 : p.ldb * (length > k ? length : k) + gap;
        p.stride_c = length * count + i % 4;
        p.ldc = big_a ? count : length;
        gemm_case c = {.problem = p,
                       .alpha = i == 7               ? -0.5
                                : i == 25 || i == 26 ? 0
                                                     : 1,
                       .beta = i % 3 == 1 ? 2 : 0,
                       .kernel = tgl_choice_name(choice),
                       .fill = i % 7 == 4 ? NON_FINITE : UNIFORM_11,
                       .at_end = i % 4 == 1,
                       .seed = (uint64_t)i};
        run(dev, &c);
    }
}

static void test_gemv(void **state)
{
    each_of(*state, "gemv", try_gemv);
}

/* Tests kernels for small products in a batch with all transposes and copy widths, with whole and
 * partial tiles, with more and fewer products than blocks process at once, with K longer than a
 * tile, with and without a remainder, and with a stride of 0. */
static void try_small_batch(tgl_device *dev, const tgl_choice *choice, int number)
{
    enum { BK = 32 }; /* a tile is 16 to 48 deep */
    static const int widths[] = {4, 1, 2};
    int bm, bn;
    assert_int_equal(sscanf(tgl_choice_name(choice), "small_batch_%dx%d", &bm, &bn), 2);
    for (int layout = 0; layout < 8; layout++) {
        const int width = widths[(number + layout) % 3], less = layout < 4 ? 0 : width;
        tgl_problem p =
            problem_of(TGL_F32, bm - less, bn - 2 * less, layout % 3 == 0 ? BK : 3 * BK + width);
        p.trans_a = layout & 1 ? TGL_TRANS : TGL_NO_TRANS;
        p.trans_b = layout & 2 ? TGL_TRANS : TGL_NO_TRANS;
        p.lda = ((p.m > p.k ? p.m : p.k) + 4) / 4 * 4 + width % 4;
        p.ldb = ((p.n > p.k ? p.n : p.k) + 4) / 4 * 4 + width % 4;
        p.batch = 1 + 2 * layout;
        p.stride_a = layout == 5 ? 0 : p.lda * (p.m > p.k ? p.m : p.k);
        p.stride_b = layout == 6 ? 0 : p.ldb * (p.n > p.k ? p.n : p.k);
        p.stride_c = p.m * p.n + width;
        gemm_case c = {.problem = p,
                       .alpha = layout == 3 ? -0.5 : 1,
                       .beta = layout % 3 == 1 ? 2 : 0,
                       .kernel = tgl_choice_name(choice),
                       .fill = UNIFORM_11,
                       .at_end = layout % 2 == 1,
                       .seed = (uint64_t)(number * 8 + layout)};
        run(dev, &c);
    }
}

static void test_small_batch(void **state)
{
    each_of(*state, "small_batch", try_small_batch);
}

/* A plan takes one alternative with aligned pointers, and another one with misaligned pointers. */
static void test_alignment(void **state)
{
    if (part != 0) return;
    enum { SIDE = 40 };
    const tgl_problem problem = problem_of(TGL_F32, SIDE, SIDE, SIDE);
    float *A = aligned_alloc(256, 3 * 4096 * sizeof *A), C[2][SIDE * SIDE];
    assert_non_null(A);
    float *B = A + 4096;
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
    for (int offset = 0; offset < 2; offset++) {
        for (int i = 0; i < SIDE * SIDE; i++) {
            A[i + offset] = (float)(i % 19) - 9;
            B[i + offset] = (float)(i % 23) - 11;
        }
        assert_status(tgl_plan_run(plan, 1, A + offset, B + offset, 0, C[offset], NULL), TGL_OK);
    }
    assert_memory_equal(C[0], C[1], sizeof C[0]);
    tgl_plan_destroy(plan);
    free(A);
}

/* Tests the planner's choices for tiny, deep, flat and tall products and for batches. */
static void test_choices(void **state)
{
    static const struct {
        int64_t m, n, k, batch;
    } shapes[] = {{1, 1, 1, 1},   {1, 1, 300, 1},  {17, 33, 700, 1}, {200, 3, 20, 1},
                  {3, 200, 9, 1}, {70, 70, 70, 1}, {5, 6, 7, 70},    {16, 16, 16, 9}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        if ((int)i % parts != part) continue;
        gemm_case c = {.problem = problem_of(TGL_F32, shapes[i].m, shapes[i].n, shapes[i].k),
                       .alpha = 1,
                       .beta = -0.5,
                       .fill = i % 2 == 0 ? NON_FINITE : UNIFORM_11,
                       .at_end = true,
                       .seed = i};
        c.problem.batch = shapes[i].batch;
        c.problem.stride_a = shapes[i].m * shapes[i].k;
        c.problem.stride_b = shapes[i].k * shapes[i].n;
        c.problem.stride_c = shapes[i].m * shapes[i].n;
        run(*state, &c);
        c.problem.order = TGL_COL_MAJOR;
        c.problem.trans_b = TGL_TRANS;
        c.beta = 0;
        run(*state, &c);
    }
}

/* Tests a C with 10 rows of tiles, more than a raster band (8), and a C whose last tile starts at
 * column 5, so that it ends at the edge, although the rows of C begin at multiples of four. */
static void test_places_of_tiles(void **state)
{
    static const struct {
        int64_t m, n, ldc;
    } shapes[] = {{300, 70, 70}, {33, 37, 40}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        if ((int)i % parts != part) continue;
        gemm_case c = {.problem = problem_of(TGL_F32, shapes[i].m, shapes[i].n, 20),
                       .alpha = 1,
                       .kernel = "simt_32x32x16:splits=1,strips=0",
                       .fill = UNIFORM_11,
                       .seed = i};
        c.problem.ldc = shapes[i].ldc;
        run(*state, &c);
    }
}

/* Tests splits of different sizes: all tiles, or the last four of 9, are split into one large part
 * and small ones. The cases have all transposes, a k of 0, and a batch. */
static void test_unequal_pieces(void **state)
{
    if (part != 0) return;
    for (int i = 0; i <= 10; i++) {
        tgl_problem p = problem_of(TGL_F32, 80, 70, i != 8 ? 150 + i : 0);
        p.trans_a = i & 1 ? TGL_TRANS : TGL_NO_TRANS;
        p.trans_b = i & 2 ? TGL_TRANS : TGL_NO_TRANS;
        p.lda = p.ldb = 160;
        p.batch = i < 9 ? 1 : 3;
        p.stride_a = p.stride_b = 160 * 160;
        p.stride_c = 80 * 70;
        char kernel[STRING];
        with_options(kernel, "simt_32x32x16", 2 + i % 3, i & 4 || i == 10 ? -1 : 5, 16 + i, -1);
        const gemm_case c = {.problem = p,
                             .alpha = 2,
                             .beta = i % 3 == 0 ? 0.5 : 0,
                             .kernel = kernel,
                             .fill = UNIFORM_11,
                             .seed = (uint64_t)i};
        run(*state, &c);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_skinny),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_strips),
        cmocka_unit_test(test_strips_of_everything),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_strips_are_counted),
        cmocka_unit_test(test_gemv),
        cmocka_unit_test(test_small_batch),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_places_of_tiles),
        cmocka_unit_test(test_unequal_pieces),
    };
    if (argc > 1 && (sscanf(argv[1], "%d/%d", &part, &parts) != 2 || parts < 1)) return 2;
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
