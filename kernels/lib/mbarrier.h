/* SPDX-License-Identifier: Apache-2.0
 *
 * mbarriers (sm_90 and later): barriers in shared memory that count arrivals of threads and bytes
 * of asynchronous copies. A phase of a barrier completes when as many arrivals have come as
 * mbarrier_init() set, and all bytes that mbarrier_arrive_and_expect() announced. Then the next
 * phase begins. Phases have parity 0, 1, 0, ...
 *
 *     if (threadIdx.x == 0) {
 *         mbarrier_init(&full, 1);
 *         mbarrier_init_fence();
 *     }
 *     __syncthreads();
 *     if (threadIdx.x == 0) {
 *         mbarrier_arrive_and_expect(&full, BYTES);
 *         tma_load_2d(tile, &map, x, y, &full);
 *     }
 *     mbarrier_wait(&full, 0);    // all threads; then the tile may be read
 */
#ifndef TGL_MBARRIER_H
#define TGL_MBARRIER_H

typedef unsigned long long mbarrier; /* in shared memory */

#ifdef TGL_SIM
void tgl_sim_mbarrier_init(const void *barrier, int arrivals);
void tgl_sim_mbarrier_fence(void);
void tgl_sim_mbarrier_arrive(const void *barrier, unsigned bytes);
void tgl_sim_mbarrier_arrive_at(const void *barrier, int rank);
void tgl_sim_mbarrier_wait(const void *barrier, unsigned parity);

/* These are macros, so that the simulator can report the source line of the call. The functions
 * below describe them.
 */
#define mbarrier_init(barrier, arrivals)           tgl_sim_mbarrier_init(barrier, arrivals)
#define mbarrier_init_fence()                      tgl_sim_mbarrier_fence()
#define mbarrier_arrive(barrier)                   tgl_sim_mbarrier_arrive(barrier, 0)
#define mbarrier_arrive_and_expect(barrier, bytes) tgl_sim_mbarrier_arrive(barrier, bytes)
#define mbarrier_arrive_at(barrier, rank)          tgl_sim_mbarrier_arrive_at(barrier, rank)
#define mbarrier_wait(barrier, parity)             tgl_sim_mbarrier_wait(barrier, parity)

#else

/* Initialises an mbarrier with this number of arrivals per phase. One thread calls it, before all
 * other uses. */
static __device__ __forceinline__ void mbarrier_init(mbarrier *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(barrier)),
                 "r"(arrivals)
                 : "memory");
}

/* Makes mbarriers that the thread has initialised visible to TMA and to the cluster. Other threads
 * of the block may use them after a following __syncthreads(). */
static __device__ __forceinline__ void mbarrier_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;\n"
                 "fence.proxy.async.shared::cta;" ::
                     : "memory");
}

/* One arrival. The thread's earlier memory accesses are ordered before those of every thread that
 * has waited for this phase. */
static __device__ __forceinline__ void mbarrier_arrive(mbarrier *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(
                     (unsigned)__cvta_generic_to_shared(barrier))
                 : "memory");
}

/* One arrival at the mbarrier at the same address in the shared memory of the cluster's block
 * number `rank`. The blocks call cluster_sync() after mbarrier_init_fence(), and again before they
 * end. */
static __device__ __forceinline__ void mbarrier_arrive_at(mbarrier *barrier, int rank)
{
    unsigned address = (unsigned)__cvta_generic_to_shared(barrier);
    asm volatile("mapa.shared::cluster.u32 %0, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [%0];"
                 : "+r"(address)
                 : "r"(rank)
                 : "memory");
}

/* One arrival. The phase also waits for `bytes` of copies. */
static __device__ __forceinline__ void mbarrier_arrive_and_expect(mbarrier *barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(barrier)),
                 "r"(bytes)
                 : "memory");
}

/* Returns when the phase with this parity is complete. This is at once if the barrier is already in
 * the next phase. The thread may then read what the copies of that phase have written. A new
 * mbarrier is in phase 0: a wait for parity 1 asks for the phase before it, which counts as
 * complete. */
static __device__ __forceinline__ void mbarrier_wait(mbarrier *barrier, unsigned parity)
{
    unsigned is_complete;
    do
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(is_complete)
                     : "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(parity)
                     : "memory");
    while (!is_complete);
}

#endif

#endif
