/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of launches and kernels, each defined once.
 */
#ifndef TGL_LIMITS_H
#define TGL_LIMITS_H

#include <limits.h>

enum {
    TGL_GRID_X_MAX = INT_MAX, /* maximum blocks of a grid in x (CUDA programming guide, table of
                                 compute capabilities) */
    TGL_GRID_YZ_MAX = 65535,  /* maximum blocks of a grid in y and z */
    TGL_EXTENT_MAX = INT_MAX - 1024, /* maximum of m, n, k: an int index inside the tiles of a
                                        cluster may exceed the matrix, but not INT_MAX */
    TGL_SPLITS_MAX = 256, /* split-K: maximum number of blocks that compute one tile of D, in the
                             families that limit it */
    TGL_CLUSTER_MAX = 8,  /* maximum number of blocks of a cluster on every chip with clusters */
    TGL_BLOCKS_PER_SM_MAX = 32,   /* maximum number of resident blocks per SM */
    TGL_STRIP_WIDTH_MAX = 16,     /* maximum number of rows or columns of a strip */
    TGL_STRIPS_MAX = 2,           /* strips per plan: one of columns, one of rows */
    TGL_WORKSPACE_MAX = 64 << 20, /* bytes of partial sums that the planner allows by default */
    TGL_WORKSPACE_DEFAULT = -1,   /* a workspace limit: TGL_WORKSPACE_MAX bytes of partial sums, and
                                     any number for repacked and expanded operands */
    TGL_WORKSPACE_EXCEEDED = -2,  /* no workspace is left: less than any candidate needs */
    TGL_WORKSPACE_ALIGNMENT = 256, /* bytes */
    TGL_KERNEL_STRING_SIZE = 160,  /* bytes of a kernel string with the terminating zero */
};

#endif
