/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the address of each tile of a product of matrices in host memory, and the plan that
 * computes the tile.
 */
#include "backend/host_product.h"
#include "base/integers.h"

enum { PITCH_BYTES = 16 }; /* bytes of the widest load of the kernels */

int64_t tgl_tile_pitch(tgl_type type, int64_t columns)
{
    const int64_t unit = PITCH_BYTES / (int64_t)tgl_type_size(type);
    return tgl_round_up(columns > 0 ? columns : 1, unit);
}

tgl_type tgl_slab_input(const tgl_host_product *p, int64_t slab)
{
    return slab == 0 ? p->shape->type_c : p->shape->type_accumulate;
}

tgl_type tgl_slab_result(const tgl_host_product *p, int64_t slab)
{
    return slab == p->slabs - 1 ? p->shape->type_d : p->shape->type_accumulate;
}

int tgl_kind_of_slab(const tgl_host_product *p, int64_t slab)
{
    return slab == p->slabs - 1 ? TGL_SLAB_LAST : slab == 0 ? TGL_SLAB_FIRST : TGL_SLAB_INNER;
}

tgl_tile_place tgl_tile_at(const tgl_host_product *p, int64_t index)
{
    const int64_t row = index / p->columns, column = index % p->columns;
    tgl_tile_place at = {row / p->rows, row % p->rows, column};
    if (at.row % 2 == 1) at.column = p->columns - 1 - column;
    return at;
}

/* The address of element number `element` in matrix `product` of the batch. one: the operand that
 * points to the first matrix of a strided batch; array: the operand that points to an array of
 * pointers. */
static void *element_at(const tgl_host_product *p, tgl_operand one, tgl_operand array,
                        int64_t stride, tgl_type type, int64_t product, int64_t element)
{
    char *matrix =
        p->shape->pointers ? ((char *const *)p->run->at[array])[product] : (char *)p->run->at[one];
    if (!p->shape->pointers) element += product * stride;
    return matrix + (size_t)element * tgl_type_size(type);
}

void *tgl_tile_address(const tgl_host_product *p, tgl_operand operand, const tgl_tile_place *at,
                       int64_t slab)
{
    const tgl_shape *s = p->shape;
    const int64_t i = at->row * p->m, j = at->column * p->n, l = slab * p->k;
    switch (operand) {
    case TGL_AT_A:
        return element_at(p, operand, TGL_AT_A_ARRAY, s->stride_a, s->type_a, at->product,
                          s->trans_a ? l * s->lda + i : i * s->lda + l);
    case TGL_AT_B:
        return element_at(p, operand, TGL_AT_B_ARRAY, s->stride_b, s->type_b, at->product,
                          s->trans_b ? j * s->ldb + l : l * s->ldb + j);
    case TGL_AT_C:
        return element_at(p, operand, TGL_AT_C_ARRAY, s->stride_c, s->type_c, at->product,
                          i * s->ldc + j);
    default:
        return element_at(p, operand, TGL_AT_D_ARRAY, s->stride_d, s->type_d, at->product,
                          i * s->ldd + j);
    }
}

const tgl_plan *tgl_tile_plan(const tgl_host_product *p, int64_t row, int64_t column, int64_t slab)
{
    return p->plans[row == p->rows - 1][column == p->columns - 1][tgl_kind_of_slab(p, slab)];
}
