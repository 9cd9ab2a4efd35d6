/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of one kernel that no family has: a launch list of one step, for tests of the devices that
 * execute lists.
 */
#ifndef LIST_OF_KERNEL_H
#define LIST_OF_KERNEL_H

#include "api/backend.h"

/* A kernel with the parameters of the ladder's:
 *   (int m, int n, int k, float alpha, const float *A, long long lda, const float *B, long long
 * ldb, float beta, float *C, long long ldc) or, with a workspace, also (..., float *scratch,
 * unsigned *counters). */
typedef struct lone_kernel {
    const char *name, *file, *symbol;
    const char *source;   /* the text of the file */
    int block_m, block_n; /* rows and columns of C that a block computes */
    int threads;
    unsigned cluster; /* blocks along x; 0 is as good as 1 */
    int64_t scratch_bytes, counter_bytes;
    tgl_ordering order;
} lone_kernel;

/* *plan := a plan of a list with this kernel, without a product with k = 0. */
tgl_status plan_of_kernel(tgl_device *dev, const tgl_problem *problem, const lone_kernel *kernel,
                          tgl_plan **plan);

/* The same of several kernels, one step each, which share the workspace of the first. */
tgl_status plan_of_kernels(tgl_device *dev, const tgl_problem *problem, const lone_kernel *kernels,
                           int count, tgl_plan **plan);

/* The text of a file, to be freed; NULL: it cannot be read. */
char *read_text(const char *folder, const char *name);

#endif
