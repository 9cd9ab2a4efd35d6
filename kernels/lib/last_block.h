/* SPDX-License-Identifier: Apache-2.0
 *
 * Several blocks store partial sums in the workspace, and the last one to finish adds them. Each
 * block increments a counter in device memory after its sums are stored.
 *
 * One fence by one thread is enough. The stores of a block happen before its barrier, and the
 * barrier happens before the fence of thread 0. Causality order is transitive (PTX ISA, memory
 * consistency model, "Causality order"; bar.sync synchronizes threads in it). The fence and the
 * atomic operation after it therefore release the stores of the whole block at GPU scope. In the
 * last block, the atomic operation of thread 0 and the fence after it acquire what the other blocks
 * released. The barrier extends this to all threads of the last block. In the sample of the CUDA
 * programming guide, "Memory Fence Functions", the thread that stores a sum also executes the
 * fence. If all threads did so here, every fence would wait for the memory and invalidate lines of
 * L1.
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

/* ---- In one call ----------------------------------------------------------------------------- */

/* Called by all threads of LAST_BLOCK_BARRIER() after they have stored their sums. Returns true in
 * the last of `count` blocks. That block may read the sums of all blocks; *counter is 0 again. */
static __device__ __forceinline__ bool is_last_block(unsigned *counter, int count)
{
    __shared__ bool is_last;
    LAST_BLOCK_BARRIER();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(counter, 1u) + 1 == (unsigned)count;
        if (is_last) {
            *counter = 0;
            __threadfence();
        }
    }
    LAST_BLOCK_BARRIER();
    return is_last;
}

/* ---- For a block that need not store its sums if it is the last ------------------------------ */

/* Whether the other count - 1 blocks have incremented *counter, that is, have stored their sums. If
 * so, this block need not store its sums. If may_ask is false, the function returns false. All
 * threads of LAST_BLOCK_BARRIER() call this and the next two functions. */
static __device__ __forceinline__ bool others_have_come(bool may_ask, unsigned *counter, int count)
{
    __shared__ bool have_come;
    if (threadIdx.x == 0) have_come = may_ask && atomicAdd(counter, 0u) + 1 == (unsigned)count;
    LAST_BLOCK_BARRIER();
    return have_come;
}

/* Increments *counter for this block, whose threads have stored their sums. Returns whether this
 * block is the last of `count`. */
static __device__ __forceinline__ bool comes_last(unsigned *counter, int count)
{
    __shared__ bool is_last;
    LAST_BLOCK_BARRIER();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(counter, 1u) + 1 == (unsigned)count;
    }
    LAST_BLOCK_BARRIER();
    return is_last;
}

/* Called by the last block: sets *counter to 0 again. After that the block may read the sums of all
 * other blocks. */
static __device__ __forceinline__ void take_sums(unsigned *counter)
{
    if (threadIdx.x == 0) {
        *counter = 0;
        __threadfence();
    }
    LAST_BLOCK_BARRIER();
}

#endif
