/* SPDX-License-Identifier: Apache-2.0
 *
 * The last of several blocks that leave partial sums in the workspace adds them up. Each counts
 * itself at a counter in device memory when its sums are there.
 *
 * Why one fence by one thread is enough: a block's stores happen before its barrier, which
 * synchronizes its threads, and the barrier before thread 0's fence. Causality order is transitive
 * (PTX ISA, memory consistency model, "Causality order"; bar.sync synchronizes in it), so the fence
 * and the atomic operation after it release the stores of the whole block at the scope of the GPU.
 * On the other side thread 0's atomic operation and the fence after it acquire what the others
 * released, and the barrier passes that on to its block. The sample of the CUDA programming guide,
 * "Memory Fence Functions", has each thread fence its own store, which is as correct, but every
 * fence waits for the memory and drops the lines of L1.
 *
 * Partial sums are read by __ldcg(), from L2.
 */
#ifndef TGL_LAST_BLOCK_H
#define TGL_LAST_BLOCK_H

/* ---- In one call ----------------------------------------------------------------------------- */

/* All threads of the block call it when they have stored their sums. True in the last of `count`
 * blocks: it may read the sums of all, and *counter is 0 again. */
static __device__ __forceinline__ bool is_last_block(unsigned *counter, int count)
{
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(counter, 1u) + 1 == (unsigned)count;
        if (is_last) {
            *counter = 0;
            __threadfence();
        }
    }
    __syncthreads();
    return is_last;
}

/* ---- For a block that need not store its sums if it is the last ------------------------------ */

/* Whether `count` blocks less this one have come to *counter; false if this block may not ask
 * (may_ask). All threads of the block call it and the next two functions. */
static __device__ __forceinline__ bool others_have_come(bool may_ask, unsigned *counter, int count)
{
    __shared__ bool have_come;
    if (threadIdx.x == 0) have_come = may_ask && atomicAdd(counter, 0u) + 1 == (unsigned)count;
    __syncthreads();
    return have_come;
}

/* Counts this block, whose threads have stored their sums. Whether it is the last. */
static __device__ __forceinline__ bool comes_last(unsigned *counter, int count)
{
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(counter, 1u) + 1 == (unsigned)count;
    }
    __syncthreads();
    return is_last;
}

/* In the last block: *counter is 0 again, and the sums of the others may be read. */
static __device__ __forceinline__ void take_sums(unsigned *counter)
{
    if (threadIdx.x == 0) {
        *counter = 0;
        __threadfence();
    }
    __syncthreads();
}

#endif
