/* SPDX-License-Identifier: Apache-2.0
 *
 * The launches of lists of products on the cuda device, with the fake libraries: which products
 * share a launch, what is compiled, graphs, and failures.
 */
#include "fake_cuda/setup.h"
#include "product_list_case.h"

#include "../kernels/lib/bundle_table.h"

enum { SIDE_MAX = 2048, COUNT_MAX = 200 };

static float ones[SIDE_MAX * SIDE_MAX], results[COUNT_MAX][64];

/* Fills a list of products of matrices of ones. Product i is (i % 7 + 1) x 8, and its result is in
 * results[i]. */
static void fill_list(tgl_problem *p, tgl_operands *o, int count, int k)
{
    for (int i = 0; i < SIDE_MAX * SIDE_MAX; i++)
        ones[i] = 1;
    memset(results, 0, sizeof results);
    for (int i = 0; i < count; i++) {
        assert_status(tgl_problem_init(&p[i], sizeof *p, TGL_F32, i % 7 + 1, 8, k + 4 * (i % 5)),
                      TGL_OK);
        o[i] = (tgl_operands){.size = sizeof *o, .alpha = 1, .A = ones, .B = ones, .C = results[i]};
    }
}

static bool has_results(const tgl_problem *p, int count)
{
    for (int i = 0; i < count; i++)
        for (int64_t e = 0; e < p[i].m * p[i].n; e++)
            if (results[i][e] != (float)p[i].k) return false;
    return true;
}

/* Runs the list. Returns the number of launches. */
static int launches_of(tgl_device *dev, const tgl_problem *p, const tgl_operands *o, int count)
{
    const int before = launches_so_far();
    assert_status(tgl_grouped_list(dev, count, p, o, NULL), TGL_OK);
    return launches_so_far() - before;
}

static void small_products_share_launches(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_problem p[COUNT_MAX];
    tgl_operands o[COUNT_MAX];
    static const struct {
        int count, launches;
    } lists[] = {{1, 1},
                 {2, 1},
                 {TGL_BUNDLE_MAX, 1},
                 {TGL_BUNDLE_MAX + 1, 2},
                 {2 * TGL_BUNDLE_MAX, 2},
                 {COUNT_MAX, (COUNT_MAX + TGL_BUNDLE_MAX - 1) / TGL_BUNDLE_MAX}};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        fill_list(p, o, lists[i].count, 16);
        assert_int_equal(launches_of(dev, p, o, lists[i].count), lists[i].launches);
        assert_true(has_results(p, lists[i].count));
    }
    tgl_device_close(dev);
}

/* Products that cannot share a bundle with others, and those that would fill the GPU, have launches
 * of their own. */
static void some_products_run_alone(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    tgl_device *dev = open_device("cuda");
    tgl_problem p[COUNT];
    tgl_operands o[COUNT];
    fill_list(p, o, COUNT, 16);
    o[3].A = ones + 1; /* not aligned to 16 bytes, and the only one */
    p[4].trans_b = TGL_TRANS;
    assert_int_equal(launches_of(dev, p, o, COUNT), 3);
    assert_true(has_results(p, COUNT));
    o[5].A = ones + 1; /* it shares a bundle with product 3 */
    assert_int_equal(launches_of(dev, p, o, COUNT), 3);
    assert_true(has_results(p, COUNT));

    fill_list(p, o, COUNT, 16);
    p[1].k = 5000; /* deep: it may be split over K */
    p[2].batch = 1, p[2].stride_c = 64;
    p[6].batch = 2, p[6].stride_a = p[6].stride_b = 0, p[6].stride_c = 32, p[6].n = 4;
    p[6].m = 8;
    p[8].lda = (1 << 20) + 4;
    p[8].m = 1;
    assert_int_equal(launches_of(dev, p, o, COUNT), 4);
    assert_true(has_results(p, COUNT));
    assert_true(results[6][32 + 31] == (float)p[6].k);

    static float large[SIDE_MAX * SIDE_MAX];
    fill_list(p, o, COUNT, 16);
    p[7].m = p[7].n = 512; /* 4 SMs */
    p[7].k = 4;
    o[7].C = large;
    assert_int_equal(launches_of(dev, p, o, COUNT), 2);
    assert_true(large[512 * 512 - 1] == 4);
    tgl_device_close(dev);
}

/* No kernel for this chip computes bundles of bf16. */
static void chips_without_a_kernel(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    setenv("FAKE_CUDA_CAPABILITY", "75", 1);
    tgl_device *dev = open_device("cuda");
    const product_list_case c = {.count = COUNT, .side = 8, .seed = 5, .type = TGL_BF16};
    product_list list = make_product_list(dev, &c);
    assert_int_equal(launches_of(dev, list.problems, list.operands, COUNT), COUNT);
    assert_products(dev, &list);
    free_product_list(dev, &list);
    tgl_device_close(dev);
}

/* Products of a list may have a D that is another matrix than C, and a workspace of the caller. */
static void features_of_single_products(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    tgl_device *dev = open_device("cuda");
    tgl_problem p[COUNT];
    tgl_operands o[COUNT];
    fill_list(p, o, COUNT, 16);
    static float D[64];
    p[0].type_d = TGL_F32;
    o[0].C = NULL;
    o[0].D = D;
    o[1].workspace = D;
    o[1].workspace_bytes = 0;
    assert_int_equal(launches_of(dev, p, o, COUNT), 3);
    assert_true(D[7] == (float)p[0].k);
    tgl_device_close(dev);
}

/* A list of other sizes needs no new kernel if its typical sizes are about the same. */
static void kernels_serve_many_lists(void **state)
{
    (void)state;
    enum { COUNT = 30 };
    tgl_device *dev = open_device("cuda");
    tgl_problem p[COUNT];
    tgl_operands o[COUNT];
    fill_list(p, o, COUNT, 16);
    launches_of(dev, p, o, COUNT);
    const int compiled = compilations();
    for (int k = 20; k < 32; k += 4) {
        fill_list(p, o, COUNT, k);
        assert_int_equal(launches_of(dev, p, o, COUNT), 1);
        assert_true(has_results(p, COUNT));
    }
    assert_int_equal(compilations(), compiled);
    tgl_device_close(dev);
}

/* A bundle does not take the cached plan of a batch that has the bundle's typical sizes. */
static void a_batch_has_another_plan(void **state)
{
    (void)state;
    enum { SIDE = 16, COUNT = 2 };
    tgl_device *dev = open_device("cuda");
    static float C[COUNT][SIDE * SIDE];
    tgl_problem p[COUNT], batch;
    tgl_operands o[COUNT];
    const void *from[COUNT] = {ones, ones};
    void *to[COUNT] = {C[0], C[1]};
    fill_list(p, o, COUNT, SIDE);
    for (int i = 0; i < COUNT; i++) {
        assert_status(tgl_problem_init(&p[i], sizeof *p, TGL_F32, SIDE, SIDE, SIDE), TGL_OK);
        o[i].C = C[i];
    }
    batch = p[0];
    batch.batch = COUNT;
    batch.batching = TGL_POINTERS;
    batch.alignment = 16;
    assert_status(tgl_gemm_batched(dev, &batch, 1, from, from, 0, to, NULL), TGL_OK);
    assert_int_equal(launches_of(dev, p, o, COUNT), 1);
    assert_true(C[1][SIDE * SIDE - 1] == SIDE);
    assert_status(tgl_gemm_batched(dev, &batch, 2, from, from, 0, to, NULL), TGL_OK);
    assert_true(C[1][SIDE * SIDE - 1] == 2 * SIDE);
    tgl_device_close(dev);
}

static void lists_are_captured(void **state)
{
    (void)state;
    enum { COUNT = 70 };
    tgl_device *dev = open_device("cuda");
    tgl_problem p[COUNT];
    tgl_operands o[COUNT];
    void *stream = create_stream();
    fill_list(p, o, COUNT, 16);
    begin_capture(stream);
    assert_status(tgl_grouped_list(dev, COUNT, p, o, stream), TGL_OK);
    void *graph = end_capture(stream);
    assert_true(results[0][0] == 0);
    memset(o, 0, sizeof o); /* the graph does not need the caller's arrays */
    for (int i = 0; i < 2; i++) {
        memset(results, 0, sizeof results);
        launch_graph(graph, stream);
        assert_true(has_results(p, COUNT));
    }
    destroy_graph(graph);
    destroy_stream(stream);
    tgl_device_close(dev);
}

/* Random lists in all layouts, some with m, n or k of 0. */
static void random_lists(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    for (unsigned i = 0; i < 16; i++) {
        const product_list_case c = {.count = 1 + (int)i * 9,
                                     .side = 40,
                                     .seed = i,
                                     .type = i / 8 % 2 ? TGL_F64 : TGL_F32,
                                     .trans_a = i % 2,
                                     .trans_b = i / 2 % 2,
                                     .is_aligned = i / 4 % 2};
        check_product_list(dev, &c);
    }
    tgl_device_close(dev);
}

static void failures_are_reported(void **state)
{
    (void)state;
    enum { COUNT = 5 };
    tgl_device *dev = open_device("cuda");
    tgl_problem p[COUNT];
    tgl_operands o[COUNT];
    fill_list(p, o, COUNT, 16);
    setenv("FAKE_NVRTC_ERROR", "no such thing", 1);
    assert_status(tgl_grouped_list(dev, COUNT, p, o, NULL), TGL_COMPILE);
    unsetenv("FAKE_NVRTC_ERROR");
    o[4].A = NULL;
    const int before = launches_so_far();
    assert_status(tgl_grouped_list(dev, COUNT, p, o, NULL), TGL_BAD_A);
    assert_int_equal(launches_so_far(), before);
    o[4].A = ones;
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel=1,cuLaunchKernelEx=1", 1);
    assert_status(tgl_grouped_list(dev, COUNT, p, o, NULL), TGL_DRIVER);
    unsetenv("FAKE_CUDA_FAIL");
    assert_int_equal(launches_of(dev, p, o, COUNT), 1);
    assert_true(has_results(p, COUNT));
    tgl_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_products_share_launches, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(some_products_run_alone, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(chips_without_a_kernel, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(features_of_single_products, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(kernels_serve_many_lists, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(a_batch_has_another_plan, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(lists_are_captured, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(random_lists, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(failures_are_reported, fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
