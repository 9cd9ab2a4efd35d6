/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs products of the probe family (probe_family.h) on a device that executes launch lists, and
 * compares the results with a reference.
 */
#ifndef PROBE_CASE_H
#define PROBE_CASE_H

#include "api/handles.h"

typedef struct probe_case {
    int64_t m, n, k, lda; /* lda 0: tight */
    int offset;           /* floats between an address that is a multiple of 256 and A */
    double alpha, beta;
    bool is_beyond; /* A has one element whose magnitude is above the threshold */
    bool gives_workspace;
} probe_case;

/* Cases with different sizes, alignments and scalars; NULL after the last one. */
const probe_case *probe_case_at(int index);

tgl_problem probe_problem(const probe_case *c);

/* *list := the launches that the probe family makes for the shape of a problem. */
tgl_status list_of_probe(tgl_device *dev, const tgl_problem *problem, tgl_shape *shape,
                         tgl_launch_list *list);

/* Makes a plan with the probe family in place of the library's families. */
tgl_status plan_of_probe(tgl_device *dev, const tgl_problem *problem, tgl_plan **plan);

/* Operands of a case, in device memory. All values are integers, so that results are exact. */
typedef struct probe_operands {
    float *host_A, *host_B, *host_C, *expected; /* host_C, expected: C before and after */
    size_t size_A, size_B, size_C;              /* bytes; size_A includes the offset */
    void *A, *B, *C, *workspace;                /* A is the address with the offset */
    void *allocated_A;
} probe_operands;

void probe_operands_make(tgl_device *dev, const probe_case *c, size_t workspace, probe_operands *x);
void probe_operands_free(tgl_device *dev, probe_operands *x);

/* Sets or removes an element above the threshold in A, and computes the expected C. */
void probe_set_beyond(tgl_device *dev, const probe_case *c, bool is_beyond, probe_operands *x);

/* Uploads the initial C. */
void probe_reset(tgl_device *dev, probe_operands *x);

/* Fails unless C has the expected values. */
void probe_check(tgl_device *dev, const probe_case *c, const probe_operands *x);

tgl_status probe_run(const tgl_plan *plan, const probe_case *c, const probe_operands *x,
                     void *stream);

/* Runs a case twice with one plan and checks it. */
void probe_case_run(tgl_device *dev, const probe_case *c);

#endif
