/* SPDX-License-Identifier: Apache-2.0
 *
 * Each process has a number that none of its ancestors has (src/base/process_number.c), even if
 * they have the same process ID.
 */
#include "support.h"

#include "base/process_number.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* gcc and clang say differently that a sanitizer is on. */
#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
static const bool can_clone = false; /* the thread sanitizer has to see each new process */
#else
static const bool can_clone = true;
#endif

typedef pid_t fork_fn(void);

static pid_t by_fork(void)
{
    return fork();
}

/* Makes a child as sandboxes do, without the handlers of pthread_atfork(). */
static pid_t by_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* Whether `depth` generations of children all have numbers of their own. */
static bool are_different(fork_fn *make_child, unsigned *numbers, int count, int depth)
{
    numbers[count] = tgl_process();
    bool is_right = numbers[count] != 0 && tgl_process() == numbers[count];
    for (int i = 0; i < count; i++)
        is_right = is_right && numbers[i] != numbers[count];
    if (depth == 0 || !is_right) return is_right;
    const pid_t child = make_child();
    if (child == 0) _exit(are_different(make_child, numbers, count + 1, depth - 1) ? 0 : 1);
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 &&
           tgl_process() == numbers[count];
}

static void children_have_other_numbers(void **state)
{
    (void)state;
    unsigned numbers[4];
    assert_true(are_different(by_fork, numbers, 0, 3));
    assert_true(are_different(by_fork, numbers, 0, 1)); /* also a second child */
}

/* Whether pages can be wiped in a child (MADV_WIPEONFORK): from Linux 4.14 on, and not in all
 * versions of qemu-user. */
static bool has_wiped_pages(void)
{
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    if (madvise(page, size, MADV_WIPEONFORK) != 0) return false;
    page[0] = 1;
    const pid_t child = fork();
    if (child == 0) _exit(page[0]);
    int status = -1;
    waitpid(child, &status, 0);
    munmap(page, size);
    return status == 0;
}

static void processes_are_told_apart_without_the_c_library(void **state)
{
    (void)state;
    unsigned numbers[4];
    if (!can_clone || !has_wiped_pages()) skip();
    assert_true(are_different(by_clone, numbers, 0, 3));
}

static atomic_int waiting; /* threads of a child that have not begun */

/* The first call of a child is made by several threads at once. */
static void *call(void *number)
{
    atomic_fetch_sub(&waiting, 1);
    while (atomic_load(&waiting) > 0)
        sched_yield();
    *(unsigned *)number = tgl_process();
    return NULL;
}

static void threads_agree_on_the_next_number(void **state)
{
    (void)state;
    enum { THREADS = 4, CHILDREN = 50 };
    if (!can_clone) skip();
    const unsigned parent = tgl_process();
    for (int i = 0; i < CHILDREN; i++) {
        atomic_store(&waiting, THREADS);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            pthread_t threads[THREADS];
            unsigned numbers[THREADS];
            bool is_right = true;
            for (int t = 0; t < THREADS; t++)
                if (pthread_create(&threads[t], NULL, call, &numbers[t]) != 0) _exit(1);
            for (int t = 0; t < THREADS; t++) {
                pthread_join(threads[t], NULL);
                is_right = is_right && numbers[t] == parent + 1 && tgl_process() == parent + 1;
            }
            _exit(is_right ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_have_other_numbers),
        cmocka_unit_test(processes_are_told_apart_without_the_c_library),
        cmocka_unit_test(threads_agree_on_the_next_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
