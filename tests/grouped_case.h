/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one grouped product and compares it with a reference. The elements are small integers, so
 * the results are exact.
 */
#ifndef TGL_GROUPED_CASE_H
#define TGL_GROUPED_CASE_H

#include "group_spans.h"
#include "support.h"

typedef struct grouped_case {
    group_list list;
    int64_t rows, n, k; /* rows: m of the problem */
    tgl_type type, result;
    bool trans_a, trans_b;
    bool is_column_major;    /* only for TGL_GROUPED_DEPTH */
    bool separate_d;         /* D is another matrix than C, of the type `result` */
    int pad_a, pad_b, pad_c; /* additional elements of leading dimensions */
    double alpha, beta;
    tgl_bias bias;
    bool has_relu, has_residual;
    bool
        has_poison; /* elements that a group must not read are NaN: poison_rows(), poison_depth() */
    tgl_compute compute;
    const char *kernel;
    unsigned blocks; /* the most blocks of a persistent launch, so that they loop; 0: as planned */
    uint64_t seed;
} grouped_case;

/* Runs the case by a plan and compares every element. Fails with the case's description. Returns
 * the status of creating the plan and of the run. After a failure D must be unchanged. */
tgl_status run_grouped(tgl_device *dev, const grouped_case *c);

#endif
