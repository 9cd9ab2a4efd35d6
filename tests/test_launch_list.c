/* SPDX-License-Identifier: Apache-2.0
 *
 * Launch lists (src/plan/list_builder.c): building and checking.
 */
#include "small_launch.h"

/* ---- Building -------------------------------------------------------------------------------- */

/* A truncated list of macros would compile another kernel. */
static void macros_may_have_any_length(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    tgl_launch_list list;
    tgl_list_builder builder;
    char *expected = calloc(COUNT, 64), one[64];
    assert_non_null(expected);
    tgl_list_begin(&builder, &list);
    for (int i = 0; i < COUNT; i++) {
        const int64_t value = i % 3 == 0 ? INT64_MIN : i % 3 == 1 ? INT64_MAX : i;
        snprintf(one, sizeof one, "A_MACRO_NUMBER_%d", i);
        tgl_list_macro(&builder, one, value);
        sprintf(expected + strlen(expected), "%s%s=%lld", i > 0 ? " " : "", one, (long long)value);
    }
    const tgl_kernel *with = tgl_list_kernel(&builder, &kernel);
    const tgl_kernel *without = tgl_list_kernel(&builder, &kernel);
    assert_string_equal(with->macros, expected);
    assert_string_equal(without->macros, ""); /* the macros before belong to the first kernel */
    assert_status(tgl_list_end(&builder), TGL_OK);
    assert_int_equal(list.kernel_count, 2);
    tgl_list_free(&list);
    free(expected);
}

/* Texts are copied, and equal descriptions are one kernel. */
static void a_kernel_is_listed_once(void **state)
{
    (void)state;
    tgl_launch_list list;
    tgl_list_builder builder;
    char name[] = "a name", file[] = "a file";
    tgl_kernel own = kernel;
    own.name = name;
    own.file = file;
    tgl_list_begin(&builder, &list);
    tgl_list_macro(&builder, "BM", 8);
    const tgl_kernel *first = tgl_list_kernel(&builder, &own);
    tgl_list_macro(&builder, "BM", 8);
    assert_ptr_equal(tgl_list_kernel(&builder, &own), first);
    tgl_list_macro(&builder, "BM", 16);
    assert_ptr_not_equal(tgl_list_kernel(&builder, &own), first);
    tgl_kernel others[] = {own, own, own, own};
    others[0].file = "another file";
    others[1].symbol = "another symbol";
    others[2].expression = "acc + c";
    others[3].source = "its text";
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        tgl_list_macro(&builder, "BM", 8);
        assert_ptr_not_equal(tgl_list_kernel(&builder, &others[i]), first);
    }
    memset(name, 'x', sizeof name - 1);
    memset(file, 'x', sizeof file - 1);
    assert_string_equal(first->name, "a name");
    assert_string_equal(first->file, "a file");
    assert_int_equal(list.kernel_count, 6);
    assert_status(tgl_list_end(&builder), TGL_OK);
    tgl_list_free(&list);
    assert_int_equal(list.kernel_count, 0);
    tgl_list_free(&list); /* freeing twice is allowed */
}

/* The workspace has the counters and then the scratch. Each reservation is aligned. */
static void workspace_is_aligned(void **state)
{
    (void)state;
    tgl_launch_list list;
    tgl_list_builder builder;
    tgl_list_begin(&builder, &list);
    assert_int_equal(tgl_list_scratch(&builder, 1), 0);
    assert_int_equal(tgl_list_scratch(&builder, 256), 256);
    assert_int_equal(tgl_list_scratch(&builder, 257), 512);
    assert_int_equal(tgl_list_scratch(&builder, 0), 1024);
    assert_int_equal(tgl_list_counters(&builder, 4), 0);
    assert_int_equal(tgl_list_counters(&builder, 4), 256);
    assert_status(tgl_list_end(&builder), TGL_OK);
    assert_int_equal(list.scratch_bytes, 1024);
    assert_int_equal(list.counter_bytes, 512);
    assert_int_equal(tgl_list_workspace(&list), 1536);
    tgl_list_free(&list);
}

static void too_much_workspace_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        tgl_launch_list list;
        tgl_list_builder builder;
        tgl_list_begin(&builder, &list);
        tgl_list_step(&builder, "tiles");
        if (i % 2 == 0)
            tgl_list_scratch(&builder, i == 0 ? INT64_MAX : -1);
        else
            tgl_list_counters(&builder, i == 1 ? INT64_MAX : -1);
        forget_error();
        const tgl_status status = tgl_list_end(&builder);
        assert_true(status == TGL_TOO_LARGE || status == TGL_BAD_ARGUMENT);
        assert_int_equal(list.step_count, 0);
    }
}

/* After a failure, later calls do nothing, and the error message is kept. */
static void failures_stick(void **state)
{
    (void)state;
    char before[200], after[200];
    tgl_launch_list list;
    tgl_list_builder builder;
    tgl_list_begin(&builder, &list);
    const tgl_kernel *own = tgl_list_kernel(&builder, &kernel);
    const tgl_launch launch = launch_for(own);
    const tgl_patch patch = {.value = TGL_VALUE_COUNT, .at = 0};
    const tgl_tensor tensor = {.rank = 1};
    const tgl_flag flag = {.mask = 1};
    forget_error();
    add_launch(&builder, &launch); /* without a step */
    assert_new_sentence();
    tgl_last_error(before, sizeof before);
    assert_true(builder.status != TGL_OK);
    const tgl_status stuck = builder.status;
    tgl_list_step(&builder, "tiles");
    tgl_list_macro(&builder, "BM", 1);
    assert_null(tgl_list_kernel(&builder, &kernel));
    add_launch(&builder, &launch);
    tgl_list_patch(&builder, &patch);
    tgl_list_tensor(&builder, &tensor);
    tgl_list_flag(&builder, &flag);
    assert_status(tgl_list_end(&builder), stuck);
    tgl_last_error(after, sizeof after);
    assert_string_equal(after, before);
    assert_int_equal(list.step_count, 0);
    assert_int_equal(list.kernel_count, 0);
    assert_null(list.steps);
}

static void a_patch_needs_a_launch(void **state)
{
    (void)state;
    const tgl_patch patch = {.value = TGL_VALUE_COUNT, .at = 0};
    for (int steps = 0; steps <= 1; steps++) {
        tgl_launch_list list;
        tgl_list_builder builder;
        tgl_list_begin(&builder, &list);
        if (steps > 0) tgl_list_step(&builder, "tiles");
        tgl_list_patch(&builder, &patch);
        assert_status(tgl_list_end(&builder), TGL_BAD_ARGUMENT);
    }
}

/* ---- Checking -------------------------------------------------------------------------------- */

static void no_change(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)launch, (void)builder;
}

static void wide_x(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)builder;
    launch->grid[0] = TGL_GRID_X_MAX;
}

static void too_wide_x(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)builder;
    launch->grid[0] = (unsigned)TGL_GRID_X_MAX + 1;
}

static void too_wide_y(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)builder;
    launch->grid[1] = TGL_GRID_YZ_MAX + 1;
}

static void too_wide_z(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)builder;
    launch->grid[2] = TGL_GRID_YZ_MAX + 1;
}

static void alignment_of_12(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)builder;
    launch->conditions[launch->condition_count++] =
        (tgl_condition){.kind = TGL_IF_ALIGNED, .operand = TGL_AT_A, .alignment = 12};
}

static void alignment_of_0(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)builder;
    launch->conditions[launch->condition_count++] =
        (tgl_condition){.kind = TGL_IF_MISALIGNED, .operand = TGL_AT_A, .alignment = 0};
}

static void alignment_of_16(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)builder;
    launch->conditions[launch->condition_count++] =
        (tgl_condition){.kind = TGL_IF_ALIGNED, .operand = TGL_AT_A, .alignment = 16};
}

static void a_flag_that_is_not_there(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)builder;
    launch->flag = 0;
}

/* An error: the flag is set by the step that tests it. */
static void a_flag_set_too_late(tgl_launch *launch, tgl_list_builder *builder)
{
    const tgl_flag flag = {.offset = 0, .mask = 1, .set_by = 0, .cleared_by = 0};
    tgl_list_counters(builder, 4);
    launch->flag = tgl_list_flag(builder, &flag);
}

static void a_cluster_beside_the_grid(tgl_launch *launch, tgl_list_builder *builder)
{
    (void)builder;
    launch->cluster[0] = 3; /* of 4 blocks */
}

static void lists_are_checked(void **state)
{
    (void)state;
    static const struct {
        void (*change)(tgl_launch *, tgl_list_builder *);
        tgl_status status;
    } changes[] = {
        {no_change, TGL_OK},
        {wide_x, TGL_OK},
        {alignment_of_16, TGL_OK},
        {too_wide_x, TGL_GRID_TOO_LARGE},
        {too_wide_y, TGL_GRID_TOO_LARGE},
        {too_wide_z, TGL_GRID_TOO_LARGE},
        {alignment_of_12, TGL_BAD_ARGUMENT},
        {alignment_of_0, TGL_BAD_ARGUMENT},
        {a_flag_that_is_not_there, TGL_BAD_ARGUMENT},
        {a_flag_set_too_late, TGL_BAD_ARGUMENT},
        {a_cluster_beside_the_grid, TGL_BAD_ARGUMENT},
    };
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        tgl_launch_list list;
        forget_error();
        const tgl_status status = build_list(changes[i].change, &list);
        if (status != changes[i].status) fail_msg("change %zu: %s", i, tgl_status_name(status));
        if (status != TGL_OK) {
            assert_new_sentence();
            assert_int_equal(list.step_count, 0);
        }
        tgl_list_free(&list);
    }
}

static tgl_status build_with_patch(const tgl_patch *patch)
{
    tgl_launch_list list;
    tgl_list_builder builder;
    tgl_list_begin(&builder, &list);
    tgl_list_step(&builder, "tiles");
    tgl_list_scratch(&builder, 1000);
    tgl_list_keep(&builder, TGL_AT_B, 500);
    const tgl_launch launch = launch_for(tgl_list_kernel(&builder, &kernel));
    add_launch(&builder, &launch);
    tgl_list_patch(&builder, patch);
    const tgl_status status = tgl_list_end(&builder);
    tgl_list_free(&list);
    return status;
}

static void patches_lie_in_the_arguments(void **state)
{
    (void)state;
    const int end = sizeof(struct arguments);
    const struct {
        tgl_patch patch;
        tgl_status status;
    } patches[] = {
        {{.value = TGL_VALUE_OPERAND, .index = TGL_AT_A, .at = 0}, TGL_OK},
        {{.value = TGL_VALUE_OPERAND, .index = TGL_AT_A, .at = end - 8}, TGL_OK},
        {{.value = TGL_VALUE_OPERAND, .index = TGL_AT_A, .at = end - 4}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_OPERAND, .index = TGL_AT_A, .at = end}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_OPERAND, .index = TGL_AT_A, .at = -8}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_OPERAND, .index = TGL_OPERANDS, .at = 0}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_OPERAND, .index = -1, .at = 0}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_COUNT, .at = end - 4}, TGL_OK},
        {{.value = TGL_VALUE_COUNT, .at = end - 3}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_ALPHA_F64, .at = end - 4}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_TENSOR_MAP, .index = 0, .at = 0}, TGL_BAD_ARGUMENT}, /* no such map */
        {{.value = TGL_VALUE_SCRATCH, .at = 8, .offset = 1000}, TGL_OK},
        {{.value = TGL_VALUE_SCRATCH, .at = 8, .offset = 5000}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_COUNTERS, .at = 8, .offset = 4}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_KEPT, .index = TGL_AT_B, .at = 8, .offset = 496}, TGL_OK},
        {{.value = TGL_VALUE_KEPT, .index = TGL_AT_B, .at = 8, .offset = 500}, TGL_BAD_ARGUMENT},
        {{.value = TGL_VALUE_KEPT, .index = TGL_AT_A, .at = 8}, TGL_BAD_ARGUMENT}, /* has none */
        {{.value = TGL_VALUE_KEPT, .index = TGL_AT_C, .at = 8}, TGL_BAD_ARGUMENT},
        {{.value = (tgl_value)99, .at = 0}, TGL_BAD_ARGUMENT},
    };
    for (size_t i = 0; i < COUNT_OF(patches); i++) {
        const tgl_status status = build_with_patch(&patches[i].patch);
        if (status != patches[i].status) fail_msg("patch %zu: %s", i, tgl_status_name(status));
    }
}

/* A flag that an earlier step sets is valid. */
static void flags_are_set_before_they_are_looked_at(void **state)
{
    (void)state;
    tgl_launch_list list;
    tgl_list_builder builder;
    tgl_list_begin(&builder, &list);
    const tgl_kernel *own = tgl_list_kernel(&builder, &kernel);
    const tgl_flag flag = {
        .offset = tgl_list_counters(&builder, 4), .mask = 1, .set_by = 0, .cleared_by = 1};
    tgl_launch launch = launch_for(own);
    tgl_list_step(&builder, "scan");
    add_launch(&builder, &launch);
    tgl_list_step(&builder, "tiles");
    launch.flag = tgl_list_flag(&builder, &flag);
    assert_int_equal(launch.flag, 0);
    add_launch(&builder, &launch);
    assert_status(tgl_list_end(&builder), TGL_OK);
    assert_int_equal(list.flag_count, 1);
    tgl_list_free(&list);
}

static void tensors_are_checked(void **state)
{
    (void)state;
    const tgl_tensor fine = {.base = TGL_VALUE_OPERAND,
                             .operand = TGL_AT_A,
                             .type = TGL_F32,
                             .rank = 2,
                             .size = {100, 50},
                             .stride = {4, 400},
                             .box = {32, 8}};
    tgl_tensor tensors[] = {fine, fine, fine, fine, fine, fine};
    tensors[1].rank = 0;
    tensors[2].rank = TGL_TENSOR_RANK_MAX + 1;
    tensors[3].stride[1] = 404; /* not a multiple of 16 */
    tensors[4].box[0] = 257;
    tensors[5].size[1] = 0;
    for (size_t i = 0; i < COUNT_OF(tensors); i++) {
        tgl_launch_list list;
        tgl_list_builder builder;
        tgl_list_begin(&builder, &list);
        assert_int_equal(tgl_list_tensor(&builder, &tensors[i]), 0);
        assert_status(tgl_list_end(&builder), i == 0 ? TGL_OK : TGL_BAD_ARGUMENT);
        tgl_list_free(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(macros_may_have_any_length),
        cmocka_unit_test(a_kernel_is_listed_once),
        cmocka_unit_test(workspace_is_aligned),
        cmocka_unit_test(too_much_workspace_is_refused),
        cmocka_unit_test(failures_stick),
        cmocka_unit_test(a_patch_needs_a_launch),
        cmocka_unit_test(lists_are_checked),
        cmocka_unit_test(patches_lie_in_the_arguments),
        cmocka_unit_test(flags_are_set_before_they_are_looked_at),
        cmocka_unit_test(tensors_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
