/* SPDX-License-Identifier: Apache-2.0
 *
 * mbarriers, and TMA copies that they count. A copy arrives as late as it may: when a thread waits
 * for its phase and all else that the phase needs has come. What a thread did before it arrived at
 * an mbarrier is ordered before what another does after it has waited for that phase: each thread
 * keeps a clock for every other, and for the copies of every mbarrier.
 */
#include "sim/machine.h"

#include <stdlib.h>
#include <string.h>

enum { WARP = 32, SECTOR = 32 };

/* ---- Clocks ---------------------------------------------------------------------------------- */

static uint32_t *clocks_of(const tgl_sim_block *block, unsigned thread)
{
    return block->clocks + thread * block->clock_row;
}

static void join(uint32_t *to, const uint32_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (from[i] > to[i]) to[i] = from[i];
}

void tgl_mbarriers_join_lanes(tgl_machine *machine, tgl_sim_thread *warp, uint32_t lanes)
{
    const tgl_sim_block *block = machine->now;
    uint32_t *first = NULL;
    for (unsigned i = 0; i < WARP; i++) {
        if ((lanes >> i & 1) == 0) continue;
        if (first == NULL)
            first = clocks_of(block, warp[i].index);
        else
            join(first, clocks_of(block, warp[i].index), block->clock_row);
    }
    for (unsigned i = 0; i < WARP; i++)
        if ((lanes >> i & 1) != 0 && clocks_of(block, warp[i].index) != first)
            memcpy(clocks_of(block, warp[i].index), first, block->clock_row * sizeof *first);
    /* Each lane knows what the others had done. */
    for (unsigned i = 0; i < WARP; i++)
        if ((lanes >> i & 1) != 0)
            for (unsigned j = 0; j < WARP; j++)
                if ((lanes >> j & 1) != 0)
                    clocks_of(block, warp[i].index)[warp[j].index] = warp[j].time;
    for (unsigned i = 0; i < WARP; i++)
        if ((lanes >> i & 1) != 0) warp[i].time++;
}

/* Clocks are there from the first mbarrier of a block on. */
static bool make_clocks(const tgl_machine *machine, tgl_sim_block *block)
{
    const unsigned threads = machine->launch->threads;
    block->clock_row = threads + TGL_SIM_MBARRIERS_MAX;
    free(block->clocks);
    block->clocks = calloc(threads * block->clock_row, sizeof *block->clocks);
    return block->clocks != NULL;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void free_mbarriers(tgl_sim_block *block)
{
    for (int i = 0; i < block->mbarrier_count; i++) {
        free(block->mbarriers[i].arrived);
        free(block->mbarriers[i].complete);
        free(block->mbarriers[i].copies);
    }
    block->mbarrier_count = 0;
}

void tgl_mbarriers_start_block(tgl_machine *machine)
{
    free_mbarriers(machine->now);
}

void tgl_mbarriers_free_block(tgl_sim_block *block)
{
    free_mbarriers(block);
    free(block->clocks);
    block->clocks = NULL;
}

void tgl_mbarriers_check_end(tgl_machine *machine)
{
    const tgl_sim_block *block = machine->now;
    for (int i = 0; i < block->mbarrier_count; i++) {
        const tgl_mbarrier *b = &block->mbarriers[i];
        if (b->copy_count == 0) continue;
        tgl_machine_fault_of(machine, &block->threads[b->copies[0].thread],
                             machine->tally.sites[b->copies[0].site].pc,
                             "has left the kernel, and nobody has waited for this TMA copy");
        return;
    }
}

/* ---- Finding one ----------------------------------------------------------------------------- */

static size_t offset_of(tgl_machine *machine, const void *barrier, const void *pc)
{
    const size_t offset = (uintptr_t)barrier - machine->launch->module->shared_base;
    if (offset >= machine->launch->module->shared_size)
        tgl_machine_fault(machine, pc, "uses an mbarrier that is not in shared memory");
    if (offset % 8 != 0)
        tgl_machine_fault(machine, pc, "uses an mbarrier at an address that is no multiple of 8");
    tgl_shared_check_bounds(machine, offset, 8, true, pc);
    return offset;
}

static tgl_mbarrier *find(tgl_sim_block *block, size_t offset)
{
    for (int i = 0; i < block->mbarrier_count; i++)
        if (block->mbarriers[i].offset == offset) return &block->mbarriers[i];
    return NULL;
}

/* One that is initialised, and known to the current thread. */
static tgl_mbarrier *use(tgl_machine *machine, const void *barrier, const void *pc)
{
    const tgl_sim_module *module = machine->launch->module;
    const size_t offset = offset_of(machine, barrier, pc);
    tgl_mbarrier *b = find(machine->now, offset);
    char where[TGL_SIM_WHERE], place[TGL_SIM_PLACE];
    tgl_shared_describe(module, offset, where);
    if (b == NULL) {
        tgl_machine_fault(machine, pc, "uses the mbarrier at %s, which is not initialised", where);
    } else if (!tgl_shared_is_before(machine, &b->made)) {
        tgl_sim_place(module, b->made_at, place, sizeof place);
        tgl_machine_fault(machine, pc,
                          "race: uses the mbarrier at %s, which thread %u initialises at %s with "
                          "no barrier between",
                          where, b->made.thread, place);
    }
    return b;
}

/* ---- Arrivals and phases --------------------------------------------------------------------- */

static tgl_mbarrier *add_mbarrier(tgl_machine *machine, size_t offset, const void *pc)
{
    tgl_sim_block *block = machine->now;
    if (block->mbarrier_count == TGL_SIM_MBARRIERS_MAX)
        tgl_machine_fault(machine, pc,
                          "initialises more than %d mbarriers, which is the most the "
                          "simulator follows",
                          TGL_SIM_MBARRIERS_MAX);
    if (block->mbarrier_count == 0 && !make_clocks(machine, block)) tgl_machine_give_up(machine);
    tgl_mbarrier *b = &block->mbarriers[block->mbarrier_count];
    *b = (tgl_mbarrier){.offset = offset,
                        .phase = 1,
                        .arrived = calloc(block->clock_row, sizeof *b->arrived),
                        .complete = calloc(block->clock_row, sizeof *b->complete)};
    block->mbarrier_count++;
    if (b->arrived == NULL || b->complete == NULL) tgl_machine_give_up(machine);
    return b;
}

void tgl_mbarrier_init(void *run, const void *barrier, int arrivals, const void *pc)
{
    tgl_machine *machine = run;
    const tgl_sim_thread *thread = machine->current;
    const size_t offset = offset_of(machine, barrier, pc);
    if (arrivals < 1)
        tgl_machine_fault(machine, pc, "initialises an mbarrier for %d arrivals", arrivals);
    if (find(machine->now, offset) != NULL)
        tgl_machine_fault(machine, pc, "initialises an mbarrier for the second time");
    tgl_mbarrier *b = add_mbarrier(machine, offset, pc);
    b->arrivals = b->pending = arrivals;
    b->made_at = pc;
    b->made = (tgl_shared_access){machine->now->epoch, thread->warp_epoch, thread->time, 0,
                                  (uint16_t)thread->index};
}

void tgl_mbarrier_fence(void *run)
{
    const tgl_machine *machine = run;
    tgl_sim_block *block = machine->now;
    for (int i = 0; i < block->mbarrier_count; i++)
        if (tgl_shared_is_before(machine, &block->mbarriers[i].made))
            block->mbarriers[i].is_fenced = true;
}

static void deliver(tgl_machine *machine, const tgl_mbarrier *b, const tgl_tma_copy *copy);

/* All that the phase needs has come. */
static void complete_phase(tgl_machine *machine, tgl_mbarrier *b)
{
    const tgl_sim_block *block = machine->now;
    const size_t own = machine->launch->threads + (size_t)(b - block->mbarriers);
    for (int i = 0; i < b->copy_count; i++)
        deliver(machine, b, &b->copies[i]);
    b->copy_count = 0;
    b->arrived[own] = b->phase;
    memcpy(b->complete, b->arrived, block->clock_row * sizeof *b->complete);
    b->pending = b->arrivals;
    b->phase++;
}

void tgl_mbarrier_arrive(void *run, const void *barrier, unsigned bytes, const void *pc)
{
    tgl_machine *machine = run;
    tgl_sim_thread *thread = machine->current;
    tgl_mbarrier *b = use(machine, barrier, pc);
    uint32_t *own = clocks_of(machine->now, thread->index);
    if (b->pending == 0)
        tgl_machine_fault(machine, pc,
                          "arrives at an mbarrier in a phase that has all its arrivals, and that "
                          "nobody has waited for");
    own[thread->index] = thread->time++;
    join(b->arrived, own, machine->now->clock_row);
    b->missing += bytes;
    b->pending--;
    if (b->pending == 0 && b->missing == 0 && b->copy_count == 0) complete_phase(machine, b);
}

bool tgl_mbarrier_is_open(const tgl_machine *machine, const tgl_sim_thread *thread)
{
    const tgl_mbarrier *b = &machine->now->mbarriers[thread->mbarrier];
    return b->phase > thread->phase || (b->pending == 0 && b->missing == 0);
}

/* The phase of a barrier's that has the parity, and is the current one or the one before. */
static uint32_t phase_of(const tgl_mbarrier *b, unsigned parity)
{
    return (b->phase - 1) % 2 == parity ? b->phase : b->phase - 1;
}

void tgl_mbarrier_wait(void *run, const void *barrier, unsigned parity, const void *pc)
{
    tgl_machine *machine = run;
    tgl_sim_thread *thread = machine->current;
    if (parity > 1)
        tgl_machine_fault(machine, pc, "waits for the parity %u of an mbarrier: it is 0 or 1",
                          parity);
    tgl_mbarrier *b = use(machine, barrier, pc);
    thread->mbarrier = (int)(b - machine->now->mbarriers);
    thread->phase = phase_of(b, parity);
    while (b->phase <= thread->phase) {
        if (tgl_mbarrier_is_open(machine, thread))
            complete_phase(machine, b);
        else
            tgl_machine_wait(machine, TGL_THREAD_AT_MBARRIER, pc);
    }
    join(clocks_of(machine->now, thread->index), b->complete, machine->now->clock_row);
}

void tgl_mbarrier_fault_stuck(tgl_machine *machine, const tgl_sim_thread *thread)
{
    const tgl_mbarrier *b = &machine->now->mbarriers[thread->mbarrier];
    char where[TGL_SIM_WHERE];
    tgl_shared_describe(machine->launch->module, b->offset, where);
    if (b->pending > 0)
        tgl_machine_fault_of(machine, thread, thread->waits_at,
                             "deadlock: waits for a phase of the mbarrier at %s, where %d of %d "
                             "arrivals never come",
                             where, b->pending, b->arrivals);
    else
        tgl_machine_fault_of(
            machine, thread, thread->waits_at,
            "deadlock: waits for a phase of the mbarrier at %s, where %lld bytes %s", where,
            (long long)llabs(b->missing),
            b->missing > 0 ? "were announced and are never copied"
                           : "were copied and not announced");
}

/* ---- TMA ------------------------------------------------------------------------------------- */

/* The rows of a box: elements [0, box[0]) of dimension 0, at each place in the others. */
typedef struct box_row {
    const char *from;    /* of its first element that is in the tensor */
    size_t first, bytes; /* where that lies in the row, and how much of the row is there */
    size_t to;           /* where the row lies in the box, without the swizzle */
} box_row;

static int64_t rows_of(const struct tgl_tensor_map *map)
{
    int64_t rows = 1;
    for (int i = 1; i < map->rank; i++)
        rows *= map->box[i];
    return rows;
}

static size_t row_bytes(const struct tgl_tensor_map *map)
{
    return (size_t)map->box[0] * map->element;
}

static box_row row_at(const struct tgl_tensor_map *map, const int *at, int64_t number)
{
    const int64_t begin = at[0] > 0 ? at[0] : 0;
    const int64_t end = (int64_t)at[0] + map->box[0] < (int64_t)map->size[0]
                            ? (int64_t)at[0] + map->box[0]
                            : (int64_t)map->size[0];
    bool is_inside = begin < end;
    const char *from = (const char *)map->base + begin * map->element;
    const size_t to = (size_t)number * row_bytes(map);
    for (int i = 1; i < map->rank; i++) {
        const int64_t x = at[i] + number % map->box[i];
        number /= map->box[i];
        is_inside = is_inside && x >= 0 && x < (int64_t)map->size[i];
        from += x * map->stride[i];
    }
    return (box_row){.from = from,
                     .first = (size_t)(begin - at[0]) * map->element,
                     .bytes = is_inside ? (size_t)(end - begin) * map->element : 0,
                     .to = to};
}

/* Checks what a row reads; the sectors that it touches. */
static int64_t check_row(tgl_machine *machine, const box_row *row, const void *pc)
{
    const uintptr_t from = (uintptr_t)row->from;
    if (row->bytes == 0) return 0;
    const int region = tgl_memory_check_region(machine, from, (unsigned)row->bytes, false, pc);
    if (region == TGL_SIM_D || region == TGL_SIM_COUNTERS || region == TGL_SIM_SCRATCH)
        tgl_global_access(machine, region, from, (unsigned)row->bytes, false, false, pc);
    return (int64_t)((from + row->bytes - 1) / SECTOR - from / SECTOR + 1);
}

static void check_copy(tgl_machine *machine, const tgl_mbarrier *b, uintptr_t shared,
                       const struct tgl_tensor_map *map, int rank, const void *pc)
{
    const uintptr_t alignment = map->swizzle > 0 ? 8 * (uintptr_t)map->swizzle : 128;
    if (map->rank != rank)
        tgl_machine_fault(machine, pc, "TMA copy of a box of %d dimensions by a map of %d", rank,
                          map->rank);
    if (!b->is_fenced)
        tgl_machine_fault(machine, pc,
                          "TMA copy with an mbarrier that no mbarrier_init_fence() has made known");
    if (shared - machine->launch->module->shared_base >= machine->launch->module->shared_size)
        tgl_machine_fault(machine, pc, "TMA copy to an address outside shared memory");
    if (shared % alignment != 0)
        tgl_machine_fault(machine, pc, "TMA copy to an address that is no multiple of %llu",
                          (unsigned long long)alignment);
}

static bool append_copy(tgl_mbarrier *b, const tgl_tma_copy *copy)
{
    if (b->copy_count == b->copy_room) {
        const int room = b->copy_room > 0 ? 2 * b->copy_room : 8;
        tgl_tma_copy *copies = realloc(b->copies, (size_t)room * sizeof *copies);
        if (copies == NULL) return false;
        b->copies = copies;
        b->copy_room = room;
    }
    b->copies[b->copy_count++] = *copy;
    return true;
}

void tgl_tma_load(void *run, void *shared, const void *map_of_kernel, const int *at, int rank,
                  const void *barrier, const void *pc)
{
    tgl_machine *machine = run;
    tgl_mbarrier *b = use(machine, barrier, pc);
    tgl_tma_copy copy = {.shared = shared, .thread = (uint16_t)machine->current->index};
    memcpy(&copy.map, map_of_kernel, sizeof copy.map);
    memcpy(copy.at, at, (size_t)rank * sizeof *at);
    check_copy(machine, b, (uintptr_t)shared, &copy.map, rank, pc);
    const size_t offset = (uintptr_t)shared - machine->launch->module->shared_base;
    const size_t bytes = (size_t)rows_of(&copy.map) * row_bytes(&copy.map);
    const int array = tgl_shared_check_bounds(machine, offset, bytes, true, pc);
    int64_t sectors = 0, inside = 0;
    for (int64_t i = 0; i < rows_of(&copy.map); i++) {
        const box_row row = row_at(&copy.map, at, i);
        sectors += check_row(machine, &row, pc);
        inside += (int64_t)row.bytes;
    }
    if (!tgl_tally_bulk(&machine->tally, pc, TGL_ASYNC_COPY, array, inside, sectors, &copy.site))
        tgl_machine_give_up(machine);
    tgl_shared_await(machine, offset, bytes, TGL_AWAITS_TMA, copy.site, pc);
    b->missing -= (int64_t)bytes;
    if (!append_copy(b, &copy)) tgl_machine_give_up(machine);
}

/* Round to nearest, ties away from zero: 10 bits of fraction remain. */
static void round_to_tf32(char *row, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t bits;
        memcpy(&bits, row + i, 4);
        if ((bits >> 23 & 0xff) != 0xff) bits = (bits + 0x1000) & ~(uint32_t)0x1fff;
        memcpy(row + i, &bits, 4);
    }
}

/* A swizzle of 32, 64 or 128 bytes: address bits 7, 8 and 9, as many as 16-byte chunks need, are
 * added (XOR) to bits 4, 5 and 6. */
static uintptr_t swizzled(uintptr_t address, int swizzle)
{
    return address ^ (address >> 7 & (uintptr_t)(swizzle / 16 - 1)) << 4;
}

static void deliver(tgl_machine *machine, const tgl_mbarrier *b, const tgl_tma_copy *copy)
{
    enum { CHUNK = 16, ROW_MAX = 256 * 8 };
    const struct tgl_tensor_map *map = &copy->map;
    const size_t bytes = row_bytes(map);
    const uintptr_t shared = (uintptr_t)copy->shared;
    char data[ROW_MAX];
    for (int64_t i = 0; i < rows_of(map); i++) {
        const box_row row = row_at(map, copy->at, i);
        memset(data, 0, bytes);
        if (row.bytes > 0) memcpy(data + row.first, row.from, row.bytes);
        if (map->is_tf32) round_to_tf32(data, bytes);
        for (size_t j = 0; j < bytes; j += CHUNK) {
            uintptr_t to = shared + row.to + j;
            if (map->swizzle > 0) to = swizzled(to, map->swizzle);
            memcpy(copy->shared + (to - shared), data + j, CHUNK);
        }
    }
    const tgl_shared_access access = {
        machine->now->epoch, 0, b->phase, copy->site,
        (uint16_t)(TGL_SIM_THREADS_MAX + (b - machine->now->mbarriers))};
    tgl_shared_arrive(machine, shared - machine->launch->module->shared_base,
                      (size_t)rows_of(map) * bytes, &access);
}
