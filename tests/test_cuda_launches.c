/* SPDX-License-Identifier: Apache-2.0
 *
 * The launches of plans on the cuda device, with the fake libraries: overlapping launches,
 * clusters, strips, and features of launch lists that no family uses.
 */
#include "fake_cuda/setup.h"

/* ---- How kernels are launched ---------------------------------------------------------------- */

/* Runs a product m x n x 1024 of ones with 32 x 32 tiles and this number of splits. Returns the
 * launch. */
static fake_cuda_launch launch_of(tgl_device *dev, int m, int n, int splits, double alpha)
{
    const tgl_problem problem = problem_of(TGL_F32, m, n, 1024);
    char kernel[64];
    snprintf(kernel, sizeof kernel, "simt_32x32x32:splits=%d,strips=0", splits);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    const size_t elements = 64 * 1024;
    float *A = malloc(elements * sizeof *A), *C = malloc(elements * sizeof *C);
    tgl_plan *plan;
    if (A == NULL || C == NULL) abort();
    for (size_t i = 0; i < elements; i++)
        A[i] = 1;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, alpha, A, A, 0, C, NULL), TGL_OK);
    assert_true((double)C[m * n - 1] == alpha * 1024);
    tgl_plan_destroy(plan);
    free(A);
    free(C);
    return latest_launch();
}

/* The fake device has four SMs: larger grids wait for the launch before them. */
static void launches_overlap_and_lie_in_clusters(void **state)
{
    (void)state;
    static const struct {
        int m, n, splits;
        double alpha;
        unsigned blocks, cluster;
        int overlaps;
    } runs[] = {
        {32, 32, 1, 1, 1, 1, 1},  {32, 32, 2, 1, 2, 2, 1}, {32, 64, 2, 1, 4, 2, 1},
        {64, 64, 4, 1, 16, 2, 0}, {64, 64, 4, 0, 4, 1, 1}, {64, 64, 5, 1, 20, 1, 0},
    };
    tgl_device *dev = open_device("cuda");
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        const fake_cuda_launch l =
            launch_of(dev, runs[i].m, runs[i].n, runs[i].splits, runs[i].alpha);
        assert_int_equal(l.grid[0], runs[i].blocks);
        assert_int_equal(l.cluster, runs[i].cluster);
        assert_int_equal(l.overlaps, runs[i].overlaps);
    }
    tgl_device_close(dev);
}

/* Launches of a GEMV overlap with any number of blocks. */
static void short_blocks_overlap(void **state)
{
    (void)state;
    enum { LENGTH = 3000, K = 16 };
    tgl_device *dev = open_device("cuda");
    const tgl_problem problem = problem_of(TGL_F32, 1, LENGTH, K);
    float *B = malloc(LENGTH * K * sizeof *B), A[K], C[LENGTH];
    tgl_plan *plan;
    assert_non_null(B);
    for (int i = 0; i < LENGTH * K; i++)
        B[i] = A[i % K] = 1;
    const tgl_plan_options options = {.size = sizeof options, .kernel = "gemv"};
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
    assert_true(C[LENGTH - 1] == K);
    assert_in_range(latest_launch().grid[0], 5, LENGTH);
    assert_int_equal(latest_launch().overlaps, 1);
    tgl_plan_destroy(plan);
    free(B);
    tgl_device_close(dev);
}

static void older_chips_drivers_and_compilers_launch_plainly(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        setenv("FAKE_CUDA_VERSION", i == 0 ? "12020" : "13000", 1);
        setenv("FAKE_CUDA_CAPABILITY", i == 1 ? "80" : "90", 1);
        setenv("FAKE_NVRTC_ARCHS", i == 2 ? "80,86" : "80,90", 1); /* 2: none for this chip */
        tgl_device *dev = open_device("cuda");
        const fake_cuda_launch l = launch_of(dev, 32, 32, 2, 1);
        assert_int_equal(l.grid[0], 2);
        assert_int_equal(l.cluster, 1);
        assert_int_equal(l.overlaps, 0);
        tgl_device_close(dev);
    }
}

/* ---- Strips ---------------------------------------------------------------------------------- */

enum { SIDE_MAX = 200, DEEP = 8192, ROOM = 48 * DEEP };

/* Runs m x n x k once, with 32 x 32 tiles and strips: C := 2*A*B + C of small integers. */
static tgl_plan *run_strips(tgl_device *dev, int m, int n, int k, int splits, float *C)
{
    static float A[ROOM], B[ROOM];
    const tgl_problem problem = problem_of(TGL_F32, m, n, k);
    char kernel[64];
    snprintf(kernel, sizeof kernel, "simt_32x32x32:splits=%d,strips=1", splits);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_plan *plan;
    for (int i = 0; i < m * k; i++)
        A[i] = (float)(i % 5 - 2);
    for (int i = 0; i < k * n; i++)
        B[i] = (float)(i % 7 - 3);
    for (int i = 0; i < m * n; i++)
        C[i] = (float)i;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 2, A, B, 1, C, NULL), TGL_OK);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            assert_true(C[i * n + j] == 2 * sum + (float)(i * n + j));
        }
    return plan;
}

static int blocks_of(const fake_cuda_launch *l)
{
    return (int)(l->grid[0] * l->grid[1] * l->grid[2]);
}

/* The steps are the tiles, the strip of columns right of them, and the strip of rows below. A strip
 * starts while the launch before it runs, for any grid size, and the launches after the strip start
 * after both. On four SMs a run lets the next run start early only if all its launches are small.
 */
static void strips_follow_their_tiles(void **state)
{
    (void)state;
    static float C[SIDE_MAX * SIDE_MAX];
    static const struct {
        int m, n, tiles;
    } shapes[] = {{98, 131, 12}, {34, 65, 2}};
    tgl_device *dev = open_device("cuda");
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const int m = shapes[i].m, n = shapes[i].n, m_tiles = m / 32 * 32, n_tiles = n / 32 * 32;
        tgl_plan_destroy(run_strips(dev, m, n, 33, 1, C));
        const fake_cuda_launch tiles = earlier_launch(2), right = earlier_launch(1),
                               below = earlier_launch(0);
        assert_int_equal(tiles.args.m, m_tiles);
        assert_int_equal(tiles.args.n, n_tiles);
        assert_ptr_equal(tiles.args.D, C);
        assert_int_equal(blocks_of(&tiles), shapes[i].tiles);
        assert_int_equal(right.args.m, m);
        assert_int_equal(right.args.n, n - n_tiles);
        assert_ptr_equal(right.args.D, C + n_tiles);
        assert_int_equal(below.args.m, m - m_tiles);
        assert_int_equal(below.args.n, n_tiles);
        assert_ptr_equal(below.args.D, C + (ptrdiff_t)m_tiles * n);

        const bool is_small = shapes[i].tiles <= 4;
        assert_int_equal(tiles.overlaps, is_small);
        assert_true(tiles.args.overlaps && !tiles.args.waits_at_end);
        assert_int_equal(right.overlaps, 1);
        assert_true(right.args.overlaps && right.args.waits_at_end);
        assert_int_equal(below.overlaps, 1);
        assert_true(below.args.waits_at_end);
        assert_int_equal(below.args.overlaps,
                         is_small && blocks_of(&right) <= 4 && blocks_of(&below) <= 4);
    }
    tgl_device_close(dev);
}

static void one_strip_is_the_last(void **state)
{
    (void)state;
    static float C[SIDE_MAX * SIDE_MAX];
    tgl_device *dev = open_device("cuda");
    tgl_plan_destroy(run_strips(dev, 96, 97, 40, 1, C));
    const fake_cuda_launch tiles = earlier_launch(1), strip = earlier_launch(0);
    assert_int_equal(blocks_of(&tiles), 9);
    assert_true(tiles.args.overlaps);
    assert_true(strip.overlaps && strip.args.waits_at_end && !strip.args.overlaps);
    tgl_device_close(dev);
}

static void older_chips_launch_strips_in_turn(void **state)
{
    (void)state;
    static float C[SIDE_MAX * SIDE_MAX];
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
    tgl_device *dev = open_device("cuda");
    tgl_plan_destroy(run_strips(dev, 34, 65, 33, 1, C));
    for (int back = 0; back < 3; back++)
        assert_int_equal(earlier_launch(back).overlaps, 0);
    tgl_device_close(dev);
}

/* The run fails, although its tiles were launched. */
static void a_strip_that_cannot_be_launched_fails_the_run(void **state)
{
    (void)state;
    static float C[SIDE_MAX * SIDE_MAX];
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = run_strips(dev, 98, 131, 704, 11, C);
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernelEx=1", 1);
    assert_status(tgl_plan_run(plan, 0, C, C, 1, C, NULL), TGL_DRIVER);
    assert_int_equal(latest_launch().args.m, 96);
    unsetenv("FAKE_CUDA_FAIL");
    assert_status(tgl_plan_run(plan, 0, C, C, 1, C, NULL), TGL_OK);
    assert_int_equal(latest_launch().args.m, 2);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Tiles and strips that run concurrently have separate partial sums and counters. */
static void strips_have_partial_sums_of_their_own(void **state)
{
    (void)state;
    static float C[SIDE_MAX * SIDE_MAX];
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = run_strips(dev, 48, 48, DEEP, 11, C);
    const fake_cuda_launch l[] = {earlier_launch(2), earlier_launch(1), earlier_launch(0)};
    assert_int_equal(l[0].args.splits, 11);
    for (int i = 1; i < 3; i++) {
        assert_true(l[i].args.k_chunk < DEEP);
        assert_true((char *)l[i - 1].args.workspace < (char *)l[i].args.workspace);
        assert_true(l[i - 1].args.counters < l[i].args.counters);
    }
    assert_true((char *)l[1].args.workspace - (char *)l[0].args.workspace >=
                11 * 32 * 32 * (int)sizeof(float));
    char text[16384];
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "48 x 16"));
    assert_non_null(strstr(text, "16 x 32"));
    assert_non_null(strstr(text, "skinny_16"));
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* ---- Lists that no family makes -------------------------------------------------------------- */

static const char source[] =
    "extern \"C\" __global__ void first() {} void second() {} void mapped() {}";

static tgl_kernel kernel_named(const char *symbol)
{
    return (tgl_kernel){.name = symbol,
                        .file = "test.cu",
                        .symbol = symbol,
                        .parameters = "long long",
                        .source = source};
}

/* A launch with blocks of 256 threads. The builder's list owns its kernel. */
static tgl_launch launch_with(tgl_list_builder *b, const char *symbol, unsigned blocks,
                              tgl_ordering order)
{
    const tgl_kernel kernel = kernel_named(symbol);
    return (tgl_launch){.kernel = tgl_list_kernel(b, &kernel),
                        .grid = {blocks, 1, 1},
                        .cluster = {1, 1, 1},
                        .threads = 256,
                        .order = order,
                        .flag = -1,
                        .repeats = 1,
                        .count = 1,
                        .last_count = 1};
}

static void add_step(tgl_list_builder *b, const tgl_launch *launch)
{
    const long long argument = 42;
    tgl_list_step(b, "test");
    tgl_list_launch(b, launch, &argument, sizeof argument);
}

static void run(const tgl_plan *plan, double alpha)
{
    static float one;
    const tgl_status status = tgl_plan_run(plan, alpha, &one, &one, 1, &one, NULL);
    if (status != TGL_OK) fail_msg("%s", tgl_error());
}

/* A persistent kernel gets as many blocks as are resident on the four SMs of 2048 threads. */
static void persistent_kernels_get_what_is_resident(void **state)
{
    (void)state;
    static const struct {
        unsigned blocks, cluster, depth, expected;
    } rows[] = {{1000, 1, 1, 32}, {20, 1, 1, 20},   {1000, 1, 3, 10}, {1000, 2, 1, 32},
                {1000, 2, 3, 10}, {1000, 1, 64, 1}, {1000, 4, 64, 4}};
    tgl_device *dev = open_device("cuda");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        tgl_launch_list list;
        tgl_list_builder b;
        tgl_plan *plan;
        tgl_list_begin(&b, &list);
        tgl_launch launch = launch_with(&b, "first", rows[i].blocks, TGL_AFTER_ALL);
        launch.is_persistent = true;
        launch.cluster[0] = rows[i].cluster;
        launch.grid[2] = rows[i].depth;
        add_step(&b, &launch);
        assert_status(plan_of_launches(dev, &b, &plan), TGL_OK);
        run(plan, 1);
        assert_int_equal(latest_launch().grid[0], rows[i].expected);
        assert_int_equal(latest_launch().cluster, rows[i].cluster);
        tgl_plan_destroy(plan);
    }
    tgl_device_close(dev);
}

/* If the step before a launch is skipped, there is no launch with which it could overlap. */
static void beside_a_step_that_is_left_out(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_launch_list list;
    tgl_list_builder b;
    tgl_plan *plan;
    tgl_list_begin(&b, &list);
    tgl_launch first = launch_with(&b, "first", 1, TGL_WAITS);
    first.conditions[first.condition_count++] = (tgl_condition){.kind = TGL_IF_PRODUCT};
    const tgl_launch second = launch_with(&b, "second", 2, TGL_BESIDE);
    add_step(&b, &first);
    add_step(&b, &second);
    assert_status(plan_of_launches(dev, &b, &plan), TGL_OK);
    run(plan, 1);
    assert_int_equal(earlier_launch(1).grid[0], 1);
    assert_int_equal(earlier_launch(1).overlaps, 1);
    assert_int_equal(latest_launch().grid[0], 2);
    assert_int_equal(latest_launch().overlaps, 1);
    run(plan, 0);
    assert_int_equal(earlier_launch(1).grid[0], 2);
    assert_int_equal(latest_launch().grid[0], 2);
    assert_int_equal(latest_launch().overlaps, 0);
    assert_memory_equal(latest_launch().bytes, "\52\0\0\0\0\0\0\0", 8);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* The driver reports the size of a kernel's parameters. */
static void arguments_of_a_wrong_size_are_refused(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_launch_list list;
    tgl_list_builder b;
    tgl_plan *plan;
    tgl_list_begin(&b, &list);
    tgl_kernel kernel = kernel_named("sgemm_simt");
    kernel.source = "sgemm_simt";
    tgl_launch launch = launch_with(&b, "first", 1, TGL_AFTER_ALL);
    launch.kernel = tgl_list_kernel(&b, &kernel);
    add_step(&b, &launch);
    assert_status(plan_of_launches(dev, &b, &plan), TGL_BAD_ARGUMENT);
    assert_last_error("but is launched with 8");
    tgl_device_close(dev);
}

static void features_that_are_not_there(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
    tgl_device *dev = open_device("cuda");
    for (int i = 0; i < 2; i++) {
        tgl_launch_list list;
        tgl_list_builder b;
        tgl_plan *plan;
        tgl_kernel kernel = kernel_named("first");
        if (i == 0) kernel.needs = TGL_HAS_TMA;
        tgl_list_begin(&b, &list);
        tgl_launch launch = launch_with(&b, "second", 2, TGL_AFTER_ALL);
        launch.kernel = tgl_list_kernel(&b, &kernel);
        if (i == 1) launch.cluster[0] = 2;
        add_step(&b, &launch);
        assert_status(plan_of_launches(dev, &b, &plan), TGL_UNSUPPORTED);
        assert_null(plan);
    }
    tgl_device_close(dev);
}

/* ---- Tensor maps ----------------------------------------------------------------------------- */

/* A plan whose kernel has the tensor map of A (4 x 8 floats) and a number as parameters. */
static tgl_status plan_with_map(tgl_device *dev, const char *parameters, tgl_plan **plan)
{
    const tgl_tensor tensor = {.base = TGL_VALUE_OPERAND,
                               .operand = TGL_AT_A,
                               .type = TGL_F32,
                               .rank = 2,
                               .size = {8, 4},
                               .stride = {4, 32},
                               .box = {8, 4},
                               .swizzle_bytes = 32};
    struct {
        unsigned char map[128];
        long long number;
    } arguments = {.number = 42};
    tgl_launch_list list;
    tgl_list_builder b;
    tgl_list_begin(&b, &list);
    tgl_kernel kernel = kernel_named("mapped");
    kernel.parameters = parameters;
    tgl_launch launch = launch_with(&b, "first", 1, TGL_AFTER_ALL);
    launch.kernel = tgl_list_kernel(&b, &kernel);
    const tgl_patch patch = {.value = TGL_VALUE_TENSOR_MAP, .index = tgl_list_tensor(&b, &tensor)};
    tgl_list_step(&b, "test");
    tgl_list_launch(&b, &launch, &arguments, sizeof arguments);
    tgl_list_patch(&b, &patch);
    return plan_of_launches(dev, &b, plan);
}

static const char map_and_number[] = "struct tgl_tensor_map|long long";

/* The fake's tensor map starts with the address. */
static void tensor_maps_are_kept_by_address(void **state)
{
    (void)state;
    enum { ADDRESSES = 6, STEP = 32 };
    _Alignas(64) static float A[ADDRESSES * STEP + 1], C;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan, *plan_of_less;
    assert_status(plan_with_map(dev, map_and_number, &plan), TGL_OK);
    const int before = encoded_maps();
    for (int repeat = 0; repeat < 3; repeat++)
        for (int i = 0; i < 4; i++) {
            const float *at = A + (ptrdiff_t)i * STEP;
            assert_status(tgl_plan_run(plan, 1, at, at, 0, &C, NULL), TGL_OK);
            assert_memory_equal(latest_launch().bytes, &at, sizeof at);
            assert_int_equal(latest_launch().bytes[128], 42);
        }
    assert_int_equal(encoded_maps(), before + 4);
    for (int i = 0; i < ADDRESSES; i++) /* more addresses than are cached */
        assert_status(tgl_plan_run(plan, 1, A + (ptrdiff_t)i * STEP, A, 0, &C, NULL), TGL_OK);
    assert_int_equal(encoded_maps(), before + 6);
    assert_status(plan_with_map(dev, "struct tgl_tensor_map", &plan_of_less), TGL_BAD_ARGUMENT);
    /* A tensor map cannot begin there, so another plan of the product computes it. */
    assert_status(tgl_plan_run(plan, 1, A + 1, A, 0, &C, NULL), TGL_OK);
    assert_int_equal(encoded_maps(), before + 6);
    setenv("FAKE_CUDA_FAIL", "cuTensorMapEncodeTiled=1", 1);
    assert_status(tgl_plan_run(plan, 1, A + 4, A, 0, &C, NULL), TGL_DRIVER);
    unsetenv("FAKE_CUDA_FAIL");
    assert_last_error("encoding a tensor map");
    assert_status(tgl_plan_run(plan, 0, NULL, NULL, 0, &C, NULL), TGL_OK);
    assert_memory_equal(latest_launch().bytes, "\0\0\0\0\0\0\0\0", 8);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void drivers_without_tensor_maps(void **state)
{
    (void)state;
    use_old_driver("11080");
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan;
    assert_status(plan_with_map(dev, map_and_number, &plan), TGL_UNSUPPORTED);
    assert_last_error("cannot encode tensor maps");
    assert_product(dev, NULL, 40, 50, 60);
    tgl_device_close(dev);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(launches_overlap_and_lie_in_clusters),
        TEST(short_blocks_overlap),
        TEST(older_chips_drivers_and_compilers_launch_plainly),
        TEST(strips_follow_their_tiles),
        TEST(one_strip_is_the_last),
        TEST(older_chips_launch_strips_in_turn),
        TEST(a_strip_that_cannot_be_launched_fails_the_run),
        TEST(strips_have_partial_sums_of_their_own),
        TEST(persistent_kernels_get_what_is_resident),
        TEST(beside_a_step_that_is_left_out),
        TEST(arguments_of_a_wrong_size_are_refused),
        TEST(features_that_are_not_there),
        TEST(tensor_maps_are_kept_by_address),
        TEST(drivers_without_tensor_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
