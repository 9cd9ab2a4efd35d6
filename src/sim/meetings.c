/* SPDX-License-Identifier: Apache-2.0
 *
 * Where threads of a block wait for each other: barriers of a warp and shuffles, barriers of the
 * block and of the cluster, named barriers, and instructions of a whole warpgroup. Also the
 * description of a deadlock.
 */
#include "sim/meetings.h"

#include "sim/clocks.h"
#include "sim/mbarriers.h"
#include "sim/shadow_global.h"

#include <stdio.h>
#include <string.h>

/* ---- Warps ----------------------------------------------------------------------------------- */

void tgl_warp_barrier(tgl_machine *machine, unsigned lanes, const void *pc)
{
    tgl_sim_thread *thread = machine->current;
    if ((lanes >> thread->index % TGL_WARP & 1) == 0)
        tgl_machine_fault(machine, pc,
                          "the mask 0x%08x of a warp's call does not contain its own lane", lanes);
    thread->waits_for = lanes;
    thread->operands = NULL;
    tgl_machine_wait(machine, TGL_THREAD_AT_WARP, pc);
}

unsigned tgl_shuffle(tgl_machine *machine, unsigned lanes, unsigned value, int source,
                     const void *pc)
{
    tgl_sim_thread *thread = machine->current;
    const unsigned other = thread->index / TGL_WARP * TGL_WARP + (unsigned)source % TGL_WARP;
    thread->given = value;
    tgl_warp_barrier(machine, lanes, pc);
    if (other >= machine->launch->threads || (lanes >> other % TGL_WARP & 1) == 0)
        tgl_machine_fault(machine, pc, "shuffles from lane %d, which does not take part",
                          source % TGL_WARP);
    const unsigned result = machine->now->threads[other].given;
    /* A second barrier, so that no lane overwrites its value before all lanes have read it. */
    tgl_warp_barrier(machine, lanes, pc);
    return result;
}

/* Records that the lanes in the mask `opened` have passed a warp barrier. Lanes that waited at
 * mma.sync, ldmatrix or stmatrix are not counted as having passed one, because these instructions
 * do not order accesses. */
static void pass_warp_barrier(tgl_machine *machine, tgl_sim_thread *warp, uint32_t opened)
{
    tgl_sim_thread *lanes[TGL_WARP];
    unsigned count = 0;
    for (unsigned i = 0; i < TGL_WARP; i++)
        if ((opened >> i & 1) != 0 && warp[i].operands == NULL) {
            warp[i].warp_epoch++;
            lanes[count++] = &warp[i];
        }
    if (machine->has_clocks && count > 0) tgl_clocks_meet(machine, lanes, count);
}

bool tgl_warp_barriers_open(tgl_machine *machine, tgl_sim_thread *warp, unsigned lanes)
{
    uint32_t arrived = 0, opened = 0;
    for (unsigned i = 0; i < lanes; i++)
        if (warp[i].state == TGL_THREAD_AT_WARP) arrived |= 1u << i;
    if (arrived == 0) return false;
    const uint32_t exist = lanes == TGL_WARP ? ~0u : (1u << lanes) - 1;
    for (unsigned i = 0; i < lanes; i++)
        if (warp[i].state == TGL_THREAD_AT_WARP && (warp[i].waits_for & exist & ~arrived) == 0)
            opened |= 1u << i;
    for (unsigned i = 0; i < lanes; i++)
        if (opened >> i & 1) warp[i].state = TGL_THREAD_READY;
    pass_warp_barrier(machine, warp, opened);
    return opened != 0;
}

/* ---- The block and the cluster --------------------------------------------------------------- */

void tgl_block_barrier(tgl_machine *machine, const void *pc)
{
    tgl_machine_wait(machine, TGL_THREAD_AT_BARRIER, pc);
}

void tgl_cluster_barrier(tgl_machine *machine, const void *pc)
{
    tgl_machine_wait(machine, TGL_THREAD_AT_CLUSTER, pc);
}

bool tgl_is_at_barrier(const tgl_sim_thread *thread)
{
    return thread->state == TGL_THREAD_AT_BARRIER || thread->state == TGL_THREAD_AT_CLUSTER;
}

/* Whether `thread` waits at the same barrier as `other`. Threads of one warp must wait at the same
 * place of the kernel. Threads of different warps need not, if both threads wait at the barrier of
 * the cluster (PTX ISA, "barrier.cluster", .aligned). warp: the first thread of `thread`'s warp. */
static bool waits_with(const tgl_sim_thread *thread, const tgl_sim_thread *warp,
                       const tgl_sim_thread *other)
{
    const bool are_at_cluster =
        thread->state == TGL_THREAD_AT_CLUSTER && other->state == TGL_THREAD_AT_CLUSTER;
    return thread->waits_at == (are_at_cluster ? warp : other)->waits_at;
}

void tgl_block_barrier_open(tgl_machine *machine, const tgl_sim_thread *waiting)
{
    tgl_sim_thread *threads = machine->now->threads;
    const tgl_place place = tgl_sim_place(machine->launch->module, waiting->waits_at);
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        if (tgl_is_at_barrier(&threads[i])) continue;
        tgl_machine_fault_of(machine, &threads[i], NULL,
                             "has left the kernel, while thread %u waits at the barrier of %s",
                             waiting->index, place.text);
        return;
    }
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        if (waits_with(&threads[i], &threads[i / TGL_WARP * TGL_WARP], waiting)) continue;
        tgl_machine_fault_of(machine, &threads[i], threads[i].waits_at,
                             "waits at this barrier, while thread %u waits at that of %s",
                             waiting->index, place.text);
        return;
    }
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        threads[i].state = TGL_THREAD_READY;
        tgl_machine_rest(&threads[i]);
    }
    machine->barriers++;
    machine->now->epoch++;
}

/* ---- Named barriers -------------------------------------------------------------------------- */

void tgl_named_barrier(tgl_machine *machine, int id, int threads, const void *pc)
{
    tgl_sim_thread *thread = machine->current;
    if (id < 1 || id >= TGL_SIM_NAMED_BARRIERS)
        tgl_machine_fault(machine, pc, "waits at barrier number %d: there are 1 to %d", id,
                          TGL_SIM_NAMED_BARRIERS - 1);
    if (threads < TGL_WARP || threads % TGL_WARP != 0)
        tgl_machine_fault(machine, pc, "waits at a barrier of %d threads: whole warps take part",
                          threads);
    tgl_clocks_need(machine);
    thread->named = id;
    thread->named_count = (unsigned)threads;
    tgl_machine_wait(machine, TGL_THREAD_AT_NAMED, pc);
}

/* Releases named barrier `id` of the running block if as many threads have arrived as the barrier
 * expects. False: no thread was released. */
static bool open_named(tgl_machine *machine, int id)
{
    tgl_sim_thread *waiting[TGL_SIM_THREADS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        tgl_sim_thread *thread = &machine->now->threads[i];
        if (thread->state == TGL_THREAD_AT_NAMED && thread->named == id) waiting[count++] = thread;
    }
    if (count == 0) return false;
    for (unsigned i = 1; i < count; i++)
        if (waiting[i]->named_count != waiting[0]->named_count) {
            tgl_machine_fault_of(machine, waiting[i], waiting[i]->waits_at,
                                 "waits at barrier number %d for %u threads, but thread %u for %u "
                                 "threads",
                                 id, waiting[i]->named_count, waiting[0]->index,
                                 waiting[0]->named_count);
            return false;
        }
    if (count > waiting[0]->named_count)
        tgl_machine_fault_of(machine, waiting[count - 1], waiting[count - 1]->waits_at,
                             "waits at barrier number %d, which is for %u threads: %u have come",
                             id, waiting[0]->named_count, count);
    if (count != waiting[0]->named_count) return false;
    tgl_clocks_meet(machine, waiting, count);
    tgl_global_meet(machine, waiting, count);
    for (unsigned i = 0; i < count; i++) {
        waiting[i]->state = TGL_THREAD_READY;
        tgl_machine_rest(waiting[i]);
    }
    return true;
}

/* ---- Warpgroups ------------------------------------------------------------------------------ */

void tgl_meet_warpgroup(tgl_machine *machine, const char *word, const void *pc)
{
    const unsigned first = machine->current->index / TGL_WARPGROUP * TGL_WARPGROUP;
    if (first + TGL_WARPGROUP > machine->launch->threads)
        tgl_machine_fault(machine, pc, "%s in a warpgroup of %u threads, which must be 128", word,
                          machine->launch->threads - first);
    machine->current->group_word = word;
    tgl_machine_wait(machine, TGL_THREAD_AT_GROUP, pc);
}

static bool open_group(tgl_machine *machine, tgl_sim_thread *threads)
{
    for (unsigned i = 0; i < TGL_WARPGROUP; i++)
        if (threads[i].state != TGL_THREAD_AT_GROUP) return false;
    for (unsigned i = 1; i < TGL_WARPGROUP; i++) {
        if (threads[i].waits_at == threads[0].waits_at) continue;
        tgl_machine_fault_of(machine, &threads[i], threads[i].waits_at,
                             "%s needs the whole warpgroup: thread %u executes the one at %s",
                             threads[i].group_word, threads[0].index,
                             tgl_sim_place(machine->launch->module, threads[0].waits_at).text);
        return false;
    }
    for (unsigned i = 0; i < TGL_WARPGROUP; i++)
        threads[i].state = TGL_THREAD_READY;
    return true;
}

bool tgl_meetings_open(tgl_machine *machine)
{
    bool has_opened = false;
    for (int id = 1; id < TGL_SIM_NAMED_BARRIERS && machine->status == TGL_OK; id++)
        if (open_named(machine, id)) has_opened = true;
    for (unsigned i = 0; i + TGL_WARPGROUP <= machine->launch->threads; i += TGL_WARPGROUP)
        if (machine->status == TGL_OK && open_group(machine, &machine->now->threads[i]))
            has_opened = true;
    return has_opened;
}

/* ---- Deadlocks ------------------------------------------------------------------------------- */

/* Writes what a thread waits for, as the end of a sentence that begins with the thread. */
static void describe_wait(const tgl_machine *machine, const tgl_sim_block *block,
                          const tgl_sim_thread *thread, char *text, size_t size)
{
    switch (thread->state) {
    case TGL_THREAD_AT_MBARRIER:
        tgl_mbarrier_describe_wait(machine, block, thread, text, size);
        break;
    case TGL_THREAD_AT_NAMED:
        snprintf(text, size, "waits at barrier number %d for %u threads", thread->named,
                 thread->named_count);
        break;
    case TGL_THREAD_AT_GROUP:
        snprintf(text, size, "waits at %s for its warpgroup", thread->group_word);
        break;
    case TGL_THREAD_AT_WARP:
        snprintf(text, size, "waits for lanes of its warp (mask 0x%08x) that never come",
                 thread->waits_for);
        break;
    case TGL_THREAD_AT_BARRIER:
        snprintf(text, size, "waits at a barrier of the block");
        break;
    case TGL_THREAD_AT_CLUSTER:
        snprintf(text, size, "waits at a barrier of the cluster");
        break;
    case TGL_THREAD_READY:
    case TGL_THREAD_AT_WINDOW:
    case TGL_THREAD_DONE:
        snprintf(text, size, "has left the kernel");
        break;
    }
}

/* Appends where other threads of the block wait: up to three more source locations, with one thread
 * for each. */
static void describe_others(const tgl_machine *machine, const tgl_sim_thread *stuck, char *text,
                            size_t size)
{
    const void *described[4] = {stuck->waits_at};
    int count = 1;
    for (unsigned i = 0; i < machine->launch->threads && count < 4; i++) {
        const tgl_sim_thread *thread = &machine->now->threads[i];
        char what[256];
        int j = 0;
        while (j < count && described[j] != thread->waits_at)
            j++;
        if (j < count || thread->state == TGL_THREAD_DONE) continue;
        described[count++] = thread->waits_at;
        describe_wait(machine, machine->now, thread, what, sizeof what);
        const size_t length = strlen(text);
        snprintf(text + length, size - length, "; thread %u, %s, %s", thread->index,
                 tgl_sim_place(machine->launch->module, thread->waits_at).text, what);
    }
}

void tgl_meetings_fault_stuck(tgl_machine *machine, const tgl_sim_thread *thread)
{
    char what[256], others[TGL_SIM_MESSAGE] = "";
    describe_wait(machine, machine->now, thread, what, sizeof what);
    describe_others(machine, thread, others, sizeof others);
    tgl_machine_fault_of(machine, thread, thread->waits_at, "%s%s%s",
                         thread->state == TGL_THREAD_AT_WARP ? "" : "deadlock: ", what, others);
}
