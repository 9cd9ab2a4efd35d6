/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of each tier (tier_amx.c, tier_avx512_bf16.c, tier_avx512_vnni.c, tier_avx2_i8.c,
 * tier_neon_dot.c, tier_neon_mm.c): packing and multiplying one block, in buffers that end where
 * the matrices do.
 */
#include "words_case.h"

/* Blocks of digits are multiplied by words->multiply_fewer. */
static bool fewer_digits;

/* C := a*b, or C += a*b if `add`, from packed operands; packed_a NULL: a is not packed. */
static void multiply_packed_blocks(const word_block *a, const word_block *b, void *packed_a,
                                   void *packed_b, void *c, int64_t ldc, bool add)
{
    const cpu_words_product product = {
        .a = a->source,
        .b = b->source,
        .packed_a = packed_a,
        .packed_b = packed_b,
        .c = c,
        .ldc = ldc,
        .add = add,
        .next = {{packed_b, 64, 70, 3}, {.rows = 0}},
    };
    (packed_a == NULL ? words->multiply_unpacked[a->kind]
     : fewer_digits   ? words->multiply_fewer
                      : words->multiply[a->kind])(&product);
}

/* C := a*b, and C += a*b if `twice`, in a buffer that ends where C does. */
static guarded product_of(const word_block *a, const word_block *b, int64_t ldc, bool twice,
                          bool unpacked)
{
    const cpu_word_kind t = a->kind;
    const int64_t m = a->source.lines, n = b->source.lines;
    void *packed_a = unpacked ? NULL : packed_memory(a), *packed_b = packed_memory(b);
    guarded c;
    assert_true(guarded_create(&c, (size_t)((m - 1) * ldc + n) * sizeof(float), true));
    memset(c.bytes, 0xff, c.size);
    if (!unpacked) words->pack_a[t](packed_a, &a->source);
    words->pack_b[t](packed_b, &b->source);
    if (words->begin != NULL) words->begin();
    multiply_packed_blocks(a, b, packed_a, packed_b, c.bytes, ldc, false);
    if (twice) multiply_packed_blocks(a, b, packed_a, packed_b, c.bytes, ldc, true);
    if (words->end != NULL) words->end();
    free(packed_a);
    free(packed_b);
    return c;
}

/* Integers that one word or two hold, so that sums are exact. For digits, 2^22 stands at one step
 * of each line, where the other operand has 0: the scale is 1, and the integers have two digits. */
static void fill_block(word_block *x, int64_t large_at, int64_t zero_at, uint64_t *seed)
{
    static const int64_t min[] = {-8, -300, -300, -128, -300}, max[] = {8, 300, 300, 127, 300};
    const bool by_digits = x->kind == CPU_DIGITS_F32;
    for (int64_t i = 0; i < x->source.lines; i++)
        for (int64_t p = 0; p < x->source.k; p++) {
            double value = (double)random_int(seed, min[x->kind], max[x->kind]);
            if (by_digits && p == large_at) value = 0x1p22;
            if (by_digits && p == zero_at) value = 0;
            set_at(x, i, p, value);
        }
}

/* The product of two elements; of digits, without the products that are left out. */
static double product_at(const word_block *a, const word_block *b, int64_t i, int64_t j, int64_t p)
{
    const double x = get_at(a, i, p), y = get_at(b, j, p);
    if (a->kind != CPU_DIGITS_F32) return x * y;
    const double middle_x = floor((x + 128) / 256), low_x = x - 256 * middle_x;
    const double low_y = y - 256 * floor((y + 128) / 256);
    return x * y - low_x * low_y - (fewer_digits ? 256 * middle_x * low_y : 0);
}

/* Element `at` of sums, of f32 or of int32. */
static double sum_at(cpu_word_kind kind, const guarded *c, int64_t at)
{
    return kind == CPU_WORDS_I8 ? ((const int32_t *)c->bytes)[at] : ((const float *)c->bytes)[at];
}

static void check_block(cpu_word_kind kind, const int64_t size[3], unsigned trans, bool unpacked,
                        uint64_t *seed)
{
    const int64_t m = size[0], n = size[1], k = size[2], ldc = n + 2;
    word_block a = block_of(kind, m, k, (trans & 1) == 0, 3);
    word_block b = block_of(kind, n, k, (trans & 2) != 0, 5);
    fill_block(&a, 0, 1, seed);
    fill_block(&b, 1, 0, seed);
    guarded c = product_of(&a, &b, ldc, true, unpacked);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = n; j < ldc && i < m - 1; j++)
            assert_int_equal(((const uint32_t *)c.bytes)[i * ldc + j], UINT32_MAX); /* untouched */
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += product_at(&a, &b, i, j, p);
            if (sum_at(kind, &c, i * ldc + j) != 2 * sum)
                fail_msg("kind %d, %d x %d x %d, trans %u: element %d, %d is %g, not %g", kind,
                         (int)m, (int)n, (int)k, trans, (int)i, (int)j,
                         sum_at(kind, &c, i * ldc + j), 2 * sum);
        }
    }
    guarded_destroy(&c);
    guarded_destroy(&a.memory);
    guarded_destroy(&b.memory);
}

/* Checks all kinds of words and transposes. */
static void check_size(int64_t m, int64_t n, int64_t k, uint64_t *seed)
{
    for (int kind = 0; kind < CPU_WORD_KINDS; kind++)
        for (unsigned trans = 0; trans < 4 && has_kind((cpu_word_kind)kind); trans++)
            check_block((cpu_word_kind)kind, (int64_t[]){m, n, k}, trans, false, seed);
}

static void blocks_are_multiplied(void **state)
{
    (void)state;
    static const int64_t lines[] = {1, 2, 7, 9, 16, 17, 31, 32, 33, 65},
                         steps[] = {1, 2, 31, 32, 33, 130};
    uint64_t seed = 1;
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        for (size_t j = 0; j < COUNT_OF(lines); j++)
            for (size_t p = 0; p < COUNT_OF(steps); p++)
                check_size(lines[i], lines[j], steps[p], &seed);
    for (int64_t size = 1; size <= 65; size++)
        check_size(size, 66 - size, size, &seed);
}

static void fewer_digits_are_multiplied(void **state)
{
    (void)state;
    uint64_t seed = 25;
    if (!has_kind(CPU_DIGITS_F32)) skip();
    fewer_digits = true;
    for (int64_t size = 1; size <= 65; size += 4)
        for (unsigned trans = 0; trans < 4; trans++)
            check_block(CPU_DIGITS_F32, (int64_t[]){size, 66 - size, 2 * size}, trans, false,
                        &seed);
    fewer_digits = false;
}

/* An A that is not packed, of whole panels and steps. */
static void unpacked_blocks_are_multiplied(void **state)
{
    (void)state;
    static const int64_t columns[] = {1, 16, 17, 31, 32, 33, 65};
    uint64_t seed = 12;
    for (int kind = 0; kind < CPU_WORD_KINDS; kind++)
        for (int i = 0; i < 3 && words->multiply_unpacked[kind] != NULL; i++)
            for (size_t j = 0; j < COUNT_OF(columns); j++)
                for (unsigned variant = 0; variant < 4; variant++) {
                    const int64_t step = tgl_cpu_word_steps((cpu_word_kind)kind);
                    const int64_t k = step * (variant & 1 ? 5 : 1);
                    check_block((cpu_word_kind)kind,
                                (int64_t[]){CPU_WORDS_LINES * (i + 1), columns[j], k}, variant & 2,
                                true, &seed);
                }
}

/* (-128)^2 is the greatest product; sums of int32 wrap around. */
static void integers_wrap_around(void **state)
{
    (void)state;
    static const int8_t pairs[][2] = {{-128, -128}, {-128, 127}, {127, 127}};
    enum { M = 9, N = 10, K = 150000 }; /* more than 2^31 / 2^14 */
    if (!has_kind(CPU_WORDS_I8)) skip();
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        for (unsigned trans = 0; trans < 4; trans++) {
            word_block a = block_of(CPU_WORDS_I8, M, K, (trans & 1) == 0, 0);
            word_block b = block_of(CPU_WORDS_I8, N, K, (trans & 2) != 0, 0);
            memset(a.memory.bytes, pairs[i][0], a.memory.size);
            memset(b.memory.bytes, pairs[i][1], b.memory.size);
            guarded c = product_of(&a, &b, N, true, false);
            const uint32_t once = (uint32_t)(pairs[i][0] * pairs[i][1]) * (uint32_t)K;
            for (int j = 0; j < M * N; j++)
                assert_int_equal(((const uint32_t *)c.bytes)[j], 2 * once);
            guarded_destroy(&c);
            guarded_destroy(&a.memory);
            guarded_destroy(&b.memory);
        }
}

/* A*I is A: the three words hold all 24 bits. */
static void words_hold_an_f32(void **state)
{
    (void)state;
    enum { N = 64 };
    uint64_t seed = 2;
    if (!has_kind(CPU_WORDS_F32)) skip();
    for (int exponent = -80; exponent <= 120; exponent += 25) {
        word_block a = block_of(CPU_WORDS_F32, N, N, true, 0);
        word_block b = block_of(CPU_WORDS_F32, N, N, true, 0);
        for (int i = 0; i < N * N; i++) {
            const double bits = (double)(random_int(&seed, 0, (1 << 24) - 1) | 1 << 23);
            set_at(&a, i / N, i % N, (i % 3 ? bits : -bits) * ldexp(1, exponent - 23));
            set_at(&b, i / N, i % N, i / N == i % N);
        }
        set_at(&a, 0, 0, ldexp(0x1.fffffep0, exponent)); /* the first word is rounded up */
        guarded c = product_of(&a, &b, N, false, false);
        assert_memory_equal(c.bytes, a.memory.bytes, sizeof(float[N * N]));
        guarded_destroy(&c);
        guarded_destroy(&a.memory);
        guarded_destroy(&b.memory);
    }
}

/* 2^24 + 0.5 is 2^24 to nearest, and 2^24 + 2 to odd. */
static void rounding_is_as_stated(void **state)
{
    (void)state;
    if (!has_kind(CPU_WORDS_BF16)) skip();
    word_block a = block_of(CPU_WORDS_BF16, 1, 2, true, 0),
               b = block_of(CPU_WORDS_BF16, 1, 2, true, 0);
    set_at(&a, 0, 0, 4096);
    set_at(&b, 0, 0, 4096);
    set_at(&a, 0, 1, 0.5);
    set_at(&b, 0, 1, 1);
    guarded c = product_of(&a, &b, 1, false, false);
    assert_true(sum_at(CPU_WORDS_BF16, &c, 0) == (words->rounds_to_odd ? 0x1p24 + 2 : 0x1p24));
    guarded_destroy(&c);
    guarded_destroy(&a.memory);
    guarded_destroy(&b.memory);
}

static void exponents_are_found(void **state)
{
    (void)state;
    static const struct {
        double least, most;
        struct {
            int least, most;
        } expected;
    } table[] = {{0, 0, {256, 0}},          {1, 1, {127, 127}},    {0x1p-126, 0x1p127, {1, 254}},
                 {0x1p-127, 1, {0, 127}},   {0x1p-133, 0, {0, 0}}, {0.75, -3.5, {126, 128}},
                 {1, INFINITY, {127, 255}}, {2, -NAN, {128, 255}}};
    enum { LINES = 40, K = 70 };
    uint64_t seed = 3;
    for (size_t i = 0; i < COUNT_OF(table); i++)
        for (unsigned variant = 0; variant < 16; variant++) {
            const cpu_word_kind t = variant & 1 ? CPU_WORDS_F32 : CPU_WORDS_BF16;
            if (!has_kind(t)) continue;
            const bool unpacked = (variant & 10) == 10 && t == CPU_WORDS_BF16 &&
                                  words->exponents != NULL; /* k is whole steps */
            const int64_t lines = LINES, k = unpacked ? 2 * CPU_WORDS_STEPS : K;
            word_block x = block_of(t, lines, k, (variant & 2) != 0, 1);
            for (int64_t q = 0; q < lines * k; q++)
                set_at(&x, q / k, q % k, 0);
            const int64_t line = random_int(&seed, 0, lines - 1), p = random_int(&seed, 1, k - 1);
            set_at(&x, line, p, table[i].least);
            if (table[i].most != 0) set_at(&x, line, p - 1, table[i].most);
            void *packed = packed_memory(&x);
            const cpu_exponents found = unpacked      ? words->exponents(&x.source)
                                        : variant & 4 ? words->pack_a[t](packed, &x.source)
                                                      : words->pack_b[t](packed, &x.source);
            assert_int_equal(found.most, table[i].expected.most);
            if (table[i].expected.least <= 254)
                assert_int_equal(found.least, table[i].expected.least);
            else
                assert_true(found.least > found.most);
            free(packed);
            guarded_destroy(&x.memory);
        }
}

static int test_tier(const char *tier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_multiplied),
        cmocka_unit_test(fewer_digits_are_multiplied),
        cmocka_unit_test(unpacked_blocks_are_multiplied),
        cmocka_unit_test(integers_wrap_around),
        cmocka_unit_test(words_hold_an_f32),
        cmocka_unit_test(rounding_is_as_stated),
        cmocka_unit_test(exponents_are_found),
    };
    return cmocka_run_group_tests_name(tier, tests, setup_cpu, teardown_device);
}

int main(void)
{
    return run_tiers_with_words(test_tier, NULL);
}
