/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by words in several threads, in a child process, and where Linux refuses AMX.
 */
#include "words_case.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 300 };

/* A thread computes products on a device and compares them with `expected`; NULL: with its first.
 */
typedef struct computation {
    tgl_device *dev;
    float C[SIZE * SIZE];
    const float *expected;
    bool is_right;
} computation;

static void *compute(void *argument)
{
    computation *x = argument;
    static _Thread_local uint16_t A[SIZE * SIZE];
    for (int i = 0; i < SIZE * SIZE; i++)
        A[i] = (uint16_t)(0x3f80 + i % 97);
    tgl_problem problem = problem_of(TGL_BF16, SIZE, SIZE, SIZE);
    problem.type_c = TGL_F32;
    x->is_right = true;
    for (int i = 0; i < 10; i++) {
        memset(x->C, 0xff, sizeof x->C);
        x->is_right = tgl_gemm(x->dev, &problem, 1, A, A, 0, x->C, NULL) == TGL_OK && x->is_right;
        for (int j = 0; j < SIZE * SIZE && x->expected != NULL; j++)
            x->is_right = x->C[j] == x->expected[j] && x->is_right;
    }
    return NULL;
}

static void threads_and_children_compute(void **state)
{
    enum { THREADS = 4 };
    static computation first, others[THREADS];
    if (!has_kind(CPU_WORDS_BF16)) skip();
    first.dev = *state;
    compute(&first);
    assert_true(first.is_right && first.C[0] > SIZE);

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        others[i] = (computation){.dev = *state, .expected = first.C};
        assert_int_equal(pthread_create(&threads[i], NULL, compute, &others[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(others[i].is_right);
    }
/* Neither the thread sanitizer nor qemu-user follows a child with threads. */
#if !defined(__SANITIZE_THREAD__) && !defined(__aarch64__)
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        compute(&others[0]);
        _exit(others[0].is_right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
#endif
}

/* Linux refuses AMX to a process with a signal stack that is too small for the tiles. Called before
 * anything asks for AMX; returns whether products take FMAs then, and those of int8 AVX512-VNNI. */
static bool does_without_permission(void)
{
    static char memory[2048]; /* the least size that Linux allows at all */
    const stack_t small = {.ss_sp = memory, .ss_size = sizeof memory},
                  none = {.ss_flags = SS_DISABLE};
    if (sigaltstack(&small, NULL) != 0) return false;
    tgl_device *dev = open_cpu(2);
    const tgl_problem problem = problem_of(TGL_BF16, SIZE, SIZE, SIZE);
    const bool refused = !takes_words(dev, &problem);
    const tgl_problem integers = problem_of(TGL_I8, SIZE, SIZE, SIZE);
    const bool by_vnni = plan_explains(dev, &integers, "AVX512-VNNI");
    tgl_device_close(dev);
    return sigaltstack(&none, NULL) == 0 && refused && by_vnni;
}

static bool did_without_permission;

static void try_without_permission(void)
{
    did_without_permission = does_without_permission();
}

static void amx_may_be_refused(void **state)
{
    const tgl_problem problem = problem_of(TGL_BF16, SIZE, SIZE, SIZE);
    if (!has_part("a permission to ask for", words->is_permitted != NULL)) skip();
    assert_true(did_without_permission);
    assert_true(takes_words(*state, &problem));
}

static int test_tier(const char *tier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amx_may_be_refused),
        cmocka_unit_test(threads_and_children_compute),
    };
    return cmocka_run_group_tests_name(tier, tests, setup_cpu, teardown_device);
}

int main(void)
{
    return run_tiers_with_words(test_tier, try_without_permission);
}
