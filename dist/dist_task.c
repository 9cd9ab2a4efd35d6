/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks and converts the caller's arguments.
 */
#include "dist_task.h"

#include "dist_error.h"

#include <string.h>

/* ---- Checks ---------------------------------------------------------------------------------- */

/* Whether products of this type of A are supported. B has the same type. */
static bool is_served(tgl_type type)
{
    return type == TGL_F32 || type == TGL_F64 || type == TGL_F16 || type == TGL_BF16 ||
           type == TGL_I8;
}

/* copy := *given, a struct of `size` bytes from a caller that may have been compiled with another
 * version of the header. This library's version of the struct has `known` bytes, and its first
 * member is the size. Members that the caller's struct lacks become 0. */
static void copy_struct(void *copy, size_t known, const void *given, size_t size)
{
    memset(copy, 0, known);
    memcpy(copy, given, size < known ? size : known);
    memcpy(copy, &known, sizeof known);
}

/* Whether the bytes of a caller's struct after the first `known` bytes are 0. This library does not
 * know the members there. */
static bool is_known(const void *given, size_t size, size_t known)
{
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)given)[i] != 0) return false;
    return true;
}

static tgl_status read_problem(const tgl_problem *given, tgl_problem *p)
{
    const tgl_status status = tgl_problem_check(given);
    if (status != TGL_OK) return dist_fail_local(status);
    copy_struct(p, sizeof *p, given, given->size);
    if (!is_served(p->type_a))
        return dist_fail(TGL_UNSUPPORTED,
                         "distributed products of complex types or of floats of 8 bits");
    if (p->type_a != p->type_b)
        return dist_fail(TGL_UNSUPPORTED, "distributed products of weights of 8 or 4 bits");
    if (p->grouping != TGL_GROUPED_NONE)
        return dist_fail(TGL_UNSUPPORTED, "distributed products have no grouping");
    if (p->batch != 1) return dist_fail(TGL_UNSUPPORTED, "batches of distributed matrices");
    if (p->lda != 0 || p->ldb != 0 || p->ldc != 0)
        return dist_fail(TGL_BAD_ARGUMENT,
                         "lda, ldb and ldc of a distributed problem are 0: layouts have them");
    if (p->type_d != 0 || p->scalars != TGL_SCALARS_HOST || p->scaling_a != TGL_SCALING_NONE ||
        p->scaling_b != TGL_SCALING_NONE || p->scaling_d != TGL_SCALING_NONE)
        return dist_fail(TGL_UNSUPPORTED,
                         "a matrix D, device scalars and scales of distributed problems");
    return TGL_OK;
}

static tgl_status read_epilogue(const tgl_epilogue *given, tgl_epilogue *e)
{
    /* bytes; a caller with a larger given->size has not set this member */
    enum { SIZE_MAX_OF_EPILOGUE = 4096 };
    const size_t least = offsetof(tgl_epilogue, amax); /* size of the first version */
    if (given->size < least || given->size > SIZE_MAX_OF_EPILOGUE ||
        !is_known(given, given->size, sizeof *e))
        return dist_fail(TGL_BAD_EPILOGUE, "the size of the epilogue is wrong");
    copy_struct(e, sizeof *e, given, given->size);
    if (e->residual != 0 || e->expression != NULL)
        return dist_fail(TGL_UNSUPPORTED, "a residual or an expression of a distributed product");
    if (e->amax != 0)
        return dist_fail(TGL_UNSUPPORTED,
                         "distributed products do not find the largest magnitude (epilogue.amax)");
    if (e->bias < TGL_BIAS_NONE || e->bias > TGL_BIAS_COLUMN ||
        e->activation < TGL_ACTIVATION_NONE || e->activation > TGL_ACTIVATION_SILU)
        return dist_fail(TGL_BAD_EPILOGUE, "the epilogue's bias or activation is not of its enum");
    return TGL_OK;
}

static tgl_status check_sizes(const char *what, const tgl_dist_layout *layout, int64_t rows,
                              int64_t columns)
{
    if (layout->rows == rows && layout->columns == columns) return TGL_OK;
    return dist_fail(
        TGL_BAD_ARGUMENT, "%s is %lld x %lld in the problem, and %lld x %lld in its layout", what,
        (long long)rows, (long long)columns, (long long)layout->rows, (long long)layout->columns);
}

static tgl_status check_layouts(const tgl_problem *p, const tgl_dist_layout *const x[OPERANDS])
{
    const bool a = dist_transpose(p->trans_a) == TGL_TRANS;
    const bool b = dist_transpose(p->trans_b) == TGL_TRANS;
    DIST_TRY(check_sizes("A", x[OPERAND_A], a ? p->k : p->m, a ? p->m : p->k));
    DIST_TRY(check_sizes("B", x[OPERAND_B], b ? p->n : p->k, b ? p->k : p->n));
    return check_sizes("C", x[OPERAND_C], p->m, p->n);
}

/* ---- Conversion ------------------------------------------------------------------------------ */

tgl_transpose dist_transpose(tgl_transpose trans)
{
    return trans == TGL_CONJ_TRANS ? TGL_TRANS : trans == TGL_CONJ_NO_TRANS ? TGL_NO_TRANS : trans;
}

/* Converts a column-major problem to the row-major problem of the transposed matrices, C' = B'*A':
 * exchanges A and B, m and n, and the bias per row and the bias per column. */
static void exchange(dist_task *task)
{
    tgl_problem *p = &task->problem;
    const tgl_problem given = *p;
    p->order = TGL_ROW_MAJOR;
    p->m = given.n, p->n = given.m;
    p->trans_a = given.trans_b, p->trans_b = given.trans_a;
    p->type_a = given.type_b, p->type_b = given.type_a;
    if (task->epilogue.bias == TGL_BIAS_ROW)
        task->epilogue.bias = TGL_BIAS_COLUMN;
    else if (task->epilogue.bias == TGL_BIAS_COLUMN)
        task->epilogue.bias = TGL_BIAS_ROW;
}

static void set_axes(dist_task *task)
{
    const tgl_problem *p = &task->problem;
    const int trans_a = p->trans_a == TGL_TRANS, trans_b = p->trans_b == TGL_TRANS;
    task->axis_of[OPERAND_A][trans_a] = AXIS_M;
    task->axis_of[OPERAND_A][1 - trans_a] = AXIS_K;
    task->axis_of[OPERAND_B][trans_b] = AXIS_K;
    task->axis_of[OPERAND_B][1 - trans_b] = AXIS_N;
    task->axis_of[OPERAND_C][DIST_OUTER] = AXIS_M;
    task->axis_of[OPERAND_C][DIST_INNER] = AXIS_N;
}

static void set_types(dist_task *task)
{
    const tgl_problem *p = &task->problem;
    task->type[OPERAND_A] = p->type_a;
    task->type[OPERAND_B] = p->type_b;
    task->type[OPERAND_C] = p->type_c;
    task->type_sum = p->type_a == TGL_F64 ? TGL_F64 : p->type_a == TGL_I8 ? TGL_I32 : TGL_F32;
}

/* Reads the layout of an operand of the converted product. order: that of the caller's problem.
 * name: the caller's letter for the operand, such as 'A'. */
static tgl_status read_layout(dist_task *task, int operand, const tgl_dist_layout *layout,
                              tgl_order order, int rank, char name)
{
    static const tgl_status bad_ld[] = {TGL_BAD_LDA, TGL_BAD_LDB, TGL_BAD_LDC};
    const char what[] = {name, '\0'};
    DIST_TRY(dist_spread_read(layout, order, task->ranks, what, &task->spread[operand]));
    const dist_rect mine = dist_rect_at(&task->spread[operand], rank, 0);
    const int64_t width = dist_rect_width(&mine);
    if (layout->ld != 0 && layout->ld < width)
        return dist_fail(bad_ld[name - 'A'], "ld of %s is %lld; the lines of this part have %lld",
                         what, (long long)layout->ld, (long long)width);
    task->ld[operand] = layout->ld != 0 ? layout->ld : width;
    return TGL_OK;
}

tgl_status dist_task_read(const tgl_problem *problem,
                          const tgl_dist_layout *const layouts[OPERANDS],
                          const tgl_dist_options *options, int rank, int ranks, dist_task *task)
{
    *task = (dist_task){.ranks = ranks};
    DIST_TRY(read_problem(problem, &task->problem));
    task->problem.trans_a = dist_transpose(problem->trans_a);
    task->problem.trans_b = dist_transpose(problem->trans_b);
    if (options != NULL && options->epilogue != NULL)
        DIST_TRY(read_epilogue(options->epilogue, &task->epilogue));
    task->is_exchanged = problem->order == TGL_COL_MAJOR;
    if (task->is_exchanged) exchange(task);
    set_axes(task);
    set_types(task);
    const int a = task->is_exchanged ? OPERAND_B : OPERAND_A;
    DIST_TRY(read_layout(task, a, layouts[OPERAND_A], problem->order, rank, 'A'));
    DIST_TRY(read_layout(task, 1 - a, layouts[OPERAND_B], problem->order, rank, 'B'));
    DIST_TRY(read_layout(task, OPERAND_C, layouts[OPERAND_C], problem->order, rank, 'C'));
    return check_layouts(problem, layouts);
}

int64_t dist_task_extent(const dist_task *task, int axis)
{
    const tgl_problem *p = &task->problem;
    return axis == AXIS_M ? p->m : axis == AXIS_N ? p->n : p->k;
}

size_t dist_task_element(const dist_task *task, int operand)
{
    return tgl_type_size(task->type[operand]);
}

size_t dist_task_sum_element(const dist_task *task)
{
    return tgl_type_size(task->type_sum);
}

dist_spread dist_division_spread(const dist_task *task, const dist_division *division, int operand,
                                 const int32_t *start)
{
    dist_spread spread = {.ranks = division->ranks,
                          .loop = DIST_NEITHER,
                          .panel = division->panel,
                          .panels = division->panels,
                          .start = start};
    for (int side = 0; side < 2; side++) {
        const int axis = task->axis_of[operand][side];
        spread.axis[side] = division->axis[axis];
        if (axis == division->loop) spread.loop = (dist_side)side;
    }
    return spread;
}
