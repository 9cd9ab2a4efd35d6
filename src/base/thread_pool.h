/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of a device. They are created when a run first needs them, wait between runs, and end
 * with the device.
 */
#ifndef TGL_THREAD_POOL_H
#define TGL_THREAD_POOL_H

#include "base/openmp.h"

#include <stdatomic.h>
#include <stdbool.h>

/* What a team of threads runs: called once on each of them, with thread = 0 .. team - 1. */
typedef void thread_pool_fn(void *context, int thread, int team);

typedef struct thread_pool {
    _Atomic int threads; /* the largest team, the caller included */
    int most;            /* what `threads` may be set to: at least the processors */
    int processors;      /* that this process may use */
    openmp_runtimes openmp;
    _Atomic(struct thread_pool_crew *) crew; /* the workers of this process; NULL: none yet */
} thread_pool;

/* processors: how many this process may use, at least 1. The threads of a team that is larger do
 * not spin. Creates no thread. */
void tgl_thread_pool_open(thread_pool *pool, int threads, int processors);

/* Ends and joins the threads. No run may be in progress. */
void tgl_thread_pool_close(thread_pool *pool);

/* Runs `body` on the caller, which is thread 0, and on at most threads - 1 workers, and returns
 * when all have finished. The team is smaller if the system refuses more threads. It is the caller
 * alone if another caller has the workers, or if the caller is in an OpenMP parallel region. */
void tgl_thread_pool_run(thread_pool *pool, int threads, thread_pool_fn *body, void *context);

#endif
