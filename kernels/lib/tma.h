/* SPDX-License-Identifier: Apache-2.0
 *
 * TMA (sm_90 and later): one thread has a box of a tensor copied from global to shared memory. The
 * tensor map says where the tensor lies and how large the box is; elements outside the tensor
 * arrive as zeros. An mbarrier counts the bytes of the whole box, zeros included, when they have
 * arrived.
 *
 * The box lies densely in shared memory, dimension 0 contiguous, on 128 bytes; with a swizzle of
 * 32, 64 or 128 bytes on 256, 512 or 1024.
 */
#ifndef TGL_TMA_H
#define TGL_TMA_H

#include "lib/mbarrier.h"
#include "lib/tma_map.h"

#ifdef TGL_SIM
void tgl_sim_tma_load(void *shared, const void *map, const int *at, int rank, const void *barrier);
#define tma_load_2d(shared, map, x, y, barrier)                                                    \
    tgl_sim_tma_load(shared, map, (const int[2]){x, y}, 2, barrier)
#else

/* Copies the box whose first element is (x, y), x in dimension 0. x and y may lie outside the
 * tensor. `map` is a parameter of the kernel. */
static __device__ __forceinline__ void tma_load_2d(void *shared, const struct tgl_tensor_map *map,
                                                   int x, int y, mbarrier *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"((unsigned)__cvta_generic_to_shared(shared)),
                 "l"(map), "r"(x), "r"(y), "r"((unsigned)__cvta_generic_to_shared(barrier))
                 : "memory");
}

#endif

/* Where byte number `byte` of a box lies that was copied with a swizzle of 128 bytes: 16-byte chunk
 * number c of row r, of 128 bytes, is in the place of chunk c ^ (r % 8). Columns of the box then
 * lie in different banks. */
static __device__ __forceinline__ unsigned swizzle_128(unsigned byte)
{
    return byte ^ (byte >> 7 & 7) << 4;
}

#endif
