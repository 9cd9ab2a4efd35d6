/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products by kernels: on the simulator, which checks races and bounds, or on the device
 * that TEGULA_TEST_DEVICE names. With the argument "i/n" it takes the i-th of n parts of all cases,
 * otherwise a part: most of the time is that of compiling a kernel for each.
 */
#include "grouped_case.h"

#include "backend/backend.h"

/* Whether a run takes a case: with arguments its part of all, otherwise those that are chosen. */
static bool takes_all;

static bool takes(size_t number, bool is_chosen)
{
    return takes_all ? sweep_has((int)number) : is_chosen;
}

static grouped_case case_of(tgl_grouping grouping, const char *kernel, tgl_type type)
{
    const bool depth = grouping == TGL_GROUPED_DEPTH;
    return (grouped_case){.list.grouping = grouping,
                          .list.form = TGL_GROUP_SIZES,
                          .rows = depth ? 72 : 200,
                          .n = 72,
                          .k = depth ? 240 : 80,
                          .type = type,
                          .result = type,
                          .trans_a = depth,
                          .alpha = 1,
                          .has_poison = true,
                          .kernel = kernel};
}

static void run(void **state, const grouped_case *c)
{
    const tgl_status status = run_grouped(*state, c);
    if (status == TGL_OK) return;
    char why[400];
    tgl_last_error(why, sizeof why);
    fail_msg("%s, grouping %d: %s: %s", c->kernel != NULL ? c->kernel : "NULL",
             (int)c->list.grouping, tgl_status_name(status), why);
}

/* Groups of rows, also masked ones, with several kernels, types and layouts. D is stored by TMA, or
 * by threads in words or elements. */
static void groups_of_rows(void **state)
{
    static const struct {
        const char *kernel;
        tgl_type type;
    } rows[] = {{NULL, TGL_BF16},
                {"wgmma_128x64_s8", TGL_BF16},
                {"wgmma_128x128_alt", TGL_F16},
                {"wgmma_64x64:exchanged=1", TGL_BF16},
                {"wgmma_64x32:exchanged=1,cluster=2", TGL_F16},
                {"wgmma_64x64:columns=2", TGL_BF16},
                {"mma_64x64x128", TGL_F16},
                {"wgmma_64x64", TGL_I8},
                {"mma_64x64x128_f64", TGL_F64},
                {NULL, TGL_F32},
                {"simt_64x64x16", TGL_F32}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t way = 0; way < 2; way++) {
            if (!takes(2 * i + way, way == (i + i / 4) % 2)) continue;
            grouped_case c = case_of(way != 0 && i % 2 != 0 ? TGL_GROUPED_MASKED : TGL_GROUPED_ROWS,
                                     rows[i].kernel, rows[i].type);
            if (c.list.grouping == TGL_GROUPED_MASKED) c.rows = 136;
            if (c.list.grouping == TGL_GROUPED_ROWS && way == 0) c.list.form = TGL_GROUP_ENDS;
            c.trans_b = way != 0;
            c.beta = way != 0 && i % 3 == 0 ? -1 : 0;
            c.bias = way != 0 ? TGL_BIAS_COLUMN : TGL_BIAS_NONE;
            if (c.type == TGL_I8) c.result = TGL_I32;
            c.seed = 10 * i + (unsigned)way;
            draw_group_list(&c.list, 5, c.rows, c.seed);
            run(state, &c);
        }
}

/* Sizes of 0 and 1, one group that has all rows, and sizes that are not possible. */
static const int32_t adversarial[][4] = {{0, 0, 0, 0},
                                         {1, 1, 1, 1},
                                         {0, 0, 200, 0},
                                         {200, 0, 0, 0},
                                         {64, 64, 64, 8},
                                         {-5, 70, -1, 30},
                                         {150, 20, 180, 40},
                                         {0, 300, 500, 1000},
                                         {INT32_MAX, INT32_MAX, INT32_MIN, INT32_MAX},
                                         {INT32_MIN, 199, INT32_MAX, 7}};

static void adversarial_sizes(void **state)
{
    static const char *const kernels[] = {"wgmma_64x64", "wgmma_64x64:exchanged=1",
                                          "mma_64x64x128"};
    for (size_t i = 0; i < COUNT_OF(adversarial); i++)
        for (int way = 0; way < 6; way++) {
            if (way >= 3 && i % 2 != 0) continue; /* the same table: gemm/groups.cu */
            const tgl_grouping grouping = (tgl_grouping)(1 + way % 3);
            const char *kernel = kernels[(i + (size_t)way) % COUNT_OF(kernels)];
            grouped_case c = case_of(grouping, kernel, TGL_BF16);
            c.list.form = way < 3 ? TGL_GROUP_SIZES : TGL_GROUP_ENDS;
            if (grouping == TGL_GROUPED_MASKED) c.list.form = TGL_GROUP_SIZES;
            if (grouping == TGL_GROUPED_DEPTH) c.k = 200;
            c.has_poison = grouping != TGL_GROUPED_DEPTH;
            c.beta = way % 2;
            c.list.count = 4;
            memcpy(c.list.groups, adversarial[i], sizeof adversarial[i]);
            run(state, &c);
        }
}

/* More tiles than blocks, which take them from a counter (lib/wgmma_queue.h). A tile that is
 * computed twice adds C twice. Some groups have no step of K, and k = 0 has none in any tile. */
static void tiles_from_a_counter(void **state)
{
    static const int32_t sizes[] = {1, 300, 0, 40, 64, 0, 130, 65};
    static const struct {
        tgl_grouping grouping;
        const char *kernel;
        int64_t k;
    } rows[] = {{TGL_GROUPED_ROWS, "wgmma_64x64", 64},
                {TGL_GROUPED_ROWS, "wgmma_64x64", 0},
                {TGL_GROUPED_ROWS, "wgmma_64x32:exchanged=1", 128},
                {TGL_GROUPED_ROWS, "wgmma_128x128_alt", 64},
                {TGL_GROUPED_DEPTH, "wgmma_64x64", 600},
                {TGL_GROUPED_DEPTH, "wgmma_64x256_alt", 600}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        grouped_case c = case_of(rows[i].grouping, rows[i].kernel, TGL_BF16);
        if (rows[i].grouping == TGL_GROUPED_ROWS) c.rows = 600;
        c.n = 200;
        c.k = rows[i].k;
        c.beta = 1;
        c.blocks = 3;
        c.list.count = COUNT_OF(sizes);
        memcpy(c.list.groups, sizes, sizeof sizes);
        c.seed = i;
        run(state, &c);
    }
}

/* Groups whose rows of tiles are several bands, of equal and of different height, between others
 * that are one band. */
static void bands_of_groups(void **state)
{
    static const int32_t sizes[] = {70, 1000, 0, 3, 770, 64};
    static const char *const kernels[] = {"wgmma_64x64", "wgmma_64x64:columns=2"};
    for (int way = 0; way < 3; way++) {
        grouped_case c =
            case_of(way < 2 ? TGL_GROUPED_ROWS : TGL_GROUPED_MASKED, kernels[way % 2], TGL_BF16);
        c.rows = way < 2 ? 1907 : 1000;
        c.n = 200, c.k = 64;
        c.beta = 1;
        c.blocks = 6;
        c.list.count = COUNT_OF(sizes);
        memcpy(c.list.groups, sizes, sizeof sizes);
        c.seed = (unsigned)way;
        run(state, &c);
    }
}

/* More groups than gemm/groups.cu reads at once. */
static void many_groups(void **state)
{
    for (int way = 0; way < 4; way++) {
        grouped_case c =
            case_of(way < 2 ? TGL_GROUPED_ROWS : TGL_GROUPED_DEPTH, "mma_16x64x256_s2", TGL_BF16);
        c.list.form = (tgl_group_form)(way % 2);
        c.n = 8;
        if (c.list.grouping == TGL_GROUPED_DEPTH) c.rows = 16;
        draw_group_list(&c.list, 260, 200, (unsigned)way);
        run(state, &c);
    }
}

/* Changes a plan for `groups` groups as if a grid had room for `count` of them, so that launches
 * are repeated. */
static void shrink_grids(tgl_plan *plan, int groups, int count)
{
    for (int i = 0; i < plan->list.step_count; i++)
        for (int j = 0; j < plan->list.steps[i].launch_count; j++) {
            tgl_launch *launch = &plan->list.steps[i].launches[j];
            if (!launch->count_in_grid_z) continue;
            launch->repeats = (groups + count - 1) / count;
            launch->count = count;
            launch->last_count = groups - (int)(launch->repeats - 1) * count;
            launch->grid[2] = (unsigned)count;
            for (int p = 0; p < launch->patch_count; p++)
                launch->patches[p].step = launch->patches[p].step / groups * count;
        }
}

/* More groups along K than a grid has blocks: the launch is repeated. */
static void groups_of_several_launches(void **state)
{
    enum { GROUPS = 5, SIDE = 2 };
    static const int32_t ends[GROUPS] = {1, 2, 3, 4, 5};
    static const float A[GROUPS][SIDE] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}};
    float D[GROUPS][SIDE][SIDE];
    void *memory[3];
    tgl_device *dev = *state;
    tgl_plan *plan;
    const tgl_plan_options options = {.size = sizeof options, .kernel = "simt_32x32x16"};
    tgl_problem problem = problem_of(TGL_F32, SIDE, SIDE, GROUPS);
    problem.trans_a = TGL_TRANS;
    problem.batch = GROUPS;
    problem.stride_c = SIDE * SIDE;
    problem.grouping = TGL_GROUPED_DEPTH;
    const size_t sizes[] = {sizeof A, sizeof ends, sizeof D};
    for (int i = 0; i < 3; i++)
        assert_status(tgl_alloc(dev, sizes[i], &memory[i]), TGL_OK);
    assert_status(tgl_upload(dev, memory[0], A, sizeof A, NULL), TGL_OK);
    assert_status(tgl_upload(dev, memory[1], ends, sizeof ends, NULL), TGL_OK);
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    shrink_grids(plan, GROUPS, 2);
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = 1,
                                   .A = memory[0],
                                   .B = memory[0],
                                   .C = memory[2],
                                   .groups = memory[1]};
    assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
    assert_status(tgl_download(dev, D, memory[2], sizeof D, NULL), TGL_OK);
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < SIDE * SIDE; i++)
            assert_true(D[g][i / SIDE][i % SIDE] == A[g][i / SIDE] * A[g][i % SIDE]);
    tgl_plan_destroy(plan);
    for (int i = 0; i < 3; i++)
        tgl_free(dev, memory[i]);
}

/* A plan for more groups than a grid has blocks. */
static void many_groups_have_a_plan(void **state)
{
    static const char *const kernels[] = {"simt_32x32x16", "mma_16x64x256_s2"};
    static const tgl_type types[] = {TGL_F32, TGL_BF16};
    enum { GROUPS = 70000, GRID = 65535 };
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        tgl_plan *plan;
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernels[i]};
        tgl_problem problem = problem_of(types[i], 16, 16, GROUPS);
        problem.trans_a = TGL_TRANS;
        problem.batch = GROUPS;
        problem.stride_c = 256;
        problem.grouping = TGL_GROUPED_DEPTH;
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        const tgl_step *tiles = &plan->list.steps[plan->list.step_count - 1];
        assert_int_equal(tiles->launches[0].repeats, 2);
        assert_int_equal(tiles->launches[0].last_count, GROUPS - GRID);
        tgl_plan_destroy(plan);
    }
}

/* Groups along K begin at any K; the last step of a group ends within the next one. Every second
 * group has NaN. */
static void groups_of_depth(void **state)
{
    static const struct {
        const char *kernel;
        tgl_type type;
        bool trans_a, trans_b;
    } rows[] = {{NULL, TGL_BF16, true, false},
                {"wgmma_128x64_s8", TGL_BF16, true, false},
                {"wgmma_128x128_alt", TGL_F16, true, false},
                {"wgmma_64x48_s14", TGL_F16, true, false},
                {"wgmma_64x64:exchanged=1", TGL_BF16, true, false},
                {"wgmma_64x64:cluster=2,columns=2", TGL_F16, true, false},
                {"mma_64x64x128", TGL_F16, false, true},
                {"mma_64x64x128", TGL_BF16, true, true},
                {"mma_64x32x128_f64", TGL_F64, false, false},
                {NULL, TGL_F32, true, false},
                {"simt_64x64x16", TGL_F32, false, true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const int way = i % 2 != 0;
        if (!takes(i, i % 3 != 1)) continue;
        grouped_case c = case_of(TGL_GROUPED_DEPTH, rows[i].kernel, rows[i].type);
        c.trans_a = rows[i].trans_a;
        c.trans_b = rows[i].trans_b;
        c.list.form = (tgl_group_form)way;
        c.beta = way;
        if (way != 0) c.rows = 136;
        if (tgl_type_size(c.type) == 2) c.separate_d = true, c.result = TGL_F32;
        c.seed = 100 + i;
        draw_group_list(&c.list, 5, c.k, c.seed + (unsigned)way);
        run(state, &c);
    }
}

/* Unaligned matrices, a separate D, a residual, and an alpha of 0. */
static void other_operands(void **state)
{
    for (int way = 0; way < 6; way++) {
        grouped_case c =
            case_of(way % 2 != 0 ? TGL_GROUPED_DEPTH : TGL_GROUPED_ROWS, NULL, TGL_F16);
        if (way < 2) c.pad_a = 1, c.pad_b = 3, c.pad_c = 1;
        if (way == 2 || way == 3) c.separate_d = true, c.has_residual = true, c.has_relu = true;
        c.alpha = way < 4 ? 0.5 : 0;
        c.beta = 2;
        c.seed = (unsigned)way;
        draw_group_list(&c.list, 6, 190, c.seed);
        run(state, &c);
    }
}

/* Tiles of FP8 that begin in another group or in another tile, because they must lie inside of D:
 * only some of their spans are stored, with their own part of the residual. */
static void residuals_of_moved_tiles(void **state)
{
    static const char *const kernels[] = {"wgmma_256x128", "wgmma_128x128",
                                          "wgmma_256x128:columns=2"};
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        grouped_case c = case_of(TGL_GROUPED_ROWS, kernels[i], TGL_F8_E4M3);
        c.result = TGL_BF16;
        c.trans_b = c.has_residual = true;
        c.rows = 300, c.n = 192, c.k = 128;
        c.list.count = 2, c.list.groups[0] = 200, c.list.groups[1] = 100;
        c.seed = (unsigned)i;
        run(state, &c);
    }
}

/* TMA stores the boxes of 64 rows that lie in a group. Threads store the others, also in a tile
 * that has both. Tiles end in 1, 48, 64, 100, 128 and 200 rows of a group, and one group has only
 * whole tiles. */
static void boxes_of_groups(void **state)
{
    static const int32_t sizes[] = {256, 1, 64, 384, 100, 48, 200, 307};
    static const struct {
        const char *kernel;
        tgl_type type;
    } rows[] = {{"wgmma_128x64_s8", TGL_BF16},
                {"wgmma_128x256", TGL_BF16},
                {"wgmma_256x128", TGL_BF16},
                {"wgmma_256x128", TGL_F8_E4M3}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        grouped_case c = case_of(TGL_GROUPED_ROWS, rows[i].kernel, rows[i].type);
        c.result = TGL_BF16;
        c.trans_b = true;
        c.n = 256, c.k = 128;
        c.blocks = 3;
        c.list.count = COUNT_OF(sizes);
        memcpy(c.list.groups, sizes, sizeof sizes);
        c.rows = 0;
        for (size_t j = 0; j < COUNT_OF(sizes); j++)
            c.rows += sizes[j];
        c.seed = i;
        run(state, &c);
    }
}

/* Ends of groups within the 16 bytes of a copy: of groups along K, and of transposed rows. */
static void ends_within_a_copy(void **state)
{
    grouped_case depth = case_of(TGL_GROUPED_DEPTH, "mma_64x64x128", TGL_BF16);
    depth.trans_a = false, depth.trans_b = true;
    depth.separate_d = true, depth.result = TGL_F32;
    depth.rows = depth.n = depth.k = 64;
    depth.list.count = 1, depth.list.groups[0] = 5;
    run(state, &depth);
    grouped_case rows = case_of(TGL_GROUPED_MASKED, "simt_64x64x16", TGL_F32);
    rows.trans_a = true, rows.compute = TGL_COMPUTE_IEEE;
    rows.rows = 256, rows.n = rows.k = 64;
    rows.list.count = 2, rows.list.groups[0] = 130, rows.list.groups[1] = 0;
    run(state, &rows);
}

static void complex_types_are_refused(void **state)
{
    grouped_case c = case_of(TGL_GROUPED_ROWS, NULL, TGL_C64);
    c.list.count = 2, c.list.groups[0] = c.list.groups[1] = 20;
    assert_status(run_grouped(*state, &c), TGL_UNSUPPORTED);
}

/* The table of the groups needs workspace. */
static void no_workspace_is_refused(void **state)
{
    tgl_problem problem = problem_of(TGL_BF16, 64, 64, 64);
    problem.batch = 2;
    problem.stride_b = 64 * 64;
    problem.grouping = TGL_GROUPED_ROWS;
    tgl_plan_options options = {.size = sizeof options, .workspace_limit = -1};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
    options.workspace_limit = 1 << 20;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    assert_true(tgl_plan_workspace_size(plan) <= 1 << 20);
    tgl_plan_destroy(plan);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_rows),
        cmocka_unit_test(adversarial_sizes),
        cmocka_unit_test(tiles_from_a_counter),
        cmocka_unit_test(bands_of_groups),
        cmocka_unit_test(many_groups),
        cmocka_unit_test(groups_of_depth),
        cmocka_unit_test(groups_of_several_launches),
        cmocka_unit_test(many_groups_have_a_plan),
        cmocka_unit_test(other_operands),
        cmocka_unit_test(residuals_of_moved_tiles),
        cmocka_unit_test(boxes_of_groups),
        cmocka_unit_test(ends_within_a_copy),
        cmocka_unit_test(complex_types_are_refused),
        cmocka_unit_test(no_workspace_is_refused),
    };
    takes_all = argc > 1;
    sweep_arguments(argc, argv);
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
