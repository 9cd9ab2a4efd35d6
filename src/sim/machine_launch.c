/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares the machine for each run and each launch, and sets the hooks: the functions of the
 * simulator that the compiled kernel calls.
 */
#include "sim/machine_launch.h"

#include "sim/clocks.h"
#include "sim/growing.h"
#include "sim/machine_run.h"
#include "sim/machine_threads.h"
#include "sim/mbarriers.h"
#include "sim/meetings.h"
#include "sim/random_order.h"
#include "sim/shadow_global.h"
#include "sim/shadow_memory.h"
#include "sim/shadow_shared.h"
#include "sim/tma_unit.h"
#include "sim/warp_mma.h"
#include "sim/wgmma_groups.h"
#include "sim/wgmma_matrix.h"
#include "sim/wgmma_registers.h"

#include <stdio.h>

static void stop_endless(tgl_machine *machine, const void *pc)
{
    tgl_machine_fault(machine, pc, "reaches neither a barrier nor its end: an endless loop?");
}

static void stop_bad_index(tgl_machine *machine, const void *pc)
{
    tgl_machine_fault(machine, pc, "uses an index outside of an array");
}

static void wait_for_launches(tgl_machine *machine)
{
    machine->has_waited = machine->current->has_waited = true;
    if (machine->now->waited_epoch == 0) machine->now->waited_epoch = machine->now->epoch;
}

static void set_hooks(tgl_machine *machine)
{
    const tgl_sim_launch *l = machine->launch;
    machine->hooks = l->module->image->hooks;
    *machine->hooks = (tgl_sim_hooks){
        .machine = machine,
        .access = tgl_memory_access,
        .barrier = tgl_block_barrier,
        .cluster_barrier = tgl_cluster_barrier,
        .cluster_load = tgl_memory_cluster_load,
        .warp_barrier = tgl_warp_barrier,
        .shuffle = tgl_shuffle,
        .async_copy = tgl_memory_async_copy,
        .async_commit = tgl_memory_async_commit,
        .async_wait = tgl_memory_async_wait,
        .atomic = tgl_memory_atomic,
        .fence = tgl_global_fence,
        .wait_for_launches = wait_for_launches,
        .mbarrier_init = tgl_mbarrier_init,
        .mbarrier_fence = tgl_mbarrier_fence,
        .mbarrier_arrive = tgl_mbarrier_arrive,
        .wide_load = tgl_memory_wide_load,
        .mbarrier_wait = tgl_mbarrier_wait,
        .mbarrier_arrive_at = tgl_mbarrier_arrive_at,
        .named_barrier = tgl_named_barrier,
        .tma_load = tgl_tma_load,
        .tma_store = tgl_tma_store,
        .tma_store_commit = tgl_tma_store_commit,
        .tma_store_wait = tgl_tma_store_wait,
        .fence_proxy_async = tgl_clocks_fence,
        .mma = tgl_warp_mma,
        .ldmatrix = tgl_warp_ldmatrix,
        .stmatrix = tgl_warp_stmatrix,
        .wgmma_tile = tgl_wgmma_tile,
        .wgmma = tgl_wgmma,
        .wgmma_fence = tgl_wgmma_fence,
        .wgmma_commit = tgl_wgmma_commit,
        .wgmma_wait = tgl_wgmma_wait,
        .set_registers = tgl_set_registers,
        .endless = stop_endless,
        .bad_index = stop_bad_index,
        .code = l->module->load_address,
        .code_size = l->module->code_size,
        .visits = l->module->visits,
        .block_dim = {l->threads, 1, 1},
        .grid_dim = {l->grid[0], l->grid[1], l->grid[2]},
    };
}

uint64_t tgl_machine_clusters(const tgl_sim_launch *launch)
{
    uint64_t clusters = 1;
    for (int i = 0; i < 3; i++)
        clusters *= launch->grid[i] / launch->cluster[i];
    return clusters;
}

static bool reserve_launch(tgl_machine *machine, size_t clusters)
{
    const size_t ordered = machine->is_shuffled && !machine->is_helper ? clusters : 0;
    bool ok = true;
    for (unsigned i = 0; i < machine->cluster_size && ok; i++)
        ok = tgl_machine_make_threads(machine, &machine->blocks[i], machine->launch->threads);
    machine->order =
        tgl_machine_reserve(machine->order, &machine->order_room, ordered, sizeof *machine->order);
    return ok && machine->order_room >= ordered && tgl_shared_start_launch(machine) &&
           tgl_global_start_launch(machine, clusters);
}

/* Keeps the module of this launch, because errors in later launches name the source lines of this
 * launch's writes. */
static bool keep_module(tgl_machine *machine)
{
    const size_t index = machine->number - 1;
    tgl_sim_module **modules =
        tgl_grow(machine->modules, &machine->module_room, index, sizeof(tgl_sim_module *));
    if (modules == NULL) return false;
    machine->modules = modules;
    modules[index] = machine->launch->module;
    return true;
}

/* Numbers a launch, and determines which earlier launches may still be running. In a sequence of
 * TGL_BESIDE launches, each may run concurrently with the earlier ones of the sequence and with the
 * launch before the sequence. */
static void number_launch(tgl_machine *machine, tgl_ordering order)
{
    machine->number++;
    if (order != TGL_BESIDE)
        machine->first_beside = machine->number;
    else if (!machine->is_beside)
        machine->first_beside = machine->number > 1 ? machine->number - 1 : 1;
    machine->is_beside = order == TGL_BESIDE;
}

static void clear_launch(tgl_machine *machine, const tgl_sim_launch *launch)
{
    machine->launch = launch;
    machine->has_waited = false;
    machine->cluster_size = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    machine->status = TGL_OK;
    machine->message[0] = machine->deferred[0] = '\0';
    machine->barriers = machine->mbarrier_waits = machine->multicast_bytes = 0;
    tgl_tally_clear(&machine->tally);
}

tgl_status tgl_machine_begin(tgl_machine *machine, const tgl_sim_memory *memory)
{
    machine->memory = *memory;
    machine->number = 0;
    machine->is_beside = false;
    if (!tgl_global_start_run(machine))
        return tgl_fail(TGL_NO_MEMORY, "no memory to follow the accesses of a run");
    return TGL_OK;
}

tgl_status tgl_machine_start(tgl_machine *machine, const tgl_sim_launch *launch)
{
    const uint64_t clusters = tgl_machine_clusters(launch);
    number_launch(machine, launch->order);
    clear_launch(machine, launch);
    if (clusters > UINT32_MAX)
        return tgl_fail(TGL_UNSUPPORTED, "%s has more blocks than the simulator counts",
                        launch->module->kernel->name);
    if (!keep_module(machine) || !reserve_launch(machine, (size_t)clusters))
        return tgl_fail(TGL_NO_MEMORY, "no memory to simulate a block");
    if (machine->is_shuffled) {
        tgl_order_seed(machine, 0);
        tgl_order_make(machine, machine->order, (uint32_t)clusters);
    }
    return TGL_OK;
}

bool tgl_machine_start_helper(tgl_machine *helper, const tgl_machine *machine,
                              const tgl_sim_launch *launch)
{
    helper->memory = machine->memory;
    helper->number = machine->number;
    helper->first_beside = machine->first_beside;
    helper->is_beside = machine->is_beside;
    helper->modules = machine->modules;
    helper->is_shuffled = machine->is_shuffled;
    helper->seed = machine->seed;
    clear_launch(helper, launch);
    if (!reserve_launch(helper, (size_t)tgl_machine_clusters(launch)) ||
        !tgl_global_copy(helper, machine))
        return false;
    set_hooks(helper);
    return true;
}

uint32_t tgl_machine_cluster_at(const tgl_machine *machine, uint32_t position)
{
    return machine->is_shuffled ? machine->order[position] : position;
}

void tgl_machine_run_clusters(tgl_machine *machine)
{
    const uint32_t count = (uint32_t)tgl_machine_clusters(machine->launch);
    set_hooks(machine);
    for (uint32_t i = 0; i < count && machine->status == TGL_OK; i++)
        tgl_machine_run_cluster(machine, tgl_machine_cluster_at(machine, i));
}

tgl_status tgl_machine_finish(tgl_machine *machine)
{
    if (machine->status != TGL_OK) {
        tgl_machine_forget_threads(machine);
    } else if (machine->launch->order != TGL_AFTER_ALL && !machine->has_waited) {
        snprintf(machine->message, sizeof machine->message,
                 "%s ends without having waited for earlier launches",
                 machine->launch->module->kernel->name);
        machine->status = TGL_KERNEL_FAULT;
    }
    if (machine->status != TGL_OK) tgl_set_error("%s", machine->message);
    return machine->status;
}

tgl_status tgl_machine_end(tgl_machine *machine)
{
    const unsigned *counters = (const unsigned *)machine->memory.counters;
    for (size_t i = 0; i < machine->memory.counter_bytes / sizeof *counters; i++) {
        const tgl_moment *last = &machine->global.words[TGL_SIM_COUNTERS - TGL_SIM_D][i].written;
        if (counters[i] == 0) continue;
        const char *name =
            last->launch > 0 ? machine->modules[last->launch - 1]->kernel->name : "the launch list";
        return tgl_fail(TGL_KERNEL_FAULT, "%s leaves counter %zu at %u; a run must leave it at 0",
                        name, i, counters[i]);
    }
    return TGL_OK;
}
