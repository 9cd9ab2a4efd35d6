/* SPDX-License-Identifier: Apache-2.0
 *
 * Programmatic dependent launches (sm_90 and later). A launch that asks for it may start while the
 * one before it in the stream still runs, and then waits here for its results: placing blocks,
 * reading code and arguments no longer take time of their own. Elsewhere launches follow one
 * another anyway.
 */
#ifndef TGL_LAUNCH_ORDER_H
#define TGL_LAUNCH_ORDER_H

/* Returns when all that came before in the stream is done and visible. Before it nothing may touch
 * global memory. */
static __device__ __forceinline__ void wait_for_earlier_launches(void)
{
#if !defined(TGL_SIM) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets the next launch start as soon as all blocks of this one have got here. */
static __device__ __forceinline__ void let_later_launches_start(void)
{
#if !defined(TGL_SIM) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* For a launch that the one before it has let start, each block after it had waited, and that does
 * not depend on that one: all that came before both is done. It need not wait, but for what L1 has
 * kept from older times to be dropped, which a fence does. It has to wait before it ends, since
 * what follows it waits for it alone. */
static __device__ __forceinline__ void start_beside_earlier_launch(void)
{
    __threadfence();
}

#endif
