/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of POSIX threads. One run at a time has the workers: the caller hands a task to each
 * member of its team, runs thread 0's part itself, and waits until the last worker has finished.
 *
 *   - A waiting thread polls for a while, then sleeps in the kernel (futex). Products that
 *     follow each other closely therefore need no system call.
 *   - After fork() the child has none of the parent's threads, and the parent's state may have been
 *     in use at that moment. Threads therefore belong to a crew, which knows the process it was
 *     made in. The child makes a crew of its own and touches nothing in the inherited one.
 *   - No lock is held anywhere, so that none can be inherited in a locked state.
 *   - Workers block signals: handlers of the host program run in the host's threads. Signals that
 *     report a fault of the running thread stay deliverable.
 */
#include "base/thread_pool.h"
#include "base/clock.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long a worker polls for the next task: a few times what waking a sleeping thread costs (5 to
 * 10 us on Linux). */
static const double WORKER_SPIN_SECONDS = 50e-6;

/* How long the caller polls for the workers to finish, in addition to twice the time of its own
 * part. It does not sleep earlier for two reasons. Linux may wake a worker on the caller's
 * processor, where the worker starts only after the caller's part and then moves to another
 * processor. Linux may also wake a sleeping caller on a worker's processor, which the two then
 * share in the next run. */
static const double CALLER_SPIN_SECONDS = 1e-3;

static const double YIELD_SECONDS = 1e-6;

/* How long to wait before asking again for a thread that the system refused. */
static const double RETRY_SECONDS = 1;

enum {
    CACHE_LINE = 64,
    STACK_BYTES = 1 << 20, /* microkernels use a few KB; the default of 8 MB counts in RLIMIT_AS */
};

/* What a worker's task word says. */
enum { IDLE, SLEEPING, TASK, STOP };

/* In crew.pending, beside the number of workers that have not finished: the caller sleeps. */
static const uint32_t CALLER_SLEEPS = 1u << 31;

typedef struct thread_pool_crew crew;

typedef struct worker {
    _Alignas(CACHE_LINE) _Atomic uint32_t task; /* polled, so it has a cache line of its own */
    int thread;                                 /* its number in a team, from 1 */
    crew *crew;
    pthread_t handle;
} worker;

/* The workers of one process. Members without _Atomic belong to the caller that has set `taken`. */
struct thread_pool_crew {
    pid_t process;      /* that it was made in */
    crew *inherited;    /* the crew of the parent process; NULL: none */
    _Atomic bool taken; /* a run is in progress */
    int processors;     /* that the process may use */
    int size;           /* workers that exist */
    double refused;     /* when the system last refused a thread; 0: never */
    int callers_processor;
    int team; /* of the current run */
    thread_pool_fn *body;
    void *context;
    _Alignas(CACHE_LINE) _Atomic uint32_t pending; /* workers of the team that have not finished */
    worker workers[];
};

/* Of linux/futex.h, which is not part of musl. */
enum { FUTEX_SLEEP = 0 | 128, FUTEX_AWAKE = 1 | 128 }; /* FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE */

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Sleeps while *word is `value`. May return early. */
static void sleep_on(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_SLEEP, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_AWAKE, INT_MAX, NULL, NULL, 0);
}

/* Lets the other hardware thread of the core run. */
static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Polls until low <= *word <= high, for `seconds` at most. After the first polls it offers its
 * processor to other threads: the one that it waits for may have been placed on the same. */
static void spin_until(_Atomic uint32_t *word, uint32_t low, uint32_t high, double seconds)
{
    const double start = tgl_clock();
    double elapsed = 0;
    while (elapsed < seconds) {
        for (int i = 0; i < 16; i++) {
            const uint32_t value = atomic_load_explicit(word, memory_order_acquire);
            if (value >= low && value <= high) return;
            pause_briefly();
        }
        if (elapsed > YIELD_SECONDS) sched_yield();
        elapsed = tgl_clock() - start;
    }
}

/* ---- Workers --------------------------------------------------------------------------------- */

/* Moves the calling thread to another processor than this one, if it may use one. */
static void leave_processor(int processor)
{
    cpu_set_t allowed, others;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    others = allowed;
    CPU_CLR(processor, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof allowed, &allowed);
}

/* Returns TASK or STOP. */
static uint32_t wait_for_task(worker *w, bool spins)
{
    if (spins) spin_until(&w->task, TASK, STOP, WORKER_SPIN_SECONDS);
    uint32_t seen = IDLE;
    atomic_compare_exchange_strong(&w->task, &seen, SLEEPING);
    while ((seen = atomic_load_explicit(&w->task, memory_order_acquire)) == SLEEPING)
        sleep_on(&w->task, SLEEPING);
    return seen;
}

static void set_task(worker *w, uint32_t task)
{
    if (atomic_exchange(&w->task, task) == SLEEPING) wake(&w->task);
}

static void *work(void *argument)
{
    worker *w = argument;
    crew *c = w->crew;
    for (bool spins = false; wait_for_task(w, spins) == TASK;) {
        /* On a busy machine Linux wakes a thread on the processor of the thread that wakes it.
         * There it would compute after the caller instead of beside it. */
        if (w->thread % c->processors != 0 && sched_getcpu() == c->callers_processor)
            leave_processor(c->callers_processor);
        spins = c->team <= c->processors;
        c->body(c->context, w->thread, c->team);
        atomic_store_explicit(&w->task, IDLE, memory_order_relaxed);
        /* From here on the caller may start the next run. */
        if (atomic_fetch_sub(&c->pending, 1) == (CALLER_SLEEPS | 1)) wake(&c->pending);
    }
    return NULL;
}

static bool start_worker(crew *c, const pthread_attr_t *attributes)
{
    worker *w = &c->workers[c->size];
    *w = (worker){.thread = c->size + 1, .crew = c};
    return pthread_create(&w->handle, attributes, work, w) == 0;
}

/* New threads inherit the signal mask of the thread that creates them. */
static void start_workers(crew *c, int wanted)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    while (c->size < wanted && start_worker(c, &attributes))
        c->size++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* Makes sure of `wanted` workers, and returns how many of them there are. */
static int hire(crew *c, int wanted)
{
    if (c->size < wanted && (c->refused == 0 || tgl_clock() - c->refused > RETRY_SECONDS)) {
        start_workers(c, wanted);
        c->refused = c->size < wanted ? tgl_clock() : 0;
    }
    return c->size < wanted ? c->size : wanted;
}

/* ---- Crews ----------------------------------------------------------------------------------- */

/* The crew of this process, made if there is none; NULL: no memory. */
static crew *own_crew(thread_pool *pool)
{
    const pid_t process = getpid();
    crew *found = atomic_load(&pool->crew);
    if (found != NULL && found->process == process) return found;

    const size_t bytes = sizeof(crew) + (size_t)(pool->most - 1) * sizeof(worker);
    crew *made = aligned_alloc(CACHE_LINE, bytes); /* a multiple of CACHE_LINE, as both sizes are */
    if (made == NULL) return NULL;
    memset(made, 0, bytes);
    made->process = process;
    made->inherited = found;
    made->processors = pool->processors;
    if (atomic_compare_exchange_strong(&pool->crew, &found, made)) return made;
    free(made); /* another thread was faster */
    return found;
}

static void run_team(crew *c, int team, thread_pool_fn *body, void *context)
{
    c->body = body;
    c->context = context;
    c->team = team;
    c->callers_processor = sched_getcpu();
    atomic_store_explicit(&c->pending, (uint32_t)(team - 1), memory_order_relaxed);
    for (int i = 0; i < team - 1; i++)
        set_task(&c->workers[i], TASK);
    const double start = tgl_clock();
    body(context, 0, team);
    const double own_part = tgl_clock() - start;

    if (team <= c->processors) spin_until(&c->pending, 0, 0, CALLER_SPIN_SECONDS + 2 * own_part);
    if (atomic_load_explicit(&c->pending, memory_order_acquire) == 0) return;
    uint32_t seen = atomic_fetch_or(&c->pending, CALLER_SLEEPS) | CALLER_SLEEPS;
    for (; seen != CALLER_SLEEPS; seen = atomic_load_explicit(&c->pending, memory_order_acquire))
        sleep_on(&c->pending, seen);
}

/* ---- The pool -------------------------------------------------------------------------------- */

void tgl_thread_pool_open(thread_pool *pool, int threads, int processors)
{
    *pool = (thread_pool){.threads = threads,
                          .most = threads > processors ? threads : processors,
                          .processors = processors};
}

void tgl_thread_pool_run(thread_pool *pool, int threads, thread_pool_fn *body, void *context)
{
    const int limit = pool->threads;
    if (threads > limit) threads = limit;
    if (threads > 1 && !tgl_in_openmp_region(&pool->openmp)) {
        crew *c = own_crew(pool);
        if (c != NULL && !atomic_exchange(&c->taken, true)) {
            run_team(c, 1 + hire(c, threads - 1), body, context);
            atomic_store(&c->taken, false);
            return;
        }
    }
    body(context, 0, 1);
}

void tgl_thread_pool_close(thread_pool *pool)
{
    crew *c = atomic_exchange(&pool->crew, NULL);
    const bool has_threads = c != NULL && c->process == getpid();
    for (int i = 0; has_threads && i < c->size; i++)
        set_task(&c->workers[i], STOP);
    for (int i = 0; has_threads && i < c->size; i++)
        pthread_join(c->workers[i].handle, NULL);
    while (c != NULL) {
        crew *inherited = c->inherited;
        free(c);
        c = inherited;
    }
}
