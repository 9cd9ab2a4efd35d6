/* SPDX-License-Identifier: Apache-2.0
 *
 * The limits of launches and of what kernels count with, each defined once.
 */
#ifndef TGL_LIMITS_H
#define TGL_LIMITS_H

#include <limits.h>

enum {
    TGL_GRID_X_MAX =
        INT_MAX, /* blocks of a grid in x: CUDA programming guide, compute capabilities */
    TGL_GRID_YZ_MAX = 65535, /* in y and in z */
    TGL_EXTENT_MAX =
        INT_MAX - 1024,           /* m, n, k: kernels count in int, and up to a tile past the end */
    TGL_SPLITS_MAX = 256,         /* blocks that share the K of a tile */
    TGL_CLUSTER_MAX = 8,          /* blocks of a cluster that every chip with clusters runs */
    TGL_BLOCKS_PER_SM_MAX = 32,   /* that are resident at once */
    TGL_STRIP_WIDTH_MAX = 16,     /* rows or columns of a strip beside the tiles */
    TGL_STRIPS_MAX = 2,           /* of a plan: one of columns, one of rows */
    TGL_WORKSPACE_MAX = 64 << 20, /* bytes of partial sums that the planner considers by default */
    TGL_WORKSPACE_ALIGNMENT = 256, /* bytes */
};

#endif
