/* SPDX-License-Identifier: Apache-2.0
 *
 * The family dmma on the simulator: every configuration in all layouts, K from nothing to several
 * times the ring of stages, split-K, several units of work for a block, batches, alignments,
 * epilogues, bank conflicts, and what the family refuses. An argument "i/n" takes the i-th of n
 * parts.
 */
#include "plan/family.h"
#include "support.h"

enum { STRING = 80 };

static void run(tgl_device *dev, const gemm_case *c)
{
    gemm_outcome outcome;
    gemm_case_run(dev, c, false, &outcome);
    if (outcome.fault[0] != '\0') fail_msg("%s", outcome.fault);
    if (outcome.status != TGL_OK) {
        char text[600], sentence[400];
        gemm_case_describe(c, text, sizeof text);
        tgl_last_error(sentence, sizeof sentence);
        fail_msg("%s: %s", text, sentence);
    }
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static int64_t even(int64_t x)
{
    return (x + 1) / 2 * 2;
}

/* A row-major problem with strides that TMA supports. layout: bit 0: A is transposed, bit 1: B. */
static tgl_problem problem_in(int64_t m, int64_t n, int64_t k, int layout)
{
    tgl_problem p = problem_of(TGL_F64, m, n, k);
    p.trans_a = layout & 1 ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = layout & 2 ? TGL_TRANS : TGL_NO_TRANS;
    p.lda = even(layout & 1 ? m : k);
    p.ldb = even(layout & 2 ? k : n);
    p.ldc = even(n);
    p.stride_a = p.lda * (layout & 1 ? k : m);
    p.stride_b = p.ldb * (layout & 2 ? n : k);
    p.stride_c = p.ldc * m;
    return p;
}

static gemm_case basic(const char *kernel, int64_t m, int64_t n, int64_t k, int layout)
{
    return (gemm_case){.problem = problem_in(m, n, k, layout),
                       .alpha = 1,
                       .kernel = kernel,
                       .fill = UNIFORM_11,
                       .at_end = layout % 2 != 0,
                       .seed = (uint64_t)(m + 3 * n + 7 * k)};
}

/* Gets the name and the tile of a configuration of the family. Returns false past the last one. */
static bool configuration_at(int number, char *name, int *bm, int *bn)
{
    tgl_choice choice;
    for (int i = 0; tgl_configuration_at(i, &choice); i++)
        if (strcmp(choice.family->name, "dmma") == 0 && number-- == 0) {
            snprintf(name, STRING, "%s", tgl_choice_name(&choice));
            assert_int_equal(sscanf(name, "dmma_%dx%d", bm, bn), 2);
            return true;
        }
    return false;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Sizes a little above or below those of a tile. K is 40, or beyond twice the stages of the ring.
 */
static void every_configuration_in_every_layout(void **state)
{
    char name[STRING];
    int bm, bn;
    for (int i = 0; configuration_at(i, name, &bm, &bn); i++)
        for (int layout = 0; layout < 4; layout++) {
            if (!sweep_has(i * 4 + layout)) continue;
            const bool is_more = (i + layout) % 2 != 0;
            gemm_case c = basic(name, is_more ? bm + 5 : bm - 3, is_more ? bn - 9 : bn + 7,
                                is_more ? 16 * 13 + 3 : 40, layout);
            c.beta = layout == 2 ? -2 : 0;
            if (layout == 3) c.fill = NON_FINITE;
            run(*state, &c);
        }
}

/* The sums are fused multiply-adds in the order of K. */
static void sums_are_in_the_order_of_k(void **state)
{
    enum { M = 40, N = 34, K = 70 };
    static double A[M * K], B[K * N], C[M * N];
    uint64_t seed = 5;
    for (int i = 0; i < M * K; i++)
        A[i] = random_normal(&seed);
    for (int i = 0; i < K * N; i++)
        B[i] = random_normal(&seed);
    for (int layout = 0; layout < 4; layout++) {
        if (!sweep_has(layout)) continue;
        const tgl_problem p = problem_in(M, N, K, layout);
        const tgl_plan_options options = {.size = sizeof options, .kernel = "dmma_64x32:splits=1"};
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
        assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int q = 0; q < K; q++)
                    sum = fma(A[layout & 1 ? q * M + i : i * K + q],
                              B[layout & 2 ? j * K + q : q * N + j], sum);
                if (C[i * N + j] != sum)
                    fail_msg("layout %d: C[%d][%d] is %a, not %a", layout, i, j, C[i * N + j], sum);
            }
        tgl_plan_destroy(plan);
    }
}

/* Tests a K of 0 to several times the stages of the ring, with and without split-K. */
static void every_k(void **state)
{
    static const int ks[] = {0, 1, 7, 8, 15, 16, 17, 64, 100, 16 * 13 + 1, 16 * 50 + 1};
    static const char *const tiles[] = {"32x64", "32x32_s2", "32x32_s4"};
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(ks); i++)
        for (int splits = 1; splits <= 3; splits++) {
            char kernel[STRING];
            if (!sweep_has(number++)) continue;
            snprintf(kernel, sizeof kernel, "dmma_%s:splits=%d", tiles[i % COUNT_OF(tiles)],
                     splits);
            gemm_case c = basic(kernel, 50, 40, ks[i], number % 4);
            c.beta = splits - 1;
            run(*state, &c);
        }
}

/* Tests split-K of all tiles, of all but the first few, or of none, also in batches. */
static void splits(void **state)
{
    static const char *const kernels[] = {
        "dmma_64x32:splits=3,whole=5",    "dmma_128x128:splits=2",
        "dmma_32x32:splits=2,whole=1000", "dmma_64x64:splits=7",
        "dmma_128x64:splits=4,whole=1",   "dmma_32x32_s4:splits=9",
        "dmma_32x32_s2:splits=6,whole=3"};
    for (int i = 0; i < 14; i++) {
        if (!sweep_has(i)) continue;
        gemm_case c = basic(kernels[i % 7], 130, 70, 264, i % 4);
        if (i >= 7) c.problem.batch = 3;
        c.alpha = 0.5;
        c.gives_workspace = i % 2 != 0;
        run(*state, &c);
    }
}

/* With more units of work than resident blocks, the ring goes on from one unit to the next. K is no
 * multiple of the ring, and some units have no K. */
static void several_units_a_block(void **state)
{
    static const struct {
        const char *kernel;
        int batch, k;
    } cases[] = {{"dmma_32x32", 1100, 36},
                 {"dmma_32x32_s2", 1300, 76},
                 {"dmma_32x32_s4", 400, 16 * 12 + 1},
                 {"dmma_128x128", 280, 120},
                 {"dmma_64x64:splits=2", 280, 72},
                 {"dmma_64x32:splits=3,whole=300", 600, 60}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!sweep_has((int)i)) continue;
        gemm_case c = basic(cases[i].kernel, 12, 10, cases[i].k, (int)i % 4);
        c.problem.batch = cases[i].batch;
        run(*state, &c);
    }
}

/* Many rows of tiles. On a chip of 132 SMs 11 rows are a band, and the last band may have fewer. */
static void bands(void **state)
{
    static const int rows[] = {32 * 12 + 1, 32 * 22, 32 * 25 + 1};
    for (int i = 0; i < 3; i++) {
        if (!sweep_has(i)) continue;
        const gemm_case c = basic("dmma_32x32", rows[i], 32 * 3, 24, i);
        run(*state, &c);
    }
}

/* Batches with matrices at multiples of 8 bytes, shared matrices, and rows of C of every alignment.
 */
static void batches_and_alignments(void **state)
{
    for (int i = 0; i < 16; i++) {
        if (!sweep_has(i)) continue;
        gemm_case c = basic(i % 2 != 0 ? "dmma_32x64" : "dmma_64x64:splits=2", 41, 37 + i % 3,
                            50 + i % 4, i / 2 % 4);
        c.problem.batch = 3;
        c.problem.stride_a = i % 5 == 1 ? 0 : even(c.problem.stride_a) + 2;
        c.problem.stride_b = i % 5 == 2 ? 0 : even(c.problem.stride_b);
        c.problem.ldc += i % 3;
        c.problem.stride_c = c.problem.ldc * c.problem.m + i % 2;
        c.beta = i % 4 == 0;
        c.at_end = i / 2 % 2 != 0;
        run(*state, &c);
    }
}

/* With the option `exchanged` tiles are those of the transposed D. Tested in all layouts, with
 * edges, batches with separate and shared matrices, split-K, C, bias by row and by column, and
 * residual. */
static void exchanged_operands(void **state)
{
    static const char *const kernels[] = {"dmma_16x64:exchanged=1",
                                          "dmma_16x128:exchanged=1,splits=3",
                                          "dmma_64x32:exchanged=1,splits=2,whole=2"};
    for (int i = 0; i < 24; i++) {
        if (!sweep_has(i)) continue;
        gemm_case c = basic(kernels[i % 3], 131 + i % 2, 9 + i, i == 5 ? 0 : 70 + i, i / 3 % 4);
        c.problem.batch = 1 + i / 12 * 2;
        c.problem.stride_a = i % 5 == 1 ? 0 : c.problem.stride_a;
        c.problem.stride_b = i % 5 == 2 ? 0 : c.problem.stride_b;
        c.alpha = 0.5;
        c.beta = i % 4 == 1 ? -2 : 0;
        if (i % 2 == 0)
            c.epilogue = (tgl_epilogue){
                .size = sizeof c.epilogue, .bias = (tgl_bias)(i / 2 % 3), .residual = i / 6 % 2};
        run(*state, &c);
    }
}

/* Tests bias, activation and residual, a D that is another matrix, scalars in device memory, and
 * products whose k or alpha is 0. */
static void epilogues(void **state)
{
    static const char *const kernels[] = {"dmma_64x32", "dmma_64x64:splits=2", "dmma_128x64"};
    for (int i = 0; i < 24; i++) {
        if (!sweep_has(i)) continue;
        gemm_case c = basic(kernels[i % 3], 72, 41 + i % 2, i % 8 == 7 ? 0 : 60, i / 2 % 4);
        c.alpha = i % 7 == 6 ? 0 : 2;
        c.beta = i % 5 == 4 ? 0 : -1;
        c.problem.ldc += i % 4;
        c.problem.stride_c = c.problem.ldc * c.problem.m;
        if (i % 3 == 1) {
            c.problem.type_d = TGL_F64;
            c.problem.ldd = c.problem.n + i % 5;
            c.problem.stride_d = c.problem.ldd * c.problem.m;
        }
        if (i % 4 == 2) c.problem.scalars = TGL_SCALARS_DEVICE;
        if (i % 2 == 0)
            c.epilogue = (tgl_epilogue){.size = sizeof c.epilogue,
                                        .bias = (tgl_bias)(i / 2 % 3),
                                        .activation = (tgl_activation)(i / 4 % 4),
                                        .residual = i / 6 % 2};
        run(*state, &c);
    }
}

/* Column-major products exchange A and B. */
static void column_major(void **state)
{
    for (int i = 0; i < 4; i++) {
        if (!sweep_has(i)) continue;
        gemm_case c = basic("dmma_64x64", 70, 50, 40, i);
        c.problem.order = TGL_COL_MAJOR;
        c.problem.lda = even(i & 1 ? 40 : 70);
        c.problem.ldb = even(i & 2 ? 50 : 40);
        c.problem.ldc = 70;
        run(*state, &c);
    }
}

/* ---- Bank conflicts -------------------------------------------------------------------------- */

static void no_bank_conflicts(void **state)
{
    static double A[128 * 64], B[128 * 64], C[128 * 128];
    char name[STRING];
    int bm, bn;
    for (int i = 0; configuration_at(i, name, &bm, &bn); i++)
        for (int layout = 0; layout < 4; layout++) {
            if (!sweep_has(i * 4 + layout)) continue;
            const tgl_problem p = problem_in(bm, bn, 64, layout);
            const tgl_plan_options options = {.size = sizeof options, .kernel = name};
            tgl_counters counters = {.size = sizeof counters};
            tgl_plan *plan;
            assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
            assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
            assert_status(tgl_plan_counters(plan, &counters), TGL_OK);
            assert_true(counters.shared_load_wavefronts > 0);
            assert_int_equal(counters.shared_load_conflicts, 0);
            assert_int_equal(counters.shared_store_conflicts, 0);
            tgl_plan_destroy(plan);
        }
}

/* ---- Repeats --------------------------------------------------------------------------------- */

/* With split-K every run gives the same bits. */
static void splits_repeat(void **state)
{
    enum { M = 40, N = 24, K = 1000 };
    static double A[M * K], B[K * N], C[2][M * N];
    uint64_t seed = 1;
    if (!sweep_has(0)) return;
    for (int i = 0; i < M * K; i++)
        A[i] = random_normal(&seed);
    for (int i = 0; i < K * N; i++)
        B[i] = random_normal(&seed);
    const tgl_problem p = problem_in(M, N, K, 0);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "dmma_32x32:splits=7"};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
    for (int i = 0; i < 2; i++)
        assert_status(tgl_plan_run(plan, 1, A, B, 0, C[i], NULL), TGL_OK);
    tgl_plan_destroy(plan);
    assert_memory_equal(C[0], C[1], sizeof C[0]);
}

/* ---- What the family refuses ----------------------------------------------------------------- */

static void refused(tgl_device *dev, const tgl_problem *problem, const char *why)
{
    const tgl_plan_options options = {.size = sizeof options, .kernel = "dmma_64x64"};
    tgl_plan *plan = NULL;
    char sentence[400];
    assert_status(tgl_plan_create(dev, problem, &options, &plan), TGL_UNSUPPORTED);
    tgl_last_error(sentence, sizeof sentence);
    if (strstr(sentence, why) == NULL) fail_msg("\"%s\" does not say \"%s\"", sentence, why);
}

static void refusals(void **state)
{
    tgl_problem p = problem_of(TGL_F32, 64, 64, 64);
    refused(*state, &p, "it multiplies f64");
    p = problem_in(64, 64, 63, 0);
    p.lda = 63;
    refused(*state, &p, "strides that are multiples of 16 bytes");
    p = problem_in(64, 64, 64, 0);
    p.ldb = 65;
    refused(*state, &p, "strides that are multiples of 16 bytes");
    p = problem_in(64, 64, 64, 0);
    p.batch = 2;
    p.stride_a = 64 * 64 + 1;
    refused(*state, &p, "strides that are multiples of 16 bytes");
    p = problem_in(64, 64, 64, 0);
    p.batching = TGL_POINTERS;
    p.batch = 2;
    p.stride_a = p.stride_b = p.stride_c = 0;
    refused(*state, &p, "no batches of pointers");
    p = problem_in(2, 64, 64, 0);
    p.lda = (int64_t)1 << 37;
    refused(*state, &p, "strides below 2^40 bytes");
}

/* Why the family refuses an example on a chip with these features and this rate of F64 on tensor
 * cores; NULL: it does not refuse. */
static const char *reason_on(int capability, unsigned features, int rate)
{
    const tgl_chip chip = {
        .capability = capability, .features = features, .tensor_f64_flops = rate};
    tgl_choice choice = {0};
    tgl_shape shape;
    if (!tgl_configuration_find("dmma_64x64", strlen("dmma_64x64"), &choice) ||
        !choice.family->example(choice.configuration, TGL_F64, false, false, &shape))
        return "there is no example";
    return choice.family->unsupported_reason(&shape, &chip);
}

static void reason(int capability, unsigned features, int rate, const char *why)
{
    const char *found = reason_on(capability, features, rate);
    if (found == NULL || strstr(found, why) == NULL)
        fail_msg("sm_%d: \"%s\" does not say \"%s\"", capability, found ? found : "", why);
}

static void chips(void **state)
{
    (void)state;
    assert_null(reason_on(90, TGL_HAS_TMA | TGL_HAS_WGMMA, 256));
    assert_null(reason_on(100, TGL_HAS_TMA, 128));
    reason(80, 0, 128, "no TMA");
    reason(90, TGL_HAS_WGMMA, 256, "no TMA");
    reason(90, TGL_HAS_TMA, 256, "no setmaxnreg");
    reason(120, TGL_HAS_TMA, 0, "do not multiply f64");
}

int main(int argc, char **argv)
{
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_configuration_in_every_layout),
        cmocka_unit_test(sums_are_in_the_order_of_k),
        cmocka_unit_test(every_k),
        cmocka_unit_test(splits),
        cmocka_unit_test(several_units_a_block),
        cmocka_unit_test(bands),
        cmocka_unit_test(batches_and_alignments),
        cmocka_unit_test(exchanged_operands),
        cmocka_unit_test(epilogues),
        cmocka_unit_test(column_major),
        cmocka_unit_test(no_bank_conflicts),
        cmocka_unit_test(splits_repeat),
        cmocka_unit_test(refusals),
        cmocka_unit_test(chips),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
