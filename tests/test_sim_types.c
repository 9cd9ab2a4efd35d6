/* SPDX-License-Identifier: Apache-2.0
 *
 * The families for few lines and for small products on the simulator, in the types besides F32:
 * every configuration with F16, BF16 and F64, all layouts, either operand big, copies of every
 * width, k whole and split; and, drawn for each case, batches, epilogues, scalars of the device,
 * results of another type, and values that are not finite. An argument "i/n" takes the i-th of n
 * parts.
 */
#include "plan/family.h"
#include "support.h"
#include "typed_case.h"

static int part = 0, parts = 1;

static const tgl_type types[] = {TGL_F16, TGL_BF16, TGL_F64};

static void run(tgl_device *dev, const typed_case *c, tgl_status status)
{
    char fault[2000];
    const tgl_status result = typed_case_run(dev, c, fault, sizeof fault);
    if (fault[0] != '\0') fail_msg("%s", fault);
    assert_status(result, status);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

/* The least odd multiple of `width`, a power of two, that is at least `least`. It allows copies of
 * `width` elements, and no wider ones. */
static int64_t odd_multiple(int64_t least, int width)
{
    const int64_t count = (least + width - 1) / width;
    return (count | 1) * width;
}

/* Row-major with leading dimensions and strides that allow copies of `width` elements. */
static tgl_problem problem_in(tgl_type type, int64_t m, int64_t n, int64_t k, int layout, int width)
{
    tgl_problem p = problem_of(type, m, n, k);
    const bool ta = layout & 1, tb = layout & 2;
    p.trans_a = ta ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = tb ? TGL_TRANS : TGL_NO_TRANS;
    p.lda = odd_multiple(ta ? m : k, width);
    p.ldb = odd_multiple(tb ? k : n, width);
    p.ldc = n + 3;
    p.stride_a = p.lda * (ta ? k : m);
    p.stride_b = p.ldb * (tb ? n : k);
    p.stride_c = p.ldc * m;
    return p;
}

static tgl_type either(uint64_t *seed, tgl_type x, tgl_type y)
{
    return random_int(seed, 0, 1) ? x : y;
}

/* Draws what a case has besides its product. */
static void vary(uint64_t *seed, typed_case *c)
{
    tgl_problem *p = &c->problem;
    const bool is_f64 = p->type_a == TGL_F64;
    c->alpha = random_int(seed, 0, 9) == 0 ? 0 : (double)random_int(seed, 1, 3) / 2;
    c->beta = random_int(seed, 0, 1) ? 0 : -0.5;
    if (!is_f64) p->type_c = either(seed, p->type_a, TGL_F32);
    if (random_int(seed, 0, 1)) {
        p->type_d = is_f64 ? TGL_F64 : either(seed, p->type_a, TGL_F32);
        p->ldd = random_int(seed, 0, 1) ? (p->n + 3) / 4 * 4 : p->n + 1;
        p->stride_d = p->ldd * p->m;
    } else if (random_int(seed, 0, 1)) {
        p->ldc = (p->n + 3) / 4 * 4;
        p->stride_c = p->ldc * p->m;
    }
    if (random_int(seed, 0, 3) == 0) p->scalars = TGL_SCALARS_DEVICE;
    if (random_int(seed, 0, 2) == 0) p->batch = 3;
    c->pointers = p->batch > 1 && random_int(seed, 0, 1);
    if (random_int(seed, 0, 2) == 0)
        c->epilogue = (tgl_epilogue){.size = sizeof c->epilogue,
                                     .bias = (tgl_bias)random_int(seed, 0, 2),
                                     .activation = (tgl_activation)random_int(seed, 0, 3),
                                     .residual = (int)random_int(seed, 0, 1),
                                     .type_bias = is_f64 ? TGL_F64 : TGL_F32};
    c->is_finite = random_int(seed, 0, 4) > 0;
    c->at_end = random_int(seed, 0, 1);
    c->seed = *seed;
}

/* ---- Few lines ------------------------------------------------------------------------------- */

enum { STRING = 80 };

/* A product with at most `lines` rows or columns in its small operand. In some cases its length
 * exceeds a block, or its k what shared memory holds at once: up to 4096 steps of k of one line. */
static tgl_problem few_lines(uint64_t *seed, tgl_type type, int lines, int layout, bool big_a,
                             int width)
{
    const int64_t deep = lines == 1 ? 4200 : lines == 2 ? 2200 : 1200;
    const int64_t count = lines - random_int(seed, 0, lines / 2);
    const int64_t length = odd_multiple(random_int(seed, 0, 2) ? 40 : 270, width);
    const int64_t k = length < 100 && random_int(seed, 0, 1) ? deep : random_int(seed, 1, 300);
    return problem_in(type, big_a ? length : count, big_a ? count : length, k, layout, width);
}

static void try_few_lines(tgl_device *dev, const tgl_choice *choice, tgl_type type, uint64_t *seed)
{
    const int widest = 16 / (int)tgl_type_size(type);
    const char *name = tgl_choice_name(choice);
    const int lines = tgl_choice_lines(choice);
    const bool may_refuse = strncmp(name, "gemv_", 5) == 0, may_split = name[0] == 's';
    for (int i = 0; i < 8; i++) {
        const int width = widest >> (i + (int)(*seed % 4)) % 4;
        char kernel[STRING];
        typed_case c = {.problem =
                            few_lines(seed, type, lines, i / 2, i % 2, width > 0 ? width : 1)};
        vary(seed, &c);
        c.kernel = name;
        if (may_split && random_int(seed, 0, 1)) {
            snprintf(kernel, sizeof kernel, "%s:splits=3,blocks=%d", name,
                     (int)random_int(seed, 2, 9));
            c.kernel = kernel;
        }
        const bool is_strided =
            i % 2 == 1 ? i / 2 == 0 && c.problem.ldb > 1 : i / 2 == 3 && c.problem.lda > 1;
        run(dev, &c, may_refuse && is_strided ? TGL_UNSUPPORTED : TGL_OK);
    }
}

/* ---- Small products -------------------------------------------------------------------------- */

static void try_small(tgl_device *dev, const tgl_choice *choice, tgl_type type, uint64_t *seed)
{
    const int widest = 16 / (int)tgl_type_size(type);
    int bm, bn;
    assert_int_equal(sscanf(tgl_choice_name(choice), "small_batch_%dx%d", &bm, &bn), 2);
    for (int i = 0; i < 8; i++) {
        const int narrow = widest >> (i + (int)(*seed % 4)) % 4, width = narrow > 0 ? narrow : 1;
        const int64_t m = random_int(seed, 1, bm / width) * width;
        const int64_t n = random_int(seed, 1, bn / width) * width;
        const int64_t k = random_int(seed, 1, (bm + bn) / width) * width;
        typed_case c = {.problem = problem_in(type, m, n, k, i % 4, width),
                        .kernel = tgl_choice_name(choice)};
        vary(seed, &c);
        c.problem.batch = i < 4 ? 5 : c.problem.batch;
        run(dev, &c, TGL_OK);
    }
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void each(tgl_device *dev, const char *family,
                 void (*visit)(tgl_device *dev, const tgl_choice *choice, tgl_type type,
                               uint64_t *seed))
{
    tgl_choice choice;
    int visited = 0;
    for (int i = 0; tgl_configuration_at(i, &choice); i++)
        for (size_t t = 0; t < COUNT_OF(types); t++) {
            uint64_t seed = (uint64_t)i * 100 + t;
            if (strcmp(choice.family->name, family) == 0 && visited++ % parts == part)
                visit(dev, &choice, types[t], &seed);
        }
    assert_true(visited > 0);
}

static void test_skinny(void **state)
{
    each(*state, "skinny", try_few_lines);
}

static void test_gemv(void **state)
{
    each(*state, "gemv", try_few_lines);
}

/* If the matrix has more than 16 rows for each SM, which are longer than a step, two warps share K.
 * In the last step one warp and some lanes of the other are idle, and the last block has fewer
 * rows. */
static void test_many_lines(void **state)
{
    static const int64_t depths[] = {2056, 2571};
    for (int i = 0; i < 4; i++) {
        const bool big_a = i & 1;
        const int64_t length = 16 * 132 + 1;
        typed_case c = {.problem = problem_in(types[i / 2], big_a ? length : 1, big_a ? 1 : length,
                                              depths[i / 2], big_a ? 0 : 2, 8),
                        .alpha = 1,
                        .kernel = "gemv",
                        .is_finite = true,
                        .at_end = true,
                        .seed = (uint64_t)i};
        if (i % parts == part) run(*state, &c, TGL_OK);
    }
}

static void test_small_batch(void **state)
{
    each(*state, "small_batch", try_small);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void types_that_do_not_go_together(void **state)
{
    static const char *const kernels[] = {"skinny_4", "gemv", "small_batch_16x16"};
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        tgl_problem p = problem_of(TGL_BF16, 1, 16, 16);
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernels[i]};
        tgl_plan *plan;
        p.type_a = p.type_b = TGL_I8;
        p.type_c = TGL_I32;
        assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_UNSUPPORTED);
        char sentence[500];
        tgl_last_error(sentence, sizeof sentence);
        assert_non_null(strstr(sentence, "it multiplies F32, F64, F16 and BF16"));
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && (sscanf(argv[1], "%d/%d", &part, &parts) != 2 || parts < 1)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skinny),
        cmocka_unit_test(test_gemv),
        cmocka_unit_test(test_many_lines),
        cmocka_unit_test(test_small_batch),
        cmocka_unit_test(types_that_do_not_go_together),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
