/* SPDX-License-Identifier: Apache-2.0
 *
 * Programmatic dependent launches (sm_90 and later). A launch that asks for it may start while the
 * one before it in the stream still runs, and then waits here for its results: placing blocks,
 * reading code and arguments no longer take time of their own. Elsewhere launches follow one
 * another anyway.
 */
#ifndef TGL_LAUNCH_ORDER_H
#define TGL_LAUNCH_ORDER_H

#ifdef TGL_SIM
void tgl_sim_wait_for_launches(void);
#endif

/* Returns when all that came before in the stream is done and visible. Before it nothing may touch
 * global memory. */
static __device__ __forceinline__ void wait_for_earlier_launches(void)
{
#ifdef TGL_SIM
    tgl_sim_wait_for_launches();
#elif __CUDA_ARCH__ >= 900
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

/* For a launch that may be a strip: one that the launch before it has let start, each block after
 * it had waited, and that does not depend on that launch. All that came before both is done, and a
 * strip need not wait at its start, but for what L1 has kept from older times to be dropped, which
 * a fence does. It has to wait before it ends, since what follows it waits for it alone: its last
 * block does, which the launch lasts as long as; the others leave their places to more. */
static __device__ __forceinline__ void start_after_earlier_launches(bool is_strip)
{
    if (is_strip)
        __threadfence();
    else
        wait_for_earlier_launches();
}

static __device__ __forceinline__ void end_after_earlier_launches(bool is_strip)
{
    const bool is_last = blockIdx.x == gridDim.x - 1 && blockIdx.z == gridDim.z - 1;
    if (is_strip && is_last) wait_for_earlier_launches();
}

#endif
