/* SPDX-License-Identifier: Apache-2.0
 *
 * How threads share a product. A product is cut into jobs: each computes a rectangle of D, the
 * output, in one problem of the batch, over all of k or a part of it. The functions that compute a
 * job differ by type and path (cpu_gemm.c, cpu_strips.c, cpu_blocks.c).
 */
#ifndef TGL_CPU_JOBS_H
#define TGL_CPU_JOBS_H

#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_product.h"

/* The unit of work of a thread: a rectangle of D in one problem of the batch, over all of k or,
 * with split-K, over a part of it. */
typedef struct cpu_job {
    int64_t problem; /* index in the batch */
    cpu_range rows, columns, k;
    char *memory; /* buffer of the computing thread, cpu_cut.thread_bytes bytes; NULL if that is
                     0 */
    char *sums;   /* split-K: buffer for the sums of this part of k, cpu_cut.sum_bytes bytes; else
                     NULL */
} cpu_job;

/* How a product is cut into jobs, and the functions that compute a job. A cut depends only on the
 * plan, so that results do not depend on the number of threads that the system provides.
 *
 * compute: computes D in the job's rectangle, with the epilogue; with split-K, only the sums over
 *   the job's part of k, in job->sums.
 * add_parts: with split-K, adds the sums of all parts of k in a fixed order, and computes `rows` of
 *   D. job: the job of part 0. The sums of the parts are sum_bytes apart. */
typedef struct cpu_cut {
    int64_t grid_m, grid_n, parts;  /* rectangles of D along m and n; parts of k */
    int64_t unit_m, unit_n, unit_k; /* rectangles and parts of k are multiples of these sizes,
                                       except the last ones */
    int64_t problems;               /* number of problems of the batch that run at the same time */
    size_t thread_bytes, sum_bytes; /* workspace: thread_bytes for each thread; behind them, with
                                       split-K, sum_bytes for each job */
    void (*compute)(const cpu_product *x, const cpu_job *job);
    void (*add_parts)(const cpu_product *x, const cpu_job *job, cpu_range rows);
} cpu_cut;

/* Runs all jobs of a product on the threads of its plan. */
void tgl_cpu_run_jobs(const cpu_product *x, const cpu_cut *cut);

#endif
