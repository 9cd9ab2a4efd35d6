/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that uses the library stays as its program expects it: it may fork at any time,
 * unload the library, run out of processes or memory, call from many threads, and handle signals in
 * threads of its own. The library neither prints nor exits.
 */
#include "support.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, N = 200, MAX_SECONDS = 60 };

/* gcc and clang say differently that a sanitizer is on. */
#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
static const bool can_fork = false; /* the thread sanitizer does not follow a child with threads */
#else
static const bool can_fork = true;
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
static const bool can_limit_memory = false; /* the address sanitizer maps terabytes */
/* gcc 12's address sanitizer does not release its allocator's locks in the child: if a thread
 * allocates during fork(), the child may hang in malloc(). */
static const bool can_fork_while_allocating = false;
#else
static const bool can_limit_memory = true;
static const bool can_fork_while_allocating = true;
#endif

/* ---- Products -------------------------------------------------------------------------------- */

/* Whether a product that several threads share is right. Makes no assertion, because it is called
 * in children and in threads. */
static bool multiplies(tgl_device *dev)
{
    float *A = malloc(2 * N * N * sizeof *A), *C = A + N * N;
    for (int i = 0; A != NULL && i < N * N; i++) {
        A[i] = (float)(i / N % 3);
        C[i] = -1;
    }
    const tgl_status status = A == NULL ? TGL_NO_MEMORY
                                        : tgl_sgemm(dev, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_TRANS, N,
                                                    N, N, 1, A, N, A, N, 0, C, N, NULL);
    bool is_right = status == TGL_OK;
    for (int i = 0; is_right && i < N * N; i++)
        is_right = C[i] == (float)(N * (i / N % 3) * (i % N % 3));
    free(A);
    return is_right;
}

static tgl_device *open_threads(int threads)
{
    const tgl_device_options options = {.size = sizeof options, .threads = threads};
    tgl_device *dev = NULL;
    return tgl_device_open("cpu", &options, &dev) == TGL_OK ? dev : NULL;
}

static bool opens_and_multiplies(void *unused)
{
    (void)unused;
    tgl_device *dev = open_threads(THREADS);
    const bool is_right = dev != NULL && multiplies(dev) && multiplies(dev);
    tgl_device_close(dev);
    return is_right;
}

/* ---- Children -------------------------------------------------------------------------------- */

typedef bool child_fn(void *argument);

/* Starts a child that ends with 0 if fn() is true. One that hangs is ended by SIGALRM. */
static pid_t start_child(child_fn *fn, void *argument)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    alarm(MAX_SECONDS);
    signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on with the tests */
    _exit(fn(argument) ? 0 : 1);
}

static void await_child(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fail_msg("the child was ended by signal %d (%s)", WTERMSIG(status),
                 WTERMSIG(status) == SIGALRM ? "it hung" : "it crashed");
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void check_in_child(child_fn *fn, void *argument)
{
    await_child(start_child(fn, argument));
}

/* Like check_in_child(), for a child that must print nothing. */
static void check_in_silent_child(child_fn *fn, void *argument)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    fflush(stderr);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(MAX_SECONDS);
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        _exit(fn(argument) ? 0 : 1);
    }
    close(ends[1]);
    char printed[1000];
    size_t size = 0;
    for (ssize_t got; (got = read(ends[0], printed + size, sizeof printed - 1 - size)) > 0;)
        size += (size_t)got;
    printed[size] = '\0';
    close(ends[0]);
    assert_string_equal(printed, "");
    await_child(child);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static bool multiplies_twice(void *dev)
{
    const bool is_right = multiplies(dev);
    return multiplies(dev) && is_right;
}

/* Uses a device of the parent and closes it. */
static bool uses_inherited(void *argument)
{
    tgl_device *dev = argument;
    const bool is_right = multiplies_twice(dev);
    const int threads = threads_of_process();
    tgl_device_close(dev);
    return is_right && threads > 1;
}

static bool closes_inherited(void *dev)
{
    tgl_device_close(dev);
    return true;
}

static bool uses_inherited_in_grandchild(void *argument)
{
    const pid_t child = start_child(uses_inherited, argument);
    const bool is_right = multiplies(argument);
    int status = -1;
    waitpid(child, &status, 0);
    tgl_device_close(argument);
    return is_right && status == 0;
}

static void forks_before_and_after_use(void **state)
{
    (void)state;
    if (!can_fork) skip();
    tgl_device *dev = open_cpu(THREADS);
    check_in_child(opens_and_multiplies, NULL);
    check_in_child(uses_inherited, dev);
    assert_true(multiplies(dev));
    check_in_child(opens_and_multiplies, NULL);
    check_in_child(uses_inherited, dev);
    check_in_child(closes_inherited, dev);
    check_in_child(uses_inherited_in_grandchild, dev);
    assert_true(multiplies(dev));
    tgl_device_close(dev);
    check_in_child(opens_and_multiplies, NULL);
}

typedef struct busy_thread {
    pthread_t thread;
    tgl_device *dev;
    atomic_bool *stop;
    bool is_right;
} busy_thread;

static void *multiply_until_stopped(void *argument)
{
    busy_thread *b = argument;
    b->is_right = true;
    while (!atomic_load(b->stop))
        if (!multiplies(b->dev)) b->is_right = false;
    return NULL;
}

/* Small products: most of their time goes into plans, locks and buffers. */
static void *multiply_small_until_stopped(void *argument)
{
    busy_thread *b = argument;
    static const float A[4] = {1, 2, 3, 4};
    float C[4] = {0};
    b->is_right = true;
    for (int n = 1; !atomic_load(b->stop); n = n % 2 + 1) {
        const tgl_status status = tgl_sgemm(b->dev, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, n, n,
                                            n, 1, A, n, A, n, 0, C, n, NULL);
        b->is_right = status == TGL_OK && C[0] == (n == 1 ? 1 : 7) && b->is_right;
    }
    return NULL;
}

static void forks_while_products_run(void **state)
{
    (void)state;
    if (!can_fork || !can_fork_while_allocating) skip();
    enum { BUSY = 4, FORKS = 100 };
    tgl_device *dev = open_cpu(THREADS);
    atomic_bool stop = false;
    busy_thread busy[BUSY];
    for (int i = 0; i < BUSY; i++) {
        busy[i] = (busy_thread){.dev = dev, .stop = &stop};
        assert_int_equal(
            pthread_create(&busy[i].thread, NULL,
                           i % 2 ? multiply_small_until_stopped : multiply_until_stopped, &busy[i]),
            0);
    }
    for (int i = 0; i < FORKS; i++)
        check_in_child(i % 10 == 0 ? uses_inherited_in_grandchild : multiplies_twice, dev);
    atomic_store(&stop, true);
    for (int i = 0; i < BUSY; i++) {
        pthread_join(busy[i].thread, NULL);
        assert_true(busy[i].is_right);
    }
    tgl_device_close(dev);
}

static atomic_bool is_in_loader;

static int stay_in_loader(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info, (void)size, (void)data;
    atomic_store(&is_in_loader, true);
    usleep(200000);
    return 1;
}

static void *use_loader(void *unused)
{
    dl_iterate_phdr(stay_in_loader, unused);
    return NULL;
}

/* Before glibc 2.35, for example, a C++ exception takes the lock of the loader. */
static void forks_while_the_loader_is_used(void **state)
{
    (void)state;
    if (!can_fork) skip();
    tgl_device *dev = open_cpu(THREADS);
    pthread_t thread;
    assert_true(multiplies(dev));
    assert_int_equal(pthread_create(&thread, NULL, use_loader, NULL), 0);
    while (!atomic_load(&is_in_loader))
        usleep(100);
    check_in_child(uses_inherited, dev);
    check_in_child(opens_and_multiplies, NULL);
    pthread_join(thread, NULL);
    tgl_device_close(dev);
}

/* Several children compute at a time, and so does the parent, as with Python's multiprocessing and
 * its start method "fork". */
static void workers_of_a_process_pool_multiply(void **state)
{
    (void)state;
    if (!can_fork) skip();
    enum { CHILDREN = 4, ROUNDS = 5 };
    tgl_device *dev = open_cpu(THREADS);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t children[CHILDREN];
        for (int i = 0; i < CHILDREN; i++)
            children[i] = start_child(i % 2 ? uses_inherited : opens_and_multiplies, dev);
        assert_true(multiplies(dev));
        for (int i = 0; i < CHILDREN; i++)
            await_child(children[i]);
    }
    tgl_device_close(dev);
}

static bool multiplies_as_number_one(void *dev)
{
    return getpid() == 1 && uses_inherited(dev);
}

/* This process has the ID 1 in a namespace of process IDs, as the first process of a container. It
 * starts a child that has the ID 1 in another namespace, as a sandbox does. */
static bool starts_number_one(void *unused)
{
    (void)unused;
    tgl_device *dev = open_threads(THREADS);
    if (getpid() != 1 || dev == NULL || !multiplies(dev) || unshare(CLONE_NEWPID) != 0)
        return false;
    const pid_t child = start_child(multiplies_as_number_one, dev);
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0 && multiplies(dev);
}

static bool enters_namespace(void *unused)
{
    if (unshare(CLONE_NEWPID) != 0) return false;
    const pid_t child = start_child(starts_number_one, unused);
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

static bool may_enter_namespace(void *unused)
{
    (void)unused;
    return unshare(CLONE_NEWPID) == 0;
}

static void processes_with_the_same_number_are_told_apart(void **state)
{
    (void)state;
    if (!can_fork) skip();
    const pid_t child = start_child(may_enter_namespace, NULL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) skip(); /* only root may */
    check_in_child(enters_namespace, NULL);
}

/* ---- dlclose --------------------------------------------------------------------------------- */

typedef struct loaded_library {
    void *handle;
    tgl_device *dev;
    __typeof__(&tgl_device_open) open;
    __typeof__(&tgl_device_close) close;
    __typeof__(&tgl_sgemm) sgemm;
} loaded_library;

static bool load(loaded_library *lib)
{
    lib->handle = dlopen(SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (lib->handle == NULL) return false;
    *(void **)&lib->open = dlsym(lib->handle, "tgl_device_open");
    *(void **)&lib->close = dlsym(lib->handle, "tgl_device_close");
    *(void **)&lib->sgemm = dlsym(lib->handle, "tgl_sgemm");
    const tgl_device_options options = {.size = sizeof options, .threads = 2};
    return lib->open("cpu", &options, &lib->dev) == TGL_OK;
}

/* argument: NULL: the device is closed first; else it is left open. */
static bool loads_and_unloads(void *argument)
{
    enum { TIMES = 100, SIZE = 300 };
    float *A = malloc(2 * SIZE * SIZE * sizeof *A), *C = A + SIZE * SIZE;
    for (int i = 0; i < SIZE * SIZE; i++)
        A[i] = 1;
    bool is_right = true;
    for (int i = 0; i < TIMES && is_right; i++) {
        loaded_library lib;
        if (!load(&lib)) return false;
        is_right = lib.sgemm(lib.dev, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, SIZE, SIZE, SIZE,
                             1, A, SIZE, A, SIZE, 0, C, SIZE, NULL) == TGL_OK;
        is_right = is_right && C[SIZE * SIZE - 1] == SIZE;
        if (argument == NULL) lib.close(lib.dev);
        is_right = dlclose(lib.handle) == 0 && is_right;
        if (i % 10 == 0) usleep(1000); /* long enough for workers to wait in the library's code */
    }
    free(A);
    return is_right;
}

static void the_library_is_unloaded_a_hundred_times(void **state)
{
    (void)state;
    if (!can_fork) skip();
    static int leaves_open;
    check_in_child(loads_and_unloads, NULL);
    check_in_child(loads_and_unloads, &leaves_open);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* argument: how many threads the user may have, this one included. */
static bool multiplies_with_few_threads(void *argument)
{
    const rlim_t threads = *(const rlim_t *)argument;
    const struct rlimit limit = {threads, threads};
    if (setrlimit(RLIMIT_NPROC, &limit) != 0) return false;
    /* Root has no such limit, and a user without other processes has all of it. */
    if (getuid() == 0 && setuid(61234) != 0) return false;
    tgl_device *dev = open_threads(16);
    const bool is_right = dev != NULL && multiplies(dev) && multiplies(dev);
    const bool is_limited = threads_of_process() <= (int)threads;
    const bool is_used = getuid() != 61234 || threads_of_process() == (int)threads;
    tgl_device_close(dev);
    return is_right && is_limited && is_used;
}

static void few_threads_are_enough(void **state)
{
    (void)state;
    if (!can_fork) skip();
    for (rlim_t threads = 1; threads <= 4; threads++) /* a user who is not root may have more */
        if (threads == 1 || getuid() == 0)
            check_in_silent_child(multiplies_with_few_threads, &threads);
}

static rlim_t address_space(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld", &pages) != 1) pages = 0;
    if (file != NULL) fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* argument: bytes that the process may still map. */
static bool survives_little_memory(void *argument)
{
    enum { SIZE = 600 };
    float *A = malloc(2 * SIZE * SIZE * sizeof *A), *C = A + SIZE * SIZE;
    if (A == NULL) return false;
    for (int i = 0; i < SIZE * SIZE; i++)
        A[i] = 1;
    const rlim_t room = address_space() + *(const rlim_t *)argument;
    const struct rlimit limit = {room, room};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
    tgl_device *dev = open_threads(16);
    if (dev == NULL) return true;
    const tgl_status status = tgl_sgemm(dev, TGL_ROW_MAJOR, TGL_TRANS, TGL_TRANS, SIZE, SIZE, SIZE,
                                        1, A, SIZE, A, SIZE, 0, C, SIZE, NULL);
    tgl_device_close(dev);
    return status == TGL_NO_MEMORY || (status == TGL_OK && C[SIZE * SIZE - 1] == SIZE);
}

static void little_memory_gives_a_status(void **state)
{
    (void)state;
    if (!can_fork || !can_limit_memory) skip();
    for (rlim_t room = 0; room <= (rlim_t)64 << 20; room = room < 4096 ? 4096 : room * 2)
        check_in_silent_child(survives_little_memory, &room);
}

/* ---- Threads and signals of the host --------------------------------------------------------- */

static void threads_of_the_host_share_the_workers(void **state)
{
    (void)state;
    enum { BUSY = 12 };
    tgl_device *dev = open_cpu(THREADS);
    assert_true(multiplies(dev)); /* creates the workers */
    const int before = threads_of_process();
    atomic_bool stop = false;
    busy_thread busy[BUSY];
    for (int i = 0; i < BUSY; i++) {
        busy[i] = (busy_thread){.dev = dev, .stop = &stop};
        assert_int_equal(pthread_create(&busy[i].thread, NULL, multiply_until_stopped, &busy[i]),
                         0);
    }
    int threads_max = 0;
    for (int i = 0; i < 50; i++) {
        usleep(2000);
        const int now = threads_of_process();
        threads_max = now > threads_max ? now : threads_max;
    }
    atomic_store(&stop, true);
    for (int i = 0; i < BUSY; i++) {
        pthread_join(busy[i].thread, NULL);
        assert_true(busy[i].is_right);
    }
    assert_true(threads_max > before && threads_max <= before + BUSY);
    tgl_device_close(dev);
}

static atomic_int signals, signals_elsewhere;
static atomic_bool handler_ends;
static _Thread_local bool is_handler_thread;

static void note_thread(int signal)
{
    (void)signal;
    atomic_fetch_add(&signals, 1);
    if (!is_handler_thread) atomic_fetch_add(&signals_elsewhere, 1);
}

/* The one thread of the host that does not block SIGALRM. */
static void *handle_signals(void *argument)
{
    is_handler_thread = true;
    pthread_sigmask(SIG_UNBLOCK, argument, NULL);
    while (!atomic_load(&handler_ends))
        usleep(500);
    return NULL;
}

static void signals_are_handled_in_threads_of_the_host(void **state)
{
    (void)state;
    const struct sigaction action = {.sa_handler = note_thread, .sa_flags = SA_RESTART};
    const struct itimerval every_ms = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct sigaction before;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    tgl_device *dev = open_cpu(THREADS);
    assert_true(multiplies(dev)); /* creates the workers while nothing is blocked */
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    pthread_t handler;
    assert_int_equal(pthread_create(&handler, NULL, handle_signals, &alarm_only), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &every_ms, NULL), 0);
    for (int i = 0; i < 20000 && atomic_load(&signals) < 100; i++)
        assert_true(multiplies(dev));
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    atomic_store(&handler_ends, true);
    pthread_join(handler, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    sigaction(SIGALRM, &before, NULL);
    tgl_device_close(dev);
    assert_true(atomic_load(&signals) >= 100);
    assert_int_equal(atomic_load(&signals_elsewhere), 0);
}

/* ---- Filters of system calls ----------------------------------------------------------------- */

/* From here on the process is killed if it calls sched_setaffinity(). */
static bool forbid_setting_affinity(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *compute_until_stopped(void *argument)
{
    for (volatile long x = 0; !atomic_load((atomic_bool *)argument); x++)
        ;
    return NULL;
}

/* On busy processors Linux often wakes a worker on the caller's processor. */
static bool multiplies_filtered(void *unused)
{
    (void)unused;
    enum { BUSY = 4, PRODUCTS = 300 };
    pthread_t busy[BUSY];
    atomic_bool stop = false;
    if (!forbid_setting_affinity()) return false;
    tgl_device *dev = open_threads(2);
    for (int i = 0; i < BUSY; i++)
        if (pthread_create(&busy[i], NULL, compute_until_stopped, &stop) != 0) return false;
    bool is_right = true;
    for (int i = 0; i < PRODUCTS && is_right; i++) {
        is_right = multiplies(dev);
        usleep(100); /* the workers fall asleep */
    }
    atomic_store(&stop, true);
    for (int i = 0; i < BUSY; i++)
        pthread_join(busy[i], NULL);
    tgl_device_close(dev);
    return is_right;
}

static bool may_filter(void *unused)
{
    (void)unused;
    return forbid_setting_affinity();
}

static void filters_of_system_calls_do_not_kill(void **state)
{
    (void)state;
    if (!can_fork) skip();
    const pid_t child = start_child(may_filter, NULL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) skip();
    check_in_child(multiplies_filtered, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_before_and_after_use),
        cmocka_unit_test(forks_while_products_run),
        cmocka_unit_test(workers_of_a_process_pool_multiply),
        cmocka_unit_test(forks_while_the_loader_is_used),
        cmocka_unit_test(processes_with_the_same_number_are_told_apart),
        cmocka_unit_test(the_library_is_unloaded_a_hundred_times),
        cmocka_unit_test(few_threads_are_enough),
        cmocka_unit_test(little_memory_gives_a_status),
        cmocka_unit_test(threads_of_the_host_share_the_workers),
        cmocka_unit_test(signals_are_handled_in_threads_of_the_host),
        cmocka_unit_test(filters_of_system_calls_do_not_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
