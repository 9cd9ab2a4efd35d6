/* SPDX-License-Identifier: Apache-2.0
 *
 * Several blocks store partial sums in the workspace, and the last one to finish adds them. Each
 * block increments a counter in device memory after its sums are stored.
 *
 * One atomic operation by one thread is enough. The stores of a block happen before its barrier,
 * and the barrier happens before the atomic operation of thread 0, which has release semantics.
 * Causality order is transitive (PTX ISA, memory consistency model, "Causality order"; bar.sync
 * synchronizes threads in it). The atomic operation therefore releases the stores of the whole
 * block at GPU scope. In the last block it also acquires what the other blocks released, and the
 * barrier extends this to all threads of the last block. In the sample of the CUDA programming
 * guide, "Memory Fence Functions", the thread that stores a sum also executes a fence. If all
 * threads did so here, every fence would wait for the memory and invalidate lines of L1.
 *
 * Partial sums are read with __ldcg(), from L2.
 */
#ifndef TGL_LAST_BLOCK_H
#define TGL_LAST_BLOCK_H

/* A barrier of the threads that store and add up sums, thread 0 among them. These are all threads
 * of the block, unless the including file defines another barrier. */
#ifndef LAST_BLOCK_BARRIER
#define LAST_BLOCK_BARRIER() __syncthreads()
#endif

/* Adds 1 to *counter and returns its new value. Releases earlier stores, and acquires what the
 * blocks that added before have released: one light fence instead of two __threadfence(), which are
 * sequentially consistent (MEMBAR.SC in the machine code). */
static __device__ __forceinline__ unsigned count_in_order(unsigned *counter)
{
    unsigned before;
#if !defined(TGL_SIM) && __CUDA_ARCH__ >= 700
    asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
#else
    __threadfence();
    before = atomicAdd(counter, 1u);
    __threadfence();
#endif
    return before + 1;
}

/* ---- In one call ----------------------------------------------------------------------------- */

/* Called by all threads of LAST_BLOCK_BARRIER() after they have stored their sums. Returns true in
 * the last of `count` blocks. That block may read the sums of all blocks; *counter is 0 again when
 * the launch is complete. */
static __device__ __forceinline__ bool is_last_block(unsigned *counter, int count)
{
    __shared__ bool is_last;
    LAST_BLOCK_BARRIER();
    if (threadIdx.x == 0) {
        is_last = count_in_order(counter) == (unsigned)count;
        if (is_last) *counter = 0;
    }
    LAST_BLOCK_BARRIER();
    return is_last;
}

/* ---- For a block that need not store its sums if it is the last ------------------------------ */

/* Whether the other count - 1 blocks have incremented *counter, that is, have stored their sums. If
 * so, this block need not store its sums, and may read those of the others. If may_ask is false,
 * the function returns false. All threads of LAST_BLOCK_BARRIER() call this and comes_last(). */
static __device__ __forceinline__ bool others_have_come(bool may_ask, unsigned *counter, int count)
{
    __shared__ bool have_come;
    if (threadIdx.x == 0) {
        have_come = may_ask && atomicAdd(counter, 0u) + 1 == (unsigned)count;
        if (have_come) __threadfence();
    }
    LAST_BLOCK_BARRIER();
    return have_come;
}

/* Increments *counter for this block, whose threads have stored their sums. Returns whether this
 * block is the last of `count`. That block may read the sums of all others. */
static __device__ __forceinline__ bool comes_last(unsigned *counter, int count)
{
    __shared__ bool is_last;
    LAST_BLOCK_BARRIER();
    if (threadIdx.x == 0) is_last = count_in_order(counter) == (unsigned)count;
    LAST_BLOCK_BARRIER();
    return is_last;
}

/* Called by the last block: sets *counter to 0 for the next launch. */
static __device__ __forceinline__ void reset_counter(unsigned *counter)
{
    if (threadIdx.x == 0) *counter = 0;
}

#endif
