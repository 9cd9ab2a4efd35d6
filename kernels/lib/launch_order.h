/* SPDX-License-Identifier: Apache-2.0
 *
 * Programmatic dependent launch (sm_90 and later). A launch with this attribute may start while the
 * launch before it in the stream still runs, and waits for its results in the kernel. This hides
 * the time to distribute blocks and to fetch code and arguments. On other chips launches run one
 * after the other.
 */
#ifndef TGL_LAUNCH_ORDER_H
#define TGL_LAUNCH_ORDER_H

#ifdef TGL_SIM
void tgl_sim_wait_for_launches(void);
#endif

/* Returns when all earlier launches of the stream are complete and their stores visible. A kernel
 * must not access global memory before. */
static __device__ __forceinline__ void wait_for_earlier_launches(void)
{
#ifdef TGL_SIM
    tgl_sim_wait_for_launches();
#elif __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets the next launch start as soon as all blocks of this launch have called this function or
 * exited. */
static __device__ __forceinline__ void let_later_launches_start(void)
{
#if !defined(TGL_SIM) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* For a launch that may be a strip: the last rows or columns of D, computed beside the launch of
 * whole tiles. A strip runs concurrently with that previous launch and does not depend on it. Each
 * block of the previous launch has waited for all earlier launches before it let the strip start.
 * Those launches are complete, and the strip need not wait at its start. But L1 may still have
 * lines from before their stores. A fence drops these for all loads except non-coherent ones
 * (ld.global.nc, __ldg()), which kernels for strips must not use. The launch after a strip waits
 * only for the strip. The strip therefore has to wait for the previous launch: the last block of
 * the strip does so at its end, while the other blocks of the strip exit and free their SMs. */
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
