/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared operands on the cuda device, with the fake libraries: which launches a run has, in
 * streams and in graphs, memory, and failures.
 */
#include "fake_cuda/setup.h"

enum { M = 128, N = 192, K = 512, BLOCKS_OF_A = M / 16, BLOCKS_OF_B = N / 16 };

static float A[M * K], B[K * N], C[M * N];

static tgl_plan *accurate_plan(tgl_device *dev)
{
    tgl_problem problem = problem_of(TGL_F32, M, N, K);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "accurate_128x64"};
    tgl_plan *plan;
    problem.compute = TGL_COMPUTE_ACCURATE;
    for (int i = 0; i < M * K; i++)
        A[i] = 1;
    for (int i = 0; i < K * N; i++)
        B[i] = 2;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    return plan;
}

static tgl_status run(const tgl_plan *plan, const tgl_prepared *a, const tgl_prepared *b,
                      void *stream)
{
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = 1,
                                   .A = A,
                                   .B = B,
                                   .C = C,
                                   .prepared_a = a,
                                   .prepared_b = b};
    memset(C, 0, sizeof C);
    return tgl_plan_run_operands(plan, &operands, stream);
}

static void assert_right(void)
{
    assert_true(C[0] == 2 * K && C[M * N - 1] == 2 * K);
}

/* The number of blocks of the pre-pass, which is launched before the product. */
static unsigned blocks_of_words(void)
{
    return earlier_launch(1).grid[0];
}

static void a_run_leaves_out_the_pre_pass_of_a_prepared_operand(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = accurate_plan(dev);
    tgl_prepared *a, *b;
    assert_status(run(plan, NULL, NULL, NULL), TGL_OK);
    assert_right();
    assert_int_equal(blocks_of_words(), BLOCKS_OF_A + BLOCKS_OF_B);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, NULL, &b), TGL_OK);
    assert_int_equal(latest_launch().grid[0], BLOCKS_OF_B);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_A, A, NULL, &a), TGL_OK);
    assert_int_equal(latest_launch().grid[0], BLOCKS_OF_A);
    assert_in_range(tgl_prepared_size(b), sizeof B, sizeof B + sizeof B / 10);
    assert_status(run(plan, NULL, b, NULL), TGL_OK);
    assert_right();
    assert_int_equal(blocks_of_words(), BLOCKS_OF_A);
    const char *tables = latest_launch().args.right_tables;
    assert_status(run(plan, a, NULL, NULL), TGL_OK);
    assert_int_equal(blocks_of_words(), BLOCKS_OF_B);
    assert_true(latest_launch().args.right_tables != tables);
    const fake_cuda_launch before = latest_launch();
    assert_status(run(plan, a, b, NULL), TGL_OK); /* the product alone */
    assert_right();
    assert_ptr_equal(latest_launch().args.right_tables, tables);
    assert_ptr_equal(earlier_launch(1).args.left_tables, before.args.left_tables);
    tgl_prepared_destroy(a);
    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* The workspace of a stream does not include room for the words of operands that are prepared,
 * because these have memory of their own. */
static void runs_reserve_no_memory_for_prepared_operands(void **state)
{
    (void)state;
    enum { SCRATCH_LEAST = 1 << 20 }; /* an arena's scratch has more */
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = accurate_plan(dev);
    tgl_prepared *a, *b;
    void *stream = create_stream();
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_A, A, stream, &a), TGL_OK);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, stream, &b), TGL_OK);
    assert_status(run(plan, a, b, stream), TGL_OK);
    assert_right();
    assert_true(memory_taken() < SCRATCH_LEAST + tgl_prepared_size(a) + tgl_prepared_size(b));
    assert_status(run(plan, NULL, b, stream), TGL_OK);
    assert_right();
    assert_true(memory_taken() > SCRATCH_LEAST + tgl_prepared_size(a) + tgl_prepared_size(b));
    tgl_prepared_destroy(a);
    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* A graph keeps the pointers of the prepared operand. */
static void captured_runs(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = accurate_plan(dev);
    void *stream = create_stream();
    tgl_prepared *b;
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, stream, &b), TGL_OK);
    begin_capture(stream);
    for (int i = 0; i < 3; i++)
        assert_status(run(plan, NULL, b, stream), TGL_OK);
    assert_true(latest_launch().is_captured);
    assert_int_equal(blocks_of_words(), BLOCKS_OF_A);
    void *graph = end_capture(stream);
    assert_true(C[0] == 0);
    launch_graph(graph, stream);
    assert_right();
    destroy_graph(graph);
    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void a_captured_preparation_is_a_part_of_the_graph(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = accurate_plan(dev);
    void *stream = create_stream();
    tgl_prepared *b;
    begin_capture(stream);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, stream, &b), TGL_OK);
    assert_true(latest_launch().is_captured);
    assert_status(run(plan, NULL, b, stream), TGL_OK);
    void *graph = end_capture(stream);
    launch_graph(graph, stream);
    assert_right();
    destroy_graph(graph);
    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* If there is no memory for the words or the workspace, or a launch fails, no operand is made, and
 * no memory for it is kept. */
static void failures(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = accurate_plan(dev);
    tgl_prepared *b = (tgl_prepared *)&C;
    setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2,cuMemAllocAsync=2", 1);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, NULL, &b), TGL_NO_MEMORY);
    assert_null(b);
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel=1", 1);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, NULL, &b), TGL_DRIVER);
    assert_null(b);
    unsetenv("FAKE_CUDA_FAIL");
    const size_t arena = memory_taken();
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, NULL, &b), TGL_OK);
    assert_int_equal(memory_taken(), arena + tgl_prepared_size(b));
    tgl_prepared_destroy(b);
    assert_int_equal(memory_taken(), arena);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Without memory for a workspace, another kernel computes the product, from B itself. */
static void the_plan_without_workspace(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = accurate_plan(dev);
    tgl_prepared *b;
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, NULL, &b), TGL_OK);
    void *stream = create_stream();
    setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2,cuMemAllocAsync=2", 1);
    assert_status(run(plan, NULL, b, stream), TGL_OK);
    unsetenv("FAKE_CUDA_FAIL");
    assert_right();
    assert_null(latest_launch().args.left_tables);
    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_leaves_out_the_pre_pass_of_a_prepared_operand),
        TEST(runs_reserve_no_memory_for_prepared_operands),
        TEST(captured_runs),
        TEST(a_captured_preparation_is_a_part_of_the_graph),
        TEST(failures),
        TEST(the_plan_without_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
