/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of the cpu device has the same bits whichever team computes it (src/cpu/run/cpu_jobs.c,
 * thread_pool.c): if workers are busy, the team is smaller than the plan's. All members compute in
 * the caller's floating-point environment.
 */
#include "support.h"

#include "backend/backend.h"
#include "base/float_state.h"
#include "cpu/plan/block_plan.h"
#include "cpu/run/cpu_state.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

enum { TEAM = 4 };

static cpu_device *cpu_of(const tgl_device *dev)
{
    return dev->state;
}

/* ---- Teams that are smaller than planned ----------------------------------------------------- */

/* Another caller of the device, whose task keeps some workers busy. */
typedef struct holder {
    tgl_device *dev;
    int workers;
    atomic_int begun;
    atomic_bool may_end;
    pthread_t thread;
} holder;

static void hold(void *context, int thread, int team)
{
    holder *h = context;
    (void)thread, (void)team;
    atomic_fetch_add(&h->begun, 1);
    while (!atomic_load(&h->may_end))
        usleep(100);
}

static void *run_holding(void *argument)
{
    holder *h = argument;
    thread_pool_task task = {.body = hold, .context = h};
    tgl_thread_pool_run(&cpu_of(h->dev)->threads, 1 + h->workers, &task);
    return NULL;
}

static void start_holding(holder *h)
{
    assert_int_equal(pthread_create(&h->thread, NULL, run_holding, h), 0);
    while (atomic_load(&h->begun) < 1 + h->workers)
        usleep(100);
}

static void end_holding(holder *h)
{
    atomic_store(&h->may_end, true);
    pthread_join(h->thread, NULL);
}

/* ---- Products -------------------------------------------------------------------------------- */

/* A product, and the sharing that its plan must have (only whether it is CPU_SHARE_K is checked).
 */
typedef struct team_case {
    const char *name;
    tgl_type type, type_c;
    int64_t m, n, k, batch;
    cpu_sharing sharing;
} team_case;

static const team_case cases[] = {
    {"rectangles", TGL_F32, TGL_F32, 230, 210, 170, 1, CPU_SHARE_C},
    {"rectangles of f64", TGL_F64, TGL_F64, 150, 130, 170, 1, CPU_SHARE_C},
    {"parts of k", TGL_F32, TGL_F32, 8, 24, 60000, 1, CPU_SHARE_K},
    {"parts of k, f64", TGL_F64, TGL_F64, 30, 20, 9000, 1, CPU_SHARE_K},
    {"a batch", TGL_F32, TGL_F32, 40, 40, 40, 90, CPU_SHARE_BATCH},
    {"a vector", TGL_F32, TGL_F32, 1, 3000, 500, 1, CPU_SHARE_C},
    {"a vector times a matrix", TGL_F64, TGL_F64, 3000, 1, 300, 1, CPU_SHARE_C},
    {"blocks", TGL_BF16, TGL_F32, 300, 300, 300, 1, CPU_SHARE_C},
    {"parts of k of blocks", TGL_F16, TGL_F32, 40, 40, 20000, 1, CPU_SHARE_K},
    {"integers", TGL_I8, TGL_I32, 300, 300, 300, 1, CPU_SHARE_C},
};

typedef struct matrices {
    tgl_problem problem;
    void *A, *B, *C, *first;
    size_t bytes_c;
} matrices;

static uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Numbers whose sums are rounded, except those of integers; in f16 they are denormal. */
static void *numbers(tgl_type type, int64_t count)
{
    char *made = malloc((size_t)count * tgl_type_size(type));
    assert_non_null(made);
    for (int64_t i = 0; i < count; i++) {
        const float x = (float)(i * 7919 % 1013 - 500) / 777.0f;
        switch (type) {
        case TGL_F32:
            ((float *)(void *)made)[i] = x;
            break;
        case TGL_F64:
            ((double *)(void *)made)[i] = (double)x / 3;
            break;
        case TGL_BF16:
            ((uint16_t *)(void *)made)[i] = bf16_of(x);
            break;
        case TGL_F16:
            ((uint16_t *)(void *)made)[i] = (uint16_t)(i * 7919 % 1013 + (i % 2 << 15));
            break;
        default:
            made[i] = (char)(i * 7919 % 251);
        }
    }
    return made;
}

static matrices make_matrices(const team_case *c)
{
    matrices x = {.problem = problem_of(c->type, c->m, c->n, c->k)};
    x.problem.type_c = c->type_c;
    x.problem.batch = c->batch;
    x.problem.stride_a = c->m * c->k;
    x.problem.stride_b = c->k * c->n;
    x.problem.stride_c = c->m * c->n;
    x.A = numbers(c->type, c->batch * c->m * c->k);
    x.B = numbers(c->type, c->batch * c->k * c->n);
    x.bytes_c = (size_t)(c->batch * c->m * c->n) * tgl_type_size(c->type_c);
    x.C = malloc(x.bytes_c);
    x.first = malloc(x.bytes_c);
    assert_true(x.C != NULL && x.first != NULL);
    return x;
}

static void free_matrices(matrices *x)
{
    free(x->A);
    free(x->B);
    free(x->C);
    free(x->first);
}

static void multiply(tgl_device *dev, matrices *x)
{
    memset(x->C, 0xff, x->bytes_c);
    assert_status(tgl_gemm(dev, &x->problem, 1, x->A, x->B, 0, x->C, NULL), TGL_OK);
}

/* Fails unless the plan wants TEAM threads, and divides k if and only if the case says so. */
static void check_plan(tgl_device *dev, const team_case *c, const tgl_problem *problem)
{
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, problem, NULL, &plan), TGL_OK);
    const cpu_plan *state = plan->state;
    const bool divides_k = state->blocks != NULL ? state->blocks->parts > 1 : state->parts > 1;
    if (state->threads != TEAM || divides_k != (c->sharing == CPU_SHARE_K))
        fail_msg("%s: %d threads", c->name, state->threads);
    tgl_plan_destroy(plan);
}

/* Computes the product by the whole team several times, then by each smaller team. */
static void check_teams(tgl_device *dev, const team_case *c, matrices *x)
{
    enum { REPEATS = 5 };
    multiply(dev, x);
    memcpy(x->first, x->C, x->bytes_c);
    for (int i = 0; i < REPEATS; i++) {
        multiply(dev, x);
        if (memcmp(x->C, x->first, x->bytes_c) != 0) fail_msg("%s: other bits", c->name);
    }
    for (int workers = 1; workers < TEAM; workers++) {
        holder h = {.dev = dev, .workers = workers};
        start_holding(&h);
        multiply(dev, x);
        end_holding(&h);
        if (memcmp(x->C, x->first, x->bytes_c) != 0)
            fail_msg("%s: other bits by %d threads of %d", c->name, TEAM - workers, TEAM);
    }
}

static void a_smaller_team_computes_the_same_bits(void **state)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        matrices x = make_matrices(&cases[i]);
        check_plan(*state, &cases[i], &x.problem);
        check_teams(*state, &cases[i], &x);
        free_matrices(&x);
    }
}

/* Integers, whose sums are exact: each element of C is the one that a loop finds. */
static void a_smaller_team_computes_all_of_c(void **state)
{
    enum { M = 8, N = 24, K = 60000 };
    matrices x = make_matrices(&(team_case){"", TGL_F32, TGL_F32, M, N, K, 1, CPU_SHARE_K});
    float *A = x.A, *B = x.B, *first = x.first;
    for (int i = 0; i < M * K; i++)
        A[i] = (float)(i * 7 % 3 - 1);
    for (int i = 0; i < K * N; i++)
        B[i] = (float)(i * 11 % 3 - 1);
    memset(first, 0, x.bytes_c);
    for (int i = 0; i < M; i++)
        for (int p = 0; p < K; p++)
            for (int j = 0; j < N; j++)
                first[i * N + j] += A[i * K + p] * B[p * N + j];
    for (int workers = 1; workers < TEAM; workers++) {
        holder h = {.dev = *state, .workers = workers};
        start_holding(&h);
        multiply(*state, &x);
        end_holding(&h);
        assert_memory_equal(x.C, first, x.bytes_c);
    }
    free_matrices(&x);
}

/* ---- The floating-point environment ---------------------------------------------------------- */

static const int roundings[] = {
    FE_TONEAREST,
#ifdef FE_UPWARD
    FE_UPWARD,
    FE_DOWNWARD,
    FE_TOWARDZERO,
#endif
};

/* Sets or clears the bits that flush denormal numbers to zero. */
static void flush_denormals(bool on)
{
#if defined(__SSE__)
    _mm_setcsr(on ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040u); /* FTZ, DAZ */
#elif defined(__aarch64__)
    const unsigned long flush = 1ul << 24; /* FZ */
    const unsigned long control = tgl_float_control();
    __asm__ volatile("msr fpcr, %0" : : "r"(on ? control | flush : control & ~flush));
#else
    (void)on;
#endif
}

static bool can_flush_denormals(void)
{
#if defined(__SSE__) || defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static void the_bits_do_not_depend_on_the_team_in_any_mode(void **state)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        matrices x = make_matrices(&cases[i]);
        for (size_t r = 0; r < COUNT_OF(roundings); r++)
            for (int flush = 0; flush <= can_flush_denormals(); flush++) {
                fesetround(roundings[r]);
                flush_denormals(flush);
                check_teams(*state, &cases[i], &x);
                const bool is_kept = fegetround() == roundings[r];
                flush_denormals(false);
                fesetround(FE_TONEAREST);
                assert_true(is_kept);
            }
        free_matrices(&x);
    }
}

/* What the members of a team see, each on a thread of its own. */
typedef struct environments {
    atomic_int begun;
    float denormal[TEAM], third[TEAM];
    int inherited[TEAM]; /* exceptions of a worker before its own; 0 for the caller */
    int overflows;       /* the member that overflows; -1: none */
} environments;

static void look(void *context, int thread, int team)
{
    environments *e = context;
    atomic_fetch_add(&e->begun, 1);
    while (atomic_load(&e->begun) < team)
        sched_yield();
    volatile float least = 1.17549435e-38f, one = 1, three = 3, huge = 3e38f;
    e->inherited[thread] = thread > 0 ? fetestexcept(FE_ALL_EXCEPT) : 0;
    e->denormal[thread] = least / three;
    e->third[thread] = one / three;
    if (thread == e->overflows) huge = huge * huge;
}

static environments look_by(thread_pool *pool, int overflows)
{
    environments e = {.overflows = overflows};
    thread_pool_task task = {.body = look, .context = &e};
    tgl_thread_pool_run(pool, TEAM, &task);
    return e;
}

static void members_have_the_callers_mode(void **state)
{
    (void)state;
    thread_pool pool;
    tgl_thread_pool_open(&pool, TEAM, TEAM);
    look_by(&pool, -1); /* the workers exist from here on */
    for (size_t r = 0; r < COUNT_OF(roundings); r++)
        for (int flush = 0; flush <= can_flush_denormals(); flush++) {
            fesetround(roundings[r]);
            flush_denormals(flush);
            const environments e = look_by(&pool, -1);
            flush_denormals(false);
            fesetround(FE_TONEAREST);
            for (int i = 0; i < TEAM; i++) {
                assert_int_equal(e.denormal[i] != 0, !flush);
                assert_true(e.third[i] == e.third[0]);
            }
        }
    tgl_thread_pool_close(&pool);
}

static void exceptions_reach_the_caller(void **state)
{
    (void)state;
    thread_pool pool;
    tgl_thread_pool_open(&pool, TEAM, TEAM);
    for (int overflows = -1; overflows < TEAM; overflows++) {
        look_by(&pool, TEAM - 1); /* leaves flags in a worker */
        feclearexcept(FE_ALL_EXCEPT);
        const environments e = look_by(&pool, overflows);
        assert_int_equal(fetestexcept(FE_OVERFLOW) != 0, overflows >= 0);
        assert_int_equal(fetestexcept(FE_DIVBYZERO | FE_INVALID), 0);
        for (int i = 0; i < TEAM; i++)
            assert_int_equal(e.inherited[i], 0);
    }
    feclearexcept(FE_ALL_EXCEPT);
    tgl_thread_pool_close(&pool);
}

#if defined(__SSE__) && defined(__GLIBC__)
static sigjmp_buf before_trap;
static pthread_t trapped;

static void note_trap(int signal)
{
    (void)signal;
    trapped = pthread_self();
    siglongjmp(before_trap, 1);
}

/* A program that lets overflow trap gets SIGFPE in its own thread, where it can handle it. */
static void exceptions_trap_in_the_caller(void **state)
{
    (void)state;
    const struct sigaction action = {.sa_handler = note_trap};
    struct sigaction before;
    static thread_pool pool;
    static environments e;
    static thread_pool_task task;
    tgl_thread_pool_open(&pool, TEAM, TEAM);
    sigaction(SIGFPE, &action, &before);
    feclearexcept(FE_ALL_EXCEPT);
    if (sigsetjmp(before_trap, 1) == 0) {
        feenableexcept(FE_OVERFLOW);
        e = (environments){.overflows = 1};
        task = (thread_pool_task){.body = look, .context = &e};
        tgl_thread_pool_run(&pool, TEAM, &task);
    }
    fesetenv(FE_DFL_ENV);
    sigaction(SIGFPE, &before, NULL);
    tgl_thread_pool_close(&pool);
    assert_true(trapped == pthread_self());
    assert_int_equal(e.inherited[1], 0);
}
#endif

static int setup(void **state)
{
    *state = open_cpu(TEAM);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_smaller_team_computes_the_same_bits, setup,
                                        teardown_device),
        cmocka_unit_test_setup_teardown(a_smaller_team_computes_all_of_c, setup, teardown_device),
        cmocka_unit_test_setup_teardown(the_bits_do_not_depend_on_the_team_in_any_mode, setup,
                                        teardown_device),
        cmocka_unit_test(members_have_the_callers_mode),
        cmocka_unit_test(exceptions_reach_the_caller),
#if defined(__SSE__) && defined(__GLIBC__)
        cmocka_unit_test(exceptions_trap_in_the_caller),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
