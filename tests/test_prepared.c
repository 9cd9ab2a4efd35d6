/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared operands, and products in chunks of columns, on the simulator: the same bits as without
 * them, in all layouts; what runs refuse; devices and plans that have no use for them.
 */
#include "support.h"

enum { M = 66, N = 136, K = 257, BATCH = 2 };

/* A problem whose matrices are larger than any case needs, with numbers of all kinds. */
typedef struct matrices {
    float *a, *b, *c, *d;
} matrices;

static float element(int i)
{
    const float x = (float)((i * 7919 + 13) % 2003 - 1001) / 1024;
    if (i % 4001 == 17) return x * 0x1p-40f; /* below the range of words */
    return i % 601 == 0 ? x * 0x1p20f : x;
}

static matrices make_matrices(void)
{
    matrices m = {malloc(BATCH * M * K * sizeof(float)), malloc(BATCH * K * N * sizeof(float)),
                  calloc(BATCH * M * N, sizeof(float)), calloc(BATCH * M * N, sizeof(float))};
    assert_true(m.a != NULL && m.b != NULL && m.c != NULL && m.d != NULL);
    for (int i = 0; i < BATCH * M * K; i++)
        m.a[i] = element(i);
    for (int i = 0; i < BATCH * K * N; i++)
        m.b[i] = element(i + 5);
    m.b[3] = NAN; /* FFMA computes some tiles */
    return m;
}

static void free_matrices(matrices *m)
{
    free(m->a);
    free(m->b);
    free(m->c);
    free(m->d);
}

static tgl_problem accurate_problem(int m, int n, int k)
{
    tgl_problem p = problem_of(TGL_F32, m, n, k);
    p.compute = TGL_COMPUTE_ACCURATE;
    return p;
}

static tgl_plan *plan_of(tgl_device *dev, const tgl_problem *problem, const char *kernel,
                         int64_t workspace_limit)
{
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = kernel, .workspace_limit = workspace_limit};
    tgl_plan *plan;
    char error[400];
    if (tgl_plan_create(dev, problem, &options, &plan) == TGL_OK) return plan;
    tgl_last_error(error, sizeof error);
    fail_msg("%s", error);
    return NULL;
}

static tgl_status run(const tgl_plan *plan, const matrices *m, float *C, const tgl_prepared *a,
                      const tgl_prepared *b)
{
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = 2,
                                   .beta = -1,
                                   .A = m->a,
                                   .B = m->b,
                                   .C = C,
                                   .prepared_a = a,
                                   .prepared_b = b};
    for (int i = 0; i < BATCH * M * N; i++)
        C[i] = (float)(i % 5);
    return tgl_plan_run_operands(plan, &operands, NULL);
}

static void assert_same(const matrices *m)
{
    assert_memory_equal(m->c, m->d, BATCH * M * N * sizeof(float));
}

static int64_t blocks_of(const tgl_plan *plan)
{
    tgl_counters counters = {.size = sizeof counters};
    assert_status(tgl_plan_counters(plan, &counters), TGL_OK);
    return counters.blocks;
}

/* ---- The same bits --------------------------------------------------------------------------- */

/* Fails unless results have the same bits with A, B or both prepared, several times. */
static void check_prepared(tgl_device *dev, const tgl_problem *problem, const char *kernel)
{
    matrices m = make_matrices();
    tgl_plan *plan = plan_of(dev, problem, kernel, 0);
    tgl_prepared *a, *b;
    assert_status(run(plan, &m, m.c, NULL, NULL), TGL_OK);
    const int64_t blocks = blocks_of(plan);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_A, m.a, NULL, &a), TGL_OK);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, m.b, NULL, &b), TGL_OK);
    assert_true(tgl_prepared_size(a) > 0 && tgl_prepared_size(b) > 0);
    assert_int_equal(blocks_of(plan), blocks); /* a preparation is no run */
    for (int way = 1; way <= 3; way++) {
        memset(m.d, 0xff, BATCH * M * N * sizeof(float));
        assert_status(run(plan, &m, m.d, way & 1 ? a : NULL, way & 2 ? b : NULL), TGL_OK);
        assert_same(&m);
        assert_true(blocks_of(plan) < blocks);
    }
    tgl_prepared_destroy(a);
    assert_status(run(plan, &m, m.d, NULL, b), TGL_OK);
    assert_same(&m);
    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
    free_matrices(&m);
}

static void results_are_the_same(void **state)
{
    static const struct {
        tgl_order order;
        tgl_transpose trans_a, trans_b;
    } ways[] = {{TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS},
                {TGL_ROW_MAJOR, TGL_TRANS, TGL_TRANS},
                {TGL_COL_MAJOR, TGL_NO_TRANS, TGL_TRANS}};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        tgl_problem problem = accurate_problem(M, N, K);
        problem.order = ways[i].order;
        problem.trans_a = ways[i].trans_a;
        problem.trans_b = ways[i].trans_b;
        check_prepared(*state, &problem, "accurate_128x64");
    }
}

static void results_of_batches_are_the_same(void **state)
{
    for (int shared = 0; shared < 2; shared++) {
        tgl_problem problem = accurate_problem(M, N, K);
        problem.batch = BATCH;
        problem.stride_a = M * K;
        problem.stride_b = shared ? 0 : K * N;
        problem.stride_c = M * N;
        check_prepared(*state, &problem, "accurate_128x64");
    }
}

/* Products with different numbers of rows, tiles and epilogues share one prepared B. */
static void many_plans(void **state)
{
    static const char *const kernels[] = {"accurate_128x64", "accurate_128x128", "accurate_128x96"};
    matrices m = make_matrices();
    const tgl_problem first = accurate_problem(M, N, K);
    tgl_plan *plan = plan_of(*state, &first, kernels[0], 0);
    tgl_prepared *b;
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, m.b, NULL, &b), TGL_OK);
    tgl_plan_destroy(plan); /* the prepared operand does not need it */
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        const tgl_problem problem = accurate_problem(M - 20 * (int)i, N, K);
        plan = plan_of(*state, &problem, kernels[i], 0);
        assert_status(run(plan, &m, m.c, NULL, NULL), TGL_OK);
        assert_status(run(plan, &m, m.d, NULL, b), TGL_OK);
        assert_same(&m);
        tgl_plan_destroy(plan);
    }
    tgl_prepared_destroy(b);
    free_matrices(&m);
}

/* ---- Plans and devices that have no use for it ----------------------------------------------- */

static void check_no_use(tgl_device *dev, const tgl_problem *problem, const char *kernel)
{
    matrices m = make_matrices();
    tgl_plan *plan = plan_of(dev, problem, kernel, 0);
    tgl_prepared *a, *b;
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_A, m.a, NULL, &a), TGL_OK);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, m.b, NULL, &b), TGL_OK);
    assert_int_equal(tgl_prepared_size(a) + tgl_prepared_size(b), 0);
    assert_status(run(plan, &m, m.c, NULL, NULL), TGL_OK);
    assert_status(run(plan, &m, m.d, a, b), TGL_OK);
    assert_same(&m);
    tgl_prepared_destroy(a);
    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
    free_matrices(&m);
}

static void plans_without_use_for_it(void **state)
{
    tgl_device *cpu = open_cpu(1);
    const tgl_problem accurate = accurate_problem(M, N, K), small = problem_of(TGL_F32, 8, 8, 8);
    check_no_use(cpu, &accurate, NULL);
    check_no_use(cpu, &small, NULL);
    tgl_device_close(cpu);
    const tgl_problem ieee = problem_of(TGL_F32, M, N, K);
    check_no_use(*state, &ieee, "simt_32x32x16");
    check_no_use(*state, &accurate, "accurate_128x64:chunks=2");
}

/* An operand that was prepared by a plan with a use for it, and is run by one without; and the
 * other way round. */
static void plans_of_both_kinds(void **state)
{
    matrices m = make_matrices();
    const tgl_problem problem = accurate_problem(M, N, K);
    tgl_plan *words = plan_of(*state, &problem, "accurate_128x64", 0);
    tgl_plan *ffma = plan_of(*state, &problem, "simt_32x32x16", 0);
    tgl_prepared *with, *without;
    assert_status(tgl_operand_prepare(words, TGL_SIDE_B, m.b, NULL, &with), TGL_OK);
    assert_status(tgl_operand_prepare(ffma, TGL_SIDE_B, m.b, NULL, &without), TGL_OK);
    assert_status(run(ffma, &m, m.c, NULL, NULL), TGL_OK);
    assert_status(run(ffma, &m, m.d, NULL, with), TGL_OK);
    assert_same(&m);
    assert_status(run(words, &m, m.c, NULL, NULL), TGL_OK);
    assert_status(run(words, &m, m.d, NULL, without), TGL_OK);
    assert_same(&m);
    tgl_prepared_destroy(with);
    tgl_prepared_destroy(without);
    tgl_plan_destroy(words);
    tgl_plan_destroy(ffma);
    free_matrices(&m);
}

/* ---- Wrong use ------------------------------------------------------------------------------- */

static void wrong_arguments(void **state)
{
    float x[4];
    const tgl_problem problem = accurate_problem(M, N, K);
    tgl_plan *plan = plan_of(*state, &problem, "accurate_128x64", 0);
    tgl_prepared *p = (tgl_prepared *)x;
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_A, x, NULL, NULL), TGL_BAD_ARGUMENT);
    assert_status(tgl_operand_prepare(NULL, TGL_SIDE_A, x, NULL, &p), TGL_BAD_ARGUMENT);
    assert_null(p);
    assert_status(tgl_operand_prepare(plan, (tgl_side)0, x, NULL, &p), TGL_BAD_ARGUMENT);
    assert_sentence("side is 0; it must be TGL_SIDE_A or TGL_SIDE_B");
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_A, NULL, NULL, &p), TGL_BAD_A);
    assert_sentence("A is NULL");
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, (char *)x + 1, NULL, &p), TGL_BAD_B);
    assert_sentence("B is not aligned to its element size");
    tgl_plan_destroy(plan);
    tgl_problem pointers = accurate_problem(M, N, K);
    pointers.batching = TGL_POINTERS;
    plan = plan_of(*state, &pointers, NULL, 0);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, x, NULL, &p), TGL_BAD_BATCHING);
    tgl_plan_destroy(plan);
    tgl_prepared_destroy(NULL);
    assert_int_equal(tgl_prepared_size(NULL), 0);
}

/* Fails unless a run with this prepared B is refused and changes nothing. */
static void assert_refused(const tgl_plan *plan, const matrices *m, const tgl_prepared *b)
{
    assert_status(run(plan, m, m->c, NULL, b), TGL_BAD_B);
    for (int i = 0; i < BATCH * M * N; i++)
        assert_true(m->c[i] == (float)(i % 5));
}

static void wrong_runs(void **state)
{
    matrices m = make_matrices();
    tgl_problem problem = accurate_problem(M, N, K);
    tgl_plan *plan = plan_of(*state, &problem, "accurate_128x64", 0);
    tgl_prepared *b;
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, m.b, NULL, &b), TGL_OK);
    assert_status(run(plan, &m, m.c, b, NULL), TGL_BAD_A); /* as the other operand */
    const matrices other = {m.a, m.b + 1, m.c, m.d};
    assert_refused(plan, &other, b);
    assert_sentence("B is not the matrix that was prepared");

    tgl_problem different[5]; /* from `problem`, each in one property */
    for (size_t i = 0; i < COUNT_OF(different); i++)
        different[i] = problem;
    different[0].n--;
    different[1].k--;
    different[2].ldb = N + 1;
    different[3].trans_b = TGL_TRANS;
    different[4].batch = BATCH;
    different[4].stride_a = M * K, different[4].stride_b = K, different[4].stride_c = M * N;
    for (size_t i = 0; i < COUNT_OF(different); i++) {
        tgl_plan *foreign = plan_of(*state, &different[i], "accurate_128x64", 0);
        assert_refused(foreign, &m, b);
        assert_sentence("the prepared B has other sizes or another layout than the plan's B");
        tgl_plan_destroy(foreign);
    }

    tgl_device *cpu = open_cpu(1), *second_cpu = open_cpu(1);
    tgl_plan *on_cpu = plan_of(cpu, &problem, NULL, 0);
    tgl_plan *on_second = plan_of(second_cpu, &problem, NULL, 0);
    tgl_prepared *of_cpu;
    assert_status(tgl_operand_prepare(on_cpu, TGL_SIDE_B, m.b, NULL, &of_cpu), TGL_OK);
    assert_refused(on_cpu, &m, b);
    assert_sentence("the prepared B is of another device than cpu");
    assert_refused(on_second, &m, of_cpu);
    assert_sentence("the prepared B is of another device than cpu");
    tgl_prepared_destroy(of_cpu);
    tgl_plan_destroy(on_cpu);
    tgl_plan_destroy(on_second);
    tgl_device_close(cpu);
    tgl_device_close(second_cpu);

    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
    free_matrices(&m);
}

/* ---- Chunks of columns ----------------------------------------------------------------------- */

/* Blocks run in a random order: the pre-passes of A and B must not share counters. */
static void chunks_give_the_same_bits(void **state)
{
    static const struct {
        const char *whole, *chunks;
    } ways[] = {{"accurate_128x64", "accurate_128x64:chunks=2"},
                {"accurate_128x64", "accurate_128x64:chunks=3"},
                {"accurate_128x128", "accurate_128x128:chunks=2"}};
    tgl_device *shuffled;
    setenv("TEGULA_SIM_SEED", "3", 1);
    assert_status(tgl_device_open("sim", NULL, &shuffled), TGL_OK);
    unsetenv("TEGULA_SIM_SEED");
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        matrices m = make_matrices();
        tgl_problem problem = accurate_problem(M, N, K);
        problem.trans_b = i % 2 ? TGL_TRANS : TGL_NO_TRANS;
        problem.batch = i == 1 ? BATCH : 1;
        problem.stride_a = M * K, problem.stride_b = K * N, problem.stride_c = M * N;
        tgl_plan *whole = plan_of(*state, &problem, ways[i].whole, 0);
        tgl_plan *chunks = plan_of(shuffled, &problem, ways[i].chunks, 0);
        assert_true(tgl_plan_workspace_size(chunks) < tgl_plan_workspace_size(whole) - 1000);
        assert_status(run(whole, &m, m.c, NULL, NULL), TGL_OK);
        assert_status(run(chunks, &m, m.d, NULL, NULL), TGL_OK);
        assert_same(&m);
        tgl_plan_destroy(whole);
        tgl_plan_destroy(chunks);
        free_matrices(&m);
    }
    tgl_device_close(shuffled);
}

/* With a lower limit on the workspace the planner takes the fewest chunks that fit, then other
 * kernels. */
static void a_limit_makes_chunks(void **state)
{
    static const struct {
        int percent; /* of one operand's bytes; 0: no limit */
        const char *choice;
    } ways[] = {{0, "\nchoice      accurate_192x128,"},
                {220, "\nchoice      accurate_192x128,"},
                {160, "\nchoice      accurate_192x128:chunks=2,"},
                {110, "\nchoice      accurate_128x160:chunks=16,"},
                {90, "\nchoice      simt_"}};
    enum { LARGE = 8192, TEXT = 20000 };
    const tgl_problem problem = accurate_problem(LARGE, LARGE, LARGE);
    const int64_t operand = (int64_t)LARGE * LARGE * 4;
    char *text = malloc(TEXT);
    assert_non_null(text);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        const tgl_plan_options options = {.size = sizeof options,
                                          .workspace_limit = ways[i].percent * operand / 100};
        size_t length;
        assert_status(tgl_chip_explain("h200", &problem, &options, text, TEXT, &length), TGL_OK);
        const char *choice = strstr(text, "\nchoice ");
        assert_non_null(choice);
        if (strncmp(choice, ways[i].choice, strlen(ways[i].choice)) != 0)
            fail_msg("%d %%: %.60s", ways[i].percent, choice);
    }
    free(text);
}

/* Refused: a kernel string with chunks that exceed the workspace, and chunks with an expression,
 * which knows the columns of D. */
static void wrong_chunks(void **state)
{
    const tgl_problem problem = accurate_problem(M, N, K);
    tgl_plan *plan;
    tgl_plan_options options = {
        .size = sizeof options, .kernel = "accurate_128x64:chunks=2", .workspace_limit = 1000};
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
    options.workspace_limit = 0;
    options.kernel = "accurate_128x64:chunks=0";
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
    options.kernel = "accurate_128x64:chunks=2";
    const tgl_epilogue epilogue = {.size = sizeof epilogue, .expression = "acc + col"};
    options.epilogue = &epilogue;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_the_same), cmocka_unit_test(results_of_batches_are_the_same),
        cmocka_unit_test(many_plans),           cmocka_unit_test(plans_without_use_for_it),
        cmocka_unit_test(plans_of_both_kinds),  cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(wrong_runs),           cmocka_unit_test(chunks_give_the_same_bits),
        cmocka_unit_test(a_limit_makes_chunks), cmocka_unit_test(wrong_chunks),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
