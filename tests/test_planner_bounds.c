/* SPDX-License-Identifier: Apache-2.0
 *
 * The lower bounds by which the planner leaves configurations out: they are below the predictions,
 * and what they exclude is not better than the choice.
 */
#include "plan_shape.h"

static int64_t random_size(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
    return 1 + (int64_t)((*seed >> 33) % ((uint64_t)2 << (*seed >> 60)));
}

/* A product of random size; every second one has 16-bit elements, every fourth is TF32. */
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
    return s;
}

/* The prediction for a choice, with its options fixed, is not below the bounds. */
static void check_bounds(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice)
{
    static const double ROUNDING = 1e-9;
    const tgl_family *family = choice->family;
    tgl_candidate c;
    if (family->unsupported_reason(s, chip) != NULL) return;
    tgl_planner_best_of(chip, s, choice, 0, TGL_WORKSPACE_MAX, &c);
    if (c.rejected != NULL) return;
    tgl_choice plain = *choice;
    for (int i = 0; i < TGL_OPTIONS_MAX; i++)
        plain.option[i] = TGL_UNSET;
    const double least = family->least_seconds != NULL ? family->least_seconds(chip, s, &plain) : 0;
    const double of_options =
        family->least_of_options != NULL ? family->least_of_options(chip, s, &c.choice) : 0;
    if (least > c.seconds * (1 + ROUNDING) || of_options > c.seconds * (1 + ROUNDING))
        fail_msg("%s, m=%lld n=%lld k=%lld, splits %d: %g, bounds %g and %g",
                 tgl_choice_name(choice), (long long)s->m, (long long)s->n, (long long)s->k,
                 c.splits, c.seconds, least, of_options);
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
                choice.option[0] = splits[x]; /* of the families with bounds: splits */
                check_bounds(chip, &s, &choice);
                const bool exchanges = strcmp(choice.family->name, "wgmma") == 0;
                choice.option[1] = exchanges ? 1 : TGL_UNSET;
                if (exchanges) check_bounds(chip, &s, &choice);
                choice.option[1] = TGL_UNSET;
            }
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_below_predictions),
        cmocka_unit_test(the_choice_is_the_best_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
