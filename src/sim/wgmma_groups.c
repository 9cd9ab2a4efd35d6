/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma: products that the 128 threads of a warpgroup compute together. The right operand is in
 * shared memory, and the left one is in shared memory or in registers. The values are computed when
 * all threads have reached the instruction, and are stored in a `tile`. Each thread receives its
 * elements when it waits for the group of the wgmma. Until then
 * - its accumulator contains signalling NaNs and must not be accessed;
 * - the operands in shared memory count as being read;
 * - the operands in registers must not be written.
 */
#include "sim/wgmma_groups.h"

#include "sim/clocks.h"
#include "sim/meetings.h"
#include "sim/shadow_shared.h"
#include "sim/tensor_cores.h"
#include "sim/wgmma_matrix.h"
#include "sim/wgmma_registers.h"

#include <stdlib.h>
#include <string.h>

enum {
    M = 64,            /* rows of an instruction's tile */
    N_MAX = 256,       /* maximum number of columns of a tile */
    FRAGMENT_K = 8,    /* K of one wgmma whose left operand is in registers, in elements (TF32, the
                          only type that is supported for such operands) */
    REGISTERS = 65536, /* 32-bit registers per SM (CUDA C++ programming guide, capability 9.0) */
};

/* The results of wgmma instructions of a warpgroup that have not been delivered to the accumulator
 * registers, because not all threads have waited for them. */
typedef struct tile {
    int n;                     /* columns of the accumulator; 0: the entry is unused */
    float *acc[TGL_WARPGROUP]; /* each thread's registers; NULL: the thread has received its
                                  elements */
    int missing;               /* number of threads that have not received their elements */
    int64_t group;             /* number of the group of the latest wgmma into this tile */
    const void *pc;            /* source location of the latest wgmma */
    union {
        float sums[M * N_MAX];
        uint32_t integers[M * N_MAX]; /* sums of I8 */
    };
} tile;

typedef struct tgl_sim_warpgroup {
    tile tiles[TGL_WGMMA_ACCUMULATORS];
    uint32_t *known;  /* minimum of its threads' vector clocks (clocks.h), entry by entry */
    uint32_t version; /* machine->clock_version for which `known` was computed; 0: none */
    uint32_t left[M * TGL_TENSOR_K_MAX], right[TGL_TENSOR_K_MAX * N_MAX];
    int registers; /* registers per thread that setmaxnreg has set; 0: as compiled */
} tgl_sim_warpgroup;

/* The operands of a thread, on its stack until the instruction has been executed. */
typedef struct tgl_wgmma_operands {
    bool is_done;
    float *acc;
    const unsigned *left_fragment; /* left operand in TGL_WGMMA_FRAGMENT registers; NULL: `left`
                                      describes it */
    unsigned long long left, right;
    int type, right_type, n, left_k_major, right_k_major, scale_d;
} tgl_wgmma_operands;

/* ---- Warpgroups ------------------------------------------------------------------------------ */

static unsigned first_of(const tgl_sim_thread *thread)
{
    return thread->index / TGL_WARPGROUP * TGL_WARPGROUP;
}

void tgl_wgmma_free_block(tgl_sim_block *block)
{
    for (unsigned i = 0; block->warpgroups != NULL && i < TGL_SIM_THREADS_MAX / TGL_WARPGROUP; i++)
        free(block->warpgroups[i].known);
    free(block->warpgroups);
    block->warpgroups = NULL;
}

void tgl_wgmma_start_block(tgl_machine *machine)
{
    tgl_sim_warpgroup *groups = machine->now->warpgroups;
    for (unsigned i = 0; groups != NULL && i < TGL_SIM_THREADS_MAX / TGL_WARPGROUP; i++) {
        for (int j = 0; j < TGL_WGMMA_ACCUMULATORS; j++)
            groups[i].tiles[j].n = 0;
        free(groups[i].known);
        groups[i].known = NULL;
        groups[i].version = 0;
        groups[i].registers = 0;
    }
}

/* The warpgroup of the current thread. */
static tgl_sim_warpgroup *warpgroup_of(tgl_machine *machine)
{
    tgl_sim_block *block = machine->now;
    if (block->warpgroups == NULL)
        block->warpgroups = calloc(TGL_SIM_THREADS_MAX / TGL_WARPGROUP, sizeof *block->warpgroups);
    if (block->warpgroups == NULL) tgl_machine_give_up(machine);
    return &block->warpgroups[machine->current->index / TGL_WARPGROUP];
}

/* The element-by-element minimum of the clocks of the warpgroup's threads. Accesses up to the times
 * in this minimum are ordered before the next access of every thread of the warpgroup. */
static const uint32_t *known_by(tgl_machine *machine, tgl_sim_warpgroup *group)
{
    const unsigned first = first_of(machine->current);
    if (group->known == NULL) group->known = malloc(machine->clock_row * sizeof *group->known);
    if (group->known == NULL) tgl_machine_give_up(machine);
    if (group->version == machine->clock_version) return group->known;
    memcpy(group->known, tgl_clock_of(machine, machine->now, first),
           machine->clock_row * sizeof *group->known);
    for (unsigned i = 1; i < TGL_WARPGROUP; i++) {
        const uint32_t *clock = tgl_clock_of(machine, machine->now, first + i);
        for (size_t j = 0; j < machine->clock_row; j++)
            group->known[j] = clock[j] < group->known[j] ? clock[j] : group->known[j];
    }
    group->version = machine->clock_version;
    return group->known;
}

/* ---- Accumulators ---------------------------------------------------------------------------- */

static int row_of(unsigned thread, int i)
{
    return (int)(thread / TGL_WARP * 16 + thread % TGL_WARP / 4) + 8 * (i / 2 % 2);
}

static int column_of(unsigned thread, int i)
{
    return 8 * (i / 4) + 2 * (int)(thread % 4) + i % 2;
}

static void check_same(tgl_machine *machine, const tgl_wgmma_operands *own,
                       const tgl_wgmma_operands *other, const tgl_sim_thread *thread,
                       const void *pc)
{
    const bool is_same = own->left == other->left && own->right == other->right &&
                         own->n == other->n && own->scale_d == other->scale_d &&
                         (own->left_fragment == NULL) == (other->left_fragment == NULL);
    if (!is_same)
        tgl_machine_fault(
            machine, pc, "wgmma with operands that differ from those of thread %u of the warpgroup",
            thread->index);
    if (thread->wgmmas.groups != machine->current->wgmmas.groups)
        tgl_machine_fault(
            machine, pc,
            "wgmma in a warpgroup whose thread %u has committed %lld groups, and this "
            "thread %lld",
            thread->index, (long long)thread->wgmmas.groups,
            (long long)machine->current->wgmmas.groups);
}

/* to (64 x 8) := the left operand that the threads of the warpgroup hold in registers. */
static void read_fragments(tgl_machine *machine, uint32_t *to, const void *pc)
{
    tgl_sim_thread *threads = &machine->now->threads[first_of(machine->current)];
    for (unsigned i = 0; i < TGL_WARPGROUP; i++) {
        const unsigned *fragment = threads[i].wgmma->left_fragment;
        tgl_wgmma_use_fragment(machine, &threads[i], fragment, pc);
        for (unsigned j = 0; j < TGL_WGMMA_FRAGMENT; j++) {
            const unsigned row = i / TGL_WARP * 16 + i % TGL_WARP / 4 + j % 2 * 8,
                           k = i % 4 + j / 2 * 4;
            to[row * FRAGMENT_K + k] = fragment[j];
        }
    }
}

/* ---- Tiles in flight ------------------------------------------------------------------------- */

/* The tile that will deliver its values to these registers; NULL: there is none. */
static tile *find_tile(tgl_sim_warpgroup *group, unsigned thread, const float *acc)
{
    for (int i = 0; i < TGL_WGMMA_ACCUMULATORS; i++)
        if (group->tiles[i].n > 0 && group->tiles[i].acc[thread % TGL_WARPGROUP] == acc)
            return &group->tiles[i];
    return NULL;
}

/* Starts a tile: moves the values of the accumulator registers to it, and fills the registers with
 * signalling NaNs. */
static tile *open_tile(tgl_machine *machine, tgl_sim_warpgroup *group, int n, const void *pc)
{
    const uint32_t poison = 0x7fa00000; /* a signalling NaN */
    tgl_sim_thread *threads = &machine->now->threads[first_of(machine->current)];
    tile *t = group->tiles;
    while (t < group->tiles + TGL_WGMMA_ACCUMULATORS && t->n > 0)
        t++;
    if (t == group->tiles + TGL_WGMMA_ACCUMULATORS)
        tgl_machine_fault(machine, pc,
                          "more than %d accumulators of a warpgroup are in flight, which is the "
                          "maximum of the simulator",
                          TGL_WGMMA_ACCUMULATORS);
    t->n = n;
    t->missing = TGL_WARPGROUP;
    for (unsigned i = 0; i < TGL_WARPGROUP; i++) {
        float *acc = t->acc[i] = threads[i].wgmma->acc;
        for (int j = 0; j < n / 2; j++) {
            memcpy(&t->sums[row_of(i, j) * n + column_of(i, j)], &acc[j], sizeof *acc);
            memcpy(&acc[j], &poison, sizeof poison);
        }
        threads[i].wgmmas.in_flight++;
    }
    return t;
}

static tile *tile_of(tgl_machine *machine, tgl_sim_warpgroup *group, const tgl_wgmma_operands *own,
                     const void *pc)
{
    const unsigned first = first_of(machine->current);
    tile *t = find_tile(group, machine->current->index, own->acc);
    for (unsigned i = 0; i < TGL_WARPGROUP; i++) {
        const tgl_sim_thread *thread = &machine->now->threads[first + i];
        if (find_tile(group, i, thread->wgmma->acc) != t || (t != NULL && t->n != own->n))
            tgl_machine_fault(machine, pc,
                              "wgmma with an accumulator that thread %u has waited for and other "
                              "threads have not, or that has another shape there",
                              thread->index);
    }
    return t != NULL ? t : open_tile(machine, group, own->n, pc);
}

/* ---- wgmma ----------------------------------------------------------------------------------- */

static void check_all(tgl_machine *machine, const tgl_wgmma_operands *own, const void *pc)
{
    tgl_sim_thread *threads = &machine->now->threads[first_of(machine->current)];
    for (unsigned i = 0; i < TGL_WARPGROUP; i++) {
        check_same(machine, own, threads[i].wgmma, &threads[i], pc);
        tgl_wgmma_check_fence(machine, &threads[i], threads[i].wgmma->acc, own->n, pc);
    }
}

static void trace_wgmma(tgl_machine *machine, const tgl_wgmma_operands *own, uint32_t site, int k,
                        const tgl_wgmma_matrix *left, const tgl_wgmma_matrix *right)
{
    tgl_trace_step *step = tgl_tally_step(&machine->tally, site);
    if (step == NULL) return;
    step->type = own->type;
    step->m = M;
    step->n = own->n;
    step->k = k;
    step->tiles[0] = tgl_wgmma_window(machine) + left->start;
    step->tiles[1] = tgl_wgmma_window(machine) + right->start;
}

static const tgl_tensor_type tensor_types[] = {
    [TGL_F32] = TGL_TENSOR_TF32,     [TGL_F16] = TGL_TENSOR_F16,      [TGL_BF16] = TGL_TENSOR_BF16,
    [TGL_F8_E4M3] = TGL_TENSOR_E4M3, [TGL_F8_E5M2] = TGL_TENSOR_E5M2,
};

/* Executes a wgmma once, for the whole warpgroup. */
static void issue_wgmma(tgl_machine *machine, const tgl_wgmma_operands *own, const void *pc)
{
    const unsigned element = (unsigned)tgl_type_size((tgl_type)own->type);
    const int k = TGL_WGMMA_K_BYTES / (int)element;
    const tgl_wgmma_matrix left = tgl_wgmma_decode(own->left, element, own->left_k_major != 0, M);
    const tgl_wgmma_matrix right =
        tgl_wgmma_decode(own->right, element, own->right_k_major != 0, own->n);
    const bool has_fragments = own->left_fragment != NULL;
    check_all(machine, own, pc);
    if (!has_fragments) tgl_wgmma_check_matrix(machine, &left, "left", pc);
    tgl_wgmma_check_matrix(machine, &right, "right", pc);
    tgl_sim_warpgroup *group = warpgroup_of(machine);
    tile *t = tile_of(machine, group, own, pc);
    const int64_t number = machine->current->wgmmas.groups;
    tgl_shared_access access = {
        machine->now->epoch, 0, (uint32_t)number + 1, 0,
        (uint16_t)tgl_async_reader_of(machine, true, first_of(machine->current), pc)};
    const tgl_wgmma_matrix *first = has_fragments ? &right : &left;
    const int64_t bytes = (int64_t)((has_fragments ? 0 : M) + own->n) * TGL_WGMMA_K_BYTES;
    const size_t offset =
        tgl_wgmma_window(machine) + first->start - machine->launch->module->shared_base;
    const int array = tgl_shared_check_bounds(machine, offset, TGL_WGMMA_CHUNK, false, pc);
    access.site = tgl_machine_count(machine, pc, TGL_TENSOR_LOAD, array, bytes, 0);
    trace_wgmma(machine, own, access.site, k, first, &right);
    const uint32_t *known = known_by(machine, group);
    if (has_fragments)
        read_fragments(machine, group->left, pc);
    else
        tgl_wgmma_read_matrix(machine, &left, &access, known, group->left, k, 1, pc);
    tgl_wgmma_read_matrix(machine, &right, &access, known, group->right, 1, own->n, pc);
    if (!own->scale_d) memset(t->sums, 0, sizeof *t->sums * (size_t)(M * own->n));
    if (own->type == TGL_I8)
        tgl_tensor_multiply_s8(M, own->n, k, group->left, group->right, t->integers);
    else
        tgl_tensor_multiply_mixed(element == 1 ? &tgl_tensor_hopper_f8 : &tgl_tensor_hopper,
                                  tensor_types[own->type], tensor_types[own->right_type], M, own->n,
                                  k, group->left, group->right, t->sums);
    t->group = number;
    t->pc = pc;
}

void tgl_wgmma(tgl_machine *machine, float *acc, const unsigned *left_fragment,
               unsigned long long left, unsigned long long right, int type, int right_type, int n,
               int left_k_major, int right_k_major, int scale_d, const void *pc)
{
    tgl_wgmma_operands own = {false,      acc, left_fragment, left,          right,  type,
                              right_type, n,   left_k_major,  right_k_major, scale_d};
    if (left_fragment != NULL && type != TGL_F32)
        tgl_machine_fault(machine, pc,
                          "wgmma with left fragments of another type than TF32, which the "
                          "simulator does not support");
    if (left_fragment != NULL && !tgl_machine_is_register(machine, left_fragment))
        tgl_machine_fault(machine, pc,
                          "the left fragments of a wgmma are not in registers: they must "
                          "be an array of the thread");
    if (tgl_type_size((tgl_type)type) == 1 && (!left_k_major || !right_k_major))
        tgl_machine_fault(machine, pc, "wgmma of 8-bit types with an operand that is not K-major");
    if (type == TGL_I8 && n > 32 && n % 16 != 0)
        tgl_machine_fault(machine, pc,
                          "wgmma of int8 with %d columns, not a multiple of 16 above 32", n);
    if (n < 8 || n > N_MAX || n % 8 != 0)
        tgl_machine_fault(machine, pc, "wgmma of %d columns, not a multiple of 8 from 8 to 256", n);
    if (!tgl_machine_is_register(machine, acc))
        tgl_machine_fault(machine, pc,
                          "the accumulator of a wgmma is not in registers: it must be an array of "
                          "the thread");
    tgl_clocks_need(machine);
    machine->current->wgmma = &own;
    tgl_meet_warpgroup(machine, "wgmma", pc);
    if (own.is_done) return;
    issue_wgmma(machine, &own, pc);
    for (unsigned i = 0; i < TGL_WARPGROUP; i++)
        machine->now->threads[first_of(machine->current) + i].wgmma->is_done = true;
}

void tgl_wgmma_commit(tgl_machine *machine)
{
    machine->current->wgmmas.groups++;
}

/* Writes the thread's elements of a tile to its registers. */
static void deliver_tile(tgl_sim_thread *thread, tile *t)
{
    const unsigned own = thread->index % TGL_WARPGROUP;
    for (int i = 0; i < t->n / 2; i++)
        memcpy(&t->acc[own][i], &t->sums[row_of(own, i) * t->n + column_of(own, i)], sizeof(float));
    t->acc[own] = NULL;
    thread->wgmmas.in_flight--;
    if (--t->missing == 0) t->n = 0;
}

void tgl_wgmma_wait(tgl_machine *machine, int pending)
{
    tgl_sim_thread *thread = machine->current;
    tgl_sim_wgmma_thread *w = &thread->wgmmas;
    if (w->groups - pending > w->done) w->done = w->groups - pending;
    if (machine->now->warpgroups == NULL || !machine->has_clocks) return;
    tgl_async_reader_done(machine, true, first_of(thread), (uint32_t)w->done);
    tgl_sim_warpgroup *group = warpgroup_of(machine);
    for (int i = 0; i < TGL_WGMMA_ACCUMULATORS; i++) {
        tile *t = &group->tiles[i];
        if (t->n > 0 && t->group < w->done && t->acc[thread->index % TGL_WARPGROUP] != NULL)
            deliver_tile(thread, t);
    }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static void in_flight_fault(tgl_machine *machine, const tile *t, bool is_write, const void *pc)
{
    tgl_machine_fault(machine, pc, "%s an accumulator of the wgmma at %s, %s", tgl_verb(is_write),
                      tgl_sim_place(machine->launch->module, t->pc).text,
                      t->group >= machine->current->wgmmas.groups
                          ? "which no wgmma_commit() follows"
                          : "which has not been waited for");
}

void tgl_wgmma_check_register(tgl_machine *machine, const char *address, unsigned bytes,
                              bool is_write, const void *pc)
{
    const char *end = address + bytes;
    tgl_sim_wgmma_thread *w = &machine->current->wgmmas;
    const unsigned own = machine->current->index % TGL_WARPGROUP;
    tgl_wgmma_touch_accumulators(w, address, end);
    if (is_write) tgl_wgmma_check_fragments(machine, address, end, pc);
    if (w->in_flight == 0) return;
    const tgl_sim_warpgroup *group = warpgroup_of(machine);
    for (int i = 0; i < TGL_WGMMA_ACCUMULATORS; i++) {
        const tile *t = &group->tiles[i];
        const char *acc = t->n > 0 ? (const char *)t->acc[own] : NULL;
        if (acc != NULL && end > acc && address < acc + (size_t)t->n / 2 * sizeof(float))
            in_flight_fault(machine, t, is_write, pc);
    }
}

void tgl_wgmma_check_end(tgl_machine *machine)
{
    const tgl_sim_block *block = machine->now;
    for (unsigned i = 0; block->warpgroups != NULL && i < machine->launch->threads / TGL_WARPGROUP;
         i++)
        for (int j = 0; j < TGL_WGMMA_ACCUMULATORS; j++) {
            const tile *t = &block->warpgroups[i].tiles[j];
            if (t->n == 0) continue;
            tgl_machine_fault_of(machine, &block->threads[i * TGL_WARPGROUP], t->pc,
                                 "has left the kernel, and no thread has waited for this wgmma");
            return;
        }
}

/* ---- Registers ------------------------------------------------------------------------------- */

/* Executes setmaxnreg. On a GPU, setmaxnreg waits until the registers are available. If the
 * warpgroups of the block ask for more than the SM has, it would wait for ever, and an error is
 * reported here. */
void tgl_set_registers(tgl_machine *machine, int count, const void *pc)
{
    const unsigned groups = machine->launch->threads / TGL_WARPGROUP;
    int total = 0;
    if (count < 24 || count > 256 || count % 8 != 0)
        tgl_machine_fault(machine, pc,
                          "setmaxnreg of %d registers, not a multiple of 8 from 24 to 256", count);
    tgl_meet_warpgroup(machine, "setmaxnreg", pc);
    warpgroup_of(machine)->registers = count;
    for (unsigned i = 0; i < groups; i++) {
        if (machine->now->warpgroups[i].registers == 0) return;
        total += machine->now->warpgroups[i].registers * TGL_WARPGROUP;
    }
    if (total > REGISTERS)
        tgl_machine_fault(machine, pc,
                          "setmaxnreg leaves the block with %d registers, but an SM has %d", total,
                          REGISTERS);
}
