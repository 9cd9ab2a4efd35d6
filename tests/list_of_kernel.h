/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of single kernels that belong to no kernel family, for tests of the code that executes
 * launch lists. The launch list of such a plan has one step for each kernel.
 */
#ifndef LIST_OF_KERNEL_H
#define LIST_OF_KERNEL_H

#include "api/handles.h"

/* A kernel with the parameters of the ladder's kernels:
 *   (int m, int n, int k, float alpha, const float *A, long long lda, const float *B, long long
 * ldb, float beta, float *C, long long ldc) or, with a workspace, also (..., float *scratch,
 * unsigned *counters). */
typedef struct lone_kernel {
    const char *name, *file, *symbol;
    const char *source;   /* the text of the kernel file */
    int block_m, block_n; /* rows and columns of C that a block computes */
    int threads;
    unsigned cluster; /* number of blocks of a cluster along x; 0 means 1 */
    int64_t scratch_bytes, counter_bytes;
    tgl_ordering order;
} lone_kernel;

/* *plan := a plan that launches this kernel. */
tgl_status plan_of_kernel(tgl_device *dev, const tgl_problem *problem, const lone_kernel *kernel,
                          tgl_plan **plan);

/* *plan := a plan that launches several kernels in turn. All use the workspace of the first one. */
tgl_status plan_of_kernels(tgl_device *dev, const tgl_problem *problem, const lone_kernel *kernels,
                           int count, tgl_plan **plan);

/* The text of the file folder/name.cu, which the caller frees. NULL: the file cannot be read. */
char *read_text(const char *folder, const char *name);

#endif
