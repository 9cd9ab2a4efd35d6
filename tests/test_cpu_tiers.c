/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction-set tiers one function at a time (src/cpu/kernels/template.h,
 * src/cpu/device/tiers.c): every register tile of every tier that this machine runs, packing,
 * finishing, matrix times vector; in buffers that end where the matrices do.
 */
#include "support.h"

#include "cpu/device/tiers.h"

/* ---- Buffers of either type ------------------------------------------------------------------ */

static double get(const cpu_kernels *kernels, const void *from, int64_t i)
{
    return kernels->element == 4 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static void set(const cpu_kernels *kernels, void *to, int64_t i, double x)
{
    if (kernels->element == 4)
        ((float *)to)[i] = (float)x;
    else
        ((double *)to)[i] = x;
}

/* `count` small integers, whose products and sums are exact in any order and either type. */
static guarded integers(const cpu_kernels *kernels, int64_t count, uint64_t *seed)
{
    guarded g;
    assert_true(guarded_create(&g, (size_t)count * kernels->element, true));
    for (int64_t i = 0; i < count; i++)
        set(kernels, g.bytes, i, (double)random_int(seed, -8, 8));
    return g;
}

/* All tiers of this machine and both types, one after the other; false after the last. */
static bool next_kernels(int i, const cpu_kernels **kernels)
{
    cpu_facts facts;
    tgl_cpu_detect(&facts);
    const cpu_tier *tiers[CPU_MAX_TIERS];
    int count;
    assert_status(tgl_cpu_choose_tiers(facts.features, NULL, tiers, &count), TGL_OK);
    if (i >= 2 * count) return false;
    *kernels = i % 2 == 0 ? tiers[i / 2]->f32 : tiers[i / 2]->f64;
    return true;
}

/* ---- Register tiles -------------------------------------------------------------------------- */

typedef struct tile_case {
    const cpu_kernels *kernels;
    cpu_layout layout;
    cpu_use use; /* of b */
    int rows, vectors, tail;
    int64_t k, spare; /* spare: elements of padding after each line */
    int64_t ahead;    /* rows to prefetch */
    double alpha, beta;
} tile_case;

static void check_tile(const tile_case *t, uint64_t *seed)
{
    const cpu_kernels *kernels = t->kernels;
    const int64_t n = (t->vectors - 1) * kernels->vector + t->tail;
    const int64_t width = (int64_t)t->vectors * kernels->vector;
    const int64_t ldb = n + t->spare, ldc = n + t->spare;
    const bool in_rows = t->layout == CPU_A_ROWS;
    const int64_t a_stride = (in_rows ? t->k : t->rows) + t->spare;
    const int64_t lines = in_rows ? t->rows : t->k, line = in_rows ? t->k : t->rows;
    guarded a = integers(kernels, (lines - 1) * a_stride + line, seed);
    guarded b = integers(kernels, (t->k - 1) * ldb + n, seed);
    guarded c = integers(kernels, (t->rows - 1) * ldc + n, seed);
    guarded copy = integers(kernels, t->k * width, seed);
    double *before = malloc(c.size / kernels->element * sizeof *before);
    assert_non_null(before);
    for (int64_t i = 0; i < (int64_t)(c.size / kernels->element); i++) {
        if (t->beta == 0) set(kernels, c.bytes, i, NAN);
        before[i] = get(kernels, c.bytes, i);
    }

    const bool partial = t->tail < kernels->vector;
    cpu_tile_fn *tile = t->use != CPU_B_READ
                            ? kernels->tallest_tile[t->use][t->layout][partial][t->vectors - 1]
                            : kernels->tile[t->layout][partial][t->vectors - 1][t->rows - 1];
    const cpu_beside beside = {
        .copy = copy.bytes,
        .ahead = (const char *)b.bytes,
        .ahead_rows = t->ahead,
        .fetch_c = t->ahead > 0,
    };
    tile(t->k, a.bytes, a_stride, b.bytes, ldb, c.bytes, ldc, t->tail, t->alpha, t->beta, &beside);

    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < ldc && i * ldc + j < (int64_t)(c.size / kernels->element); j++) {
            const double found = get(kernels, c.bytes, i * ldc + j), old = before[i * ldc + j];
            double sum = 0;
            for (int64_t p = 0; p < t->k; p++)
                if (j < n)
                    sum += get(kernels, a.bytes, in_rows ? i * a_stride + p : p * a_stride + i) *
                           get(kernels, b.bytes, p * ldb + j);
            const double expected =
                j >= n ? old : t->alpha * sum + (t->beta == 0 ? 0 : t->beta * old);
            if (!(found == expected) && !(isnan(found) && isnan(expected) && j >= n))
                fail_msg("tile %dx%d, tail %d, layout %d, k %d: (%d, %d) is %g, not %g", t->rows,
                         t->vectors, t->tail, t->layout, (int)t->k, (int)i, (int)j, found,
                         expected);
        }
    for (int64_t i = 0; t->use == CPU_B_COPY && i < t->k * width; i++)
        assert_true(get(kernels, copy.bytes, i) ==
                    (i % width < n ? get(kernels, b.bytes, i / width * ldb + i % width) : 0));
    assert_true(guarded_is_intact(&c) && guarded_is_intact(&copy));
    free(before);
    guarded_destroy(&a), guarded_destroy(&b), guarded_destroy(&c), guarded_destroy(&copy);
}

/* Tiles whose last vector is full are tested with each k, others with one k. */
static void check_tiles_of(const cpu_kernels *kernels, tile_case t, int number, uint64_t *seed)
{
    static const int64_t ks[] = {1, 2, 7, 127, 128, 200};
    enum { COUNT = sizeof ks / sizeof *ks };
    const bool whole = t.tail == kernels->vector;
    for (int i = 0; i < (whole ? COUNT : 1); i++) {
        t.k = ks[whole ? i : number % COUNT];
        t.spare = (number + i) % 2 * 3;
        t.ahead = (number + i) % 3 * 5;
        t.alpha = (number / 2 + i) % 2 ? 1 : -2;
        t.beta = (number + i) % 3 - 1;
        check_tile(&t, seed);
    }
}

static void every_tile_multiplies(void **state)
{
    (void)state;
    uint64_t seed = 1;
    int number = 0;
    const cpu_kernels *kernels;
    for (int i = 0; next_kernels(i, &kernels); i++)
        for (int layout = 0; layout < 2; layout++)
            for (int vectors = 1; vectors <= kernels->nv; vectors++)
                for (int rows = 1; rows <= kernels->mr + 2; rows++)
                    for (int tail = 1; tail <= kernels->vector; tail++) {
                        const tile_case t = {
                            .kernels = kernels,
                            .layout = (cpu_layout)layout,
                            .use = rows > kernels->mr ? (cpu_use)(rows - kernels->mr) : CPU_B_READ,
                            .rows = rows > kernels->mr ? kernels->mr : rows,
                            .vectors = vectors,
                            .tail = tail,
                        };
                        if (t.use == CPU_B_FETCH &&
                            (t.layout != CPU_A_ROWS || tail < kernels->vector))
                            continue;
                        check_tiles_of(kernels, t, number++, &seed);
                    }
}

/* ---- Packing and finishing ------------------------------------------------------------------- */

static void check_packing(const cpu_kernels *kernels, bool interleave, int64_t width, int64_t count,
                          int64_t k, uint64_t *seed)
{
    const int64_t lines = interleave ? count : k, line = interleave ? k : count, ld = line + 2;
    guarded from = integers(kernels, (lines - 1) * ld + line, seed);
    guarded to = integers(kernels, k * width, seed);
    (interleave ? kernels->interleave : kernels->copy)(to.bytes, width, from.bytes, ld, count, k);
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = 0; i < width; i++) {
            const int64_t index = interleave ? i * ld + p : p * ld + i;
            const double expected = i < count ? get(kernels, from.bytes, index) : 0;
            assert_true(get(kernels, to.bytes, p * width + i) == expected);
        }
    assert_true(guarded_is_intact(&to));
    guarded_destroy(&from), guarded_destroy(&to);
}

static void panels_are_packed(void **state)
{
    (void)state;
    uint64_t seed = 2;
    const cpu_kernels *kernels;
    for (int i = 0; next_kernels(i, &kernels); i++)
        for (int64_t width = 1; width <= kernels->nv * kernels->vector; width++)
            for (int64_t k = 1; k <= 2 * kernels->vector + 1; k += kernels->vector - 1) {
                const int64_t count = random_int(&seed, 1, width);
                check_packing(kernels, false, width, count, k, &seed);
                check_packing(kernels, true, width, count, k, &seed);
            }
}

static void sums_are_finished(void **state)
{
    (void)state;
    enum { N = 37, PARTS = 3, STEP = 2 };
    uint64_t seed = 3;
    const cpu_kernels *kernels;
    for (int i = 0; next_kernels(i, &kernels); i++)
        for (int beta = 0; beta < 3; beta++) {
            guarded parts = integers(kernels, N * PARTS, &seed);
            guarded c = integers(kernels, (N - 1) * STEP + 1, &seed);
            guarded old = integers(kernels, (N - 1) * STEP + 1, &seed);
            memcpy(old.bytes, c.bytes, c.size);
            kernels->reduce(c.bytes, STEP, N, parts.bytes, N, PARTS, 3, beta, NULL);
            for (int64_t j = 0; j < (N - 1) * STEP + 1; j++) {
                const double before = get(kernels, old.bytes, j);
                double sum = 0;
                for (int q = 0; q < PARTS; q++)
                    sum += get(kernels, parts.bytes, q * N + j / STEP);
                assert_true(get(kernels, c.bytes, j) ==
                            (j % STEP == 0 ? 3 * sum + beta * before : before));
            }
            memcpy(c.bytes, old.bytes, c.size);
            kernels->scale(c.bytes, N, beta, 0);
            for (int64_t j = 0; j < (N - 1) * STEP + 1; j++)
                assert_true(get(kernels, c.bytes, j) ==
                            get(kernels, old.bytes, j) * (j < N ? beta : 1));
            guarded_destroy(&parts), guarded_destroy(&c), guarded_destroy(&old);
        }
}

/* Number i of a series: a few special numbers, then magnitudes from 2^-127 to 2^127, positive ones
 * before negative ones. */
static double number_of(const cpu_kernels *kernels, int i)
{
    static const double special[] = {0, -0.0, 1e-40, 4.25 * 1.4142135623730951, -6.01, 88.7, -88.8};
    if (i < (int)COUNT_OF(special)) return special[i];
    const double x = exp2((i % 2000) * 0.127 - 127) * (i / 2000 % 2 == 0 ? 1 : -1);
    return kernels->element == 4 ? (double)(float)x : x;
}

static long double activated(tgl_activation activation, long double x)
{
    if (activation == TGL_ACTIVATION_RELU) return x < 0 ? 0 : x;
    if (activation == TGL_ACTIVATION_GELU) return x / 2 * erfcl(-x * 0.707106781186547524401L);
    return activation == TGL_ACTIVATION_SILU ? x / (1 + expl(-x)) : x;
}

static void activations_are_exact(void **state)
{
    (void)state;
    enum { COUNT = 4001 };
    static double before[COUNT], after[COUNT];
    const cpu_kernels *kernels;
    for (int i = 0; next_kernels(i, &kernels); i++)
        for (int a = TGL_ACTIVATION_NONE; a <= TGL_ACTIVATION_SILU; a++) {
            const bool is_f32 = kernels->element == 4;
            for (int j = 0; j < COUNT; j++)
                set(kernels, before, j, number_of(kernels, j));
            memcpy(after, before, sizeof after);
            kernels->finish(after, COUNT, NULL, 1, (tgl_activation)a, NULL);
            for (int j = 0; j < COUNT; j++) {
                const double x = get(kernels, before, j);
                const double expected = (double)activated((tgl_activation)a, x);
                const double error = fabs(get(kernels, after, j) - expected);
                if (!(error <=
                      3 * (is_f32 ? 0x1p-24 : 0x1p-53) * fabs(x) + (is_f32 ? 0x1p-149 : 0x1p-1074)))
                    fail_msg("activation %d of %.9g is %.9g, not %.9g", a, x,
                             get(kernels, after, j), expected);
            }
        }
}

static void rows_are_finished(void **state)
{
    (void)state;
    enum { N = 37 };
    uint64_t seed = 5;
    const cpu_kernels *kernels;
    for (int i = 0; next_kernels(i, &kernels); i++)
        for (int way = 0; way < 8; way++) {
            const int bias_step = way % 2;
            const bool has_bias = way & 2, has_residual = way & 4;
            guarded c = integers(kernels, N, &seed), old = integers(kernels, N, &seed);
            guarded bias = integers(kernels, bias_step == 1 ? N : 1, &seed);
            guarded residual = integers(kernels, N, &seed);
            memcpy(old.bytes, c.bytes, c.size);
            kernels->finish(c.bytes, N, has_bias ? bias.bytes : NULL, bias_step,
                            TGL_ACTIVATION_RELU, has_residual ? residual.bytes : NULL);
            for (int j = 0; j < N; j++) {
                double sum = get(kernels, old.bytes, j);
                if (has_bias) sum += get(kernels, bias.bytes, j * bias_step);
                sum = sum < 0 ? 0 : sum;
                if (has_residual) sum += get(kernels, residual.bytes, j);
                assert_true(get(kernels, c.bytes, j) == sum);
            }
            guarded_destroy(&c), guarded_destroy(&old);
            guarded_destroy(&bias), guarded_destroy(&residual);
        }
}

static void check_vector(const cpu_kernels *kernels, int64_t n, int64_t k, uint64_t *seed)
{
    /* The matrix has n rows of k elements for dot, and k rows of n for combine. */
    guarded by_rows = integers(kernels, (n - 1) * (k + 1) + k, seed);
    guarded by_columns = integers(kernels, (k - 1) * (n + 1) + n, seed);
    guarded x = integers(kernels, k, seed), y = integers(kernels, n, seed);
    kernels->dot(y.bytes, by_rows.bytes, k + 1, n, k, x.bytes);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += get(kernels, by_rows.bytes, i * (k + 1) + p) * get(kernels, x.bytes, p);
        assert_true(get(kernels, y.bytes, i) == sum);
    }
    kernels->combine(y.bytes, by_columns.bytes, n + 1, n, k, x.bytes);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += get(kernels, by_columns.bytes, p * (n + 1) + i) * get(kernels, x.bytes, p);
        assert_true(get(kernels, y.bytes, i) == sum);
    }
    assert_true(guarded_is_intact(&y));
    guarded_destroy(&by_rows), guarded_destroy(&by_columns);
    guarded_destroy(&x), guarded_destroy(&y);
}

static void vectors_are_multiplied(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 8, 15, 17, 31, 33, 64, 100};
    uint64_t seed = 4;
    const cpu_kernels *kernels;
    for (int i = 0; next_kernels(i, &kernels); i++)
        for (size_t n = 0; n < COUNT_OF(sizes); n++)
            for (size_t k = 0; k < COUNT_OF(sizes); k++)
                check_vector(kernels, sizes[n], sizes[k], &seed);
}

static void ceilings_count_what_they_run(void **state)
{
    (void)state;
    const cpu_kernels *kernels;
    for (int i = 0; next_kernels(i, &kernels); i++) {
        double sink = 1;
        const double once = kernels->fma_loop(1, &sink);
        assert_true(once > 0 && isfinite(sink));
        sink = 1;
        assert_true(kernels->fma_loop(10, &sink) == 10 * once && isfinite(sink));
    }
}

/* ---- Choosing a tier ------------------------------------------------------------------------- */

static void tiers_are_chosen(void **state)
{
    (void)state;
    const unsigned all = CPU_AVX2 | CPU_FMA | CPU_AVX512, none = 0;
    static const struct {
        const char *setting, *tiers; /* tiers NULL: refused */
        bool bare;                   /* on a processor without the features of x86 */
        unsigned more;               /* a feature that the processor also has */
    } table[] = {
        {NULL, "avx512 avx2 portable ", false, 0},
        {"", "avx512 avx2 portable ", false, 0},
        {"avx512", "avx512 ", false, 0},
        {"avx2", "avx2 ", false, 0},
        {"portable", "portable ", false, 0},
        {"-avx512", "avx2 portable ", false, 0},
        {"-avx512,-avx2", "portable ", false, 0},
        {"-portable", "avx512 avx2 ", false, 0},
        {"-avx512,-avx2,-portable", NULL, false, 0},
        {"avx2,portable", NULL, false, 0},
        {"avx", NULL, false, 0},
        {"AVX2", NULL, false, 0},
        {"avx2 ", NULL, false, 0},
        {",", NULL, false, 0},
        {"-", NULL, false, 0},
        {"--avx2", NULL, false, 0},
        {"avx2,", NULL, false, 0},
        {NULL, "portable ", true, 0},
        {"portable", "portable ", true, 0},
        {"avx2", NULL, true, 0},
        {"-avx2", "portable ", true, 0}, /* absent anyway */
        {"-avx512,-avx2", "portable ", true, 0},
        {"neon", NULL, true, 0},
        {"-neon", "portable ", true, 0},
        {"-avx1024", NULL, true, 0},
        {"-portable", NULL, true, 0},
#ifdef TGL_CPU_AMX
        {NULL, "amx avx512 avx2 portable ", false, CPU_AMX},
        {"amx", "amx ", false, CPU_AMX},
        {"-amx", "avx512 avx2 portable ", false, CPU_AMX},
        {"-avx512", "avx2 portable ", false, CPU_AMX}, /* forbids amx, too, which has its kernels */
        {"avx512", "avx512 ", false, CPU_AMX},
#endif
#ifdef TGL_CPU_AVX512_BF16
        {NULL, "avx512_bf16 avx512 avx2 portable ", false, CPU_AVX512_BF16},
        {"avx512_bf16", "avx512_bf16 ", false, CPU_AVX512_BF16},
        {"-avx512_bf16", "avx512 avx2 portable ", false, CPU_AVX512_BF16},
        {"-avx512", "avx2 portable ", false, CPU_AVX512_BF16}, /* has its kernels, too */
        {"avx512", "avx512 ", false, CPU_AVX512_BF16},
#endif
#ifdef TGL_CPU_AVX512_VNNI
        {NULL, "avx512_vnni avx512 avx2 portable ", false, CPU_AVX512_VNNI},
        {"avx512_vnni", "avx512_vnni ", false, CPU_AVX512_VNNI},
        {"-avx512_vnni", "avx512 avx2 portable ", false, CPU_AVX512_VNNI},
        {"-avx512", "avx2 portable ", false, CPU_AVX512_VNNI}, /* has its kernels, too */
#endif
        {"avx512_vnni", NULL, false, 0},
        {"avx512_bf16", NULL, false, 0},
        {"-avx512_bf16", "avx512 avx2 portable ", false, 0},
        {"amx", NULL, false, 0},
        {"-amx", "avx512 avx2 portable ", false, 0},
#ifdef TGL_CPU_ARM64
        {NULL, "neon portable ", true, CPU_NEON},
        {NULL, "neon portable ", true, CPU_NEON | CPU_I8MM}, /* neon_mm needs BFMMLA, too */
        {"neon_mm", NULL, true, CPU_NEON | CPU_I8MM},
        {"-neon_mm,-neon_dot", "neon portable ", true, CPU_NEON},
#endif
#ifdef TGL_CPU_NEON_DOT
        {NULL, "neon_dot neon portable ", true, CPU_NEON | CPU_DOTPROD},
        {"neon_dot", "neon_dot ", true, CPU_NEON | CPU_DOTPROD},
        {"-neon_dot", "neon portable ", true, CPU_NEON | CPU_DOTPROD},
        {"-neon", "portable ", true, CPU_NEON | CPU_DOTPROD}, /* has its kernels, too */
#endif
#ifdef TGL_CPU_NEON_MM
        {NULL, "neon_mm neon portable ", true, CPU_NEON | CPU_I8MM | CPU_BF16},
        {"neon_mm", "neon_mm ", true, CPU_NEON | CPU_I8MM | CPU_BF16},
        {"neon", "neon ", true, CPU_NEON | CPU_I8MM | CPU_BF16},
        {"-neon", "portable ", true, CPU_NEON | CPU_I8MM | CPU_BF16}, /* has its kernels, too */
#endif
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
#ifndef TGL_CPU_X86
        if (!table[i].bare) continue;
#endif
        const cpu_tier *usable[CPU_MAX_TIERS];
        char message[200], names[64] = "";
        int count = 0;
        forget_error();
        const tgl_status status = tgl_cpu_choose_tiers((table[i].bare ? none : all) | table[i].more,
                                                       table[i].setting, usable, &count);
        for (int t = 0; status == TGL_OK && t < count; t++) {
            const char *name = usable[t]->name;
            const bool has_words = strcmp(name, "portable") != 0 && strcmp(name, "neon") != 0;
            assert_true((usable[t]->words != NULL) == has_words);
            strcat(names, name);
            strcat(names, " ");
        }
        assert_string_equal(names, table[i].tiers != NULL ? table[i].tiers : "");
        assert_status(status, table[i].tiers != NULL ? TGL_OK : TGL_BAD_SETTING);
        if (table[i].tiers != NULL) continue;
        tgl_last_error(message, sizeof message);
        assert_non_null(strstr(message, "available here: "));
    }
}

static void the_processor_is_known(void **state)
{
    (void)state;
    cpu_facts facts;
    tgl_cpu_detect(&facts);
    assert_true(strlen(facts.name) > 0 && facts.cores >= 1);
    assert_true(facts.l1d >= 4096 && facts.l2 >= facts.l1d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_multiplies),
        cmocka_unit_test(panels_are_packed),
        cmocka_unit_test(sums_are_finished),
        cmocka_unit_test(activations_are_exact),
        cmocka_unit_test(rows_are_finished),
        cmocka_unit_test(vectors_are_multiplied),
        cmocka_unit_test(ceilings_count_what_they_run),
        cmocka_unit_test(tiers_are_chosen),
        cmocka_unit_test(the_processor_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
