/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels for tensor cores on the simulator: right ones give the right result, and each of a list
 * of mistakes is reported with the places of both parties.
 */
#include "list_of_kernel.h"
#include "support.h"

enum { M = 64, N = 64, K = 160 };

/* A file of tests/broken_kernels, with a macro in front of it; what the sentence then says, and
 * texts of the source whose lines it names. Without a macro the kernel is right. */
typedef struct mistake {
    const char *file, *macro;
    const char *says; /* NULL: nothing, the result is right */
    const char *places[2];
} mistake;

#define LOAD        "tma_load_3d(shared->left"
#define EXPECT      "mbarrier_arrive_and_expect("
#define WAIT_EMPTY  "mbarrier_wait(&shared->empty"
#define WAIT_FULL   "mbarrier_wait(&shared->full"
#define MULTIPLY    "wgmma(acc, left +"
#define WRITE_LEFT  "fragments[i / 4][i % 4] ="
#define BY_LEFT     "wgmma(acc, fragments"
#define AGAIN       "wgmma(acc, make_wgmma_tile"
#define WRITE_C     "shared->c[r * HALF"
#define STORE       "tma_store_3d(to"
#define INIT        "mbarrier_init(&shared.full"
#define LOAD_HALF   "tma_load_3d_multicast(half"
#define LOAD_B      "tma_load_3d(shared->b"
#define READ_A      "sums[j] +="
#define WRITE_A     "As[half][i] ="
#define LOAD_MATRIX "ldmatrix_x4(a"
#define MMA         "mma_tf32(acc"
#define BARRIER     "named_barrier(half"

static const mistake mistakes[] = {
    {"tensor_ring", "", NULL, {NULL}},
    {"tensor_ring", "NO_FULL_WAIT", "reads shared + 0 bytes before the TMA copy", {MULTIPLY, LOAD}},
    {"tensor_ring",
     "NO_EMPTY_WAIT",
     "arrives at the mbarrier at shared + 28672 bytes in a phase that has all its arrivals",
     {EXPECT}},
    {"tensor_ring",
     "NO_EMPTY_ARRIVAL",
     "deadlock: waits for a phase of the mbarrier at shared + ",
     {WAIT_EMPTY, WAIT_FULL}},
    {"tensor_ring", "TOO_FEW_ARRIVALS", "where 1 of 2 arrivals never come", {WAIT_EMPTY}},
    {"tensor_ring",
     "ARRIVES_EARLY",
     "race: writes shared + 0 bytes, which the wgmma issued at ",
     {LOAD, MULTIPLY}},
    {"tensor_ring", "SHORT_EXPECT", "16 bytes were copied and not announced", {WAIT_FULL}},
    {"tensor_ring", "NO_WGMMA_FENCE", "and no wgmma_fence() since it was last touched", {MULTIPLY}},
    {"tensor_ring", "NO_COMMIT", "which the wgmma issued at ", {LOAD, MULTIPLY}},
    {"tensor_ring", "NO_COMMIT_AT_END", "which no wgmma_commit() follows", {MULTIPLY, WRITE_C}},
    {"tensor_ring", "NO_WAIT_AT_END", "which has not been waited for", {MULTIPLY, WRITE_C}},
    {"tensor_ring",
     "NO_WGMMA_WAIT",
     "race: writes shared + 0 bytes, which the wgmma issued at ",
     {LOAD, MULTIPLY}},
    {"tensor_ring", "TOUCHES", "and no wgmma_fence() since it was last touched", {AGAIN}},
    {"tensor_ring", "NO_PROXY_FENCE", "with no fence_proxy_async() between", {STORE, WRITE_C}},
    {"tensor_ring", "NO_BARRIER", "which the TMA store issued at ", {WRITE_C, STORE}},
    {"tensor_ring", "NO_STORE_WAIT", "which the TMA store issued at ", {WRITE_C, STORE}},
    {"tensor_ring",
     "NO_LAST_STORE_WAIT",
     "has left the kernel, while this TMA store may still read",
     {STORE}},
    {"tensor_ring", "SHORTER 2", "which are not a multiple of 16 bytes long", {STORE}},
    {"tensor_ring",
     "UNALIGNED_TILE",
     "begins 128 bytes into a swizzle's pattern of 1024",
     {MULTIPLY}},

    {"tensor_ring", "IN_REGISTERS", NULL, {NULL}},
    {"tensor_ring",
     "IN_REGISTERS\n#define LOADS_EARLY",
     "writes a left fragment of the wgmma at ",
     {WRITE_LEFT, BY_LEFT}},
    {"tensor_ring",
     "IN_REGISTERS\n#define FENCES_EARLY",
     "and no wgmma_fence() since they were last written",
     {BY_LEFT}},

    {"cluster_ring", "", NULL, {NULL}},
    {"cluster_ring",
     "NO_SYNC_AT_BEGIN",
     "of another block of the cluster, which is not initialised",
     {LOAD_HALF}},
    {"cluster_ring", "NO_SYNC_AT_END", "of a block of the cluster that has ended", {NULL}},
    {"cluster_ring", "RELEASES_OWN", "where 128 of 256 arrivals never come", {WAIT_EMPTY}},
    {"cluster_ring",
     "RELEASES_OWN\n#define ARRIVALS 128",
     "writes shared + 4096 bytes before the TMA copy that thread 128 issued at ",
     {LOAD_HALF}},
    {"cluster_ring", "ARRIVALS 255", "race: writes shared + ", {LOAD_B, READ_A}},
    {"cluster_ring", "MASK 2", "bytes were announced and are never copied", {WAIT_FULL}},
    {"cluster_ring", "MASK 5", "TMA copy to the blocks 0x5 of a cluster of 2", {LOAD_HALF}},

    {"warp_words", "", NULL, {NULL}},
    {"warp_words", "NO_BARRIER", "race: writes As + ", {WRITE_A, LOAD_MATRIX}},
    {"warp_words", "WAITERS 224", "which is for 224 threads: 256 have come", {BARRIER}},
    {"warp_words", "WAITERS 288", "deadlock: waits at barrier number 1 for 288 threads", {BARRIER}},
    {"warp_words", "WAITERS 250", "waits at a barrier of 250 threads", {BARRIER}},
    {"warp_words", "NUMBER 15", "waits at barrier number 16: there are 1 to 15", {BARRIER}},
    {"warp_words",
     "LANES 31",
     "waits for lanes of its warp (mask 0xffffffff) that never come",
     {MMA}},
    {"warp_words", "OFFSET 1", "at an address that is not a multiple of 16", {LOAD_MATRIX}},
    {"warp_words", "REGISTERS 128", NULL, {NULL}},
    {"warp_words", "REGISTERS 136", "setmaxnreg leaves the block with 69632 registers", {NULL}},
    {"warp_words", "REGISTERS 100", "setmaxnreg of 100", {NULL}},
};

static float element(int i)
{
    return (float)(i * 7 % 33 - 16);
}

static void assert_product(const float *A, const float *B, const float *C)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0; /* exact: small integers */
            for (int p = 0; p < K; p++)
                sum += A[i * K + p] * B[j * K + p];
            if (C[i * N + j] != sum)
                fail_msg("C[%d][%d] is %g, not %g", i, j, (double)C[i * N + j], (double)sum);
        }
}

static void assert_place(const char *message, const mistake *x, const char *source,
                         const char *text)
{
    char place[128];
    int line = 1;
    const char *at = strstr(source, text);
    if (at == NULL) {
        fail_msg("%s: no \"%s\"", x->file, text);
        abort(); /* for analysers, which do not know that fail_msg() does not return */
    }
    for (const char *c = source; c < at; c++)
        line += *c == '\n';
    snprintf(place, sizeof place, "broken/%s.cu:%d", x->file, line);
    if (strstr(message, place) == NULL) fail_msg("%s: no \"%s\" in: %s", x->macro, place, message);
}

static void run_mistake(tgl_device *dev, const mistake *x)
{
    char file[64], *text, *source = read_text(BROKEN_KERNELS, x->file), message[4096] = "";
    float *A, *B, *C;
    tgl_plan *plan;
    tgl_problem problem = problem_of(TGL_F32, M, N, K);
    problem.trans_b = TGL_TRANS;
    problem.ldb = K;
    if (source == NULL) fail_msg("no %s.cu", x->file);
    /* The line of a macro in front is not one of the file's. */
    assert_true(asprintf(&text, "%s%s\n#line 1 \"broken/%s.cu\"\n%s",
                         x->macro[0] != '\0' ? "#define " : "", x->macro, x->file, source) > 0);
    snprintf(file, sizeof file, "broken/%s.cu", x->file);
    const lone_kernel kernel = {.name = x->file,
                                .file = file,
                                .symbol = x->file,
                                .source = text,
                                .block_m = 64,
                                .block_n = 32,
                                .threads = strcmp(x->file, "warp_words") == 0 ? 512 : 160,
                                .cluster = strcmp(x->file, "cluster_ring") == 0 ? 2 : 1};
    assert_status(tgl_alloc(dev, M * K * sizeof *A, (void **)&A), TGL_OK);
    assert_status(tgl_alloc(dev, N * K * sizeof *B, (void **)&B), TGL_OK);
    assert_status(tgl_alloc(dev, M * N * sizeof *C, (void **)&C), TGL_OK);
    for (int i = 0; i < M * K; i++)
        A[i] = element(i);
    for (int i = 0; i < N * K; i++)
        B[i] = element(i + 5);
    tgl_status status = plan_of_kernel(dev, &problem, &kernel, &plan);
    if (status == TGL_OK) status = tgl_plan_run(plan, 1, A, B, 0, C, NULL);
    if (status != TGL_OK) tgl_last_error(message, sizeof message);
    if (status != (x->says != NULL ? TGL_KERNEL_FAULT : TGL_OK))
        fail_msg("%s %s: %s %s", x->file, x->macro, tgl_status_name(status), message);
    if (x->says == NULL) assert_product(A, B, C);
    if (x->says != NULL && strstr(message, x->says) == NULL)
        fail_msg("%s: no \"%s\" in: %s", x->macro, x->says, message);
    for (int i = 0; i < 2 && x->places[i] != NULL; i++)
        assert_place(message, x, source, x->places[i]);
    if (getenv("TEGULA_TEST_VERBOSE") != NULL) print_message("%s: %s\n", x->macro, message);
    tgl_plan_destroy(plan);
    tgl_free(dev, A);
    tgl_free(dev, B);
    tgl_free(dev, C);
    free(text);
    free(source);
}

static void test_mistakes(void **state)
{
    for (size_t i = 0; i < COUNT_OF(mistakes); i++)
        run_mistake(*state, &mistakes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
