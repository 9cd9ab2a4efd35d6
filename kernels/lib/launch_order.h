/* SPDX-License-Identifier: Apache-2.0
 *
 * Programmatic dependent launches (sm_90 and later). A launch with that attribute may start while
 * the one before it in the stream still runs, and waits here for its results: the time to place
 * blocks and to read code and arguments is hidden. On other chips launches run one after the other.
 */
#ifndef TGL_LAUNCH_ORDER_H
#define TGL_LAUNCH_ORDER_H

#ifdef TGL_SIM
void tgl_sim_wait_for_launches(void);
#endif

/* Returns when all earlier launches of the stream are complete and their stores visible. Before it
 * nothing may touch global memory. */
static __device__ __forceinline__ void wait_for_earlier_launches(void)
{
#ifdef TGL_SIM
    tgl_sim_wait_for_launches();
#elif __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets the next launch start as soon as all blocks of this one have called this or exited. */
static __device__ __forceinline__ void let_later_launches_start(void)
{
#if !defined(TGL_SIM) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* For a launch that may be a strip: it runs beside the launch before it and does not depend on that
 * launch. Every block of the launch before has waited for all earlier launches before it let the
 * strip start, so these are complete, and a strip need not wait at its start. Only lines that L1
 * holds from before must be dropped, which a fence does for all loads except non-coherent ones
 * (ld.global.nc, __ldg()): kernels that serve strips have none. The launch after a strip waits for
 * the strip alone, so the strip has to wait for the launch before it ends. Its last block does, and
 * with it the launch; the other blocks exit and free their SMs. */
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
