/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of tests/broken_kernels, each of which the simulator must catch: with the sentence
 * that tells what is wrong, naming every line that the file marks with "<-".
 */
#include "support.h"

#include "plan/registry.h"
#include "sim/state.h"

enum { M = 40, N = 24, K = 36, LDC = 30, ROOM = 64 * 64 };

/* The file's name, the status, what the sentence says besides the lines; and of the case, if the
 * shape must differ from all others for the fault to be. */
static const struct broken {
    const char *name;
    tgl_status status;
    const char *says[3];
    double alpha, beta;
    int cluster; /* blocks; 0 is as good as 1 */
} broken[] = {
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
    {"reads_without_product", TGL_KERNEL_FAULT, {"column 0 of A", "but alpha is 0"}, 0, 0, 0},
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
    {"unwritten_shared", TGL_KERNEL_FAULT, {"reads As + ", "which nobody has written"}, 1, 0, 0},
    {"shared_overrun",
     TGL_KERNEL_FAULT,
     {"writes 4 bytes", "at 0 bytes past the end of As, which has 960 bytes"},
     1,
     0,
     0},
    {"misaligned",
     TGL_KERNEL_FAULT,
     {"reads 16 bytes at once at an address that is no multiple of "
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
     {"reads s + 0 bytes of another block of the cluster, which nobody has written"},
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
    {"does_not_compile", TGL_COMPILE, {"broken/does_not_compile.cu:", "error"}, 1, 0, 0},
    {"bank_conflict", TGL_OK, {NULL}, 1, -0.5, 0},
};

static char *read_source(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.cu", BROKEN_KERNELS, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void assert_contains(const char *message, const char *part)
{
    if (strstr(message, part) == NULL) fail_msg("\"%s\" is not in: %s", part, message);
}

/* Each marked line is named, as FILE:LINE. */
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

static tgl_problem problem_of(void)
{
    tgl_problem problem = tgl_problem_make(TGL_F32, M, N, K);
    problem.lda = K + 1;
    problem.ldc = LDC;
    return problem;
}

/* Makes the plan, runs it, and leaves the detail of a failure in `message`. */
static tgl_status run_broken(tgl_device *dev, const struct broken *b, const tgl_kernel *kernel,
                             const char *source, tgl_plan **plan, char *message, size_t size)
{
    const tgl_problem problem = problem_of();
    void *memory;
    assert_status(tgl_alloc(dev, 3 * ROOM * sizeof(float), &memory), TGL_OK);
    float *A = memory, *B = A + ROOM, *C = B + ROOM;
    for (int i = 0; i < 3 * ROOM; i++)
        A[i] = (float)(i % 17) - 8;
    *plan = NULL;
    tgl_status status = tgl_sim_plan_create(dev, &problem, kernel, source, b->cluster, plan);
    if (status == TGL_OK) status = tgl_plan_run(*plan, b->alpha, A, B, b->beta, C, NULL);
    tgl_last_error(dev, message, size);
    tgl_free(dev, memory);
    return status;
}

/* Of the 64 shared loads that the 32 steps of a tile take, the 32 of As meet in one bank. */
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

/* Kernels and their files' names must outlive the device. */
static void test_broken_kernels(void **state)
{
    static tgl_kernel kernels[COUNT_OF(broken)];
    static char files[COUNT_OF(broken)][64];
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        const struct broken *b = &broken[i];
        const bool is_slow = b->status == TGL_OK;
        char *source = read_source(b->name), message[4096];
        tgl_plan *plan;
        snprintf(files[i], sizeof files[i], "broken/%s.cu", b->name);
        kernels[i] = (tgl_kernel){.name = b->name,
                                  .file = files[i],
                                  .symbol = "broken",
                                  .defines = "",
                                  .block_m = is_slow ? 32 : 16,
                                  .block_n = is_slow ? 8 : 16,
                                  .threads = 256};
        const tgl_status status =
            run_broken(*state, b, &kernels[i], source, &plan, message, sizeof message);
        if (status != b->status)
            fail_msg("%s: %s, not %s: %s", b->name, tgl_status_name(status),
                     tgl_status_name(b->status), message);
        check_message(b, files[i], source, message);
        if (is_slow) assert_conflicts(plan);
        tgl_plan_destroy(plan);
        free(source);
    }
}

/* A fault leaves the device as good as before. */
static void test_device_survives(void **state)
{
    float A[4] = {1, 2, 3, 4}, B[4] = {1, 0, 0, 1}, C[4] = {9, 9, 9, 9};
    const tgl_problem problem = tgl_problem_make(TGL_F32, 2, 2, 2);
    assert_status(tgl_gemm(*state, &problem, 2, A, B, 1, C, NULL), TGL_OK);
    const float expected[4] = {11, 13, 15, 17};
    assert_memory_equal(C, expected, sizeof C);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_kernels),
        cmocka_unit_test(test_device_survives),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
