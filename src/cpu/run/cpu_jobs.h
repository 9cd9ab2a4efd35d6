/* SPDX-License-Identifier: Apache-2.0
 *
 * How threads share a product. A product is cut into jobs: rectangles of D in each problem of the
 * batch, times parts of k. What a job computes differs by type and path (cpu_gemm.c, cpu_blocks.c).
 */
#ifndef TGL_CPU_JOBS_H
#define TGL_CPU_JOBS_H

#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_product.h"

/* A rectangle of D in one problem of the batch, over all of k or a part of it. */
typedef struct cpu_job {
    int64_t problem; /* index in the batch */
    cpu_range rows, columns, k;
    char *memory; /* thread_bytes bytes of the computing thread; NULL if that is 0 */
    char *sums;   /* sum_bytes bytes for sums over its part of k; NULL: k is not divided */
} cpu_job;

/* How a product is cut into jobs, and what a job computes. The plan decides this alone, so that
 * results do not depend on the number of threads that the system provides.
 *
 * compute: computes D in a job's rectangle, with the epilogue, or only the sums over a part of k.
 * add_parts: adds the sums of all parts of k in order, and computes D in these rows of a rectangle.
 *   job: the job of the first part of k. The sums of the parts are sum_bytes apart. */
typedef struct cpu_cut {
    int64_t grid_m, grid_n, parts;  /* rectangles along m and n, parts of k */
    int64_t unit_m, unit_n, unit_k; /* rectangles and parts consist of whole units */
    int64_t problems;               /* how many problems of the batch run at the same time */
    size_t thread_bytes, sum_bytes; /* workspace: memory of all threads, then sums of all jobs */
    void (*compute)(const cpu_product *x, const cpu_job *job);
    void (*add_parts)(const cpu_product *x, const cpu_job *job, cpu_range rows);
} cpu_cut;

void tgl_cpu_run_jobs(const cpu_product *x, const cpu_cut *cut);

#endif
