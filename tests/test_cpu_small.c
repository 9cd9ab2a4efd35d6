/* SPDX-License-Identifier: Apache-2.0
 *
 * Small products, which the cpu device computes without a plan (src/api/small_calls.c,
 * src/cpu/run/cpu_small.c): every way to ask for one gives the same bytes, and wrong arguments are
 * found.
 */
#include "gemm_case.h"
#include "support.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- The ways to compute one product --------------------------------------------------------- */

enum { BLAS_CALL, ONE_SHOT, PLAN, NAMED_PLAN, WAYS };

typedef struct matrices {
    guarded a, b, c;
} matrices;

/* The number of elements of a stored matrix from the first to the last: `lines` rows (or columns)
 * of `line` elements, without padding behind the last. */
static size_t extent_of(int64_t lines, int64_t line, int64_t ld, tgl_type type)
{
    return (size_t)((lines - 1) * ld + line) * (type == TGL_F32 ? sizeof(float) : sizeof(double));
}

static void fill(guarded *g, tgl_type type, uint64_t *seed)
{
    const size_t count = g->size / (type == TGL_F32 ? sizeof(float) : sizeof(double));
    for (size_t i = 0; i < count; i++) {
        const double x = (double)random_int(seed, -1000, 1000) / 64;
        const double value = random_int(seed, 0, 199) == 0 ? (double)NAN : x;
        if (type == TGL_F32)
            ((float *)(void *)g->bytes)[i] = (float)value;
        else
            ((double *)(void *)g->bytes)[i] = value;
    }
}

static tgl_status run_plan(tgl_device *dev, const tgl_problem *p, const char *kernel, double alpha,
                           double beta, const matrices *x)
{
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_plan *plan;
    tgl_status status = tgl_plan_create(dev, p, &options, &plan);
    if (status != TGL_OK) return status;
    status = tgl_plan_run(plan, alpha, x->a.bytes, x->b.bytes, beta, x->c.bytes, NULL);
    tgl_plan_destroy(plan);
    return status;
}

static tgl_status run_way(tgl_device *dev, int way, const tgl_problem *p, double alpha, double beta,
                          const matrices *x)
{
    void *a = x->a.bytes, *b = x->b.bytes, *c = x->c.bytes;
    if (way == ONE_SHOT) return tgl_gemm(dev, p, alpha, a, b, beta, c, NULL);
    if (way == PLAN) return run_plan(dev, p, NULL, alpha, beta, x);
    if (way == NAMED_PLAN) return run_plan(dev, p, tgl_kernel_name(dev, 0), alpha, beta, x);
    if (p->type_a == TGL_F32)
        return tgl_sgemm(dev, p->order, p->trans_a, p->trans_b, p->m, p->n, p->k, (float)alpha, a,
                         p->lda, b, p->ldb, (float)beta, c, p->ldc, NULL);
    return tgl_dgemm(dev, p->order, p->trans_a, p->trans_b, p->m, p->n, p->k, alpha, a, p->lda, b,
                     p->ldb, beta, c, p->ldc, NULL);
}

static void compare_ways(tgl_device *dev, const tgl_problem *p, double alpha, double beta,
                         uint64_t *seed)
{
    const bool columns = p->order == TGL_COL_MAJOR, at_end = random_int(seed, 0, 1);
    const bool flip_a = (p->trans_a != TGL_NO_TRANS) != columns;
    const bool flip_b = (p->trans_b != TGL_NO_TRANS) != columns;
    matrices x;
    assert_true(guarded_create(
        &x.a, extent_of(flip_a ? p->k : p->m, flip_a ? p->m : p->k, p->lda, p->type_a), at_end));
    assert_true(guarded_create(
        &x.b, extent_of(flip_b ? p->n : p->k, flip_b ? p->k : p->n, p->ldb, p->type_a), at_end));
    assert_true(guarded_create(
        &x.c, extent_of(columns ? p->n : p->m, columns ? p->m : p->n, p->ldc, p->type_a), at_end));
    fill(&x.a, p->type_a, seed);
    fill(&x.b, p->type_a, seed);
    fill(&x.c, p->type_a, seed);
    unsigned char *before = test_malloc(x.c.size), *expected = test_malloc(x.c.size);
    memcpy(before, x.c.bytes, x.c.size);
    for (int way = NAMED_PLAN; way >= 0;
         way--) { /* a plan with a named kernel takes the general path */
        memcpy(x.c.bytes, before, x.c.size);
        assert_status(run_way(dev, way, p, alpha, beta, &x), TGL_OK);
        if (way == NAMED_PLAN) memcpy(expected, x.c.bytes, x.c.size);
        assert_memory_equal(x.c.bytes, expected, x.c.size);
        assert_true(guarded_is_intact(&x.c));
    }
    test_free(before);
    test_free(expected);
    guarded_destroy(&x.a);
    guarded_destroy(&x.b);
    guarded_destroy(&x.c);
}

static void all_ways_give_the_same_bytes(void **state)
{
    static const double scalars[] = {1, 0, -0.5, 3, 1e-60, (double)NAN};
    uint64_t seed = 19;
    for (int i = 0; i < 4000; i++) {
        const int64_t largest = (int64_t)1 << random_int(&seed, 0, 6);
        tgl_problem p = random_problem(&seed, i % 2 ? TGL_F32 : TGL_F64, largest + 4);
        p.batch = 1;
        p.stride_a = p.stride_b = p.stride_c = 0;
        if (p.m == 0 || p.n == 0 || p.k == 0) continue;
        const bool columns = p.order == TGL_COL_MAJOR;
        const bool flip_a = (p.trans_a != TGL_NO_TRANS) != columns;
        const bool flip_b = (p.trans_b != TGL_NO_TRANS) != columns;
        if (p.lda == 0) p.lda = flip_a ? p.m : p.k;
        if (p.ldb == 0) p.ldb = flip_b ? p.k : p.n;
        if (p.ldc == 0) p.ldc = columns ? p.m : p.n;
        compare_ways(*state, &p, scalars[random_int(&seed, 0, 5)], scalars[random_int(&seed, 0, 5)],
                     &seed);
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* C := alpha*A*B + beta*C by the type's BLAS function, without padding. */
static void multiply(tgl_device *dev, tgl_type type, int64_t m, int64_t n, int64_t k,
                     const double scalars[2], const void *a, const void *b, void *c)
{
    const tgl_transpose N = TGL_NO_TRANS;
    const double alpha = scalars[0], beta = scalars[1];
    assert_status(type == TGL_F32 ? tgl_sgemm(dev, TGL_ROW_MAJOR, N, N, m, n, k, (float)alpha, a, k,
                                              b, n, (float)beta, c, n, NULL)
                                  : tgl_dgemm(dev, TGL_ROW_MAJOR, N, N, m, n, k, alpha, a, k, b, n,
                                              beta, c, n, NULL),
                  TGL_OK);
}

/* The m rows of a product are the first ones of a product with `larger` rows, bit by bit. */
static void compare_rows(tgl_device *dev, tgl_type type, int64_t m, int64_t larger, int64_t n,
                         int64_t k, const double *scalars, uint64_t *seed)
{
    const int64_t element = (int64_t)tgl_type_size(type);
    matrices x;
    guarded few;
    assert_true(guarded_create(&x.a, (size_t)(larger * k * element), true));
    assert_true(guarded_create(&x.b, (size_t)(k * n * element), true));
    assert_true(guarded_create(&x.c, (size_t)(larger * n * element), true));
    assert_true(guarded_create(&few, (size_t)(m * n * element), true));
    fill(&x.a, type, seed);
    fill(&x.b, type, seed);
    fill(&x.c, type, seed);
    memcpy(few.bytes, x.c.bytes, few.size);
    multiply(dev, type, m, n, k, scalars, x.a.bytes, x.b.bytes, few.bytes);
    multiply(dev, type, larger, n, k, scalars, x.a.bytes, x.b.bytes, x.c.bytes);
    assert_memory_equal(few.bytes, x.c.bytes, few.size);
    assert_true(guarded_is_intact(&few));
    guarded_destroy(&x.a);
    guarded_destroy(&x.b);
    guarded_destroy(&x.c);
    guarded_destroy(&few);
}

/* A row of a small product has the bits that it has in a product with more rows, which takes the
 * general path. All numbers of columns occur, so that the last vector of a panel has every
 * number of lanes. */
static void rows_are_those_of_larger_products(void **state)
{
    enum { SMALL = 64, LARGE = 70 };
    static const double scalars[][2] = {{1, 0}, {-0.5, 0}, {1, 1}, {1.5, -0.25}};
    uint64_t seed = 23;
    for (int i = 0; i < 8 * SMALL; i++) {
        const tgl_type type = i % 2 ? TGL_F32 : TGL_F64;
        const int64_t m = random_int(&seed, 2, SMALL), k = random_int(&seed, 1, SMALL);
        const int64_t n = 2 + i / 2 % (SMALL - 1);
        const double *factors = scalars[random_int(&seed, 0, COUNT_OF(scalars) - 1)];
        compare_rows(*state, type, m, LARGE, n, k, factors, &seed);
    }
}

/* Products with one row or column of any length, or with few elements of C and a long k, have no
 * plan up to a limit. Their results must be those of a plan, bit by bit, with every transpose and
 * with padding. */
static void unusual_shapes_have_the_bytes_of_a_plan(void **state)
{
    static const double scalars[] = {1, 0, -0.5, 1e-60};
    uint64_t seed = 29;
    for (int i = 0; i < 2000; i++) {
        tgl_problem p = problem_of(i % 2 ? TGL_F32 : TGL_F64, 1, 1, 1);
        const int64_t length = random_int(&seed, 1, (int64_t)1 << random_int(&seed, 1, 10));
        *(i / 2 % 2 ? &p.m : &p.n) = length;
        p.k = random_int(&seed, 1, (int64_t)1 << random_int(&seed, 0, 10));
        if (i % 4 == 3) {
            p.m = random_int(&seed, 2, 20), p.n = random_int(&seed, 2, 20);
            p.k = random_int(&seed, 60, 140);
        }
        p.order = i / 4 % 2 ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
        p.trans_a = i / 8 % 2 ? TGL_TRANS : TGL_NO_TRANS;
        p.trans_b = i / 16 % 2 ? TGL_TRANS : TGL_NO_TRANS;
        const bool columns = p.order == TGL_COL_MAJOR;
        const int64_t pad = random_int(&seed, 0, 2);
        p.lda = ((p.trans_a != TGL_NO_TRANS) != columns ? p.m : p.k) + pad;
        p.ldb = ((p.trans_b != TGL_NO_TRANS) != columns ? p.k : p.n) + pad;
        p.ldc = (columns ? p.m : p.n) + pad;
        compare_ways(*state, &p, scalars[random_int(&seed, 0, 3)], scalars[random_int(&seed, 0, 3)],
                     &seed);
    }
}

/* Products with few rows and a short k are computed in strips of small products. Their rows have
 * the bits that they have in a product of 30 rows, which most processors compute in blocks. */
static void flat_products_are_rows_of_larger_ones(void **state)
{
    enum { LARGE = 30 };
    static const double scalars[][2] = {{1, 0}, {-0.5, 0}, {1, 1}, {1.5, -0.25}};
    uint64_t seed = 31;
    for (int i = 0; i < 200; i++) {
        const tgl_type type = i % 2 ? TGL_F32 : TGL_F64;
        const int64_t m = random_int(&seed, 2, 8), k = random_int(&seed, 1, 8);
        const int64_t n = random_int(&seed, 65, 400);
        const double *factors = scalars[i % 4];
        compare_rows(*state, type, m, LARGE, n, k, factors, &seed);
    }
}

/* Products with few columns of integers, whose sums are exact. */
static void flat_products_have_their_columns(void **state)
{
    enum { M = 300, N = 7, K = 8 };
    uint64_t seed = 37;
    double A[M * K], B[K * N], C[M * N];
    for (int i = 0; i < M * K; i++)
        A[i] = (double)random_int(&seed, -50, 50);
    for (int i = 0; i < K * N; i++)
        B[i] = (double)random_int(&seed, -50, 50);
    for (int n = 2; n <= N; n++)
        for (int k = 1; k <= K; k++) {
            assert_status(tgl_dgemm(*state, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, M, n, k, 2,
                                    A, K, B, N, 0, C, N, NULL),
                          TGL_OK);
            for (int i = 0; i < M; i++)
                for (int j = 0; j < n; j++) {
                    double sum = 0;
                    for (int p = 0; p < k; p++)
                        sum += A[i * K + p] * B[p * N + j];
                    assert_true(C[i * N + j] == 2 * sum);
                }
        }
}

/* ---- Wrong arguments ------------------------------------------------------------------------- */

/* Calls tgl_sgemm() for a product of m x 5 x 6 with these arguments. */
static tgl_status call(tgl_device *dev, tgl_order order, int trans_a, int trans_b, int64_t m,
                       int64_t lda, int64_t ldb, int64_t ldc, const float *A, float *C)
{
    static const float b[64];
    return tgl_sgemm(dev, order, (tgl_transpose)trans_a, (tgl_transpose)trans_b, m, 5, 6, 1, A, lda,
                     b, ldb, 0, C, ldc, NULL);
}

static void wrong_arguments_are_found(void **state)
{
    const tgl_order R = TGL_ROW_MAJOR;
    const int N = TGL_NO_TRANS, T = TGL_TRANS;
    tgl_device *dev = *state;
    static const float a[64];
    float c[64] = {0};
    assert_status(call(dev, R, N, N, 4, 6, 5, 5, a, c), TGL_OK);
    assert_status(call(NULL, R, N, N, 4, 6, 5, 5, a, c), TGL_BAD_ARGUMENT);
    assert_status(call(dev, (tgl_order)7, N, N, 4, 6, 5, 5, a, c), TGL_BAD_ORDER);
    assert_status(call(dev, R, 7, N, 4, 6, 5, 5, a, c), TGL_BAD_TRANS_A);
    assert_status(call(dev, R, N, 7, 4, 6, 5, 5, a, c), TGL_BAD_TRANS_B);
    assert_status(call(dev, R, N, N, -4, 6, 5, 5, a, c), TGL_BAD_M);
    assert_status(call(dev, R, N, N, 4, 5, 5, 5, a, c), TGL_BAD_LDA);
    assert_status(call(dev, R, T, N, 4, 3, 5, 5, a, c), TGL_BAD_LDA);
    assert_status(call(dev, R, N, N, 4, 0, 5, 5, a, c), TGL_BAD_LDA);
    assert_status(call(dev, R, N, N, 4, 6, 4, 5, a, c), TGL_BAD_LDB);
    assert_status(call(dev, R, N, T, 4, 6, 5, 5, a, c), TGL_BAD_LDB);
    assert_status(call(dev, R, N, N, 4, 6, 5, 4, a, c), TGL_BAD_LDC);
    assert_status(call(dev, TGL_COL_MAJOR, N, N, 4, 4, 6, 3, a, c), TGL_BAD_LDC);
    assert_status(call(dev, R, N, N, 4, INT64_MAX / 2, 5, 5, a, c), TGL_TOO_LARGE);
    assert_status(call(dev, R, N, N, 4, 6, INT64_MAX / 2, 5, a, c), TGL_TOO_LARGE);
    assert_status(call(dev, R, N, N, 4, 6, 5, INT64_MAX / 2, a, c), TGL_TOO_LARGE);
    assert_status(call(dev, R, N, N, 4, 6, 5, 5, NULL, c), TGL_BAD_A);
    assert_status(call(dev, R, N, N, 4, 6, 5, 5, a, NULL), TGL_BAD_C);
    assert_status(call(dev, R, N, N, 4, 6, 5, 5, (const void *)((const char *)a + 2), c),
                  TGL_BAD_A);
}

/* tgl_gemm() for a problem with the defaults of all members but one. */
#define EXPECT_STATUS(member, value, status)                                                       \
    do {                                                                                           \
        tgl_problem p = problem_of(TGL_F32, 2, 2, 2);                                              \
        p.member = (value);                                                                        \
        assert_status(tgl_gemm(dev, &p, 1, a, a, 0, c, NULL), status);                             \
    } while (0)

/* Each of these members alone has an effect, although the code tests many in one condition. */
static void each_member_is_looked_at(void **state)
{
    tgl_device *dev = *state;
    const float a[4] = {1, 1, 1, 1};
    float c[4] = {7, 7, 7, 7};
    EXPECT_STATUS(size, 8, TGL_BAD_ARGUMENT);
    EXPECT_STATUS(order, (tgl_order)7, TGL_BAD_ORDER);
    EXPECT_STATUS(type_a, TGL_F64, TGL_BAD_TYPE);
    EXPECT_STATUS(type_b, TGL_F64, TGL_BAD_TYPE);
    EXPECT_STATUS(type_c, TGL_F64, TGL_BAD_TYPE);
    EXPECT_STATUS(type_d, TGL_F32, TGL_UNSUPPORTED);
    EXPECT_STATUS(type_accumulate, TGL_F64, TGL_BAD_TYPE);
    EXPECT_STATUS(compute, (tgl_compute)99, TGL_BAD_COMPUTE);
    EXPECT_STATUS(scalars, TGL_SCALARS_DEVICE, TGL_UNSUPPORTED);
    EXPECT_STATUS(lda, 1, TGL_BAD_LDA);
    EXPECT_STATUS(ldb, 1, TGL_BAD_LDB);
    EXPECT_STATUS(ldc, 1, TGL_BAD_LDC);
    EXPECT_STATUS(ldd, 2, TGL_BAD_LDD);
    EXPECT_STATUS(batch, -1, TGL_BAD_BATCH);
    EXPECT_STATUS(batch, 2, TGL_BAD_STRIDE_C);
    EXPECT_STATUS(batch, 0, TGL_OK);
    EXPECT_STATUS(stride_a, -1, TGL_BAD_STRIDE_A);
    EXPECT_STATUS(stride_b, -1, TGL_BAD_STRIDE_B);
    EXPECT_STATUS(stride_c, -1, TGL_BAD_STRIDE_C);
    EXPECT_STATUS(stride_d, 1, TGL_BAD_STRIDE_D);
    EXPECT_STATUS(batching, TGL_POINTERS, TGL_BAD_BATCHING);
    EXPECT_STATUS(alignment, 3, TGL_BAD_ALIGNMENT);
    EXPECT_STATUS(scaling_a, TGL_SCALING_TENSOR, TGL_UNSUPPORTED);
    EXPECT_STATUS(scaling_b, TGL_SCALING_TENSOR, TGL_UNSUPPORTED);
    EXPECT_STATUS(scaling_d, TGL_SCALING_TENSOR, TGL_UNSUPPORTED);
    EXPECT_STATUS(type_scale, TGL_F64, TGL_BAD_TYPE);
    EXPECT_STATUS(ld_scale_a, 4, TGL_BAD_SCALE);
    EXPECT_STATUS(ld_scale_b, 4, TGL_BAD_SCALE);
    for (int i = 0; i < 4; i++)
        assert_true(c[i] == 7);
    EXPECT_STATUS(type_accumulate, TGL_F32, TGL_OK);
    assert_true(c[0] == 2 && c[3] == 2);
}

/* Products with features that the path for small ones lacks: the general path must take them. */
static void unusual_products_are_left_alone(void **state)
{
    tgl_device *dev = *state;
    const float a[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    float c[8] = {0}, d[8] = {0}, bias[2] = {10, 20};
    tgl_problem p = problem_of(TGL_F32, 2, 2, 2);
    p.batch = 2;
    p.stride_a = p.stride_b = p.stride_c = 4;
    assert_status(tgl_gemm(dev, &p, 1, a, a, 0, c, NULL), TGL_OK);
    assert_true(c[0] == 2 && c[7] == 2);

    p = problem_of(TGL_F32, 2, 2, 2);
    p.type_d = TGL_F32;
    assert_status(tgl_gemm(dev, &p, 1, a, a, 0, c, NULL), TGL_UNSUPPORTED);
    p.type_d = (tgl_type)0;
    p.ldd = 2;
    assert_status(tgl_gemm(dev, &p, 1, a, a, 0, c, NULL), TGL_BAD_LDD);

    p = problem_of(TGL_F32, 2, 2, 2);
    const tgl_epilogue epilogue = {.size = sizeof epilogue, .bias = TGL_BIAS_COLUMN};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &p, &options, &plan), TGL_OK);
    tgl_operands o = {.size = sizeof o, .alpha = 1, .A = a, .B = a, .C = d, .bias = bias};
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    assert_true(d[0] == 12 && d[1] == 22);
    tgl_plan_destroy(plan);

    assert_status(tgl_plan_create(dev, &p, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_BIAS);
    o.bias = NULL;
    o.D = d;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_D);
    o.D = NULL;
    o.amax_d = bias;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_BAD_SCALE);
    o.amax_d = NULL;
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    assert_true(d[0] == 2 && d[3] == 2);
    tgl_plan_destroy(plan);
}

/* Callers of earlier headers have shorter structs: the memory behind them is not read. */
static void structs_of_earlier_headers(void **state)
{
    static const size_t problems[] = {offsetof(tgl_problem, grouping),
                                      offsetof(tgl_problem, ld_scale_a),
                                      offsetof(tgl_problem, scale_group), sizeof(tgl_problem)};
    static const size_t operands[] = {
        offsetof(tgl_operands, alpha_imag), offsetof(tgl_operands, groups),
        offsetof(tgl_operands, amax_d), offsetof(tgl_operands, zero_b), sizeof(tgl_operands)};
    const float a[4] = {1, 1, 1, 1};
    tgl_problem p = problem_of(TGL_F32, 2, 2, 2);
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_OK);
    for (size_t i = 0; i < COUNT_OF(problems); i++) {
        float c[4] = {0};
        tgl_problem behind = p;
        memset((char *)&behind + problems[i], 1, sizeof behind - problems[i]);
        behind.size = problems[i];
        assert_status(tgl_gemm(*state, &behind, 1, a, a, 0, c, NULL), TGL_OK);
        assert_true(c[0] == 2 && c[3] == 2);
    }
    for (size_t i = 0; i < COUNT_OF(operands); i++) {
        float c[4] = {0};
        tgl_operands o = {.alpha = 1, .A = a, .B = a, .C = c};
        memset((char *)&o + operands[i], 1, sizeof o - operands[i]);
        o.size = operands[i];
        assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
        assert_true(c[0] == 2 && c[3] == 2);
    }
    tgl_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_give_the_same_bytes),
        cmocka_unit_test(rows_are_those_of_larger_products),
        cmocka_unit_test(unusual_shapes_have_the_bytes_of_a_plan),
        cmocka_unit_test(flat_products_are_rows_of_larger_ones),
        cmocka_unit_test(flat_products_have_their_columns),
        cmocka_unit_test(wrong_arguments_are_found),
        cmocka_unit_test(each_member_is_looked_at),
        cmocka_unit_test(unusual_products_are_left_alone),
        cmocka_unit_test(structs_of_earlier_headers),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
