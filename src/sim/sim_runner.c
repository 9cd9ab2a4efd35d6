/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner of a sim device: its lock, and the state that runs plans. A forked child may inherit a
 * runner that a thread of its parent is using. That thread does not exist in the child and never
 * releases the lock: the child makes a new runner, and leaves the inherited one as it is.
 */
#include "sim/sim_state.h"

#include <stdlib.h>
#include <unistd.h>

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
    runner->process = getpid();
    runner->machine.is_shuffled = sim->is_shuffled;
    runner->machine.seed = sim->seed;
    tgl_host_threads_open(&runner->threads, sim->threads);
    return runner;
}

/* Not for an inherited runner that was in use: the state that its thread was changing cannot be
 * freed. */
void tgl_sim_runner_free(tgl_sim_runner *runner)
{
    if (runner == NULL) return;
    tgl_host_threads_close(&runner->threads);
    tgl_machine_free(&runner->machine);
    pthread_mutex_destroy(&runner->lock);
    free(runner->workspace);
    free(runner);
}

/* Replaces a runner that a thread of the parent process has left in use. The report that the thread
 * was writing is incomplete, so its plan loses it. Returns the new runner; NULL: no memory. */
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
    if (plan != NULL) tgl_sim_forget_report(plan);
    return made;
}

tgl_sim_runner *tgl_sim_lock(tgl_sim *sim)
{
    tgl_sim_runner *runner = atomic_load(&sim->runner);
    if (pthread_mutex_trylock(&runner->lock) == 0) return runner;
    if (runner->process != getpid()) runner = replace_runner(sim, runner);
    if (runner != NULL) pthread_mutex_lock(&runner->lock);
    return runner;
}

void tgl_sim_unlock(tgl_sim_runner *runner)
{
    pthread_mutex_unlock(&runner->lock);
}
