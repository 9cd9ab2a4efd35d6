/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers of some warps of a block: `threads` threads, which are whole warps, wait for each other
 * at barrier number `id`, 1 to 15 (0 is the barrier of __syncthreads()). All threads of a warp call
 * it together.
 */
#ifndef TGL_NAMED_BARRIER_H
#define TGL_NAMED_BARRIER_H

#ifdef TGL_SIM
void tgl_sim_named_barrier(int id, int threads);
#define named_barrier(id, threads) tgl_sim_named_barrier(id, threads)
#else
static __device__ __forceinline__ void named_barrier(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
#endif

#endif
