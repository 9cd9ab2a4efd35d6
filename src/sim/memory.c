/* SPDX-License-Identifier: Apache-2.0
 *
 * The books on memory: which addresses a kernel may touch, what has been written, and which threads
 * touched it since the last barrier. Every access of every thread comes here before it happens.
 */
#include "sim/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARP = 32,
    PLACE = 160,
    FAR = 1 << 30,       /* an address so far from each matrix means none of them */
    OVERRUN = 16 * 1024, /* bytes behind shared memory that are told as its overrun */
};

static const char *site_place(const tgl_machine *machine, uint32_t site, char text[PLACE])
{
    return tgl_sim_place(machine->launch->module, machine->tally.sites[site].pc, text, PLACE);
}

/* ---- Start ----------------------------------------------------------------------------------- */

static bool reserve(void **memory, size_t *room, size_t count, size_t element)
{
    if (*room >= count) return true;
    free(*memory);
    *memory = calloc(count, element);
    *room = *memory != NULL ? count : 0;
    return *memory != NULL;
}

static bool reserve_block(const tgl_sim_launch *launch, tgl_sim_block *block)
{
    const size_t size = launch->module->shared_size;
    void *words = block->words, *shared = block->shared;
    const bool ok =
        reserve(&words, &block->word_room, size / 4 + 1, sizeof *block->words) &&
        (launch->cluster == 1 || reserve(&shared, &block->shared_room, size, sizeof(char)));
    block->words = words;
    block->shared = shared;
    return ok;
}

bool tgl_memory_start_launch(tgl_machine *machine)
{
    const tgl_sim_launch *l = machine->launch;
    const size_t elements = (size_t)l->m * (size_t)l->n * (size_t)l->matrices[TGL_SIM_C].batch;
    void *c_words = machine->c_words;
    for (unsigned i = 0; i < l->cluster; i++)
        if (!reserve_block(l, &machine->blocks[i])) return false;
    const bool ok = reserve(&c_words, &machine->c_word_room, elements, sizeof *machine->c_words);
    machine->c_words = c_words;
    if (ok) memset(c_words, 0, elements * sizeof *machine->c_words);
    return ok;
}

void tgl_memory_start_block(tgl_machine *machine)
{
    const tgl_sim_module *module = machine->launch->module;
    /* The last word may be one that shared memory fills in part. */
    memset(machine->now->words, 0, (module->shared_size / 4 + 1) * sizeof(tgl_shared_word));
    memset(module->image->shared_begin, 0xff,
           module->shared_size); /* NaN, should one slip through */
}

/* ---- Names of places ------------------------------------------------------------------------- */

/* "As + 128 bytes" */
static const char *describe_shared(const tgl_sim_module *module, size_t offset, char text[PLACE])
{
    const tgl_shared_array *before = NULL;
    for (int i = 0; i < module->array_count; i++) {
        const tgl_shared_array *array = &module->arrays[i];
        if (array->begin <= offset && (before == NULL || array->begin > before->begin))
            before = array;
    }
    if (before == NULL)
        snprintf(text, PLACE, "shared memory before the first array");
    else if (offset < before->end)
        snprintf(text, PLACE, "%s + %zu bytes", before->name, offset - before->begin);
    else
        snprintf(text, PLACE, "%zu bytes past the end of %s, which has %zu bytes",
                 offset - before->end, before->name, before->end - before->begin);
    return text;
}

static uintptr_t distance_to_range(uintptr_t address, uintptr_t begin, uintptr_t end)
{
    if (address < begin) return begin - address;
    return address >= end ? address - end + 1 : 0;
}

/* The index of the matrix of a batch of pointers that an address is nearest to. */
static uintptr_t nearest_of_pointers(const tgl_sim_matrix *x, uintptr_t address)
{
    uintptr_t nearest = 0, least = UINTPTR_MAX;
    for (int64_t i = 0; i < x->batch && least > 0; i++) {
        const uintptr_t base = (uintptr_t)x->bases[i];
        const uintptr_t far = distance_to_range(address, base, base + (uintptr_t)x->extent);
        if (far >= least) continue;
        nearest = (uintptr_t)i;
        least = far;
    }
    return nearest;
}

/* From a batch of matrices, as a whole where they are a stride apart. */
static uintptr_t distance_to(const tgl_sim_matrix *x, uintptr_t address)
{
    const uintptr_t extent = (uintptr_t)x->extent;
    if (x->bases != NULL) {
        const uintptr_t base = (uintptr_t)x->bases[nearest_of_pointers(x, address)];
        return distance_to_range(address, base, base + extent);
    }
    return distance_to_range(address, x->base,
                             x->base + (uintptr_t)((x->batch - 1) * x->stride_bytes) + extent);
}

/* The matrix that an address lies in or is nearest to; NULL if there is none. *distance: bytes
 * between them, 0 if it is within the matrix's extent. */
static const tgl_sim_matrix *nearest_matrix(const tgl_sim_launch *l, uintptr_t address,
                                            uintptr_t *distance)
{
    const tgl_sim_matrix *nearest = NULL;
    *distance = UINTPTR_MAX;
    for (int i = 0; i < TGL_SIM_MATRICES; i++) {
        const tgl_sim_matrix *x = &l->matrices[i];
        if (x->extent == 0) continue;
        const uintptr_t far = distance_to(x, address);
        if (far >= *distance) continue;
        nearest = x;
        *distance = far;
    }
    return nearest;
}

/* Whether the matrices of a batch, which are a stride apart, share addresses. */
static bool are_interlaced(const tgl_sim_matrix *x)
{
    return x->bases == NULL && x->batch > 1 && x->stride_bytes > 0 && x->stride_bytes < x->extent;
}

/* Whether they do so side by side, a row of each within ld, and share no element. */
static bool are_side_by_side(const tgl_sim_matrix *x)
{
    return are_interlaced(x) && x->stride_bytes >= x->row_bytes &&
           (x->batch - 1) * x->stride_bytes + x->row_bytes <= x->ld_bytes;
}

/* The matrix of a batch that an address is in or behind, or of pointers the nearest. */
static uintptr_t index_in_batch(const tgl_sim_matrix *x, uintptr_t address)
{
    if (x->bases != NULL) return nearest_of_pointers(x, address);
    if (address < x->base || x->batch == 1 || x->stride_bytes == 0) return 0;
    uintptr_t offset = address - x->base;
    if (are_side_by_side(x)) offset %= (uintptr_t)x->ld_bytes;
    const uintptr_t index = offset / (uintptr_t)x->stride_bytes;
    return index < (uintptr_t)x->batch ? index : (uintptr_t)x->batch - 1;
}

/* Where an address lies in that matrix, from its base. */
static uintptr_t offset_in_matrix(const tgl_sim_matrix *x, uintptr_t address, uintptr_t index)
{
    if (x->bases != NULL) return address - (uintptr_t)x->bases[index];
    return address - x->base - index * (uintptr_t)x->stride_bytes;
}

/* "row 3, column 64 of A, which is 32 x 64", or where the address lies otherwise. */
static void describe_address(const tgl_sim_launch *l, uintptr_t address, char text[PLACE])
{
    uintptr_t distance;
    const tgl_sim_matrix *nearest = nearest_matrix(l, address, &distance);
    const uintptr_t shared = address - l->module->shared_base;
    if (distance > 0 && shared < l->module->shared_size + OVERRUN) {
        describe_shared(l->module, shared, text);
        return;
    }
    if (nearest == NULL || distance > FAR) {
        snprintf(text, PLACE, "address %#llx, which is in no matrix", (unsigned long long)address);
        return;
    }
    const char *name = nearest->name;
    const int64_t ld = nearest->ld_bytes;
    const int64_t offset =
        (int64_t)offset_in_matrix(nearest, address, index_in_batch(nearest, address));
    const int64_t columns = nearest->row_bytes / 4;
    if (offset < 0)
        snprintf(text, PLACE, "%lld bytes before the start of %s", (long long)-offset, name);
    else if (offset >= nearest->extent)
        snprintf(text, PLACE, "%lld bytes past the end of %s, which is %lld x %lld",
                 (long long)(offset - nearest->extent), name, (long long)nearest->rows,
                 (long long)columns);
    else
        snprintf(text, PLACE, "row %lld, column %lld of %s, which is %lld x %lld",
                 (long long)(offset / ld), (long long)(offset % ld / 4), name,
                 (long long)nearest->rows, (long long)columns);
}

static const char *verb(bool is_write)
{
    return is_write ? "writes" : "reads";
}

/* ---- Matrices -------------------------------------------------------------------------------- */

/* Whether the bytes are elements of the matrix: within its extent, and within a row. Where the
 * matrices of a batch share elements, as A's and B's may, rows are not told apart. */
static bool is_in_matrix(const tgl_sim_matrix *x, uintptr_t address, unsigned bytes)
{
    if (x->extent == 0) return false;
    if (are_interlaced(x) && !are_side_by_side(x))
        return address - x->base <
               (uintptr_t)((x->batch - 1) * x->stride_bytes + x->extent) - bytes + 1;
    const uintptr_t offset = offset_in_matrix(x, address, index_in_batch(x, address));
    if (offset >= (uintptr_t)x->extent) return false;
    return (int64_t)(offset % (uintptr_t)x->ld_bytes) + (int64_t)bytes <= x->row_bytes;
}

static void matrix_fault(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                         const char *why, const void *pc)
{
    char where[PLACE];
    describe_address(machine->launch, address, where);
    tgl_machine_fault(machine, pc, "%s %u bytes at %s%s%s", verb(is_write), bytes, where,
                      why != NULL ? ", but " : "", why != NULL ? why : "");
}

/* The element of C at an address in it. */
static tgl_c_word *c_word_at(tgl_machine *machine, uintptr_t address)
{
    const tgl_sim_launch *l = machine->launch;
    const tgl_sim_matrix *c = &l->matrices[TGL_SIM_C];
    const uintptr_t index = index_in_batch(c, address), n = (uintptr_t)l->n;
    const uintptr_t offset = offset_in_matrix(c, address, index), ld = (uintptr_t)c->ld_bytes;
    return &machine->c_words[(index * (uintptr_t)l->m + offset / ld) * n + offset % ld / 4];
}

/* An element of C that another thread wrote is out of bounds until a barrier of the same block. */
static void check_c(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                    uint32_t site, const void *pc)
{
    const tgl_sim_thread *thread = machine->current;
    const char *taboo = machine->launch->matrices[TGL_SIM_C].taboo;
    tgl_c_word *word = c_word_at(machine, address);
    for (unsigned i = 0; i * 4 < bytes; i++, word++) {
        const bool is_ours =
            word->block == (uint32_t)machine->now->number + 1 &&
            (word->thread == thread->index || word->epoch != (uint16_t)machine->now->epoch);
        if (word->block != 0 && !is_ours) {
            char where[PLACE], place[PLACE];
            describe_address(machine->launch, address + 4 * i, where);
            tgl_machine_fault(machine, pc, "race: %s %s, which thread %u of block %u writes at %s",
                              verb(is_write), where, word->thread, word->block - 1,
                              site_place(machine, word->site, place));
        }
        if (!is_write && word->block == 0 && taboo != NULL)
            matrix_fault(machine, address + 4 * i, 4, false, taboo, pc);
        if (is_write)
            *word = (tgl_c_word){(uint32_t)machine->now->number + 1, (uint16_t)thread->index,
                                 (uint16_t)machine->now->epoch, site};
    }
}

/* Checks an access against all but the other threads. The matrix: TGL_SIM_A and so on. */
static int check_matrix(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                        const void *pc)
{
    const tgl_sim_matrix *matrices = machine->launch->matrices;
    if (is_in_matrix(&matrices[TGL_SIM_C], address, bytes)) return TGL_SIM_C;
    if (is_in_matrix(&matrices[TGL_SIM_WORKSPACE], address, bytes)) return TGL_SIM_WORKSPACE;
    for (int i = 0; i < TGL_SIM_MATRICES; i++) {
        if (!is_in_matrix(&matrices[i], address, bytes)) continue;
        if (is_write) matrix_fault(machine, address, bytes, true, "it is const", pc);
        if (matrices[i].taboo != NULL)
            matrix_fault(machine, address, bytes, false, matrices[i].taboo, pc);
        return i;
    }
    matrix_fault(machine, address, bytes, is_write, NULL, pc);
    return -1;
}

/* ---- Shared memory --------------------------------------------------------------------------- */

/* All bytes are in one __shared__ array: its index. */
static int check_shared_bounds(tgl_machine *machine, size_t offset, unsigned bytes, bool is_write,
                               const void *pc)
{
    const tgl_sim_module *module = machine->launch->module;
    const size_t end = offset + bytes - 1;
    const uint16_t first = module->array_of_word[offset / 4];
    const uint16_t last = end < module->shared_size ? module->array_of_word[end / 4] : 0;
    if (first == 0 || first != last) {
        char where[PLACE];
        describe_shared(machine->launch->module, first == 0 ? offset : end, where);
        tgl_machine_fault(machine, pc, "%s %u bytes of shared memory at %s", verb(is_write), bytes,
                          where);
    }
    return first - 1;
}

/* Whether something that a thread of this block did is ordered before what the current thread does:
 * by a barrier, by a warp barrier that both passed, or because it is the same thread. */
static bool is_before(const tgl_machine *machine, unsigned thread, uint32_t epoch,
                      uint32_t warp_epoch)
{
    const tgl_sim_thread *now = machine->current;
    return epoch != machine->now->epoch || thread == now->index ||
           (thread / WARP == now->index / WARP && warp_epoch < now->warp_epoch);
}

static void race(tgl_machine *machine, size_t offset, bool is_write, unsigned other,
                 bool other_writes, uint32_t other_site, const void *pc)
{
    char where[PLACE], place[PLACE];
    machine->deferred[0] = '\0';
    tgl_machine_fault(machine, pc, "race: %s %s, which thread %u %s at %s with no barrier between",
                      verb(is_write), describe_shared(machine->launch->module, offset, where),
                      other, verb(other_writes), site_place(machine, other_site, place));
}

static void remote_race(tgl_machine *machine, size_t offset, bool is_write, uint32_t other_site,
                        const void *pc)
{
    char where[PLACE], place[PLACE];
    machine->deferred[0] = '\0';
    tgl_machine_fault(machine, pc,
                      "race: %s %s, which another block of the cluster %s at %s with no barrier of "
                      "the cluster between",
                      verb(is_write), describe_shared(machine->launch->module, offset, where),
                      verb(!is_write), site_place(machine, other_site, place));
}

static void check_awaited(tgl_machine *machine, const tgl_shared_word *word, size_t offset,
                          bool is_write, const void *pc)
{
    char where[PLACE], place[PLACE];
    if (!word->is_awaited) return;
    tgl_machine_fault(machine, pc,
                      "%s %s before the cp.async that thread %u issued at %s was waited for",
                      verb(is_write), describe_shared(machine->launch->module, offset, where),
                      word->copier, site_place(machine, word->copy_site, place));
}

static void read_word(tgl_machine *machine, tgl_shared_word *word, size_t offset, uint8_t mask,
                      uint32_t site, const void *pc)
{
    const tgl_sim_thread *thread = machine->current;
    check_awaited(machine, word, offset, false, pc);
    if ((word->has_data & mask) != mask) {
        char where[PLACE]; /* somebody may be about to: then it is a race */
        tgl_machine_defer_fault(machine, pc, "reads %s, which nobody has written",
                                describe_shared(machine->launch->module, offset, where));
    }
    if ((word->write_bytes & mask) != 0 &&
        !is_before(machine, word->writer, word->write_epoch, word->write_warp_epoch))
        race(machine, offset, false, word->writer, true, word->write_site, pc);
    /* Two readers are enough to find a race with any writer: he is not both. */
    if (word->read_epoch == machine->now->epoch && word->reader != thread->index) {
        word->other_epoch = machine->now->epoch;
        word->other_reader = (uint16_t)thread->index;
        word->other_site = site;
        word->read_bytes |= mask;
        return;
    }
    word->read_bytes = word->read_epoch == machine->now->epoch ? word->read_bytes | mask : mask;
    word->read_epoch = machine->now->epoch;
    word->read_warp_epoch = thread->warp_epoch;
    word->reader = (uint16_t)thread->index;
    word->read_site = site;
}

/* Races with those who touched the word since the last barrier. A second reader counts as one of no
 * warp epoch: his order within the warp is not kept. */
static void check_write(tgl_machine *machine, tgl_shared_word *word, size_t offset, uint8_t mask,
                        const void *pc)
{
    const unsigned index = machine->current->index;
    check_awaited(machine, word, offset, true, pc);
    if ((word->write_bytes & mask) != 0 &&
        !is_before(machine, word->writer, word->write_epoch, word->write_warp_epoch))
        race(machine, offset, true, word->writer, true, word->write_site, pc);
    if (word->remote_phase == machine->phase)
        remote_race(machine, offset, true, word->remote_site, pc);
    if ((word->read_bytes & mask) == 0) return;
    if (!is_before(machine, word->reader, word->read_epoch, word->read_warp_epoch))
        race(machine, offset, true, word->reader, false, word->read_site, pc);
    if (word->other_epoch == machine->now->epoch && word->other_reader != index &&
        word->other_reader / WARP != index / WARP)
        race(machine, offset, true, word->other_reader, false, word->other_site, pc);
}

static void write_word(tgl_machine *machine, tgl_shared_word *word, uint8_t mask, uint32_t site)
{
    const tgl_sim_thread *thread = machine->current;
    const bool is_same = word->write_epoch == machine->now->epoch && word->writer == thread->index;
    word->write_bytes = is_same ? word->write_bytes | mask : mask;
    word->write_epoch = machine->now->epoch;
    word->write_warp_epoch = thread->warp_epoch;
    word->write_phase = machine->phase;
    word->writer = (uint16_t)thread->index;
    word->write_site = site;
    word->has_data |= mask;
}

/* The bytes of a word that an access from `offset` on covers, as a mask. */
static uint8_t byte_mask(size_t offset, unsigned bytes)
{
    return bytes >= 4 ? 0xf : (uint8_t)(((1u << bytes) - 1) << offset % 4);
}

static void shared_access(tgl_machine *machine, size_t offset, unsigned bytes, bool is_write,
                          uint32_t site, const void *pc)
{
    const uint8_t mask = byte_mask(offset, bytes);
    tgl_shared_word *word = &machine->now->words[offset / 4];
    for (unsigned i = 0; i < bytes; i += 4, word++) {
        if (is_write) {
            check_write(machine, word, offset + i, mask, pc);
            write_word(machine, word, mask, site);
        } else {
            read_word(machine, word, offset + i, mask, site, pc);
        }
    }
}

/* ---- Any access ------------------------------------------------------------------------------ */

static void check_alignment(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                            const void *pc)
{
    if (address % bytes == 0) return;
    tgl_machine_fault(machine, pc, "%s %u bytes at once at an address that is no multiple of %u",
                      verb(is_write), bytes, bytes);
}

/* There is no memory to go on; does not come back. */
static void give_up(tgl_machine *machine)
{
    snprintf(machine->message, sizeof machine->message,
             "no memory to follow the kernel's accesses");
    machine->status = TGL_NO_MEMORY;
    for (;;)
        tgl_machine_wait(machine, TGL_THREAD_DONE, NULL);
}

/* Counts the access; the site's index. */
static uint32_t tally(tgl_machine *machine, tgl_access_kind kind, int target, unsigned bytes,
                      uintptr_t shared, uintptr_t global, const void *pc)
{
    tgl_sim_thread *thread = machine->current;
    uint32_t site;
    bool is_full;
    if (!tgl_tally_access(&machine->tally, pc, kind, target, (int)(thread->index % WARP),
                          tgl_sim_place_in_loops(&thread->loops), bytes, shared, global, &site,
                          &is_full)) {
        give_up(machine);
    }
    if (is_full) tgl_machine_wait(machine, TGL_THREAD_AT_WINDOW, pc);
    return site;
}

void tgl_memory_access(void *run, const void *pointer, unsigned bytes, int is_write, const void *pc)
{
    tgl_machine *machine = run;
    const uintptr_t address = (uintptr_t)pointer;
    if (address - (uintptr_t)machine->current->stack < machine->stack_size) return; /* registers */
    check_alignment(machine, address, bytes, is_write, pc);
    const tgl_sim_module *module = machine->launch->module;
    const size_t offset = address - module->shared_base;
    if (offset < module->shared_size) {
        const int array = check_shared_bounds(machine, offset, bytes, is_write, pc);
        const tgl_access_kind kind = is_write ? TGL_SHARED_STORE : TGL_SHARED_LOAD;
        const uint32_t site = tally(machine, kind, array, bytes, address, 0, pc);
        shared_access(machine, offset, bytes, is_write, site, pc);
        return;
    }
    const int matrix = check_matrix(machine, address, bytes, is_write, pc);
    const tgl_access_kind kind = is_write ? TGL_GLOBAL_STORE : TGL_GLOBAL_LOAD;
    const uint32_t site = tally(machine, kind, matrix, bytes, 0, address, pc);
    if (matrix == TGL_SIM_C) check_c(machine, address, bytes, is_write, site, pc);
}

/* A float of another block of the cluster, which is stopped. */
static float remote_load(tgl_machine *machine, tgl_sim_block *block, size_t offset, uint32_t site,
                         const void *pc)
{
    char where[PLACE];
    float value;
    tgl_shared_word *word = &block->words[offset / 4];
    describe_shared(machine->launch->module, offset, where);
    if (block->is_done)
        tgl_machine_fault(machine, pc, "reads %s of a block of the cluster that has ended", where);
    check_awaited(machine, word, offset, false, pc);
    if (word->has_data != 0xf)
        tgl_machine_fault(machine, pc,
                          "reads %s of another block of the cluster, which nobody has written",
                          where);
    if (word->write_phase == machine->phase)
        remote_race(machine, offset, false, word->write_site, pc);
    word->remote_phase = block->read_phase = machine->phase;
    word->remote_site = site;
    memcpy(&value, block->shared + offset, sizeof value);
    return value;
}

float tgl_memory_cluster_load(void *run, const float *shared, int rank, const void *pc)
{
    tgl_machine *machine = run;
    const tgl_sim_module *module = machine->launch->module;
    const size_t offset = (uintptr_t)shared - module->shared_base;
    const unsigned cluster = machine->launch->cluster;
    if (rank < 0 || (unsigned)rank >= cluster)
        tgl_machine_fault(machine, pc, "reads from block %d of a cluster of %u", rank, cluster);
    if (offset >= module->shared_size)
        tgl_machine_fault(machine, pc, "reads an address outside shared memory from a cluster");
    check_alignment(machine, (uintptr_t)shared, sizeof(float), false, pc);
    const int array = check_shared_bounds(machine, offset, sizeof(float), false, pc);
    const uint32_t site =
        tally(machine, TGL_SHARED_LOAD, array, sizeof(float), (uintptr_t)shared, 0, pc);
    tgl_sim_block *block = &machine->blocks[rank];
    if (block != machine->now) return remote_load(machine, block, offset, site, pc);
    shared_access(machine, offset, sizeof(float), false, site, pc);
    return *shared;
}

/* ---- cp.async -------------------------------------------------------------------------------- */

/* Puts a copy behind those in flight. */
static bool append_copy(tgl_sim_thread *thread, const tgl_sim_copy *copy)
{
    if (thread->first_copy == thread->copy_count) thread->first_copy = thread->copy_count = 0;
    if (thread->copy_count == thread->copy_room) {
        const int room = thread->copy_room > 0 ? 2 * thread->copy_room : 64;
        tgl_sim_copy *copies = realloc(thread->copies, (size_t)room * sizeof *copies);
        if (copies == NULL) return false;
        thread->copies = copies;
        thread->copy_room = room;
    }
    thread->copies[thread->copy_count++] = *copy;
    return true;
}

void tgl_memory_async_copy(void *run, void *shared, const void *global, int bytes, int valid_bytes,
                           const void *pc)
{
    tgl_machine *machine = run;
    const tgl_sim_module *module = machine->launch->module;
    const size_t offset = (uintptr_t)shared - module->shared_base;
    const uintptr_t source = valid_bytes > 0 ? (uintptr_t)global : 0;
    if ((bytes != 4 && bytes != 8 && bytes != 16) || valid_bytes < 0 || valid_bytes > bytes)
        tgl_machine_fault(machine, pc,
                          "cp.async of %d bytes, %d of them valid: it copies 4, 8 or 16", bytes,
                          valid_bytes);
    if (offset >= module->shared_size)
        tgl_machine_fault(machine, pc, "cp.async to an address outside shared memory");
    check_alignment(machine, (uintptr_t)shared, (unsigned)bytes, true, pc);
    const int array = check_shared_bounds(machine, offset, (unsigned)bytes, true, pc);
    if (source != 0) {
        check_alignment(machine, source, (unsigned)bytes, false, pc);
        check_matrix(machine, source, (unsigned)valid_bytes, false, pc);
    }
    const uint32_t site =
        tally(machine, TGL_ASYNC_COPY, array, (unsigned)bytes, (uintptr_t)shared, source, pc);
    for (int i = 0; i < bytes; i += 4) {
        tgl_shared_word *word = &machine->now->words[(offset + (size_t)i) / 4];
        check_write(machine, word, offset + (size_t)i, 0xf, pc);
        word->is_awaited = 1;
        word->copier = (uint16_t)machine->current->index;
        word->copy_site = site;
    }
    const tgl_sim_copy copy = {shared, global, bytes, valid_bytes, site, machine->current->groups};
    if (!append_copy(machine->current, &copy)) give_up(machine);
}

void tgl_memory_async_commit(void *run)
{
    tgl_machine *machine = run;
    machine->current->groups++;
}

/* The data arrives: from here on it is as if the thread had written it now. */
static void deliver(tgl_machine *machine, const tgl_sim_copy *copy)
{
    memset(copy->shared, 0, (size_t)copy->bytes);
    if (copy->valid_bytes > 0) memcpy(copy->shared, copy->global, (size_t)copy->valid_bytes);
    const size_t offset = (uintptr_t)copy->shared - machine->launch->module->shared_base;
    for (int i = 0; i < copy->bytes; i += 4) {
        tgl_shared_word *word = &machine->now->words[(offset + (size_t)i) / 4];
        word->is_awaited = 0;
        write_word(machine, word, 0xf, copy->site);
    }
}

void tgl_memory_async_wait(void *run, int groups_pending)
{
    tgl_machine *machine = run;
    tgl_sim_thread *thread = machine->current;
    while (thread->first_copy < thread->copy_count) {
        const tgl_sim_copy *copy = &thread->copies[thread->first_copy];
        if (copy->group >= thread->groups - groups_pending) break;
        deliver(machine, copy);
        thread->first_copy++;
    }
}
