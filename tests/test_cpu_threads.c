/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of the cpu device (src/base/thread_pool.c), and how many there are by default
 * (src/base/processors.c), with files of the system in folders that the tests make.
 */
#include "support.h"

#include "base/clock.h"
#include "base/processors.h"
#include "cpu/run/cpu_state.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TEAM = 7 };

/* ---- Teams ----------------------------------------------------------------------------------- */

static void run(thread_pool *pool, int threads, thread_pool_fn *body, void *context)
{
    thread_pool_task task = {.body = body, .context = context};
    tgl_thread_pool_run(pool, threads, &task);
}

/* How often each member ran, and with which size of team. */
typedef struct tally {
    int runs[MAX_TEAM], team[MAX_TEAM];
} tally;

static void count_member(void *context, int thread, int team)
{
    tally *t = context;
    t->runs[thread]++;
    t->team[thread] = team;
}

static void every_member_runs_once(void **state)
{
    (void)state;
    for (int processors = 1; processors <= MAX_TEAM; processors += MAX_TEAM - 1)
        for (int threads_max = 1; threads_max <= MAX_TEAM; threads_max += 3) {
            thread_pool pool;
            tgl_thread_pool_open(&pool, threads_max, processors);
            for (int round = 0; round < 300; round++) {
                const int wanted = 1 + round % (MAX_TEAM + 2);
                const int team = wanted < threads_max ? wanted : threads_max;
                tally t = {0};
                run(&pool, wanted, count_member, &t);
                for (int i = 0; i < MAX_TEAM; i++) {
                    assert_int_equal(t.runs[i], i < team);
                    assert_int_equal(t.team[i], i < team ? team : 0);
                }
                if (round % 100 == 99) usleep(1000); /* long enough for the workers to sleep */
            }
            tgl_thread_pool_close(&pool);
        }
}

static void threads_come_on_demand_and_end_with_the_pool(void **state)
{
    (void)state;
    const int before = threads_of_process();
    thread_pool pool;
    tally t = {0};
    tgl_thread_pool_open(&pool, 5, 2);
    assert_int_equal(threads_of_process(), before);
    run(&pool, 1, count_member, &t);
    assert_int_equal(threads_of_process(), before);
    run(&pool, 3, count_member, &t);
    assert_int_equal(threads_of_process(), before + 2);
    run(&pool, 100, count_member, &t);
    assert_int_equal(threads_of_process(), before + 4);
    run(&pool, 2, count_member, &t);
    assert_int_equal(threads_of_process(), before + 4);
    tgl_thread_pool_close(&pool);
    for (int i = 0; i < 1000 && threads_of_process() > before; i++)
        usleep(1000); /* the kernel may list a thread for a moment after it was joined */
    assert_int_equal(threads_of_process(), before);
}

/* Thread 0 computes for 10 ms, and the other thread sleeps for 12 ms. */
static void finish_late(void *context, int thread, int team)
{
    (void)context, (void)team;
    if (thread != 0) {
        usleep(12000);
        return;
    }
    const double start = tgl_clock();
    while (tgl_clock() - start < 10e-3)
        ;
}

/* The caller polls, because a caller that sleeps may be woken on the processor of its worker. */
static void the_caller_polls_longer_than_its_own_part(void **state)
{
    (void)state;
    enum { RUNS = 5, ATTEMPTS = 10 };
    thread_pool pool;
    tgl_thread_pool_open(&pool, 2, 2);
    long sleeps = RUNS;
    /* On a machine that other programs use the worker may come so late that the caller sleeps. */
    for (int attempt = 0; attempt < ATTEMPTS && sleeps >= RUNS; attempt++) {
        struct rusage before, after;
        getrusage(RUSAGE_THREAD, &before);
        for (int i = 0; i < RUNS; i++)
            run(&pool, 2, finish_late, NULL);
        getrusage(RUSAGE_THREAD, &after);
        sleeps = after.ru_nvcsw - before.ru_nvcsw;
    }
    assert_true(sleeps < RUNS);
    tgl_thread_pool_close(&pool);
}

/* Members wait until all have begun, so that each is run by a thread of its own. */
static void await_team(atomic_int *begun, int team)
{
    atomic_fetch_add(begun, 1);
    while (atomic_load(begun) < team)
        sched_yield();
}

typedef struct second_caller {
    thread_pool *pool;
    atomic_int begun, may_end;
    int team; /* the size of the team that it asks for */
    tally t;
} second_caller;

static void hold_workers(void *context, int thread, int team)
{
    second_caller *s = context;
    (void)thread;
    assert_int_equal(team, s->team);
    await_team(&s->begun, team);
    while (!atomic_load(&s->may_end))
        usleep(100);
}

static void *run_holding(void *argument)
{
    second_caller *s = argument;
    run(s->pool, s->team, hold_workers, s);
    return NULL;
}

/* The second caller would never return if it waited for the workers of the first. */
static void a_second_caller_takes_the_idle_workers(void **state)
{
    (void)state;
    thread_pool pool;
    tgl_thread_pool_open(&pool, 4, 4);
    tally t = {0};
    run(&pool, 4, count_member, &t);
    for (int held = 1; held <= 3; held++) {
        second_caller s = {.pool = &pool, .team = 1 + held};
        pthread_t first;
        assert_int_equal(pthread_create(&first, NULL, run_holding, &s), 0);
        while (atomic_load(&s.begun) < s.team)
            usleep(100);
        run(&pool, 4, count_member, &s.t);
        atomic_store(&s.may_end, 1);
        pthread_join(first, NULL);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(s.t.runs[i], i < 4 - held);
            assert_int_equal(s.t.team[i], i < 4 - held ? 4 - held : 0);
        }
    }
    t = (tally){0};
    run(&pool, 4, count_member, &t);
    assert_int_equal(t.team[3], 4);
    tgl_thread_pool_close(&pool);
}

static void *run_often(void *argument)
{
    second_caller *s = argument;
    for (int i = 0; i < 100000; i++) {
        tally t = {0};
        run(s->pool, 4, count_member, &t);
        for (int thread = 0; thread < MAX_TEAM; thread++)
            if (t.runs[thread] != (thread < t.team[0])) return s;
    }
    return NULL;
}

static void callers_that_compete_for_workers_run_each_member_once(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    thread_pool pool;
    tgl_thread_pool_open(&pool, 4, 2);
    second_caller s = {.pool = &pool};
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, run_often, &s), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *failed;
        pthread_join(callers[i], &failed);
        assert_null(failed);
    }
    tgl_thread_pool_close(&pool);
}

/* Which thread has run each member. */
typedef struct runners {
    atomic_int begun;
    pthread_t threads[MAX_TEAM];
} runners;

static void note_runner(void *context, int thread, int team)
{
    runners *r = context;
    (void)team;
    r->threads[thread] = pthread_self();
}

static void note_own_runner(void *context, int thread, int team)
{
    await_team(&((runners *)context)->begun, team);
    note_runner(context, thread, team);
}

static atomic_int stopped;
static atomic_bool may_go_on;

static void stop_thread(int signal)
{
    (void)signal;
    atomic_fetch_add(&stopped, 1);
    while (!atomic_load(&may_go_on))
        usleep(100);
}

/* A handler of SIGTRAP stops the workers, as if other programs had their processors. They do not
 * block this signal, because it reports a fault. */
static void the_caller_runs_what_no_worker_has_begun(void **state)
{
    (void)state;
    enum { RUNS = 100, TEAM = 3 };
    const struct sigaction stop = {.sa_handler = stop_thread};
    struct sigaction before;
    thread_pool pool;
    runners own = {0};
    assert_int_equal(sigaction(SIGTRAP, &stop, &before), 0);
    tgl_thread_pool_open(&pool, TEAM, TEAM);
    run(&pool, TEAM, note_own_runner, &own);
    for (int i = 1; i < TEAM; i++)
        pthread_kill(own.threads[i], SIGTRAP);
    while (atomic_load(&stopped) < TEAM - 1)
        usleep(100);
    for (int i = 0; i < RUNS; i++) {
        runners r = {0};
        run(&pool, TEAM, note_runner, &r);
        for (int thread = 0; thread < TEAM; thread++)
            assert_true(r.threads[thread] == pthread_self());
    }
    atomic_store(&may_go_on, true);
    runners after = {0};
    run(&pool, TEAM, note_own_runner, &after); /* the workers take tasks again */
    for (int i = 1; i < TEAM; i++)
        assert_true(after.threads[i] != pthread_self());
    tgl_thread_pool_close(&pool);
    sigaction(SIGTRAP, &before, NULL);
}

typedef struct kept_masks {
    atomic_int begun;
    sigset_t signals[3];
    cpu_set_t processors[3];
    int count; /* the number of processors that the caller sees */
} kept_masks;

static void keep_masks(void *context, int thread, int team)
{
    kept_masks *masks = context;
    await_team(&masks->begun, team);
    pthread_sigmask(SIG_SETMASK, NULL, &masks->signals[thread]);
    sched_getaffinity(0, sizeof masks->processors[thread], &masks->processors[thread]);
}

static void workers_block_signals(void **state)
{
    (void)state;
    const int blocked[] = {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD, SIGPROF, SIGRTMIN};
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    kept_masks masks = {0};
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    thread_pool pool;
    tgl_thread_pool_open(&pool, 3, 3);
    run(&pool, 3, keep_masks, &masks);
    tgl_thread_pool_close(&pool);
    for (int thread = 0; thread < 3; thread++) {
        for (size_t i = 0; i < COUNT_OF(blocked); i++)
            assert_int_equal(sigismember(&masks.signals[thread], blocked[i]), thread > 0);
        for (size_t i = 0; i < COUNT_OF(faults); i++)
            assert_int_equal(sigismember(&masks.signals[thread], faults[i]), 0);
    }
}

/* A thread of the host program that is bound to one processor and opens a pool. */
static void *be_first(void *argument)
{
    kept_masks *masks = argument;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return argument;
    thread_pool pool;
    masks->count = tgl_processors();
    tgl_thread_pool_open(&pool, 3, masks->count);
    run(&pool, 3, keep_masks, masks);
    tgl_thread_pool_close(&pool);
    return NULL;
}

static void processors_are_those_of_the_process(void **state)
{
    (void)state;
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    if (CPU_COUNT(&allowed) < 2) skip();
    const int processors = tgl_processors();
    kept_masks masks = {0};
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_create(&thread, NULL, be_first, &masks), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_int_equal(masks.count, processors);
    assert_int_equal(CPU_COUNT(&masks.processors[0]), 1);
    assert_true(CPU_EQUAL(&masks.processors[1], &allowed));
    assert_true(CPU_EQUAL(&masks.processors[2], &allowed));
}

/* ---- Files of the system --------------------------------------------------------------------- */

static char root[] = "/tmp/test_cpu_threads_XXXXXX";

/* Writes root/path, and makes the folders on the way. */
static void write_file(const char *path, const char *text)
{
    char full[600];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = full + strlen(root); (slash = strchr(slash + 1, '/')) != NULL;
         *slash = '/') {
        *slash = '\0';
        mkdir(full, 0700);
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state)
{
    (void)state;
    strcpy(root + sizeof root - 7, "XXXXXX");
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void cgroups_of_version_2_limit(void **state)
{
    (void)state;
    assert_int_equal(tgl_cgroup_processors(root), 0);
    write_file("proc/self/cgroup", "0::/outer/inner\n");
    assert_int_equal(tgl_cgroup_processors(root), 0);
    write_file("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
    assert_int_equal(tgl_cgroup_processors(root), 0);
    write_file("sys/fs/cgroup/outer/inner/cpu.max", "350000 100000\n");
    assert_int_equal(tgl_cgroup_processors(root), 4); /* 3.5, rounded up */
    write_file("sys/fs/cgroup/outer/cpu.max", "200000 100000\n");
    assert_int_equal(tgl_cgroup_processors(root), 2);
    write_file("sys/fs/cgroup/cpu.max", "10000 100000\n");
    assert_int_equal(tgl_cgroup_processors(root), 1);
    write_file("sys/fs/cgroup/cpu.max", "nonsense\n");
    assert_int_equal(tgl_cgroup_processors(root), 2);
    write_file("sys/fs/cgroup/outer/cpu.max", "1000 0\n");
    assert_int_equal(tgl_cgroup_processors(root), 4);
}

static void cgroups_of_version_1_limit(void **state)
{
    (void)state;
    write_file("proc/self/cgroup",
               "9:name=systemd:/\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/\n0::/\n");
    assert_int_equal(tgl_cgroup_processors(root), 0);
    /* The host's path does not exist in the container, the mount point is the container's group. */
    write_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_int_equal(tgl_cgroup_processors(root), 0);
    write_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
    assert_int_equal(tgl_cgroup_processors(root), 2);
    write_file("proc/self/cgroup", "4:cpuset,cpu:/a\n");
    assert_int_equal(tgl_cgroup_processors(root), 0);
    write_file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n");
    write_file("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    assert_int_equal(tgl_cgroup_processors(root), 3);
    write_file("proc/self/cgroup", "4:cpuset:/a\nno colons\n5:cpu\n");
    assert_int_equal(tgl_cgroup_processors(root), 0);
}

/* Describes one cache of a processor as Linux does. */
static void write_cache(int processor, int index, const char *level, const char *type,
                        const char *size, const char *shared)
{
    const char *const names[] = {"level", "type", "size", "shared_cpu_list"};
    const char *const values[] = {level, type, size, shared};
    for (int i = 0; i < 4; i++) {
        char path[200];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cache/index%d/%s", processor,
                 index, names[i]);
        write_file(path, values[i]);
    }
}

/* Eight processors; two third-level caches, of four processors each. */
static void caches_are_counted_once(void **state)
{
    (void)state;
    processor_set one = {.bits = {0x04}}, neighbours = {.bits = {0x06}}, all = {.bits = {0xff}};
    assert_true(tgl_cache_bytes(root, &all, 3, true) == 0);
    for (int i = 0; i < 8; i++) {
        char self[8];
        snprintf(self, sizeof self, "%d\n", i);
        write_cache(i, 0, "1\n", "Data\n", "48K\n", self);
        write_cache(i, 1, "1\n", "Instruction\n", "32K\n", self);
        write_cache(i, 2, "2\n", "Unified\n", "1024K\n", self);
        write_cache(i, 3, "3\n", "Unified\n", "32M\n", i % 4 < 2 ? "0-1,4-5\n" : "2-3,6,7\n");
    }
    assert_true(tgl_cache_bytes(root, &all, 1, false) == 48 << 10);
    assert_true(tgl_cache_bytes(root, &all, 2, false) == 1 << 20);
    assert_true(tgl_cache_bytes(root, &all, 2, true) == 8 << 20);
    assert_true(tgl_cache_bytes(root, &all, 3, true) == 64 << 20);
    assert_true(tgl_cache_bytes(root, &one, 3, true) == 32 << 20);
    assert_true(tgl_cache_bytes(root, &neighbours, 3, true) == 64 << 20);
    assert_true(tgl_cache_bytes(root, &all, 4, true) == 0);
    all = (processor_set){.bits = {0}};
    assert_true(tgl_cache_bytes(root, &all, 1, false) == 0);
}

/* ---- The number of threads ------------------------------------------------------------------- */

static void omp_num_threads_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int threads; /* 0: ignored */
    } table[] = {{NULL, 0},
                 {"", 0},
                 {"3", 3},
                 {" 3 ", 3},
                 {"4,2", 4},
                 {"4 ,2", 4},
                 {"+5", 5},
                 {"0", 0},
                 {"-2", 0},
                 {"two", 0},
                 {"3x", 0},
                 {",4", 0},
                 {"1.5", 0},
                 {"0x10", 0},
                 {"1e3", 0},
                 {"3;4", 0},
                 {"auto", 0},
                 {"1000", 1000},
                 {"99999999999999999999", INT32_MAX}};
    for (size_t i = 0; i < COUNT_OF(table); i++)
        assert_int_equal(tgl_threads_of_text(table[i].text), table[i].threads);
}

static double number_of(const tgl_device *dev, tgl_number number)
{
    double value = 0;
    assert_status(tgl_device_number(dev, number, &value), TGL_OK);
    return value;
}

/* The number of threads of a device that is opened with this OMP_NUM_THREADS (NULL: not set) and
 * this option `threads`. */
static int threads_of_device(const char *omp_num_threads, int asked)
{
    if (omp_num_threads != NULL)
        setenv("OMP_NUM_THREADS", omp_num_threads, 1);
    else
        unsetenv("OMP_NUM_THREADS");
    tgl_device *dev = open_cpu(asked);
    const int threads = (int)number_of(dev, TGL_NUMBER_THREADS);
    assert_true(number_of(dev, TGL_NUMBER_PROCESSORS) >= 1);
    tgl_device_close(dev);
    unsetenv("OMP_NUM_THREADS");
    return threads;
}

static void threads_are_those_asked_for(void **state)
{
    (void)state;
    const int processors = threads_of_device(NULL, 0);
    assert_int_equal(threads_of_device("1", 0), 1);
    assert_int_equal(threads_of_device("1,7", 0), 1);
    assert_int_equal(threads_of_device("2", 0), processors < 2 ? 1 : 2);
    assert_int_equal(threads_of_device("100000", 0), processors);
    assert_int_equal(threads_of_device("-3", 0), processors);
    assert_int_equal(threads_of_device("1", 5), 5); /* the program's number is not limited */
    assert_int_equal(threads_of_device(NULL, INT32_MAX), CPU_MAX_THREADS);
}

static void one_processor_means_one_thread(void **state)
{
    (void)state;
    cpu_set_t allowed, one;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &allowed)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const int alone = threads_of_device(NULL, 0), asked = threads_of_device("3", 0);
    tgl_device *dev = open_cpu(3); /* more threads than processors */
    enum { N = 160 };
    static float A[N * N], B[N * N], C[N * N];
    for (int i = 0; i < N * N; i++)
        A[i] = B[i] = 1;
    for (int i = 0; i < 20; i++) {
        const tgl_problem problem = problem_of(TGL_F32, N, N, N);
        assert_status(tgl_gemm(dev, &problem, 1, A, B, 0, C, NULL), TGL_OK);
        assert_true(C[0] == N && C[N * N - 1] == N);
    }
    tgl_device_close(dev);
    assert_int_equal(sched_setaffinity(0, sizeof allowed, &allowed), 0);
    assert_int_equal(alone, 1);
    assert_int_equal(asked, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_runs_once),
        cmocka_unit_test(threads_come_on_demand_and_end_with_the_pool),
        cmocka_unit_test(the_caller_polls_longer_than_its_own_part),
        cmocka_unit_test(a_second_caller_takes_the_idle_workers),
        cmocka_unit_test(callers_that_compete_for_workers_run_each_member_once),
        cmocka_unit_test(the_caller_runs_what_no_worker_has_begun),
        cmocka_unit_test(workers_block_signals),
        cmocka_unit_test(processors_are_those_of_the_process),
        cmocka_unit_test_setup_teardown(cgroups_of_version_2_limit, make_root, remove_root),
        cmocka_unit_test_setup_teardown(cgroups_of_version_1_limit, make_root, remove_root),
        cmocka_unit_test_setup_teardown(caches_are_counted_once, make_root, remove_root),
        cmocka_unit_test(omp_num_threads_is_read),
        cmocka_unit_test(threads_are_those_asked_for),
        cmocka_unit_test(one_processor_means_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
