/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cpu device decides for a problem (src/cpu/plan/cpu_plan.c, src/cpu/plan/cpu_blocking.c).
 * Plans are made for a processor that need not be this one.
 */
#include "support.h"

#include "backend/backend.h"
#include "cpu/plan/word_plan.h"
#include "cpu/run/cpu_device.h"
#include "cpu/run/cpu_gemm.h"

static const cpu_machine server = {
    .facts = {.l1d = 48 << 10, .l2 = 2 << 20, .l3 = 64 << 20, .cores = 8},
    .threads = 8,
};

static tgl_shape shape_of(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b)
{
    tgl_problem problem = problem_of(TGL_F32, m, n, k);
    problem.trans_a = trans_a ? TGL_TRANS : TGL_NO_TRANS;
    problem.trans_b = trans_b ? TGL_TRANS : TGL_NO_TRANS;
    tgl_shape shape;
    assert_status(tgl_shape_make(&problem, true, &shape), TGL_OK);
    return shape;
}

static cpu_plan plan_of(const tgl_shape *shape, int threads)
{
    cpu_machine device = server;
    device.threads = threads;
    cpu_plan plan;
    tgl_cpu_plan(shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &plan);
    return plan;
}

static void small_products_stay_simple(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= CPU_SMALL; n++) {
        const tgl_shape shape = shape_of(n, n, n, n % 2 == 0, n % 3 == 0);
        const cpu_plan plan = plan_of(&shape, 8);
        assert_int_equal(plan.path, CPU_PATH_SMALL);
        assert_int_equal(plan.threads, 1);
        assert_int_equal(plan.workspace, 0);
    }
    for (int dimension = 0; dimension < 3; dimension++) {
        int64_t n[] = {CPU_SMALL, CPU_SMALL, CPU_SMALL};
        n[dimension]++;
        const tgl_shape shape = shape_of(n[0], n[1], n[2], false, false);
        assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_GEMM);
    }
}

static void paths_follow_the_shape(void **state)
{
    (void)state;
    tgl_shape shape = shape_of(100, 100, 0, false, false);
    assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_SCALE);
    shape = shape_of(1, 5000, 5000, false, false);
    assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_VECTOR);
    shape = shape_of(5000, 1, 5000, true, true);
    assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_VECTOR);
    shape = shape_of(1000, 1000, 1000, true, true);
    assert_int_equal(plan_of(&shape, 8).path, CPU_PATH_GEMM);
}

/* Small products with one row or one column are summed in the order of larger products. */
static void small_vectors_take_the_tiles(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        cpu_path path;
    } table[] = {{1, 1, 1, CPU_PATH_GEMM},
                 {8, 1, 8, CPU_PATH_GEMM},
                 {1, 8, 8, CPU_PATH_GEMM},
                 {64, 1, 1, CPU_PATH_GEMM},
                 {1, 4, 16, CPU_PATH_GEMM},
                 {1, 3, 17, CPU_PATH_VECTOR},
                 {9, 1, 8, CPU_PATH_VECTOR},
                 {1, 65, 1, CPU_PATH_VECTOR},
                 {65, 1, 1, CPU_PATH_VECTOR},
                 {1, 1, INT64_MAX / 8, CPU_PATH_VECTOR},
                 {1, INT64_MAX / 128, 16, CPU_PATH_VECTOR}};
    for (size_t i = 0; i < COUNT_OF(table); i++)
        for (int trans = 0; trans < 4; trans++) {
            const tgl_shape shape =
                shape_of(table[i].m, table[i].n, table[i].k, trans & 1, trans & 2);
            assert_int_equal(plan_of(&shape, 8).path, table[i].path);
        }
}

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
    shape = shape_of(4, 4096, 4096, false, false); /* or it is used once */
    assert_false(plan_of(&shape, 1).pack_b);
}

/* Few rows: long blocks of k, in which all rows of A fit in their part of L2. */
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

/* A small L2 gives a block of A a third, a large one two sevenths. */
static void a_block_of_a_fits_in_l2(void **state)
{
    (void)state;
    const tgl_shape shape = shape_of(2000, 2000, 2000, false, false);
    static const struct {
        size_t l2, least, most;
    } table[] = {{256 << 10, 60 << 10, 86 << 10},
                 {512 << 10, 130 << 10, 160 << 10},
                 {1 << 20, 250 << 10, 293 << 10},
                 {2 << 20, 500 << 10, 586 << 10}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        cpu_machine device = server;
        device.threads = 1;
        device.facts.l2 = table[i].l2;
        cpu_plan plan;
        tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &plan);
        assert_in_range(plan.mc * plan.kc * 4, table[i].least, table[i].most);
    }
}

/* Rows of A that fit in three fifths of L2 are one block, but 512 at most, and panels of B are not
 * kept. */
static void few_rows_are_one_block(void **state)
{
    (void)state;
    static const size_t sizes[] = {512 << 10, 2 << 20};
    const cpu_kernels *kernels = &tgl_cpu_kernels_portable_f32;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        cpu_machine device = server;
        device.threads = 1;
        device.facts.l2 = sizes[i];
        const int64_t kc = kernels->kc, fit = (int64_t)(0.6 * (double)sizes[i]) / kc / 4;
        const int64_t most = fit < 512 ? fit : 512;
        for (int64_t rows = most - 40; rows < most + 40; rows++) {
            const tgl_shape shape = shape_of(rows, 24, kc, false, false); /* a small B */
            cpu_plan plan;
            tgl_cpu_plan(&shape, kernels, (cpu_blocking){0}, &device, &plan);
            assert_int_equal(plan.kc, kc);
            assert_int_equal(plan.mc == rows, rows <= most);
            assert_int_equal(plan.keep_b, rows > most);
            assert_true(plan.mc <= 512);
            tgl_cpu_plan(&shape, kernels, (cpu_blocking){.mc = 96}, &device, &plan);
            assert_true(plan.mc <= 96);
        }
    }
    /* A short k, so that more rows would fit. */
    const tgl_shape shape = shape_of(3000, 2000, 20, false, false);
    assert_in_range(plan_of(&shape, 1).mc, 400, 512);
}

/* The steps of k are those of the product: where threads share rows and columns, the bits of a
 * result do not depend on their number. With a small L2 fewer steps are taken for few rows. */
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

/* Kernels with tiles as wide as those of AVX-512, of which a plan needs the numbers only. */
static cpu_kernels wide_kernels(void)
{
    cpu_kernels kernels = tgl_cpu_kernels_portable_f32;
    kernels.vector = 16;
    kernels.mr = 8;
    kernels.nv = 3;
    kernels.small_nv = 4;
    return kernels;
}

/* Intel's processors read fewer rows of B at a time. */
static void steps_of_few_rows_depend_on_the_vendor(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t rows;
        int least, most;
    } table[] = {{"GenuineIntel 6.143", 16, 48, 48},
                 {"GenuineIntel 6.143", 36, 64, 80},
                 {"GenuineIntel 6.143", 100, 180, 208},
                 {"AuthenticAMD 25.17", 16, 128, 128},
                 {"AuthenticAMD 25.17", 36, 200, 224}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_shape shape = shape_of(table[i].rows, 4096, 4096, false, false);
        cpu_machine device = server;
        snprintf(device.facts.model, sizeof device.facts.model, "%s", table[i].model);
        cpu_plan plan;
        tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &plan);
        assert_in_range(plan.kc, table[i].least, table[i].most);
    }
}

/* Rows of A are copied on Intel's processors if they share few sets of the caches and A exceeds L2,
 * on Zen 4 with vectors of 32 bytes if C has many columns. */
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
                 {"AuthenticAMD 25.1", 1024, 1024, 1024, 8, false}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_shape shape = shape_of(table[i].m, table[i].n, table[i].ld, false, false);
        cpu_machine device = server;
        device.threads = 1;
        snprintf(device.facts.model, sizeof device.facts.model, "%s", table[i].model);
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

static void multiply_nothing(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c,
                             int64_t ldc, bool add, const cpu_words_next next[2])
{
    (void)m, (void)n, (void)k, (void)a, (void)b, (void)c, (void)ldc, (void)add, (void)next;
}

/* Products of 16-bit types: by FMAs a thread pays from 1e5 multiply-adds on, by fast words from as
 * many as take 1500 cycles. */
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
        cpu_machine device = server;
        device.threads = 16;
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

/* Threads do not all pack the whole of a transposed A, and none reads it without packing. */
static void threads_share_the_packing_of_a(void **state)
{
    (void)state;
    const cpu_kernels kernels = wide_kernels();
    for (int threads = 8; threads <= 16; threads *= 2) {
        cpu_machine device = server;
        device.threads = threads;
        cpu_plan plan;
        const tgl_shape transposed = shape_of(1024, 1024, 1024, true, false);
        tgl_cpu_plan(&transposed, &kernels, (cpu_blocking){0}, &device, &plan);
        assert_true(plan.grid_m >= 2 && plan.grid_m * plan.grid_n % threads == 0 && plan.pack_a);
        const tgl_shape plain = shape_of(1024, 256, 256, false, false);
        tgl_cpu_plan(&plain, &kernels, (cpu_blocking){0}, &device, &plan);
        assert_true(plan.grid_m >= 2 && plan.grid_m * plan.grid_n % threads == 0 && !plan.pack_a);
    }
}

/* C := A*B by a plan for a processor of this model, on one thread. Returns whether A was packed. */
static bool multiply_as_on(const char *model, const tgl_shape *shape, const cpu_kernels *kernels,
                           void *a, void *b, void *c)
{
    cpu_machine device = server;
    device.facts.l2 = 256 << 10;
    snprintf(device.facts.model, sizeof device.facts.model, "%s", model);
    thread_pool threads;
    tgl_thread_pool_open(&threads, 1, 1);
    device.threads = 1;
    cpu_plan plan;
    tgl_cpu_plan(shape, kernels, (cpu_blocking){0}, &device, &plan);
    const tgl_run run = {
        .alpha = 1,
        .has_product = true,
        .at = {[TGL_AT_A] = a, [TGL_AT_B] = b, [TGL_AT_C] = c, [TGL_AT_D] = c},
    };
    char *workspace = aligned_alloc(CPU_ALIGNMENT, tgl_cpu_aligned(plan.workspace));
    assert_non_null(workspace);
    tgl_cpu_gemm(shape, &plan, &run, workspace, &threads);
    free(workspace);
    tgl_thread_pool_close(&threads);
    return plan.pack_a;
}

/* Packing rows of A does not change a bit. */
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

/* The next block of B is prefetched if a block has several panels, its rows are not short, and B
 * exceeds its part of L2. Two of its blocks fit in a quarter of L2 then. */
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
        cpu_machine device = server;
        device.threads = 1;
        cpu_plan plan;
        tgl_cpu_plan(&shape, &kernels, (cpu_blocking){0}, &device, &plan);
        if (plan.fetch_next_block != table[i].expected) fail_msg("row %d", (int)i);
        const size_t block = (size_t)(plan.kc * table[i].n) * sizeof(float);
        if (table[i].n <= 96)
            assert_true(block <= device.facts.l2 / (plan.fetch_next_block ? 8 : 4));
    }
}

/* Bands: where k is short and C is large, on the processors in the table. */
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
    } table[] = {{1, 2000, 3000, 100, "AuthenticAMD 25.1", 8, 0, true},
                 {1, 2000, 3000, 127, "AuthenticAMD 25.1", 8, 0, true},
                 {1, 2000, 3000, 128, "AuthenticAMD 25.1", 8, 0, false},
                 {1, 1000, 1000, 100, "AuthenticAMD 25.1", 8, 0, false},
                 {1, 4, 600000, 100, "AuthenticAMD 25.1", 8, 0, false}, /* B is used once */
                 {1, 2000, 3000, 100, "AuthenticAMD 25.1", 8, 96, false},
                 {1, 2000, 3000, 100, "AuthenticAMD 25.17", 8, 0, true},
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
        cpu_machine device = server;
        device.threads = table[i].threads;
        snprintf(device.facts.model, sizeof device.facts.model, "%s", table[i].model);
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
    cpu_machine device = server;
    snprintf(device.facts.model, sizeof device.facts.model, "AuthenticAMD 25.17");
    cpu_kernels kernels = tgl_cpu_kernels_portable_f32;
    kernels.vector = 8;
    cpu_plan plan;
    tgl_cpu_plan(&shape, &kernels, (cpu_blocking){0}, &device, &plan);
    assert_int_equal(plan.sharing, CPU_SHARE_BATCH);
    assert_true(plan.in_bands);
}

static void a_blocking_is_obeyed(void **state)
{
    (void)state;
    const tgl_shape shape = shape_of(1000, 1000, 1000, false, false);
    cpu_machine device = server;
    device.threads = 1;
    cpu_plan own, plan;
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &own);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.kc = 104}, &device, &plan);
    assert_int_equal(plan.kc, 104);
    assert_true(plan.mc > own.mc);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.mc = 40}, &device, &plan);
    assert_true(plan.kc == own.kc && plan.mc == 40);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.mc = 43}, &device, &plan);
    assert_int_equal(plan.mc, 40);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.mc = 1003}, &device, &plan);
    assert_int_equal(plan.mc, 1000);
    assert_false(plan.keep_b);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.mc = 1}, &device, &plan);
    assert_int_equal(plan.mc, plan.kernels->mr);
}

static void blockings_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        cpu_blocking expected; /* kc -1: refused */
    } table[] = {{"", {0, 0}},           {":kc=256", {256, 0}},
                 {":mc=96", {0, 96}},    {":kc=1,mc=65536", {1, 65536}},
                 {":mc=7,kc=8", {8, 7}}, {":", {-1, 0}},
                 {":kc", {-1, 0}},       {":kc=", {-1, 0}},
                 {":kc=0", {-1, 0}},     {":kc=-1", {-1, 0}},
                 {":kc= 1", {-1, 0}},    {":kc=1x", {-1, 0}},
                 {":kc=65537", {-1, 0}}, {":kc=99999999999999999999", {-1, 0}},
                 {":kc=1,", {-1, 0}},    {":kc=1,kc=2", {-1, 0}},
                 {":nc=1", {-1, 0}}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        cpu_blocking found;
        const bool refused = table[i].expected.kc < 0;
        forget_error();
        assert_status(tgl_cpu_blocking_read(table[i].text, &found),
                      refused ? TGL_BAD_ARGUMENT : TGL_OK);
        if (refused)
            assert_new_sentence();
        else
            assert_memory_equal(&found, &table[i].expected, sizeof found);
    }
}

static void rows_are_for_one_processor(void **state)
{
    (void)state;
    static const cpu_tuned rows[] = {{"Vendor 6.1", "avx2", TGL_F32, {100, 10}},
                                     {"Vendor 6.1", "avx512", TGL_F32, {200, 20}},
                                     {"Vendor 6.1", "avx512", TGL_F64, {300, 30}},
                                     {NULL, NULL, TGL_F32, {0, 0}}};
    const cpu_tier avx512 = {.name = "avx512"}, amx = {.name = "amx", .base = "avx512"},
                   neon = {.name = "neon"};
    const cpu_facts known = {.model = "Vendor 6.1"}, other = {.model = "Vendor 6.10"};
    assert_int_equal(tgl_cpu_find_blocking(rows, &known, &avx512, TGL_F32).kc, 200);
    assert_int_equal(tgl_cpu_find_blocking(rows, &known, &avx512, TGL_F64).mc, 30);
    assert_int_equal(tgl_cpu_find_blocking(rows, &known, &amx, TGL_F32).kc, 200);
    assert_int_equal(tgl_cpu_find_blocking(rows, &known, &neon, TGL_F32).kc, 0);
    assert_int_equal(tgl_cpu_find_blocking(rows, &other, &avx512, TGL_F32).kc, 0);
}

/* Products in blocks of a few steps and rows. */
static void check_in_blocks(tgl_device *dev, tgl_problem problem, const char *options)
{
    char kernel[64];
    gemm_outcome outcome;
    snprintf(kernel, sizeof kernel, "%s:%s", tgl_kernel_name(dev, 0), options);
    const gemm_case c = {.problem = problem,
                         .alpha = 1.5,
                         .beta = 0.5,
                         .fill = UNIFORM_11,
                         .kernel = kernel,
                         .seed = 1};
    gemm_case_run(dev, &c, false, &outcome);
    assert_string_equal(outcome.fault, "");
    assert_status(outcome.status, TGL_OK);
}

static void products_in_small_blocks_are_right(void **state)
{
    static const char *const options[] = {"kc=1", "kc=9,mc=5", "mc=1", "kc=65536,mc=65536"};
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        tgl_problem problem = problem_of(TGL_F32, 150, 130, 170);
        if (i % 2) problem.trans_a = TGL_TRANS;
        check_in_blocks(*state, problem, options[i]);
    }
}

/* Products that are large enough for A to be packed, in several blocks of it. */
static void packed_blocks_are_right(void **state)
{
    static const char *const options[] = {"mc=20", "mc=150,kc=100", "mc=301", "kc=64,mc=296"};
    for (size_t i = 0; i < 4 * COUNT_OF(options); i++) {
        tgl_problem problem = problem_of(i % 2 ? TGL_F64 : TGL_F32, 301, 310, 320);
        problem.trans_a = TGL_TRANS;
        problem.trans_b = i / 2 % 2 ? TGL_TRANS : TGL_NO_TRANS;
        check_in_blocks(*state, problem, options[i / 4]);
    }
}

/* Batches of small products that exceed the caches, unless a product is tiny or strided, or B is
 * one panel. */
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
        cpu_machine device = server;
        snprintf(device.facts.model, sizeof device.facts.model, "%s", table[i].model);
        cpu_plan plan;
        tgl_cpu_plan(&shape, table[i].wide ? &wide : &tgl_cpu_kernels_portable_f32,
                     (cpu_blocking){0}, &device, &plan);
        assert_int_equal(plan.path, CPU_PATH_SMALL);
        if (plan.fetch != table[i].fetch) fail_msg("row %d", (int)i);
    }
}

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

/* Five threads take as long for 16 rows of tiles as four. f64 is worth twice the threads. */
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

    /* Threads along n read B once; along m each would. */
    shape = shape_of(16 * f32->mr, 16 * f32->vector, 100, false, false);
    plan = plan_of(&shape, 4);
    assert_int_equal(plan.grid_m, 1);
    assert_int_equal(plan.grid_n, 4);

    shape = shape_of(80, 80, 80, false, false);
    cpu_machine device = server;
    device.threads = 16;
    tgl_cpu_plan(&shape, f32, (cpu_blocking){0}, &device, &plan);
    assert_in_range(plan.threads, 4, 5);
    tgl_cpu_plan(&shape, f64, (cpu_blocking){0}, &device, &plan);
    assert_in_range(plan.threads, 8, 10);
}

/* Several rectangles a thread, unless they would be small: fewer than 48 rows or columns, or 2 *
 * 10^6 multiply-adds, or with a transposed A 6 * 10^7. More than four have 6 * 10^7 at least. */
static void threads_take_several_rectangles(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        bool trans_a;
        int rectangles;
    } table[] = {
        {2000, 2000, 2000, false, 8}, {1000, 1000, 1000, false, 4}, {2000, 2000, 2000, true, 8},
        {1000, 1000, 1000, true, 4},  {600, 600, 600, true, 1},     {190, 190, 190, false, 1},
        {300, 300, 80, false, 1},     {200, 150, 3000, false, 2},   {90, 90, 20000, false, 1},
        {40, 4000, 400, false, 1},    {300, 300, 300, false, 2},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const tgl_shape shape =
            shape_of(table[i].m, table[i].n, table[i].k, table[i].trans_a, false);
        const cpu_plan plan = plan_of(&shape, 4);
        assert_int_equal(plan.sharing, CPU_SHARE_C);
        const int rectangles = plan.grid_m * plan.grid_n / plan.threads;
        if (rectangles != table[i].rectangles) fail_msg("row %d: %d", (int)i, rectangles);
    }
    tgl_shape shape = shape_of(1000, 1280, 127, false, true);
    cpu_plan plan = plan_of(&shape, 2);
    assert_int_equal(plan.grid_m * plan.grid_n, 2);
    /* Columns first, while 320 are left. */
    shape = shape_of(1000, 1280, 500, false, false);
    plan = plan_of(&shape, 2);
    assert_int_equal(plan.grid_m, 2);
    assert_int_equal(plan.grid_n, 4);
}

/* Blocks cover the problem, tiles fit the kernels, and buffers hold the blocks. */
static void plans_are_consistent(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int i = 0; i < 20000; i++) {
        const int64_t largest = (int64_t)1 << random_int(&seed, 1, 14);
        const tgl_shape shape = shape_of(
            random_int(&seed, 2, largest), random_int(&seed, 2, largest),
            random_int(&seed, 1, largest), random_int(&seed, 0, 1), random_int(&seed, 0, 1));
        cpu_kernels table = tgl_cpu_kernels_portable_f32;
        table.mr = (int)random_int(&seed, 2, 4) * 2;
        cpu_machine device = server;
        device.threads = (int)random_int(&seed, 1, 70);
        device.facts.l2 = (size_t)256 << 10 << random_int(&seed, 0, 3);
        cpu_blocking blocking = {0};
        if (random_int(&seed, 0, 3) == 0) blocking.mc = (int)random_int(&seed, 1, 2 * largest);
        if (random_int(&seed, 0, 3) == 0) blocking.kc = (int)random_int(&seed, 1, 2 * largest);
        cpu_plan plan;
        tgl_cpu_plan(&shape, &table, blocking, &device, &plan);
        const cpu_kernels *kernels = plan.kernels;
        if (plan.path == CPU_PATH_SMALL) {
            assert_int_equal(plan.workspace, 0);
            continue;
        }
        assert_true(plan.mc > 0 && plan.nc > 0 && plan.kc > 0 && plan.threads > 0);
        if (plan.sharing == CPU_SHARE_C) {
            assert_int_equal(plan.grid_m * plan.grid_n % plan.threads, 0);
            assert_true((plan.grid_m - 1) * kernels->mr < shape.m); /* each has rows */
            assert_true((plan.grid_n - 1) * kernels->vector < shape.n);
        }
        if (plan.pack_a)
            assert_true(plan.a_bytes >= (size_t)(plan.mc * plan.kc) * kernels->element);
        if (plan.keep_b) assert_int_equal(plan.mc % kernels->mr, 0); /* blocks are whole tiles */
        const int64_t width = (int64_t)kernels->nv * kernels->vector;
        const int64_t columns = plan.keep_b ? plan.nc : plan.nc < width ? plan.nc : width;
        if (plan.pack_b)
            assert_true(plan.b_bytes >= (size_t)(columns * plan.kc) * kernels->element);
        assert_true(plan.workspace >= (size_t)plan.threads * (plan.a_bytes + plan.b_bytes));
    }
}

static void plans_explain_themselves(void **state)
{
    tgl_device *dev = *state;
    static const struct {
        int64_t m, n, k;
        const char *word;
    } table[] = {{1000, 1000, 1000, "blocks"},
                 {1000, 1, 1000, "matrix-vector product"},
                 {10, 10, 0, "k is 0"},
                 {30, 40, 50, "register tiles"},
                 {48, 48, 100000, "partial sums"}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_problem problem = problem_of(TGL_F64, table[i].m, table[i].n, table[i].k);
        tgl_plan *plan;
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
        char text[2000], start[10];
        const size_t length = tgl_plan_explain(plan, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_int_equal(tgl_plan_explain(plan, start, sizeof start), length);
        assert_int_equal(strlen(start), sizeof start - 1);
        assert_int_equal(tgl_plan_explain(plan, NULL, 0), length);
        const bool one_thread = strstr(text, "of 1") != NULL;
        if (!one_thread || i < 4) assert_non_null(strstr(text, table[i].word));
        assert_non_null(strstr(text, tgl_plan_kernel(plan)));
        tgl_plan_destroy(plan);
    }

    const tgl_device_options options = {.size = sizeof options, .threads = 4};
    tgl_device *four;
    assert_status(tgl_device_open("cpu", &options, &four), TGL_OK);
    const tgl_problem problem = problem_of(TGL_F64, 1000, 1000, 1000);
    tgl_plan *plan;
    assert_status(tgl_plan_create(four, &problem, NULL, &plan), TGL_OK);
    char text[2000];
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "threads     4 of 4, which take "));
    assert_non_null(strstr(text, "rectangles of C"));
    tgl_plan_destroy(plan);
    tgl_device_close(four);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_products_stay_simple),
        cmocka_unit_test(paths_follow_the_shape),
        cmocka_unit_test(small_vectors_take_the_tiles),
        cmocka_unit_test(what_is_read_often_is_packed),
        cmocka_unit_test(flat_products_have_long_blocks),
        cmocka_unit_test(a_block_of_a_fits_in_l2),
        cmocka_unit_test(few_rows_are_one_block),
        cmocka_unit_test(steps_of_k_do_not_depend_on_threads),
        cmocka_unit_test(short_k_takes_bands),
        cmocka_unit_test(a_blocking_is_obeyed),
        cmocka_unit_test(blockings_are_read),
        cmocka_unit_test(rows_are_for_one_processor),
        cmocka_unit_test_setup_teardown(products_in_small_blocks_are_right, setup_cpu,
                                        teardown_device),
        cmocka_unit_test_setup_teardown(packed_blocks_are_right, setup_cpu, teardown_device),
        cmocka_unit_test(large_batches_are_prefetched),
        cmocka_unit_test(steps_of_few_rows_depend_on_the_vendor),
        cmocka_unit_test(narrow_products_prefetch_the_next_block),
        cmocka_unit_test(rows_are_copied_where_that_is_faster),
        cmocka_unit_test(threads_share_the_packing_of_a),
        cmocka_unit_test_setup_teardown(fast_words_take_fewer_threads, setup_cpu, teardown_device),
        cmocka_unit_test_setup_teardown(copied_rows_give_the_same_bits, setup_cpu, teardown_device),
        cmocka_unit_test(threads_share_what_there_is),
        cmocka_unit_test(threads_that_would_wait_are_not_used),
        cmocka_unit_test(threads_take_several_rectangles),
        cmocka_unit_test(plans_are_consistent),
        cmocka_unit_test_setup_teardown(plans_explain_themselves, setup_cpu, teardown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
