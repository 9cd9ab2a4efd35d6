/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cpu device packs, copies and prefetches (src/cpu/plan/cpu_planner.c).
 */
#include "cpu_plan_case.h"

#include "backend/backend.h"
#include "cpu/run/cpu_gemm.h"
#include "cpu/run/cpu_state.h"

static void what_is_read_often_is_packed(void **state)
{
    (void)state;
    tgl_shape shape = shape_of(1000, 1000, 1000, false, false);
    cpu_plan plan = plan_of(&shape, 1);
    assert_true(plan.pack_b && !plan.pack_a);
    shape = shape_of(1000, 1000, 1000, true, false);
    plan = plan_of(&shape, 1);
    assert_true(plan.pack_b && plan.pack_a);
    shape = shape_of(8, 4100, 4100, false, false); /* B is used twice: it is not worth a copy */
    assert_false(plan_of(&shape, 1).pack_b);
    shape = shape_of(8, 4096, 4096, false, false); /* unless its rows share a set of the cache */
    assert_true(plan_of(&shape, 1).pack_b);
    shape = shape_of(4, 4096, 4096, false, false); /* B is used once, so the sets do not matter */
    assert_false(plan_of(&shape, 1).pack_b);
}

/* The larger the elements, the smaller the products from which on a transposed A and B are packed.
 */
static void packing_depends_on_the_bytes_read(void **state)
{
    (void)state;
    static const struct {
        tgl_type type;
        const cpu_kernels *kernels;
        int64_t size; /* m, n and k */
        bool packs_a, packs_b;
    } table[] = {
        {TGL_F32, &tgl_cpu_kernels_portable_f32, 215, false, true}, /* 215^3 * 4 bytes < 40e6 */
        {TGL_F32, &tgl_cpu_kernels_portable_f32, 216, true, true},
        {TGL_F64, &tgl_cpu_kernels_portable_f64, 103, false, false}, /* 103^3 * 8 bytes < 9e6 */
        {TGL_F64, &tgl_cpu_kernels_portable_f64, 170, false, true},
        {TGL_F64, &tgl_cpu_kernels_portable_f64, 171, true, true},
        {TGL_C64, &tgl_cpu_kernels_portable_c64, 135, false, true}, /* 135^3 * 4 * 4 bytes < 40e6 */
        {TGL_C64, &tgl_cpu_kernels_portable_c64, 136, true, true},
        {TGL_C128, &tgl_cpu_kernels_portable_c128, 65, false, false},
        {TGL_C128, &tgl_cpu_kernels_portable_c128, 107, false, true},
        {TGL_C128, &tgl_cpu_kernels_portable_c128, 108, true, true},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const int64_t size = table[i].size;
        const tgl_type type = table[i].type;
        tgl_shape shape = shape_of(size, size, size, true, false);
        shape.type_a = shape.type_b = shape.type_c = shape.type_d = type;
        const cpu_machine device = server_of("AuthenticAMD 25.1", 1);
        cpu_plan plan;
        tgl_cpu_plan(&shape, table[i].kernels, (cpu_blocking){0}, &device, &plan);
        if (plan.pack_a != table[i].packs_a || plan.pack_b != table[i].packs_b)
            fail_msg("row %d", (int)i);
    }
}

/* Rows of A are copied on Intel's processors if they share few sets of the caches and A exceeds L2,
 * on Zen 3, and on Zen 4 with vectors of 32 bytes, if C has many columns. */
static void rows_are_copied_where_that_is_faster(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t m, n, ld; /* k = ld */
        int vector;       /* elements of f32 */
        bool expected;
    } table[] = {{"GenuineIntel 6.207", 1024, 1024, 1024, 16, true},
                 {"GenuineIntel 6.207", 1023, 1023, 1022, 16, true}, /* 8 bytes less than a page */
                 {"GenuineIntel 6.207", 1023, 1023, 1021, 16, false},
                 {"GenuineIntel 6.207", 1000, 1000, 1000, 16, false},
                 {"GenuineIntel 6.207", 512, 512, 1024, 16, false},  /* in L2 */
                 {"GenuineIntel 6.207", 4096, 40, 4096, 16, false},  /* used too few times */
                 {"GenuineIntel 6.207", 1 << 20, 200, 2, 16, false}, /* rows are contiguous */
                 {"AuthenticAMD 25.17", 1024, 1024, 1024, 16, false},
                 {"AuthenticAMD 25.17", 1024, 900, 1024, 8, true},
                 {"AuthenticAMD 25.17", 1024, 899, 1024, 8, false},
                 {"AuthenticAMD 25.1", 1024, 400, 1024, 8, true},
                 {"AuthenticAMD 25.1", 1024, 399, 1024, 8, false},
                 {"AuthenticAMD 26.2", 1024, 1024, 1024, 8, false}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_shape shape = shape_of(table[i].m, table[i].n, table[i].ld, false, false);
        const cpu_machine device = server_of(table[i].model, 1);
        cpu_kernels kernels = wide_kernels();
        kernels.vector = table[i].vector;
        cpu_plan plan;
        tgl_cpu_plan(&shape, &kernels, (cpu_blocking){0}, &device, &plan);
        if (plan.pack_a != table[i].expected) fail_msg("row %d", (int)i);
        if (plan.pack_a) assert_true(plan.a_bytes >= (size_t)(plan.mc * plan.kc) * sizeof(float));
    }
}

static void fill(char *matrix, int count, bool f64)
{
    for (int i = 0; i < count; i++) {
        const double x = (i % 1013 - 500) / 7.0;
        if (f64)
            ((double *)(void *)matrix)[i] = x;
        else
            ((float *)(void *)matrix)[i] = (float)x;
    }
}

/* C := A*B by a plan for a processor of this model, on one thread. Returns whether A was packed. */
static bool multiply_as_on(const char *model, const tgl_shape *shape, const cpu_kernels *kernels,
                           void *a, void *b, void *c)
{
    cpu_machine device = server_of(model, 1);
    device.facts.l2 = 256 << 10;
    cpu_plan plan;
    tgl_cpu_plan(shape, kernels, (cpu_blocking){0}, &device, &plan);
    const tgl_run run = {
        .alpha = 1,
        .has_product = true,
        .at = {[TGL_AT_A] = a, [TGL_AT_B] = b, [TGL_AT_C] = c, [TGL_AT_D] = c},
    };
    char *workspace = aligned_alloc(CPU_ALIGNMENT, tgl_cpu_aligned(plan.workspace));
    assert_non_null(workspace);
    tgl_cpu_gemm(&(cpu_product){shape, &plan, &run, workspace, NULL});
    free(workspace);
    return plan.pack_a;
}

/* Packing rows of A does not change a bit of C. */
static void copied_rows_give_the_same_bits(void **state)
{
    enum { M = 523, N = 203, K = 1000, LD = 1024 };
    const cpu_device *cpu = ((tgl_device *)*state)->state;
    for (int i = 0; i < 2 * cpu->tier_count; i++) {
        const bool f64 = i % 2;
        const size_t element = f64 ? sizeof(double) : sizeof(float);
        tgl_shape shape = shape_of(M, N, K, false, false);
        if (f64) shape.type_a = shape.type_b = shape.type_c = shape.type_d = TGL_F64;
        shape.lda = LD;
        char *a = test_malloc(M * LD * element), *b = test_malloc(K * N * element);
        char *c[2];
        fill(a, M * LD, f64);
        fill(b, K * N, f64);
        for (int q = 0; q < 2; q++) {
            c[q] = test_malloc(M * N * element);
            const cpu_tier *tier = cpu->tiers[i / 2];
            assert_int_equal(multiply_as_on(q == 0 ? "" : "GenuineIntel 6.207", &shape,
                                            f64 ? tier->f64 : tier->f32, a, b, c[q]),
                             q);
        }
        assert_memory_equal(c[0], c[1], M * N * element);
        for (int q = 0; q < 2; q++)
            test_free(c[q]);
        test_free(a);
        test_free(b);
    }
}

/* The next block of B is prefetched if B is not transposed and exceeds its part of L2, and a block
 * of B has several panels and no short rows. If C is narrow, two blocks then fit in L2 / 4. */
static void narrow_products_prefetch_the_next_block(void **state)
{
    (void)state;
    static const struct {
        int64_t n, k;
        bool trans_b, expected;
    } table[] = {{64, 65536, false, true},  {96, 65536, false, true}, {48, 65536, false, false},
                 {64, 65536, true, false},  {64, 500, false, false},  {16, 65536, false, false},
                 {1000, 4096, false, true}, {1000, 4096, true, false}};
    const cpu_kernels kernels = wide_kernels();
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_shape shape = shape_of(100, table[i].n, table[i].k, false, table[i].trans_b);
        cpu_machine device = server_of("", 1);
        cpu_plan plan;
        tgl_cpu_plan(&shape, &kernels, (cpu_blocking){0}, &device, &plan);
        if (plan.fetch_next_block != table[i].expected) fail_msg("row %d", (int)i);
        const size_t block = (size_t)(plan.kc * table[i].n) * sizeof(float);
        if (table[i].n <= 96)
            assert_true(block <= device.facts.l2 / (plan.fetch_next_block ? 8 : 4));
    }
}

/* The matrices of batches of small products are prefetched if they exceed the caches, unless a
 * product is tiny (below 32 KB if B is one panel) or has gaps that are longer than its rows. */
static void large_batches_are_prefetched(void **state)
{
    (void)state;
    static const struct {
        int64_t n, batch, ld;
        const char *model;
        bool wide, fetch;
    } table[] = {{32, 1000, 32, "", false, true},
                 {32, 100, 32, "", false, false},
                 {16, 100000, 16, "", false, false},
                 {32, 1000, 64, "", false, true},
                 {32, 1000, 65, "", false, false},
                 {48, 1000, 48, "", true, false},
                 {64, 1000, 64, "", true, true},
                 {32, 10000, 32, "AuthenticAMD 25.17", false, false},
                 {48, 800, 48, "AuthenticAMD 25.17", false, false}, /* in L3 */
                 {48, 1000, 48, "AuthenticAMD 25.17", false, true}};
    const cpu_kernels wide = wide_kernels();
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        tgl_shape shape = shape_of(table[i].n, table[i].n, table[i].n, false, false);
        shape.batch = table[i].batch;
        shape.lda = table[i].ld;
        const cpu_machine device = server_of(table[i].model, 8);
        cpu_plan plan;
        tgl_cpu_plan(&shape, table[i].wide ? &wide : &tgl_cpu_kernels_portable_f32,
                     (cpu_blocking){0}, &device, &plan);
        assert_int_equal(plan.path, CPU_PATH_SMALL);
        if (plan.fetch != table[i].fetch) fail_msg("row %d", (int)i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_often_is_packed),
        cmocka_unit_test(packing_depends_on_the_bytes_read),
        cmocka_unit_test(rows_are_copied_where_that_is_faster),
        cmocka_unit_test_setup_teardown(copied_rows_give_the_same_bits, setup_cpu, teardown_device),
        cmocka_unit_test(narrow_products_prefetch_the_next_block),
        cmocka_unit_test(large_batches_are_prefetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
