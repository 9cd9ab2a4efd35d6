/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the clusters of a launch on several threads of the host. The result, the counts, the trace
 * and the error message do not depend on the number of threads.
 */
#ifndef TGL_SIM_HOST_THREADS_H
#define TGL_SIM_HOST_THREADS_H

#include "base/thread_pool.h"
#include "sim/machine_launch.h"

typedef struct tgl_host_threads {
    thread_pool pool;
    tgl_machine *helpers[TGL_SIM_HOST_THREADS_MAX];    /* NULL: not needed yet */
    tgl_sim_launch launches[TGL_SIM_HOST_THREADS_MAX]; /* launches[i]: the launch with the kernel
                                                          copy of helper i */
    int64_t shared_launches; /* number of launches that several threads have completed */
} tgl_host_threads;

/* Prepares the host threads. asked: the number that the program requests; 0: not given. */
void tgl_host_threads_open(tgl_host_threads *threads, int asked);
void tgl_host_threads_close(tgl_host_threads *threads);

/* Runs a launch to its end or its first error. Returns TGL_OK, TGL_KERNEL_FAULT, TGL_NO_MEMORY or
 * TGL_UNSUPPORTED. The counts are in machine->tally until the next launch. */
tgl_status tgl_host_threads_run(tgl_host_threads *threads, tgl_machine *machine,
                                const tgl_sim_launch *launch);

#endif
