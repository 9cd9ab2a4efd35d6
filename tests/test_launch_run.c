/* SPDX-License-Identifier: Apache-2.0
 *
 * Launch lists (src/plan/launch_fill.c): the choice between alternatives, and the arguments of a
 * run.
 */
#include "small_launch.h"

/* ---- Where matrices begin -------------------------------------------------------------------- */

/* The tensor maps of the launches that a run takes need addresses that are multiples of 16. */
static void maps_need_aligned_operands(void **state)
{
    (void)state;
    static tgl_tensor maps[] = {
        {.base = TGL_VALUE_OPERAND, .operand = TGL_AT_A, .offset = 8},
        {.base = TGL_VALUE_SCRATCH, .operand = TGL_AT_B},
        {.base = TGL_VALUE_OPERAND, .operand = TGL_AT_C},
    };
    static tgl_patch of_operands[] = {{.value = TGL_VALUE_OPERAND, .index = TGL_AT_B},
                                      {.value = TGL_VALUE_TENSOR_MAP, .index = 1},
                                      {.value = TGL_VALUE_TENSOR_MAP, .index = 0}},
                     of_c[] = {{.value = TGL_VALUE_TENSOR_MAP, .index = 2}};
    static tgl_launch tiles[] = {{.patches = of_operands, .patch_count = 3}},
                      edges[] = {{.patches = of_c,
                                  .patch_count = 1,
                                  .conditions = {{.kind = TGL_IF_ALIGNED,
                                                  .operand = TGL_AT_C,
                                                  .alignment = 16}},
                                  .condition_count = 1},
                                 {.patch_count = 0}};
    static tgl_step steps[] = {{.launches = tiles, .launch_count = 1},
                               {.launches = edges, .launch_count = 2}};
    const tgl_launch_list list = {.maps = maps, .map_count = 3, .steps = steps, .step_count = 2};
    static const struct {
        uintptr_t a, b, c;
        bool takes;
    } cases[] = {{8, 16, 16, true},   {24, 2, 16, true}, {16, 16, 16, false},
                 {10, 16, 16, false}, {0, 2, 16, true},  {8, 16, 2, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tgl_run run = {.alpha = 1, .has_product = true};
        run.at[TGL_AT_A] = address(cases[i].a);
        run.at[TGL_AT_B] = address(cases[i].b);
        run.at[TGL_AT_C] = address(cases[i].c);
        assert_int_equal(tgl_list_takes(&list, &run), cases[i].takes);
    }
    edges[0].condition_count = 0;
    tgl_run run = {.alpha = 1, .has_product = true};
    run.at[TGL_AT_C] = address(2);
    assert_false(tgl_list_takes(&list, &run));
    maps[2].is_optional = true;
    assert_true(tgl_list_takes(&list, &run));
}

/* ---- Alternatives ---------------------------------------------------------------------------- */

/* One launch for each list of conditions; its grid identifies it. */
static tgl_launch_list alternatives(const tgl_condition (*conditions)[TGL_CONDITIONS_MAX],
                                    const int *counts, int launches)
{
    tgl_launch_list list;
    tgl_list_builder builder;
    tgl_list_begin(&builder, &list);
    tgl_list_step(&builder, "tiles");
    const tgl_kernel *own = tgl_list_kernel(&builder, &kernel);
    for (int i = 0; i < launches; i++) {
        tgl_launch launch = launch_for(own);
        launch.grid[0] = (unsigned)(i + 1);
        launch.condition_count = counts[i];
        memcpy(launch.conditions, conditions[i], sizeof launch.conditions);
        add_launch(&builder, &launch);
    }
    assert_status(tgl_list_end(&builder), TGL_OK);
    return list;
}

/* The number of the chosen alternative, from 1; 0: the step is skipped. */
static unsigned chosen(const tgl_launch_list *list, const tgl_run *run)
{
    const tgl_launch *launch = tgl_step_choose(&list->steps[0], run);
    return launch != NULL ? launch->grid[0] : 0;
}

/* The launch of a part of D needs an aligned address of the part's first element. */
static void an_alignment_is_that_of_the_part(void **state)
{
    (void)state;
    static const tgl_condition conditions[][TGL_CONDITIONS_MAX] = {
        {{.kind = TGL_IF_ALIGNED, .operand = TGL_AT_A, .alignment = 16, .offset = 4}},
        {{.kind = TGL_IF_PRODUCT}},
    };
    static const int counts[] = {1, 1};
    tgl_launch_list list = alternatives(conditions, counts, 2);
    static const struct {
        uintptr_t a;
        unsigned launch;
    } runs[] = {{12, 1}, {28, 1}, {16, 2}, {0, 1}};
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        tgl_run run = run_of(true, 0);
        run.at[TGL_AT_A] = address(runs[i].a);
        assert_int_equal(chosen(&list, &run), runs[i].launch);
    }
    tgl_list_free(&list);
}

static void the_first_whose_conditions_hold_is_chosen(void **state)
{
    (void)state;
    static const tgl_condition conditions[][TGL_CONDITIONS_MAX] = {
        {{.kind = TGL_IF_NO_PRODUCT}},
        {{.kind = TGL_IF_ALIGNED, .operand = TGL_AT_A, .alignment = 16},
         {.kind = TGL_IF_ALIGNED, .operand = TGL_AT_B, .alignment = 8}},
        {{.kind = TGL_IF_MISALIGNED, .operand = TGL_AT_A, .alignment = 16},
         {.kind = TGL_IF_ALIGNED, .operand = TGL_AT_A, .alignment = 4}},
        {{.kind = TGL_IF_PRODUCT}},
    };
    static const int counts[] = {1, 2, 2, 1};
    tgl_launch_list list = alternatives(conditions, counts, 4);
    static const struct {
        bool has_product;
        uintptr_t a, b;
        unsigned launch;
    } runs[] = {
        {false, 16, 16, 1}, {true, 16, 8, 2}, {true, 32, 24, 2}, {true, 16, 4, 4}, {true, 8, 8, 3},
        {true, 4, 4, 3},    {true, 2, 8, 4},  {true, 0, 0, 2}, /* NULL is aligned */
    };
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        tgl_run run = run_of(runs[i].has_product, 0);
        run.at[TGL_AT_A] = address(runs[i].a);
        run.at[TGL_AT_B] = address(runs[i].b);
        assert_int_equal(chosen(&list, &run), runs[i].launch);
    }
    tgl_list_free(&list);
}

static void a_step_may_be_left_out(void **state)
{
    (void)state;
    static const tgl_condition conditions[][TGL_CONDITIONS_MAX] = {{{.kind = TGL_IF_PRODUCT}}};
    static const int counts[] = {1};
    tgl_launch_list list = alternatives(conditions, counts, 1);
    const tgl_run with = run_of(true, 0), without = run_of(false, 0);
    assert_int_equal(chosen(&list, &with), 1);
    assert_int_equal(chosen(&list, &without), 0);
    tgl_list_free(&list);
    tgl_list_builder builder;
    tgl_list_begin(&builder, &list);
    tgl_list_step(&builder, "nothing");
    assert_status(tgl_list_end(&builder), TGL_OK);
    assert_int_equal(chosen(&list, &with), 0);
    tgl_list_free(&list);
}

static void launches_without_conditions_always_run(void **state)
{
    (void)state;
    static const tgl_condition conditions[2][TGL_CONDITIONS_MAX];
    static const int counts[] = {0, 0};
    tgl_launch_list list = alternatives(conditions, counts, 2);
    for (int i = 0; i < 4; i++) {
        const tgl_run run = run_of(i % 2, i);
        assert_int_equal(chosen(&list, &run), 1);
    }
    tgl_list_free(&list);
}

/* ---- Arguments of a run ---------------------------------------------------------------------- */

/* "Encodes" a map as its index and the address. */
static tgl_status encode(void *context, const tgl_tensor *tensor, int index, const void *address,
                         void *to)
{
    ++*(int *)context;
    memset(to, 0, 128);
    memcpy(to, &address, sizeof address);
    ((unsigned char *)to)[100] = (unsigned char)index;
    return tensor->rank == 2 ? TGL_OK : tgl_fail(TGL_DRIVER, "no such tensor");
}

#define AT(member) (int)offsetof(struct arguments, member)
static const tgl_patch all_patches[] = {
    {.value = TGL_VALUE_OPERAND, .index = TGL_AT_A, .at = AT(A), .offset = 40, .step = 1000},
    {.value = TGL_VALUE_SCRATCH, .at = AT(scratch), .offset = 256, .step = -8},
    {.value = TGL_VALUE_COUNTERS, .at = AT(counters), .offset = 4},
    {.value = TGL_VALUE_ALPHA_F32, .at = AT(alpha)},
    {.value = TGL_VALUE_BETA_F32, .at = AT(beta)},
    {.value = TGL_VALUE_ALPHA_F64, .at = AT(alpha_f64)},
    {.value = TGL_VALUE_BETA_F64, .at = AT(beta_f64)},
    {.value = TGL_VALUE_COUNT, .at = AT(count)},
    {.value = TGL_VALUE_TENSOR_MAP, .index = 1, .at = AT(map)},
};

/* A batch of 2 * 10 + 3 problems. */
static tgl_launch_list list_with_all_patches(void)
{
    static const tgl_tensor maps[] = {
        {.base = TGL_VALUE_SCRATCH,
         .type = TGL_F32,
         .rank = 1,
         .size = {8},
         .stride = {4},
         .box = {8}},
        {.base = TGL_VALUE_OPERAND,
         .operand = TGL_AT_B,
         .offset = 64,
         .type = TGL_F32,
         .rank = 2,
         .size = {8, 8},
         .stride = {4, 32},
         .box = {8, 8}},
    };
    tgl_launch_list list;
    tgl_list_builder builder;
    tgl_list_begin(&builder, &list);
    tgl_list_step(&builder, "tiles");
    tgl_list_scratch(&builder, 1024);
    tgl_list_counters(&builder, 256);
    for (size_t i = 0; i < COUNT_OF(maps); i++)
        assert_int_equal(tgl_list_tensor(&builder, &maps[i]), i);
    tgl_launch launch = launch_for(tgl_list_kernel(&builder, &kernel));
    launch.repeats = 3;
    launch.count = 10;
    launch.last_count = 3;
    add_launch(&builder, &launch);
    for (size_t i = 0; i < COUNT_OF(all_patches); i++)
        tgl_list_patch(&builder, &all_patches[i]);
    assert_status(tgl_list_end(&builder), TGL_OK);
    return list;
}

static void patches_are_filled_in(void **state)
{
    (void)state;
    tgl_launch_list list = list_with_all_patches();
    const tgl_launch *launch = &list.steps[0].launches[0];
    char *counters = address(0x10000), *scratch = address(0x20000);
    tgl_run run = run_of(true, 0);
    run.alpha = 1.0 / 3;
    run.beta = -2;
    for (int repeat = 0; repeat < 3; repeat++) {
        struct arguments found;
        const void *address;
        int encoded = 0;
        assert_status(tgl_launch_fill(&list, launch, &run, counters, scratch, repeat, encode,
                                      &encoded, (unsigned char *)&found),
                      TGL_OK);
        assert_ptr_equal(found.A, (const char *)run.at[TGL_AT_A] + 40 + repeat * 1000);
        assert_ptr_equal(found.scratch, scratch + 256 - 8 * repeat);
        assert_ptr_equal(found.counters, counters + 4);
        assert_true(found.alpha == (float)(1.0 / 3) && found.beta == -2);
        assert_true(found.alpha_f64 == 1.0 / 3 && found.beta_f64 == -2);
        assert_int_equal(found.count, repeat < 2 ? 10 : 3);
        assert_int_equal(tgl_launch_count(launch, repeat), repeat < 2 ? 10 : 3);
        assert_int_equal(found.constant, 7);
        memcpy(&address, found.map, sizeof address);
        assert_ptr_equal(address, (const char *)run.at[TGL_AT_B] + 64);
        assert_int_equal(found.map[100], 1);
        assert_int_equal(encoded, 1);
    }
    tgl_list_free(&list);
}

/* The memory of a prepared operand is a block at the end of the scratch, unless the run has the
 * block of a prepared operand. */
static void kept_blocks(void **state)
{
    (void)state;
    static const tgl_condition conditions[2] = {{.kind = TGL_IF_NOT_KEPT, .operand = TGL_AT_A},
                                                {.kind = TGL_IF_NOT_KEPT, .operand = TGL_AT_B}};
    tgl_launch_list list;
    tgl_list_builder builder;
    tgl_list_begin(&builder, &list);
    tgl_list_keep(&builder, TGL_AT_A, 1000);
    tgl_list_keep(&builder, TGL_AT_B, 1000);
    tgl_list_step(&builder, "words");
    tgl_launch launch = launch_for(tgl_list_kernel(&builder, &kernel));
    launch.condition_count = 1;
    launch.part.m = 0; /* writes only workspace */
    for (int i = 0; i < 2; i++) {
        launch.conditions[0] = conditions[i];
        add_launch(&builder, &launch);
        tgl_list_patch_value(&builder, TGL_VALUE_KEPT, i, (size_t)AT(scratch), 16);
    }
    tgl_list_step(&builder, "tiles");
    launch.condition_count = 0;
    launch.part = (tgl_rectangle){0, 0, 1, 1};
    add_launch(&builder, &launch);
    assert_status(tgl_list_end(&builder), TGL_OK);

    struct arguments found;
    char *scratch = address(0x20000), *kept = address(0x30000);
    tgl_run run = run_of(true, 0);
    const tgl_step *words = &list.steps[0], *tiles = &list.steps[1];
    const tgl_launch *of_a = &words->launches[0], *of_b = &words->launches[1];
    assert_ptr_equal(tgl_step_choose(words, &run), of_a);
    tgl_launch_fill(&list, of_b, &run, NULL, scratch, 0, NULL, NULL, (unsigned char *)&found);
    assert_ptr_equal(found.scratch, scratch + 1024 + 16);
    assert_int_equal(tgl_list_scratch_of(&list, &run), 2048);
    assert_int_equal(tgl_list_workspace(&list), 2048);
    run.kept[TGL_AT_A] = kept;
    assert_ptr_equal(tgl_step_choose(words, &run), of_b);
    tgl_launch_fill(&list, of_b, &run, NULL, scratch, 0, NULL, NULL, (unsigned char *)&found);
    assert_ptr_equal(found.scratch, scratch + 16);
    assert_int_equal(tgl_list_scratch_of(&list, &run), 1024);
    tgl_launch_fill(&list, of_a, &run, NULL, scratch, 0, NULL, NULL, (unsigned char *)&found);
    assert_ptr_equal(found.scratch, kept + 16);
    run.is_preparation = true; /* of A, the first */
    assert_int_equal(tgl_list_scratch_of(&list, &run), 0);
    assert_ptr_equal(tgl_step_choose(words, &run), of_a);
    assert_null(tgl_step_choose(tiles, &run));
    run.prepares = TGL_AT_B;
    assert_ptr_equal(tgl_step_choose(words, &run), of_b);
    tgl_list_free(&list);
}

/* NULL stays NULL with any offset; without a product alpha is 0, even if it was NaN. */
static void what_is_not_used_is_null_or_zero(void **state)
{
    (void)state;
    tgl_launch_list list = list_with_all_patches();
    const tgl_launch *launch = &list.steps[0].launches[0];
    struct arguments found;
    int encoded = 0;
    tgl_run run = run_of(false, 0);
    run.alpha = (double)NAN;
    run.at[TGL_AT_A] = NULL;
    assert_status(tgl_launch_fill(&list, launch, &run, NULL, NULL, 2, encode, &encoded,
                                  (unsigned char *)&found),
                  TGL_OK);
    assert_null(found.A);
    assert_null(found.scratch);
    assert_null(found.counters);
    assert_true(found.alpha == 0 && found.alpha_f64 == 0);
    assert_true(found.beta == 1 && found.beta_f64 == 1);
    tgl_list_free(&list);
}

/* If the encoder fails, so does the run, and the list, which runs share, is not changed. */
static void an_encoder_s_failure_is_told(void **state)
{
    (void)state;
    tgl_launch_list list = list_with_all_patches();
    tgl_launch *launch = &list.steps[0].launches[0];
    struct arguments found, before;
    int encoded = 0;
    const tgl_run run = run_of(true, 0);
    memcpy(&before, launch->arguments, sizeof before);
    launch->patches[launch->patch_count - 1].index =
        0; /* its rank is 1, for which encode() fails */
    assert_status(tgl_launch_fill(&list, launch, &run, NULL, NULL, 0, encode, &encoded,
                                  (unsigned char *)&found),
                  TGL_DRIVER);
    assert_sentence("no such tensor");
    assert_memory_equal(launch->arguments, &before, sizeof before);
    tgl_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_alignment_is_that_of_the_part),
        cmocka_unit_test(the_first_whose_conditions_hold_is_chosen),
        cmocka_unit_test(a_step_may_be_left_out),
        cmocka_unit_test(launches_without_conditions_always_run),
        cmocka_unit_test(maps_need_aligned_operands),
        cmocka_unit_test(kept_blocks),
        cmocka_unit_test(patches_are_filled_in),
        cmocka_unit_test(what_is_not_used_is_null_or_zero),
        cmocka_unit_test(an_encoder_s_failure_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
