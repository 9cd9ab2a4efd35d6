/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by words (src/cpu/kernels/cpu_words.h, cpu_words.c) of each tier of this machine that
 * has any (tier_amx.c, tier_avx512_bf16.c, tier_avx512_vnni.c, tier_avx2_i8.c, tier_neon_dot.c,
 * tier_neon_mm.c): the packing and the tiles in buffers that end where the matrices do, and the
 * products of the cpu device that use them.
 */
#include "support.h"

#include "backend/backend.h"
#include "cpu/plan/word_plan.h"
#include "cpu/run/cpu_device.h"
#include "cpu/run/multiply_words.h"
#include "elements.h"

#include <float.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const tgl_type types[CPU_WORD_KINDS] = {TGL_BF16, TGL_F32, TGL_F16, TGL_I8, TGL_F32};

/* The words of the tier that is tested. */
static const cpu_words *words;

/* Blocks of digits are multiplied by words->multiply_fewer. */
static bool fewer_digits;

static bool has_kind(cpu_word_kind kind)
{
    return words->multiply[kind] != NULL;
}

/* Whether they multiply elements of this type. */
static bool has_type(tgl_type type)
{
    for (int kind = 0; kind < CPU_WORD_KINDS; kind++)
        if (types[kind] == type) return has_kind((cpu_word_kind)kind);
    return false;
}

/* ---- One block ------------------------------------------------------------------------------- */

/* A block of op(A) or op(B), whose last line or step ends at a page that must not be touched. */
typedef struct block {
    guarded memory;
    cpu_words_source source;
    cpu_word_kind kind;
} block;

static block block_of(cpu_word_kind kind, int64_t lines, int64_t k, bool k_contiguous,
                      int64_t spare)
{
    const int64_t rows = k_contiguous ? lines : k, row = k_contiguous ? k : lines;
    block x = {.kind = kind};
    const size_t elements = (size_t)((rows - 1) * (row + spare) + row);
    assert_true(guarded_create(&x.memory, elements * tgl_type_size(types[kind]), true));
    memset(x.memory.bytes, 0xff, x.memory.size); /* NaN or -1 between the rows */
    x.source = (cpu_words_source){x.memory.bytes, row + spare, k_contiguous, lines, k};
    return x;
}

static int64_t index_of(const block *x, int64_t line, int64_t p)
{
    return x->source.k_contiguous ? line * x->source.ld + p : p * x->source.ld + line;
}

static void set_at(block *x, int64_t line, int64_t p, double value)
{
    element_set(types[x->kind], x->memory.bytes, index_of(x, line, p), value);
}

static double get_at(const block *x, int64_t line, int64_t p)
{
    return element_get(types[x->kind], x->memory.bytes, index_of(x, line, p));
}

/* Memory for the packed block, full of NaN. */
static void *packed_memory(const block *x)
{
    const size_t bytes =
        tgl_cpu_aligned(tgl_cpu_words_bytes(x->kind, x->source.lines, x->source.k));
    void *memory = aligned_alloc(CPU_ALIGNMENT, bytes);
    assert_non_null(memory);
    return memset(memory, 0xff, bytes);
}

/* C := a*b, or C += a*b, by packed operands, or by a itself (packed_a NULL). */
static void multiply(const block *a, const block *b, const void *packed_a, const void *packed_b,
                     void *c, int64_t ldc, bool add)
{
    const cpu_words_next next[2] = {{packed_b, 64, 70, 3}, {.rows = 0}};
    const int64_t m = a->source.lines, n = b->source.lines, k = a->source.k;
    if (packed_a == NULL)
        words->multiply_unpacked[a->kind](&a->source, n, packed_b, c, ldc, add);
    else
        (fewer_digits ? words->multiply_fewer
                      : words->multiply[a->kind])(m, n, k, packed_a, packed_b, c, ldc, add, next);
}

/* C := a*b, and C += a*b if `twice`, in a buffer that ends where C does. */
static guarded product_of(const block *a, const block *b, int64_t ldc, bool twice, bool unpacked)
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
    multiply(a, b, packed_a, packed_b, c.bytes, ldc, false);
    if (twice) multiply(a, b, packed_a, packed_b, c.bytes, ldc, true);
    if (words->end != NULL) words->end();
    free(packed_a);
    free(packed_b);
    return c;
}

/* Integers that one word or two hold, so that sums are exact. For digits, 2^22 stands at one step
 * of each line, where the other operand has 0: the scale is 1, and the integers have two digits. */
static void fill_block(block *x, int64_t large_at, int64_t zero_at, uint64_t *seed)
{
    static const int64_t least[] = {-8, -300, -300, -128, -300}, most[] = {8, 300, 300, 127, 300};
    const bool by_digits = x->kind == CPU_DIGITS_F32;
    for (int64_t i = 0; i < x->source.lines; i++)
        for (int64_t p = 0; p < x->source.k; p++) {
            double value = (double)random_int(seed, least[x->kind], most[x->kind]);
            if (by_digits && p == large_at) value = 0x1p22;
            if (by_digits && p == zero_at) value = 0;
            set_at(x, i, p, value);
        }
}

/* The product of two elements, without those of digits that are left out. */
static double product_at(const block *a, const block *b, int64_t i, int64_t j, int64_t p)
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
    block a = block_of(kind, m, k, (trans & 1) == 0, 3);
    block b = block_of(kind, n, k, (trans & 2) != 0, 5);
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

/* All kinds and transposes. */
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

/* Whole panels and steps of A that is not packed. */
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
            block a = block_of(CPU_WORDS_I8, M, K, (trans & 1) == 0, 0);
            block b = block_of(CPU_WORDS_I8, N, K, (trans & 2) != 0, 0);
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
        block a = block_of(CPU_WORDS_F32, N, N, true, 0);
        block b = block_of(CPU_WORDS_F32, N, N, true, 0);
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
    block a = block_of(CPU_WORDS_BF16, 1, 2, true, 0), b = block_of(CPU_WORDS_BF16, 1, 2, true, 0);
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
                                  words->exponents != NULL; /* of whole steps */
            const int64_t lines = LINES, k = unpacked ? 2 * CPU_WORDS_STEPS : K;
            block x = block_of(t, lines, k, (variant & 2) != 0, 1);
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

/* ---- Digits ---------------------------------------------------------------------------------- */

#ifdef TEST_DIGITS
static bool can_pack_digits(void)
{
    cpu_facts facts;
    tgl_cpu_detect(&facts);
    return (facts.features & (CPU_AVX512_VNNI | CPU_AMX | CPU_AVX512_BF16)) != 0;
}

/* Digit w of an element of a packed block. */
static int digit_at(const int8_t *packed, const block *x, bool is_a, int w, int64_t line, int64_t p)
{
    const int64_t steps = (x->source.k + CPU_WORDS_STEPS_I8 - 1) / CPU_WORDS_STEPS_I8;
    const int64_t row_of_tiles = CPU_DIGITS * CPU_WORDS_BYTES;
    const int64_t panel = steps * row_of_tiles + CPU_DIGITS_UNSCALE_BYTES;
    const int64_t lane = p % 16, at = p % CPU_WORDS_STEPS_I8 / 16, row = line % 16;
    packed += line / CPU_WORDS_LINES * panel + p / CPU_WORDS_STEPS_I8 * row_of_tiles +
              w * CPU_WORDS_BYTES + line % CPU_WORDS_LINES / 16 * 1024;
    return packed[is_a ? row * 64 + 4 * lane + at : lane * 64 + 4 * row + at];
}

static float unscale_of(const int8_t *packed, const block *x, int64_t line)
{
    const int64_t steps = (x->source.k + CPU_WORDS_STEPS_I8 - 1) / CPU_WORDS_STEPS_I8;
    const int64_t bytes = steps * CPU_DIGITS * CPU_WORDS_BYTES;
    float unscale;
    packed += line / CPU_WORDS_LINES * (bytes + CPU_DIGITS_UNSCALE_BYTES) + bytes;
    memcpy(&unscale, packed + line % CPU_WORDS_LINES * (int64_t)sizeof unscale, sizeof unscale);
    return unscale;
}

/* What packing must find in a line; adds it to *expected. */
static void check_line(const int8_t *packed, const block *x, bool is_a, int64_t line,
                       cpu_exponents *expected)
{
    int sum = 0, large[CPU_DIGIT_LEVELS] = {0}, exponent;
    double most = 0;
    const double scale = 65536 / (double)unscale_of(packed, x, line);
    for (int64_t p = 0; p < x->source.k; p++) {
        const double value = get_at(x, line, p);
        int digits[CPU_DIGITS];
        for (int w = 0; w < CPU_DIGITS; w++)
            digits[w] = digit_at(packed, x, is_a, w, line, p);
        assert_int_equal(digits[0] * 65536 + digits[1] * 256 + digits[2], lrint(value * scale));
        most = fmax(most, fabs(value));
        sum += abs(digits[0]);
        for (int t = 0; t < CPU_DIGIT_LEVELS; t++)
            large[t] += abs(digits[0]) >= 2 << t;
    }
    if (most == 0) return;
    assert_true(lrint(most * scale) <= CPU_DIGITS_MOST &&
                lrint(most * scale) > CPU_DIGITS_MOST / 2);
    frexp(65536 / scale, &exponent); /* 2^(exponent - 1) */
    exponent += 126 + 6;
    if (exponent < expected->least) expected->least = exponent;
    if (exponent > expected->most) expected->most = exponent;
    if (sum > expected->sum) expected->sum = sum;
    for (int t = 0; t < CPU_DIGIT_LEVELS; t++)
        if (large[t] < expected->large[t]) expected->large[t] = large[t];
}

/* Elements of several binades; a line of zeros; the greatest integers, which are carried. */
static void fill_for_digits(block *x, uint64_t *seed)
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
                block x = block_of(CPU_DIGITS_F32, lines[i], steps[j], (variant & 2) != 0, 3);
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

static tgl_problem accurate(tgl_problem problem)
{
    if (problem.type_a == TGL_F32) problem.compute = TGL_COMPUTE_ACCURATE;
    return problem;
}

static bool takes_words(tgl_device *dev, const tgl_problem *problem)
{
    return plan_explains(dev, problem, words->name);
}

static void the_planner_chooses(void **state)
{
    static const struct {
        tgl_type type;
        tgl_compute compute;
        int64_t m, n, k;
        bool words;
    } table[] = {{TGL_BF16, TGL_COMPUTE_DEFAULT, 1000, 1000, 1000, true},
                 {TGL_BF16, TGL_COMPUTE_ACCURATE, 64, 64, 64, true},
                 {TGL_BF16, TGL_COMPUTE_IEEE, 64, 64, 64, true}, /* if it rounds to nearest */
                 {TGL_BF16, TGL_COMPUTE_DEFAULT, 8, 8, 8, false},
                 {TGL_BF16, TGL_COMPUTE_DEFAULT, 1, 4096, 4096, false},
                 {TGL_BF16, TGL_COMPUTE_DEFAULT, 100, 100, 0, false},
                 {TGL_F16, TGL_COMPUTE_DEFAULT, 1000, 1000, 1000, true},
                 {TGL_F16, TGL_COMPUTE_IEEE, 1000, 1000, 1000, false},
                 {TGL_F32, TGL_COMPUTE_ACCURATE, 1000, 1000, 1000, true},
                 {TGL_F32, TGL_COMPUTE_ACCURATE, 64, 64, 64, false},
                 {TGL_F32, TGL_COMPUTE_DEFAULT, 1000, 1000, 1000, false},
                 {TGL_F32, TGL_COMPUTE_IEEE, 1000, 1000, 1000, false},
                 {TGL_F64, TGL_COMPUTE_ACCURATE, 1000, 1000, 1000, false},
                 {TGL_I8, TGL_COMPUTE_DEFAULT, 1000, 1000, 1000, true},
                 {TGL_I8, TGL_COMPUTE_IEEE, 1000, 1000, 1000, true},
                 {TGL_I8, TGL_COMPUTE_DEFAULT, 8, 8, 8, true},
                 {TGL_I8, TGL_COMPUTE_DEFAULT, 100, 100, 0, false}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        tgl_problem problem = problem_of(table[i].type, table[i].m, table[i].n, table[i].k);
        problem.compute = table[i].compute;
        if (table[i].type == TGL_I8) problem.type_c = TGL_I32;
        const bool rounds = table[i].type == TGL_BF16 && words->rounds_to_odd;
        const bool expected = table[i].words && has_type(table[i].type) &&
                              !(rounds && table[i].compute == TGL_COMPUTE_IEEE);
        if (takes_words(*state, &problem) != expected) fail_msg("row %d", (int)i);
    }
}

/* All inputs, with Inf, NaN and denormal numbers; several blocks along k; other C and D. */
static void products_are_right(void **state)
{
    static const int64_t sizes[][3] = {
        {290, 320, 300}, {300, 289, 260}, {320, 290, 530}, {320, 290, 512}};
    uint64_t seed = 4;
    for (int fill = 0; fill < INPUTS_END; fill++)
        for (int i = 0; i < CPU_WORDS_I8; i++) { /* of f32 also by digits */
            const int64_t *size = sizes[(fill + i) % 4];
            if (!has_kind((cpu_word_kind)i)) continue;
            gemm_case c = {.problem = accurate(problem_of(types[i], size[0], size[1], size[2])),
                           .alpha = fill % 2 ? 1 : -0.7,
                           .beta = fill % 2 ? 0 : 1.2,
                           .fill = (inputs)fill,
                           .at_end = true,
                           .seed = random_bits(&seed)};
            c.problem.trans_a = random_int(&seed, 0, 1) ? TGL_TRANS : TGL_NO_TRANS;
            c.problem.trans_b = random_int(&seed, 0, 1) ? TGL_TRANS : TGL_NO_TRANS;
            if (fill % 3 == 0) c.problem.type_c = TGL_F32;
            vary_case(&seed, &c);
            assert_true(takes_words(*state, &c.problem));
            assert_true(check_case(*state, &c));
        }
}

/* Parts of k of f32: by digits, words and FMAs. */
static void parts_of_accurate_products_are_added(void **state)
{
    (void)state;
    if (!has_kind(CPU_WORDS_F32)) skip();
    tgl_device *dev = open_cpu(5);
    uint64_t seed = 26;
    for (int fill = 0; fill < INPUTS_END; fill++) {
        gemm_case c = {.problem = accurate(problem_of(TGL_F32, 120, 100, 9000)),
                       .alpha = fill % 2 ? 1 : -0.7,
                       .beta = fill % 3 ? 0 : 1.2,
                       .fill = (inputs)fill,
                       .at_end = true,
                       .seed = random_bits(&seed)};
        assert_true(plan_explains(dev, &c.problem, "parts of k"));
        assert_true(check_case(dev, &c));
    }
    tgl_device_close(dev);
}

/* The same of int8, modulo 2^32. */
static void integer_products_are_exact(void **state)
{
    enum { M = 70, N = 90, K = 2100, ALPHA = -3, BETA = 5 };
    static int8_t A[M * K], B[K * N];
    static int32_t C[M * N], before[M * N];
    uint64_t seed = 7;
    if (!has_kind(CPU_WORDS_I8)) skip();
    for (int i = 0; i < M * K; i++)
        A[i] = (int8_t)random_int(&seed, -128, 127);
    for (int i = 0; i < K * N; i++)
        B[i] = (int8_t)random_int(&seed, -128, 127);
    for (int trans = 0; trans < 4; trans++) {
        tgl_problem problem = problem_of(TGL_I8, M, N, K);
        problem.type_c = TGL_I32;
        problem.trans_a = trans & 1 ? TGL_TRANS : TGL_NO_TRANS;
        problem.trans_b = trans & 2 ? TGL_TRANS : TGL_NO_TRANS;
        problem.lda = trans & 1 ? M : K;
        problem.ldb = trans & 2 ? K : N;
        assert_true(takes_words(*state, &problem));
        for (int i = 0; i < M * N; i++)
            C[i] = before[i] = (int32_t)random_bits(&seed);
        assert_status(tgl_gemm(*state, &problem, ALPHA, A, B, BETA, C, NULL), TGL_OK);
        for (int i = 0; i < M * N; i++) {
            const int row = i / N, column = i % N;
            int32_t sum = 0;
            for (int p = 0; p < K; p++)
                sum += A[trans & 1 ? p * M + row : row * K + p] *
                       B[trans & 2 ? column * K + p : p * N + column];
            const uint32_t expected = (uint32_t)ALPHA * (uint32_t)sum + BETA * (uint32_t)before[i];
            assert_int_equal((uint32_t)C[i], expected);
        }
    }
}

/* Numbers that AMX would treat as zero, or that overflow midway: FMAs compute such blocks, also
 * after blocks that words have computed. */
static void extremes_take_fma(void **state)
{
    enum { M = 70, N = 90, K = 2300, AT = K - 5 }; /* more than one block for each thread */
    static const double pairs[][2] = {
        {0x1p-70, 0x1p-70}, /* a denormal product */
        {0x1p-130, 0x1p20}, /* a denormal element */
        {0x1p-63, 0x1p-63}, /* the least normal product */
        {0x1p-100, 0x1p127},
        {0x1p127, 0x1p-126},
        {0x1p127, 2}, /* the sum overflows */
        {0x1.fep127, 0x1.fep-8},
        {INFINITY, 1},
        {INFINITY, 0},
        {-INFINITY, 0x1p-130},
        {NAN, 0},
    };
    tgl_problem problem = problem_of(TGL_BF16, M, N, K);
    problem.type_c = TGL_F32;
    if (!has_kind(CPU_WORDS_BF16)) skip();
    assert_true(takes_words(*state, &problem));
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        static uint16_t A[M * K], B[K * N];
        static float C[M * N];
        memset(A, 0, sizeof A);
        memset(B, 0, sizeof B);
        for (int row = 0; row < M; row++)
            element_set(TGL_BF16, A, (int64_t)row * K + AT, pairs[i][0]);
        for (int column = 0; column < N; column++)
            element_set(TGL_BF16, B, (int64_t)AT * N + column, pairs[i][1]);
        /* Normal numbers in the first block of k, where row and column are even. */
        for (int row = 0; row < M; row += 2)
            element_set(TGL_BF16, A, (int64_t)row * K, 1);
        for (int column = 0; column < N; column += 2)
            element_set(TGL_BF16, B, column, 3);
        assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
        for (int q = 0; q < M * N; q++) {
            const bool has_first = q / N % 2 == 0 && q % N % 2 == 0;
            const float expected =
                fmaf((float)pairs[i][0], (float)pairs[i][1], has_first ? 3.0F : 0.0F);
            if (isnan(expected) ? !isnan(C[q]) : C[q] != expected)
                fail_msg("%a * %a + %d is %a, not %a", pairs[i][0], pairs[i][1], has_first ? 3 : 0,
                         (double)C[q], (double)expected);
        }
    }
}

/* One element that is Inf, or would be after rounding to a word, beside a B of small elements,
 * whose sums are far from the greatest number. */
static void infinite_words_take_fma(void **state)
{
    enum { N = 256 };
    static const struct {
        cpu_word_kind kind;
        double large, small;
    } table[] = {{CPU_WORDS_BF16, INFINITY, 0x1p-40}, {CPU_WORDS_F16, INFINITY, 0x1p-12},
                 {CPU_WORDS_F32, INFINITY, 0x1p-40},  {CPU_WORDS_F32, FLT_MAX, 0x1p-40},
                 {CPU_WORDS_F32, -FLT_MAX, 0x1p-20},  {CPU_WORDS_BF16, 0x1.fep127, 0x1p-40}};
    static float A[N * N], B[N * N], C[N * N]; /* of any type */
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const tgl_type type = types[table[i].kind];
        tgl_problem problem = accurate(problem_of(type, N, N, N));
        problem.type_c = TGL_F32;
        if (!has_kind(table[i].kind)) continue;
        assert_true(takes_words(*state, &problem));
        for (int q = 0; q < N * N; q++) {
            element_set(type, A, q, q == 0 ? table[i].large : 1);
            element_set(type, B, q, table[i].small);
        }
        assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
        for (int q = 0; q < N * N; q++) {
            const double expected = q < N ? table[i].large * table[i].small : N * table[i].small;
            if (C[q] != (float)expected)
                fail_msg("row %d: %a, not %a", (int)i, (double)C[q], expected);
        }
    }
}

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

/* Elements that are as large as each other, but whose results are denormal: digits cannot be scaled
 * back. */
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

/* The bounds of docs/accuracy.md. */
static void accurate_errs_less_than_fma(void **state)
{
    static const struct {
        int64_t k;
        double share; /* of the RMS of FMAs, at most */
    } depths[] = {{256, 1}, {1024, 0.5}};
    if (!has_kind(CPU_WORDS_F32)) skip();
    for (int fill = UNIFORM_01; fill <= NORMAL; fill++)
        for (size_t i = 0; i < COUNT_OF(depths); i++) {
            const gemm_case c = {.problem = accurate(problem_of(TGL_F32, 224, 224, depths[i].k)),
                                 .alpha = 1,
                                 .fill = (inputs)fill,
                                 .seed = 6};
            gemm_outcome outcome;
            assert_true(takes_words(*state, &c.problem));
            gemm_case_run(*state, &c, true, &outcome);
            assert_string_equal(outcome.fault, "");
            const gemm_errors *ours = &outcome.ours, *fma = &outcome.sequential;
            printf("%-12s k %4d: max %.2f, RMS %.3f; FMA %.2f, %.3f\n", inputs_name((inputs)fill),
                   (int)depths[i].k, ours->max, ours->rms, fma->max, fma->rms);
            assert_true(ours->max <= fmax(1.1 * fma->max, 10));
            assert_true(ours->rms <= depths[i].share * fma->rms);
        }
}

/* ---- Threads and processes ------------------------------------------------------------------- */

enum { SIZE = 300 };

/* Computes a product on a device and compares it with `expected`; NULL: with its own first. */
typedef struct computation {
    tgl_device *dev;
    float C[SIZE * SIZE];
    const float *expected;
    bool is_right;
} computation;

static void *compute(void *argument)
{
    computation *x = argument;
    static _Thread_local uint16_t A[SIZE * SIZE];
    for (int i = 0; i < SIZE * SIZE; i++)
        A[i] = (uint16_t)(0x3f80 + i % 97);
    tgl_problem problem = problem_of(TGL_BF16, SIZE, SIZE, SIZE);
    problem.type_c = TGL_F32;
    x->is_right = true;
    for (int i = 0; i < 10; i++) {
        memset(x->C, 0xff, sizeof x->C);
        x->is_right = tgl_gemm(x->dev, &problem, 1, A, A, 0, x->C, NULL) == TGL_OK && x->is_right;
        for (int j = 0; j < SIZE * SIZE && x->expected != NULL; j++)
            x->is_right = x->C[j] == x->expected[j] && x->is_right;
    }
    return NULL;
}

static void threads_and_children_compute(void **state)
{
    enum { THREADS = 4 };
    static computation first, others[THREADS];
    if (!has_kind(CPU_WORDS_BF16)) skip();
    first.dev = *state;
    compute(&first);
    assert_true(first.is_right && first.C[0] > SIZE);

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        others[i] = (computation){.dev = *state, .expected = first.C};
        assert_int_equal(pthread_create(&threads[i], NULL, compute, &others[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(others[i].is_right);
    }
/* Neither the thread sanitizer nor qemu-user follows a child with threads. */
#if !defined(__SANITIZE_THREAD__) && !defined(__aarch64__)
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        compute(&others[0]);
        _exit(others[0].is_right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
#endif
}

/* Linux refuses AMX to a process with a signal stack that is too small for the tiles. Called before
 * anything asks for AMX; returns whether products take FMAs then, and those of int8 AVX512-VNNI. */
static bool does_without_permission(void)
{
    static char memory[2048]; /* the least size that Linux allows at all */
    const stack_t small = {.ss_sp = memory, .ss_size = sizeof memory},
                  none = {.ss_flags = SS_DISABLE};
    if (sigaltstack(&small, NULL) != 0) return false;
    tgl_device *dev = open_cpu(2);
    const tgl_problem problem = problem_of(TGL_BF16, SIZE, SIZE, SIZE);
    const bool refused = !takes_words(dev, &problem);
    const tgl_problem integers = problem_of(TGL_I8, SIZE, SIZE, SIZE);
    const bool by_vnni = plan_explains(dev, &integers, "AVX512-VNNI");
    tgl_device_close(dev);
    return sigaltstack(&none, NULL) == 0 && refused && by_vnni;
}

static bool did_without_permission;

static void amx_may_be_refused(void **state)
{
    const tgl_problem problem = problem_of(TGL_BF16, SIZE, SIZE, SIZE);
    if (words->is_permitted == NULL) skip();
    assert_true(did_without_permission);
    assert_true(takes_words(*state, &problem));
}

static int test_tier(const char *tier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amx_may_be_refused),
        cmocka_unit_test(blocks_are_multiplied),
        cmocka_unit_test(fewer_digits_are_multiplied),
        cmocka_unit_test(unpacked_blocks_are_multiplied),
        cmocka_unit_test(integers_wrap_around),
        cmocka_unit_test(words_hold_an_f32),
        cmocka_unit_test(rounding_is_as_stated),
        cmocka_unit_test(exponents_are_found),
        cmocka_unit_test(digits_are_packed),
        cmocka_unit_test(the_planner_chooses),
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(parts_of_accurate_products_are_added),
        cmocka_unit_test(integer_products_are_exact),
        cmocka_unit_test(extremes_take_fma),
        cmocka_unit_test(infinite_words_take_fma),
        cmocka_unit_test(small_elements_are_not_lost),
        cmocka_unit_test(denormal_results_are_right),
        cmocka_unit_test(accurate_errs_less_than_fma),
        cmocka_unit_test(threads_and_children_compute),
    };
    return cmocka_run_group_tests_name(tier, tests, setup_cpu, teardown_device);
}

/* Tests the words of each tier that this machine runs and TEGULA_CPU allows. */
int main(void)
{
    cpu_facts facts;
    const cpu_tier *tiers[CPU_MAX_TIERS];
    int count = 0, failed = 0, tested = 0;
    bool asked = false; /* for the permission */
    tgl_cpu_detect(&facts);
    if (tgl_cpu_choose_tiers(facts.features, getenv("TEGULA_CPU"), tiers, &count) != TGL_OK)
        count = 0;
    for (int i = 0; i < count; i++) {
        words = tiers[i]->words;
        if (words == NULL) continue;
        setenv("TEGULA_CPU", tiers[i]->name, 1);
        if (words->is_permitted != NULL && !asked)
            did_without_permission = does_without_permission();
        asked = asked || words->is_permitted != NULL;
        if (words->is_permitted != NULL && !words->is_permitted()) continue;
        failed += test_tier(tiers[i]->name);
        tested++;
    }
    if (tested == 0) {
        printf("skipped: this processor or Linux provides no instructions for short words, or "
               "TEGULA_CPU forbids them\n");
        return 77;
    }
    return failed;
}
