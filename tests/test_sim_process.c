/* SPDX-License-Identifier: Apache-2.0
 *
 * The sim device in a process that forks, cancels threads, and limits the size of files while a
 * plan is made or a product runs. Children have the process ID of their parent.
 */
#include "same_process_id.h"
#include "support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 48, MAX_SECONDS = 60 };

#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer) ||                             \
    defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
/* gcc 12's address sanitizer does not release its allocator's locks in the child. The thread
 * sanitizer does not follow a child with threads. */
static const bool can_fork_while_allocating = false;
#else
static const bool can_fork_while_allocating = true;
#endif

static tgl_device *open_sim(void)
{
    const tgl_device_options options = {.size = sizeof options, .threads = 2};
    tgl_device *dev;
    assert_status(tgl_device_open("sim", &options, &dev), TGL_OK);
    return dev;
}

/* Makes no assertion: it is called in children and in threads. */
static bool multiplies(tgl_device *dev)
{
    float A[N * N], C[N * N];
    for (int i = 0; i < N * N; i++)
        A[i] = (float)(i / N % 3);
    const tgl_status status = tgl_sgemm(dev, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_TRANS, N, N, N, 1, A,
                                        N, A, N, 0, C, N, NULL);
    bool is_right = status == TGL_OK;
    for (int i = 0; is_right && i < N * N; i++)
        is_right = C[i] == (float)(N * (i / N % 3) * (i % N % 3));
    return is_right;
}

static tgl_plan *make_plan(tgl_device *dev)
{
    tgl_problem problem = problem_of(TGL_F32, N, N, N);
    tgl_plan *plan = NULL;
    const tgl_plan_options options = {.size = sizeof options, .kernel = "simt_32x32x16"};
    tgl_plan_create(dev, &problem, &options, &plan);
    return plan;
}

/* ---- Children -------------------------------------------------------------------------------- */

static void assert_child_succeeds(bool (*fn)(void *), void *argument)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(MAX_SECONDS);
        signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on with the tests */
        signal(SIGXFSZ, SIG_DFL);
        _exit(fn(argument) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) fail_msg("the child was ended by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

typedef struct busy_thread {
    tgl_device *dev;
    tgl_plan *plan;
    atomic_bool stop;
    bool is_right;
} busy_thread;

static void *run_until_stopped(void *argument)
{
    busy_thread *b = argument;
    b->is_right = true;
    while (!atomic_load(&b->stop))
        b->is_right = multiplies(b->dev) && b->is_right;
    return NULL;
}

static void *uses_inherited_in_thread(void *dev)
{
    return multiplies(dev) ? dev : NULL;
}

/* The child uses the simulator's device that it inherits, in several threads, while a thread of the
 * parent was running a product on it during fork(). */
static bool uses_inherited(void *argument)
{
    const busy_thread *b = argument;
    char text[100];
    pthread_t other;
    void *is_right = NULL;
    if (pthread_create(&other, NULL, uses_inherited_in_thread, b->dev) != 0) return false;
    bool done = true;
    for (int i = 0; i < 2; i++)
        done = multiplies(b->dev) && done;
    pthread_join(other, &is_right);
    tgl_plan_trace(b->plan, text, sizeof text);
    tgl_plan_destroy(b->plan);
    tgl_device_close(b->dev);
    return done && is_right != NULL;
}

static void forks_while_products_run(void **state)
{
    (void)state;
    if (!can_fork_while_allocating) skip();
    enum { FORKS = 20 };
    busy_thread b = {.dev = open_sim()};
    b.plan = make_plan(b.dev);
    assert_non_null(b.plan);
    assert_true(multiplies(b.dev));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_until_stopped, &b), 0);
    for (int i = 0; i < FORKS; i++) {
        usleep((useconds_t)(1000 * (i + 1)));
        assert_child_succeeds(uses_inherited, &b);
    }
    atomic_store(&b.stop, true);
    pthread_join(thread, NULL);
    assert_true(b.is_right);
    tgl_plan_destroy(b.plan);
    tgl_device_close(b.dev);
}

/* ---- Cancelled threads ----------------------------------------------------------------------- */

static void *makes_a_plan(void *dev)
{
    tgl_plan_destroy(make_plan(dev));
    for (;;)
        pause(); /* a point of cancellation, at the latest */
    return NULL;
}

/* A thread that is cancelled while it makes a plan leaves the device usable. */
static bool survives_cancelled_threads(void *unused)
{
    enum { THREADS = 2 };
    (void)unused;
    setenv("TEGULA_CACHE", "off", 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        tgl_device *dev = open_sim();
        if (pthread_create(&thread, NULL, makes_a_plan, dev) != 0) return false;
        usleep((useconds_t)(2000 + 60000 * i)); /* the compiler runs */
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        tgl_plan *plan = make_plan(dev);
        if (plan == NULL) return false;
        tgl_plan_destroy(plan);
        tgl_device_close(dev);
    }
    return true;
}

static void threads_may_be_cancelled(void **state)
{
    (void)state;
    if (!can_fork_while_allocating) skip();
    assert_child_succeeds(survives_cancelled_threads, NULL);
}

/* ---- Limits of file sizes -------------------------------------------------------------------- */

/* Neither the compiler's files nor those of the library may have more than 100 bytes. */
static bool fails_under_a_limit(void *dev)
{
    const struct rlimit limit = {100, 100};
    char message[2000];
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    const bool is_made = make_plan(dev) != NULL;
    tgl_last_error(message, sizeof message);
    return !is_made && strstr(message, "File too large") != NULL;
}

static void a_limit_of_file_sizes_gives_a_status(void **state)
{
    (void)state;
    tgl_device *dev = open_sim();
    assert_child_succeeds(fails_under_a_limit, dev);
    tgl_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_while_products_run),
        cmocka_unit_test(threads_may_be_cancelled),
        cmocka_unit_test(a_limit_of_file_sizes_gives_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
