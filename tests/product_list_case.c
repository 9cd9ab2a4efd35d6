/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a random list of products and checks its results (product_list_case.h).
 */
#include "product_list_case.h"

#include "elements.h"

/* Number of bytes before and after each matrix: more than the widest copy of a kernel. */
enum { GUARD = 64 };

/* ---- Random products ------------------------------------------------------------------------- */

static void choose_kind(const product_list_case *c, random_state *r, tgl_problem *p)
{
    static const struct {
        tgl_type a, c;
        tgl_compute compute;
    } kinds[] = {{TGL_F32, TGL_F32, TGL_COMPUTE_DEFAULT}, {TGL_F32, TGL_F32, TGL_COMPUTE_TF32},
                 {TGL_F64, TGL_F64, TGL_COMPUTE_DEFAULT}, {TGL_BF16, TGL_BF16, TGL_COMPUTE_DEFAULT},
                 {TGL_F16, TGL_F32, TGL_COMPUTE_DEFAULT}, {TGL_I8, TGL_I32, TGL_COMPUTE_DEFAULT}};
    const int kind = (int)random_int(r, 0, COUNT_OF(kinds) - 1);
    p->type_a = p->type_b = c->is_mixed ? kinds[kind].a : c->type;
    p->type_c = c->is_mixed ? kinds[kind].c : c->type == TGL_I8 ? TGL_I32 : c->type;
    p->compute = c->is_mixed ? kinds[kind].compute : c->compute;
    p->trans_a = (c->is_mixed ? random_once_in(r, 2) : c->trans_a) ? TGL_TRANS : TGL_NO_TRANS;
    p->trans_b = (c->is_mixed ? random_once_in(r, 2) : c->trans_b) ? TGL_TRANS : TGL_NO_TRANS;
    p->order = c->is_mixed && random_once_in(r, 2) ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
}

static int64_t choose_side(const product_list_case *c, random_state *r, bool is_aligned)
{
    if (random_once_in(r, 20)) return 0;
    const int64_t side = random_once_in(r, 4) ? random_int(r, 1, 9) : random_int(r, 1, c->side);
    return is_aligned ? (side + 15) / 16 * 16 : side;
}

static bool is_row_major(const tgl_problem *p)
{
    return p->order == TGL_ROW_MAJOR;
}

/* has_lines_of_k(): whether the elements of A along k are contiguous in memory. has_lines_of_n():
 * whether those of B along n are. */
static bool has_lines_of_k(const tgl_problem *p)
{
    return (p->trans_a == TGL_NO_TRANS) == is_row_major(p);
}

static bool has_lines_of_n(const tgl_problem *p)
{
    return (p->trans_b == TGL_NO_TRANS) == is_row_major(p);
}

static void choose_product(const product_list_case *c, random_state *r, tgl_problem *p,
                           tgl_operands *o)
{
    const bool is_aligned = c->is_mixed ? random_once_in(r, 2) : c->is_aligned;
    assert_status(tgl_problem_init(p, sizeof *p, TGL_F32, 0, 0, 0), TGL_OK);
    choose_kind(c, r, p);
    p->m = choose_side(c, r, is_aligned);
    p->n = choose_side(c, r, is_aligned);
    p->k = choose_side(c, r, is_aligned);
    const int unit = is_aligned ? 16 : 1;
    p->lda = (has_lines_of_k(p) ? p->k : p->m) + unit * random_int(r, 0, 2) + (p->k == 0);
    p->ldb = (has_lines_of_n(p) ? p->n : p->k) + unit * random_int(r, 0, 2) + (p->k == 0);
    p->ldc = (is_row_major(p) ? p->n : p->m) + random_int(r, 0, 2);
    static const double scalars[] = {1, 1, 2, -1, 0};
    *o = (tgl_operands){.size = sizeof *o,
                        .alpha = scalars[random_int(r, 0, 4)],
                        .beta = random_once_in(r, 2) ? 0 : scalars[random_int(r, 0, 4)]};
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Reserves a place for a matrix in the block. The block does not exist yet, so the result is an
 * offset as a pointer. Aligned matrices begin at a multiple of 16 bytes, others at any element. */
static void *take_place(product_list *list, random_state *r, tgl_type type, int64_t lines,
                        int64_t ld)
{
    const size_t size = tgl_type_size(type);
    const bool is_aligned =
        list->c->is_mixed ? ld % 16 == 0 && !random_once_in(r, 4) : list->c->is_aligned;
    size_t at = (list->bytes + GUARD + 15) / 16 * 16;
    if (!is_aligned) at += size * (size_t)random_int(r, 0, (int64_t)(15 / size));
    list->bytes = at + (size_t)(lines * ld) * size + GUARD;
    return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr): an offset, not an address */
}

static void place_product(product_list *list, random_state *r, const tgl_problem *p,
                          tgl_operands *o)
{
    o->A = take_place(list, r, p->type_a, has_lines_of_k(p) ? p->m : p->k, p->lda);
    o->B = take_place(list, r, p->type_b, has_lines_of_n(p) ? p->k : p->n, p->ldb);
    o->C = take_place(list, r, p->type_c, is_row_major(p) ? p->m : p->n, p->ldc);
}

/* The offset of a matrix in the block. */
static size_t offset_of(const product_list *list, const void *matrix)
{
    return (size_t)((const char *)matrix - list->device);
}

static int64_t at_c(const tgl_problem *p, int64_t i, int64_t j)
{
    return is_row_major(p) ? i * p->ldc + j : j * p->ldc + i;
}

static int64_t at_a(const tgl_problem *p, int64_t i, int64_t j)
{
    return has_lines_of_k(p) ? i * p->lda + j : j * p->lda + i;
}

static int64_t at_b(const tgl_problem *p, int64_t i, int64_t j)
{
    return has_lines_of_n(p) ? i * p->ldb + j : j * p->ldb + i;
}

/* Fills the matrices with small integers. A, B or C stay NaN if the product must not read them. */
static void fill_product(const product_list *list, random_state *r, int number)
{
    const tgl_problem *p = &list->problems[number];
    const tgl_operands *o = &list->operands[number];
    char *A = list->before + offset_of(list, o->A), *B = list->before + offset_of(list, o->B);
    char *C = list->before + offset_of(list, o->C);
    for (int64_t q = 0; q < p->k && o->alpha != 0; q++) {
        for (int64_t i = 0; i < p->m; i++)
            element_set(p->type_a, A, at_a(p, i, q), (double)random_int(r, -1, 1));
        for (int64_t j = 0; j < p->n; j++)
            element_set(p->type_b, B, at_b(p, q, j), (double)random_int(r, -1, 1));
    }
    for (int64_t i = 0; i < p->m && o->beta != 0; i++)
        for (int64_t j = 0; j < p->n; j++)
            element_set(p->type_c, C, at_c(p, i, j), (double)random_int(r, -3, 3));
}

/* The sum of count products of elements that are step_a and step_b apart. */
static double sum_of(int64_t count, const double *a, int64_t step_a, const double *b,
                     int64_t step_b)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i * step_a] * b[i * step_b];
    return sum;
}

/* The values of `count` elements of a matrix, which the caller frees. */
static double *values_of(tgl_type type, const char *matrix, int64_t count)
{
    double *values = malloc((size_t)(count + 1) * sizeof *values);
    assert_non_null(values);
    element_read(type, matrix, 0, 1, count, values);
    return values;
}

static void compute_product(const product_list *list, int number)
{
    const tgl_problem *p = &list->problems[number];
    const tgl_operands *o = &list->operands[number];
    double *A = values_of(p->type_a, list->before + offset_of(list, o->A),
                          (has_lines_of_k(p) ? p->m : p->k) * p->lda);
    double *B = values_of(p->type_b, list->before + offset_of(list, o->B),
                          (has_lines_of_n(p) ? p->k : p->n) * p->ldb);
    char *C = list->expected + offset_of(list, o->C);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const double sum = sum_of(o->alpha != 0 ? p->k : 0, A + at_a(p, i, 0), at_a(p, 0, 1),
                                      B + at_b(p, 0, j), at_b(p, 1, 0));
            double x = o->alpha * sum;
            if (o->beta != 0) x += o->beta * element_get(p->type_c, C, at_c(p, i, j));
            element_set(p->type_c, C, at_c(p, i, j), x);
        }
    free(A);
    free(B);
}

product_list make_product_list(tgl_device *dev, const product_list_case *c)
{
    random_state r;
    random_seed(&r, c->seed, 1);
    product_list list = {.c = c,
                         .problems = calloc((size_t)c->count, sizeof(tgl_problem)),
                         .operands = calloc((size_t)c->count, sizeof(tgl_operands))};
    assert_true(list.problems != NULL && list.operands != NULL);
    for (int i = 0; i < c->count; i++) {
        choose_product(c, &r, &list.problems[i], &list.operands[i]);
        place_product(&list, &r, &list.problems[i], &list.operands[i]);
    }
    void *memory;
    assert_status(tgl_alloc(dev, list.bytes, &memory), TGL_OK);
    list.device = memory;
    list.before = malloc(list.bytes);
    list.expected = malloc(list.bytes);
    assert_true(list.before != NULL && list.expected != NULL);
    memset(list.before, 255, list.bytes);
    for (int i = 0; i < c->count; i++) {
        tgl_operands *o = &list.operands[i];
        o->A = list.device + (uintptr_t)o->A;
        o->B = list.device + (uintptr_t)o->B;
        o->C = list.device + (uintptr_t)o->C;
        fill_product(&list, &r, i);
    }
    memcpy(list.expected, list.before, list.bytes);
    for (int i = 0; i < c->count; i++)
        compute_product(&list, i);
    assert_status(tgl_upload(dev, list.device, list.before, list.bytes, NULL), TGL_OK);
    return list;
}

void free_product_list(tgl_device *dev, product_list *list)
{
    tgl_free(dev, list->device);
    free(list->before);
    free(list->expected);
    free(list->problems);
    free(list->operands);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

/* Compares C of a product with the expected one. Copies the expected elements to `found`, so that
 * zeros of the other sign are equal in a later comparison of all bytes. */
static void compare_product(const product_list *list, char *found, int number)
{
    const tgl_problem *p = &list->problems[number];
    const size_t at = offset_of(list, list->operands[number].C);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t e = at_c(p, i, j);
            const double x = element_get(p->type_c, found + at, e);
            const double wanted = element_get(p->type_c, list->expected + at, e);
            if (!(x == wanted))
                fail_msg("seed %llu, product %d (m=%lld n=%lld k=%lld, type %d): row %lld, column "
                         "%lld is %g, not %g",
                         (unsigned long long)list->c->seed, number, (long long)p->m,
                         (long long)p->n, (long long)p->k, (int)p->type_a, (long long)i,
                         (long long)j, x, wanted);
            element_set(p->type_c, found + at, e, wanted);
        }
}

static char *download(tgl_device *dev, const product_list *list)
{
    char *found = malloc(list->bytes);
    assert_non_null(found);
    assert_status(tgl_download(dev, found, list->device, list->bytes, NULL), TGL_OK);
    return found;
}

void assert_products(tgl_device *dev, const product_list *list)
{
    char *found = download(dev, list);
    for (int i = 0; i < list->c->count; i++)
        compare_product(list, found, i);
    assert_memory_equal(found, list->expected, list->bytes);
    free(found);
}

void assert_no_products(tgl_device *dev, const product_list *list)
{
    char *found = download(dev, list);
    assert_memory_equal(found, list->before, list->bytes);
    free(found);
}

void check_product_list(tgl_device *dev, const product_list_case *c)
{
    product_list list = make_product_list(dev, c);
    const tgl_status status = tgl_grouped_list(dev, c->count, list.problems, list.operands, NULL);
    if (status != TGL_OK) {
        char why[700];
        tgl_last_error(why, sizeof why);
        fail_msg("seed %llu: %s: %s", (unsigned long long)c->seed, tgl_status_name(status), why);
    }
    assert_products(dev, &list);
    free_product_list(dev, &list);
}
