/* SPDX-License-Identifier: Apache-2.0
 *
 * How threads share a product on the cpu device (src/cpu/plan/cpu_sharing.c, block_planner.c).
 */
#include "cpu_plan_case.h"

#include "backend/backend.h"
#include "cpu/plan/word_plan.h"
#include "cpu/run/cpu_state.h"

static void threads_share_what_there_is(void **state)
{
    (void)state;
    tgl_shape shape = shape_of(2000, 2000, 2000, false, false);
    cpu_plan plan = plan_of(&shape, 8);
    assert_int_equal(plan.sharing, CPU_SHARE_C);
    assert_int_equal(plan.grid_m * plan.grid_n % 8, 0);
    plan = plan_of(&shape, 1);
    assert_int_equal(plan.threads, 1);
    assert_int_equal(plan.grid_m * plan.grid_n, 1); /* nothing to share */
    assert_int_equal(plan_of(&shape, 3).threads, 3);

    shape = shape_of(32, 32, 100000, false, false);
    plan = plan_of(&shape, 8);
    assert_int_equal(plan.sharing, CPU_SHARE_K);
    assert_int_equal(plan.parts, plan.threads);

    for (int64_t n = 50; n <= 80; n += 30) {
        shape = shape_of(n, n, n, false, false);
        shape.batch = 1000;
        plan = plan_of(&shape, 8);
        assert_int_equal(plan.sharing, CPU_SHARE_BATCH);
        assert_int_equal(plan.threads, 8);
    }
    shape = shape_of(4, 4, 4, false, false);
    shape.batch = 500; /* the calls count, not the 64 multiply-adds of each */
    assert_int_equal(plan_of(&shape, 8).threads, 5);
    shape = shape_of(32, 32, 32, false, false);
    shape.batch = 5;
    assert_int_equal(plan_of(&shape, 8).threads, 1);
    shape.batch = 9;
    assert_int_equal(plan_of(&shape, 8).threads, 3);
    shape = shape_of(64, 64, 64, false, false);
    shape.batch = 3;
    assert_int_equal(plan_of(&shape, 8).threads, 3);
    shape.batch = 1; /* single small products are not shared */
    assert_int_equal(plan_of(&shape, 8).threads, 1);
}

/* Five threads take as long for 16 rows of tiles as four, so only four are used. A
 * multiply-add of f64 takes twice as long, so twice as many threads are used. */
static void threads_that_would_wait_are_not_used(void **state)
{
    (void)state;
    const cpu_kernels *f32 = &tgl_cpu_kernels_portable_f32, *f64 = &tgl_cpu_kernels_portable_f64;
    tgl_shape shape = shape_of(16 * f32->mr, f32->vector, 1000, false, false);
    shape.batch = 4;
    cpu_plan plan = plan_of(&shape, 5);
    assert_int_equal(plan.sharing, CPU_SHARE_C);
    assert_int_equal(plan.threads, 4);
    assert_int_equal(plan.grid_m, 4);

    /* If threads divide n, B is read once; if they divided m, each would read B. */
    shape = shape_of(16 * f32->mr, 16 * f32->vector, 100, false, false);
    plan = plan_of(&shape, 4);
    assert_int_equal(plan.grid_m, 1);
    assert_int_equal(plan.grid_n, 4);

    shape = shape_of(80, 80, 80, false, false);
    const cpu_machine device = server_of("", 16);
    tgl_cpu_plan(&shape, f32, (cpu_blocking){0}, &device, &plan);
    assert_in_range(plan.threads, 4, 5);
    tgl_cpu_plan(&shape, f64, (cpu_blocking){0}, &device, &plan);
    assert_in_range(plan.threads, 8, 10);
}

/* A thread takes several rectangles of C, at most as many as there are threads, unless these would
 * have fewer than 48 rows or columns, or fewer than 2.25 * 10^6 multiply-adds (6 * 10^7 if A is
 * transposed). If a thread takes more than four, each has at least 6 * 10^7. */
static void threads_take_several_rectangles(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        bool trans_a;
        int threads, rectangles;
    } table[] = {
        {2000, 2000, 2000, false, 2, 2},  {2000, 2000, 2000, false, 3, 2},
        {2000, 2000, 2000, false, 5, 4},  {2000, 2000, 2000, false, 7, 4},
        {2000, 2000, 2000, false, 4, 4},  {2000, 2000, 2000, false, 8, 8},
        {4000, 4000, 4000, false, 16, 8}, {1000, 1000, 1000, false, 8, 4},
        {2000, 2000, 2000, true, 8, 8},   {1000, 1000, 1000, true, 4, 4},
        {600, 600, 600, true, 4, 1},      {190, 190, 190, false, 4, 1},
        {300, 300, 80, false, 4, 1},      {200, 150, 3000, false, 4, 2},
        {90, 90, 20000, false, 4, 1},     {40, 4000, 400, false, 4, 1},
        {300, 300, 300, false, 4, 2},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const tgl_shape shape =
            shape_of(table[i].m, table[i].n, table[i].k, table[i].trans_a, false);
        const cpu_plan plan = plan_of(&shape, table[i].threads);
        assert_int_equal(plan.sharing, CPU_SHARE_C);
        const int rectangles = plan.grid_m * plan.grid_n / plan.threads;
        if (rectangles != table[i].rectangles) fail_msg("row %d: %d", (int)i, rectangles);
    }
    const tgl_shape shape = shape_of(1000, 1280, 127, false, true);
    const cpu_plan plan = plan_of(&shape, 2);
    assert_int_equal(plan.grid_m * plan.grid_n, 2);
}

/* The plan with the tile sizes of AVX2 for 4 threads of a processor. */
static cpu_plan plan_on(const tgl_shape *shape, const char *model)
{
    cpu_kernels kernels = tgl_cpu_kernels_portable_f32;
    kernels.vector = 8;
    kernels.mr = 6;
    kernels.nv = 2;
    const cpu_machine machine = server_of(model, 4);
    cpu_plan plan;
    tgl_cpu_plan(shape, &kernels, (cpu_blocking){0}, &machine, &plan);
    return plan;
}

/* If A is not packed, columns are divided first, as long as a rectangle keeps 320. If A is packed,
 * rows are: each rectangle of the same rows would pack them again. Zen 4 with AVX2 packs A from 900
 * columns on. */
static void rectangles_that_pack_a_are_wide(void **state)
{
    (void)state;
    tgl_shape shape = shape_of(16000, 4000, 500, false, false);
    cpu_plan plan = plan_on(&shape, "");
    assert_int_equal(plan.grid_m, 2);
    assert_int_equal(plan.grid_n, 8);
    assert_false(plan.pack_a);
    plan = plan_on(&shape, "AuthenticAMD 25.17");
    assert_int_equal(plan.grid_m, 4);
    assert_int_equal(plan.grid_n, 4);
    assert_true(plan.pack_a);
    shape = shape_of(16000, 4000, 500, true, false);
    plan = plan_on(&shape, "");
    assert_int_equal(plan.grid_m, 8);
    assert_int_equal(plan.grid_n, 2);
}

/* A transposed A is packed, but not every thread packs the whole of it. */
static void threads_share_the_packing_of_a(void **state)
{
    (void)state;
    const cpu_kernels kernels = wide_kernels();
    for (int threads = 8; threads <= 16; threads *= 2) {
        const cpu_machine device = server_of("", threads);
        cpu_plan plan;
        const tgl_shape transposed = shape_of(1024, 1024, 1024, true, false);
        tgl_cpu_plan(&transposed, &kernels, (cpu_blocking){0}, &device, &plan);
        assert_true(plan.grid_m >= 2 && plan.grid_m * plan.grid_n % threads == 0 && plan.pack_a);
        const tgl_shape plain = shape_of(1024, 256, 256, false, false);
        tgl_cpu_plan(&plain, &kernels, (cpu_blocking){0}, &device, &plan);
        assert_true(plan.grid_m >= 2 && plan.grid_m * plan.grid_n % threads == 0 && !plan.pack_a);
    }
}

static void multiply_nothing(const cpu_words_product *product)
{
    (void)product;
}

/* Products of 16-bit types: another thread is used if each thread gets at least 1e5 multiply-adds
 * computed by FMAs, or as many multiply-adds by fast words as take 1500 cycles. */
static void fast_words_take_fewer_threads(void **state)
{
    const cpu_device *cpu = ((tgl_device *)*state)->state;
    const cpu_words amx = {.steps = {512},
                           .cycles = {1 / 270.0},
                           .fma_cycles = 1 / 26.0,
                           .multiply = {multiply_nothing}};
    for (int fast = 0; fast < 2; fast++) {
        cpu_tier tier = *cpu->tiers[cpu->tier_count - 1];
        tier.words = fast ? &amx : NULL;
        const cpu_machine device = server_of("", 16);
        tgl_shape shape = shape_of(96, 96, 96, false, false); /* 8.8e5 multiply-adds */
        shape.type_a = shape.type_b = TGL_BF16;
        cpu_block_plan blocks;
        cpu_plan plan;
        tgl_cpu_plan_blocks(&shape, &tier, tgl_cpu_words_for(&shape, &tier), (cpu_blocking){0},
                            &device, &blocks, &plan);
        assert_true((blocks.words != NULL) == fast);
        assert_in_range(plan.threads, fast ? 2 : 6, fast ? 2 : 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_what_there_is),
        cmocka_unit_test(threads_that_would_wait_are_not_used),
        cmocka_unit_test(threads_take_several_rectangles),
        cmocka_unit_test(rectangles_that_pack_a_are_wide),
        cmocka_unit_test(threads_share_the_packing_of_a),
        cmocka_unit_test_setup_teardown(fast_words_take_fewer_threads, setup_cpu, teardown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
