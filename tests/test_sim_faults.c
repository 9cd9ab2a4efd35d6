/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of tests/broken_kernels. The simulator must report each error, with a message that
 * names every line marked with "<-".
 */
#include "list_of_kernel.h"
#include "support.h"

enum { M = 40, N = 24, K = 36, LDC = 30, ROOM = 64 * 64 };

/* The file's name, the expected status, words of the message besides the lines, and the scalars and
 * cluster that the error needs. */
static const struct broken {
    const char *name;
    tgl_status status;
    const char *says[3];
    double alpha, beta;
    int cluster; /* blocks; 0 means 1 */
} broken[] = {
    {"reader_writes", TGL_KERNEL_FAULT, {"race: ", "with no barrier between", "s + "}, 1, 0, 0},
    {"too_much_shared",
     TGL_COMPILE,
     {"declares 49156 bytes of shared memory; 49152 is the maximum"},
     1,
     0,
     0},
    {"missing_barrier", TGL_KERNEL_FAULT, {"race: ", "with no barrier between", "s + "}, 1, 0, 0},
    {"off_by_one",
     TGL_KERNEL_FAULT,
     {"reads 4 bytes at row 0, column 36 of A, which is 40 x 36"},
     1,
     0,
     0},
    {"unguarded_edge",
     TGL_KERNEL_FAULT,
     {"writes 4 bytes at row 0, column 24 of C, which is "
      "40 x 24",
      "block (1, 0)"},
     1,
     0,
     0},
    {"writes_padding", TGL_KERNEL_FAULT, {"writes 4 bytes at row 0, column 24 of C"}, 1, 0, 0},
    {"reads_c", TGL_KERNEL_FAULT, {"row 0, column 0 of C", "but beta is 0"}, 1, 0, 0},
    {"reads_without_product",
     TGL_KERNEL_FAULT,
     {"reads 4 bytes at address 0, through a NULL pointer"},
     0,
     0,
     0},
    {"early_read",
     TGL_KERNEL_FAULT,
     {"reads As + 0 bytes before the cp.async", "waited for"},
     1,
     0,
     0},
    {"late_group",
     TGL_KERNEL_FAULT,
     {"reads As + 0 bytes before the cp.async", "waited for"},
     1,
     0,
     0},
    {"copied_by_others",
     TGL_KERNEL_FAULT,
     {"race: writes As + 4 bytes, which thread 0 reads"},
     1,
     0,
     0},
    {"skipped_barrier",
     TGL_KERNEL_FAULT,
     {"has left the kernel, while thread 0 waits", "block (1, 0), thread 8"},
     1,
     0,
     0},
    {"divergent_barrier",
     TGL_KERNEL_FAULT,
     {"thread 128", "waits at this barrier, while thread 0"},
     1,
     0,
     0},
    {"unwritten_shared", TGL_KERNEL_FAULT, {"reads As + ", "which no thread has written"}, 1, 0, 0},
    {"local_overrun", TGL_KERNEL_FAULT, {"uses an index outside of an array"}, 1, 0, 0},
    {"shared_overrun",
     TGL_KERNEL_FAULT,
     {"writes 4 bytes", "at 0 bytes past the end of As, which has 960 bytes"},
     1,
     0,
     0},
    {"misaligned",
     TGL_KERNEL_FAULT,
     {"reads 16 bytes at once at an address that is not a multiple of "
      "16"},
     1,
     0,
     0},
    {"shared_result",
     TGL_KERNEL_FAULT,
     {"race: writes row 0, column 0 of C", "thread 0 of block 0"},
     1,
     0,
     0},
    {"endless_loop", TGL_KERNEL_FAULT, {"thread 5", "an endless loop"}, 1, 0, 0},
    {"cluster_unwritten",
     TGL_KERNEL_FAULT,
     {"reads s + 0 bytes of another block of the cluster, which no thread has written"},
     1,
     0,
     2},
    {"cluster_race",
     TGL_KERNEL_FAULT,
     {"race: reads s + 0 bytes, which another block of the cluster writes", "block (1, 0)"},
     1,
     0,
     2},
    {"cluster_overwritten",
     TGL_KERNEL_FAULT,
     {"race: writes s + 0 bytes, which another block of the cluster reads", "block (1, 0)"},
     1,
     0,
     2},
    {"cluster_ended",
     TGL_KERNEL_FAULT,
     {"reads s + 0 bytes of a block of the cluster that has ended", "block (1, 0)"},
     1,
     0,
     2},
    {"cluster_left",
     TGL_KERNEL_FAULT,
     {"block (1, 0)", "has left the kernel, while another block of its cluster may still read"},
     1,
     0,
     2},
    {"cluster_alone",
     TGL_KERNEL_FAULT,
     {"block (1, 0)", "has left the kernel, while another block of its cluster waits for it"},
     1,
     0,
     2},
    {"cluster_rank", TGL_KERNEL_FAULT, {"reads from block 2 of a cluster of 2"}, 1, 0, 2},
    {"cluster_divergent",
     TGL_KERNEL_FAULT,
     {"thread 128", "waits at this barrier, while thread 0"},
     1,
     0,
     2},
    {"mbarrier_early",
     TGL_KERNEL_FAULT,
     {"race: uses the mbarrier at bar + 0 bytes, which thread 0 initialises"},
     1,
     0,
     0},
    {"mbarrier_deadlock",
     TGL_KERNEL_FAULT,
     {"deadlock: waits for a phase of the mbarrier at bar + 0 bytes", "1 of 2 arrivals never come"},
     1,
     0,
     0},
    {"mbarrier_race",
     TGL_KERNEL_FAULT,
     {"race: reads s + 0 bytes, which thread 0 writes"},
     1,
     0,
     0},
    {"does_not_compile", TGL_COMPILE, {"broken/does_not_compile.cu:", "error"}, 1, 0, 0},
    {"bank_conflict", TGL_OK, {NULL}, 1, -0.5, 0},
};

static void assert_contains(const char *message, const char *part)
{
    if (strstr(message, part) == NULL) fail_msg("\"%s\" is not in: %s", part, message);
}

/* Each marked line must be named as FILE:LINE. */
static void assert_lines(const char *message, const char *file, const char *source)
{
    int line = 1;
    for (const char *at = source; *at != '\0'; at++) {
        if (*at == '\n') line++;
        if (strncmp(at, "<-", 2) != 0) continue;
        char place[128];
        snprintf(place, sizeof place, "%s:%d", file, line);
        assert_contains(message, place);
    }
}

static tgl_problem make_problem(void)
{
    tgl_problem problem = problem_of(TGL_F32, M, N, K);
    problem.lda = K + 1;
    problem.ldc = LDC;
    return problem;
}

/* Makes a plan of these kernels and runs it. `message` is the error message of a failure. */
static tgl_status run_kernels(tgl_device *dev, const lone_kernel *kernels, int count, double alpha,
                              double beta, tgl_plan **plan, char *message, size_t size)
{
    const tgl_problem problem = make_problem();
    void *memory;
    assert_status(tgl_alloc(dev, 3 * ROOM * sizeof(float), &memory), TGL_OK);
    float *A = memory, *B = A + ROOM, *C = B + ROOM;
    for (int i = 0; i < 3 * ROOM; i++)
        A[i] = (float)(i % 17) - 8;
    tgl_status status = plan_of_kernels(dev, &problem, kernels, count, plan);
    if (status == TGL_OK) status = tgl_plan_run(*plan, alpha, A, B, beta, C, NULL);
    message[0] = '\0';
    if (status != TGL_OK) tgl_last_error(message, size);
    tgl_free(dev, memory);
    return status;
}

/* Of the 64 shared loads in the 32 steps of a tile, the 32 loads of As have bank conflicts. */
static void assert_conflicts(const tgl_plan *plan)
{
    tgl_counters c = {.size = sizeof c};
    assert_status(tgl_plan_counters(plan, &c), TGL_OK);
    const int64_t tiles = 2 * 3 * 2, warps = 8; /* along m, n and k */
    assert_int_equal(c.shared_load_requests, 64 * tiles * warps);
    assert_int_equal(c.shared_load_conflicts, 31 * 32 * tiles * warps);
    assert_int_equal(c.shared_load_wavefronts, 33 * 32 * tiles * warps);
}

static void check_message(const struct broken *b, const char *file, const char *source,
                          const char *message)
{
    for (int i = 0; i < 3 && b->says[i] != NULL; i++)
        assert_contains(message, b->says[i]);
    if (b->status != TGL_KERNEL_FAULT) return;
    assert_contains(message, b->name);
    assert_lines(message, file, source);
}

static char *read_broken(const char *name)
{
    char *source = read_text(BROKEN_KERNELS, name);
    if (source == NULL) fail_msg("no %s.cu", name);
    return source;
}

static void test_broken_kernels(void **state)
{
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        const struct broken *b = &broken[i];
        const bool is_slow = b->status == TGL_OK;
        char *source = read_broken(b->name), message[4096], file[64];
        tgl_plan *plan;
        snprintf(file, sizeof file, "broken/%s.cu", b->name);
        const lone_kernel kernel = {.name = b->name,
                                    .file = file,
                                    .symbol = "broken",
                                    .source = source,
                                    .block_m = is_slow ? 32 : 16,
                                    .block_n = is_slow ? 8 : 16,
                                    .threads = 256,
                                    .cluster = (unsigned)b->cluster};
        const tgl_status status =
            run_kernels(*state, &kernel, 1, b->alpha, b->beta, &plan, message, sizeof message);
        if (status != b->status)
            fail_msg("%s: %s, not %s: %s", b->name, tgl_status_name(status),
                     tgl_status_name(b->status), message);
        check_message(b, file, source, message);
        if (is_slow) assert_conflicts(plan);
        tgl_plan_destroy(plan);
        free(source);
    }
}

/* ---- Workspace ------------------------------------------------------------------------------- */

/* passes_on.cu, where blocks pass sums to the last one. A macro in front of the source changes or
 * removes one part of the synchronisation, or adds a read; the words are part of the message. */
static const struct {
    const char *left_out;
    tgl_status status;
    const char *says[2];
} agreements[] = {
    {"", TGL_OK, {NULL}},
    {"#define BARRIER_AND_FENCE_BY_ALL\n", TGL_OK, {NULL}},
    {"#define NAMED_BARRIERS\n", TGL_OK, {NULL}},
    {"#define NAMED_BARRIERS\n#define NO_BARRIER_BEFORE\n",
     TGL_KERNEL_FAULT,
     {"race: reads number ", "does not publish"}},
    {"#define NO_FENCE_BEFORE\n", TGL_KERNEL_FAULT, {"race: reads number ", "does not publish"}},
    {"#define NO_BARRIER_BEFORE\n", TGL_KERNEL_FAULT, {"race: reads number ", "does not publish"}},
    {"#define NO_FENCE_AFTER\n",
     TGL_KERNEL_FAULT,
     {"race: reads number ", "and then a fence must precede this"}},
    {"#define NO_BARRIER_AFTER\n",
     TGL_KERNEL_FAULT,
     {"race: reads number ", "and then a fence must precede this"}},
    {"#define NO_ATOMIC\n", TGL_KERNEL_FAULT, {"race: ", "number 0 of the counters"}},
    {"#define NO_RESET\n", TGL_KERNEL_FAULT, {"passes_on leaves counter 0 at 6"}},
    {"#define READS_MORE\n",
     TGL_KERNEL_FAULT,
     {"reads number ", "which no launch of this run has written"}},
};

static void test_workspace(void **state)
{
    char *source = read_broken("passes_on");
    for (size_t i = 0; i < COUNT_OF(agreements); i++) {
        char text[8192], message[4096];
        snprintf(text, sizeof text, "%s%s", agreements[i].left_out, source);
        const lone_kernel kernel = {.name = "passes_on",
                                    .file = "broken/passes_on.cu",
                                    .symbol = "passes_on",
                                    .source = text,
                                    .block_m = 16,
                                    .block_n = 16,
                                    .threads = 256,
                                    .scratch_bytes = 8 * 256 * 4,
                                    .counter_bytes = 4};
        tgl_plan *plan;
        for (int again = 0; again < 2; again++) {
            const tgl_status status =
                run_kernels(*state, &kernel, 1, 1, 0, &plan, message, sizeof message);
            if (status != agreements[i].status)
                fail_msg("%s: %s %s", agreements[i].left_out, tgl_status_name(status), message);
            for (int j = 0; j < 2 && agreements[i].says[j] != NULL; j++)
                assert_contains(message, agreements[i].says[j]);
            tgl_plan_destroy(plan);
        }
    }
    free(source);
}

/* ---- Several launches ------------------------------------------------------------------------ */

/* in_steps.cu as the first and second launch of a list, with macros in front of each, and the order
 * of the second. */
static const struct {
    const char *first, *second;
    tgl_ordering order;
    tgl_status status;
    const char *says;
} sequences[] = {
    {"#define WRITES\n", "#define READS\n", TGL_AFTER_ALL, TGL_OK, NULL},
    {"#define WRITES\n", "#define READS\n#define WAITS\n", TGL_WAITS, TGL_OK, NULL},
    {"#define WRITES\n", "#define READS\n", TGL_WAITS, TGL_KERNEL_FAULT,
     "accesses global memory before it has waited"},
    {"#define WRITES\n", "", TGL_WAITS, TGL_KERNEL_FAULT, "ends without having waited"},
    {"#define WRITES\n", "#define READS\n#define WAITS_AT_END\n", TGL_BESIDE, TGL_KERNEL_FAULT,
     "which first writes; it may run beside this launch"},
    {"#define WRITES\n", "#define WAITS_AT_END\n", TGL_BESIDE, TGL_OK, NULL},
    {"#define WRITES\n#define READS\n", "#define WRITES\n#define WAITS_AT_END\n", TGL_BESIDE,
     TGL_KERNEL_FAULT, "which first writes; it may run beside this launch"},
    {"", "#define READS\n", TGL_AFTER_ALL, TGL_KERNEL_FAULT, "which no launch of this run has"},
};

static void test_sequences(void **state)
{
    char *source = read_broken("in_steps");
    for (size_t i = 0; i < COUNT_OF(sequences); i++) {
        char text[2][4096], message[4096];
        lone_kernel kernels[2];
        tgl_plan *plan;
        for (int j = 0; j < 2; j++) {
            snprintf(text[j], sizeof text[j], "%s%s",
                     j == 0 ? sequences[i].first : sequences[i].second, source);
            kernels[j] = (lone_kernel){.name = j == 0 ? "first" : "second",
                                       .file = "broken/in_steps.cu",
                                       .symbol = "in_steps",
                                       .source = text[j],
                                       .block_m = 64,
                                       .block_n = 64,
                                       .threads = 32,
                                       .scratch_bytes = 256,
                                       .counter_bytes = 4,
                                       .order = j == 0 ? TGL_AFTER_ALL : sequences[i].order};
        }
        const tgl_status status =
            run_kernels(*state, kernels, 2, 1, 0, &plan, message, sizeof message);
        if (status != sequences[i].status)
            fail_msg("sequence %zu: %s %s", i, tgl_status_name(status), message);
        if (sequences[i].says != NULL) assert_contains(message, sequences[i].says);
        tgl_plan_destroy(plan);
    }
    free(source);
}

/* ---- The order of warps ---------------------------------------------------------------------- */

/* Runs warp_turns.cu with a seed (NULL: none). turns[i] := the number of warps that ran before warp
 * i. */
static void take_turns(const char *seed, float turns[8])
{
    char *source = read_broken("warp_turns");
    const lone_kernel kernel = {.name = "warp_turns",
                                .file = "broken/warp_turns.cu",
                                .symbol = "warp_turns",
                                .source = source,
                                .block_m = 16,
                                .block_n = 16,
                                .threads = 256,
                                .counter_bytes = 4};
    const tgl_problem problem = problem_of(TGL_F32, 1, 8, 1);
    const float A[1] = {0}, B[8] = {0};
    tgl_device *dev;
    tgl_plan *plan;
    if (seed != NULL) setenv("TEGULA_SIM_SEED", seed, 1);
    assert_status(tgl_device_open("sim", NULL, &dev), TGL_OK);
    unsetenv("TEGULA_SIM_SEED");
    assert_status(plan_of_kernels(dev, &problem, &kernel, 1, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 1, A, B, 0, turns, NULL), TGL_OK);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    free(source);
}

static void test_order_of_warps(void **state)
{
    enum { SEEDS = 8, WARPS = 8 };
    float turns[WARPS], again[WARPS];
    unsigned last = 0;
    int different = 0;
    (void)state;
    take_turns(NULL, turns);
    for (int i = 0; i < WARPS; i++)
        assert_true(turns[i] == (float)i);
    for (int seed = 0; seed < SEEDS; seed++) {
        char text[8];
        unsigned seen = 0, order = 0;
        snprintf(text, sizeof text, "%d", seed);
        take_turns(text, turns);
        take_turns(text, again);
        assert_memory_equal(turns, again, sizeof turns);
        for (int i = 0; i < WARPS; i++) {
            seen |= 1u << (int)turns[i];
            order = 8 * order + (unsigned)turns[i];
        }
        assert_int_equal(seen, (1u << WARPS) - 1);
        different += order != last;
        last = order;
    }
    assert_int_equal(different, SEEDS);
}

/* The device computes right products after an error. */
static void test_device_survives(void **state)
{
    float A[4] = {1, 2, 3, 4}, B[4] = {1, 0, 0, 1}, C[4] = {9, 9, 9, 9};
    const tgl_problem problem = problem_of(TGL_F32, 2, 2, 2);
    assert_status(tgl_gemm(*state, &problem, 2, A, B, 1, C, NULL), TGL_OK);
    const float expected[4] = {11, 13, 15, 17};
    assert_memory_equal(C, expected, sizeof C);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_kernels),  cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_sequences),       cmocka_unit_test(test_order_of_warps),
        cmocka_unit_test(test_device_survives),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
