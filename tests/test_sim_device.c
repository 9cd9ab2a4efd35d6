/* SPDX-License-Identifier: Apache-2.0
 *
 * The sim device: errors, counts, and that counts do not depend on the run, the device object, the
 * thread or the compiler. An argument "i/n" tests every n-th kernel from the i-th on,
 * where all kernels would be tested.
 */
#include "list_of_kernel.h"
#include "support.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int part = 0, parts = 1;

static tgl_device *open_sim(void)
{
    tgl_device *dev;
    assert_status(tgl_device_open("sim", NULL, &dev), TGL_OK);
    return dev;
}

/* ---- What it refuses ------------------------------------------------------------------------- */

static void assert_no_compiler(const char *cc, const char *path, const char *says)
{
    char message[512], old_path[4096];
    tgl_device *dev;
    snprintf(old_path, sizeof old_path, "%s", getenv("PATH"));
    if (cc != NULL) setenv("TEGULA_CC", cc, 1);
    setenv("PATH", path, 1);
    const tgl_status status = tgl_device_open("sim", NULL, &dev);
    setenv("PATH", old_path, 1);
    unsetenv("TEGULA_CC");
    assert_status(status, TGL_NO_COMPILER);
    assert_null(dev);
    tgl_last_error(message, sizeof message);
    if (strstr(message, says) == NULL) fail_msg("\"%s\" is not in: %s", says, message);
}

static void test_no_compiler(void **state)
{
    (void)state;
    const char *set = getenv("CC");
    char *cc = set != NULL ? strdup(set) : NULL;
    unsetenv("CC");
    assert_no_compiler("/nowhere/cc", "/usr/bin:/bin", "TEGULA_CC is \"/nowhere/cc\"");
    assert_no_compiler("false", "/usr/bin:/bin", "does not run");
    assert_no_compiler(NULL, "/nowhere", "install gcc or clang");
    if (cc != NULL) setenv("CC", cc, 1);
    free(cc);
}

/* A long command in TEGULA_CC, to which the kernel's own flags are added, must not be cut. */
static void test_long_command_lines(void **state)
{
    (void)state;
    const struct {
        int words;
        tgl_status opens, compiles;
        const char *says;
    } lines[] = {{100, TGL_OK, TGL_OK, ""},
                 {250, TGL_OK, TGL_COMPILE, "words; 256 are the most"},
                 {300, TGL_NO_COMPILER, TGL_OK, "does not run"}};
    const tgl_problem problem = problem_of(TGL_F32, 3, 5, 7);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char cc[4096] = "cc", text[8192] = "";
        for (int word = 1; word < lines[i].words; word++)
            strcat(cc, " -DX");
        tgl_device *dev;
        tgl_plan *plan;
        setenv("TEGULA_CC", cc, 1);
        const tgl_status status = tgl_device_open("sim", NULL, &dev);
        unsetenv("TEGULA_CC");
        assert_status(status, lines[i].opens);
        if (status == TGL_OK) {
            assert_status(tgl_plan_create(dev, &problem, NULL, &plan), lines[i].compiles);
            tgl_plan_destroy(plan);
            tgl_device_close(dev);
        }
        tgl_last_error(text, sizeof text);
        assert_non_null(strstr(text, lines[i].says));
    }
}

static void test_refusals(void **state)
{
    (void)state;
    tgl_device *dev;
    assert_status(tgl_device_open("sim:1", NULL, &dev), TGL_NO_DEVICE);
    dev = open_sim();
    tgl_plan *plan;
    tgl_problem problem = problem_of(TGL_F32, 4, 4, 4);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "ladder/none"};
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_UNKNOWN_KERNEL);
    const tgl_plan_options rung = {.size = sizeof rung, .kernel = "ladder/naive"};
    problem.trans_b = TGL_TRANS;
    assert_status(tgl_plan_create(dev, &problem, &rung, &plan), TGL_UNSUPPORTED);
    problem = problem_of(TGL_F8_E4M3, 4, 4, 4);
    problem.scaling_d = TGL_SCALING_BLOCK;
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_UNSUPPORTED);
    problem = problem_of(TGL_F32, 4, 4, 4);
    problem.batch = 2;
    problem.stride_c = 16;
    assert_status(tgl_plan_create(dev, &problem, &rung, &plan), TGL_UNSUPPORTED);
    problem = problem_of(TGL_F32, 4, 4, INT32_MAX - 1023);
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_UNSUPPORTED);
    problem = problem_of(TGL_F32, 65535 * 128 + 1, 4, 4);
    assert_status(tgl_plan_create(dev, &problem, &rung, &plan), TGL_GRID_TOO_LARGE);
    problem = problem_of(TGL_F32, 1 << 30, 1 << 29, 4);
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_GRID_TOO_LARGE);
    double value;
    assert_status(tgl_device_number(dev, TGL_NUMBER_CLOCK_HZ, &value), TGL_UNSUPPORTED);
    assert_status(tgl_device_measure(dev, TGL_CEILING_COPY, &value), TGL_UNSUPPORTED);
    tgl_device_close(dev);
}

/* TEGULA_SIM_SEED, which determines the order of blocks, must be a number of 64 bits, or empty. */
static void test_seed(void **state)
{
    static const char *const bad[] = {"x", "1x", "-1", " 1", "18446744073709551616"};
    (void)state;
    tgl_device *dev;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        setenv("TEGULA_SIM_SEED", bad[i], 1);
        assert_status(tgl_device_open("sim", NULL, &dev), TGL_BAD_SETTING);
        assert_null(dev);
    }
    setenv("TEGULA_SIM_SEED", "", 1);
    assert_status(tgl_device_open("sim", NULL, &dev), TGL_OK);
    tgl_device_close(dev);
    unsetenv("TEGULA_SIM_SEED");
}

enum { REFUSED, OPENED, CANNOT_TELL };

/* Opens the device. This process is then a setuid program. Returns its exit status. */
static int open_with_more_rights(void)
{
    char message[512];
    tgl_device *dev;
    if (getauxval(AT_SECURE) == 0) return CANNOT_TELL; /* the file system does not support setuid */
    const tgl_status status = tgl_device_open("sim", NULL, &dev);
    tgl_last_error(message, sizeof message);
    return status == TGL_NO_DEVICE && strstr(message, "setuid") != NULL ? REFUSED : OPENED;
}

/* Makes a setuid-root copy of this program; the test removes the file. */
static void make_setuid_copy(char *path)
{
    char buffer[1 << 16];
    const int copy = mkstemp(path);
    FILE *self = fopen("/proc/self/exe", "rb");
    assert_true(copy >= 0 && self != NULL);
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, self)) > 0;)
        assert_int_equal(write(copy, buffer, got), got);
    assert_int_equal(fchmod(copy, 04755), 0);
    close(copy);
    fclose(self);
}

/* The simulator runs a compiler found through the user's PATH, so it must not open in a setuid
 * program. */
static void test_setuid(void **state)
{
    (void)state;
    char path[] = "/tmp/tegula-test-XXXXXX";
    int result = -1;
    if (geteuid() != 0) skip();
    make_setuid_copy(path);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const uid_t nobody = 65534;
        if (setuid(nobody) == 0) execl(path, path, "setuid", (char *)NULL);
        _exit(CANNOT_TELL);
    }
    waitpid(child, &result, 0);
    unlink(path);
    assert_true(WIFEXITED(result));
    if (WEXITSTATUS(result) == CANNOT_TELL) skip();
    assert_int_equal(WEXITSTATUS(result), REFUSED);
}

/* An F32 problem that kernels for CUDA cores and for TF32 support. */
static tgl_problem tf32_problem(int64_t m, int64_t n, int64_t k)
{
    tgl_problem problem = problem_of(TGL_F32, m, n, k);
    problem.compute = TGL_COMPUTE_TF32;
    return problem;
}

/* Whether a kernel does not support these problems: it is for F64, F16 or integer weights, or for
 * compute mode ACCURATE. */
static bool is_for_others(const char *kernel)
{
    return strstr(kernel, "_f64") != NULL || strncmp(kernel, "dmma", 4) == 0 ||
           strncmp(kernel, "accurate", 8) == 0 || strncmp(kernel, "ladder/f16_", 11) == 0 ||
           strncmp(kernel, "dequant", 7) == 0;
}

/* With k = 0, a NaN alpha has no effect. */
static void test_no_product(void **state)
{
    enum { M = 66, N = 200 }; /* of kernels that refuse products which smaller tiles take */
    tgl_device *dev = *state;
    static float C[M * N];
    const char *kernel;
    for (int i = 0; (kernel = tgl_kernel_name(dev, i)) != NULL; i++) {
        if (i % parts != part || is_for_others(kernel)) continue;
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
        const bool is_large = strncmp(kernel, "batch_mma", 9) == 0 && strstr(kernel, "128") != NULL;
        const bool is_flat = strcmp(kernel, "batch_mma_16x256") == 0;
        const tgl_problem problem = is_flat    ? tf32_problem(4, N, 0)
                                    : is_large ? tf32_problem(M, 68, 0)
                                               : tf32_problem(1, 4, 0);
        const int64_t count = problem.m * problem.n;
        for (int j = 0; j < count; j++)
            C[j] = 2 * (float)(j + 1);
        tgl_plan *plan;
        assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
        assert_status(tgl_plan_run(plan, (double)NAN, NULL, NULL, 0.5, C, NULL), TGL_OK);
        for (int j = 0; j < count; j++)
            assert_true(C[j] == (float)(j + 1));
        tgl_plan_destroy(plan);
    }
}

/* If alpha is 0, or is rounded to 0, A and B are not accessed: here they are invalid addresses. */
static void test_pointers_without_a_product(void **state)
{
    static const int64_t sizes[][3] = {{5, 5, 5}, {1, 9, 3}, {64, 64, 64}};
    static float C[64 * 64];
    void *nowhere = (void *)1;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const tgl_problem problem = problem_of(TGL_F32, sizes[i][0], sizes[i][1], sizes[i][2]);
        C[0] = 3;
        assert_status(tgl_gemm(*state, &problem, 1e-60, nowhere, nowhere, 2, C, NULL), TGL_OK);
        assert_true(C[0] == 6);
    }
    tgl_problem batch = problem_of(TGL_F32, 2, 2, 2);
    void *const array[] = {C};
    batch.batching = TGL_POINTERS;
    C[0] = 3;
    assert_status(tgl_gemm_batched(*state, &batch, 0, nowhere, nowhere, 2, array, NULL), TGL_OK);
    assert_true(C[0] == 6);
}

/* ---- What it counts -------------------------------------------------------------------------- */

enum { ROOM = 160 * 160 };

/* Aligned to 256 bytes, as by tgl_alloc(): the position of a matrix within a sector changes the
 * counts. */
static float *new_matrix(size_t elements)
{
    float *matrix = aligned_alloc(256, elements * sizeof *matrix);
    assert_non_null(matrix);
    return matrix;
}

/* Runs C := A*B once, with the same numbers every time, and returns the plan with its counts. */
static tgl_plan *run_product(tgl_device *dev, const char *kernel, int64_t m, int64_t n, int64_t k,
                             float *C)
{
    float *A = new_matrix(2 * ROOM), *B = A + ROOM;
    for (int i = 0; i < 2 * ROOM; i++)
        A[i] = (float)(i * 7 % 31) / 16 - 1;
    const tgl_problem problem = tf32_problem(m, n, k);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
    free(A);
    return plan;
}

static tgl_counters count_product(tgl_device *dev, const char *kernel, int64_t m, int64_t n,
                                  int64_t k, float *C)
{
    tgl_counters counters = {.size = sizeof counters};
    tgl_plan *plan = run_product(dev, kernel, m, n, k, C);
    assert_status(tgl_plan_counters(plan, &counters), TGL_OK);
    tgl_plan_destroy(plan);
    return counters;
}

/* Rows of D that are not aligned to 16 bytes are stored by neighbouring lanes: small_batch stores
 * 31 neighbours at once, which are in at most five sectors. */
static void test_unaligned_rows_are_stored_at_once(void **state)
{
    const int64_t edge = 31;
    float *C = new_matrix(ROOM);
    const tgl_counters c = count_product(*state, "small_batch_32x32", edge, edge, 8, C);
    assert_int_equal(c.global_store_bytes, 4 * edge * edge);
    assert_in_range(c.global_store_sectors, 4 * edge, 5 * edge);
    free(C);
}

/* Counts of rungs that can be computed by hand: with 32 x 32 tiles and multiples of 32 as sizes. */
static void test_known_counts(void **state)
{
    const int64_t m = 64, n = 32, k = 96;
    float *C = new_matrix(ROOM);
    const int64_t warps = m * n / 32;

    /* A warp computes 32 rows of one column: each lane reads its row of A, and all read the same
     * element of B. */
    tgl_counters c = count_product(*state, "ladder/naive", m, n, k, C);
    assert_int_equal(c.blocks * c.threads, m * n);
    assert_int_equal(c.global_load_requests, 2 * k * warps);
    assert_int_equal(c.global_load_sectors, (32 + 1) * k * warps);
    assert_int_equal(c.global_load_bytes, 4 * 32 * 2 * k * warps);
    assert_int_equal(c.global_store_requests, warps);
    assert_int_equal(c.global_store_sectors, 32 * warps);
    assert_int_equal(c.shared_load_requests + c.shared_store_requests + c.barriers, 0);
    assert_int_equal(c.needed_bytes, 4 * (m * k + k * n + m * n));

    /* A warp computes 32 columns of one row. */
    c = count_product(*state, "ladder/coalesced", m, n, k, C);
    assert_int_equal(c.global_load_requests, 2 * k * warps);
    assert_int_equal(c.global_load_sectors, (1 + 4) * k * warps);
    assert_int_equal(c.global_store_sectors, 4 * warps);

    /* Each element of a tile is loaded once by its block. */
    c = count_product(*state, "ladder/shared_tile", m, n, k, C);
    assert_int_equal(c.global_load_bytes, 4 * (m * k * (n / 32) + k * n * (m / 32)));
    assert_int_equal(c.global_load_sectors * 32, c.global_load_bytes);
    assert_int_equal(c.shared_load_requests, 2 * k * warps);
    assert_int_equal(c.shared_store_bytes, c.global_load_bytes);
    assert_int_equal(c.barriers, 2 * (k / 32) * c.blocks);
    free(C);
}

/* Makes a launch compute two products at a time, as if the batch exceeded the limit of a grid. */
static void take_two_at_once(tgl_launch *launch, int64_t batch)
{
    launch->repeats = (batch + 1) / 2;
    launch->count = 2;
    launch->last_count = (int)(batch - 2 * (launch->repeats - 1));
    for (int i = 0; i < launch->patch_count; i++) {
        tgl_patch *p = &launch->patches[i];
        p->step = p->step / (int64_t)launch->grid[2] * 2;
    }
    launch->grid[2] = 2;
}

/* Counts are added over all launches of a batch. Here a launch computes two of five products, which
 * share B. */
static void test_launches_of_a_batch_add_up(void **state)
{
    enum { SIDE = 20, BATCH = 5, ELEMENTS = SIDE * SIDE };
    static float A[BATCH * ELEMENTS], B[ELEMENTS], C[2][BATCH * ELEMENTS];
    tgl_problem problem = problem_of(TGL_F32, SIDE, SIDE, SIDE);
    problem.batch = BATCH;
    problem.stride_a = problem.stride_c = ELEMENTS;
    const tgl_plan_options options = {.size = sizeof options, .kernel = "simt_32x32x16"};
    tgl_counters counters[2];
    char text[2][16384];
    for (int i = 0; i < BATCH * ELEMENTS; i++)
        A[i] = B[i % ELEMENTS] = (float)(i % 5);
    for (int i = 0; i < 2; i++) {
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        for (int j = 0; j < plan->list.steps[0].launch_count && i == 1; j++)
            take_two_at_once(&plan->list.steps[0].launches[j], BATCH);
        assert_status(tgl_plan_run(plan, 1, A, B, 0, C[i], NULL), TGL_OK);
        counters[i].size = sizeof counters[i];
        assert_status(tgl_plan_counters(plan, &counters[i]), TGL_OK);
        tgl_plan_explain(plan, text[i], sizeof text[i]);
        tgl_plan_destroy(plan);
    }
    assert_memory_equal(C[1], C[0], sizeof C[0]);
    assert_int_equal(counters[0].blocks, BATCH);
    assert_int_equal(counters[0].needed_bytes, 4 * ELEMENTS * (2 * BATCH + 1));
    assert_memory_equal(&counters[1], &counters[0], sizeof counters[0]);
    assert_non_null(strstr(text[0], "by line"));
    assert_string_equal(strstr(text[1], "by line"), strstr(text[0], "by line"));
}

/* tgl_plan_trace() is about the plan's own latest run, also if another plan uses its module. */
static void test_trace_call(void **state)
{
    enum { SIZE = 40 };
    static _Alignas(256) float A[SIZE * SIZE], B[SIZE * SIZE], C[SIZE * SIZE];
    static char text[3][65536];
    const tgl_problem problem = problem_of(TGL_F32, SIZE, SIZE, SIZE),
                      less = problem_of(TGL_F32, 8, 8, 8);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "ladder/shared_tile"};
    tgl_plan *plan, *other;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_create(*state, &less, &options, &other), TGL_OK);
    assert_int_equal(tgl_plan_trace(plan, text[0], sizeof text[0]), 0); /* not run yet */
    assert_int_equal(tgl_plan_trace(NULL, text[0], sizeof text[0]), 0);
    for (int i = 0; i < 3; i++) {
        if (i < 2) assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
        assert_status(tgl_plan_run(other, 1, A, B, 0, C, NULL), TGL_OK);
        const size_t length = tgl_plan_trace(plan, text[i], sizeof text[i]);
        assert_in_range(length, 1000, sizeof text[i] - 1);
        assert_int_equal(strlen(text[i]), length);
        assert_string_equal(text[i], text[0]);
    }
    assert_non_null(strstr(text[0], "{\"kernel\":\"ladder/shared_tile\","));
    assert_non_null(strstr(text[0], "\"grid\":[2,2,1],\"threads\":1024"));
    char start[11];
    assert_int_equal(tgl_plan_trace(plan, start, sizeof start), strlen(text[0]));
    assert_string_equal(start, "{\"kernel\":");
    tgl_plan_destroy(other);
    tgl_plan_destroy(plan);
}

static void test_counters_call(void **state)
{
    tgl_counters counters = {.size = sizeof counters};
    const tgl_problem problem = problem_of(TGL_F32, 8, 8, 8);
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_counters(plan, &counters), TGL_UNSUPPORTED); /* not run yet */
    assert_status(tgl_plan_counters(NULL, &counters), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_counters(plan, NULL), TGL_BAD_ARGUMENT);
    counters.size = 1;
    assert_status(tgl_plan_counters(plan, &counters), TGL_BAD_ARGUMENT);
    tgl_plan_destroy(plan);

    /* A program of version 0.2 has the members up to needed_bytes. */
    float *C = new_matrix(ROOM);
    counters = (tgl_counters){.size = offsetof(tgl_counters, mma_requests), .mma_requests = -1};
    plan = run_product(*state, "ladder/naive", 8, 8, 8, C);
    assert_status(tgl_plan_counters(plan, &counters), TGL_OK);
    assert_int_equal(counters.size, offsetof(tgl_counters, mma_requests));
    assert_int_equal(counters.needed_bytes, 3 * 8 * 8 * 4);
    assert_int_equal(counters.mma_requests, -1);
    tgl_plan_destroy(plan);
    free(C);

    tgl_device *cpu = open_cpu(1);
    counters.size = sizeof counters;
    assert_status(tgl_plan_create(cpu, &problem, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_counters(plan, &counters), TGL_UNSUPPORTED);
    tgl_plan_destroy(plan);
    tgl_device_close(cpu);
}

static void test_explain(void **state)
{
    float *C = new_matrix(ROOM);
    char text[8192], start[40];
    tgl_plan *plan = run_product(*state, "ladder/shared_tile", 40, 40, 40, C);
    const size_t length = tgl_plan_explain(plan, text, sizeof text);
    assert_true(length < sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "kernels/ladder/04_shared_tile.cu"));
    assert_non_null(strstr(text, "shared load  As"));
    assert_non_null(strstr(text, "global store C"));
    assert_int_equal(tgl_plan_explain(plan, start, sizeof start), length);
    assert_memory_equal(start, text, sizeof start - 1);
    tgl_plan_destroy(plan);
    free(C);
}

/* ---- What it does not depend on -------------------------------------------------------------- */

typedef struct outcome {
    tgl_device *dev;
    tgl_counters counters;
    float *C;
} outcome;

static void *count_in_thread(void *argument)
{
    outcome *o = argument;
    o->counters = count_product(o->dev, "ladder/async_copy", 130, 65, 33, o->C);
    return NULL;
}

/* Two threads use one device, and a third uses another one. */
static void test_threads(void **state)
{
    outcome *outcomes = calloc(3, sizeof *outcomes);
    pthread_t threads[3];
    tgl_device *other = open_sim();
    for (int i = 0; i < 3; i++) {
        outcomes[i].dev = i < 2 ? *state : other;
        outcomes[i].C = new_matrix(ROOM);
        assert_int_equal(pthread_create(&threads[i], NULL, count_in_thread, &outcomes[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < 3; i++) {
        assert_memory_equal(&outcomes[i].counters, &outcomes[0].counters, sizeof(tgl_counters));
        assert_memory_equal(outcomes[i].C, outcomes[0].C, 130 * 65 * sizeof(float));
    }
    for (int i = 0; i < 3; i++)
        free(outcomes[i].C);
    tgl_device_close(other);
    free(outcomes);
}

/* NULL: this machine does not have the compiler. */
static tgl_device *open_with(const char *compiler)
{
    tgl_device *dev;
    setenv("TEGULA_CC", compiler, 1);
    const tgl_status status = tgl_device_open("sim", NULL, &dev);
    unsetenv("TEGULA_CC");
    return status == TGL_OK ? dev : NULL;
}

static void test_compilers_agree(void **state)
{
    (void)state;
    tgl_device *gcc = open_with("gcc"), *clang = open_with("clang");
    if (gcc == NULL || clang == NULL) {
        tgl_device_close(gcc);
        tgl_device_close(clang);
        skip();
    }
    float *C = new_matrix(ROOM);
    const char *kernel, *before = "";
    for (int i = 0; (kernel = tgl_kernel_name(gcc, i)) != NULL; i++) {
        if (i % parts != part) continue;
        if (strncmp(kernel, "skinny", 6) == 0 || strstr(kernel, "batch") != NULL)
            continue; /* the kernel supports fewer rows */
        /* Compiling a kernel takes a while: one of each tensor-core file, and every third of simt.
         */
        if (strncmp(kernel, "simt", 4) == 0 && i % 3 != 0) continue;
        const size_t name = strcspn(kernel, "0123456789");
        const bool is_again = strncmp(kernel, before, name) == 0;
        before = kernel;
        if (is_for_others(kernel) || (is_again && strstr(kernel, "mma_") != NULL)) continue;
        const int64_t m = strncmp(kernel, "gemv", 4) == 0 ? 1 : 65;
        const tgl_counters a = count_product(gcc, kernel, m, 130, 33, C);
        const tgl_counters b = count_product(clang, kernel, m, 130, 33, C);
        if (memcmp(&a, &b, sizeof a) != 0) fail_msg("%s: gcc and clang count differently", kernel);
    }
    free(C);
    tgl_device_close(gcc);
    tgl_device_close(clang);
}

/* ---- Exchanges within a warp ----------------------------------------------------------------- */

/* A warp computes one element: lanes divide K and add their sums by shuffles, and once more through
 * shared memory, ordered by __syncwarp(). */
static const char warp_source[] =
    "__global__ void warp_dot(int m, int n, int k, float alpha, const float *A, long long lda,\n"
    "                         const float *B, long long ldb, float beta, float *C,\n"
    "                         long long ldc)\n"
    "{\n"
    "    __shared__ float sums[2][32];\n"
    "    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;\n"
    "    const int row = (int)blockIdx.y * 2 + warp, col = (int)blockIdx.x;\n"
    "    float sum = 0.0f;\n"
    "    if (row < m)\n"
    "        for (int p = lane; p < k; p += 32)\n"
    "            sum = fmaf(A[row * lda + p], B[p * ldb + col], sum);\n"
    "    for (int bits = 16; bits >= 4; bits /= 2)\n"
    "        sum += __shfl_xor_sync(0xffffffffu, sum, bits);\n"
    "    sum += __shfl_sync(0xffffffffu, sum, lane ^ 2);\n"
    "    sums[warp][lane] = sum;\n"
    "    __syncwarp();\n"
    "    const float both = sums[warp][0] + sums[warp][1];\n"
    "    __syncwarp();\n"
    "    sums[warp][lane] = both;\n"
    "    __syncwarp(0xffffffffu);\n"
    "    if (lane == 0 && row < m) {\n"
    "        float result = alpha * sums[warp][max(31, lane)];\n"
    "        if (beta != 0.0f) result += beta * C[row * ldc + col];\n"
    "        C[row * ldc + col] = result;\n"
    "    }\n"
    "}\n";

static void test_warp_words(void **state)
{
    static const lone_kernel kernel = {.name = "warp_dot",
                                       .file = "tests/warp_dot.cu",
                                       .symbol = "warp_dot",
                                       .source = warp_source,
                                       .block_m = 2,
                                       .block_n = 1,
                                       .threads = 64};
    enum { m = 5, n = 3, k = 70 };
    float A[m * k], B[k * n], C[m * n];
    for (int i = 0; i < m * k; i++)
        A[i] = (float)(i % 7);
    for (int i = 0; i < k * n; i++)
        B[i] = (float)(i % 5);
    for (int i = 0; i < m * n; i++)
        C[i] = 1;
    const tgl_problem problem = problem_of(TGL_F32, m, n, k);
    char message[512];
    tgl_plan *plan;
    assert_status(plan_of_kernel(*state, &problem, &kernel, &plan), TGL_OK);
    const tgl_status status = tgl_plan_run(plan, 1, A, B, 1, C, NULL);
    tgl_last_error(message, sizeof message);
    if (status != TGL_OK) fail_msg("%s", message);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float expected = 1; /* small integers: exact */
            for (int p = 0; p < k; p++)
                expected += A[i * k + p] * B[p * n + j];
            if (C[i * n + j] != expected)
                fail_msg("C(%d, %d) is %g, not %g", i, j, (double)C[i * n + j], (double)expected);
        }
    tgl_plan_destroy(plan);
}

/* ---- After a fault --------------------------------------------------------------------------- */

/* Blocks of a split tile increment a counter. The next run must not find the counters of a run that
 * stopped with an error. Here the error is a bias in C, which must not be read because beta is 0.
 */
static void test_split_plan_survives(void **state)
{
    enum { M = 40, N = 40, K = 700 };
    static float A[M * K], B[K * N], C[M * N], bias[N];
    const tgl_problem problem = problem_of(TGL_F32, M, N, K);
    const tgl_epilogue epilogue = {.size = sizeof epilogue, .bias = TGL_BIAS_COLUMN};
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = "simt_32x32x16:splits=11,strips=0",
                                      .epilogue = &epilogue};
    tgl_operands operands = {
        .size = sizeof operands, .alpha = 1, .A = A, .B = B, .C = C, .bias = C};
    tgl_plan *plan;
    for (int i = 0; i < M * K; i++)
        A[i] = B[i] = 1;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_KERNEL_FAULT);
    operands.bias = bias;
    for (int run = 0; run < 2; run++) {
        memset(C, 0xff, sizeof C);
        assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
        for (int i = 0; i < M * N; i++)
            assert_true(C[i] == K);
    }
    tgl_plan_destroy(plan);
}

static int setup(void **state)
{
    *state = open_sim();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "setuid") == 0) _exit(open_with_more_rights());
    if (argc > 1 && (sscanf(argv[1], "%d/%d", &part, &parts) != 2 || parts < 1)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_compiler),
        cmocka_unit_test(test_long_command_lines),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_setuid),
        cmocka_unit_test(test_no_product),
        cmocka_unit_test(test_known_counts),
        cmocka_unit_test(test_unaligned_rows_are_stored_at_once),
        cmocka_unit_test(test_launches_of_a_batch_add_up),
        cmocka_unit_test(test_counters_call),
        cmocka_unit_test(test_trace_call),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_compilers_agree),
        cmocka_unit_test(test_warp_words),
        cmocka_unit_test(test_split_plan_survives),
        cmocka_unit_test(test_pointers_without_a_product),
    };
    return cmocka_run_group_tests(tests, setup, teardown_device);
}
