/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a launch on several host threads. Each thread has a machine of its own, a helper. The helper
 * runs clusters with its own copies of the kernel's code, of shared memory, of the counts, and of
 * the shadow of global memory (terms: sim/machine.h). The helpers take clusters in the order in
 * which a single thread would run them. At the end of the launch the counts are added up and the
 * shadows are merged. Clusters whose accesses do not conflict behave as if they had run one after
 * the other. The following launches run on one thread:
 *
 *   - launches of a single cluster, launches of a bundle, launches whose D and scratch exceed
 *     SHADOW_WORDS_MAX, and launches for whose copies there is no memory;
 *   - launches with counters in the workspace, through which blocks wait for each other or find out
 *     which block is the last, and launches that store the largest magnitude of D by atomics;
 *   - launches that several threads could not complete, because a cluster had an error or executed
 *     an atomic, or because two helpers accessed the same word of D or of the scratch, one of them
 *     for writing. Memory is restored, and the launch is repeated on one thread, so that the error
 *     message does not depend on the number of threads.
 */
#include "sim/host_threads.h"

#include "base/processors.h"
#include "sim/machine_run.h"
#include "sim/machine_threads.h"
#include "sim/shadow_global.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Launches run on several threads only if D and the scratch together have at most this many shadow
 * words: a shadow word takes 40 bytes and is copied for each thread and launch. */
static const size_t SHADOW_WORDS_MAX = (size_t)1 << 21;

typedef struct job {
    tgl_host_threads *threads;
    tgl_machine *machine; /* the machine of the run; it has started the launch */
    int team;             /* number of helpers that run the launch */
    uint32_t clusters;
    char *memory;          /* contents of D and the scratch before the launch, to restore them */
    int traced;            /* index of the helper that ran cluster 0, whose trace is kept */
    _Atomic uint32_t next; /* position of the next cluster that no helper has taken */
    atomic_bool has_failed;
} job;

void tgl_host_threads_open(tgl_host_threads *threads, int asked)
{
    const int processors = tgl_processors();
    *threads = (tgl_host_threads){.shared_launches = 0};
    tgl_thread_pool_open(
        &threads->pool, tgl_count_threads(asked, processors, TGL_SIM_HOST_THREADS_MAX), processors);
}

void tgl_host_threads_close(tgl_host_threads *threads)
{
    tgl_thread_pool_close(&threads->pool);
    for (int i = 0; i < TGL_SIM_HOST_THREADS_MAX; i++) {
        if (threads->helpers[i] == NULL) continue;
        tgl_machine_free(threads->helpers[i]);
        free(threads->helpers[i]);
    }
}

/* ---- Saving D and the scratch ---------------------------------------------------------------- */

/* Address of the launch's partition of D in matrix i of the batch. */
static char *partition_at(const tgl_sim_launch *launch, int64_t i)
{
    const tgl_sim_region *d = &launch->regions[TGL_SIM_D];
    if (d->bases != NULL) return (char *)d->bases[i] + d->partition_offset;
    return launch->result + (d->base - (uintptr_t)launch->result) + i * d->stride_bytes;
}

/* Copies the rows of the launch's partition of D to `copy`, or back. Returns their size in bytes.
 * copy: NULL to determine only the size. */
static size_t copy_result(const tgl_sim_launch *launch, char *copy, bool is_back)
{
    const tgl_sim_region *d = &launch->regions[TGL_SIM_D];
    const size_t bytes = (size_t)d->row_bytes;
    size_t done = 0;
    if (d->extent == 0) return 0;
    for (int64_t i = 0; i < d->batch; i++) {
        for (int64_t row = 0; row < d->rows; row++, done += bytes) {
            char *at = partition_at(launch, i) + row * d->ld_bytes;
            if (copy != NULL) memcpy(is_back ? at : copy + done, is_back ? copy + done : at, bytes);
        }
    }
    return done;
}

static bool save_memory(job *j)
{
    const tgl_sim_memory *memory = &j->machine->memory;
    const size_t result = copy_result(j->machine->launch, NULL, false);
    j->memory = malloc(result + memory->scratch_bytes + 1);
    if (j->memory == NULL) return false;
    copy_result(j->machine->launch, j->memory, false);
    if (memory->scratch_bytes > 0)
        memcpy(j->memory + result, memory->scratch, memory->scratch_bytes);
    return true;
}

static void restore_memory(const job *j)
{
    const tgl_sim_memory *memory = &j->machine->memory;
    const size_t result = copy_result(j->machine->launch, j->memory, true);
    if (memory->scratch_bytes > 0)
        memcpy((char *)memory->scratch, j->memory + result, memory->scratch_bytes);
}

/* ---- Helpers --------------------------------------------------------------------------------- */

static tgl_machine *find_helper(tgl_host_threads *threads, int number)
{
    if (threads->helpers[number] != NULL) return threads->helpers[number];
    tgl_machine *helper = malloc(sizeof *helper);
    if (helper == NULL) return NULL;
    if (!tgl_machine_init(helper, true)) {
        tgl_machine_free(helper);
        free(helper);
        return NULL;
    }
    return threads->helpers[number] = helper;
}

static bool prepare_helper(job *j, int number)
{
    const tgl_sim_launch *launch = j->machine->launch;
    tgl_machine *helper = find_helper(j->threads, number);
    tgl_sim_module *twin = tgl_sim_module_twin(launch->module, number);
    if (helper == NULL || twin == NULL) return false;
    memset(twin->visits, 0, twin->code_size * sizeof *twin->visits);
    tgl_sim_launch *own = &j->threads->launches[number];
    *own = *launch;
    own->module = twin;
    return tgl_machine_start_helper(helper, j->machine, own);
}

static bool prepare_helpers(job *j)
{
    for (int i = 0; i < j->team; i++)
        if (!prepare_helper(j, i)) return false;
    return save_memory(j);
}

/* The function of a helper thread (thread_pool_fn): runs clusters until none is left or a helper
 * has failed. */
static void run_clusters(void *context, int thread, int team)
{
    job *j = context;
    tgl_machine *helper = j->threads->helpers[thread];
    (void)team;
    for (uint32_t i; (i = atomic_fetch_add(&j->next, 1)) < j->clusters;) {
        const uint32_t cluster = tgl_machine_cluster_at(j->machine, i);
        if (cluster == 0) j->traced = thread;
        tgl_machine_run_cluster(helper, cluster);
        if (helper->status != TGL_OK) atomic_store(&j->has_failed, true);
        if (atomic_load(&j->has_failed)) return;
    }
}

/* ---- Merging the helpers --------------------------------------------------------------------- */

/* Distance in bytes from the module's code to the copy of the code that the helper executes. */
static uintptr_t code_distance(const tgl_machine *machine, const tgl_machine *helper)
{
    return helper->launch->module->load_address - machine->launch->module->load_address;
}

static void add_counts(tgl_machine *machine, const tgl_machine *helper)
{
    const tgl_sim_module *module = machine->launch->module, *twin = helper->launch->module;
    for (size_t i = 0; i < module->code_size; i++)
        module->visits[i] += twin->visits[i];
    machine->barriers += helper->barriers;
    machine->multicast_bytes += helper->multicast_bytes;
    machine->mbarrier_waits += helper->mbarrier_waits;
    machine->has_waited = machine->has_waited || helper->has_waited;
    if (tgl_tally_add(&machine->tally, &helper->tally, code_distance(machine, helper))) return;
    machine->status = TGL_NO_MEMORY;
    snprintf(machine->message, sizeof machine->message, "no memory to count the kernel's accesses");
}

static void merge_helpers(const job *j)
{
    for (int i = 0; i < j->team; i++) {
        tgl_global_merge(j->machine, j->threads->helpers[i]);
        add_counts(j->machine, j->threads->helpers[i]);
    }
    if (j->machine->launch->trace != NULL)
        tgl_trace_move(j->machine->launch->trace,
                       code_distance(j->machine, j->threads->helpers[j->traced]));
}

static void undo_launch(const job *j)
{
    restore_memory(j);
    for (int i = 0; i < j->team; i++)
        tgl_machine_forget_threads(j->threads->helpers[i]);
    if (j->machine->launch->trace != NULL) j->machine->launch->trace->count = 0;
}

static bool can_be_shared(const tgl_machine *machine)
{
    const tgl_global_shadow *shadow = &machine->global;
    return machine->memory.counter_bytes == 0 &&
           machine->launch->regions[TGL_SIM_AMAX].extent == 0 &&
           machine->launch->regions[TGL_SIM_D].members == NULL && /* copy_result() does not copy D
                                                                     of bundles */
           shadow->counts[0] + shadow->counts[TGL_SIM_SCRATCH - TGL_SIM_D] <= SHADOW_WORDS_MAX;
}

/* Runs a launch on several threads. Returns false if it must be run on one thread instead; memory
 * then has the contents from before the launch. */
static bool run_shared(tgl_host_threads *threads, tgl_machine *machine)
{
    const uint64_t clusters = tgl_machine_clusters(machine->launch);
    const int threads_max = threads->pool.threads;
    job j = {.threads = threads,
             .machine = machine,
             .team = clusters < (uint64_t)threads_max ? (int)clusters : threads_max,
             .clusters = (uint32_t)clusters};
    if (j.team < 2 || !can_be_shared(machine)) return false;
    const bool is_prepared = prepare_helpers(&j);
    bool is_complete = false;
    if (is_prepared) {
        thread_pool_task task = {.body = run_clusters, .context = &j};
        tgl_thread_pool_run(&threads->pool, j.team, &task);
        is_complete = !j.has_failed && !tgl_global_has_conflict(threads->helpers, j.team);
    }
    if (is_complete)
        merge_helpers(&j);
    else if (is_prepared)
        undo_launch(&j);
    free(j.memory);
    return is_complete;
}

tgl_status tgl_host_threads_run(tgl_host_threads *threads, tgl_machine *machine,
                                const tgl_sim_launch *launch)
{
    TGL_TRY(tgl_machine_start(machine, launch));
    if (run_shared(threads, machine))
        threads->shared_launches++;
    else
        tgl_machine_run_clusters(machine);
    return tgl_machine_finish(machine);
}
