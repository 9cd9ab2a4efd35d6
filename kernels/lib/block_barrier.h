/* SPDX-License-Identifier: Apache-2.0
 *
 * A barrier of all threads of a block, like __syncthreads(), which the warps may call at different
 * places in the code. PTX allows this: only the threads of one warp must execute the same
 * instruction (PTX ISA, bar.sync).
 */
#ifndef TGL_BLOCK_BARRIER_H
#define TGL_BLOCK_BARRIER_H

#ifdef TGL_SIM
void tgl_sim_block_barrier(void);
#endif

static __device__ __forceinline__ void block_barrier(void)
{
#ifdef TGL_SIM
    tgl_sim_block_barrier();
#else
    asm volatile("bar.sync 0;" ::: "memory");
#endif
}

#endif
