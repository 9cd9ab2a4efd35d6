/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the files and makes the problem. This includes vectors, batches that are broadcast,
 * transpose flags for arrays in Fortran order, and the types of C and D.
 */
#include "mm_product.h"

#include <inttypes.h>
#include <string.h>

int mm_is_stdin(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* ---- The files ------------------------------------------------------------------------------- */

static bool open_input(const char *path, array_file *file)
{
    char message[400];
    return array_open(path, file, message, sizeof message) ||
           cli_fail_false("%s: %s", mm_is_stdin(path) ? "standard input" : path, message);
}

void mm_close_files(mm_files *files)
{
    array_close(&files->a);
    array_close(&files->b);
    array_close(&files->c0);
}

bool mm_open_files(const mm_options *o, mm_files *files)
{
    *files = (mm_files){0};
    if (open_input(o->a, &files->a) && open_input(o->b, &files->b) &&
        (o->c0 == NULL || open_input(o->c0, &files->c0)))
        return true;
    mm_close_files(files);
    return false;
}

/* ---- The problem ----------------------------------------------------------------------------- */

/* op(A) or op(B) as numpy.matmul() sees it: a batch of matrices. */
typedef struct mm_factor {
    const npy_header *header;
    bool is_vector, is_batch, is_transposed; /* is_transposed: an option requests the transpose */
    int64_t rows, columns, batch;
} mm_factor;

/* Makes a factor of an array. A vector becomes a row if it is the first factor, and a column if it
 * is the second factor. */
static mm_factor factor_of(const npy_header *h, bool is_transposed, bool is_first)
{
    mm_factor x = {.header = h, .is_transposed = is_transposed, .batch = 1};
    const int64_t *size = h->shape;
    if (h->dimensions == 1) {
        x.is_vector = true;
        x.rows = is_first ? 1 : size[0];
        x.columns = is_first ? size[0] : 1;
        return x;
    }
    if (h->dimensions == 3) {
        x.is_batch = true;
        x.batch = *size++;
    }
    x.rows = is_transposed ? size[1] : size[0];
    x.columns = is_transposed ? size[0] : size[1];
    return x;
}

/* The transpose flag that makes the stored matrix op(X). by_columns: whether the problem is
 * column-major. */
static tgl_transpose transpose_of(const mm_factor *x, bool by_columns)
{
    const bool is_fortran = x->header->fortran_order && x->header->dimensions == 2;
    return x->is_transposed != (is_fortran != by_columns) ? TGL_TRANS : TGL_NO_TRANS;
}

static bool has_asked_type(const char *path, tgl_type type, tgl_type asked)
{
    return asked == 0 || type == asked ||
           cli_fail_false("%s is %s; --type asks for %s", path, npy_type_name(type),
                          npy_type_name(asked));
}

/* Checks that op(A) and op(B) can be multiplied. False: they cannot, and the error has been
 * printed. */
static bool check_factors(const mm_options *o, const mm_factor *a, const mm_factor *b)
{
    const tgl_type type_a = a->header->type, type_b = b->header->type;
    if (!has_asked_type(o->a, type_a, o->common.type) ||
        !has_asked_type(o->b, type_b, o->common.type))
        return false;
    if ((a->is_vector && a->is_transposed) || (b->is_vector && b->is_transposed))
        return cli_fail_false("%s is a vector, which has no transpose: leave out --trans-%c",
                              a->is_vector && a->is_transposed ? o->a : o->b,
                              a->is_vector && a->is_transposed ? 'a' : 'b');
    if (type_a == TGL_I32 || type_b == TGL_I32)
        return cli_fail_false(
            "%s is int32, and of integers only int8 can be multiplied: convert it with "
            "astype() in NumPy, to float64 where all digits count",
            type_a == TGL_I32 ? o->a : o->b);
    if (type_a != type_b)
        return cli_fail_false("%s is %s and %s is %s: convert one with astype() in NumPy", o->a,
                              npy_type_name(type_a), o->b, npy_type_name(type_b));
    if (a->columns != b->rows)
        return cli_fail_false(
            "op(A) is %" PRId64 " x %" PRId64 " and op(B) is %" PRId64 " x %" PRId64
            ": the first must have as many columns as the second has rows; is a --trans-a or "
            "--trans-b missing?",
            a->rows, a->columns, b->rows, b->columns);
    if (a->batch != b->batch && a->batch != 1 && b->batch != 1)
        return cli_fail_false("%s is a batch of %" PRId64 " matrices and %s one of %" PRId64
                              ": they must be the same, or one of them 1",
                              o->a, a->batch, o->b, b->batch);
    return true;
}

static void add_size(npy_header *h, int64_t size)
{
    h->shape[h->dimensions++] = size;
}

static bool is_same_shape(const npy_header *x, const npy_header *y)
{
    bool same = x->dimensions == y->dimensions;
    for (int i = 0; same && i < x->dimensions; i++)
        same = x->shape[i] == y->shape[i];
    return same;
}

static bool check_c0(const mm_options *o, const npy_header *c0, const npy_header *result)
{
    if (is_same_shape(c0, result)) return true;
    char of_c0[80] = "", of_c[80] = "";
    npy_describe_shape(c0, of_c0, sizeof of_c0);
    npy_describe_shape(result, of_c, sizeof of_c);
    return cli_fail_false("%s is %s, the product is %s: they must be the same", o->c0, of_c0,
                          of_c[0] != '\0' ? of_c : "a single number");
}

static bool check_problem(const mm_options *o, const mm_files *files, const mm_product *x)
{
    const tgl_status status = tgl_problem_check(&x->problem);
    if (status == TGL_OK) return true;
    char message[256];
    tgl_last_error(message, sizeof message);
    if (status == TGL_BAD_TYPE && o->c0 != NULL && o->common.type_d == 0)
        return cli_fail_false("%s is %s and %s is %s: convert one with astype() in NumPy", o->a,
                              npy_type_name(files->a.header.type), o->c0,
                              npy_type_name(files->c0.header.type));
    return cli_fail_false("%s", message);
}

bool mm_make_product(const mm_options *o, const mm_files *files, mm_product *x)
{
    const mm_factor a = factor_of(&files->a.header, o->common.trans_a, true);
    const mm_factor b = factor_of(&files->b.header, o->common.trans_b, false);
    const npy_header *c0 = o->c0 != NULL ? &files->c0.header : NULL;
    if (!check_factors(o, &a, &b)) return false;
    const bool by_columns = c0 != NULL && c0->dimensions == 2 && c0->fortran_order;
    const int64_t batch = a.batch == 1 ? b.batch : a.batch;
    x->result = (npy_header){.fortran_order = by_columns};
    if (a.is_batch || b.is_batch) add_size(&x->result, batch);
    if (!a.is_vector) add_size(&x->result, a.rows);
    if (!b.is_vector) add_size(&x->result, b.columns);
    if (c0 != NULL && !check_c0(o, c0, &x->result)) return false;
    tgl_problem *p = &x->problem;
    *p = cli_problem(a.header->type, a.rows, b.columns, a.columns);
    p->order = by_columns ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
    p->trans_a = transpose_of(&a, by_columns);
    p->trans_b = transpose_of(&b, by_columns);
    p->compute = o->common.compute;
    p->batch = batch;
    if (batch > 1) problem_set_strides(p);
    if (a.batch == 1) p->stride_a = 0;
    if (b.batch == 1) p->stride_b = 0;
    if (c0 != NULL) p->type_c = c0->type;
    x->result.type = o->common.type_d != 0 ? o->common.type_d : p->type_c;
    if (c0 == NULL) p->type_c = x->result.type;
    if (p->type_c != x->result.type) p->type_d = x->result.type;
    if (batch > 1) p->stride_d = p->type_d != 0 ? p->stride_c : 0;
    return check_problem(o, files, x);
}

/* The multiplications cannot overflow, because tgl_problem_check() has checked the problem. */
size_t mm_result_bytes(const mm_product *x)
{
    const tgl_problem *p = &x->problem;
    return (size_t)p->m * (size_t)p->n * (size_t)p->batch * tgl_type_size(x->result.type);
}
