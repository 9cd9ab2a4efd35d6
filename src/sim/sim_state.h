/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a sim device and of its plans.
 */
#ifndef TGL_SIM_STATE_H
#define TGL_SIM_STATE_H

#include "backend/backend.h"
#include "sim/host_compile.h"
#include "sim/host_threads.h"
#include "sim/record.h"

#include <pthread.h>

typedef struct tgl_sim {
    tgl_host_compiler compiler;
    pthread_mutex_t lock;    /* protects the members below and the plans' reports */
    tgl_sim_module *modules; /* loaded modules */
    tgl_machine machine;
    tgl_host_threads threads;
    char *workspace; /* for runs without a workspace of the caller */
    size_t workspace_room;
    char seed[24]; /* seed of the order of clusters, as text */
} tgl_sim;

/* sim_execute.c: the members of tgl_backend for plans. */
tgl_status tgl_sim_prepare(tgl_plan *plan, const char *kernel);
void tgl_sim_unprepare(tgl_plan *plan);
tgl_status tgl_sim_run(const tgl_plan *plan, const tgl_run *run, void *stream);
tgl_status tgl_sim_counters(const tgl_plan *plan, tgl_counters *counters);
void tgl_sim_trace(const tgl_plan *plan, tgl_text *out);
void tgl_sim_explain(const tgl_plan *plan, tgl_text *out);

#endif
