/* SPDX-License-Identifier: Apache-2.0
 *
 * The lower bounds by which the planner leaves candidates out: they are below the predictions, and
 * what they exclude is not better than the choice. The planner predicts few candidates.
 *
 * The linker replaces three functions of the planner by those below (see CMakeLists.txt), which
 * watch the searches of the families.
 */
#include "plan_shape.h"

#include "families/gemm_launch.h"

/* ---- What the searches do -------------------------------------------------------------------- */

static struct {
    bool ignores_bounds, checks_bounds;
    /* tgl_search_excludes() was called for this configuration, and tgl_search_try() since then. The
     * bound holds for all calls of tgl_search_try() until the next bound. */
    bool has_asked, has_tried;
    double asked;         /* the minimum bound of the calls of tgl_search_excludes() in a row */
    int tried, predicted; /* calls of tgl_search_try(), of tgl_gemm_predict_step() */
} watched;

bool __real_tgl_search_excludes(const tgl_search *search, double seconds);
bool __wrap_tgl_search_excludes(const tgl_search *search, double seconds);
bool __wrap_tgl_search_excludes(const tgl_search *search, double seconds)
{
    const bool continues = watched.has_asked && !watched.has_tried;
    watched.asked = continues && watched.asked < seconds ? watched.asked : seconds;
    watched.has_asked = true;
    watched.has_tried = false;
    return !watched.ignores_bounds && __real_tgl_search_excludes(search, seconds);
}

/* Bounds and predictions have different rounding errors. */
static bool is_above(double bound, double seconds)
{
    return bound * (1 - 1e-9) > seconds;
}

/* Fails unless the bound of the choice, and the bound of it and all that follow, are below the
 * prediction. */
static void check_least(const tgl_search *search, const tgl_choice *choice, double least)
{
    const tgl_shape *s = search->shape;
    tgl_candidate c;
    tgl_planner_best_of(search->chip, s, choice, 0, TGL_WORKSPACE_MAX, &c);
    if (watched.has_asked && watched.asked > least) least = watched.asked;
    if (c.rejected == NULL && is_above(least, c.seconds))
        fail_msg("%s, m=%lld n=%lld k=%lld, splits %d: %g, bound %g", tgl_choice_name(choice),
                 (long long)s->m, (long long)s->n, (long long)s->k, c.splits, c.seconds, least);
}

bool __real_tgl_search_try(tgl_search *search, int first, int count, const int64_t *values,
                           double least);
bool __wrap_tgl_search_try(tgl_search *search, int first, int count, const int64_t *values,
                           double least);
bool __wrap_tgl_search_try(tgl_search *search, int first, int count, const int64_t *values,
                           double least)
{
    tgl_choice choice = search->asked;
    if (count > 0) { /* a family calls it; the planner tries the default options */
        for (int i = 0; i < count; i++)
            choice.option[first + i] = values[i];
        watched.tried++;
        if (watched.checks_bounds) check_least(search, &choice, least);
    }
    watched.has_tried = true;
    if (count == 0) watched.has_asked = false; /* another configuration */
    return __real_tgl_search_try(search, first, count, values, watched.ignores_bounds ? 0 : least);
}

bool __real_tgl_gemm_predict_step(const tgl_chip *chip, const tgl_shape *shape,
                                  const tgl_gemm_step *step, tgl_candidate *c);
bool __wrap_tgl_gemm_predict_step(const tgl_chip *chip, const tgl_shape *shape,
                                  const tgl_gemm_step *step, tgl_candidate *c);
bool __wrap_tgl_gemm_predict_step(const tgl_chip *chip, const tgl_shape *shape,
                                  const tgl_gemm_step *step, tgl_candidate *c)
{
    watched.predicted++;
    return __real_tgl_gemm_predict_step(chip, shape, step, c);
}

/* ---- Random products ------------------------------------------------------------------------- */

static int64_t random_size(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
    return 1 + (int64_t)((*seed >> 33) % ((uint64_t)2 << (*seed >> 60)));
}

/* A product of random size; every second one has 16-bit elements, every fourth is TF32, every
 * eighth has F64. Every seventh is a batch, and every
 * eleventh has no K. */
static tgl_shape random_shape(int number, uint64_t *seed)
{
    const int64_t m = random_size(seed), n = random_size(seed), k = random_size(seed);
    tgl_shape s = shape_of(m, n, k);
    s.trans_a = number % 3 == 0;
    s.trans_b = number % 5 == 0;
    s.lda = s.trans_a ? m : k;
    s.ldb = s.trans_b ? k : n;
    if (number % 4 == 3) s.compute = TGL_COMPUTE_TF32;
    if (number % 2 == 0)
        s.type_a = s.type_b = s.type_c = s.type_d = s.epilogue.type_bias =
            s.epilogue.type_residual = TGL_BF16;
    if (number % 8 == 5)
        s.type_a = s.type_b = s.type_c = s.type_d = s.type_accumulate = s.epilogue.type_bias =
            s.epilogue.type_residual = TGL_F64;
    if (number % 7 == 6) make_batch(&s, 1 + number);
    if (number % 11 == 10) s.k = 0;
    return s;
}

/* Fails unless the prediction for a choice with fixed options is at least as large as the bounds.
 */
static void check_bounds(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice)
{
    const tgl_family *family = choice->family;
    tgl_candidate c;
    if (family->unsupported_reason(s, chip) != NULL) return;
    tgl_planner_best_of(chip, s, choice, 0, TGL_WORKSPACE_MAX, &c);
    if (c.rejected != NULL) return;
    tgl_choice plain = *choice;
    for (int i = 0; i < TGL_OPTIONS_MAX; i++)
        plain.option[i] = TGL_UNSET;
    const double least = family->least_seconds != NULL ? family->least_seconds(chip, s, &plain) : 0;
    if (is_above(least, c.seconds))
        fail_msg("%s, m=%lld n=%lld k=%lld, splits %d: %g, bound %g", tgl_choice_name(choice),
                 (long long)s->m, (long long)s->n, (long long)s->k, c.splits, c.seconds, least);
}

static void bounds_are_below_predictions(void **state)
{
    (void)state;
    static const int64_t splits[] = {TGL_UNSET, 2, 3, 8, 20};
    enum { DEEP = 128 }; /* K of a split that every search tries */
    uint64_t seed = 1;
    tgl_choice choice;
    for (int i = 0; i < 60; i++) {
        const tgl_shape s = random_shape(i, &seed);
        const tgl_chip *chip = chip_of(i % 5 == 4 ? "a100" : "h200");
        for (int j = 0; tgl_configuration_at(j, &choice); j++)
            for (size_t x = 0; x < COUNT_OF(splits) && !choice.family->is_on_request; x++) {
                if (splits[x] * DEEP > s.k) continue;
                choice.option[0] = splits[x]; /* in the families with bounds option 0 is splits */
                check_bounds(chip, &s, &choice);
                const bool exchanges = strcmp(choice.family->name, "wgmma") == 0;
                choice.option[1] = exchanges ? 1 : TGL_UNSET;
                if (exchanges) check_bounds(chip, &s, &choice);
                choice.option[1] = TGL_UNSET;
            }
    }
}

/* Every second chip is an H200, which most families support. The others are all chips in turn. */
static const tgl_chip *chip_number(int i)
{
    int count = 1;
    while (tgl_chip_at(count) != NULL)
        count++;
    return i % 2 == 0 ? chip_of("h200") : tgl_chip_at(i / 2 % count);
}

/* Families give a bound with each choice of options. */
static void bounds_of_options_are_below_predictions(void **state)
{
    (void)state;
    /* f64: more tiles than SMs, but persistent blocks: no launch is late. bf16: lines of B lie in
     * two lines of L2, so that clusters of splits copy tiles in less time. */
    static const tgl_tuned named[] = {{"h200", "bf16", "TN", 3456, 328, 6688, 1, NULL},
                                      {"h200", "bf16", "TN", 1408, 376, 16384, 1, NULL},
                                      {"h200", "f64", "NT", 8145, 63, 12, 1, NULL},
                                      {"h200", "f64", "NT", 5631, 87, 172, 1, NULL},
                                      {"h200", "f64", "NT", 189, 5519, 10, 1, NULL},
                                      {"h200", "f64", "NT", 5092, 49, 306, 1, NULL}};
    enum { NAMED = sizeof named / sizeof named[0] };
    uint64_t seed = 3;
    tgl_choice choice;
    tgl_candidate c;
    watched.ignores_bounds = watched.checks_bounds = true;
    for (int i = 0; i < 90 + NAMED; i++) {
        const bool is_named = i >= 90;
        const tgl_shape s = is_named ? shape_of_row(&named[i - 90]) : random_shape(i, &seed);
        const tgl_chip *chip = is_named ? chip_of("h200") : chip_number(i);
        for (int j = 0; tgl_configuration_at(j, &choice); j++) {
            if (choice.family->is_on_request) continue;
            watched.checks_bounds = true;
            watched.has_asked = false;
            tgl_planner_best_of(chip, &s, &choice, -1, TGL_WORKSPACE_MAX, &c);
            watched.checks_bounds = false;
            tgl_planner_best_of(chip, &s, &choice, 0, TGL_WORKSPACE_MAX, &c);
            const bool has_bound = choice.family->least_seconds != NULL && c.rejected == NULL;
            if (has_bound && is_above(choice.family->least_seconds(chip, &s, &choice), c.seconds))
                fail_msg("%s, m=%lld n=%lld k=%lld: %g", tgl_choice_name(&choice), (long long)s.m,
                         (long long)s.n, (long long)s.k, c.seconds);
        }
    }
    watched.ignores_bounds = watched.checks_bounds = false;
}

static void check_same(const tgl_shape *s, const tgl_candidate *with, const tgl_candidate *without)
{
    char found[TGL_KERNEL_STRING_SIZE], best[TGL_KERNEL_STRING_SIZE];
    tgl_candidate_string(with, found, sizeof found);
    tgl_candidate_string(without, best, sizeof best);
    if (strcmp(found, best) != 0)
        fail_msg("m=%lld n=%lld k=%lld: %s, without bounds %s", (long long)s->m, (long long)s->n,
                 (long long)s->k, found, best);
}

/* Searches find the same candidate with and without bounds. */
static void bounds_do_not_change_what_is_found(void **state)
{
    (void)state;
    uint64_t seed = 4;
    tgl_choice choice;
    tgl_candidate with, without;
    for (int i = 0; i < 500; i++) {
        const tgl_shape s = random_shape(i, &seed);
        const tgl_chip *chip = chip_number(i);
        bool is_supported = false;
        for (int j = 0; tgl_configuration_at(j, &choice); j++) {
            if (choice.family->is_on_request) continue;
            tgl_planner_best_of(chip, &s, &choice, -1, TGL_WORKSPACE_DEFAULT, &with);
            watched.ignores_bounds = true;
            tgl_planner_best_of(chip, &s, &choice, -1, TGL_WORKSPACE_DEFAULT, &without);
            watched.ignores_bounds = false;
            assert_ptr_equal(with.rejected, without.rejected);
            if (with.rejected != NULL) continue;
            check_same(&s, &with, &without);
            is_supported = true;
        }
        if (!is_supported) continue;
        with = choose_on(chip, &s, NULL);
        watched.ignores_bounds = true;
        without = choose_on(chip, &s, NULL);
        watched.ignores_bounds = false;
        check_same(&s, &with, &without);
    }
}

/* A strip that fits beside one tile is not taken beside a tile that leaves it less workspace. */
static void strips_fit_the_workspace(void **state)
{
    (void)state;
    enum { LIMIT = 100000 /* bytes */ };
    tgl_request request = request_of(NULL);
    request.workspace_max = LIMIT;
    for (int64_t k = 1000; k < 100000; k += k / 7)
        for (int64_t n = 129; n < 150; n += 3) {
            const tgl_shape s = shape_of(33 + n % 50, n, k);
            tgl_candidate c;
            assert_status(tgl_planner_choose(chip_of("h200"), &s, &request, &c), TGL_OK);
            assert_in_range(c.workspace_bytes, 0, LIMIT);
        }
}

/* ---- Limits of the workspace ----------------------------------------------------------------- */

/* The workspace of the choice within a limit; -1: there is no choice. *kernel: its string. */
static int64_t workspace_within(const tgl_chip *chip, const tgl_shape *s, tgl_request request,
                                int64_t limit, char kernel[TGL_KERNEL_STRING_SIZE])
{
    tgl_candidate c;
    request.workspace_max = limit;
    if (tgl_planner_choose(chip, s, &request, &c) != TGL_OK) return -1;
    tgl_launch_list list = list_of(chip, s, &c);
    const int64_t bytes = (int64_t)tgl_list_workspace(&list);
    tgl_list_free(&list);
    tgl_candidate_string(&c, kernel, TGL_KERNEL_STRING_SIZE);
    return bytes;
}

static tgl_shape shape_of_random_problem(uint64_t *seed, int64_t largest)
{
    static const tgl_compute modes[] = {TGL_COMPUTE_ACCURATE, TGL_COMPUTE_IEEE, TGL_COMPUTE_TF32};
    static const tgl_type types[] = {TGL_C64, TGL_C64, TGL_C128, TGL_F32};
    const tgl_type type = types[random_int(seed, 0, 3)];
    tgl_problem p = problem_of(type, random_int(seed, 1, largest), random_int(seed, 1, largest),
                               random_int(seed, 1, largest));
    p.trans_a = (tgl_transpose)random_int(seed, TGL_NO_TRANS, TGL_CONJ_NO_TRANS);
    p.trans_b = (tgl_transpose)random_int(seed, TGL_NO_TRANS, TGL_CONJ_NO_TRANS);
    if (type != TGL_C128) p.compute = modes[random_int(seed, 0, 2)];
    if (random_int(seed, 0, 1) == 0) p.type_d = type;
    if (random_int(seed, 0, 1) == 0) p.scalars = TGL_SCALARS_DEVICE;
    if (random_int(seed, 0, 2) == 0) {
        p.batch = random_int(seed, 2, 5);
        p.stride_a = random_int(seed, 0, 1) * p.m * p.k;
        p.stride_b = random_int(seed, 0, 1) * p.k * p.n;
        p.stride_c = p.m * p.n;
        p.stride_d = p.type_d != 0 ? p.m * p.n : 0;
        if (random_int(seed, 0, 1) == 0) p.batching = TGL_POINTERS;
    }
    tgl_shape s;
    assert_status(tgl_shape_make(&p, true, &s), TGL_OK);
    return s;
}

/* A plan needs at most the limit, and it can be made with a limit of what it needs: the expanded
 * operands of a complex product and the copy of C are counted if the plan has them, and only then.
 */
static void limits_of_workspace_hold(void **state)
{
    (void)state;
    uint64_t seed = 44;
    int smaller = 0;
    for (int i = 0; i < 100; i++) {
        const tgl_chip *chip = chip_of("h200");
        const tgl_shape s = shape_of_random_problem(&seed, i % 3 == 0 ? 2000 : 200);
        char text[TGL_KERNEL_STRING_SIZE], other[TGL_KERNEL_STRING_SIZE];
        const int64_t bytes =
            workspace_within(chip, &s, request_of(NULL), TGL_WORKSPACE_DEFAULT, text);
        assert_true(bytes >= 0);
        const int64_t again = workspace_within(chip, &s, request_of(text), bytes, other);
        if (again != bytes) fail_msg("%s: %lld", text, (long long)bytes);
        assert_string_equal(text, other);
        for (int64_t limit = bytes - 1; limit > 0; limit = limit * 2 / 3) {
            const int64_t less = workspace_within(chip, &s, request_of(NULL), limit, other);
            if (less > limit)
                fail_msg("%s needs %lld bytes, and the limit is %lld", other, (long long)less,
                         (long long)limit);
            smaller += less >= 0;
        }
    }
    assert_true(smaller > 100);
}

/* What bounds exclude is not better than the choice. */
static void the_choice_is_the_best_of_all(void **state)
{
    (void)state;
    uint64_t seed = 2;
    tgl_choice choice;
    tgl_candidate other;
    for (int i = 0; i < 60; i++) {
        const tgl_shape s = random_shape(i, &seed);
        const char *chip = i % 5 == 4 ? "a100" : "h200";
        const tgl_candidate c = choose(chip, &s);
        for (int j = 0; !c.is_tuned && tgl_configuration_at(j, &choice); j++) {
            if (choice.family->is_on_request || tgl_choice_lines(&choice) > 0) continue;
            tgl_planner_best_of(chip_of(chip), &s, &choice, -1, TGL_WORKSPACE_DEFAULT, &other);
            if (other.rejected == NULL && other.seconds < c.seconds)
                fail_msg("%s: %g, %s: %g", tgl_choice_name(&c.choice), c.seconds,
                         tgl_choice_name(&choice), other.seconds);
        }
    }
}

/* ---- The size of the search ------------------------------------------------------------------ */

/* Products whose search is large, and the maximum number of choices of options that are tried and
 * of candidates that are predicted: a tenth more than were counted. On a processor of 2021 a
 * prediction takes about 0.3 us, and a choice that its bound excludes 0.05 us. */
static const struct {
    tgl_tuned product; /* without a kernel */
    int tried, predicted;
} counted[] = {
    {{"h200", "f32", "NN", 71, 47, 135178, 1, NULL}, 1490, 620}, /* deep, with strips */
    {{"h200", "f32", "TT", 142, 198, 7589, 1, NULL}, 990, 380},  /* deep */
    {{"h200", "f32", "NN", 767, 769, 771, 1, NULL}, 590, 215},   /* a strip on each side */
    {{"h200", "f32", "NN", 1504, 136, 148, 1, NULL}, 30, 110},   /* a new shape of decoding */
    {{"a100", "f32", "NT", 130, 72, 181210, 1, NULL}, 990, 510}, /* deep */
    {{"h200", "tf32", "TN", 33, 67, 30771, 1, NULL},
     1500,
     530}, /* deep, with a pre-pass and strips */
    {{"h200", "tf32", "NN", 209, 112, 2752, 1, NULL}, 450, 120}, /* two ways of the left operand */
    {{"h200", "tf32", "NN", 11000, 11000, 11000, 1, NULL}, 730, 180}, /* many tiles */
    {{"h200", "bf16", "TT", 37, 175, 298996, 1, NULL}, 570, 200},     /* deep */
    {{"h200", "bf16", "NN", 4166, 8794, 7, 1, NULL}, 370, 50},        /* limited by memory */
    {{"h200", "bf16", "NN", 949, 136, 106, 1, NULL}, 20, 10},         /* a new shape of decoding */
    {{"h200", "bf16", "NN", 16, 64, 300, 128, NULL}, 20, 20},         /* attention of a decoder */
    {{"h200", "f64", "NN", 38, 195, 126532, 1, NULL}, 1060, 550},     /* deep */
    {{"h200", "f64", "NN", 8192, 8192, 512, 1, NULL}, 51, 62},
};

static void few_candidates_are_predicted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counted); i++) {
        const tgl_tuned *product = &counted[i].product;
        const tgl_shape s = shape_of_row(product);
        watched.tried = watched.predicted = 0;
        choose(product->chip, &s);
        if (watched.tried > counted[i].tried || watched.predicted > counted[i].predicted)
            fail_msg("%s %s %s %dx%dx%d: %d choices tried, %d candidates predicted", product->chip,
                     product->type, product->layout, product->m, product->n, product->k,
                     watched.tried, watched.predicted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_below_predictions),
        cmocka_unit_test(bounds_of_options_are_below_predictions),
        cmocka_unit_test(bounds_do_not_change_what_is_found),
        cmocka_unit_test(strips_fit_the_workspace),
        cmocka_unit_test(limits_of_workspace_hold),
        cmocka_unit_test(the_choice_is_the_best_of_all),
        cmocka_unit_test(few_candidates_are_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
