/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory accesses: every buffer ends at an inaccessible page or begins after one; the memory
 * between rows is NaN in A and B and must not change in C. For every kernel and every edge, with
 * random floating-point types and layouts.
 */
#include "support.h"

static const tgl_type types[] = {TGL_F32, TGL_F64, TGL_F16, TGL_BF16};
static const double scalars[] = {1, 0, -0.5, 2};

/* Runs one random case of these sizes. */
static void check_sizes(tgl_device *dev, const char *kernel, uint64_t *seed, int64_t m, int64_t n,
                        int64_t k)
{
    tgl_problem problem = problem_of(types[random_int(seed, 0, COUNT_OF(types) - 1)], m, n, k);
    problem.order = (tgl_order)random_int(seed, TGL_ROW_MAJOR, TGL_COL_MAJOR);
    problem.trans_a = (tgl_transpose)random_int(seed, TGL_NO_TRANS, TGL_TRANS);
    problem.trans_b = (tgl_transpose)random_int(seed, TGL_NO_TRANS, TGL_TRANS);
    if (random_int(seed, 0, 1) == 1) {
        const int64_t widest = (m > n ? m : n) > k ? (m > n ? m : n) : k;
        problem.lda = widest + random_int(seed, 0, 9);
        problem.ldb = widest + random_int(seed, 0, 9);
        problem.ldc = widest + random_int(seed, 0, 9);
    }
    const gemm_case c = {.problem = problem,
                         .alpha = scalars[random_int(seed, 0, 3)],
                         .beta = scalars[random_int(seed, 0, 3)],
                         .kernel = kernel,
                         .fill = UNIFORM_11,
                         .at_end = random_int(seed, 0, 2) > 0,
                         .seed = random_bits(seed)};
    assert_true(check_case(dev, &c));
}

/* Each dimension takes every size from 1 to 70; the other dimensions are random. */
static void every_edge_from_1_to_70(void **state)
{
    tgl_device *dev = *state;
    const char *kernel;
    for (int choice = 0; kernel_choice(dev, choice, &kernel); choice++) {
        uint64_t seed = 1;
        for (int repeat = 0; repeat < 4; repeat++)
            for (int64_t size = 1; size <= 70; size++) {
                const int64_t x = random_int(&seed, 1, 70), y = random_int(&seed, 1, 70);
                check_sizes(dev, kernel, &seed, size, x, y);
                check_sizes(dev, kernel, &seed, x, size, y);
                check_sizes(dev, kernel, &seed, x, y, size);
            }
    }
}

/* Sizes larger than the blocks of a cache-blocked product. */
static void sizes_beyond_one_block(void **state)
{
    static const int64_t sizes[][3] = {
        {1, 1, 5000},   {1, 3000, 3},  {3000, 1, 2},  {1, 700, 700},   {700, 1, 700},
        {257, 9, 1030}, {9, 257, 513}, {200, 300, 5}, {130, 130, 700}, {600, 20, 40}};
    tgl_device *dev = *state;
    const char *kernel;
    for (int choice = 0; kernel_choice(dev, choice, &kernel); choice++) {
        uint64_t seed = 2;
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            for (int repeat = 0; repeat < 2; repeat++)
                check_sizes(dev, kernel, &seed, sizes[i][0], sizes[i][1], sizes[i][2]);
    }
}

/* Any valid problem, including batches and strides of 0. */
static void random_problems(void **state)
{
    tgl_device *dev = *state;
    const char *kernel;
    for (int choice = 0; kernel_choice(dev, choice, &kernel); choice++) {
        uint64_t seed = 3;
        for (int i = 0; i < 500; i++) {
            const tgl_problem problem =
                random_problem(&seed, types[i % COUNT_OF(types)], i % 10 == 0 ? 150 : 40);
            const gemm_case c = {.problem = problem,
                                 .alpha = scalars[random_int(&seed, 0, 3)],
                                 .beta = scalars[random_int(&seed, 0, 3)],
                                 .kernel = kernel,
                                 .fill = (inputs)random_int(&seed, 0, NON_FINITE),
                                 .at_end = i % 3 > 0,
                                 .seed = random_bits(&seed)};
            assert_true(check_case(dev, &c));
        }
    }
}

/* The matrices C of a batch are interleaved: each has one row (column-major: one column) in every
 * ldc elements, with and without gaps. */
static void check_side_by_side(tgl_device *dev, const char *kernel, uint64_t *seed, int number)
{
    tgl_problem p = problem_of(types[number % COUNT_OF(types)], random_int(seed, 1, 40),
                               random_int(seed, 1, 40), random_int(seed, 0, 40));
    p.order = number & 2 ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
    p.batch = random_int(seed, 2, 4);
    p.stride_a = random_int(seed, 0, 1) * p.m * p.k;
    p.stride_b = random_int(seed, 0, 1) * p.k * p.n;
    p.stride_c = (number & 2 ? p.m : p.n) + random_int(seed, 0, 2);
    p.ldc = p.batch * p.stride_c + random_int(seed, 0, 2);
    const gemm_case c = {.problem = p,
                         .alpha = scalars[random_int(seed, 0, 3)],
                         .beta = scalars[random_int(seed, 0, 3)],
                         .kernel = kernel,
                         .epilogue = {.size = number & 4 ? sizeof c.epilogue : 0,
                                      .residual = number & 4 ? 1 : 0,
                                      .ld_residual = p.ldc,
                                      .stride_residual = p.stride_c},
                         .fill = UNIFORM_11,
                         .at_end = random_int(seed, 0, 1) == 1,
                         .seed = random_bits(seed)};
    check_case(dev, &c);
}

static void batches_side_by_side(void **state)
{
    tgl_device *dev = *state;
    const char *kernel;
    for (int choice = 0; kernel_choice(dev, choice, &kernel); choice++) {
        uint64_t seed = 4;
        for (int i = 0; i < 100; i++)
            check_side_by_side(dev, kernel, &seed, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_edge_from_1_to_70),
        cmocka_unit_test(sizes_beyond_one_block),
        cmocka_unit_test(random_problems),
        cmocka_unit_test(batches_side_by_side),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
