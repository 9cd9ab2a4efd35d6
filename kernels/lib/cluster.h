/* SPDX-License-Identifier: Apache-2.0
 *
 * Thread block clusters (sm_90 and later): neighbouring blocks of a grid that run at the same time,
 * synchronise, and read each other's shared memory. The host sets the cluster size at launch. On
 * chips without clusters it is 1.
 */
#ifndef TGL_CLUSTER_H
#define TGL_CLUSTER_H

#if !defined(TGL_SIM) && __CUDA_ARCH__ >= 900
#define TGL_HAS_CLUSTERS 1
#else
#define TGL_HAS_CLUSTERS 0
#endif

#ifdef TGL_SIM
void tgl_sim_cluster_barrier(void);
float tgl_sim_cluster_load(const float *shared, int rank);
#endif

/* All lanes of a warp call each of these barriers together. After code in which lanes diverge, they
 * call __syncwarp() first. */

/* A barrier of all threads of the cluster's blocks. What a thread writes before the barrier is
 * visible to all these threads after it. */
static __device__ __forceinline__ void cluster_sync(void)
{
#if TGL_HAS_CLUSTERS
    /* Without a qualifier arrive releases and wait acquires. */
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
#elif defined(TGL_SIM)
    tgl_sim_cluster_barrier();
#else
    __syncthreads();
#endif
}

/* A barrier in two halves, which does not order memory accesses: cluster_wait() returns when all
 * threads of the cluster have called cluster_arrive(). It keeps a block from exiting while others
 * read its shared memory: a block arrives when it has read the others' memory and used the values,
 * and waits before it exits. On the simulator cluster_wait() is the whole barrier. */
static __device__ __forceinline__ void cluster_arrive(void)
{
#if TGL_HAS_CLUSTERS
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void cluster_wait(void)
{
#if TGL_HAS_CLUSTERS
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#elif defined(TGL_SIM)
    tgl_sim_cluster_barrier();
#else
    __syncthreads();
#endif
}

/* Returns *shared of the cluster's block number `rank`: the float at the same address in that
 * block's shared memory. */
static __device__ __forceinline__ float cluster_load(const float *shared, int rank)
{
#if TGL_HAS_CLUSTERS
    float value;
    unsigned address = (unsigned)__cvta_generic_to_shared(shared);
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address));
    return value;
#elif defined(TGL_SIM)
    return tgl_sim_cluster_load(shared, rank);
#else
    (void)rank;
    return *shared;
#endif
}

#endif
