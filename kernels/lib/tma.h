/* SPDX-License-Identifier: Apache-2.0
 *
 * TMA (sm_90 and later): one thread issues a copy of a box of a tensor from global to shared
 * memory. The tensor map contains the address and strides of the tensor and the size of the box.
 * Elements outside the tensor are read as zero. An mbarrier counts the bytes of the whole box,
 * zeros included.
 *
 * bulk_load() copies contiguous bytes in the same way, without a tensor map.
 *
 * The box is contiguous in shared memory, dimension 0 first. It is aligned to 128 bytes, or to 256,
 * 512 or 1024 bytes with a swizzle of 32, 64 or 128 bytes.
 *
 * A thread can also issue a store of a box from shared to global memory. Like copies of cp.async,
 * stores form groups. Elements outside the tensor are not stored if its size in dimension 0 is a
 * multiple of 16 bytes. Otherwise Hopper also writes the bytes after the end of a row, up to the
 * next multiple (seen on an H100, as in github.com/triton-lang/triton/issues/11583).
 *
 * TMA and wgmma access shared memory through the async proxy. A thread calls fence_proxy_async()
 * between its writes and the TMA store or wgmma that reads them (PTX ISA, "Proxies").
 */
#ifndef TGL_TMA_H
#define TGL_TMA_H

#include "lib/mbarrier.h"
#include "lib/tma_map.h"

#ifdef TGL_SIM
/* mask: the ranks of the blocks that receive the box, as for tma_load_3d_multicast(). */
void tgl_sim_tma_load(void *shared, const void *map, const int *at, int rank, const void *barrier);
void tgl_sim_tma_load_multicast(void *shared, const void *map, const int *at, int rank,
                                const void *barrier, unsigned mask);
void tgl_sim_tma_store(const void *map, const void *shared, const int *at, int rank);
void tgl_sim_tma_store_commit(void);
void tgl_sim_tma_store_wait(int pending, int is_read_only);
void tgl_sim_fence_proxy_async(void);

#define tma_load_2d(shared, map, x, y, barrier)                                                    \
    tgl_sim_tma_load(shared, map, (const int[2]){x, y}, 2, barrier)
#define tma_load_3d(shared, map, x, y, z, barrier)                                                 \
    tgl_sim_tma_load(shared, map, (const int[3]){x, y, z}, 3, barrier)
#define tma_load_3d_multicast(shared, map, x, y, z, barrier, mask)                                 \
    tgl_sim_tma_load_multicast(shared, map, (const int[3]){x, y, z}, 3, barrier, mask)
#define tma_store_3d(map, x, y, z, shared)                                                         \
    tgl_sim_tma_store(map, shared, (const int[3]){x, y, z}, 3)
#define tma_store_commit()            tgl_sim_tma_store_commit()
#define TMA_STORE_WAIT_READ(pending)  tgl_sim_tma_store_wait(pending, 1)
#define fence_proxy_async()           tgl_sim_fence_proxy_async()
#define tma_prefetch_map(map)         ((void)(map))
#define tma_prefetch_3d(map, x, y, z) ((void)(map), (void)(x), (void)(y), (void)(z))

static __device__ __forceinline__ void bulk_load(void *shared, const void *from, int bytes,
                                                 mbarrier *barrier)
{
    const struct tgl_tensor_map map = {.base = from,
                                       .size = {(unsigned)bytes},
                                       .box = {(unsigned short)bytes},
                                       .rank = 1,
                                       .element = 1};
    tgl_sim_tma_load(shared, &map, (const int[1]){0}, 1, barrier);
}
#else

/* Copies the box whose first element is (x, y), x in dimension 0. x and y may be outside the
 * tensor. `map` is a parameter of the kernel. The first x elements must take a multiple of 16
 * bytes: with any other x Hopper reports an illegal instruction. */
static __device__ __forceinline__ void tma_load_2d(void *shared, const struct tgl_tensor_map *map,
                                                   int x, int y, mbarrier *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"((unsigned)__cvta_generic_to_shared(shared)),
                 "l"(map), "r"(x), "r"(y), "r"((unsigned)__cvta_generic_to_shared(barrier))
                 : "memory");
}

static __device__ __forceinline__ void tma_load_3d(void *shared, const struct tgl_tensor_map *map,
                                                   int x, int y, int z, mbarrier *barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"((unsigned)__cvta_generic_to_shared(shared)),
        "l"(map), "r"(x), "r"(y), "r"(z), "r"((unsigned)__cvta_generic_to_shared(barrier))
        : "memory");
}

/* Copies the box to all blocks of the cluster whose ranks are set in `mask`, to the same address in
 * the shared memory of each. The mbarrier at the address of `barrier` in each block counts the
 * bytes. */
static __device__ __forceinline__ void tma_load_3d_multicast(void *shared,
                                                             const struct tgl_tensor_map *map,
                                                             int x, int y, int z, mbarrier *barrier,
                                                             unsigned mask)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(shared)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"((unsigned)__cvta_generic_to_shared(barrier)),
                 "h"((unsigned short)mask)
                 : "memory");
}

/* Copies `bytes` bytes. Both addresses and `bytes` are multiples of 16. */
static __device__ __forceinline__ void bulk_load(void *shared, const void *from, int bytes,
                                                 mbarrier *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"((unsigned)__cvta_generic_to_shared(shared)),
                 "l"(from), "r"(bytes), "r"((unsigned)__cvta_generic_to_shared(barrier))
                 : "memory");
}

/* Stores the box whose first element is (x, y, z) from shared memory, asynchronously. */
static __device__ __forceinline__ void tma_store_3d(const struct tgl_tensor_map *map, int x, int y,
                                                    int z, const void *shared)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group "
                 "[%0, {%1, %2, %3}], [%4];" ::"l"(map),
                 "r"(x), "r"(y), "r"(z), "r"((unsigned)__cvta_generic_to_shared(shared))
                 : "memory");
}

/* Commits the stores that the thread has issued since its last call of this function, as one
 * group. */
static __device__ __forceinline__ void tma_store_commit(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until at most `pending` groups of the thread still read shared memory. pending: a constant.
 */
#define TMA_STORE_WAIT_READ(pending)                                                               \
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory")

/* Makes the thread's earlier writes to shared memory visible to TMA and wgmma. */
static __device__ __forceinline__ void fence_proxy_async(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Prefetches a box to L2. This is possible before earlier launches have ended: L2 has their stores.
 */
static __device__ __forceinline__ void tma_prefetch_3d(const struct tgl_tensor_map *map, int x,
                                                       int y, int z)
{
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(map),
                 "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* Prefetches the tensor map. */
static __device__ __forceinline__ void tma_prefetch_map(const struct tgl_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

#endif

/* The offset in shared memory of byte number `byte` of a box that TMA copied with a swizzle of 128
 * bytes. In row r of 128 bytes, the 16-byte chunk c is at the position of chunk c ^ (r % 8). The
 * rows of a column of chunks are thus in different banks. */
static __device__ __forceinline__ unsigned swizzle_128(unsigned byte)
{
    return byte ^ (byte >> 7 & 7) << 4;
}

#endif
