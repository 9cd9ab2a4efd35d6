/* SPDX-License-Identifier: Apache-2.0
 *
 * How the warps of gemm/wgmma.cu find the units of their block (lib/wgmma_units.h).
 *
 * Without HAS_QUEUE a block has every gridDim.x'th unit, and each thread computes these itself.
 * Units of grouped products take different times: groups have different K, and the last tile of a
 * group has few rows. With HAS_QUEUE a block therefore takes its next unit when it has almost
 * copied the one before. Its first unit has the number of the block. All others come from a counter
 * in the group table, which gemm/groups.cu sets to 0 before each launch. Results do not depend on
 * which block computes a tile.
 *
 * Only the producer reads the counter. It hands each unit to the consumers through a ring in shared
 * memory, which has barriers like those of lib/stage_ring.h. After the last unit it hands over
 * END_OF_UNITS.
 *
 * Blocks of a cluster need neighbouring units. They have fixed lists. Products with block scale
 * factors have fixed lists, too: with the counter they took 0.95 to 1.19 times as long
 * (docs/notes/2026-11-29-gpu.md).
 */
#ifndef TGL_WGMMA_QUEUE_H
#define TGL_WGMMA_QUEUE_H

#include "lib/wgmma_ring.h"
#include "lib/wgmma_units.h"

#define HAS_QUEUE (GROUPED && CLUSTER == 1 && !HAS_BLOCK_SCALES)

/* ---- The producer's list of units ------------------------------------------------------------ */

struct unit_list {
#if HAS_QUEUE
    int next;     /* the unit after the current one: take_unit() */
    unsigned put; /* units put into the queue */
#else
    int step; /* from a unit of the block to the next one */
#endif
    int units, number; /* the number of all units of the grid; the current unit */
};

static __device__ __forceinline__ struct unit_list make_list(const struct tgl_gemm_args *args)
{
    struct unit_list list;
#if HAS_QUEUE
    list.next = 0;
    list.put = 0;
#else
    list.step = (int)gridDim.x / CLUSTER;
#endif
    list.units = unit_count(args);
    list.number = 0;
    return list;
}

static __device__ __forceinline__ void start_list(struct unit_list *list)
{
    list->number = (int)blockIdx.x / CLUSTER;
}

static __device__ __forceinline__ void next_in_list(struct unit_list *list)
{
#if HAS_QUEUE
    list->number = list->next;
#else
    list->number += list->step;
#endif
}

/* ---- The queue ------------------------------------------------------------------------------- */

#if HAS_QUEUE

/* QUEUE_UNITS: several, because a unit may take only one stage. wgmma_geometry.c has it, too. */
#define QUEUE_UNITS  4
#define END_OF_UNITS (-1) /* `steps` of the unit after the last one */

struct unit_queue {
    mbarrier full[QUEUE_UNITS], empty[QUEUE_UNITS];
    struct unit units[QUEUE_UNITS];
};

/* Called by one thread, before make_barriers(). Each warp of the consumers releases a unit. */
static __device__ __forceinline__ void make_queue(struct unit_queue *queue)
{
    for (int i = 0; i < QUEUE_UNITS; i++) {
        mbarrier_init(&queue->full[i], 1);
        mbarrier_init(&queue->empty[i], CONSUMER_THREADS / 32);
    }
}

/* The place in the queue of the block's unit number `count`, and the parity of its phase. */
#define QUEUE_PLACE(count)  ((count) % QUEUE_UNITS)
#define QUEUE_PARITY(count) ((count) / QUEUE_UNITS & 1)

/* Called by the producer: takes the number of the next unit that no block has yet. */
static __device__ __forceinline__ void take_unit(const struct tgl_gemm_args *args,
                                                 struct unit_list *list)
{
    struct tgl_group_table *table = (struct tgl_group_table *)args->groups;
    list->next = (int)gridDim.x + atomicAdd(&table->head.taken, 1);
}

/* Called by the producer: hands a unit to the consumers. */
static __device__ __forceinline__ void put_unit(struct unit_queue *queue, struct unit_list *list,
                                                const struct unit *u)
{
    const unsigned at = QUEUE_PLACE(list->put);
    mbarrier_wait(&queue->empty[at], QUEUE_PARITY(list->put) ^ 1);
    queue->units[at] = *u;
    mbarrier_arrive(&queue->full[at]);
    list->put++;
}

/* Called by the producer after its last unit. */
static __device__ __forceinline__ void put_end(struct unit_queue *queue, struct unit_list *list)
{
    struct unit end = {0};
    end.steps = END_OF_UNITS;
    put_unit(queue, list, &end);
}

#define QUEUE(shared) (&(shared)->queue)
#else
#define QUEUE(shared) 0
#endif

/* ---- The units of a consumer ----------------------------------------------------------------- */

struct unit_queue;

#if HAS_QUEUE

/* A thread's place in the queue. */
struct unit_walk {
    struct unit_queue *queue;
    unsigned count;
    struct unit unit;
};

/* walk->unit := the block's unit number walk->count. */
static __device__ __forceinline__ void read_unit(struct unit_walk *walk)
{
    struct unit_queue *queue = walk->queue;
    const unsigned at = QUEUE_PLACE(walk->count);
    mbarrier_wait(&queue->full[at], QUEUE_PARITY(walk->count));
    walk->unit = queue->units[at];
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(&queue->empty[at]);
    walk->unit.split = walk->unit.first = walk->unit.tile = 0; /* tiles of groups are not split */
    walk->unit.splits = 1;
}

static __device__ __forceinline__ struct unit_walk make_walk(const struct tgl_gemm_args *args,
                                                             struct unit_queue *queue)
{
    struct unit_walk walk;
    (void)args;
    walk.queue = queue;
    walk.count = 0;
    return walk;
}

static __device__ __forceinline__ void first_unit(struct unit_walk *walk)
{
    read_unit(walk);
}

static __device__ __forceinline__ bool has_unit(const struct unit_walk *walk)
{
    return walk->unit.steps != END_OF_UNITS;
}

static __device__ __forceinline__ void next_unit(struct unit_walk *walk)
{
    walk->count++;
    read_unit(walk);
}

static __device__ __forceinline__ struct unit unit_of(const struct unit_walk *walk,
                                                      const struct tgl_gemm_args *args, int depth)
{
    (void)args, (void)depth;
    return walk->unit;
}

#else

/* A thread's place in the list of its block. */
struct unit_walk {
    struct unit_list list;
};

static __device__ __forceinline__ struct unit_walk make_walk(const struct tgl_gemm_args *args,
                                                             struct unit_queue *queue)
{
    const struct unit_walk walk = {make_list(args)};
    (void)queue;
    return walk;
}

static __device__ __forceinline__ void first_unit(struct unit_walk *walk)
{
    start_list(&walk->list);
}

static __device__ __forceinline__ bool has_unit(const struct unit_walk *walk)
{
    return walk->list.number < walk->list.units;
}

static __device__ __forceinline__ void next_unit(struct unit_walk *walk)
{
    next_in_list(&walk->list);
}

static __device__ __forceinline__ struct unit unit_of(const struct unit_walk *walk,
                                                      const struct tgl_gemm_args *args, int depth)
{
    return find_unit_inside(args, walk->list.number, depth);
}

#endif

#endif
