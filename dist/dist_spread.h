/* SPDX-License-Identifier: Apache-2.0
 *
 * A distribution: how the elements of a matrix lie on the ranks. The matrix is one of the caller,
 * or consists of the panels that a product needs. All matrices are row-major here: the outer axis
 * counts rows; the inner axis counts columns, which are contiguous in memory. A column-major
 * product becomes the row-major product of the transposed matrices.
 */
#ifndef DIST_SPREAD_H
#define DIST_SPREAD_H

#include "dist_axis.h"
#include "tegula/dist.h"

typedef enum dist_side { DIST_OUTER = 0, DIST_INNER = 1, DIST_NEITHER = 2 } dist_side;

typedef struct dist_spread {
    dist_axis axis[2]; /* indices: DIST_OUTER (rows), DIST_INNER (contiguous) */
    int ranks;         /* only ranks 0 .. ranks-1 have a part */
    bool replicated;   /* each rank has the whole matrix */

    /* With panels, the axis `loop` of each rank's part is cut into `panels` panels of `panel`
     * indices. In step t a rank has panel (start[rank] + t) mod panels. DIST_NEITHER: there are no
     * panels, and start may be NULL. */
    dist_side loop;
    int64_t panel, panels;
    const int32_t *start;
} dist_spread;

/* The part of a rank, or its panel in a step: the rectangle of the rows and columns in two windows
 * (dist_axis.h). Both windows are empty if the rank has no part. */
typedef struct dist_rect {
    dist_window window[2];
} dist_rect;

/* The part of a rank, or its panel in a step. step: ignored if there are no panels. */
dist_rect dist_rect_at(const dist_spread *spread, int rank, int64_t step);
int64_t dist_rect_lines(const dist_rect *rect);
int64_t dist_rect_width(const dist_rect *rect);

/* The number of elements in the intersection of two rectangles of a matrix. */
int64_t dist_rect_shared(const dist_rect *x, const dist_rect *y);

/* *spread := the distribution that a layout describes for a problem of order `order`. ranks: size
 * of the communicator. what: the name of the matrix in the error message, such as "A". Returns
 * TGL_OK or TGL_BAD_ARGUMENT. */
tgl_status dist_spread_read(const tgl_dist_layout *layout, tgl_order order, int ranks,
                            const char *what, dist_spread *spread);

#endif
