/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests in child processes.
 */
#include "blas_child.h"
#include "blas_calls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SECONDS = 60 };

/* gcc and clang say differently that a sanitizer is on. */
#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer) ||                               \
    defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
/* The address sanitizer's malloc() hangs in a child if a thread of the parent held its lock. The
 * thread sanitizer does not follow a child with threads. */
enum { CAN_FORK_THREADS = false };
#else
enum { CAN_FORK_THREADS = true };
#endif

bool can_fork_threads(void)
{
    return CAN_FORK_THREADS;
}

/* The child's status, as waitpid() gives it. */
static int run_in_child(child_fn *fn)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(MAX_SECONDS);
        signal(SIGSEGV, SIG_DFL); /* cmocka's handlers would go on with the tests */
        signal(SIGABRT, SIG_DFL);
        _exit(fn() ? 0 : 1);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

bool is_right_in_child(child_fn *fn)
{
    return run_in_child(fn) == 0;
}

/* Runs fn() in a child with this environment variable (NULL: none). */
static int run_with(const char *variable, const char *value, child_fn *fn)
{
    if (variable == NULL) return run_in_child(fn);
    const char *found = getenv(variable);
    char *before = found != NULL ? strdup(found) : NULL;
    setenv(variable, value, 1);
    const int status = run_in_child(fn);
    if (before != NULL)
        setenv(variable, before, 1);
    else
        unsetenv(variable);
    free(before);
    return status;
}

const char *output_of(const char *variable, const char *value, child_fn *fn, int *status)
{
    static char found[8000];
    FILE *file = tmpfile();
    assert_non_null(file);
    const int saved = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    *status = run_with(variable, value, fn);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    const size_t length = fread(found, 1, sizeof found - 1, file);
    found[length] = '\0';
    fclose(file);
    return found;
}

bool multiplies_square(int n, float beta)
{
    static const blas_name sgemm = {"sgemm_", false, false, false};
    float *A = malloc((size_t)(2 * n * n) * sizeof *A), *C = A + n * n;
    if (A == NULL) return false;
    for (int i = 0; i < n * n; i++)
        A[i] = (float)(i % n % 3), C[i] = -1;
    const blas_call c = {.layout = COL_MAJOR,
                         .trans_a = TRANS,
                         .trans_b = NO_TRANS,
                         .m = n,
                         .n = n,
                         .k = n,
                         .alpha = 1,
                         .beta = (double)beta,
                         .A = A,
                         .B = A,
                         .C = C,
                         .lda = n,
                         .ldb = n,
                         .ldc = n};
    call_gemm(&sgemm, &c);
    /* Every column of A is 0 1 2 0 1 2 ...: each sum is n/3 * (0 + 1 + 4). */
    bool is_right = true;
    for (int i = 0; i < n * n; i++)
        is_right = is_right && C[i] == (float)(n / 3 * 5) - beta;
    free(A);
    return is_right;
}
