/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel compiled for the simulator calls: the functions behind CUDA's words, and those by
 * which the compiler announces accesses (-fsanitize=thread) and blocks of code
 * (-fsanitize-coverage=trace-pc), in place of the sanitizers' own run times. All pass on to the
 * host. Compiled apart from the kernel, without these flags, and linked to it.
 */
#ifndef TGL_SIM_RUN_TIME_H
#define TGL_SIM_RUN_TIME_H

#include "sim/hooks.h"

#define TGL_SIM_PC __builtin_return_address(0)

typedef __SIZE_TYPE__ size_t;

/* Where code runs before the host has filled in the hooks: as the object is loaded. */
static tgl_sim_loops loops_at_load;

tgl_sim_hooks tgl_sim = {.loops = &loops_at_load};

/* ---- Where a thread is ----------------------------------------------------------------------- */

typedef struct uint3 {
    unsigned x, y, z;
} uint3;

static uint3 make_uint3(const unsigned *v)
{
    const uint3 r = {v[0], v[1], v[2]};
    return r;
}

uint3 tgl_sim_thread_index(void)
{
    return make_uint3(tgl_sim.thread);
}

uint3 tgl_sim_block_index(void)
{
    return make_uint3(tgl_sim.block);
}

uint3 tgl_sim_block_size(void)
{
    return make_uint3(tgl_sim.block_dim);
}

uint3 tgl_sim_grid_size(void)
{
    return make_uint3(tgl_sim.grid_dim);
}

/* ---- Accesses -------------------------------------------------------------------------------- */

void __tsan_init(void) {}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void) {}

#define TGL_SIM_ACCESS(name, bytes, is_write)                                                      \
    void name(void *address)                                                                       \
    {                                                                                              \
        tgl_sim.access(tgl_sim.run, address, bytes, is_write, TGL_SIM_PC);                         \
    }
TGL_SIM_ACCESS(__tsan_read1, 1, 0)
TGL_SIM_ACCESS(__tsan_read2, 2, 0)
TGL_SIM_ACCESS(__tsan_read4, 4, 0)
TGL_SIM_ACCESS(__tsan_read8, 8, 0)
TGL_SIM_ACCESS(__tsan_read16, 16, 0)
TGL_SIM_ACCESS(__tsan_write1, 1, 1)
TGL_SIM_ACCESS(__tsan_write2, 2, 1)
TGL_SIM_ACCESS(__tsan_write4, 4, 1)
TGL_SIM_ACCESS(__tsan_write8, 8, 1)
TGL_SIM_ACCESS(__tsan_write16, 16, 1)
/* "unaligned": the compiler could not prove the alignment; the host looks at the address. */
TGL_SIM_ACCESS(__tsan_unaligned_read2, 2, 0)
TGL_SIM_ACCESS(__tsan_unaligned_read4, 4, 0)
TGL_SIM_ACCESS(__tsan_unaligned_read8, 8, 0)
TGL_SIM_ACCESS(__tsan_unaligned_read16, 16, 0)
TGL_SIM_ACCESS(__tsan_unaligned_write2, 2, 1)
TGL_SIM_ACCESS(__tsan_unaligned_write4, 4, 1)
TGL_SIM_ACCESS(__tsan_unaligned_write8, 8, 1)
TGL_SIM_ACCESS(__tsan_unaligned_write16, 16, 1)

/* Structs of other sizes are moved in words. */
static void access_range(const char *p, size_t bytes, int is_write, const void *pc)
{
    for (; bytes >= 4; p += 4, bytes -= 4)
        tgl_sim.access(tgl_sim.run, p, 4, is_write, pc);
    for (; bytes > 0; p++, bytes--)
        tgl_sim.access(tgl_sim.run, p, 1, is_write, pc);
}

void __tsan_read_range(void *p, size_t bytes)
{
    access_range(p, bytes, 0, TGL_SIM_PC);
}

void __tsan_write_range(void *p, size_t bytes)
{
    access_range(p, bytes, 1, TGL_SIM_PC);
}

/* clang turns copies of structs into calls of one of these. volatile: or the loops would become
 * calls of what they define. */
static void *copy_range(void *to, const void *from, size_t bytes, const void *pc)
{
    access_range(from, bytes, 0, pc);
    access_range(to, bytes, 1, pc);
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

static void *set_range(void *to, int value, size_t bytes, const void *pc)
{
    access_range(to, bytes, 1, pc);
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = (char)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    return copy_range(to, from, bytes, TGL_SIM_PC);
}

void *memset(void *to, int value, size_t bytes)
{
    return set_range(to, value, bytes, TGL_SIM_PC);
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    return copy_range(to, from, bytes, TGL_SIM_PC);
}

void *__tsan_memset(void *to, int value, size_t bytes)
{
    return set_range(to, value, bytes, TGL_SIM_PC);
}

/* ---- Atomics and fences ---------------------------------------------------------------------- */

/* A load and a store to the counts; no other thread runs between the two. */
#define TGL_SIM_ATOMIC(name, result)                                                               \
    unsigned name(unsigned *address, unsigned value)                                               \
    {                                                                                              \
        tgl_sim.atomic(tgl_sim.run, address, TGL_SIM_PC);                                          \
        const unsigned old = *address;                                                             \
        *address = (result);                                                                       \
        return old;                                                                                \
    }
TGL_SIM_ATOMIC(atomicAdd, old + value)
TGL_SIM_ATOMIC(atomicOr, old | value)
TGL_SIM_ATOMIC(atomicAnd, old &value)
TGL_SIM_ATOMIC(atomicMax, old > value ? old : value)
TGL_SIM_ATOMIC(atomicExch, value)

void __threadfence(void)
{
    tgl_sim.fence(tgl_sim.run, TGL_SIM_PC);
}

void tgl_sim_wait_for_launches(void)
{
    tgl_sim.wait_for_launches(tgl_sim.run);
}

/* ---- Loops ----------------------------------------------------------------------------------- */

/* Another round of the loop that begins at `begin` and goes at least as far as `end`: of the
 * innermost loop, or of one that was not known yet. */
static void count_round(tgl_sim_loops *loops, const char *begin, const char *end)
{
    const unsigned long long mix = 0x9e3779b97f4a7c15u; /* odd: a product loses nothing */
    if (--loops->rounds_left == 0) tgl_sim.endless(tgl_sim.run, begin);
    while (loops->depth > 0 && loops->loop[loops->depth - 1].begin > begin)
        loops->depth--;
    if (loops->depth == 0 || loops->loop[loops->depth - 1].begin != begin) {
        if (loops->depth == TGL_SIM_LOOPS) return;
        tgl_sim_loop *loop = &loops->loop[loops->depth];
        loop->begin = loop->end = begin;
        loop->place = (tgl_sim_place_in_loops(loops) ^ (unsigned long long)begin) * mix;
        loops->depth++;
    }
    tgl_sim_loop *loop = &loops->loop[loops->depth - 1];
    if (end > loop->end) loop->end = end;
    loop->place = (loop->place + 1) * mix;
}

/* Called at the start of each block of code. At -O0 the blocks lie in the order of the source: a
 * step back starts another round of a loop, and a step past a loop's end leaves it. */
void __sanitizer_cov_trace_pc(void)
{
    tgl_sim_loops *loops = tgl_sim.loops;
    const char *pc = TGL_SIM_PC;
    if (pc <= loops->at) count_round(loops, pc, loops->at);
    while (loops->depth > 0 && pc > loops->loop[loops->depth - 1].end)
        loops->depth--;
    loops->at = pc;
}

/* ---- Threads that wait for each other -------------------------------------------------------- */

void __syncthreads(void)
{
    tgl_sim.barrier(tgl_sim.run, TGL_SIM_PC);
}

/* One place for all who call it. */
void tgl_sim_block_barrier(void)
{
    tgl_sim.barrier(tgl_sim.run, (const char *)tgl_sim_block_barrier + 1);
}

void tgl_sim_cluster_barrier(void)
{
    tgl_sim.cluster_barrier(tgl_sim.run, TGL_SIM_PC);
}

float tgl_sim_cluster_load(const float *shared, int rank)
{
    return tgl_sim.cluster_load(tgl_sim.run, shared, rank, TGL_SIM_PC);
}

void tgl_sim_syncwarp(unsigned lanes)
{
    tgl_sim.warp_barrier(tgl_sim.run, lanes, TGL_SIM_PC);
}

unsigned tgl_sim_shuffle(unsigned lanes, unsigned value, int source)
{
    return tgl_sim.shuffle(tgl_sim.run, lanes, value, source, TGL_SIM_PC);
}

int tgl_sim_lane(void)
{
    return (int)(tgl_sim.thread[0] % 32);
}

/* The lane to read from, within segments of `width` lanes; out of the segment: the lane's own. */
int tgl_sim_in_segment(int source, int width)
{
    const int lane = tgl_sim_lane();
    return source >= 0 && source / width == lane / width ? source : lane;
}

/* ---- cp.async, for lib/async_copy.h ---------------------------------------------------------- */

void tgl_sim_async_copy(void *shared, const void *global, int bytes, int valid_bytes)
{
    tgl_sim.async_copy(tgl_sim.run, shared, global, bytes, valid_bytes, TGL_SIM_PC);
}

void tgl_sim_async_commit(void)
{
    tgl_sim.async_commit(tgl_sim.run);
}

void tgl_sim_async_wait(int groups_pending)
{
    tgl_sim.async_wait(tgl_sim.run, groups_pending);
}

/* ---- lib/mbarrier.h and lib/tma.h ------------------------------------------------------------ */

void tgl_sim_mbarrier_init(const void *barrier, int arrivals)
{
    tgl_sim.mbarrier_init(tgl_sim.run, barrier, arrivals, TGL_SIM_PC);
}

void tgl_sim_mbarrier_fence(void)
{
    tgl_sim.mbarrier_fence(tgl_sim.run);
}

void tgl_sim_mbarrier_arrive(const void *barrier, unsigned bytes)
{
    tgl_sim.mbarrier_arrive(tgl_sim.run, barrier, bytes, TGL_SIM_PC);
}

void tgl_sim_mbarrier_wait(const void *barrier, unsigned parity)
{
    tgl_sim.mbarrier_wait(tgl_sim.run, barrier, parity, TGL_SIM_PC);
}

void tgl_sim_tma_load(void *shared, const void *map, const int *at, int rank, const void *barrier)
{
    tgl_sim.tma_load(tgl_sim.run, shared, map, at, rank, barrier, TGL_SIM_PC);
}

#endif
