/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs functions of tests in child processes (shim_child.h).
 */
#include "shim_child.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_SECONDS = 60, MAX_THREADS = 16 };

/* gcc and clang have different macros for sanitizers. */
#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer) ||                               \
    defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
/* The address sanitizer's malloc() hangs in a child if a thread of the parent held the lock of
 * malloc(). The thread sanitizer does not support threads in a child. */
enum { CAN_FORK_THREADS = false };
#else
enum { CAN_FORK_THREADS = true };
#endif

bool can_fork_threads(void)
{
    return CAN_FORK_THREADS;
}

/* Runs fn() in a child process. Returns the child's status, as of waitpid(); -1: failed. */
static int run_in_child(const char *variable, const char *value, child_fn *fn)
{
    const pid_t child = fork();
    if (child == 0) {
        if (variable != NULL) setenv(variable, value, 1);
        alarm(MAX_SECONDS);
        signal(SIGSEGV, SIG_DFL); /* cmocka's handlers would go on with the tests */
        signal(SIGABRT, SIG_DFL);
        _exit(fn() ? 0 : 1);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

bool is_right_in_child(const char *variable, const char *value, child_fn *fn)
{
    return run_in_child(variable, value, fn) == 0;
}

const char *stderr_of(void (*call)(void *data), void *data)
{
    static char found[8000];
    FILE *file = tmpfile();
    assert_non_null(file);
    const int saved = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    call(data);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    return found;
}

typedef struct child {
    const char *variable, *value;
    child_fn *fn;
    int status;
} child;

static void run(void *data)
{
    child *it = data;
    it->status = run_in_child(it->variable, it->value, it->fn);
}

const char *output_of_child(const char *variable, const char *value, child_fn *fn, int *status)
{
    child it = {variable, value, fn, -1};
    const char *output = stderr_of(run, &it);
    *status = it.status;
    return output;
}

const char *output_of(const char *variable, const char *value, child_fn *fn)
{
    int status;
    const char *output = output_of_child(variable, value, fn, &status);
    if (status != 0) fail_msg("the child fails and prints \"%s\"", output);
    return output;
}

bool is_right_in_threads(int count, void *(*work)(void *unused))
{
    pthread_t threads[MAX_THREADS];
    bool is_right = count <= MAX_THREADS;
    for (int i = 0; i < count; i++)
        if (!is_right || pthread_create(&threads[i], NULL, work, NULL) != 0) return false;
    for (int i = 0; i < count; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        is_right = is_right && wrong == NULL;
    }
    return is_right;
}
