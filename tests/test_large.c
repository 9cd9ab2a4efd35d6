/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices whose elements are more than 2^31 and 2^32 elements apart; with the argument "sim",
 * tiles of the simulated kernels that span more than 2^32 bytes. The memory is reserved but not
 * committed: only accessed pages use memory.
 */
#include "support.h"

#include <sys/mman.h>

/* Reserves zeroed address space. Skips the test if the system refuses. */
static void *reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) skip();
    return memory;
}

typedef struct spread_problem {
    int64_t m, n, k;
    tgl_transpose trans_a, trans_b;
    tgl_order order;
    int64_t lda, ldb, ldc; /* 0: no padding */
} spread_problem;

/* op(A), op(B) and C have few elements, and the rows or columns of one of them are far apart. */
static const spread_problem spread[] = {
#define FAR (((int64_t)1 << 31) + 11)
    {3, 5, 1, TGL_NO_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, FAR, 0, 0},
    {3, 5, 4, TGL_NO_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, FAR, 0, 0},
    {5, 4, 3, TGL_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, FAR, 0, 0},
    {5, 4, 3, TGL_NO_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, 0, FAR, 0},
    {5, 3, 4, TGL_NO_TRANS, TGL_TRANS, TGL_ROW_MAJOR, 0, FAR, 0},
    {3, 5, 4, TGL_NO_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, 0, 0, FAR},
    {5, 3, 4, TGL_NO_TRANS, TGL_NO_TRANS, TGL_COL_MAJOR, 0, 0, FAR},
    {4, 5, 3, TGL_NO_TRANS, TGL_NO_TRANS, TGL_COL_MAJOR, FAR, 0, 0},
    {3, 1, 40, TGL_NO_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, FAR, 0, 0}, /* matrix times vector */
    {1, 40, 3, TGL_NO_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, 0, FAR, 0}, /* vector times matrix */
    {3, 3, 3, TGL_NO_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, FAR, FAR, FAR},
};

/* The value of element (i, j): it differs from its neighbours, and sums are exact. */
static float value(int64_t i, int64_t j)
{
    return (float)(1 + i % 7 * 10 + j % 5);
}

static float *make_matrix(tgl_order order, tgl_transpose trans, int64_t rows, int64_t cols,
                          int64_t *ld, size_t *bytes)
{
    const bool lines_are_rows = (trans == TGL_NO_TRANS) == (order == TGL_ROW_MAJOR);
    if (*ld == 0) *ld = lines_are_rows ? cols : rows;
    *bytes = (size_t)stored_extent(order, trans, rows, cols, *ld, 1, 0) * sizeof(float);
    float *x = reserve(*bytes);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            x[stored_index(order, trans, *ld, i, j)] = value(i, j);
    return x;
}

static void check_spread(tgl_device *dev, const char *kernel, const spread_problem *of)
{
    tgl_problem p = problem_of(TGL_F32, of->m, of->n, of->k);
    p.order = of->order;
    p.trans_a = of->trans_a;
    p.trans_b = of->trans_b;
    p.lda = of->lda;
    p.ldb = of->ldb;
    p.ldc = of->ldc;
    size_t size_a, size_b, size_c;
    float *A = make_matrix(p.order, p.trans_a, p.m, p.k, &p.lda, &size_a);
    float *B = make_matrix(p.order, p.trans_b, p.k, p.n, &p.ldb, &size_b);
    float *C = make_matrix(p.order, TGL_NO_TRANS, p.m, p.n, &p.ldc, &size_c);

    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &p, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 1, A, B, 2, C, NULL), TGL_OK);
    tgl_plan_destroy(plan);
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) {
            float expected = 2 * value(i, j);
            for (int64_t x = 0; x < p.k; x++)
                expected += value(i, x) * value(x, j);
            const float c = C[stored_index(p.order, TGL_NO_TRANS, p.ldc, i, j)];
            if (c != expected)
                fail_msg("%d x %d x %d, ld %lld %lld %lld, kernel %s: C(%d, %d) is %g, not %g",
                         (int)p.m, (int)p.n, (int)p.k, (long long)p.lda, (long long)p.ldb,
                         (long long)p.ldc, kernel != NULL ? kernel : "any", (int)i, (int)j, c,
                         expected);
        }
    munmap(A, size_a);
    munmap(B, size_b);
    munmap(C, size_c);
}

static void rows_may_be_2_to_the_31_elements_apart(void **state)
{
    const char *kernel;
    for (int choice = 0; kernel_choice(*state, choice, &kernel); choice++)
        for (size_t row = 0; row < COUNT_OF(spread); row++)
            check_spread(*state, kernel, &spread[row]);
}

static void batches_may_be_2_to_the_31_elements_apart(void **state)
{
    const char *kernel;
    for (int choice = 0; kernel_choice(*state, choice, &kernel); choice++) {
        tgl_problem p = problem_of(TGL_F32, 1, 1, 1);
        p.batch = 3;
        p.stride_a = FAR;
        p.stride_b = FAR + 2;
        p.stride_c = FAR + 5;
        const size_t bytes = ((size_t)p.stride_c * 2 + 1) * sizeof(float);
        float *A = reserve(bytes), *B = reserve(bytes), *C = reserve(bytes);
        for (int i = 0; i < 3; i++) {
            A[i * p.stride_a] = (float)(i + 2);
            B[i * p.stride_b] = 10;
        }
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
        assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
        for (int i = 0; i < 3; i++)
            assert_true(C[i * p.stride_c] == (float)(10 * i + 20));
        tgl_plan_destroy(plan);
        munmap(A, bytes);
        munmap(B, bytes);
        munmap(C, bytes);
    }
}

/* Matrices with a row of more than 2^31 elements, of which nothing is read because alpha is 0 or m
 * is 0: the sizes alone must not overflow. */
static void sizes_themselves_may_pass_2_to_the_31(void **state)
{
    tgl_problem p = problem_of(TGL_F32, 1, 1, (int64_t)1 << 33);
    float C = 3;
    assert_status(tgl_gemm(*state, &p, 0, NULL, NULL, 2, &C, NULL), TGL_OK);
    assert_true(C == 6);
    p = problem_of(TGL_F32, (int64_t)1 << 40, 0, 1);
    assert_status(tgl_gemm(*state, &p, 1, NULL, NULL, 2, NULL, NULL), TGL_OK);
    p = problem_of(TGL_F32, 1, 1, 1);
    p.batch = 0;
    p.stride_a = p.stride_b = p.stride_c = INT64_MAX;
    assert_status(tgl_gemm(*state, &p, 1, NULL, NULL, 2, NULL, NULL), TGL_OK);
}

/* A thread's copies then need 64-bit offsets. Tiles of 32 x 32 x 16 have 32 rows in memory if the
 * operand is K-major, and 16 if it is MN-major. */
static void tiles_may_span_2_to_the_32_bytes(void **state)
{
#define WIDE ((int64_t)40000000)
    static const spread_problem wide[] = {
        {37, 35, 20, TGL_NO_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, WIDE, 0, 0},
        {37, 35, 20, TGL_TRANS, TGL_NO_TRANS, TGL_ROW_MAJOR, 2 * WIDE, 2 * WIDE, 0},
        {37, 35, 20, TGL_NO_TRANS, TGL_TRANS, TGL_ROW_MAJOR, 0, WIDE, WIDE},
    };
    for (size_t i = 0; i < COUNT_OF(wide); i++)
        check_spread(*state, "simt_32x32x16", &wide[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_may_be_2_to_the_31_elements_apart),
        cmocka_unit_test(batches_may_be_2_to_the_31_elements_apart),
        cmocka_unit_test(sizes_themselves_may_pass_2_to_the_31),
    };
    const struct CMUnitTest simulated[] = {
        cmocka_unit_test(tiles_may_span_2_to_the_32_bytes),
    };
    if (argc > 1 && strcmp(argv[1], "sim") == 0)
        return cmocka_run_group_tests(simulated, setup_sim, teardown_device);
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
