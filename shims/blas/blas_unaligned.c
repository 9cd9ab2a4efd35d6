/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes aligned copies of matrices whose addresses are not multiples of the size of a float or
 * double, as in packed structs and mapped files.
 */
#include "blas_shim.h"

#include <stdlib.h>
#include <string.h>

/* A column-major matrix of the caller. */
typedef struct matrix {
    const char *memory;
    size_t rows, columns, ld; /* number of rows and columns; leading dimension in elements */
} matrix;

static bool is_aligned(const void *memory, size_t number)
{
    return (uintptr_t)memory % number == 0;
}

/* Returns a copy of the matrix without padding, which the caller frees; NULL: out of memory. */
static char *copy_of(const matrix *x, size_t element)
{
    if (x->columns > 0 && x->rows > SIZE_MAX / element / x->columns) return NULL;
    char *copy = malloc(x->rows * x->columns * element + 1);
    for (size_t j = 0; copy != NULL && j < x->columns; j++)
        memcpy(copy + j * x->rows * element, x->memory + j * x->ld * element, x->rows * element);
    return copy;
}

/* Replaces an operand that is not aligned by a copy, without padding, and sets *ld for it.
 * element: bytes of an element. number: required alignment in bytes, the size of a real number
 * of the type. *copy: the copy, which the caller frees; NULL: none was needed. Returns false if
 * out of memory. */
static bool align(const void **operand, int64_t *ld, int64_t rows, int64_t columns, size_t element,
                  size_t number, char **copy)
{
    const matrix x = {*operand, (size_t)rows, (size_t)columns, (size_t)*ld};
    *copy = NULL;
    if (is_aligned(*operand, number)) return true;
    *copy = copy_of(&x, element);
    if (*copy == NULL) return false;
    *operand = *copy;
    *ld = rows > 0 ? rows : 1;
    return true;
}

bool blas_align(const blas_gemm *g, blas_gemm *aligned, blas_copies *copies)
{
    const size_t element = tgl_type_size(g->type);
    const size_t number = blas_is_single(g->type) ? sizeof(float) : sizeof(double);
    /* If A and B are not read, they may be invalid pointers. */
    const bool is_read = !blas_has_no_alpha(g) && g->k > 0;
    const bool flip_a = blas_is_transposed(g->trans_a), flip_b = blas_is_transposed(g->trans_b);
    const void *C = g->C;
    *aligned = *g;
    *copies = (blas_copies){NULL, NULL, NULL};
    bool is_done =
        !is_aligned(g->A, number) || !is_aligned(g->B, number) || !is_aligned(g->C, number);
    if (is_read)
        is_done = is_done &&
                  align(&aligned->A, &aligned->lda, flip_a ? g->k : g->m, flip_a ? g->m : g->k,
                        element, number, &copies->a) &&
                  align(&aligned->B, &aligned->ldb, flip_b ? g->n : g->k, flip_b ? g->k : g->n,
                        element, number, &copies->b);
    else
        aligned->A = aligned->B = NULL, aligned->k = 0;
    is_done = is_done && align(&C, &aligned->ldc, g->m, g->n, element, number, &copies->c);
    if (copies->c != NULL) aligned->C = copies->c;
    return is_done;
}

void blas_free_copies(const blas_gemm *g, const blas_copies *copies, bool is_done)
{
    const size_t element = tgl_type_size(g->type), rows = (size_t)g->m;
    for (size_t j = 0; is_done && copies->c != NULL && j < (size_t)g->n; j++)
        memcpy((char *)g->C + j * (size_t)g->ldc * element, copies->c + j * rows * element,
               rows * element);
    free(copies->a), free(copies->b), free(copies->c);
}
