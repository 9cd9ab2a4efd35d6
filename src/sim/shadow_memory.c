/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks and counts every access of every thread before it happens: whether the thread may access
 * the address, how the access counts, and which shadow (shadow_shared.h, shadow_global.h) records
 * it.
 */
#include "sim/shadow_memory.h"

#include "sim/growing.h"
#include "sim/shadow_global.h"
#include "sim/shadow_shared.h"
#include "sim/wgmma_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR_NULL = 1 << 16 /* addresses below this are never mapped */ };

/* ---- Checks ---------------------------------------------------------------------------------- */

/* Describes an address: "row 3, column 64 of A, which is 32 x 64", an array in shared memory,
 * ... */
static tgl_where describe_address(const tgl_sim_launch *l, uintptr_t address)
{
    tgl_where where;
    tgl_shared_array variable;
    bool is_inside;
    const bool is_near =
        tgl_regions_describe(l->regions, TGL_SIM_REGIONS, address, &is_inside, &where);
    if (!is_inside && tgl_sim_variable(l->module, address, &variable))
        snprintf(where.text, sizeof where.text, "%s, a variable that is not __shared__",
                 variable.name);
    else if (!is_inside && tgl_shared_has(l->module, address))
        where = tgl_shared_where(l->module, address - l->module->shared_base);
    else if (address < NEAR_NULL)
        snprintf(where.text, sizeof where.text,
                 "address %#llx, through a NULL pointer: an operand that this run does not use",
                 (unsigned long long)address);
    else if (!is_near)
        snprintf(where.text, sizeof where.text, "address %#llx, which is in no matrix",
                 (unsigned long long)address);
    return where;
}

static void region_fault(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                         const char *why, const void *pc)
{
    tgl_machine_fault(machine, pc, "%s %u bytes at %s%s%s", tgl_verb(is_write), bytes,
                      describe_address(machine->launch, address).text, why != NULL ? ", but " : "",
                      why != NULL ? why : "");
}

static void check_alignment(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                            const void *pc)
{
    if (address % bytes == 0) return;
    tgl_machine_fault(machine, pc, "%s %u bytes at once at an address that is not a multiple of %u",
                      tgl_verb(is_write), bytes, bytes);
}

/* Reports an access before the launch has waited for earlier launches (programmatic dependent
 * launch). At that time the results of the earlier launches may be missing, and they may still read
 * memory that this launch overwrites. */
static void check_waited(tgl_machine *machine, const void *pc)
{
    const uint32_t epoch = machine->now->waited_epoch;
    if (machine->launch->order != TGL_WAITS || machine->current->has_waited ||
        (epoch > 0 && epoch < machine->now->epoch))
        return;
    tgl_machine_fault(machine, pc,
                      "accesses global memory before it has waited for earlier launches");
}

int tgl_memory_check_region(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                            const void *pc)
{
    const tgl_sim_region *regions = machine->launch->regions;
    check_waited(machine, pc);
    if (tgl_region_has(&regions[TGL_SIM_D], address, bytes)) return TGL_SIM_D;
    for (int i = 0; i < TGL_SIM_REGIONS; i++) {
        if (!tgl_region_has(&regions[i], address, bytes)) continue;
        if (tgl_global_has_shadow(i) || i == TGL_SIM_AMAX) return i;
        if (is_write) region_fault(machine, address, bytes, true, "it is const", pc);
        const char *forbidden = tgl_region_member(&regions[i], address)->forbidden;
        if (forbidden != NULL) region_fault(machine, address, bytes, false, forbidden, pc);
        return i;
    }
    region_fault(machine, address, bytes, is_write, NULL, pc);
    return -1;
}

/* ---- Accesses -------------------------------------------------------------------------------- */

/* Counts the access. Returns the index of the instruction in the tally. */
static uint32_t tally_access(tgl_machine *machine, tgl_access_kind kind, int target, unsigned bytes,
                             uintptr_t shared, uintptr_t global, const void *pc)
{
    tgl_sim_thread *thread = machine->current;
    uint32_t site;
    bool is_full;
    if (!tgl_tally_access(&machine->tally, pc, kind, target, (int)(thread->index % TGL_WARP),
                          tgl_sim_place_in_loops(&thread->loops), bytes, shared, global, &site,
                          &is_full)) {
        tgl_machine_give_up(machine);
    }
    if (is_full) tgl_machine_wait(machine, TGL_THREAD_AT_WINDOW, pc);
    return site;
}

static void global_access(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                          const void *pc)
{
    const int region = tgl_memory_check_region(machine, address, bytes, is_write, pc);
    if (region == TGL_SIM_AMAX)
        region_fault(machine, address, bytes, is_write, "only atomics may access it", pc);
    tally_access(machine, is_write ? TGL_GLOBAL_STORE : TGL_GLOBAL_LOAD, region, bytes, 0, address,
                 pc);
    tgl_global_access(machine, region, address, bytes, is_write, false, pc);
}

void tgl_memory_access(tgl_machine *machine, const void *pointer, unsigned bytes, int is_write,
                       const void *pc)
{
    const uintptr_t address = (uintptr_t)pointer;
    if (address - (uintptr_t)machine->current->stack < machine->stack_size) {
        /* the thread's stack, which stands for registers */
        if (machine->current->wgmmas.has_fenced)
            tgl_wgmma_check_register(machine, pointer, bytes, is_write != 0, pc);
        return;
    }
    check_alignment(machine, address, bytes, is_write, pc);
    const tgl_sim_module *module = machine->launch->module;
    const size_t offset = address - module->shared_base;
    if (offset < module->shared_size) {
        const int array = tgl_shared_check_bounds(machine, offset, bytes, is_write, pc);
        const tgl_access_kind kind = is_write ? TGL_SHARED_STORE : TGL_SHARED_LOAD;
        const uint32_t site = tally_access(machine, kind, array, bytes, address, 0, pc);
        tgl_shared_access_words(machine, offset, bytes, is_write, site, pc);
        return;
    }
    global_access(machine, address, bytes, is_write, pc);
}

void tgl_memory_wide_load(tgl_machine *machine, const void *words, unsigned bytes, const void *pc)
{
    const uintptr_t address = (uintptr_t)words;
    for (int i = 0; i < TGL_SIM_REGIONS; i++)
        if (tgl_region_spans(&machine->launch->regions[i], address, bytes)) return;
    region_fault(machine, address, bytes, false, "they lie in part outside of the operand", pc);
}

/* Counts an atomic operation as a load and a store. */
void tgl_memory_atomic(tgl_machine *machine, const void *pointer, const void *pc)
{
    const uintptr_t address = (uintptr_t)pointer;
    check_alignment(machine, address, 4, true, pc);
    const int region = tgl_memory_check_region(machine, address, 4, true, pc);
    tally_access(machine, TGL_GLOBAL_LOAD, region, 4, 0, address, pc);
    tally_access(machine, TGL_GLOBAL_STORE, region, 4, 0, address, pc);
    tgl_global_access(machine, region, address, 4, true, true, pc);
}

float tgl_memory_cluster_load(tgl_machine *machine, const float *shared, int rank, const void *pc)
{
    const tgl_sim_module *module = machine->launch->module;
    const size_t offset = (uintptr_t)shared - module->shared_base;
    const unsigned cluster = machine->cluster_size;
    if (rank < 0 || (unsigned)rank >= cluster)
        tgl_machine_fault(machine, pc, "reads from block %d of a cluster of %u", rank, cluster);
    if (offset >= module->shared_size)
        tgl_machine_fault(machine, pc, "reads an address outside shared memory from a cluster");
    check_alignment(machine, (uintptr_t)shared, sizeof(float), false, pc);
    const int array = tgl_shared_check_bounds(machine, offset, sizeof(float), false, pc);
    const uint32_t site =
        tally_access(machine, TGL_SHARED_LOAD, array, sizeof(float), (uintptr_t)shared, 0, pc);
    tgl_sim_block *block = &machine->blocks[rank];
    if (block != machine->now) return tgl_shared_remote_load(machine, block, offset, site, pc);
    tgl_shared_access_words(machine, offset, sizeof(float), false, site, pc);
    return *shared;
}

/* ---- cp.async -------------------------------------------------------------------------------- */

/* Appends a cp.async to the thread's copies in flight. False: out of memory. */
static bool append_copy(tgl_sim_thread *thread, const tgl_sim_copy *copy)
{
    if (thread->first_copy == thread->copy_count) thread->first_copy = thread->copy_count = 0;
    tgl_sim_copy *copies =
        tgl_grow(thread->copies, &thread->copy_room, (size_t)thread->copy_count, sizeof *copies);
    if (copies == NULL) return false;
    thread->copies = copies;
    thread->copies[thread->copy_count++] = *copy;
    return true;
}

void tgl_memory_async_copy(tgl_machine *machine, void *shared, const void *global, int bytes,
                           int valid_bytes, const void *pc)
{
    const tgl_sim_module *module = machine->launch->module;
    const size_t offset = (uintptr_t)shared - module->shared_base;
    const uintptr_t source = valid_bytes > 0 ? (uintptr_t)global : 0;
    int region = -1;
    if ((bytes != 4 && bytes != 8 && bytes != 16) || valid_bytes < 0 || valid_bytes > bytes)
        tgl_machine_fault(machine, pc,
                          "cp.async of %d bytes, %d of them valid: it copies 4, 8 or 16", bytes,
                          valid_bytes);
    if (offset >= module->shared_size)
        tgl_machine_fault(machine, pc, "cp.async to an address outside shared memory");
    check_alignment(machine, (uintptr_t)shared, (unsigned)bytes, true, pc);
    const int array = tgl_shared_check_bounds(machine, offset, (size_t)bytes, true, pc);
    if (source != 0) {
        check_alignment(machine, source, (unsigned)bytes, false, pc);
        region = tgl_memory_check_region(machine, source, (unsigned)valid_bytes, false, pc);
    }
    const uint32_t site = tally_access(machine, TGL_ASYNC_COPY, array, (unsigned)bytes,
                                       (uintptr_t)shared, source, pc);
    if (source != 0)
        tgl_global_access(machine, region, source, (unsigned)valid_bytes, false, false, pc);
    tgl_shared_await(machine, machine->now, offset, (size_t)bytes, TGL_AWAITS_CP_ASYNC, site, pc);
    const tgl_sim_copy copy = {shared, global, bytes, valid_bytes, site, machine->current->groups};
    if (!append_copy(machine->current, &copy)) tgl_machine_give_up(machine);
}

void tgl_memory_async_commit(tgl_machine *machine)
{
    machine->current->groups++;
}

/* Completes a cp.async: writes its data, as if the thread wrote it now. */
static void deliver_async_copy(tgl_machine *machine, const tgl_sim_copy *copy)
{
    const tgl_sim_thread *thread = machine->current;
    const tgl_shared_access now = {machine->now->epoch, thread->warp_epoch, thread->time,
                                   copy->site, (uint16_t)thread->index};
    memset(copy->shared, 0, (size_t)copy->bytes);
    if (copy->valid_bytes > 0) memcpy(copy->shared, copy->global, (size_t)copy->valid_bytes);
    tgl_shared_arrive(machine, (uintptr_t)copy->shared - machine->launch->module->shared_base,
                      (size_t)copy->bytes, &now);
}

void tgl_memory_async_wait(tgl_machine *machine, int groups_pending)
{
    tgl_sim_thread *thread = machine->current;
    while (thread->first_copy < thread->copy_count) {
        const tgl_sim_copy *copy = &thread->copies[thread->first_copy];
        if (copy->group >= thread->groups - groups_pending) break;
        deliver_async_copy(machine, copy);
        thread->first_copy++;
    }
}
