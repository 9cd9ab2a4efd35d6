/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of POSIX threads. A task has several members, which may run at the same time. The caller
 * hands members 1, 2, ... to idle workers, runs member 0 itself, and waits until the last member
 * has finished.
 *
 *   - A waiting thread polls for a while, then sleeps in the kernel (futex). Products that
 *     follow each other closely therefore wake no thread.
 *   - On a busy machine a worker may start late. When the caller has finished its own member, it
 *     takes back each member that no worker has begun, and runs it itself. So a run takes hardly
 *     longer than on one thread, unless the system interrupts a worker that has begun a member.
 *   - After fork() the child has none of the parent's threads, and the parent's state may have been
 *     in use at that moment. Threads therefore belong to a crew, which knows the process it was
 *     made in. The child makes a crew of its own and uses no worker of the inherited one.
 *   - A signal handler may leave a run by longjmp(). A caller owns a worker only while handing a
 *     task over. Workers finish the members that they have begun, and are then idle again. While
 *     they run a member they read only the task, which outlives the caller's stack frames.
 *   - This file uses no locks: fork() would copy a locked one to the child, and longjmp() would
 *     leave it locked.
 *   - Members compute with the caller's rounding mode and treatment of denormal numbers.
 *     Floating-point exceptions do not trap in workers; the caller raises them at the end.
 *   - Workers block signals, so that handlers of the host program run in the host's threads.
 *     Signals that report a fault of the running thread stay deliverable.
 */
#include "base/thread_pool.h"
#include "base/clock.h"
#include "base/float_state.h"
#include "base/process_number.h"
#include "base/processors.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long a worker polls for the next task before it sleeps. Waking a sleeping thread costs 5 to
 * 10 us on Linux. */
static const double WORKER_SPIN_SECONDS = 50e-6;

/* How long the caller polls for its workers, in addition to twice the time of its own member,
 * before it sleeps. Even a run without disturbance may need most of that time: if Linux wakes a
 * worker on the caller's processor, the worker starts only when the caller has finished its own
 * member. A caller that sleeps too early is slow in later runs, too: Linux may wake the caller on a
 * worker's processor, which the two then share in the next run
 * (docs/notes/2026-11-26-cpu-measurements.md). */
static const double CALLER_SPIN_SECONDS = 1e-3;

/* How long a thread polls before it also calls sched_yield() between its polls. */
static const double YIELD_SECONDS = 1e-6;

/* How long to wait, after the system has refused a thread, before asking for one again. */
static const double RETRY_SECONDS = 1;

enum {
    CACHE_LINE = 64,
    STACK_BYTES = 1 << 20, /* stack of a worker: kernels use a few KB of it; the default of 8 MB
                              would count towards RLIMIT_AS */
};

/* The word of a worker: its state, two flags, and a number that changes with each task. The worker
 * is idle if none of the bits STATES is set. */
enum {
    CLAIMED = 1, /* a caller is about to hand over a task */
    TASK = 2,    /* the worker has a task that it has not begun */
    RUNNING = 4, /* the worker has begun its task */
    SLEEPS = 8,  /* flag: the worker sleeps and must be woken */
    STOP = 16,   /* flag: the pool is closed, the worker must end */
    NUMBER = 32, /* lowest bit of the number that changes with each task */
    STATES = CLAIMED | TASK | RUNNING,
};

/* A flag in thread_pool_task.pending: the caller sleeps and must be woken. */
static const uint32_t CALLER_SLEEPS = 1u << 31;

typedef struct thread_pool_crew crew;

typedef struct worker {
    _Alignas(CACHE_LINE) _Atomic uint32_t word; /* polled by the worker, hence in its own cache
                                                   line */
    _Atomic int thread;                         /* number of the task's member that the worker
                                                   runs */
    _Atomic(thread_pool_task *) task;
    crew *crew;
    pthread_t handle;
} worker;

/* The workers of one process. */
struct thread_pool_crew {
    unsigned process;       /* tgl_process() of the process that made it */
    crew *inherited;        /* crew of the parent process, never used; NULL: none */
    int processors;         /* processors that the process may use */
    atomic_bool hires;      /* true while a thread creates workers */
    _Atomic double refused; /* time of tgl_clock() when the system last refused a thread; 0:
                               never */
    _Atomic int size;       /* workers that exist */
    worker workers[];
};

/* Values from linux/futex.h, a header that musl does not have. */
enum { FUTEX_SLEEP = 0 | 128, FUTEX_AWAKE = 1 | 128 }; /* FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE */

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Sleeps while *word == value. May return early. */
static void sleep_on(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_SLEEP, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_AWAKE, INT_MAX, NULL, NULL, 0);
}

/* Tells the processor that the calling thread polls, so that the core gives its resources to its
 * other hardware thread. */
static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Polls *word for at most `seconds`. any: true waits until at least one of the bits is set, false
 * until none is set. After YIELD_SECONDS it also yields, because the thread that it waits for may
 * be on the same processor. */
static void spin_until(_Atomic uint32_t *word, uint32_t bits, bool any, double seconds)
{
    const double start = tgl_clock();
    double elapsed = 0;
    while (elapsed < seconds) {
        for (int i = 0; i < 16; i++) {
            const uint32_t value = atomic_load_explicit(word, memory_order_acquire);
            if (((value & bits) != 0) == any) return;
            pause_briefly();
        }
        if (elapsed > YIELD_SECONDS) sched_yield();
        elapsed = tgl_clock() - start;
    }
}

/* ---- Workers --------------------------------------------------------------------------------- */

/* Waits for a task and marks it as running. False: the worker must end. spins: whether to poll
 * before sleeping. */
static bool begin_task(worker *w, bool spins)
{
    if (spins) spin_until(&w->word, TASK | STOP, true, WORKER_SPIN_SECONDS);
    uint32_t word = atomic_load(&w->word);
    for (;;) {
        if (word & STOP) return false;
        const bool has_task = (word & TASK) != 0;
        const uint32_t next = has_task ? word - TASK + RUNNING : word | SLEEPS;
        if (!atomic_compare_exchange_strong(&w->word, &word, next)) continue;
        if (has_task) return true;
        sleep_on(&w->word, next);
        word = atomic_load(&w->word);
    }
}

/* Records that a member has finished. After the last member has finished, the task must not be
 * accessed any more, because its memory may be reused. */
static void finish(thread_pool_task *task)
{
    if (atomic_fetch_sub(&task->pending, 1) == (CALLER_SLEEPS | 1)) wake(&task->pending);
}

/* Adds the floating-point exceptions of this worker to those of the task. */
static void keep_exceptions(thread_pool_task *task)
{
    const int raised = fetestexcept(FE_ALL_EXCEPT);
    if (raised & ~atomic_load(&task->exceptions)) atomic_fetch_or(&task->exceptions, raised);
}

static void *work(void *argument)
{
    worker *w = argument;
    tgl_take_affinity_of_process();
    for (bool spins = false; begin_task(w, spins);) {
        thread_pool_task *task = atomic_load_explicit(&w->task, memory_order_relaxed);
        spins = task->team <= w->crew->processors;
        tgl_float_set_control(task->float_control);
        task->body(task->context, w->thread, task->team);
        keep_exceptions(task);
        /* The worker becomes idle before finish(), so that the caller can use it in its next
         * run. */
        atomic_fetch_and(&w->word, ~(uint32_t)STATES);
        finish(task);
    }
    return NULL;
}

static bool start_worker(crew *c, int index, const pthread_attr_t *attributes)
{
    worker *w = &c->workers[index];
    *w = (worker){.crew = c};
    return pthread_create(&w->handle, attributes, work, w) == 0;
}

static void start_workers(crew *c, int wanted, const pthread_attr_t *attributes)
{
    int size = atomic_load(&c->size);
    while (size < wanted && start_worker(c, size, attributes))
        atomic_store(&c->size, ++size);
    atomic_store(&c->refused, size < wanted ? tgl_clock() : 0);
}

/* Blocks the signals that do not report a fault of the running thread. Until pthread_sigmask() sets
 * the mask *before again, no signal handler can leave the caller by longjmp(). */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

/* Creates workers until there are `wanted`, unless another caller is creating some or the system
 * has refused a thread in the last RETRY_SECONDS. Signals are blocked meanwhile, also because new
 * threads inherit the signal mask. */
static void hire(crew *c, int wanted)
{
    const double refused = atomic_load(&c->refused);
    if (refused != 0 && tgl_clock() - refused < RETRY_SECONDS) return;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t before;
    block_signals(&before);
    if (!atomic_exchange(&c->hires, true)) {
        start_workers(c, wanted, &attributes);
        atomic_store(&c->hires, false);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* ---- Crews ----------------------------------------------------------------------------------- */

/* Whether the crew was made by this process, so that its threads exist. */
static bool is_own(const crew *c)
{
    return c != NULL && c->process == tgl_process();
}

/* The crew of this process; made if there is none. NULL: out of memory. */
static crew *own_crew(thread_pool *pool)
{
    crew *found = atomic_load(&pool->crew);
    if (is_own(found)) return found;

    const size_t bytes = sizeof(crew) + (size_t)(pool->threads_max - 1) * sizeof(worker);
    /* As aligned_alloc() requires, `bytes` is a multiple of CACHE_LINE: this is the alignment of
     * crew and of worker. */
    crew *made = aligned_alloc(CACHE_LINE, bytes);
    if (made == NULL) return NULL;
    memset(made, 0, bytes);
    made->process = tgl_process();
    made->inherited = found;
    made->processors = pool->processors;
    if (atomic_compare_exchange_strong(&pool->crew, &found, made)) return made;
    free(made); /* another thread was faster */
    return found;
}

/* ---- Teams ----------------------------------------------------------------------------------- */

static bool is_idle(worker *w)
{
    return (atomic_load_explicit(&w->word, memory_order_relaxed) & (STATES | STOP)) == 0;
}

/* The size of a team: the caller and the idle workers, at most `threads`. */
static int count_team(crew *c, int threads)
{
    if (atomic_load(&c->size) < threads - 1) hire(c, threads - 1);
    const int size = atomic_load(&c->size);
    int team = 1;
    for (int i = 0; i < size && team < threads; i++)
        team += is_idle(&c->workers[i]);
    return team;
}

/* Gives a worker member `thread` of a task. False: the worker is not idle, or must end. */
static bool assign(worker *w, thread_pool_task *task, int thread)
{
    uint32_t word = atomic_load_explicit(&w->word, memory_order_relaxed);
    do {
        if ((word & (STATES | STOP)) != 0) return false;
    } while (!atomic_compare_exchange_weak(&w->word, &word, word | CLAIMED));
    atomic_store_explicit(&w->task, task, memory_order_relaxed);
    atomic_store_explicit(&w->thread, thread, memory_order_relaxed);
    const uint32_t handed = (word & ~(uint32_t)SLEEPS) + NUMBER + TASK;
    if (atomic_exchange(&w->word, handed) & SLEEPS) wake(&w->word);
    return true;
}

/* As assign(), but blocks signals while it wakes a sleeping worker: a signal handler that leaves
 * the caller by longjmp() before the system call would leave the worker asleep with a task. */
static bool hand_over(worker *w, thread_pool_task *task, int thread)
{
    if (!(atomic_load_explicit(&w->word, memory_order_relaxed) & SLEEPS))
        return assign(w, task, thread);
    sigset_t before;
    block_signals(&before);
    const bool is_given = assign(w, task, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_given;
}

/* Takes back a task that the worker has not begun. False: the worker has begun the task, or has
 * another one. The compare-and-exchange proves that w->task has not changed either, because
 * w->word contains the number of the task. */
static bool take_back(worker *w, const thread_pool_task *task)
{
    uint32_t word = atomic_load(&w->word);
    return (word & TASK) && atomic_load(&w->task) == task &&
           atomic_compare_exchange_strong(&w->word, &word, word - TASK);
}

static void run_member(thread_pool_task *task, int thread)
{
    task->body(task->context, thread, task->team);
}

static void run_team(crew *c, thread_pool_task *task)
{
    const int team = task->team;
    int end = 0, next = 1; /* end: one past the last worker to which a member was offered; next: the
                              next member to hand over */
    for (; next < team && end < atomic_load(&c->size); end++)
        next += hand_over(&c->workers[end], task, next);
    const double start = tgl_clock();
    run_member(task, 0);
    const double own_part = tgl_clock() - start;

    /* Runs the members for which there was no idle worker, because other callers have claimed
     * workers since the team was counted. */
    for (; next < team; next++) {
        run_member(task, next);
        finish(task);
    }
    /* Takes back members that have not begun. Starts with the last worker, because it was woken
     * last and has probably not begun. */
    for (int i = end - 1; i >= 0 && atomic_load(&task->pending) > 0; i--) {
        worker *w = &c->workers[i];
        const int thread = w->thread;
        if (!take_back(w, task)) continue;
        run_member(task, thread);
        finish(task);
    }
    if (team <= c->processors)
        spin_until(&task->pending, ~CALLER_SLEEPS, false, CALLER_SPIN_SECONDS + 2 * own_part);
    if (atomic_load_explicit(&task->pending, memory_order_acquire) == 0) return;
    uint32_t seen = atomic_fetch_or(&task->pending, CALLER_SLEEPS) | CALLER_SLEEPS;
    for (; seen != CALLER_SLEEPS; seen = atomic_load(&task->pending))
        sleep_on(&task->pending, seen);
}

/* ---- The pool -------------------------------------------------------------------------------- */

void tgl_thread_pool_open(thread_pool *pool, int threads, int processors)
{
    *pool = (thread_pool){.threads = threads,
                          .threads_max = threads > processors ? threads : processors,
                          .processors = processors};
}

void tgl_thread_pool_run(thread_pool *pool, int threads, thread_pool_task *task)
{
    const int limit = pool->threads;
    if (threads > limit) threads = limit;
    task->team = 1;
    if (threads > 1 && !tgl_in_openmp_region(&pool->openmp)) {
        crew *c = own_crew(pool);
        if (c != NULL) task->team = count_team(c, threads);
        if (task->team > 1) {
            task->float_control = tgl_float_control();
            atomic_store(&task->exceptions, 0);
            atomic_store(&task->pending, (uint32_t)(task->team - 1));
            run_team(c, task);
            tgl_float_raise(atomic_load(&task->exceptions));
            return;
        }
    }
    run_member(task, 0);
}

void tgl_thread_pool_settle(thread_pool *pool)
{
    crew *c = atomic_load(&pool->crew);
    const int size = is_own(c) ? atomic_load(&c->size) : 0;
    for (int i = 0; i < size; i++) {
        worker *w = &c->workers[i];
        const uint32_t number = atomic_load(&w->word) / NUMBER;
        for (uint32_t now;
             ((now = atomic_load(&w->word)) & (TASK | RUNNING)) && now / NUMBER == number;) {
            /* A caller that was left may not have woken the worker. */
            if (now & TASK) wake(&w->word);
            usleep(50);
        }
    }
}

void tgl_thread_pool_close(thread_pool *pool)
{
    crew *c = atomic_exchange(&pool->crew, NULL);
    const int size = is_own(c) ? atomic_load(&c->size) : 0;
    for (int i = 0; i < size; i++) {
        atomic_fetch_or(&c->workers[i].word, STOP);
        wake(&c->workers[i].word);
    }
    for (int i = 0; i < size; i++)
        pthread_join(c->workers[i].handle, NULL);
    while (c != NULL) {
        crew *inherited = c->inherited;
        free(c);
        c = inherited;
    }
}
