/* SPDX-License-Identifier: Apache-2.0
 *
 * TMA: copies of boxes. Copies from global to shared memory (loads) are counted by mbarriers.
 * Copies from shared to global memory (stores) are in groups, which the issuing thread waits for.
 * Loads and stores complete as late as possible: a load when a thread waits for the mbarrier phase
 * that counts the load; a store when the issuing thread waits for the store's group or ends.
 */
#include "sim/tma_unit.h"

#include "sim/boxes.h"
#include "sim/clocks.h"
#include "sim/mbarriers.h"
#include "sim/shadow_global.h"
#include "sim/shadow_memory.h"
#include "sim/shadow_shared.h"

#include <stdlib.h>
#include <string.h>

enum {
    SECTOR = 32, /* bytes */
    UNIT = 16    /* bytes; on Hopper a box must begin at a multiple of this in dimension 0 */
};

/* ---- Global memory --------------------------------------------------------------------------- */

/* Checks the global memory that one row of a box reads or writes. Returns the number of sectors. */
static int64_t check_row(tgl_machine *machine, const tgl_box_row *row, bool is_write, int *region,
                         const void *pc)
{
    const uintptr_t from = (uintptr_t)row->from;
    if (row->bytes == 0) return 0;
    *region = tgl_memory_check_region(machine, from, (unsigned)row->bytes, is_write, pc);
    return (int64_t)((from + row->bytes - 1) / SECTOR - from / SECTOR + 1);
}

static void access_row(tgl_machine *machine, const tgl_box_row *row, bool is_write, int region,
                       const void *pc)
{
    if (row->bytes > 0)
        tgl_global_access(machine, region, (uintptr_t)row->from, (unsigned)row->bytes, is_write,
                          false, pc);
}

/* Checks the global memory that a box reads or writes, and records reads. Returns the number of
 * bytes inside the tensor. *region: the region of one of its rows. */
static int64_t check_box(tgl_machine *machine, const struct tgl_tensor_map *map, const int *at,
                         bool is_write, int *region, int64_t *sectors, const void *pc)
{
    int64_t inside = 0;
    *sectors = 0;
    for (int64_t i = 0; i < tgl_box_rows(map); i++) {
        const tgl_box_row row = tgl_box_row_at(map, at, i);
        *sectors += check_row(machine, &row, is_write, region, pc);
        if (!is_write) access_row(machine, &row, false, *region, pc);
        inside += (int64_t)row.bytes;
    }
    return inside;
}

static void check_copy(tgl_machine *machine, uintptr_t shared, const struct tgl_tensor_map *map,
                       const int *at, int rank, const char *what, const void *pc)
{
    const bool is_bulk = map->rank == 1; /* bulk_load(), which has no tensor map */
    const uintptr_t alignment = map->swizzle > 0 ? 8 * (uintptr_t)map->swizzle
                                : is_bulk        ? UNIT
                                                 : 128;
    if (map->rank != rank)
        tgl_machine_fault(machine, pc, "TMA %s a box of %d dimensions by a map of %d", what, rank,
                          map->rank);
    if (shared - machine->launch->module->shared_base >= machine->launch->module->shared_size)
        tgl_machine_fault(machine, pc, "TMA %s an address outside shared memory", what);
    if (shared % alignment != 0)
        tgl_machine_fault(machine, pc, "TMA %s an address that is not a multiple of %llu", what,
                          (unsigned long long)alignment);
    if ((uintptr_t)map->base % UNIT != 0 || at[0] * (int)map->element % UNIT != 0)
        tgl_machine_fault(machine, pc,
                          "TMA %s a box that does not begin at a multiple of %d bytes of its "
                          "tensor's rows, or the tensor does not begin at one in memory",
                          what, UNIT);
}

/* Adds the copy of a box to the trace: the address of its first row, and the number of rows. */
static void trace_box(tgl_machine *machine, uint32_t site, const struct tgl_tensor_map *map,
                      const int *at, uintptr_t shared)
{
    tgl_trace_step *step = tgl_tally_step(&machine->tally, site);
    if (step == NULL) return;
    const tgl_box_row first = tgl_box_row_at(map, at, 0);
    const unsigned lane = machine->current->index % 32;
    step->rows = tgl_box_rows(map);
    step->row_bytes = (int64_t)tgl_box_row_bytes(map);
    step->shared = (tgl_warp_access){.lanes = 1u << lane, .bytes = (uint32_t)tgl_box_bytes(map)};
    step->shared.address[lane] = shared;
    if (first.bytes == 0) return; /* the first row is outside the tensor */
    step->global = step->shared;
    step->global.address[lane] = (uintptr_t)first.from;
}

/* ---- Loads ----------------------------------------------------------------------------------- */

/* Issues a TMA load to one block of the cluster. */
static void load_to(tgl_machine *machine, tgl_sim_block *block, const tgl_tma_copy *copy,
                    const void *barrier, const void *pc)
{
    const size_t bytes = tgl_box_bytes(&copy->map);
    if (block->is_done)
        tgl_machine_fault(machine, pc, "TMA copies to a block of the cluster that has ended");
    tgl_mbarrier *b = tgl_mbarrier_use(machine, block, barrier, pc);
    if (!b->is_fenced)
        tgl_machine_fault(machine, pc,
                          "TMA copy with an mbarrier that was initialised without a following "
                          "mbarrier_init_fence()");
    tgl_shared_await(machine, block, (uintptr_t)copy->shared - machine->launch->module->shared_base,
                     bytes, TGL_AWAITS_TMA, copy->site, pc);
    b->missing -= (int64_t)bytes;
    tgl_mbarrier_add_copy(machine, b, copy);
}

static void check_mask(tgl_machine *machine, unsigned mask, const void *pc)
{
    if (mask == 0 || mask >> machine->cluster_size != 0)
        tgl_machine_fault(machine, pc, "TMA copy to the blocks 0x%x of a cluster of %u", mask,
                          machine->cluster_size);
}

void tgl_tma_load(tgl_machine *machine, void *shared, const void *map_of_kernel, const int *at,
                  int rank, const void *barrier, unsigned mask, const void *pc)
{
    const size_t offset = (uintptr_t)shared - machine->launch->module->shared_base;
    tgl_tma_copy copy = {.shared = shared,
                         .thread = (uint16_t)machine->current->index,
                         .rank = (uint8_t)(machine->now - machine->blocks)};
    int64_t sectors;
    int region = 0;
    if (mask == 0) mask = 1u << copy.rank; /* no multicast */
    memcpy(&copy.map, map_of_kernel, sizeof copy.map);
    memcpy(copy.at, at, (size_t)rank * sizeof *at);
    check_copy(machine, (uintptr_t)shared, &copy.map, at, rank, "copies to", pc);
    check_mask(machine, mask, pc);
    const int array = tgl_shared_check_bounds(machine, offset, tgl_box_bytes(&copy.map), true, pc);
    const int64_t inside = check_box(machine, &copy.map, at, false, &region, &sectors, pc);
    copy.site = tgl_machine_count(machine, pc, TGL_TMA_LOAD, array, inside, sectors);
    machine->multicast_bytes += inside * (__builtin_popcount(mask) - 1);
    trace_box(machine, copy.site, &copy.map, at, (uintptr_t)shared);
    for (unsigned i = 0; i < machine->cluster_size; i++)
        if ((mask >> i & 1) != 0) load_to(machine, &machine->blocks[i], &copy, barrier, pc);
}

/* ---- Stores ---------------------------------------------------------------------------------- */

static tgl_box_store *add_store(tgl_machine *machine, const struct tgl_tensor_map *map)
{
    tgl_sim_thread *thread = machine->current;
    tgl_box_store **last = &thread->stores;
    while (*last != NULL)
        last = &(*last)->next;
    *last = calloc(1, sizeof **last + tgl_box_bytes(map));
    if (*last == NULL) tgl_machine_give_up(machine);
    (*last)->map = *map;
    (*last)->group = thread->store_groups;
    return *last;
}

/* Reports a store whose box reaches beyond the end of the tensor's rows, if the rows are not a
 * multiple of 16 bytes long: Hopper then writes up to the next multiple of 16 bytes, outside the
 * tensor. */
static void check_end_of_rows(tgl_machine *machine, const struct tgl_tensor_map *map, const int *at,
                              const void *pc)
{
    const int64_t end = (int64_t)at[0] + map->box[0], size = map->size[0];
    if (end > size && size * map->element % UNIT != 0)
        tgl_machine_fault(machine, pc,
                          "TMA stores a box that reaches behind the rows of its tensor, which are "
                          "not a multiple of %d bytes long: it would write up to the next one",
                          UNIT);
}

/* Records that a store reads its box in shared memory until its group has been waited for. */
static void read_box(tgl_machine *machine, const tgl_box_store *store, size_t offset,
                     const void *pc)
{
    const tgl_sim_thread *thread = machine->current;
    const tgl_shared_access access = {
        machine->now->epoch, 0, (uint32_t)store->group + 1, store->site,
        (uint16_t)tgl_async_reader_of(machine, false, thread->index, pc)};
    /* A release operation, so that the clock contains the thread's own writes. */
    const uint32_t *clock = tgl_clock_release(machine);
    tgl_shared_read_async(machine, offset, tgl_box_bytes(&store->map), &access, clock, pc);
}

void tgl_tma_store(tgl_machine *machine, const void *map_of_kernel, const void *shared,
                   const int *at, int rank, const void *pc)
{
    const size_t offset = (uintptr_t)shared - machine->launch->module->shared_base;
    struct tgl_tensor_map map;
    int64_t sectors;
    int region = TGL_SIM_D;
    memcpy(&map, map_of_kernel, sizeof map);
    check_copy(machine, (uintptr_t)shared, &map, at, rank, "stores from", pc);
    check_end_of_rows(machine, &map, at, pc);
    tgl_shared_check_bounds(machine, offset, tgl_box_bytes(&map), false, pc);
    tgl_clocks_need(machine);
    const int64_t inside = check_box(machine, &map, at, true, &region, &sectors, pc);
    tgl_box_store *store = add_store(machine, &map);
    memcpy(store->at, at, (size_t)rank * sizeof *at);
    store->site = tgl_machine_count(machine, pc, TGL_TMA_STORE, region, inside, sectors);
    trace_box(machine, store->site, &map, at, (uintptr_t)shared);
    read_box(machine, store, offset, pc);
    tgl_box_from_shared(&store->map, shared, store->data);
}

void tgl_tma_store_commit(tgl_machine *machine)
{
    machine->current->store_groups++;
}

/* Completes a store: writes its data to global memory. */
static void complete_store(tgl_machine *machine, tgl_box_store *store)
{
    const void *pc = machine->tally.sites[store->site].pc;
    for (int64_t i = 0; i < tgl_box_rows(&store->map); i++) {
        const tgl_box_row row = tgl_box_row_at(&store->map, store->at, i);
        int region = TGL_SIM_D;
        check_row(machine, &row, true, &region, pc);
        access_row(machine, &row, true, region, pc);
        if (row.bytes > 0) memcpy(row.from, store->data + row.to + row.first, row.bytes);
    }
}

static void complete_groups(tgl_machine *machine, int64_t count)
{
    tgl_sim_thread *thread = machine->current;
    while (thread->stores != NULL && thread->stores->group < count) {
        tgl_box_store *store = thread->stores;
        complete_store(machine, store);
        thread->stores = store->next;
        free(store);
    }
}

void tgl_tma_store_wait(tgl_machine *machine, int pending, int is_read_only)
{
    tgl_sim_thread *thread = machine->current;
    const int64_t done = thread->store_groups - pending;
    if (done <= 0) return;
    if (done > thread->stores_read) thread->stores_read = done;
    if (machine->has_clocks)
        tgl_async_reader_done(machine, false, thread->index, (uint32_t)thread->stores_read);
    if (!is_read_only) complete_groups(machine, done);
}

void tgl_tma_end_thread(tgl_machine *machine)
{
    tgl_sim_thread *thread = machine->current;
    for (const tgl_box_store *store = thread->stores; store != NULL; store = store->next)
        if (store->group >= thread->stores_read)
            tgl_machine_fault(machine, machine->tally.sites[store->site].pc,
                              "has left the kernel, while this TMA store may still read its shared "
                              "memory");
    complete_groups(machine, INT64_MAX);
}

void tgl_tma_forget_stores(tgl_sim_thread *thread)
{
    while (thread->stores != NULL) {
        tgl_box_store *store = thread->stores;
        thread->stores = store->next;
        free(store);
    }
}
