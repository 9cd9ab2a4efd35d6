/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel compiled for the simulator and the simulator know of each other: the kernel's
 * shared object calls the host through tgl_sim_hooks, and the host finds the rest in tgl_sim_image,
 * the one symbol that the object exports. Included on both sides.
 */
#ifndef TGL_SIM_HOOKS_H
#define TGL_SIM_HOOKS_H

/* The loops that a thread is in, found by its steps from one block of code to the next, and how
 * often it has gone round each: what lanes of a warp do in the same round belongs together. */
enum { TGL_SIM_LOOPS = 12 }; /* one within the other, that are followed */

typedef struct tgl_sim_loop {
    const char *begin, *end;  /* the first and the last of its blocks that are known */
    unsigned long long place; /* hash of this loop and the outer ones, with their rounds */
} tgl_sim_loop;

typedef struct tgl_sim_loops {
    const char *at;        /* the block that runs */
    long long rounds_left; /* before the thread is taken to be in an endless loop */
    int depth;
    tgl_sim_loop loop[TGL_SIM_LOOPS]; /* the innermost one last */
} tgl_sim_loops;

static inline unsigned long long tgl_sim_place_in_loops(const tgl_sim_loops *loops)
{
    return loops->depth > 0 ? loops->loop[loops->depth - 1].place : 0;
}

/* Filled in by the host before a launch. `run` is the host's and comes back to it in each call;
 * `pc` is the return address of the access, by which the host finds file and line. A call may not
 * return before other CUDA threads have run, or at all if the kernel has done something illegal. */
typedef struct tgl_sim_hooks {
    void *run;
    void (*access)(void *run, const void *address, unsigned bytes, int is_write, const void *pc);
    void (*barrier)(void *run, const void *pc);
    void (*cluster_barrier)(void *run, const void *pc);
    /* What block number `rank` of the cluster has where `shared` points in this one. */
    float (*cluster_load)(void *run, const float *shared, int rank, const void *pc);
    void (*warp_barrier)(void *run, unsigned lanes, const void *pc);
    /* The value that lane `source` of the warp gives; every lane of `lanes` takes part. */
    unsigned (*shuffle)(void *run, unsigned lanes, unsigned value, int source, const void *pc);
    void (*async_copy)(void *run, void *shared, const void *global, int bytes, int valid_bytes,
                       const void *pc);
    void (*async_commit)(void *run);
    void (*async_wait)(void *run, int groups_pending);

    /* An atomic read-modify-write of 4 bytes is about to happen; __threadfence(); and
     * wait_for_earlier_launches() of lib/launch_order.h. */
    void (*atomic)(void *run, const void *address, const void *pc);
    void (*fence)(void *run, const void *pc);
    void (*wait_for_launches)(void *run);

    /* lib/mbarrier.h and lib/tma.h. `barrier` points to 8 bytes of shared memory. */
    void (*mbarrier_init)(void *run, const void *barrier, int arrivals, const void *pc);
    void (*mbarrier_fence)(void *run);
    void (*mbarrier_arrive)(void *run, const void *barrier, unsigned bytes, const void *pc);
    void (*mbarrier_wait)(void *run, const void *barrier, unsigned parity, const void *pc);
    void (*tma_load)(void *run, void *shared, const void *map, const int *at, int rank,
                     const void *barrier, const void *pc);

    void (*endless)(void *run, const void *pc); /* no rounds are left */
    tgl_sim_loops *loops;                       /* of the thread that runs */
    /* x, y, z, set whenever another CUDA thread goes on. */
    unsigned thread[3], block[3], block_dim[3], grid_dim[3];
} tgl_sim_hooks;

typedef struct tgl_sim_image {
    tgl_sim_hooks *hooks;
    /* Calls the __global__ function with the arguments that lie here, laid out as a C struct of its
     * parameters. */
    void (*entry)(const void *arguments);
    char *shared_begin, *shared_end;
} tgl_sim_image;

#endif
