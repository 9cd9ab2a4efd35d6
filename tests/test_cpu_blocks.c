/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks that the cpu device chooses (src/cpu/plan/cpu_planner.c).
 */
#include "cpu_plan_case.h"

/* With few rows, kc is at least about 120, and a block of A has all rows (up to 300). */
static void flat_products_have_long_blocks(void **state)
{
    (void)state;
    tgl_shape shape = shape_of(16, 4096, 4096, false, false);
    assert_int_equal(plan_of(&shape, 1).kc, 128);
    shape = shape_of(40, 4096, 4096, false, false);
    assert_in_range(plan_of(&shape, 1).kc, 200, 240);
    for (int64_t rows = 2; rows < 400; rows++) {
        shape = shape_of(rows, 4096, 4096, false, false);
        const cpu_plan plan = plan_of(&shape, 1);
        assert_true(plan.kc >= 120 && plan.kc <= plan.kernels->kc);
        if (rows <= 300) assert_true(plan.mc >= rows);
    }
    shape = shape_of(1000, 4096, 4096, false, false); /* many rows: the usual blocks */
    assert_true(plan_of(&shape, 1).kc > plan_of(&shape, 1).kernels->kc / 2);
}

/* On Intel's processors blocks of k are shorter, so that fewer rows of B are read at a time. */
static void steps_of_few_rows_depend_on_the_vendor(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t rows;
        int min, max;
    } table[] = {{"GenuineIntel 6.143", 16, 48, 48},
                 {"GenuineIntel 6.143", 36, 64, 80},
                 {"GenuineIntel 6.143", 100, 180, 208},
                 {"AuthenticAMD 25.17", 16, 128, 128},
                 {"AuthenticAMD 25.17", 36, 200, 224}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_shape shape = shape_of(table[i].rows, 4096, 4096, false, false);
        const cpu_machine device = server_of(table[i].model, 8);
        cpu_plan plan;
        tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &plan);
        assert_in_range(plan.kc, table[i].min, table[i].max);
    }
}

/* The length of blocks of k does not depend on the number of threads: where threads share rows and
 * columns, the bits of a result do not depend on it either. This also holds for products with few
 * rows, whose blocks are short. */
static void steps_of_k_do_not_depend_on_threads(void **state)
{
    (void)state;
    static const size_t sizes[] = {256 << 10, 512 << 10, 2 << 20};
    uint64_t seed = 1;
    int short_blocks = 0;
    for (int i = 0; i < 600; i++) {
        const int64_t edge = i % 2 ? 100 : 1000;
        const tgl_shape shape =
            shape_of(random_int(&seed, 1, edge), random_int(&seed, 1, edge),
                     random_int(&seed, 1, 3000), random_int(&seed, 0, 1), random_int(&seed, 0, 1));
        cpu_machine device = server;
        device.facts.l2 = sizes[i % COUNT_OF(sizes)];
        device.threads = 1;
        cpu_plan one, plan;
        tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &one);
        for (int threads = 2; threads <= 8; threads++) {
            device.threads = threads;
            tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &plan);
            assert_int_equal(plan.kc, one.kc);
        }
        short_blocks += one.kc < one.kernels->kc / 2 && shape.k >= one.kernels->kc;
    }
    assert_true(short_blocks > 10);
}

/* A block of A takes a third of an L2 of 256 KB, 160 KB of 512 KB, and two sevenths of a larger L2.
 */
static void a_block_of_a_fits_in_l2(void **state)
{
    (void)state;
    const tgl_shape shape = shape_of(2000, 2000, 2000, false, false);
    static const struct {
        size_t l2, min, max;
    } table[] = {{256 << 10, 60 << 10, 86 << 10},
                 {512 << 10, 130 << 10, 160 << 10},
                 {1 << 20, 250 << 10, 293 << 10},
                 {2 << 20, 500 << 10, 586 << 10}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        cpu_machine device = server_of("", 1);
        device.facts.l2 = table[i].l2;
        cpu_plan plan;
        tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &plan);
        assert_in_range(plan.mc * plan.kc * 4, table[i].min, table[i].max);
    }
}

/* If all rows of A fit in three fifths of L2 and are 512 at most, they are one block, and panels of
 * B are not kept. */
static void few_rows_are_one_block(void **state)
{
    (void)state;
    static const size_t sizes[] = {512 << 10, 2 << 20};
    const cpu_kernels *kernels = &tgl_cpu_kernels_portable_f32;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        cpu_machine device = server_of("", 1);
        device.facts.l2 = sizes[i];
        const int64_t kc = kernels->kc, fit = (int64_t)(0.6 * (double)sizes[i]) / kc / 4;
        const int64_t rows_max = fit < 512 ? fit : 512;
        for (int64_t rows = rows_max - 40; rows < rows_max + 40; rows++) {
            const tgl_shape shape = shape_of(rows, 24, kc, false, false); /* a small B */
            cpu_plan plan;
            tgl_cpu_plan(&shape, kernels, (cpu_blocking){0}, &device, &plan);
            assert_int_equal(plan.kc, kc);
            assert_int_equal(plan.mc == rows, rows <= rows_max);
            assert_int_equal(plan.keep_b, rows > rows_max);
            assert_true(plan.mc <= 512);
            tgl_cpu_plan(&shape, kernels, (cpu_blocking){.mc = 96}, &device, &plan);
            assert_true(plan.mc <= 96);
        }
    }
    /* A short k, so that more rows would fit. */
    const tgl_shape shape = shape_of(3000, 2000, 20, false, false);
    assert_in_range(plan_of(&shape, 1).mc, 400, 512);
}

/* Products with a short k and a large C are computed in bands on some processors: C is written a
 * few rows at a time. mc: the requested number of rows of a block; 0: any. */
static void short_k_takes_bands(void **state)
{
    (void)state;
    static const struct {
        int threads;
        int64_t m, n, k;
        const char *model;
        int vector; /* elements */
        int mc;
        bool expected;
    } table[] = {{1, 2000, 3000, 100, "AuthenticAMD 25.1", 8, 0, false}, /* strips */
                 {1, 2000, 3000, 100, "AuthenticAMD 25.17", 8, 0, true},
                 {1, 2000, 3000, 127, "AuthenticAMD 25.17", 8, 0, true},
                 {1, 2000, 3000, 128, "AuthenticAMD 25.17", 8, 0, false},
                 {1, 1000, 1000, 100, "AuthenticAMD 25.17", 8, 0, false},
                 {1, 4, 600000, 100, "AuthenticAMD 25.17", 8, 0, false}, /* B is used once */
                 {1, 2000, 3000, 100, "AuthenticAMD 25.17", 8, 96, false},
                 {1, 2000, 3000, 100, "AuthenticAMD 25.17", 16, 0, false},
                 {1, 2000, 3000, 100, "AuthenticAMD 26.2", 8, 0, false},
                 {1, 2000, 3000, 100, "GenuineIntel 6.207", 16, 0, true},
                 {1, 2000, 3000, 100, "GenuineIntel 6.143", 16, 0, true},
                 {1, 2000, 3000, 100, "GenuineIntel 6.207", 8, 0, false},
                 {1, 1000, 1000, 100, "GenuineIntel 6.207", 16, 0, true}, /* beyond L2 */
                 {1, 500, 400, 100, "GenuineIntel 6.207", 16, 0, false},
                 {4, 1000, 1000, 100, "GenuineIntel 6.207", 16, 0, false},
                 /* More than an eighth of L3 for each thread, though each rectangle has less. */
                 {2, 2000, 3000, 100, "AuthenticAMD 25.17", 8, 0, true},
                 {4, 2000, 3000, 100, "AuthenticAMD 25.17", 8, 0, false}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_shape shape = shape_of(table[i].m, table[i].n, table[i].k, false, false);
        const cpu_machine device = server_of(table[i].model, table[i].threads);
        cpu_kernels kernels = tgl_cpu_kernels_portable_f32;
        kernels.vector = table[i].vector;
        cpu_plan plan;
        tgl_cpu_plan(&shape, &kernels, (cpu_blocking){.mc = table[i].mc}, &device, &plan);
        assert_int_equal(plan.in_bands, table[i].expected);
        if (!plan.in_bands) continue;
        assert_int_equal(plan.mc, 2 * plan.kernels->mr);
        assert_true(plan.keep_b && plan.kc == table[i].k);
        assert_true((size_t)(plan.nc * plan.kc) * 4 <= device.facts.l2 * 5 / 8);
    }
    /* A thread that computes whole products of a batch writes all of C. */
    tgl_shape shape = shape_of(1500, 1500, 11, false, false);
    shape.batch = 16;
    const cpu_machine device = server_of("AuthenticAMD 25.17", 8);
    cpu_kernels kernels = tgl_cpu_kernels_portable_f32;
    kernels.vector = 8;
    cpu_plan plan;
    tgl_cpu_plan(&shape, &kernels, (cpu_blocking){0}, &device, &plan);
    assert_int_equal(plan.sharing, CPU_SHARE_BATCH);
    assert_true(plan.in_bands);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_products_have_long_blocks),
        cmocka_unit_test(steps_of_few_rows_depend_on_the_vendor),
        cmocka_unit_test(steps_of_k_do_not_depend_on_threads),
        cmocka_unit_test(a_block_of_a_fits_in_l2),
        cmocka_unit_test(few_rows_are_one_block),
        cmocka_unit_test(short_k_takes_bands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
