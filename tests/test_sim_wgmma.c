/* SPDX-License-Identifier: Apache-2.0
 *
 * The wgmma family: each tile in all layouts and alignments, TF32, all K, batches and epilogues.
 */
#include "wgmma_case.h"

static const struct {
    const char *name;
    int bm, bn;
    bool has_clusters;
} rows[] = {{"wgmma_128x256", 128, 256, true},     {"wgmma_256x128", 256, 128, true},
            {"wgmma_192x192", 192, 192, true},     {"wgmma_128x192", 128, 192, true},
            {"wgmma_128x160", 128, 160, true},     {"wgmma_128x128", 128, 128, true},
            {"wgmma_128x128_alt", 128, 128, true}, {"wgmma_128x96", 128, 96, true},
            {"wgmma_64x256_alt", 64, 256, true},   {"wgmma_128x64", 128, 64, true},
            {"wgmma_64x256", 64, 256, true},       {"wgmma_64x128", 64, 128, true},
            {"wgmma_64x64", 64, 64, true},         {"wgmma_64x32", 64, 32, true},
            {"wgmma_64x16", 64, 16, true},         {"wgmma_256x144", 256, 144, true},
            {"wgmma_128x224", 128, 224, true},     {"wgmma_128x144", 128, 144, true}};

/* Sizes a little above those of a tile, by 5 or 8, and of a stage. Rows are aligned. */
static void every_configuration_in_every_layout(void **state)
{
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int way = 0; way < 16; way++) {
            char kernel[80];
            const bool exchanged = way / 4 % 2 != 0, clusters = way / 8 != 0;
            if (clusters && way % 4 != (int)(i % 4)) continue; /* clusters in one layout only */
            if (!sweep_has(number++)) continue;
            snprintf(kernel, sizeof kernel, "%s:exchanged=%d,cluster=%d", rows[i].name, exchanged,
                     1 + (clusters && rows[i].has_clusters));
            const int more = number % 2 == 0 ? 8 : 5;
            const int left = rows[i].bm + more, right = rows[i].bn + more;
            product p = basic_product(kernel, i % 2 == 0 ? TGL_BF16 : TGL_F16,
                                      exchanged ? right : left, exchanged ? left : right, 72);
            p.trans_a = way % 2 != 0;
            p.trans_b = way / 2 % 2 != 0;
            p.pad_a = p.trans_a ? 8 - more : 0;
            p.pad_b = p.trans_b ? 0 : 8 - more;
            p.pad_c = 8 - more;
            p.beta = -2;
            run_product(*state, &p);
        }
}

/* wgmma reads TF32 operands that are K-major. Others, and unaligned ones, are repacked. */
static void tf32_in_every_layout(void **state)
{
    static const char *const kernels[] = {"wgmma_128x128", "wgmma_64x32:exchanged=1",
                                          "wgmma_64x64:cluster=2,splits=2"};
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        for (int way = 0; way < 8; way++) {
            if (!sweep_has(number++)) continue;
            product p = basic_product(kernels[i], TGL_F32, 140, 68, 100);
            p.trans_a = way % 2 != 0;
            p.trans_b = way / 2 % 2 != 0;
            if (way / 4 != 0) p.pad_a = 1, p.pad_b = 3, p.pad_c = 1;
            run_product(*state, &p);
        }
}

/* Fails unless the plan's kernel reads the left operand from registers. */
static void assert_in_registers(tgl_device *dev, const product *p)
{
    char text[32768];
    tgl_plan *plan;
    const operands o = make_operands(dev, p);
    const tgl_problem problem = problem_for(p, &o);
    const tgl_plan_options options = {.size = sizeof options, .kernel = p->kernel};
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_true(tgl_plan_explain(plan, text, sizeof text) < sizeof text);
    if (strstr(text, "left        through registers") == NULL)
        fail_msg("%s: the left operand is not in registers:\n%s", p->kernel, text);
    tgl_plan_destroy(plan);
    free_operands(dev, &o);
}

/* Tests left operands that wgmma reads from registers: with rings that are filled several times,
 * alternating consumers, clusters, partial tiles, and exchanged operands. The right operand is
 * MN-major, or K-major with 3 elements of padding after each row. */
static void tf32_through_registers(void **state)
{
    static const struct {
        const char *kernel;
        int m, n, k, batch;
    } cases[] = {
        {"wgmma_128x128:left_registers=1", 68, 40, 32 * 13, 1},
        {"wgmma_128x128:left_registers=1", 260, 40, 7, 1},
        {"wgmma_128x128:left_registers=1", 68, 40, 0, 1},
        {"wgmma_128x256:cluster=2,left_registers=1", 600, 24, 32 * 11, 1},
        {"wgmma_64x256_alt:left_registers=1", 40, 24, 136, 280},
        {"wgmma_64x256_alt:left_registers=1", 40, 24, 32 * 13, 280},
        {"wgmma_64x64:splits=3,left_registers=1", 72, 72, 32 * 21, 1},
        {"wgmma_128x64_s8:exchanged=1,left_registers=1", 24, 132, 32 * 19 + 1, 1},
        {"wgmma_128x128:left_registers=1", 140, 68, 100, 1},
        {"wgmma_64x256_alt:exchanged=1,left_registers=1", 140, 68, 100, 1},
        {"wgmma_128x256:cluster=2,splits=2,left_registers=1", 140, 68, 100, 1},
        {"wgmma_64x64_s12:exchanged=1,splits=2,in_cluster=1,left_registers=1", 140, 68, 100, 1}};
    for (size_t number = 0; number < 2 * COUNT_OF(cases); number++) {
        const size_t i = number / 2;
        if (!sweep_has((int)number)) continue;
        const bool exchanged = strstr(cases[i].kernel, "exchanged") != NULL;
        product p = basic_product(cases[i].kernel, TGL_F32, cases[i].m, cases[i].n, cases[i].k);
        p.batch = cases[i].batch;
        const bool is_k_major = number % 2 != 0; /* the right operand */
        p.trans_a = exchanged ? !is_k_major : true;
        p.trans_b = exchanged ? false : is_k_major;
        if (is_k_major) *(exchanged ? &p.pad_a : &p.pad_b) = 3;
        if (p.k > 0) assert_in_registers(*state, &p);
        run_product(*state, &p);
    }
}

/* FP32 to TF32, to nearest: 10 bits of fraction remain. No test has a tie. */
static float to_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000) & ~(uint32_t)0x1fff;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* B selects: column c of D is column p(c) of A, times 1 or -1. A is read by TMA, repacked row by
 * row, transposed, or read by threads. */
static void tf32_is_rounded_to_nearest(void **state)
{
    enum { SIZE = 64 };
    for (int way = 0; way < 5; way++) {
        if (!sweep_has(way)) continue;
        product p = basic_product(way == 4 ? "wgmma_64x64:left_registers=1" : "wgmma_64x64",
                                  TGL_F32, SIZE, SIZE, SIZE);
        p.trans_a = way / 2 != 0;
        p.pad_a = way % 2;
        operands o = make_operands(*state, &p);
        float *a = (float *)(void *)o.A.host, *b = (float *)(void *)o.B.host;
        for (int64_t i = 0; i < o.A.count; i++)
            a[i] = (float)(1 + (double)((i * 2654435761u + 12345) & 0x7ffffe) / 0x800000 +
                           1.0 / 0x800000);
        for (int i = 0; i < SIZE * SIZE; i++)
            b[i] = i / SIZE == i * 5 % SIZE ? (i % 2 != 0 ? -1.0f : 1.0f) : 0.0f;
        assert_status(tgl_upload(*state, o.A.device, a, 4 * (size_t)o.A.count, NULL), TGL_OK);
        assert_status(tgl_upload(*state, o.B.device, b, 4 * (size_t)o.B.count, NULL), TGL_OK);
        const tgl_problem problem = problem_for(&p, &o);
        const tgl_plan_options options = {.size = sizeof options, .kernel = p.kernel};
        const tgl_operands to = given_operands(&p, &o);
        tgl_plan *plan;
        float d[SIZE * SIZE];
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        assert_status(tgl_plan_run_operands(plan, &to, NULL), TGL_OK);
        assert_status(tgl_download(*state, d, o.C.device, sizeof d, NULL), TGL_OK);
        for (int row = 0; row < SIZE; row++)
            for (int col = 0; col < SIZE; col++) {
                const int at = col * 5 % SIZE;
                const float x =
                    (float)element_at(&o.A, 0, p.trans_a ? at : row, p.trans_a ? row : at);
                const float right = to_tf32(x) * b[at * SIZE + col];
                if (d[row * SIZE + col] != right)
                    fail_msg("way %d: D[%d][%d] is %a, not %a", way, row, col,
                             (double)d[row * SIZE + col], (double)right);
            }
        tgl_plan_destroy(plan);
        free_operands(*state, &o);
    }
}

/* Rows, matrices and pointers that are no multiples of 16 bytes. */
static void any_alignment(void **state)
{
    int number = 0;
    for (int way = 0; way < 32; way++) {
        if (!sweep_has(number++)) continue;
        product p = basic_product(way % 2 != 0 ? "wgmma_64x64" : "wgmma_128x64:splits=2",
                                  way % 3 != 0 ? TGL_BF16 : TGL_F16, 72, 80, 168);
        p.trans_a = way / 2 % 2 != 0;
        p.trans_b = way / 4 % 2 != 0;
        p.skip_a = way * 3 % 8;
        p.skip_b = way * 5 % 8;
        p.skip_c = way % 5;
        if (way / 8 == 1) p.pad_a = way % 7 + 1;
        if (way / 8 == 2) p.pad_b = way % 5 + 1;
        if (way / 8 == 3) p.m--, p.n -= 3, p.k--, p.pad_c = 1;
        run_product(*state, &p);
    }
}

/* Tests a K of 0, of less than a stage, and of several stages, with and without split-K. */
static void every_k(void **state)
{
    static const int ks[] = {0, 1, 8, 63, 64, 65, 128, 320, 1000};
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(ks); i++)
        for (int splits = 1; splits <= 3; splits++) {
            char kernel[80];
            if (!sweep_has(number++)) continue;
            snprintf(kernel, sizeof kernel, "wgmma_64x32:splits=%d", splits);
            product p = basic_product(kernel, TGL_BF16, 70, 40, ks[i]);
            p.pad_a = (int)(-ks[i] & 7);
            p.beta = splits - 1;
            run_product(*state, &p);
        }
}

/* Without a product, matrices of a batch that are not read may have any stride. */
static void no_product_in_a_batch(void **state)
{
    product p = basic_product("wgmma_64x32", TGL_BF16, 11, 9, 0);
    p.batch = 5;
    p.pad_a = 1, p.pad_b = 3;
    p.beta = 3;
    run_product(*state, &p);
}

/* More tiles than resident blocks. On a chip of 132 SMs, bands have 6 rows of tiles, or 3 rows of
 * clusters, and the last band has fewer. */
static void many_tiles(void **state)
{
    static const char *const kernels[] = {"wgmma_64x16", "wgmma_64x16:cluster=2",
                                          "wgmma_64x16:exchanged=1,splits=2"};
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        if (!sweep_has((int)i)) continue;
        product p = basic_product(kernels[i], TGL_BF16, 64 * 9 + 1, 16 * 40, 64);
        p.alpha = 0.5;
        run_product(*state, &p);
    }
}

static void batches(void **state)
{
    for (int way = 0; way < 8; way++) {
        if (!sweep_has(way)) continue;
        product p = basic_product("wgmma_64x32", TGL_BF16, 70, 40, 72);
        p.batch = 3;
        p.shares_a = way % 2 != 0;
        if (way / 2 % 2 != 0) p.kernel = "wgmma_64x32:exchanged=1,splits=2";
        if (way / 4 != 0) p.pad_a = 1, p.pad_b = 2;
        p.residual = true;
        run_product(*state, &p);
    }
}

/* Tests bias, activation and residual, D of each type and alignment, and scalars in host and in
 * device memory. */
static void epilogues(void **state)
{
    static const char *const kernels[] = {"wgmma_128x64", "wgmma_64x32:exchanged=1",
                                          "wgmma_64x64:splits=2"};
    for (int way = 0; way < 48; way++) {
        if (!sweep_has(way)) continue;
        product p =
            basic_product(kernels[way % 3], way % 2 != 0 ? TGL_F16 : TGL_BF16, 72, 104, 136);
        p.type_c = way / 2 % 2 != 0 ? TGL_F32 : p.type;
        if (way / 4 % 2 != 0) p.type_d = way % 3 == 0 ? TGL_F32 : p.type;
        p.bias = way % 3;
        p.activation = way / 3 % 2 != 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE;
        p.residual = way / 5 % 2 != 0;
        p.device_scalars = way / 8 % 2 != 0;
        p.alpha = way % 7 == 6 ? 0 : 2;
        p.beta = way % 5 == 4 ? 0 : -1;
        p.pad_c = way % 11 % 3 * 4;
        if (way % 6 == 5) p.pad_c = 1;
        if (way % 10 == 9) {
            p.expression = "acc - c + row - 2 * col";
            p.activation = TGL_ACTIVATION_NONE;
        }
        if (way % 16 == 12) p.k = 0;
        run_product(*state, &p);
    }
}

int main(int argc, char **argv)
{
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_configuration_in_every_layout),
        cmocka_unit_test(tf32_in_every_layout),
        cmocka_unit_test(tf32_through_registers),
        cmocka_unit_test(tf32_is_rounded_to_nearest),
        cmocka_unit_test(any_alignment),
        cmocka_unit_test(every_k),
        cmocka_unit_test(many_tiles),
        cmocka_unit_test(no_product_in_a_batch),
        cmocka_unit_test(batches),
        cmocka_unit_test(epilogues),
    };
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
