/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of the cpu device that a signal handler leaves by longjmp(), as Ctrl-C does in Sage. The
 * workers read nothing of the frames that are left, and later products are right.
 */
#include "support.h"

#include "backend/backend.h"
#include "cpu/run/cpu_state.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { TEAM = 3, N = 260, LEFT = 25 };

/* gcc and clang say differently that a sanitizer is on. */
#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
static const bool can_leave = false; /* a handler must not leave the thread sanitizer's own code */
#else
static const bool can_leave = true;
#endif

/* A product that a handler leaves never frees its buffer. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "detect_leaks=0";
}

static sigjmp_buf before_product;
static float A[N * N], B[N * N];
static float C[N * N];     /* of products that are left */
static float later[N * N]; /* of products that are not */

static void leave(int signal)
{
    (void)signal;
    siglongjmp(before_product, 1);
}

/* Whether the product is to be left when it is about to wake a worker. */
static atomic_bool leaves_before_wake;

/* Takes the place of the C library's function. The pool of threads passes six arguments. */
long syscall(long __sysno, ...)
{
    static long (*next)(long, ...);
    long args[6];
    va_list list;
    va_start(list, __sysno);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    const int operation = (int)args[1] & 127;
    if (__sysno == SYS_futex && operation == 1 && atomic_exchange(&leaves_before_wake, false))
        siglongjmp(before_product, 1);
    if (next == NULL) next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(__sysno, args[0], args[1], args[2], args[3], args[4], args[5]);
}

static void set_alarm(int microseconds)
{
    const struct itimerval once = {.it_value = {0, microseconds}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void multiply(tgl_device *dev, const tgl_plan *plan, float *D)
{
    const tgl_problem problem = problem_of(TGL_F32, N, N, N);
    const tgl_status status = plan != NULL ? tgl_plan_run(plan, 1, A, B, 0, D, NULL)
                                           : tgl_gemm(dev, &problem, 1, A, B, 0, D, NULL);
    assert_status(status, TGL_OK);
}

static tgl_plan *make_plan(tgl_device *dev)
{
    const tgl_problem problem = problem_of(TGL_F32, N, N, N);
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    return plan;
}

/* Whether the handler has left the product, `microseconds` after its begin. */
static bool is_left(tgl_device *dev, const tgl_plan *plan, int microseconds)
{
    if (sigsetjmp(before_product, 1) != 0) return true;
    set_alarm(microseconds);
    multiply(dev, plan, C);
    set_alarm(0);
    return false;
}

/* Overwrites the frames that were left. */
static __attribute__((noinline)) void overwrite_stack(void)
{
    volatile char frames[8 << 10];
    for (size_t i = 0; i < sizeof frames; i++)
        frames[i] = (char)0xff;
}

static void check_product(tgl_device *dev)
{
    memset(later, 0xff, sizeof later);
    multiply(dev, NULL, later);
    for (int i = 0; i < N * N; i++)
        assert_true(later[i] == (float)(N * (i / N % 3) * (i % N % 5)));
}

/* Fails if something writes to C after tgl_device_sync(). */
static void check_silence(tgl_device *dev)
{
    assert_status(tgl_device_sync(dev), TGL_OK);
    memset(C, 0, sizeof C);
    usleep(300);
    for (int i = 0; i < N * N; i++)
        assert_true(C[i] == 0);
}

static void count_member(void *context, int thread, int team)
{
    if (thread == 0) *(int *)context = team;
}

/* Fails if a worker of the device is lost. */
static void check_team(tgl_device *dev)
{
    cpu_device *cpu = dev->state;
    int team = 0;
    thread_pool_task task = {.body = count_member, .context = &team};
    tgl_thread_pool_settle(&cpu->threads);
    tgl_thread_pool_run(&cpu->threads, TEAM, &task);
    assert_int_equal(team, TEAM);
}

/* The worker has a task, but sleeps. The next call wakes it: a product, or a call that waits for
 * the worker. */
static void left_before_a_worker_is_woken(void **state)
{
    (void)state;
    if (!can_leave) skip();
    for (int i = 0; i < 3; i++) {
        tgl_device *dev = open_cpu(TEAM);
        multiply(dev, NULL, C);
        usleep(20000); /* the workers sleep */
        atomic_store(&leaves_before_wake, true);
        assert_true(is_left(dev, NULL, 10000000));
        alarm(30); /* ends a test that hangs, and takes the place of the other alarm */
        assert_false(atomic_load(&leaves_before_wake));
        if (i == 0) multiply(dev, NULL, C);
        if (i < 2) check_team(dev);
        tgl_device_close(dev);
    }
    alarm(0);
}

/* Runs LEFT products, each of which is to be left at another moment. Returns how many were left. */
static int leave_products(tgl_device *dev, int first_microseconds)
{
    int left = 0;
    check_product(dev);
    for (int i = 0; i < LEFT; i++) {
        tgl_plan *plan = i % 2 ? make_plan(dev) : NULL;
        const bool is_one_more = is_left(dev, plan, first_microseconds + 60 * i);
        overwrite_stack();
        tgl_plan_destroy(plan);
        check_product(dev);
        check_silence(dev);
        left += is_one_more;
    }
    return left;
}

static void workers_finish_and_later_products_are_right(void **state)
{
    (void)state;
    enum { ROUNDS = 8 };
    if (!can_leave) skip();
    const struct sigaction action = {.sa_handler = leave};
    struct sigaction before;
    for (int i = 0; i < N * N; i++) {
        A[i] = (float)(i / N % 3);
        B[i] = (float)(i % N % 5);
    }
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    int left = 0;
    for (int round = 0; round < ROUNDS; round++) {
        tgl_device *dev = open_cpu(TEAM);
        left += leave_products(dev, 20 + 7 * round);
        check_team(dev);
        if (round % 2) is_left(dev, NULL, 200); /* it may be closed at once */
        tgl_device_close(dev);
    }
    sigaction(SIGALRM, &before, NULL);
    assert_true(left >= ROUNDS * LEFT / 10);
}

static tgl_device *measures; /* the device whose product measures */

/* Leaves the product while its thread holds the lock of measuring. */
static void leave_measuring(int signal)
{
    if (pthread_mutex_trylock(&measures->measuring) == EBUSY) leave(signal);
    pthread_mutex_unlock(&measures->measuring);
}

static void *multiply_once(void *dev)
{
    const tgl_problem problem = problem_of(TGL_F32, N - 2, N, N);
    assert_status(tgl_gemm(dev, &problem, 1, A, B, 0, C, NULL), TGL_OK);
    return NULL;
}

/* A product that measures is left while its candidates run. Later ones of new shapes, of this
 * thread and of others, are computed. */
static void measuring_is_left(void **state)
{
    (void)state;
    enum { LARGE = 1024 }; /* its measuring takes several periods of the timer */
    if (!can_leave) skip();
    const struct sigaction action = {.sa_handler = leave_measuring};
    const struct itimerval every = {{0, 20000}, {0, 20000}}, never = {0};
    struct sigaction before;
    pthread_t other;
    const tgl_problem next = problem_of(TGL_F32, N - 1, N, N);
    setenv("TEGULA_WISDOM", "off", 1);
    setenv("TEGULA_EFFORT", "measure:2", 1);
    tgl_device *dev = measures = open_cpu(TEAM);
    const tgl_problem large = problem_of(TGL_F32, LARGE, LARGE, LARGE);
    float *operands = calloc(3, sizeof(float) * LARGE * LARGE);
    assert_non_null(operands);
    bool left = true;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    if (sigsetjmp(before_product, 1) == 0) {
        setitimer(ITIMER_REAL, &every, NULL);
        const float *A_large = operands, *B_large = operands + LARGE * LARGE;
        tgl_gemm(dev, &large, 1, A_large, B_large, 0, operands + 2 * LARGE * LARGE, NULL);
        left = false;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_true(left);
    assert_int_equal(pthread_mutex_trylock(&dev->measuring), EBUSY);
    alarm(30);
    assert_int_equal(pthread_create(&other, NULL, multiply_once, dev), 0);
    pthread_join(other, NULL);
    assert_status(tgl_gemm(dev, &next, 1, A, B, 0, C, NULL), TGL_OK);
    assert_int_equal(pthread_mutex_trylock(&dev->measuring), 0);
    alarm(0);
    pthread_mutex_unlock(&dev->measuring);
    tgl_device_close(dev);
    free(operands);
    unsetenv("TEGULA_EFFORT");
    unsetenv("TEGULA_WISDOM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measuring_is_left),
        cmocka_unit_test(left_before_a_worker_is_woken),
        cmocka_unit_test(workers_finish_and_later_products_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
