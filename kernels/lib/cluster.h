/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters (sm_90 and later): neighbouring blocks of a grid that run at the same time, wait for
 * each other and read each other's shared memory. The host gives their number at launch; chips
 * without clusters run clusters of one block.
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

/* A barrier of all threads of the cluster's blocks, and so of this one's. What they wrote before,
 * all of them can read after. */
static __device__ __forceinline__ void cluster_sync(void)
{
#if TGL_HAS_CLUSTERS
    /* Release and acquire, which are what these do if nothing else is said. */
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
#elif defined(TGL_SIM)
    tgl_sim_cluster_barrier();
#else
    __syncthreads();
#endif
}

/* What the cluster's block number `rank` has where `shared` points in this one. */
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
