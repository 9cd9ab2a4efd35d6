/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills the memory of random problems, computes their reference results, and compares results.
 *
 * The memory of each operand begins with a guard and up to 15 elements that misalign the base. The
 * matrices of the batch follow, with padding in and between them. A second guard follows for
 * results and half of the inputs. In A and B everything outside the matrices is NaN (i8: -128): a
 * kernel that reads it computes a wrong result. Around C and D there is noise that must not change.
 */
#include "check_case.h"
#include "check_draw.h"
#include "check_epilogue.h"
#include "check_groups.h"
#include "elements.h"
#include "problem_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The memory ------------------------------------------------------------------------------ */

static void fill_with_nan(check_buffer *buffer)
{
    for (int64_t i = 0; i < buffer->size; i++)
        for (int part = 0; part < element_parts(buffer->type); part++)
            check_buffer_set(buffer, i, part, NAN);
}

/* Stores a matrix in the image. X: the matrix as rows of `ld` doubles, of which a complex element
 * takes two. */
static void store_matrix(check_buffer *buffer, int64_t batch, int64_t rows, int64_t columns,
                         int64_t ld, const double *X)
{
    const int parts = element_parts(buffer->type);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns * parts; j++)
            check_buffer_set(buffer, check_view_index(&buffer->view, batch, i, j / parts),
                             (int)(j % parts), X[i * ld + j]);
}

/* has_no_alpha(): whether both parts of alpha are 0. has_no_beta(): the same for beta. */
static bool has_no_alpha(const check_case *c)
{
    return c->alpha == 0 && c->alpha_imag == 0;
}

static bool has_no_beta(const check_case *c)
{
    return c->beta == 0 && c->beta_imag == 0;
}

/* Stores op(A) and op(B) of product `batch` in the images of their buffers. With alpha = 0 the
 * product must not read A and B, so their elements stay NaN, or NULL is passed for them. */
static void store_inputs(check_case *c, int64_t batch, const double *A, const double *B)
{
    const tgl_problem *p = &c->problem;
    const int64_t parts = element_parts(p->type_a);
    if (has_no_alpha(c)) return;
    if (p->stride_a != 0 || batch == 0) store_matrix(&c->a, batch, p->m, p->k, p->k * parts, A);
    if (p->stride_b != 0 || batch == 0)
        store_matrix(&c->b, batch, p->k, p->n, p->n * parts * parts, B);
}

static void fill_with_noise(check_buffer *buffer, random_state *r)
{
    for (size_t i = 0; i < check_buffer_bytes(buffer); i++)
        buffer->image[i] = (unsigned char)random_bits(r);
}

static void fill_c(check_case *c, random_state *r)
{
    const tgl_problem *p = &c->problem;
    fill_with_noise(&c->c, r);
    const bool unread = has_no_beta(c) && random_once_in(r, 2);
    const int parts = element_parts(c->c.type);
    const double scale =
        c->inputs == DENORMAL ? element_least_normal(c->c.type) / 16 : element_scale(c->c.type);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n * parts; j++)
                check_buffer_set(&c->c, check_view_index(&c->c.view, b, i, j / parts),
                                 (int)(j % parts), unread ? NAN : scale * (2 * random_unit(r) - 1));
}

/* ---- The reference result -------------------------------------------------------------------- */

typedef struct factors {
    double *A, *B, *c_row; /* op(A), op(B) of one product, and a row of its C */
} factors;

static bool is_conjugated(tgl_transpose trans)
{
    return trans == TGL_CONJ_TRANS || trans == TGL_CONJ_NO_TRANS;
}

/* The sum of products of element (i, j) of op(A)*op(B), for complex types, computed from the stored
 * elements. */
static reference_complex complex_sum(const check_case *c, int64_t batch, int64_t i, int64_t j)
{
    const tgl_problem *p = &c->problem;
    if (has_no_alpha(c) || p->k == 0) return (reference_complex){{0, 0}, {0, 0}};
    return reference_complex_dot(
        p->k, p->type_a, c->a.image, check_view_index(&c->a.view, batch, i, 0), c->a.view.column,
        is_conjugated(p->trans_a), c->b.image, check_view_index(&c->b.view, batch, 0, j),
        c->b.view.row, is_conjugated(p->trans_b));
}

static void compute_complex_reference(const check_case *c, int64_t batch)
{
    const tgl_problem *p = &c->problem;
    const double alpha[] = {c->alpha, c->alpha_imag}, beta[] = {c->beta, c->beta_imag};
    for (int64_t i = 0; i < p->m; i++) {
        reference_element *row = c->reference + (batch * p->m + i) * p->n * 2;
        for (int64_t j = 0; j < p->n; j++) {
            const double old[] = {check_buffer_get(&c->c, batch, i, j, 0),
                                  check_buffer_get(&c->c, batch, i, j, 1)};
            const reference_complex sum = complex_sum(c, batch, i, j);
            const reference_complex x = reference_complex_finish(alpha, &sum, p->k, beta, old);
            row[2 * j] = x.re;
            row[2 * j + 1] = x.im;
        }
        if (c->epilogue.size > 0) check_epilogue_finish(c, batch, i, row);
    }
}

static void compute_reference(const check_case *c, int64_t batch, const factors *o)
{
    const tgl_problem *p = &c->problem;
    if (element_parts(p->type_a) == 2) {
        compute_complex_reference(c, batch);
        return;
    }
    int64_t first;
    const int64_t k = check_groups_depth(c, batch, &first);
    const double *B = o->B + first * p->n;
    for (int64_t i = 0; i < p->m; i++) {
        if (!check_groups_has_row(c, batch, i)) continue;
        const double *a = o->A + i * p->k + first;
        for (int64_t j = 0; j < p->n; j++)
            o->c_row[j] = check_buffer_get(&c->c, batch, i, j, 0);
        reference_element *row = c->reference + (check_groups_result(c, batch) * p->m + i) * p->n;
        reference_row(p->type_a, p->n, k, c->alpha, a, B, c->beta, o->c_row, row);
        if (c->aligns_denormals) reference_align_denormals(p->type_a, p->n, k, c->alpha, a, B, row);
        if (c->epilogue.size > 0) check_epilogue_finish(c, batch, i, row);
    }
}

/* Draws A and B, and computes the reference. All products of a batch use the first matrix if the
 * stride is 0. For complex types, random_inputs() draws real numbers: an m x 2k matrix for A and a
 * 2k x 2n matrix for B, in which two neighbouring numbers of a row are one complex element. B has
 * only k rows, so store_inputs() leaves out every other row of the 2k. */
static void fill_products(check_case *c, random_state *r, const factors *o)
{
    const tgl_problem *p = &c->problem;
    const int64_t parts = element_parts(p->type_a), k = p->k * parts, n = p->n * parts;
    double *fresh_a = o->A + p->m * k, *fresh_b = o->B + k * n;
    for (int64_t b = 0; b < p->batch; b++) {
        random_inputs(r, c->inputs, p->type_a, p->m, n, k, fresh_a, fresh_b);
        if (b == 0 || p->stride_a != 0) memcpy(o->A, fresh_a, sizeof(double) * p->m * k);
        if (b == 0 || p->stride_b != 0) memcpy(o->B, fresh_b, sizeof(double) * k * n);
        store_inputs(c, b, o->A, o->B);
        compute_reference(c, b, o);
    }
}

static bool make_contents(check_case *c, random_state *r)
{
    const tgl_problem *p = &c->problem;
    const int64_t parts = element_parts(p->type_a);
    const size_t results = (size_t)(check_groups_results(c) * p->m * p->n * parts);
    factors o = {malloc(sizeof(double) * (size_t)(2 * p->m * p->k * parts + 1)),
                 malloc(sizeof(double) * (size_t)(2 * p->k * p->n * parts * parts + 1)),
                 malloc(sizeof(double) * (size_t)(p->n + 1))};
    c->reference = malloc(sizeof *c->reference * (results + 1));
    const bool ok = o.A != NULL && o.B != NULL && o.c_row != NULL && c->reference != NULL &&
                    check_buffer_make_image(&c->a) && check_buffer_make_image(&c->b) &&
                    check_buffer_make_image(&c->c) &&
                    (c->d.size == 0 || check_buffer_make_image(&c->d)) &&
                    check_epilogue_fill(r, c) && check_groups_fill(r, c);
    if (ok) {
        fill_with_nan(&c->a);
        fill_with_nan(&c->b);
        fill_c(c, r);
        fill_products(c, r, &o);
        fill_with_noise(&c->d, r);
    }
    free(o.A);
    free(o.B);
    free(o.c_row);
    return ok;
}

bool check_case_make(check_case *c, const check_drawing *from, int64_t number)
{
    random_state r;
    random_seed(&r, from->seed, (uint64_t)number);
    *c = (check_case){.seed = from->seed, .number = number};
    check_draw(from, &r, c);
    if (make_contents(c, &r)) return true;
    check_case_free(c);
    return false;
}

void check_case_free(check_case *c)
{
    free(c->a.image);
    free(c->b.image);
    free(c->c.image);
    free(c->d.image);
    free(c->bias.image);
    free(c->residual.image);
    free(c->groups);
    free(c->group_numbers);
    free(c->reference);
    *c = (check_case){0};
}

/* ---- Comparing a result ---------------------------------------------------------------------- */

const check_buffer *check_case_result(const check_case *c)
{
    return c->d.size > 0 ? &c->d : &c->c;
}

/* Sets *verdict if an element outside the result has changed. In a copy of `after`, it overwrites
 * the elements of the result with their initial contents, and then compares the whole copy with the
 * image. */
static void compare_padding(const check_case *c, const unsigned char *after, check_verdict *verdict)
{
    const tgl_problem *p = &c->problem;
    const check_buffer *result = check_case_result(c);
    const size_t size = tgl_type_size(result->type);
    unsigned char *rest = malloc((size_t)result->size * size);
    if (rest == NULL) {
        snprintf(verdict->text, sizeof verdict->text, "no memory to compare the padding");
        return;
    }
    memcpy(rest, after, (size_t)result->size * size);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++) {
            if (!check_groups_has_row(c, b, i)) continue;
            for (int64_t j = 0; j < p->n; j++) {
                const size_t at = (size_t)check_view_index(&result->view, b, i, j) * size;
                memcpy(rest + at, result->image + at, size);
            }
        }
    int64_t at = 0;
    while (at < result->size && memcmp(rest + at * size, result->image + at * size, size) == 0)
        at++;
    free(rest);
    if (at < result->size && verdict->text[0] == '\0')
        snprintf(verdict->text, sizeof verdict->text,
                 "memory outside %c was written, %" PRId64 " elements from its base",
                 c->d.size > 0 ? 'D' : 'C', at - result->view.offset);
}

void check_case_compare(const check_case *c, const unsigned char *after, error_summary *errors,
                        check_verdict *verdict)
{
    const tgl_problem *p = &c->problem;
    const check_buffer *result = check_case_result(c);
    verdict->text[0] = '\0';
    const int64_t parts = element_parts(result->type), columns = p->n * parts;
    for (int64_t b = 0; b < p->batch; b++) {
        const reference_element *references =
            &c->reference[check_groups_result(c, b) * p->m * columns];
        const double bound = check_groups_bound(c, b);
        for (int64_t i = 0; i < p->m; i++) {
            if (!check_groups_has_row(c, b, i)) continue;
            for (int64_t q = 0; q < columns; q++) {
                const int64_t j = q / parts;
                const reference_element *reference = &references[i * columns + q];
                const double x =
                    element_get(result->type, after,
                                check_view_index(&result->view, b, i, j) * parts + q % parts);
                double error;
                if (error_add(errors, result->type, x, reference, bound, &error) ||
                    verdict->text[0] != '\0')
                    continue;
                snprintf(verdict->text, sizeof verdict->text,
                         "%c[%" PRId64 "](%" PRId64 ", %" PRId64
                         ") is %.10g%s, the reference %.10Lg: error %.3g, at most %.3g passes",
                         c->d.size > 0 ? 'D' : 'C', b, i, j, x, q % parts == 1 ? "i" : "",
                         reference->value, error, bound);
            }
        }
    }
    compare_padding(c, after, verdict);
}

/* Writes the end of the description, such as " D ldd=9 stride=99" or " device scalars". */
static void describe_rest(const check_case *c, char *text, size_t size)
{
    const tgl_problem *p = &c->problem;
    char d[80] = "", groups[120];
    check_groups_describe(c, groups, sizeof groups);
    if (c->d.size > 0)
        snprintf(d, sizeof d, " D ldd=%" PRId64 " stride=%" PRId64 " offset=%" PRId64, p->ldd,
                 p->stride_d, c->d.view.offset - GUARD);
    snprintf(text, size, "%s%s%s%s%s%s%s", groups, d,
             p->scalars == TGL_SCALARS_DEVICE ? " device scalars" : "",
             c->no_beta ? " without beta" : "", c->own_workspace ? " own workspace" : "",
             c->prepared_a ? " prepared A" : "", c->prepared_b ? " prepared B" : "");
}

void check_case_describe(const check_case *c, char *text, size_t size)
{
    const tgl_problem *p = &c->problem;
    static const char letters[] = "NTCR";
    char epilogue[80], rest[280], alpha_imag[32] = "", beta_imag[32] = "";
    if (element_parts(p->type_a) == 2) {
        snprintf(alpha_imag, sizeof alpha_imag, "%+.10gi", c->alpha_imag);
        snprintf(beta_imag, sizeof beta_imag, "%+.10gi", c->beta_imag);
    }
    check_epilogue_describe(c, epilogue, sizeof epilogue);
    describe_rest(c, rest, sizeof rest);
    snprintf(
        text, size,
        "%s m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " %s-major %c%c lda=%" PRId64 " ldb=%" PRId64
        " ldc=%" PRId64 " batch=%" PRId64 "%s strides=%" PRId64 ",%" PRId64 ",%" PRId64
        " offsets=%" PRId64 ",%" PRId64 ",%" PRId64 " alpha=%.10g%s beta=%.10g%s inputs=%s%s%s",
        problem_type_label(p).text, p->m, p->n, p->k, p->order == TGL_ROW_MAJOR ? "row" : "column",
        letters[p->trans_a - TGL_NO_TRANS], letters[p->trans_b - TGL_NO_TRANS], p->lda, p->ldb,
        p->ldc, p->batch, p->batching == TGL_POINTERS ? " by pointers" : "", p->stride_a,
        p->stride_b, p->stride_c, c->a.view.offset - GUARD, c->b.view.offset - GUARD,
        c->c.view.offset - GUARD, c->alpha, alpha_imag, c->beta, beta_imag, inputs_name(c->inputs),
        epilogue, rest);
}
