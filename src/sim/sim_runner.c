/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner of a sim device: its lock, and the state that is needed to run plans. If a thread of
 * the parent holds the lock during fork(), this thread does not exist in the child and never
 * releases the lock. A child therefore makes a runner of its own, and leaves the inherited one as
 * it is. It does so even if the inherited runner is free: a failed pthread_mutex_trylock() could
 * not tell a thread of the child from one of the parent.
 */
#include "base/process_number.h"
#include "sim/machine_threads.h"
#include "sim/sim_state.h"

#include <stdlib.h>
#include <string.h>

tgl_sim_runner *tgl_sim_runner_make(const tgl_sim *sim)
{
    tgl_sim_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL || !tgl_machine_init(&runner->machine, false)) {
        if (runner != NULL) tgl_machine_free(&runner->machine);
        free(runner);
        tgl_set_error("no memory for the simulator");
        return NULL;
    }
    pthread_mutex_init(&runner->lock, NULL);
    runner->process = tgl_process();
    runner->machine.is_shuffled = sim->is_shuffled;
    runner->machine.seed = sim->seed;
    tgl_host_threads_open(&runner->threads, sim->threads);
    return runner;
}

/* Frees a runner, unless it was inherited by fork(): a thread of the parent may have been changing
 * it. */
void tgl_sim_runner_free(tgl_sim_runner *runner)
{
    if (runner == NULL || runner->process != tgl_process()) return;
    tgl_host_threads_close(&runner->threads);
    tgl_machine_free(&runner->machine);
    pthread_mutex_destroy(&runner->lock);
    free(runner->workspace);
    free(runner);
}

static void forget_report(tgl_sim_plan *plan)
{
    memset(&plan->report, 0, sizeof plan->report);
    memset(&plan->record, 0, sizeof plan->record);
}

/* Replaces the runner of the parent process. If a thread of the parent was writing a report, that
 * report is incomplete and is removed from its plan. Returns the new runner; NULL: no memory. */
static tgl_sim_runner *replace_runner(tgl_sim *sim, tgl_sim_runner *inherited)
{
    tgl_sim_runner *made = tgl_sim_runner_make(sim);
    if (made == NULL) return NULL;
    tgl_sim_runner *present = inherited;
    if (!atomic_compare_exchange_strong(&sim->runner, &present, made)) {
        tgl_sim_runner_free(made); /* another thread was faster */
        return present;
    }
    tgl_sim_plan *plan = atomic_load(&inherited->stores);
    if (plan != NULL) forget_report(plan);
    return made;
}

tgl_sim_runner *tgl_sim_lock(tgl_sim *sim)
{
    tgl_sim_runner *runner = atomic_load(&sim->runner);
    if (runner->process != tgl_process()) runner = replace_runner(sim, runner);
    if (runner != NULL) pthread_mutex_lock(&runner->lock);
    return runner;
}

void tgl_sim_unlock(tgl_sim_runner *runner)
{
    pthread_mutex_unlock(&runner->lock);
}
