/* SPDX-License-Identifier: Apache-2.0
 *
 * The wgmma family with the options of kernel strings: how results are stored, split-K, clusters,
 * and combinations that are refused.
 */
#include "wgmma_case.h"

#include "backend/backend.h"

/* ---- A chip of few SMs ----------------------------------------------------------------------- */

/* The number of SMs of the simulated chip. With few SMs, a block has several tiles of a small
 * product. At least two clusters are resident. */
static int sms;

static const tgl_chip *few_sms(const tgl_device *dev)
{
    static tgl_chip chip;
    (void)dev;
    chip = *tgl_chip_find("h200");
    chip.sms = sms;
    return &chip;
}

static int setup_few_sms(void **state)
{
    static tgl_backend backend;
    if (setup_test_device(state) != 0) return -1;
    tgl_device *dev = *state;
    sms = 4;
    if (strcmp(dev->backend->name, "sim") != 0) return 0;
    backend = *dev->backend;
    backend.chip = few_sms;
    dev->backend = &backend;
    return 0;
}

/* A number of problems, each with the tiles of one cluster, for which each cluster of blocks
 * computes two, and some a third. */
static int two_rounds(const tgl_device *dev, int cluster)
{
    return 17 * dev->backend->chip(dev)->sms / (8 * cluster) + 1;
}

/* ---- Options --------------------------------------------------------------------------------- */

/* Each block has two or three tiles, which its consumers take in turn. A tile has three steps,
 * fewer than the five stages of the ring, or so many that the parities of its barriers repeat. */
static void consumers_alternate(void **state)
{
    static const char *const kernels[] = {"wgmma_64x256_alt", "wgmma_64x256_alt:exchanged=1",
                                          "wgmma_64x256_alt:cluster=2", "wgmma_64x256_alt"};
    for (int i = 0; i < 4; i++) {
        if (!sweep_has(i)) continue;
        product p = basic_product(kernels[i], TGL_BF16, i == 2 ? 104 : 40, i == 1 ? 40 : 24,
                                  i == 3 ? 64 * 13 : 136);
        p.batch = two_rounds(*state, 1);
        run_product(*state, &p);
    }
}

/* TMA stores one tile while the block multiplies its next one. Rows and columns end within a tile;
 * not all row lengths are multiples of 16 bytes, nor do all matrices begin at one. */
static void results_are_stored_by_tma(void **state)
{
    static const struct {
        const char *kernel;
        int m, n, pad, skip;
        double beta;
    } cases[] = {{"wgmma_128x256", 72, 264, 0, 0, 0},
                 {"wgmma_128x256:exchanged=0,cluster=2", 200, 24, 0, 0, 0},
                 {"wgmma_256x128:exchanged=0", 200, 40, 8, 0, 0},
                 {"wgmma_256x128:exchanged=0", 136, 43, 5, 0, 0},
                 {"wgmma_128x192:exchanged=0", 40, 200, 0, 0, 0},
                 {"wgmma_192x192:exchanged=0", 24, 136, 0, 0, 0},
                 {"wgmma_128x192:exchanged=0", 24, 40, 0, 3, 0},
                 {"wgmma_128x128:exchanged=0", 24, 32, 0, 0, -1},
                 {"wgmma_128x64_s8:exchanged=0", 72, 56, 0, 0, 0},
                 {"wgmma_64x128_s8:exchanged=0", 40, 136, 0, 8, 0},
                 {"wgmma_64x64_s12:exchanged=0", 24, 33, 7, 0, 0},
                 {"wgmma_64x256:exchanged=0", 33, 72, 0, 0, 0},
                 {"wgmma_128x224:exchanged=0", 72, 232, 0, 0, 0},
                 {"wgmma_128x224:exchanged=0,cluster=2", 200, 72, 8, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!sweep_has((int)i)) continue;
        product p = basic_product(cases[i].kernel, i % 2 == 0 ? TGL_BF16 : TGL_F16, cases[i].m,
                                  cases[i].n, 64 + 8 * (i % 3 == 0));
        p.pad_c = cases[i].pad;
        p.skip_c = cases[i].skip;
        p.beta = cases[i].beta;
        p.batch = two_rounds(*state, 1);
        p.bias = i % 2 == 0 ? TGL_BIAS_ROW : TGL_BIAS_COLUMN;
        p.activation = TGL_ACTIVATION_RELU;
        run_product(*state, &p);
        p.batch = 1;
        p.bias = TGL_BIAS_NONE;
        p.activation = TGL_ACTIVATION_NONE;
        p.expression = "acc - c + row - 2 * col";
        run_product(*state, &p);
        p.expression = NULL;
        p.residual = true; /* of 16 bits, read in pairs unless n is odd */
        p.batch = i % 2 == 0 ? 1 : two_rounds(*state, 1);
        p.activation = i % 3 == 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE;
        p.bias = i % 3 == 1 ? TGL_BIAS_COLUMN : TGL_BIAS_NONE;
        run_product(*state, &p);
    }
}

/* Results of 16 bits with a residual by kernels whose threads store them, and with split-K. */
static void residuals_are_read_in_pairs(void **state)
{
    static const struct {
        const char *kernel;
        int m, n, k;
    } cases[] = {{"wgmma_128x128_alt", 72, 136, 72},
                 {"wgmma_256x144", 72, 200, 72},
                 {"wgmma_64x32", 72, 46, 72},
                 {"wgmma_64x64:exchanged=1", 72, 136, 72},
                 {"wgmma_64x64_s12:exchanged=0,splits=2", 72, 136, 256},
                 {"wgmma_128x64_s8:exchanged=0,cluster=2", 200, 72, 136},
                 {"wgmma_128x128:splits=2,in_cluster=1,exchanged=0", 72, 136, 256}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!sweep_has((int)i)) continue;
        product p = basic_product(cases[i].kernel, i % 2 == 0 ? TGL_BF16 : TGL_F16, cases[i].m,
                                  cases[i].n, cases[i].k);
        p.residual = true;
        run_product(*state, &p);
        p.batch = two_rounds(*state, 1);
        p.beta = i % 3 == 0 ? -1 : 0;
        run_product(*state, &p);
    }
}

/* TMA stores with split-K, without a product, with device scalars and a separate D, with a second
 * tile of a cluster beyond the matrix, and with a D that TMA cannot store. */
static void tma_stores_in_other_ways(void **state)
{
    static const char tiles[] = "wgmma_64x64_s12:exchanged=0";
    enum { WAYS = 12 };
    for (int way = 0; way < WAYS; way++) {
        if (!sweep_has(way)) continue;
        product p = basic_product(tiles, TGL_BF16, 72, 136, 256);
        switch (way) {
        case 0:
            p.kernel = "wgmma_64x64_s12:exchanged=0,splits=2";
            break;
        case 1:
            p.kernel = "wgmma_64x64_s12:exchanged=0,splits=3,whole=2";
            break;
        case 2:
        case 3:
            p.kernel = "wgmma_128x64_s8:exchanged=0,cluster=2";
            p.m = way == 2 ? 100 : 300;
            break;
        case 4:
        case 5:
            p.alpha = 0;
            p.beta = way == 4 ? 0 : -1;
            break;
        case 6:
            p.k = 0;
            break;
        case 7:
        case 8:
            p.device_scalars = true;
            p.beta = way == 7 ? 0 : -1;
            break;
        case 9:
        case 10:
            p.type_d = TGL_BF16;
            p.beta = way == 9 ? 0 : -1;
            break;
        default:
            p.skip_c = 4;
        }
        run_product(*state, &p);
    }
}

/* The blocks of a cluster share a tile and divide K. Tested with a K of which some blocks get no
 * part, with batches, and with partial tiles. */
static void splits_in_clusters(void **state)
{
    static const char *const kernels[] = {"wgmma_128x128:splits=2", "wgmma_64x64:splits=4",
                                          "wgmma_64x256:splits=8", "wgmma_128x192:splits=3",
                                          "wgmma_64x32:splits=2"};
    static const int ks[] = {0, 64, 200, 520};
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        for (int way = 0; way < 8; way++) {
            char kernel[80];
            if (!sweep_has(number++)) continue;
            snprintf(kernel, sizeof kernel, "%s,in_cluster=1,exchanged=%d", kernels[i], way % 2);
            product p = basic_product(kernel, TGL_BF16, 72 + way * 8, 136, ks[way / 2]);
            if (way % 3 == 1) p.type_c = TGL_F32;
            p.trans_a = way / 4 != 0;
            p.batch = way == 5 ? 3 : 0;
            p.beta = way % 3;
            p.bias = way == 6 ? TGL_BIAS_COLUMN : TGL_BIAS_NONE;
            p.residual = way == 3;
            run_product(*state, &p);
        }
}

/* Tests clusters of several rows and columns of tiles in every layout, with more steps of K than
 * the ring has stages, with more clusters than are resident, and with tiles beyond the edges. */
static void clusters_of_rows_and_columns(void **state)
{
    static const struct {
        const char *kernel;
        int m, n, k, batch; /* -2, -4: two_rounds() of clusters of 2 or 4 blocks */
    } cases[] = {{"wgmma_64x64_s12:cluster=2,columns=2", 200, 72, 64 * 15, 0},
                 {"wgmma_64x64_s12:columns=4", 72, 200, 200, 3},
                 {"wgmma_64x64:cluster=4", 264, 72, 64 * 9, 0},
                 {"wgmma_64x64:columns=2,splits=2,exchanged=1", 72, 200, 264, 0},
                 {"wgmma_64x64:cluster=2,columns=2", 72, 72, 200, -4},
                 {"wgmma_128x128_alt:columns=2", 24, 136, 72, -2},
                 {"wgmma_64x80_s11:cluster=2,columns=2,exchanged=1", 88, 72, 64 * 13, 0},
                 {"wgmma_192x192:columns=2", 40, 200, 136, 0}};
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int way = 0; way < 8; way++) {
            const bool is_tf32 = way / 4 != 0, is_long = cases[i].batch < 0;
            char kernel[80];
            if (is_long && way % 4 != (int)i % 4) continue; /* long products in one layout only */
            if (!sweep_has(number++)) continue;
            const bool exchanged = strstr(cases[i].kernel, "exchanged") != NULL;
            const bool through_registers = is_tf32 && way % 4 == (exchanged ? 0 : 3) && i < 5;
            snprintf(kernel, sizeof kernel, "%s%s", cases[i].kernel,
                     through_registers ? ",left_registers=1" : "");
            product p = basic_product(kernel, is_tf32 ? TGL_F32 : TGL_BF16, cases[i].m, cases[i].n,
                                      cases[i].k);
            sms = cases[i].batch == -4 ? 8 : 4;
            p.batch = is_long ? two_rounds(*state, -cases[i].batch) : cases[i].batch;
            p.trans_a = way % 2 != 0;
            p.trans_b = way / 2 % 2 != 0;
            p.beta = way % 3;
            run_product(*state, &p);
        }
}

/* Few rows or columns that are MN-major, and have to be repacked, become K-major. */
static void slivers_become_k_major(void **state)
{
    static const char *const kernels[] = {"wgmma_64x16", "wgmma_64x32:exchanged=1",
                                          "wgmma_64x64:cluster=2"};
    for (int i = 0; i < 12; i++) {
        if (!sweep_has(i)) continue;
        const bool few_rows = i % 2 != 0;
        product p =
            basic_product(kernels[i % 3], i % 4 < 2 ? TGL_BF16 : TGL_F16, few_rows ? 1 + i : 140,
                          few_rows ? 140 : 3 + i, 61 + 16 * i + i % 3);
        p.trans_a = few_rows;
        p.trans_b = few_rows;
        p.pad_a = few_rows ? 2 : 0;
        p.batch = i / 6 != 0 ? 2 : 0;
        run_product(*state, &p);
    }
}

/* Tests launches in which some tiles are whole and the others are split, and one in which all are
 * whole, also with clusters that share right tiles and with batches. Two have more splits than a
 * thread loads together (UNITS_AT_ONCE of lib/split_units.h). */
static void some_tiles_whole(void **state)
{
    static const char *const kernels[] = {"wgmma_64x32:splits=3,whole=5",
                                          "wgmma_64x32:splits=2,whole=1,exchanged=1",
                                          "wgmma_64x32:splits=2,whole=3,cluster=2",
                                          "wgmma_64x32:splits=2,whole=1000",
                                          "wgmma_64x64_s12:splits=5",
                                          "wgmma_128x64_s8:splits=5,whole=1"};
    for (int i = 0; i < 12; i++) {
        if (!sweep_has(i)) continue;
        product p = basic_product(kernels[i % 6], TGL_BF16, 200, 72, 264);
        p.batch = i / 6 != 0 ? 3 : 0;
        run_product(*state, &p);
    }
}

static void refused_for(tgl_device *dev, tgl_type type, const char *kernel, const char *why)
{
    const product p = basic_product(kernel, type, 128, 128, 128);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    const operands o = make_operands(dev, &p);
    const tgl_problem problem = problem_for(&p, &o);
    tgl_plan *plan = NULL;
    char error[600];
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_UNSUPPORTED);
    tgl_last_error(error, sizeof error);
    if (strstr(error, why) == NULL) fail_msg("%s: \"%s\" does not say \"%s\"", kernel, error, why);
    free_operands(dev, &o);
}

static void refused(tgl_device *dev, const char *kernel, const char *why)
{
    refused_for(dev, TGL_BF16, kernel, why);
}

static void impossible_options_are_refused(void **state)
{
    refused(*state, "wgmma_64x256_alt:splits=2", "split no tiles");
    refused(*state, "wgmma_64x64:cluster=3", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x64:cluster=8", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x64:cluster=4,columns=2", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x64:columns=3", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x64:columns=65536", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x16:cluster=4", "multiples of 8 columns");
    refused(*state, "wgmma_64x64:splits=2,in_cluster=1,columns=2", "with no other");
    refused(*state, "wgmma_64x64:in_cluster=1", "cannot have as many blocks");
    refused(*state, "wgmma_64x64:splits=9,in_cluster=1", "cannot have as many blocks");
    refused(*state, "wgmma_64x64:splits=3,in_cluster=1", "cannot share the columns");
    refused(*state, "wgmma_64x16:splits=2,in_cluster=1", "cannot share the columns");
    refused(*state, "wgmma_64x64:splits=2,in_cluster=1,cluster=2", "with no other");
    refused(*state, "wgmma_64x64:left_registers=1", "is for TF32");
    refused_for(*state, TGL_F32, "wgmma_64x64:left_registers=1", "contiguous in its rows");
    refused_for(*state, TGL_F32, "wgmma_64x32:left_registers=1", "leave enough registers");
}

int main(int argc, char **argv)
{
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumers_alternate),
        cmocka_unit_test(results_are_stored_by_tma),
        cmocka_unit_test(residuals_are_read_in_pairs),
        cmocka_unit_test(tma_stores_in_other_ways),
        cmocka_unit_test(splits_in_clusters),
        cmocka_unit_test(clusters_of_rows_and_columns),
        cmocka_unit_test(slivers_become_k_major),
        cmocka_unit_test(some_tiles_whole),
        cmocka_unit_test(impossible_options_are_refused),
    };
    return cmocka_run_group_tests(tests, setup_few_sms, teardown_device);
}
