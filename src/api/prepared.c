/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares operands, and checks the prepared operands of a run.
 */
#include "api/prepared.h"

#include <stddef.h>
#include <stdlib.h>

/* Everything that determines the result of an operand's pre-pass (the kernels that convert the
 * operand before the main kernel), except the elements: how the operand lies in memory, and whether
 * it is A or B of the normalised shape. */
typedef struct operand_layout {
    tgl_operand operand;               /* TGL_AT_A or TGL_AT_B */
    bool transposed, conj, conj_other; /* conj_other: whether the other operand is conjugated
                                          (plan/complex.h) */
    tgl_type type;
    int64_t rows, cols, ld, stride, batch; /* sizes of op(X); batch is 1 if all problems share one
                                              matrix */
} operand_layout;

struct tgl_prepared {
    tgl_device *dev;
    operand_layout layout;
    const void *matrix;
    void *memory; /* result of the operand's pre-pass (conversion); NULL: the plan has no pre-pass
                     for it, or `matrix` is NULL */
    int64_t bytes;
};

/* ---- Layouts --------------------------------------------------------------------------------- */

static operand_layout layout_of(const tgl_shape *s, tgl_operand operand)
{
    const bool is_a = operand == TGL_AT_A;
    const int64_t stride = is_a ? s->stride_a : s->stride_b;
    return (operand_layout){
        .operand = operand,
        .transposed = is_a ? s->trans_a : s->trans_b,
        .conj = !is_a && s->conj_b,
        .conj_other = !is_a && s->conj_a,
        .type = tgl_shape_stored_type(s, is_a),
        .rows = is_a ? s->m : s->k,
        .cols = is_a ? s->k : s->n,
        .ld = is_a ? s->lda : s->ldb,
        .stride = stride,
        .batch = stride == 0 ? 1 : s->batch,
    };
}

static bool is_same_layout(const operand_layout *x, const operand_layout *y)
{
    return x->operand == y->operand && x->transposed == y->transposed && x->conj == y->conj &&
           x->conj_other == y->conj_other && x->type == y->type && x->rows == y->rows &&
           x->cols == y->cols && x->ld == y->ld && x->batch == y->batch &&
           (x->stride == y->stride || x->batch == 1);
}

/* The operand of the normalised shape that the caller calls A or B. If the problem is column-major,
 * A and B are exchanged. */
static tgl_operand operand_of(const tgl_shape *s, tgl_side side)
{
    return (side == TGL_SIDE_A) == !s->swapped ? TGL_AT_A : TGL_AT_B;
}

static tgl_status status_of(tgl_side side)
{
    return side == TGL_SIDE_A ? TGL_BAD_A : TGL_BAD_B;
}

static char letter_of(tgl_side side)
{
    return side == TGL_SIDE_A ? 'A' : 'B';
}

/* ---- Preparing ------------------------------------------------------------------------------- */

static tgl_status check(const tgl_plan *plan, tgl_side side, const void *matrix)
{
    const tgl_shape *s = &plan->shape;
    if (side != TGL_SIDE_A && side != TGL_SIDE_B)
        return tgl_fail(TGL_BAD_ARGUMENT, "side is %d; it must be TGL_SIDE_A or TGL_SIDE_B",
                        (int)side);
    if (s->pointers)
        return tgl_fail(TGL_BAD_BATCHING,
                        "matrices of arrays of pointers (TGL_POINTERS) cannot be prepared");
    const tgl_type type = tgl_shape_stored_type(s, operand_of(s, side) == TGL_AT_A);
    if (tgl_shape_is_empty(s) || s->k == 0)
        return TGL_OK; /* the matrix is not read in these cases,
                          and need not be valid */
    const char name[] = {letter_of(side), '\0'};
    return tgl_pointer_check(name, status_of(side), matrix, type);
}

/* Runs only the pre-pass of the operand, the kernels that convert it. */
static tgl_status fill(const tgl_plan *plan, tgl_prepared *prepared, void *stream)
{
    const tgl_operand operand = prepared->layout.operand;
    tgl_run run = {.alpha = 1, .has_product = true, .is_preparation = true, .prepares = operand};
    run.at[operand] = prepared->matrix;
    run.kept[operand] = prepared->memory;
    const tgl_status status = plan->dev->backend->run(plan, &run, stream);
    return status == TGL_NO_WORKSPACE ? TGL_NO_MEMORY : status;
}

static tgl_status allocate_and_fill(const tgl_plan *plan, tgl_prepared *prepared, void *stream)
{
    const tgl_backend *backend = plan->dev->backend;
    prepared->bytes = plan->list.kept_bytes[prepared->layout.operand];
    if (prepared->bytes == 0 || prepared->matrix == NULL) return TGL_OK;
    TGL_TRY(backend->alloc(plan->dev, (size_t)prepared->bytes, &prepared->memory));
    const tgl_status status = fill(plan, prepared, stream);
    if (status != TGL_OK) backend->free(plan->dev, prepared->memory);
    return status;
}

tgl_status tgl_operand_prepare(const tgl_plan *plan, tgl_side side, const void *matrix,
                               void *stream, tgl_prepared **out)
{
    if (out == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "the output pointer for the prepared operand is NULL");
    *out = NULL;
    if (plan == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the plan is NULL");
    TGL_TRY(check(plan, side, matrix));
    tgl_prepared *prepared = calloc(1, sizeof *prepared);
    if (prepared == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a prepared operand");
    prepared->dev = plan->dev;
    prepared->layout = layout_of(&plan->shape, operand_of(&plan->shape, side));
    prepared->matrix = matrix;
    const tgl_status status = allocate_and_fill(plan, prepared, stream);
    if (status != TGL_OK) {
        free(prepared);
        return status;
    }
    *out = prepared;
    return TGL_OK;
}

void tgl_prepared_destroy(tgl_prepared *prepared)
{
    if (prepared == NULL) return;
    if (prepared->memory != NULL) prepared->dev->backend->free(prepared->dev, prepared->memory);
    free(prepared);
}

size_t tgl_prepared_size(const tgl_prepared *prepared)
{
    return prepared != NULL && prepared->memory != NULL ? (size_t)prepared->bytes : 0;
}

/* ---- At a run -------------------------------------------------------------------------------- */

static tgl_status take(const tgl_plan *plan, tgl_side side, const tgl_prepared *prepared,
                       tgl_run *run)
{
    const tgl_operand operand = operand_of(&plan->shape, side);
    const operand_layout layout = layout_of(&plan->shape, operand);
    const char letter = letter_of(side);
    if (prepared->dev != plan->dev)
        return tgl_fail(status_of(side), "the prepared %c is of another device than %s", letter,
                        plan->dev->name);
    if (plan->shape.pointers || !is_same_layout(&layout, &prepared->layout))
        return tgl_fail(status_of(side),
                        "the prepared %c has other sizes or another layout than the plan's %c",
                        letter, letter);
    if (!run->has_product) return TGL_OK;
    if (run->at[operand] != prepared->matrix)
        return tgl_fail(status_of(side), "%c is not the matrix that was prepared", letter);
    if (prepared->bytes == plan->list.kept_bytes[operand]) run->kept[operand] = prepared->memory;
    return TGL_OK;
}

tgl_status tgl_prepared_take(const tgl_plan *plan, const tgl_operands *o, tgl_run *run)
{
    /* Structs of older callers may be too small for these members. */
    if (o->size < offsetof(tgl_operands, prepared_b) + sizeof(void *)) return TGL_OK;
    if (o->prepared_a != NULL) TGL_TRY(take(plan, TGL_SIDE_A, o->prepared_a, run));
    if (o->prepared_b != NULL) TGL_TRY(take(plan, TGL_SIDE_B, o->prepared_b, run));
    return TGL_OK;
}
