/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a sim device, and the way in for tests: kernels that no table has.
 */
#ifndef TGL_SIM_STATE_H
#define TGL_SIM_STATE_H

#include "plan/planner.h"
#include "sim/compile.h"
#include "sim/report.h"

enum { TGL_SIM_PROPERTIES = 4 };

typedef struct tgl_sim {
    tgl_host_compiler compiler;
    pthread_mutex_t lock;    /* of all below, and of the plans' reports */
    tgl_sim_module *modules; /* that have been loaded */
    tgl_machine machine;
    struct {
        const char *key, *value;
    } properties[TGL_SIM_PROPERTIES];
} tgl_sim;

/* A part of C, with what its launches need. */
typedef struct tgl_sim_part {
    tgl_gemm_part of;
    tgl_sim_module *modules[TGL_GEMM_VARIANTS];
    float *workspace; /* partial sums, then counters; NULL: it needs none */
} tgl_sim_part;

typedef struct tgl_sim_plan {
    tgl_sim_module *rung;    /* of the ladder; NULL: a plan of the production families */
    unsigned grid_x, grid_y; /* of the ladder */
    unsigned cluster;        /* likewise: 1, but in tests */
    tgl_candidate choice;
    tgl_sim_part parts[TGL_PARTS_MOST]; /* in the order of their launches */
    int part_count;
    tgl_report report;
} tgl_sim_plan;

/* tgl_plan_create() for a kernel that is not in the registry. kernel and source, the text of
 * kernel->file, must outlive the device. cluster: blocks along x that run together; it divides the
 * grid; 0 is as good as 1. */
tgl_status tgl_sim_plan_create(tgl_device *dev, const tgl_problem *problem,
                               const tgl_kernel *kernel, const char *source, int cluster,
                               tgl_plan **out);

#endif
