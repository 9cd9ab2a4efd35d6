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
#include <stdatomic.h>

/* The state of a plan: the modules of its kernels, and the counts and the record of its latest
 * successful run. */
typedef struct tgl_sim_plan {
    tgl_report report;
    tgl_record record;
    tgl_sim_module *modules[];
} tgl_sim_plan;

/* Everything that is needed to run a plan. A device has one, so that it runs one plan at a time. */
typedef struct tgl_sim_runner {
    pthread_mutex_t lock; /* protects the members below, the device's modules and the plans'
                             reports */
    unsigned process;     /* tgl_process() of the process that made the runner */
    tgl_machine machine;
    tgl_host_threads threads;
    char *workspace; /* the device's workspace, for runs without a workspace of the caller */
    size_t workspace_room;
    _Atomic(tgl_sim_plan *) stores; /* plan whose report is being replaced; NULL: none */
} tgl_sim_runner;

typedef struct tgl_sim {
    tgl_host_compiler compiler;
    _Atomic(tgl_sim_runner *) runner;
    tgl_sim_module *modules; /* list of all loaded modules, owned by the device */
    int threads;      /* number of host threads that tgl_device_options requests; 0: not given */
    bool is_shuffled; /* clusters run in a random order */
    uint64_t seed;
    char seed_text[24];
} tgl_sim;

/* sim_runner.c. tgl_sim_lock() locks the device's runner and returns it. Functions that return a
 * runner return NULL, with an error message, if memory is exhausted. */
tgl_sim_runner *tgl_sim_runner_make(const tgl_sim *sim);
void tgl_sim_runner_free(tgl_sim_runner *runner);
tgl_sim_runner *tgl_sim_lock(tgl_sim *sim);
void tgl_sim_unlock(tgl_sim_runner *runner);

/* sim_execute.c: the functions of tgl_backend for plans. */
tgl_status tgl_sim_prepare(tgl_plan *plan, const char *kernel);
void tgl_sim_unprepare(tgl_plan *plan);
tgl_status tgl_sim_run(const tgl_plan *plan, const tgl_run *run, void *stream);
tgl_status tgl_sim_counters(const tgl_plan *plan, tgl_counters *counters);
void tgl_sim_trace(const tgl_plan *plan, tgl_text *out);
void tgl_sim_explain(const tgl_plan *plan, tgl_text *out);

#endif
