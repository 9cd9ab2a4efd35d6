/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface between the simulator (the host) and a kernel that is compiled for it. The kernel's
 * shared object calls the host through tgl_sim_hooks. The host finds everything else in a
 * tgl_sim_image, tgl_sim_object, the only symbol that the object exports. Both sides include this
 * file.
 */
#ifndef TGL_SIM_HOOKS_H
#define TGL_SIM_HOOKS_H

/* The loops that a thread is in and their iteration numbers, derived from the sequence of basic
 * blocks that it runs. Accesses of the lanes of a warp in one iteration are counted together. */
enum { TGL_SIM_LOOPS = 12 }; /* maximum nesting depth that is recorded */

typedef struct tgl_sim_loop {
    const char *begin, *end; /* addresses of the first and the last basic block of the loop that
                                have been seen */
    unsigned long long
        place; /* hash of this loop and the enclosing ones with their iteration numbers */
} tgl_sim_loop;

typedef struct tgl_sim_loops {
    const char *at;        /* the current basic block */
    long long rounds_left; /* loop iterations that the thread may still run before its next barrier;
                              with more it counts as endless */
    int depth;
    tgl_sim_loop loop[TGL_SIM_LOOPS]; /* the innermost loop is last */
} tgl_sim_loops;

static inline unsigned long long tgl_sim_place_in_loops(const tgl_sim_loops *loops)
{
    return loops->depth > 0 ? loops->loop[loops->depth - 1].place : 0;
}

/* The functions of the host that a kernel calls, and data that the kernel and the host access. The
 * host fills in this struct before a launch. `machine` is the host's state, and is passed to each
 * function. `pc` is the return address of the call, from which the host finds the source file and
 * line. Other CUDA threads may run before a call returns. The call does not return if the kernel
 * has made an error. */
typedef struct tgl_sim_hooks {
    struct tgl_machine *machine;
    void (*access)(struct tgl_machine *machine, const void *address, unsigned bytes, int is_write,
                   const void *pc);
    /* Called where the kernel on a GPU loads aligned words whole, although not all of their
     * elements belong to the operand. On the simulator the kernel then reads only the elements that
     * it needs. */
    void (*wide_load)(struct tgl_machine *machine, const void *words, unsigned bytes,
                      const void *pc);
    void (*barrier)(struct tgl_machine *machine, const void *pc);
    void (*cluster_barrier)(struct tgl_machine *machine, const void *pc);
    /* Reads the shared memory of the cluster's block number `rank`, at the address that `shared`
     * has in this block. */
    float (*cluster_load)(struct tgl_machine *machine, const float *shared, int rank,
                          const void *pc);
    void (*warp_barrier)(struct tgl_machine *machine, unsigned lanes, const void *pc);
    /* Returns the value that lane `source` of the warp passes. Every lane of `lanes` takes part. */
    unsigned (*shuffle)(struct tgl_machine *machine, unsigned lanes, unsigned value, int source,
                        const void *pc);
    void (*async_copy)(struct tgl_machine *machine, void *shared, const void *global, int bytes,
                       int valid_bytes, const void *pc);
    void (*async_commit)(struct tgl_machine *machine);
    void (*async_wait)(struct tgl_machine *machine, int groups_pending);

    /* atomic: called before an atomic read-modify-write of 4 bytes. fence: called for
     * __threadfence(). wait_for_launches: called for wait_for_earlier_launches() of
     * lib/launch_order.h. */
    void (*atomic)(struct tgl_machine *machine, const void *address, const void *pc);
    void (*fence)(struct tgl_machine *machine, const void *pc);
    void (*wait_for_launches)(struct tgl_machine *machine);

    /* lib/mbarrier.h and lib/tma.h. `barrier` points to 8 bytes of shared memory. */
    void (*mbarrier_init)(struct tgl_machine *machine, const void *barrier, int arrivals,
                          const void *pc);
    void (*mbarrier_fence)(struct tgl_machine *machine);
    void (*mbarrier_arrive)(struct tgl_machine *machine, const void *barrier, unsigned bytes,
                            const void *pc);
    void (*mbarrier_wait)(struct tgl_machine *machine, const void *barrier, unsigned parity,
                          const void *pc);
    void (*mbarrier_arrive_at)(struct tgl_machine *machine, const void *barrier, int rank,
                               const void *pc);
    /* mask: ranks of the blocks of the cluster that receive the box; 0: this block, no multicast */
    void (*tma_load)(struct tgl_machine *machine, void *shared, const void *map, const int *at,
                     int rank, const void *barrier, unsigned mask, const void *pc);
    void (*tma_store)(struct tgl_machine *machine, const void *map, const void *shared,
                      const int *at, int rank, const void *pc);
    void (*tma_store_commit)(struct tgl_machine *machine);
    void (*tma_store_wait)(struct tgl_machine *machine, int pending, int is_read_only);
    void (*fence_proxy_async)(struct tgl_machine *machine);

    /* lib/named_barrier.h */
    void (*named_barrier)(struct tgl_machine *machine, int id, int threads, const void *pc);

    /* lib/mma.h and lib/ldmatrix.h. The registers are those of the calling lane. type: a tgl_type,
     * F32 for TF32 */
    void (*mma)(struct tgl_machine *machine, int type, void *acc, const void *a, const void *b,
                const void *pc);
    void (*ldmatrix)(struct tgl_machine *machine, unsigned *to, const void *row, int count,
                     int is_transposed, const void *pc);
    void (*stmatrix)(struct tgl_machine *machine, void *row, const unsigned *from, int count,
                     int is_transposed, const void *pc);

    /* lib/wgmma.h */
    unsigned long long (*wgmma_tile)(struct tgl_machine *machine, const void *shared, int swizzle,
                                     int atom_bytes, int group_bytes, const void *pc);
    void (*wgmma)(struct tgl_machine *machine, float *acc, const unsigned *left_fragment,
                  unsigned long long left, unsigned long long right, int type, int right_type,
                  int n, int left_k_major, int right_k_major, int scale_d, const void *pc);
    void (*wgmma_fence)(struct tgl_machine *machine);
    void (*wgmma_commit)(struct tgl_machine *machine);
    void (*wgmma_wait)(struct tgl_machine *machine, int pending);
    void (*set_registers)(struct tgl_machine *machine, int count, const void *pc);

    void (*endless)(struct tgl_machine *machine, const void *pc); /* called when rounds_left is 0 */
    void (*bad_index)(struct tgl_machine *machine, const void *pc); /* outside of an array */
    tgl_sim_loops *loops; /* loops of the running thread */
    /* visits[pc - code]: how many threads have passed the basic block or access with return address
     * pc, where code <= pc < code + code_size. */
    unsigned long code, code_size;
    unsigned *visits;
    /* threadIdx, blockIdx, blockDim and gridDim of the running CUDA thread, as x, y, z */
    unsigned thread[3], block[3], block_dim[3], grid_dim[3];
} tgl_sim_hooks;

typedef struct tgl_sim_image {
    tgl_sim_hooks *hooks;
    /* Calls the __global__ function with the arguments at this address, laid out as a C struct of
     * its parameters. */
    void (*entry)(const void *arguments);
    char *shared_begin, *shared_end;
} tgl_sim_image;

#endif
