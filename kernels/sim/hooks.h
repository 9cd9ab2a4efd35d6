/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel compiled for the simulator and the simulator know of each other: the kernel's
 * shared object calls the host through tgl_sim_hooks, and the host finds the rest in tgl_sim_image,
 * the one symbol that the object exports. Included on both sides.
 */
#ifndef TGL_SIM_HOOKS_H
#define TGL_SIM_HOOKS_H

/* Filled in by the host before a launch. `run` is the host's and comes back to it in each call;
 * `pc` is the return address of the access, by which the host finds file and line. A call may not
 * return before other CUDA threads have run, or at all if the kernel has done something illegal. */
typedef struct tgl_sim_hooks {
    void *run;
    void (*access)(void *run, const void *address, unsigned bytes, int is_write, const void *pc);
    void (*barrier)(void *run, const void *pc);
    void (*warp_barrier)(void *run, unsigned lanes, const void *pc);
    /* The value that lane `source` of the warp gives; every lane of `lanes` takes part. */
    unsigned (*shuffle)(void *run, unsigned lanes, unsigned value, int source, const void *pc);
    void (*async_copy)(void *run, void *shared, const void *global, int bytes, int valid_bytes,
                       const void *pc);
    void (*async_commit)(void *run);
    void (*async_wait)(void *run, int groups_pending);
    /* x, y, z, set whenever another CUDA thread goes on. */
    unsigned thread[3], block[3], block_dim[3], grid_dim[3];
} tgl_sim_hooks;

typedef struct tgl_sim_image {
    tgl_sim_hooks *hooks;
    void (*kernel)(void); /* the __global__ function; the host knows its parameters */
    char *shared_begin, *shared_end;
} tgl_sim_image;

#endif
