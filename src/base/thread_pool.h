/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of a device. They are created when a run first needs them, wait between runs, and
 * end with the device.
 *
 * A run executes a task: it calls one function for each member of a team. Member 0 runs on the
 * calling thread, the others on workers, which are the threads of the pool.
 */
#ifndef TGL_THREAD_POOL_H
#define TGL_THREAD_POOL_H

#include "base/openmp.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The function of a task. It is called once for each member of the team, with thread = 0 ...
 * team - 1. The calling thread may run several members, one after the other. */
typedef void thread_pool_fn(void *context, int thread, int team);

/* A task. It and its context must be valid until the last member has finished. If a signal handler
 * might leave the run by longjmp(), neither may be on the caller's stack. */
typedef struct thread_pool_task {
    thread_pool_fn *body;
    void *context;
    /* Set by the pool: */
    int team;                 /* number of members, including the caller's */
    unsigned float_control;   /* floating-point control word of the caller, which members use */
    _Atomic int exceptions;   /* floating-point exceptions that members have raised so far */
    _Atomic uint32_t pending; /* number of members other than member 0 that have not finished; the
                                 top bit is a flag (thread_pool.c) */
} thread_pool_task;

typedef struct thread_pool {
    _Atomic int threads; /* maximum size of a team, including the caller */
    int threads_max;     /* upper limit of `threads`; at least `processors` */
    int processors;      /* number of processors that this process may use */
    openmp_runtimes openmp;
    _Atomic(struct thread_pool_crew *) crew; /* the workers of this process; NULL: none yet */
} thread_pool;

/* Initialises a pool; creates no threads. threads: maximum size of a team. processors: number of
 * processors that this process may use, at least 1. In a team of more threads than `processors`, a
 * waiting thread sleeps at once, without polling. */
void tgl_thread_pool_open(thread_pool *pool, int threads, int processors);

/* Ends and joins the threads. No run may be in progress, except runs that a signal handler has left
 * by longjmp(): this function waits for those of their members that workers have begun. */
void tgl_thread_pool_close(thread_pool *pool);

/* Runs task->body on the caller, as member 0, and on at most min(threads, pool->threads) - 1
 * workers. Returns when all members have finished. The team is smaller if workers are busy with
 * another caller's task or the system refuses threads. In an OpenMP parallel region the caller runs
 * alone. */
void tgl_thread_pool_run(thread_pool *pool, int threads, thread_pool_task *task);

/* Waits until the workers have finished the tasks that they have at the time of the call. It is
 * needed after a signal handler has left a run by longjmp(), because workers may still compute
 * members of that run. */
void tgl_thread_pool_settle(thread_pool *pool);

#endif
