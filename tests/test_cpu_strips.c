/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with a short k on the cpu (src/cpu/run/cpu_strips.c). The kernel option row=1 plans as
 * for Zen 3, which computes them in strips, on every processor.
 */
#include "cpu_plan_case.h"
#include "support.h"

/* ---- Plans ----------------------------------------------------------------------------------- */

/* The kernels of AVX2 by their sizes; the functions are those of the portable tier. */
static cpu_kernels avx2_kernels(int element, int parts)
{
    cpu_kernels kernels = tgl_cpu_kernels_portable_f32;
    kernels.element = (size_t)element;
    kernels.parts = parts;
    kernels.vector = 32 / element;
    kernels.mr = 6 / parts;
    kernels.nv = kernels.small_nv = 2;
    return kernels;
}

static void short_k_takes_strips(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int element, parts;
        int64_t m, n, k;
        cpu_blocking blocking;
        bool expected, fetch_c;
    } table[] = {
        {"AuthenticAMD 25.1", 4, 1, 200, 200, 96, {0}, true, false},
        {"AuthenticAMD 25.1", 4, 1, 200, 200, 97, {0}, false, false},
        {"AuthenticAMD 25.1", 8, 1, 2000, 3000, 96, {0}, true, true},
        {"AuthenticAMD 25.1", 4, 1, 2000, 3000, 127, {0}, true, true}, /* instead of bands */
        {"AuthenticAMD 25.1", 4, 1, 2000, 3000, 128, {0}, false, false},
        {"AuthenticAMD 25.1", 16, 2, 2000, 3000, 65, {0}, false, false},
        {"AuthenticAMD 25.17", 4, 1, 2000, 3000, 127, {0}, false, false},
        {"AuthenticAMD 25.1", 16, 2, 100, 200, 64, {0}, true, false},
        {"AuthenticAMD 25.1", 16, 2, 100, 200, 65, {0}, false, false},
        {"AuthenticAMD 25.1", 16, 2, 400, 400, 9, {0}, true, true},
        {"AuthenticAMD 25.1", 4, 1, 200, 200, 50, {.kc = 100}, false, false},
        {"AuthenticAMD 25.1", 4, 1, 200, 200, 50, {.mc = 100}, false, false},
        {"AuthenticAMD 25.17", 4, 1, 200, 200, 9, {0}, false, false},
        {"AuthenticAMD 25.17", 4, 1, 200, 200, 9, {.row = 1}, true, false},
        {"GenuineIntel 6.207", 4, 1, 9, 200, 8, {0}, false, false},
        {"GenuineIntel 6.207", 4, 1, 8, 200, 9, {0}, false, false},
        {"GenuineIntel 6.207", 4, 1, 8, 200, 8, {0}, true, false}, /* flat */
        {"GenuineIntel 6.207", 4, 1, 200, 8, 8, {0}, true, false},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        tgl_shape shape = shape_of(table[i].m, table[i].n, table[i].k, false, true);
        if (table[i].model[0] == 'G') shape.trans_b = false, shape.ldb = shape.n;
        cpu_machine device = server_of(table[i].model, 1);
        device.facts.l2 = 512 << 10;
        const cpu_kernels kernels = avx2_kernels(table[i].element, table[i].parts);
        cpu_plan plan;
        tgl_cpu_plan(&shape, &kernels, table[i].blocking, &device, &plan);
        assert_int_equal(plan.in_strips, table[i].expected);
        assert_int_equal(plan.fetch_c, table[i].fetch_c);
        if (!plan.in_strips) continue;
        assert_false(plan.pack_a || plan.in_bands);
        assert_true(plan.mc <= 48 && plan.kc == table[i].k);
        assert_true(plan.nc <= CPU_SMALL_PANELS * kernels.nv * kernels.vector);
        if (!plan.pack_b) continue;
        const size_t ld = (size_t)tgl_cpu_strip_ld(plan.nc, kernels.vector);
        assert_true(plan.b_bytes >= ld * (size_t)plan.kc * kernels.element);
    }
}

/* A transposed B is packed, so few rows are no reason for strips on other processors. */
static void a_flat_c_needs_no_transposed_b(void **state)
{
    (void)state;
    const tgl_shape shape = shape_of(8, 200, 8, false, true);
    assert_false(plan_of(&shape, 1).in_strips);
    const tgl_shape other = shape_of(8, 200, 8, true, false);
    assert_true(plan_of(&other, 1).in_strips);
}

/* ---- Products -------------------------------------------------------------------------------- */

static tgl_type type_of(int i)
{
    static const tgl_type types[] = {TGL_F32, TGL_F64, TGL_C64, TGL_C128};
    return types[i % (int)COUNT_OF(types)];
}

/* Runs a random product with the plan of Zen 3, which uses strips unless the product is small or
 * has one row or column. largest: the maximum m and n. */
static void check_strips(tgl_device *dev, int i, int64_t largest, uint64_t *seed)
{
    static const double scalars[] = {1, 1, 0, -0.5, (double)NAN};
    char kernel[64];
    snprintf(kernel, sizeof kernel, "%s:row=1", tgl_kernel_name(dev, 0));
    const bool is_complex = tgl_type_is_complex(type_of(i));
    gemm_case c = {.problem = random_problem(seed, type_of(i), largest),
                   .alpha = scalars[random_int(seed, 0, 4)],
                   .beta = scalars[random_int(seed, 0, 4)],
                   .alpha_imag = is_complex && i % 3 == 0 ? 0.75 : 0,
                   .beta_imag = is_complex && i % 5 == 0 ? -2 : 0,
                   .kernel = kernel,
                   .pointers = i % 3 == 0,
                   .fill = i % 7 == 0 ? NON_FINITE : UNIFORM_11,
                   .at_end = random_int(seed, 0, 1) == 1,
                   .seed = random_bits(seed)};
    c.problem.k = random_int(seed, 1, (int64_t)4 << random_int(seed, 0, 4));
    c.problem.lda = c.problem.ldb = 0; /* no padding */
    c.problem.stride_a = c.problem.stride_b = largest * 64;
    if (i % 4 == 1)
        c.epilogue = (tgl_epilogue){.size = sizeof c.epilogue,
                                    .bias = (tgl_bias)random_int(seed, 0, TGL_BIAS_COLUMN),
                                    .residual = (int)random_int(seed, 0, 1)};
    assert_true(check_case(dev, &c));
}

static void products_in_strips_are_right(void **state)
{
    uint64_t seed = 51;
    for (int i = 0; i < 400; i++)
        check_strips(*state, i, i % 20 == 0 ? 400 : 130, &seed);
}

/* C exceeds an L2 of 2 MB, so that it is prefetched. In most cases B has several blocks of columns.
 * The rows of a B that is not transposed are a multiple of 4096 bytes apart. */
static void large_products_are_right(void **state)
{
    char kernel[64];
    snprintf(kernel, sizeof kernel, "%s:row=1", tgl_kernel_name(*state, 0));
    for (int i = 0; i < 8; i++) {
        const int64_t size[3] = {700, 1024, 5 + 9 * i};
        const gemm_case c = {.problem = padded_problem(type_of(i), size, (unsigned)(i / 2)),
                             .alpha = i % 3 ? 1 : 0.5,
                             .beta = i % 2,
                             .kernel = kernel,
                             .fill = UNIFORM_11,
                             .at_end = true,
                             .seed = 3};
        assert_true(check_case(*state, &c));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_k_takes_strips),
        cmocka_unit_test(a_flat_c_needs_no_transposed_b),
        cmocka_unit_test_setup_teardown(products_in_strips_are_right, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(large_products_are_right, setup_cpu, teardown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
