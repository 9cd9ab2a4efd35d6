/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of complex types on the simulator: random ones by the planner's choice, transposes
 * and conjugates by a kernel of each family, prepared operands, and limits of workspace. The
 * pre-passes and their launch lists: src/plan/complex.c.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static const tgl_type types[] = {TGL_C64, TGL_C128};

static double random_scalar(uint64_t *seed)
{
    static const double scalars[] = {1, 0, 0, -0.5, 1.25, (double)NAN};
    return scalars[random_int(seed, 0, random_int(seed, 0, 9) == 0 ? 5 : 4)];
}

static void random_products(void **state)
{
    uint64_t seed = 51;
    for (int i = 0; i < 40; i++) {
        const tgl_type type = types[i % 2];
        gemm_case c = {.problem = random_problem(&seed, type, i % 8 == 0 ? 60 : 24),
                       .alpha = random_scalar(&seed),
                       .beta = random_scalar(&seed),
                       .alpha_imag = random_scalar(&seed),
                       .beta_imag = random_scalar(&seed),
                       .pointers = random_int(&seed, 0, 3) == 0,
                       .fill = random_kind(&seed, type),
                       .at_end = random_int(&seed, 0, 1) == 1,
                       .seed = random_bits(&seed)};
        vary_case(&seed, &c);
        if (i % 3 == 0)
            c.epilogue =
                (tgl_epilogue){.size = sizeof c.epilogue,
                               .bias = (tgl_bias)random_int(&seed, TGL_BIAS_NONE, TGL_BIAS_COLUMN),
                               .residual = (int)random_int(&seed, 0, 1)};
        assert_true(check_case(*state, &c));
    }
}

/* Columns: type; arithmetic; kernel; sizes. */
static const struct {
    tgl_type type;
    tgl_compute compute;
    const char *kernel;
    int64_t m, n, k;
} families[] = {
    {TGL_C64, TGL_COMPUTE_IEEE, "simt_32x32x32", 37, 21, 35},
    {TGL_C64, TGL_COMPUTE_IEEE, "simt_32x32x32:splits=2", 36, 22, 64},
    {TGL_C64, TGL_COMPUTE_IEEE, "simt_16x128x32:splits=3", 41, 83, 139},
    {TGL_C64, TGL_COMPUTE_IEEE, "simt_128x128x16", 130, 69, 21},
    {TGL_C64, TGL_COMPUTE_IEEE, "simt_96x128x8_s2", 100, 40, 27},
    {TGL_C64, TGL_COMPUTE_IEEE, "simt_32x64x8_s8:splits=2", 33, 34, 200},
    {TGL_C64, TGL_COMPUTE_IEEE, "simt_32x32x32:strips=1", 64, 33, 20},
    {TGL_C64, TGL_COMPUTE_ACCURATE, "accurate_128x64", 40, 24, 140},
    {TGL_C64, TGL_COMPUTE_TF32, "wgmma_128x128", 40, 24, 36},
    {TGL_C128, TGL_COMPUTE_IEEE, "dmma_64x64", 37, 21, 35},
    {TGL_C128, TGL_COMPUTE_IEEE, "dmma_128x128", 131, 67, 9},
    {TGL_C128, TGL_COMPUTE_IEEE, "dmma_16x64:splits=3", 19, 35, 77},
    {TGL_C128, TGL_COMPUTE_IEEE, "dmma_32x32_s2", 33, 17, 90},
    {TGL_C128, TGL_COMPUTE_IEEE, "mma_32x32x256_s2_f64", 33, 17, 40},
    {TGL_C64, TGL_COMPUTE_IEEE, NULL, 40, 1, 90},
    {TGL_C128, TGL_COMPUTE_IEEE, NULL, 1, 40, 90},
    {TGL_C64, TGL_COMPUTE_ACCURATE, NULL, 300, 2, 30},
};

static void layouts_of_families(void **state)
{
    uint64_t seed = 52;
    /* The transposes of A, and four times those of B. */
    static const int layouts[] = {0, 1, 6, 9, 15};
    /* Family `accurate` also computes listed elements and exact tiles from a complex B. */
    static const inputs fills[] = {UNIFORM_11, WIDE, NON_FINITE};
    for (size_t i = 0; i < COUNT_OF(families); i++)
        for (size_t j = 0; j < COUNT_OF(layouts) * COUNT_OF(fills); j++) {
            const int layout = layouts[j % COUNT_OF(layouts)];
            const inputs fill = fills[j / COUNT_OF(layouts)];
            if (fill != UNIFORM_11 && families[i].compute != TGL_COMPUTE_ACCURATE) break;
            tgl_problem p =
                problem_of(families[i].type, families[i].m, families[i].n, families[i].k);
            p.trans_a = (tgl_transpose)(TGL_NO_TRANS + layout % 4);
            p.trans_b = (tgl_transpose)(TGL_NO_TRANS + layout / 4);
            p.compute = families[i].compute;
            if (j % 2 == 1) p.order = TGL_COL_MAJOR;
            const gemm_case c = {.problem = p,
                                 .alpha = layout % 5 == 0 ? 0 : 1.5,
                                 .alpha_imag = layout % 5 < 2 ? -0.75 : 0,
                                 .beta = layout % 7 < 4 ? 0.5 : 0,
                                 .beta_imag = layout % 7 < 2 ? 2 : 0,
                                 .fill = fill,
                                 .kernel = families[i].kernel,
                                 .at_end = layout % 2 == 1,
                                 .seed = random_bits(&seed)};
            if (!check_case(*state, &c)) fail_msg("%s, layout %d", c.kernel, layout);
        }
}

/* A batch of arrays of pointers, and one that shares B, with scalars in host or device memory. */
static void batches(void **state)
{
    uint64_t seed = 53;
    for (int i = 0; i < 16; i++) {
        gemm_case c = {.problem = problem_of(types[i % 2], 20, 9, 17),
                       .alpha = i % 5 == 4 ? 0 : 0.5,
                       .alpha_imag = i % 5 == 4 ? 0 : i % 3,
                       .beta_imag = i % 4 == 1 ? -1 : 0,
                       .pointers = i % 8 < 4,
                       .fill = UNIFORM_11,
                       .seed = random_bits(&seed)};
        tgl_problem *p = &c.problem;
        p->trans_a = i % 4 < 2 ? TGL_NO_TRANS : TGL_TRANS;
        p->scalars = i % 3 == 0 ? TGL_SCALARS_HOST : TGL_SCALARS_DEVICE;
        p->batch = 4;
        p->stride_a = p->stride_c = 400;
        p->stride_b = c.pointers ? 400 : 0;
        assert_true(check_case(*state, &c));
    }
}

/* ---- Complex operands that a kernel reads -----------------------------------------------------
 */

/* Fails unless the kernel reads complex matrices without an expansion and without bank conflicts.
 * layout: bit 0: A is transposed, bit 1: B is transposed. Returns the wavefronts of its loads from
 * shared memory. */
static int64_t check_pairs(tgl_device *dev, tgl_type type, const char *kernel, int layout)
{
    static double A[2 * 64 * 40], B[2 * 64 * 40], C[2 * 64 * 64];
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_counters counters = {.size = sizeof counters};
    tgl_problem p = problem_of(type, 64, 64, 40);
    tgl_plan *plan;
    p.compute = TGL_COMPUTE_IEEE;
    p.trans_a = layout & 1 ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = layout & 2 ? TGL_TRANS : TGL_NO_TRANS;
    p.lda = layout & 1 ? 64 : 40;
    p.ldb = layout & 2 ? 40 : 64;
    assert_status(tgl_plan_create(dev, &p, &options, &plan), TGL_OK);
    /* The workspace has a copy of C, and no expanded A or B. */
    assert_true(tgl_plan_workspace_size(plan) == sizeof C / (type == TGL_C64 ? 2 : 1));
    assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
    assert_status(tgl_plan_counters(plan, &counters), TGL_OK);
    assert_true(counters.shared_load_wavefronts > 0);
    assert_int_equal(counters.shared_load_conflicts, 0);
    assert_int_equal(counters.shared_store_conflicts, 0);
    assert_int_equal(counters.async_copy_conflicts, 0);
    tgl_plan_destroy(plan);
    return (int64_t)counters.shared_load_wavefronts;
}

/* The real product is 64 x 128 x 80, which takes five stages. Of a stage, a warp loads 16 doubles a
 * lane for each 32 rows of A, and only 8 for 32 columns of B', whose elements it uses twice. A load
 * takes two wavefronts. */
static void dmma_reads_complex_operands(void **state)
{
    static const struct {
        const char *kernel;
        int warps, rows; /* of the whole launch; of a warp */
    } cases[] = {{"dmma_128x128", 8, 64}, {"dmma_64x64", 2 * 4, 32}, {"dmma_16x128", 4 * 4, 16}};
    for (int layout = 0; layout < 4; layout++) {
        for (size_t i = 0; i < COUNT_OF(cases); i++)
            assert_int_equal(check_pairs(*state, TGL_C128, cases[i].kernel, layout),
                             5 * cases[i].warps * (cases[i].rows / 2 + 8) * 2);
        check_pairs(*state, TGL_C128, "dmma_64x32_s2", layout);
    }
}

static void simt_reads_complex_operands(void **state)
{
    static const char *const kernels[] = {"simt_64x128x8", "simt_64x64x16",     "simt_128x128x16",
                                          "simt_32x32x32", "simt_32x64x16_4x4", "simt_16x128x32"};
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        for (int layout = 0; layout < 4; layout++)
            check_pairs(*state, TGL_C64, kernels[i], layout);
}

static void dmma_exchanges_no_complex_operands(void **state)
{
    const tgl_problem p = problem_of(TGL_C128, 20, 10, 30);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "dmma_16x64:exchanged=1"};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_UNSUPPORTED);
    assert_sentence("dmma_16x64 cannot serve c128, m=20 n=10 k=30: it computes no tiles of D^T of "
                    "complex matrices");
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The greatest error of a part over u times the sum of the magnitudes of its 2k products. */
static double greatest_error(tgl_device *dev, int64_t k, inputs fill, int layout, uint64_t *seed)
{
    gemm_case c = {.problem = problem_of(TGL_C64, 40, 24, k),
                   .alpha = 1,
                   .kernel = "accurate_128x64",
                   .fill = fill,
                   .seed = random_bits(seed)};
    gemm_outcome outcome;
    c.problem.compute = TGL_COMPUTE_ACCURATE;
    c.problem.trans_a = (tgl_transpose)(TGL_NO_TRANS + layout % 4);
    c.problem.trans_b = (tgl_transpose)(TGL_NO_TRANS + layout / 4);
    gemm_case_run(dev, &c, false, &outcome);
    assert_string_equal(outcome.fault, "");
    assert_status(outcome.status, TGL_OK);
    return outcome.ours.max;
}

/* The bound of docs/accuracy.md for family `accurate`, of inputs without listed elements. */
static void parts_err_within_the_bound(void **state)
{
    static const inputs fills[] = {UNIFORM_01, UNIFORM_11, NORMAL, CANCELLATION};
    static const int64_t depths[] = {128, 200, 1000};
    static const int layouts[] = {0, 6, 9, 15}; /* the transposes of A, and four times those of B */
    uint64_t seed = 55;
    double worst = 0;
    for (size_t i = 0; i < COUNT_OF(fills) * COUNT_OF(depths); i++) {
        const int64_t k = depths[i / COUNT_OF(fills)];
        const double bound = 2 * ceil(2 * (double)k / 64) + 52;
        const double error = greatest_error(*state, k, fills[i % COUNT_OF(fills)],
                                            layouts[i % COUNT_OF(layouts)], &seed);
        worst = fmax(worst, error / bound);
    }
    printf("%.3f of the bound\n", worst);
    assert_true(worst > 0 && worst <= 1);
}

/* ---- Prepared operands ----------------------------------------------------------------------- */

enum { M = 20, N = 24, K = 136 };

static void run_prepared(const tgl_plan *plan, const float *A, const float *B, double alpha_imag,
                         const tgl_prepared *a, const tgl_prepared *b, bool device_scalars,
                         float *C)
{
    const float scalar[] = {1, (float)alpha_imag};
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = device_scalars ? 0 : 1,
                                   .alpha_at = device_scalars ? scalar : NULL,
                                   .A = A,
                                   .B = B,
                                   .C = C,
                                   .prepared_a = a,
                                   .prepared_b = b,
                                   .alpha_imag = device_scalars ? 0 : alpha_imag};
    assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
}

/* Results have the same bits with and without prepared operands, also if alpha, which the pre-pass
 * multiplies with B, has an imaginary part. */
static void check_prepared(tgl_device *dev, tgl_compute compute, const char *kernel, bool trans_a,
                           bool device_scalars)
{
    static float A[2 * M * K], B[2 * K * N], C[2][2 * M * N];
    tgl_problem p = problem_of(TGL_C64, M, N, K);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    uint64_t seed = 54;
    tgl_plan *plan;
    tgl_prepared *a, *b;
    for (int i = 0; i < 2 * M * K; i++)
        A[i] = (float)random_int(&seed, -9, 9) / 7;
    for (int i = 0; i < 2 * K * N; i++)
        B[i] = (float)random_int(&seed, -9, 9) / 7;
    p.compute = compute;
    if (trans_a) p.trans_a = TGL_CONJ_TRANS;
    if (device_scalars) p.scalars = TGL_SCALARS_DEVICE;
    assert_status(tgl_plan_create(dev, &p, &options, &plan), TGL_OK);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_A, A, NULL, &a), TGL_OK);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, NULL, &b), TGL_OK);
    /* Kernels of IEEE arithmetic read complex matrices as they are stored. */
    const bool is_ieee = compute == TGL_COMPUTE_IEEE;
    assert_true((tgl_prepared_size(b) > 0) == !is_ieee);
    assert_true((tgl_prepared_size(a) > 0) ==
                (compute == TGL_COMPUTE_ACCURATE || (trans_a && !is_ieee)));
    for (int i = 0; i < 2; i++) {
        run_prepared(plan, A, B, i, NULL, NULL, device_scalars, C[0]);
        for (int which = 1; which < 4; which++) {
            run_prepared(plan, A, B, i, which & 1 ? a : NULL, which & 2 ? b : NULL, device_scalars,
                         C[1]);
            assert_memory_equal(C[0], C[1], sizeof C[0]);
        }
    }
    tgl_prepared_destroy(a);
    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
}

static void prepared_operands(void **state)
{
    for (int trans_a = 0; trans_a < 2; trans_a++) {
        check_prepared(*state, TGL_COMPUTE_IEEE, "simt_32x32x32", trans_a, trans_a);
        check_prepared(*state, TGL_COMPUTE_ACCURATE, "accurate_128x64", trans_a, trans_a);
        check_prepared(*state, TGL_COMPUTE_TF32, "wgmma_128x128", trans_a, false);
    }
}

/* The expansion of B depends on whether A and B are conjugated, so a prepared B is refused by a
 * plan with another conjugation. */
static void a_prepared_operand_is_for_its_conjugates(void **state)
{
    static float B[2 * K * N], A[2 * M * K], C[2 * M * N];
    const tgl_operands operands = {.size = sizeof operands, .alpha = 1, .A = A, .B = B, .C = C};
    tgl_problem p = problem_of(TGL_C64, M, N, K);
    tgl_plan *plan, *other;
    tgl_prepared *b;
    assert_status(tgl_plan_create(*state, &p, NULL, &plan), TGL_OK);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, NULL, &b), TGL_OK);
    for (int i = 0; i < 2; i++) {
        p.trans_a = i == 0 ? TGL_CONJ_NO_TRANS : TGL_NO_TRANS;
        p.trans_b = i == 1 ? TGL_CONJ_NO_TRANS : TGL_NO_TRANS;
        assert_status(tgl_plan_create(*state, &p, NULL, &other), TGL_OK);
        tgl_operands with = operands;
        with.prepared_b = b;
        assert_status(tgl_plan_run_operands(other, &with, NULL), TGL_BAD_B);
        tgl_plan_destroy(other);
    }
    tgl_prepared_destroy(b);
    tgl_plan_destroy(plan);
}

/* ---- Workspace ------------------------------------------------------------------------------- */

static void limits_of_workspace_hold(void **state)
{
    const tgl_problem p = problem_of(TGL_C64, M, N, K);
    tgl_plan_options options = {.size = sizeof options, .workspace_limit = -1};
    const size_t needed = sizeof(float) * 2 * M * N; /* the size of a copy of C */
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_UNSUPPORTED);
    assert_sentence("products of c64 need workspace: here 3840 bytes, and the limit is 0");
    options.workspace_limit = (int64_t)needed;
    assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
    assert_true(tgl_plan_workspace_size(plan) == needed);
    tgl_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_products, setup_sim, teardown_device),
        cmocka_unit_test_setup_teardown(layouts_of_families, setup_sim, teardown_device),
        cmocka_unit_test_setup_teardown(batches, setup_sim, teardown_device),
        cmocka_unit_test_setup_teardown(dmma_reads_complex_operands, setup_sim, teardown_device),
        cmocka_unit_test_setup_teardown(simt_reads_complex_operands, setup_sim, teardown_device),
        cmocka_unit_test_setup_teardown(dmma_exchanges_no_complex_operands, setup_sim,
                                        teardown_device),
        cmocka_unit_test_setup_teardown(parts_err_within_the_bound, setup_sim, teardown_device),
        cmocka_unit_test_setup_teardown(prepared_operands, setup_sim, teardown_device),
        cmocka_unit_test_setup_teardown(a_prepared_operand_is_for_its_conjugates, setup_sim,
                                        teardown_device),
        cmocka_unit_test_setup_teardown(limits_of_workspace_hold, setup_sim, teardown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
