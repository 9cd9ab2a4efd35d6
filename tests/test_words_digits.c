/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of f32 by three int8 digits (pack_digits.c, tier_amx.c): packing, and the elements
 * for which digits are not exact enough.
 */
#include "words_case.h"

#include "cpu/device/detect.h"

/* ---- Packing --------------------------------------------------------------------------------- */

#ifdef TEST_DIGITS
static bool can_pack_digits(void)
{
    cpu_facts facts;
    tgl_cpu_detect(&facts);
    return (facts.features & (CPU_AVX512_VNNI | CPU_AMX | CPU_AVX512_BF16)) != 0;
}

/* Digit w of an element of a packed block. */
static int digit_at(const int8_t *packed, const word_block *x, bool is_a, int w, int64_t line,
                    int64_t p)
{
    const int64_t steps = (x->source.k + CPU_WORDS_STEPS_I8 - 1) / CPU_WORDS_STEPS_I8;
    const int64_t row_of_tiles = CPU_DIGITS * CPU_WORDS_BYTES;
    const int64_t panel = steps * row_of_tiles + CPU_DIGITS_UNSCALE_BYTES;
    const int64_t lane = p % 16, at = p % CPU_WORDS_STEPS_I8 / 16, row = line % 16;
    packed += line / CPU_WORDS_LINES * panel + p / CPU_WORDS_STEPS_I8 * row_of_tiles +
              w * CPU_WORDS_BYTES + line % CPU_WORDS_LINES / 16 * 1024;
    return packed[is_a ? row * 64 + 4 * lane + at : lane * 64 + 4 * row + at];
}

static float unscale_of(const int8_t *packed, const word_block *x, int64_t line)
{
    const int64_t steps = (x->source.k + CPU_WORDS_STEPS_I8 - 1) / CPU_WORDS_STEPS_I8;
    const int64_t bytes = steps * CPU_DIGITS * CPU_WORDS_BYTES;
    float unscale;
    packed += line / CPU_WORDS_LINES * (bytes + CPU_DIGITS_UNSCALE_BYTES) + bytes;
    memcpy(&unscale, packed + line % CPU_WORDS_LINES * (int64_t)sizeof unscale, sizeof unscale);
    return unscale;
}

/* Checks the digits of a line, and adds to *expected what packing must find in it. */
static void check_line(const int8_t *packed, const word_block *x, bool is_a, int64_t line,
                       cpu_exponents *expected)
{
    int sum = 0, large[CPU_DIGIT_LEVELS] = {0}, exponent;
    double largest = 0;
    const double scale = 65536 / (double)unscale_of(packed, x, line);
    for (int64_t p = 0; p < x->source.k; p++) {
        const double value = get_at(x, line, p);
        int digits[CPU_DIGITS];
        for (int w = 0; w < CPU_DIGITS; w++)
            digits[w] = digit_at(packed, x, is_a, w, line, p);
        assert_int_equal(digits[0] * 65536 + digits[1] * 256 + digits[2], lrint(value * scale));
        largest = fmax(largest, fabs(value));
        sum += abs(digits[0]);
        for (int t = 0; t < CPU_DIGIT_LEVELS; t++)
            large[t] += abs(digits[0]) >= 2 << t;
    }
    if (largest == 0) return;
    assert_true(lrint(largest * scale) <= CPU_DIGITS_MAX &&
                lrint(largest * scale) > CPU_DIGITS_MAX / 2);
    frexp(65536 / scale, &exponent); /* 2^(exponent - 1) */
    exponent += 126 + 6;
    if (exponent < expected->least) expected->least = exponent;
    if (exponent > expected->most) expected->most = exponent;
    if (sum > expected->sum) expected->sum = sum;
    for (int t = 0; t < CPU_DIGIT_LEVELS; t++)
        if (large[t] < expected->large[t]) expected->large[t] = large[t];
}

/* Fills a block with elements of several binades. One line in five has only zeros. In the others
 * one element is at a limit: CPU_DIGITS_MAX / 2^22, above which the scale is halved, the float next
 * to it, or a float near a power of two. */
static void fill_for_digits(word_block *x, uint64_t *seed)
{
    static const double ends[] = {0x1.fdfdfcp0, -0x1.fdfdfep0, 0x1.fffffep0, -1};
    for (int64_t i = 0; i < x->source.lines; i++)
        for (int64_t p = 0; p < x->source.k; p++) {
            const double value = ldexp((double)random_int(seed, -(1 << 24), 1 << 24),
                                       (int)random_int(seed, -30, -24));
            set_at(x, i, p, i % 5 == 3 ? 0 : p == i % 7 ? ends[i % 4] : ldexp(value, (int)i % 9));
        }
}

static void digits_are_packed(void **state)
{
    (void)state;
    static const int64_t lines[] = {1, 16, 17, 32, 40}, steps[] = {1, 15, 16, 63, 64, 130};
    uint64_t seed = 13;
    if (!can_pack_digits()) skip();
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        for (size_t j = 0; j < COUNT_OF(steps); j++)
            for (unsigned variant = 0; variant < 4; variant++) {
                const bool is_a = (variant & 1) != 0;
                word_block x = block_of(CPU_DIGITS_F32, lines[i], steps[j], (variant & 2) != 0, 3);
                fill_for_digits(&x, &seed);
                int8_t *packed = packed_memory(&x);
                const cpu_exponents found =
                    (is_a ? tgl_pack_a_digits : tgl_pack_b_digits)(packed, &x.source);
                cpu_exponents expected = {.least = 256, .most = 0};
                for (int t = 0; t < CPU_DIGIT_LEVELS; t++)
                    expected.large[t] = (int)steps[j];
                for (int64_t line = 0; line < lines[i]; line++)
                    check_line(packed, &x, is_a, line, &expected);
                assert_memory_equal(&found, &expected, sizeof found);
                free(packed);
                guarded_destroy(&x.memory);
            }
}
#else
static void digits_are_packed(void **state)
{
    (void)state;
    skip(); /* the compiler does not know AVX512-VNNI */
}
#endif

/* ---- Products of the device ------------------------------------------------------------------ */

/* In the second block of k only small elements of a line of A meet elements of B that are not zero,
 * so that digits would lose them; the even rows have zeros in the first block. With `swap` A and B
 * trade places. */
static void small_elements_are_not_lost(void **state)
{
    enum { N = 320, K = 1024, SECOND = K / 2, SMALL = 3 * K / 4 };
    static float X[N * K], Y[N * K], C[N * N]; /* lines of A and of B */
    uint64_t seed = 23;
    if (!has_kind(CPU_DIGITS_F32)) skip();
    for (int i = 0; i < N; i++)
        for (int p = 0; p < K; p++) {
            const double x = random_unit(&seed), y = random_unit(&seed);
            const bool is_second = p >= SECOND, is_small = p >= SMALL;
            X[i * K + p] = (float)(is_small ? ldexp(x, -18) : is_second || i % 2 ? x : 0);
            Y[i * K + p] = (float)(is_second && !is_small ? 0 : y);
        }
    for (int swap = 0; swap < 2; swap++) {
        tgl_problem problem = accurate(problem_of(TGL_F32, N, N, K));
        problem.trans_b = TGL_TRANS;
        problem.ldb = K;
        assert_true(takes_words(*state, &problem));
        const float *A = swap ? Y : X, *B = swap ? X : Y;
        assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0, magnitude = 0;
                for (int p = 0; p < K; p++) {
                    sum += (double)A[i * K + p] * B[j * K + p];
                    magnitude += fabs((double)A[i * K + p] * B[j * K + p]);
                }
                const double error = fabs(C[i * N + j] - sum) / (0x1p-24 * magnitude);
                if (!(error <= 20)) fail_msg("element %d, %d has an error of %g u S", i, j, error);
            }
    }
}

/* All elements have the same magnitude, but results are denormal, so that sums of digits cannot be
 * scaled back. */
static void denormal_results_are_right(void **state)
{
    enum { N = 320, K = 512 };
    static const int exponents[][2] = {{-100, -38}, {-38, -100}, {-69, -69}};
    static float A[N * K], B[K * N], C[N * N];
    uint64_t seed = 24;
    if (!has_kind(CPU_DIGITS_F32)) skip();
    for (size_t e = 0; e < COUNT_OF(exponents); e++) {
        for (int i = 0; i < N * K; i++) {
            A[i] = (float)ldexp(random_unit(&seed), exponents[e][0]);
            B[i] = (float)ldexp(random_unit(&seed), exponents[e][1]);
        }
        const tgl_problem problem = accurate(problem_of(TGL_F32, N, N, K));
        assert_true(takes_words(*state, &problem));
        assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
        for (int q = 0; q < N * N; q++) {
            double sum = 0, magnitude = 0;
            for (int p = 0; p < K; p++) {
                const double product = (double)A[q / N * K + p] * B[p * N + q % N];
                sum += product;
                magnitude += fabs(product);
            }
            if (!(fabs(C[q] - sum) <= K * (0x1p-24 * magnitude + 0x1p-149)))
                fail_msg("row %d: %a, not %a", (int)e, (double)C[q], sum);
        }
    }
}

static int test_tier(const char *tier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_packed),
        cmocka_unit_test(small_elements_are_not_lost),
        cmocka_unit_test(denormal_results_are_right),
    };
    return cmocka_run_group_tests_name(tier, tests, setup_cpu, teardown_device);
}

int main(void)
{
    return run_tiers_with_words(test_tier, NULL);
}
