/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts of tegula/dist.h, which say how a matrix is distributed over the ranks: makes layouts of
 * shards, replicated matrices and submatrices, checks the layouts that callers give, and finds the
 * elements of a rank.
 */
#include "dist_error.h"
#include "dist_spread.h"

#include <string.h>

enum { LAYOUT_SIZE = sizeof(tgl_dist_layout) };

/* ---- Making layouts -------------------------------------------------------------------------- */

static tgl_status fill(tgl_dist_layout *layout, size_t size, int64_t rows, int64_t columns,
                       int grid_rows, int grid_columns)
{
    if (layout == NULL || size < LAYOUT_SIZE)
        return dist_fail(TGL_BAD_ARGUMENT, "the layout is NULL or its size is wrong");
    if (rows < 0 || columns < 0 || grid_rows < 1 || grid_columns < 1)
        return dist_fail(TGL_BAD_ARGUMENT,
                         "the sizes of a layout are negative, or it has no ranks");
    memset(layout, 0, size);
    layout->size = size;
    layout->rows = rows;
    layout->columns = columns;
    layout->grid_rows = grid_rows;
    layout->grid_columns = grid_columns;
    layout->block_rows = dist_axis_even(rows, grid_rows, 1).block;
    layout->block_columns = dist_axis_even(columns, grid_columns, 1).block;
    layout->grid_order = TGL_ROW_MAJOR;
    return TGL_OK;
}

tgl_status tgl_dist_rows(tgl_dist_layout *layout, size_t size, int64_t rows, int64_t columns,
                         int ranks)
{
    return fill(layout, size, rows, columns, ranks, 1);
}

tgl_status tgl_dist_columns(tgl_dist_layout *layout, size_t size, int64_t rows, int64_t columns,
                            int ranks)
{
    return fill(layout, size, rows, columns, 1, ranks);
}

tgl_status tgl_dist_replicated(tgl_dist_layout *layout, size_t size, int64_t rows, int64_t columns)
{
    DIST_TRY(fill(layout, size, rows, columns, 1, 1));
    layout->replicated = 1;
    return TGL_OK;
}

/* An axis with one part becomes a single block, whatever the caller's block size is: dist_cost.c
 * compares axes member by member, and axes with the same elements must be equal. */
static dist_axis simplified(dist_axis axis)
{
    return axis.parts == 1 ? dist_axis_even(axis.size, 1, 1) : axis;
}

/* ---- Reading layouts ------------------------------------------------------------------------- */

/* Returns a sentence that says what is wrong with a layout; NULL: the layout is valid. */
static const char *layout_error(const tgl_dist_layout *layout)
{
    if (layout->rows < 0 || layout->columns < 0) return "a size is negative";
    if (layout->block_rows < 1 || layout->block_columns < 1) return "a block size is below 1";
    if (layout->first_rows < 0 || layout->first_columns < 0)
        return "the size of a first block is negative";
    if (layout->grid_rows < 1 || layout->grid_columns < 1) return "the grid has no ranks";
    if (layout->source_row < 0 || layout->source_row >= layout->grid_rows ||
        layout->source_column < 0 || layout->source_column >= layout->grid_columns)
        return "the source is outside the grid";
    if (layout->grid_order != TGL_ROW_MAJOR && layout->grid_order != TGL_COL_MAJOR)
        return "grid_order is not one of tgl_order";
    if (layout->replicated != 0 && layout->replicated != 1) return "replicated is neither 0 nor 1";
    if (layout->replicated && (layout->grid_rows != 1 || layout->grid_columns != 1))
        return "a replicated matrix has a grid of one rank";
    return NULL;
}

static dist_axis axis_of_rows(const tgl_dist_layout *x)
{
    return (dist_axis){.size = x->rows,
                       .first = x->first_rows > 0 ? x->first_rows : x->block_rows,
                       .block = x->block_rows,
                       .parts = x->grid_rows,
                       .source = x->source_row,
                       .stride = x->grid_order == TGL_ROW_MAJOR ? x->grid_columns : 1};
}

static dist_axis axis_of_columns(const tgl_dist_layout *x)
{
    return (dist_axis){.size = x->columns,
                       .first = x->first_columns > 0 ? x->first_columns : x->block_columns,
                       .block = x->block_columns,
                       .parts = x->grid_columns,
                       .source = x->source_column,
                       .stride = x->grid_order == TGL_ROW_MAJOR ? 1 : x->grid_rows};
}

static tgl_status check(const tgl_dist_layout *layout, const char *what)
{
    if (layout == NULL || layout->size < LAYOUT_SIZE)
        return dist_fail(TGL_BAD_ARGUMENT, "the layout of %s is NULL or its size is wrong", what);
    const char *error = layout_error(layout);
    if (error != NULL) return dist_fail(TGL_BAD_ARGUMENT, "the layout of %s: %s", what, error);
    return TGL_OK;
}

tgl_status dist_spread_read(const tgl_dist_layout *layout, tgl_order order, int ranks,
                            const char *what, dist_spread *spread)
{
    DIST_TRY(check(layout, what));
    if (layout->grid_rows > ranks / layout->grid_columns)
        return dist_fail(TGL_BAD_ARGUMENT, "the layout of %s has a grid of %d x %d for %d ranks",
                         what, layout->grid_rows, layout->grid_columns, ranks);
    const dist_side rows = order == TGL_ROW_MAJOR ? DIST_OUTER : DIST_INNER;
    *spread = (dist_spread){.replicated = layout->replicated, .loop = DIST_NEITHER};
    spread->ranks = spread->replicated ? ranks : layout->grid_rows * layout->grid_columns;
    spread->axis[rows] = simplified(axis_of_rows(layout));
    spread->axis[1 - rows] = simplified(axis_of_columns(layout));
    return TGL_OK;
}

/* ---- Parts and submatrices ------------------------------------------------------------------- */

tgl_status tgl_dist_local(const tgl_dist_layout *layout, int rank, int64_t *rows, int64_t *columns)
{
    DIST_TRY(check(layout, "the matrix"));
    if (rank < 0 || rows == NULL || columns == NULL)
        return dist_fail(TGL_BAD_ARGUMENT, "the rank is negative, or a pointer is NULL");
    *rows = *columns = 0;
    if (!layout->replicated && rank / layout->grid_columns >= layout->grid_rows) return TGL_OK;
    const dist_axis row = axis_of_rows(layout), column = axis_of_columns(layout);
    *rows = dist_axis_length(&row, dist_axis_part(&row, rank));
    *columns = dist_axis_length(&column, dist_axis_part(&column, rank));
    return TGL_OK;
}

tgl_status tgl_dist_index(const tgl_dist_layout *layout, int rank, int64_t local_row,
                          int64_t local_column, int64_t *row, int64_t *column)
{
    int64_t rows, columns, rest;
    DIST_TRY(tgl_dist_local(layout, rank, &rows, &columns));
    if (row == NULL || column == NULL || local_row < 0 || local_row >= rows || local_column < 0 ||
        local_column >= columns)
        return dist_fail(TGL_BAD_ARGUMENT, "the rank has no such element, or a pointer is NULL");
    const dist_axis r = axis_of_rows(layout), c = axis_of_columns(layout);
    *row = dist_axis_index(&r, dist_axis_part(&r, rank), local_row, &rest);
    *column = dist_axis_index(&c, dist_axis_part(&c, rank), local_column, &rest);
    return TGL_OK;
}

/* The axis of a submatrix: the indices [index, index + size) of `axis`. *offset := number of
 * elements of the rank's part that come before `index`. */
static dist_axis axis_from(const dist_axis *axis, int64_t index, int64_t size, int rank,
                           int64_t *offset)
{
    dist_axis from = *axis;
    from.size = size;
    *offset = dist_axis_before(axis, dist_axis_part(axis, rank), index);
    if (index < axis->first) {
        from.first = axis->first - index;
        return from;
    }
    const int64_t block = 1 + (index - axis->first) / axis->block;
    from.first = axis->block - (index - axis->first) % axis->block;
    from.source = (int)((axis->source + block) % axis->parts);
    return from;
}

tgl_status tgl_dist_part(tgl_dist_layout *layout, const tgl_dist_layout *whole, int64_t row,
                         int64_t column, int64_t rows, int64_t columns, int rank,
                         int64_t *offset_row, int64_t *offset_column)
{
    DIST_TRY(check(whole, "the whole matrix"));
    if (layout == NULL || offset_row == NULL || offset_column == NULL || rank < 0)
        return dist_fail(TGL_BAD_ARGUMENT, "a pointer is NULL, or the rank is negative");
    if (row < 0 || rows < 0 || row > whole->rows - rows || column < 0 || columns < 0 ||
        column > whole->columns - columns)
        return dist_fail(TGL_BAD_ARGUMENT, "the part is not inside the matrix");
    const dist_axis row_axis = axis_of_rows(whole), column_axis = axis_of_columns(whole);
    const dist_axis r = axis_from(&row_axis, row, rows, rank, offset_row);
    const dist_axis c = axis_from(&column_axis, column, columns, rank, offset_column);
    int64_t local_rows, local_columns;
    DIST_TRY(tgl_dist_local(whole, rank, &local_rows, &local_columns));
    *layout = *whole;
    layout->rows = rows, layout->first_rows = r.first, layout->source_row = r.source;
    layout->columns = columns, layout->first_columns = c.first, layout->source_column = c.source;
    return TGL_OK;
}
