/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rung of the ladder on the simulator, with small shapes and partial tiles. Over two rungs
 * every pair of sizes in two dimensions occurs, and every combination of a size with a pair of
 * alpha and beta.
 * Chapter 1 multiplies FP32, chapter 2 ("f16_") f16, chapter 3 ("words_") FP32 on tensor cores. An
 * argument "i/n" selects part i of n of the kernels.
 */
#include "gemm_case.h"
#include "support.h"

static const int64_t sizes[] = {1, 3, 31, 32, 33, 64, 65, 127, 130};
static const double scalars[] = {0, 1, -0.5};
enum { SIZES = COUNT_OF(sizes), SCALARS = COUNT_OF(scalars) };

static int part = 0, parts = 1;

/* Case i*SIZES + j of the array. Any two of the numbers i, j, i+j and i+2j, modulo 9, take all 81
 * pairs of values, because 2 has an inverse modulo 9. */
static gemm_case make_case(tgl_type type, tgl_compute compute, int i, int j)
{
    const int scalar = (i + 2 * j) % SIZES;
    const int layout = i + 5 * j;
    tgl_problem p = problem_of(type, sizes[i], sizes[j], sizes[(i + j) % SIZES]);
    p.compute = compute;
    if (layout % 2 != 0) { /* some paddings keep rows aligned to 16 bytes, some do not */
        p.lda = (p.k + 3) / 4 * 4 + layout % 5;
        p.ldb = (p.n + 3) / 4 * 4 + layout % 3;
        p.ldc = (p.n + 3) / 4 * 4 + layout % 7;
    }
    return (gemm_case){
        .problem = p,
        .alpha = scalars[scalar / SCALARS],
        .beta = scalars[scalar % SCALARS],
        .fill = UNIFORM_11,
        .at_end = layout % 3 != 0, /* then the alignment of the base depends on the size */
        .seed = (uint64_t)(1 + i * SIZES + j),
    };
}

/* What a rung multiplies. */
typedef struct kind {
    tgl_type type;
    tgl_compute compute;
    bool of_chapter_1;
} kind;

static bool begins_with(const char *kernel, const char *begin)
{
    return strncmp(kernel, begin, strlen(begin)) == 0;
}

static kind kind_of(const char *kernel)
{
    if (begins_with(kernel, "ladder/f16_")) return (kind){TGL_F16, TGL_COMPUTE_DEFAULT, false};
    if (begins_with(kernel, "ladder/words_")) return (kind){TGL_F32, TGL_COMPUTE_TF32, false};
    return (kind){TGL_F32, TGL_COMPUTE_DEFAULT, true};
}

static void run_case(tgl_device *dev, const char *kernel, gemm_case *c)
{
    gemm_outcome outcome;
    c->kernel = kernel;
    gemm_case_run(dev, c, false, &outcome);
    if (outcome.fault[0] != '\0') fail_msg("%s", outcome.fault);
    assert_status(outcome.status, TGL_OK);
}

/* Runs every second shape. The next kernel of the ladder takes the others. */
static void run_shapes(tgl_device *dev, const char *kernel, int number)
{
    const kind own = kind_of(kernel);
    for (int i = 0; i < SIZES; i++)
        for (int j = (i + number) % 2; j < SIZES; j += 2) {
            gemm_case c = make_case(own.type, own.compute, i, j);
            run_case(dev, kernel, &c);
        }
}

static void test_kernels(void **state)
{
    const char *kernel;
    for (int i = 0; (kernel = tgl_kernel_name(*state, i)) != NULL; i++)
        if (begins_with(kernel, "ladder/") && i % parts == part) run_shapes(*state, kernel, i);
}

/* ---- Larger shapes, for what small ones do not reach ----------------------------------------- */

static gemm_case large_case(tgl_type type, int64_t m, int64_t n, int64_t k)
{
    return (gemm_case){.problem = problem_of(type, m, n, k),
                       .alpha = 1.5,
                       .beta = -0.5,
                       .fill = UNIFORM_11,
                       .seed = 7};
}

/* Tests products with more tiles along K than a ring has stages, and with several splits. */
static void deep_products(void **state)
{
    static const char *const kernels[] = {
        "ladder/multistage",      "ladder/block_order",    "ladder/slices",
        "ladder/split_k",         "ladder/f16_multistage", "ladder/f16_wgmma",
        "ladder/f16_specialised", "ladder/f16_persistent", "ladder/words_promoted"};
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        gemm_case c = large_case(kind_of(kernels[i]).type, 70, 270, 700);
        c.problem.compute = kind_of(kernels[i]).compute;
        run_case(*state, kernels[i], &c);
    }
}

/* Several bands of rows of tiles, the last of which has fewer rows. For persistent blocks, more
 * tiles than blocks: 9 x 8 pairs of tiles for the 66 pairs of blocks of an H200. */
static void many_tiles(void **state)
{
    static const struct {
        const char *kernel;
        int64_t m, n, k;
    } rows[] = {
        {"ladder/block_order", 1100, 300, 9},    {"ladder/slices", 600, 140, 20},
        {"ladder/split_k", 600, 140, 20},        {"ladder/f16_persistent", 2100, 2000, 136},
        {"ladder/f16_persistent", 130, 301, 72}, /* rows of C that TMA cannot store */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        gemm_case c = large_case(kind_of(rows[i].kernel).type, rows[i].m, rows[i].n, rows[i].k);
        run_case(*state, rows[i].kernel, &c);
    }
}

/* Infinities, NaN, denormals and exponents far apart, where fragments and words are handled. */
static void all_kinds_of_numbers(void **state)
{
    const char *kernel;
    for (int i = 0; (kernel = tgl_kernel_name(*state, i)) != NULL; i++) {
        if (!begins_with(kernel, "ladder/") || kind_of(kernel).of_chapter_1) continue;
        for (int turn = 0; turn < INPUTS_END + 8; turn++) {
            /* In eight more turns k is small, so that with infinities some results are infinite and
             * not NaN. */
            const bool is_short = turn >= INPUTS_END;
            gemm_case c = large_case(kind_of(kernel).type, 35, 41, is_short ? 9 : 66);
            c.problem.compute = kind_of(kernel).compute;
            c.fill = is_short ? NON_FINITE : (inputs)turn;
            c.seed = (uint64_t)turn + 1;
            /* Denormals have fewer bits in TF32 than the 10 that its bound allows for. */
            if (c.fill == DENORMAL && c.problem.compute == TGL_COMPUTE_TF32) continue;
            run_case(*state, kernel, &c);
        }
    }
}

/* The greatest error of C := A*B with elements in (0, 1), where truncation adds up. */
static double error_of(tgl_device *dev, const char *kernel, int64_t k)
{
    gemm_outcome outcome;
    gemm_case c = {.problem = problem_of(TGL_F32, 33, 40, k),
                   .kernel = kernel,
                   .alpha = 1,
                   .fill = UNIFORM_01,
                   .seed = 3};
    c.problem.compute = TGL_COMPUTE_TF32;
    gemm_case_run(dev, &c, false, &outcome);
    if (outcome.fault[0] != '\0') fail_msg("%s", outcome.fault);
    return outcome.ours.max;
}

/* With one TF32 word for each factor errors are below 2^-10. With three products of two words they
 * grow with k; promotion keeps them within the bound of FP32 sums (docs/ladder.md, chapter 3). */
static void words_and_their_errors(void **state)
{
    enum { K = 2048 };
    const double one = error_of(*state, "ladder/words_one", K),
                 three = error_of(*state, "ladder/words_three", K),
                 promoted = error_of(*state, "ladder/words_promoted", K);
    assert_true(one > 100 && one < 0x1p14);
    assert_true(three > 4 * promoted);
    assert_true(promoted < 16 && promoted < error_bound(K));
    assert_true(three > 2 * error_of(*state, "ladder/words_three", K / 4));
}

/* Rungs take only what their chapter multiplies. */
static void other_types_are_refused(void **state)
{
    static const struct {
        const char *kernel;
        tgl_type type;
        tgl_compute compute;
        const char *why;
    } rows[] = {
        {"ladder/naive", TGL_F16, TGL_COMPUTE_DEFAULT, "the rung multiplies FP32"},
        {"ladder/f16_wmma", TGL_F32, TGL_COMPUTE_DEFAULT, "the rung multiplies f16"},
        {"ladder/words_one", TGL_F32, TGL_COMPUTE_DEFAULT, "only the compute mode tf32 permits"},
        {"ladder/words_promoted", TGL_F32, TGL_COMPUTE_ACCURATE,
         "only the compute mode tf32 permits"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        tgl_problem p = problem_of(rows[i].type, 8, 8, 8);
        p.compute = rows[i].compute;
        const tgl_plan_options options = {.size = sizeof options, .kernel = rows[i].kernel};
        tgl_plan *plan = NULL;
        assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_UNSUPPORTED);
        assert_null(plan);
        char text[1024];
        tgl_last_error(text, sizeof text);
        if (strstr(text, rows[i].why) == NULL) fail_msg("%s", text);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest kernels[] = {cmocka_unit_test(test_kernels)};
    const struct CMUnitTest others[] = {
        cmocka_unit_test(deep_products),           cmocka_unit_test(many_tiles),
        cmocka_unit_test(all_kinds_of_numbers),    cmocka_unit_test(words_and_their_errors),
        cmocka_unit_test(other_types_are_refused),
    };
    if (argc > 1 && (sscanf(argv[1], "%d/%d", &part, &parts) != 2 || parts < 1)) return 2;
    const int failed = cmocka_run_group_tests(kernels, setup_sim, teardown_device);
    if (part > 0) return failed; /* part 0 has the other tests too */
    return failed + cmocka_run_group_tests(others, setup_sim, teardown_device);
}
