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
 * must not load from or store to global memory before. */
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

/* A strip is a launch for the last rows or columns of D. It runs concurrently with the previous
 * launch, which computes the whole tiles of D, or another strip. It does not depend on that launch.
 *
 * Called at the start of a launch that may be a strip. Each block of the launch for the whole tiles
 * has waited for all launches before it, and only then let strips start. Those launches are
 * therefore complete when a strip starts, so it need not wait for them. But L1 may still have lines
 * from before their stores. A fence drops these lines for all loads except non-coherent ones
 * (ld.global.nc, __ldg()), which kernels for strips must not use. */
static __device__ __forceinline__ void start_after_earlier_launches(bool is_strip)
{
    if (is_strip)
        __threadfence();
    else
        wait_for_earlier_launches();
}

/* Called at the end of a launch that may be a strip. The launch after a strip waits only for the
 * strip, so the strip has to wait for the previous launch. The last block of the strip does this.
 * The other blocks exit and free their SMs. */
static __device__ __forceinline__ void end_after_earlier_launches(bool is_strip)
{
    const bool is_last = blockIdx.x == gridDim.x - 1 && blockIdx.z == gridDim.z - 1;
    if (is_strip && is_last) wait_for_earlier_launches();
}

#endif
