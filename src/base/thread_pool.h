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
#include <stdint.h>

/* What a team runs: called once for each member, with thread = 0 .. team - 1. One thread may run
 * several members, one after the other. */
typedef void thread_pool_fn(void *context, int thread, int team);

/* A run of a team. It and its context must be valid until the last member has finished. If a signal
 * handler can leave the run by longjmp(), they must not be in the caller's frames. */
typedef struct thread_pool_task {
    thread_pool_fn *body;
    void *context;
    /* Set by the pool: */
    int team;
    unsigned float_control;   /* the caller's floating-point control word; members use it */
    _Atomic int exceptions;   /* floating-point exceptions of the members that have finished */
    _Atomic uint32_t pending; /* members that have not finished, without the caller */
} thread_pool_task;

typedef struct thread_pool {
    _Atomic int threads; /* limit of the team's size, the caller included */
    int most;            /* upper limit of `threads`; at least `processors` */
    int processors;      /* how many this process may use */
    openmp_runtimes openmp;
    _Atomic(struct thread_pool_crew *) crew; /* the workers of this process; NULL: none yet */
} thread_pool;

/* processors: how many this process may use, at least 1. The threads of a team that is larger than
 * this sleep without polling first. Creates no thread. */
void tgl_thread_pool_open(thread_pool *pool, int threads, int processors);

/* Ends and joins the threads. No run may be in progress, except those that a signal handler has
 * left: their members are awaited. */
void tgl_thread_pool_close(thread_pool *pool);

/* Runs a task on the caller, which is member 0, and on at most threads - 1 workers, and returns
 * when all have finished. Needs task->body and task->context. The team is smaller if workers are
 * busy with another caller's task, or the system refuses more threads. It is the caller alone in an
 * OpenMP parallel region. */
void tgl_thread_pool_run(thread_pool *pool, int threads, thread_pool_task *task);

/* Waits for the tasks that workers have at this moment. */
void tgl_thread_pool_settle(thread_pool *pool);

#endif
