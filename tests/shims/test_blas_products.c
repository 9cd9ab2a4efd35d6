/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of libtegula_blas.so against a reference in double: every exported name, with both
 * layouts, all transposes, special values of alpha and beta, empty matrices, leading dimensions
 * with padding, and increments of both signs. Elements that a product must not read are NaN, and
 * elements that it must not write are compared.
 */
#include "blas_calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reference ------------------------------------------------------------------------------- */

/* Index of element (row, column) of op(X). */
static int64_t at(const blas_call *c, int trans, int64_t ld, int64_t row, int64_t column)
{
    const bool by_rows = (c->layout == ROW_MAJOR) == (trans == NO_TRANS);
    return by_rows ? row * ld + column : row + column * ld;
}

/* Rounding errors of a sum of k products in any order, with some margin. */
static double bound_of(bool is_double, int64_t k, double magnitude)
{
    return 2 * (double)(k + 3) * (is_double ? 0x1p-53 : 0x1p-24) * magnitude;
}

static void check_element(const char *name, const blas_call *c, double found, double expected,
                          double bound)
{
    if (fabs(found - expected) <= bound) return; /* false for NaN */
    fail_msg("%s: layout=%d trans=%d,%d m=%lld n=%lld k=%lld alpha=%g beta=%g ld=%lld,%lld,%lld: "
             "found %.9g, expected %.9g",
             name, c->layout, c->trans_a, c->trans_b, (long long)c->m, (long long)c->n,
             (long long)c->k, c->alpha, c->beta, (long long)c->lda, (long long)c->ldb,
             (long long)c->ldc, found, expected);
}

/* Checks c->C, which was `before`; both have `size` elements from the first one on. */
static void check_gemm(const blas_name *f, const blas_call *c, const void *before, int64_t size)
{
    bool *written = calloc((size_t)size + 1, sizeof *written);
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            double sum = 0, magnitude = 0;
            for (int64_t l = 0; c->alpha != 0 && l < c->k; l++) {
                const double product = get(c->A, f->is_double, at(c, c->trans_a, c->lda, i, l)) *
                                       get(c->B, f->is_double, at(c, c->trans_b, c->ldb, l, j));
                sum += product, magnitude += fabs(product);
            }
            const int64_t index = at(c, NO_TRANS, c->ldc, i, j);
            const double old = c->beta != 0 ? c->beta * get(before, f->is_double, index) : 0;
            check_element(f->name, c, get(c->C, f->is_double, index), c->alpha * sum + old,
                          bound_of(f->is_double, c->k, fabs(c->alpha) * magnitude + fabs(old)));
            written[index] = true;
        }
    const size_t element = f->is_double ? sizeof(double) : sizeof(float);
    for (int64_t i = 0; i < size; i++)
        if (!written[i] && memcmp((const char *)c->C + (size_t)i * element,
                                  (const char *)before + (size_t)i * element, element) != 0)
            fail_msg("%s has written outside of C", f->name);
    free(written);
}

/* ---- GEMM ------------------------------------------------------------------------------------ */

static double random_scalar(uint64_t *seed)
{
    static const double values[] = {0, 1, -1.5, 0.75};
    return values[next_random(seed) % COUNT_OF(values)];
}

static int random_trans(uint64_t *seed)
{
    return NO_TRANS + (int)(next_random(seed) % 3);
}

/* The leading dimension of a stored matrix X with some padding; op(X) is rows x columns. */
static int64_t random_ld(uint64_t *seed, int layout, int trans, int64_t rows, int64_t columns)
{
    const int64_t least = (layout == ROW_MAJOR) == (trans == NO_TRANS) ? columns : rows;
    return (least > 1 ? least : 1) + random_between(seed, 0, 3);
}

/* Draws sizes and scalars. The matrices are set later. */
static blas_call random_call(uint64_t *seed, const blas_name *f, int64_t max)
{
    blas_call c = {.layout = f->is_cblas && next_random(seed) % 2 ? ROW_MAJOR : COL_MAJOR,
                   .trans_a = random_trans(seed),
                   .trans_b = random_trans(seed),
                   .m = random_between(seed, 0, max),
                   .n = random_between(seed, 0, max),
                   .k = random_between(seed, 0, max),
                   .alpha = random_scalar(seed),
                   .beta = random_scalar(seed)};
    c.lda = random_ld(seed, c.layout, c.trans_a, c.m, c.k);
    c.ldb = random_ld(seed, c.layout, c.trans_b, c.k, c.n);
    c.ldc = random_ld(seed, c.layout, NO_TRANS, c.m, c.n);
    return c;
}

static void fill(void *memory, bool is_double, int64_t count, double value)
{
    for (int64_t i = 0; i < count; i++)
        set(memory, is_double, i, value);
}

static void *copy_of(const void *memory, int64_t count)
{
    void *copy = malloc((size_t)count * sizeof(double) + 1);
    assert_non_null(copy);
    return memcpy(copy, memory, (size_t)count * sizeof(double));
}

/* Matrices for `count` products with these sizes, each of `size` elements. */
static void set_matrices(uint64_t *seed, const blas_name *f, blas_call *c, int64_t count,
                         int64_t size)
{
    void *A = random_elements(seed, f->is_double, count * size);
    void *B = random_elements(seed, f->is_double, count * size);
    c->C = random_elements(seed, f->is_double, count * size);
    /* Nothing reads these, and C stays as it is if alpha is 0 and beta is 1. */
    if (c->alpha == 0) fill(A, f->is_double, count * size, NAN);
    if (c->alpha == 0) fill(B, f->is_double, count * size, NAN);
    if (c->beta == 0) fill(c->C, f->is_double, count * size, NAN);
    c->A = A, c->B = B;
}

static void free_matrices(blas_call *c, void *before)
{
    free((void *)c->A), free((void *)c->B), free(c->C), free(before);
}

static void test_gemm(void **state)
{
    (void)state;
    enum { CASES = 400, MAX = 34, SIZE = 40 * 40 };
    uint64_t seed = 17;
    for (size_t i = 0; i < COUNT_OF(gemm_names); i++)
        for (int j = 0; j < CASES; j++) {
            blas_call c = random_call(&seed, &gemm_names[i], j % 4 == 0 ? 3 : MAX);
            set_matrices(&seed, &gemm_names[i], &c, 1, SIZE);
            void *before = copy_of(c.C, SIZE);
            call_gemm(&gemm_names[i], &c);
            check_gemm(&gemm_names[i], &c, before, SIZE);
            free_matrices(&c, before);
        }
}

static void test_shared_by_threads(void **state)
{
    (void)state;
    enum { N = 300, SIZE = N * N };
    uint64_t seed = 3;
    for (int i = 0; i < 2; i++) {
        const blas_name *f = &gemm_names[i];
        blas_call c = {.layout = COL_MAJOR,
                       .trans_a = TRANS,
                       .trans_b = NO_TRANS,
                       .m = N,
                       .n = N - 1,
                       .k = N - 2,
                       .alpha = 1,
                       .beta = 1,
                       .lda = N,
                       .ldb = N,
                       .ldc = N};
        set_matrices(&seed, f, &c, 1, SIZE);
        void *before = copy_of(c.C, SIZE);
        call_gemm(f, &c);
        check_gemm(f, &c, before, SIZE);
        free_matrices(&c, before);
    }
}

/* The reference BLAS touches no matrix in these cases. */
static void test_null_matrices(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gemm_names); i++) {
        blas_call c = {.layout = COL_MAJOR,
                       .trans_a = NO_TRANS,
                       .trans_b = NO_TRANS,
                       .alpha = 1,
                       .lda = 5,
                       .ldb = 5,
                       .ldc = 5};
        c.n = 2, c.k = 2;
        call_gemm(&gemm_names[i], &c); /* m = 0 */
        c.m = 2, c.n = 0;
        call_gemm(&gemm_names[i], &c); /* n = 0 */
        c.n = 2, c.k = 0, c.beta = 1;
        call_gemm(&gemm_names[i], &c); /* C := C */
        c.k = 2, c.alpha = 0;
        call_gemm(&gemm_names[i], &c);
    }
}

/* Computes `rows` x `columns` elements of C again, as a product of their own, from element (row,
 * column) on, and compares them with those of the product `c`, whose C was `before`. */
static void check_part(const blas_name *f, const blas_call *c, const void *before, int64_t row,
                       int64_t rows, int64_t column, int64_t columns)
{
    const size_t element = f->is_double ? sizeof(double) : sizeof(float);
    char *C = copy_of(before, c->ldc * c->n);
    const int64_t corner = at(c, NO_TRANS, c->ldc, row, column);
    blas_call part = *c;
    part.m = rows, part.n = columns;
    part.A = (const char *)c->A + (size_t)at(c, c->trans_a, c->lda, row, 0) * element;
    part.B = (const char *)c->B + (size_t)at(c, c->trans_b, c->ldb, 0, column) * element;
    part.C = C + (size_t)corner * element;
    call_gemm(f, &part);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const size_t index = (size_t)at(c, NO_TRANS, c->ldc, row + i, column + j) * element;
            if (memcmp(C + index, (const char *)c->C + index, element) != 0)
                fail_msg("%s: trans=%d,%d: element %lld, %lld is not the same in a product with "
                         "m=%lld n=%lld",
                         f->name, c->trans_a, c->trans_b, (long long)(row + i),
                         (long long)(column + j), (long long)rows, (long long)columns);
        }
    free(C);
}

/* A row or column of a small product is bitwise the same alone as within a larger product. With
 * TEGULA_BLAS_GPU_SIZE=1 only the larger one would run on the GPU. */
static void test_single_rows(void **state)
{
    (void)state;
    const char *device = getenv("TEGULA_BLAS_DEVICE");
    if (device != NULL && strcmp(device, "cuda") == 0) skip();
    enum { EDGE = 20, K = 8, SHORT = 8 };
    uint64_t seed = 23;
    for (size_t name = 0; name < COUNT_OF(gemm_names); name++)
        for (int trans = 0; trans < 4; trans++)
            for (int beta = 0; beta < 2; beta++) {
                const blas_name *f = &gemm_names[name];
                blas_call c = {.layout = COL_MAJOR,
                               .trans_a = trans & 1 ? TRANS : NO_TRANS,
                               .trans_b = trans & 2 ? TRANS : NO_TRANS,
                               .m = EDGE,
                               .n = EDGE,
                               .k = K,
                               .alpha = -1,
                               .beta = beta,
                               .lda = EDGE,
                               .ldb = EDGE,
                               .ldc = EDGE};
                set_matrices(&seed, f, &c, 1, EDGE * EDGE);
                void *before = copy_of(c.C, EDGE * EDGE);
                call_gemm(f, &c);
                for (int64_t i = 0; i < EDGE; i++) {
                    check_part(f, &c, before, i, 1, i % SHORT, SHORT);
                    check_part(f, &c, before, i % SHORT, SHORT, i, 1);
                }
                free_matrices(&c, before);
            }
}

/* ---- GEMV ------------------------------------------------------------------------------------ */

/* Index of element i of a vector. */
static int64_t element_of(int64_t i, int64_t length, int64_t increment)
{
    return increment > 0 ? i * increment : (i - length + 1) * increment;
}

/* Checks c->y as check_gemm() checks C. The reference BLAS does not even scale y if A is empty. */
static void check_gemv(const blas_name *f, const blas_call *c, const void *before, int64_t size)
{
    const bool transposed = c->trans_a != NO_TRANS;
    const int64_t length_x = transposed ? c->m : c->n, length_y = transposed ? c->n : c->m;
    bool *written = calloc((size_t)size + 1, sizeof *written);
    for (int64_t i = 0; c->m > 0 && c->n > 0 && i < length_y; i++) {
        double sum = 0, magnitude = 0;
        for (int64_t l = 0; c->alpha != 0 && l < length_x; l++) {
            const double product = get(c->A, f->is_double, at(c, c->trans_a, c->lda, i, l)) *
                                   get(c->B, f->is_double, element_of(l, length_x, c->ldb));
            sum += product, magnitude += fabs(product);
        }
        const int64_t index = element_of(i, length_y, c->ldc);
        const double old = c->beta != 0 ? c->beta * get(before, f->is_double, index) : 0;
        check_element(f->name, c, get(c->C, f->is_double, index), c->alpha * sum + old,
                      bound_of(f->is_double, length_x, fabs(c->alpha) * magnitude + fabs(old)));
        written[index] = true;
    }
    const size_t element = f->is_double ? sizeof(double) : sizeof(float);
    for (int64_t i = 0; i < size; i++)
        if (!written[i] && memcmp((const char *)c->C + (size_t)i * element,
                                  (const char *)before + (size_t)i * element, element) != 0)
            fail_msg("%s has written outside of y", f->name);
    free(written);
}

static void run_gemv(uint64_t *seed, const blas_name *f, blas_call *c, int64_t size)
{
    set_matrices(seed, f, c, 1, size);
    void *before = copy_of(c->C, size);
    call_gemv(f, c);
    check_gemv(f, c, before, size);
    free_matrices(c, before);
}

static void test_gemv(void **state)
{
    (void)state;
    static const int64_t increments[] = {1, 2, 3, -1, -2};
    enum { CASES = 400, MAX = 40, SIZE = 45 * 45 };
    uint64_t seed = 18;
    for (size_t i = 0; i < COUNT_OF(gemv_names); i++)
        for (int j = 0; j < CASES; j++) {
            blas_call c = random_call(&seed, &gemv_names[i], j % 4 == 0 ? 3 : MAX);
            c.lda = random_ld(&seed, c.layout, NO_TRANS, c.m, c.n);
            c.ldb = increments[next_random(&seed) % COUNT_OF(increments)];
            c.ldc = increments[next_random(&seed) % COUNT_OF(increments)];
            run_gemv(&seed, &gemv_names[i], &c, SIZE);
        }
}

/* alpha == 0 reads neither A nor x, whichever way x runs. */
static void test_null_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gemv_names); i++)
        for (int64_t increment = -1; increment <= 1; increment += 2) {
            const bool is_double = gemv_names[i].is_double;
            double y[2];
            set(y, is_double, 0, 4), set(y, is_double, 1, 6);
            const blas_call c = {.layout = COL_MAJOR,
                                 .trans_a = NO_TRANS,
                                 .m = 2,
                                 .n = 3,
                                 .beta = 0.5,
                                 .lda = 2,
                                 .ldb = increment,
                                 .C = y,
                                 .ldc = 1};
            call_gemv(&gemv_names[i], &c);
            assert_true(get(y, is_double, 0) == 2 && get(y, is_double, 1) == 3);
        }
}

/* Vectors that are longer than the parts in which vectors with negative increments are copied. */
static void test_long_vectors(void **state)
{
    (void)state;
    enum { M = 2500, N = 1300 };
    uint64_t seed = 19;
    for (int i = 0; i < 8; i++) {
        blas_call c = {.layout = COL_MAJOR,
                       .trans_a = i & 1 ? TRANS : NO_TRANS,
                       .m = M,
                       .n = N,
                       .alpha = i & 2 ? 0.5 : -1,
                       .beta = i & 4 ? 0 : 2,
                       .lda = M + 1,
                       .ldb = -1,
                       .ldc = i & 2 ? -1 : 1};
        run_gemv(&seed, &gemv_names[i & 1], &c, (M + 1) * N);
    }
}

/* ---- Batches --------------------------------------------------------------------------------- */

static void test_strided(void **state)
{
    (void)state;
    enum { CASES = 100, MAX = 20, SIZE = 24 * 24, BATCH = 4 };
    uint64_t seed = 20;
    for (size_t i = 0; i < COUNT_OF(strided_names); i++)
        for (int j = 0; j < CASES; j++) {
            const blas_name *f = &strided_names[i];
            const int64_t element = f->is_double ? sizeof(double) : sizeof(float);
            blas_call c = random_call(&seed, f, MAX);
            set_matrices(&seed, f, &c, BATCH, SIZE);
            void *before = copy_of(c.C, BATCH * SIZE);
            blas_call one = c;
            c.stride_a = j % 3 == 0 ? 0 : SIZE;
            /* A negative stride begins at the last matrix. */
            c.stride_b = j % 5 == 0 ? -SIZE : SIZE;
            if (j % 5 == 0) c.B = (const char *)one.B + (BATCH - 1) * SIZE * element;
            c.stride_c = SIZE, c.batch = random_between(&seed, 0, BATCH);
            call_strided(f, &c);
            for (int64_t l = 0; l < BATCH; l++) {
                blas_call product = c;
                product.A = (const char *)c.A + l * c.stride_a * element;
                product.B = (const char *)c.B + l * c.stride_b * element;
                product.C = (char *)c.C + l * SIZE * element;
                const char *old = (const char *)before + l * SIZE * element;
                if (l < c.batch)
                    check_gemm(f, &product, old, SIZE);
                else
                    assert_memory_equal(product.C, old, (size_t)(SIZE * element));
            }
            free_matrices(&one, before);
        }
}

static void test_groups(void **state)
{
    (void)state;
    enum { CASES = 60, MAX = 20, SIZE = 24 * 24, GROUPS = 3, MAX_GROUP = 4 };
    uint64_t seed = 21;
    for (size_t i = 0; i < COUNT_OF(batch_names); i++)
        for (int j = 0; j < CASES; j++) {
            const blas_name *f = &batch_names[i];
            const size_t bytes = SIZE * (f->is_double ? sizeof(double) : sizeof(float));
            const void *A[GROUPS * MAX_GROUP], *B[GROUPS * MAX_GROUP];
            void *C[GROUPS * MAX_GROUP], *before[GROUPS];
            group_call c = {.count = GROUPS, .A = A, .B = B, .C = C};
            for (int g = 0, first = 0; g < GROUPS; first += (int)c.size[g++]) {
                blas_call *group = &c.group[g];
                *group = random_call(&seed, f, MAX);
                if (g > 0 && group->layout != c.group[0].layout) { /* the layout is common */
                    group->layout = c.group[0].layout;
                    group->lda = group->ldb = group->ldc = MAX + 3;
                }
                set_matrices(&seed, f, group, MAX_GROUP, SIZE);
                before[g] = copy_of(group->C, MAX_GROUP * SIZE);
                c.size[g] = random_between(&seed, 0, MAX_GROUP);
                for (int l = 0; l < c.size[g]; l++) {
                    A[first + l] = group->A; /* matrices that are only read may repeat */
                    B[first + l] = (const char *)group->B + (size_t)l * bytes;
                    C[first + l] = (char *)group->C + (size_t)l * bytes;
                }
            }
            call_groups(f, &c);
            for (int g = 0; g < GROUPS; g++) {
                for (int l = 0; l < MAX_GROUP; l++) {
                    blas_call product = c.group[g];
                    product.B = (const char *)product.B + (size_t)l * bytes;
                    product.C = (char *)product.C + (size_t)l * bytes;
                    const char *old = (const char *)before[g] + (size_t)l * bytes;
                    if (l < c.size[g])
                        check_gemm(f, &product, old, SIZE);
                    else
                        assert_memory_equal(product.C, old, bytes);
                }
                free_matrices(&c.group[g], before[g]);
            }
        }
}

/* A copy that begins half an element behind an aligned address. The caller frees *memory. */
static void *misaligned_copy(const void *from, size_t bytes, size_t element, char **memory)
{
    *memory = malloc(bytes + element);
    assert_non_null(*memory);
    return memcpy(*memory + element / 2, from, bytes);
}

static void test_unaligned(void **state)
{
    (void)state;
    enum { CASES = 40, MAX = 30, SIZE = 34 * 34 };
    uint64_t seed = 22;
    for (size_t i = 0; i < COUNT_OF(gemm_names); i++)
        for (int j = 0; j < CASES; j++) {
            const blas_name *f = &gemm_names[i];
            const size_t element = f->is_double ? sizeof(double) : sizeof(float);
            blas_call c = random_call(&seed, f, MAX);
            set_matrices(&seed, f, &c, 1, SIZE);
            void *before = copy_of(c.C, SIZE);
            char *memory[3];
            const unsigned which = (unsigned)random_between(&seed, 1, 7);
            blas_call u = c;
            void *A = misaligned_copy(c.A, SIZE * element, element, &memory[0]);
            void *B = misaligned_copy(c.B, SIZE * element, element, &memory[1]);
            void *C = misaligned_copy(c.C, SIZE * element, element, &memory[2]);
            if (which & 1) u.A = A;
            if (which & 2) u.B = B;
            if (which & 4) u.C = C;
            call_gemm(f, &u);
            if (!(which & 4)) memcpy(C, c.C, SIZE * element); /* the result */
            memcpy(c.C, before, SIZE * element);
            call_gemm(f, &c);
            assert_memory_equal(c.C, C, SIZE * element);
            for (int l = 0; l < 3; l++)
                free(memory[l]);
            free_matrices(&c, before);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),          cmocka_unit_test(test_shared_by_threads),
        cmocka_unit_test(test_null_matrices), cmocka_unit_test(test_gemv),
        cmocka_unit_test(test_null_vectors),  cmocka_unit_test(test_long_vectors),
        cmocka_unit_test(test_strided),       cmocka_unit_test(test_groups),
        cmocka_unit_test(test_single_rows),   cmocka_unit_test(test_unaligned),
    };
    return cmocka_run_group_tests_name("BLAS: products", tests, NULL, NULL);
}
