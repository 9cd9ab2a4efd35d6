/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of words and digits (cpu_words.h) by AMX (Intel SDM vol. 1, chapter 18). TDPBF16PS
 * multiplies a tile of 16 rows by 32 steps of k by a tile of 32 steps by 16 columns, and adds the
 * product to a tile of f32. Row i of the first tile is 32 steps of row i of op(A). Row q of the
 * second tile has steps 2q and 2q + 1 of each of 16 columns of op(B), side by side. TDPBSSD does
 * the same for int8 and int32, with 64 steps of k in a row, four of each column side by side.
 *
 * Compiled with -mamx-tile, -mamx-bf16, -mamx-int8 and -mavx512f; called only where detect.c found
 * them and Linux permits the tiles.
 */
#include "base/integers.h"
#include "cpu/kernels/tier_tables.h"
#include "cpu/kernels/word_tiles.h"

#include <sys/syscall.h>
#include <unistd.h>

/* A compiler barrier around loads and stores of tiles: the compiler does not know that the
 * intrinsics access memory. */
#define MEMORY_BARRIER() __asm__ volatile("" ::: "memory")

/* sum += a*b, where the arguments are numbers of tile registers. is_i8: a constant; true for int8,
 * false for bf16. */
#define MULTIPLY(is_i8, sum, a, b)                                                                 \
    do {                                                                                           \
        if (is_i8)                                                                                 \
            _tile_dpbssd(sum, a, b);                                                               \
        else                                                                                       \
            _tile_dpbf16ps(sum, a, b);                                                             \
    } while (0)

/* Multiply one or two tiles of A by one or two tiles of B. MULTIPLY_A loads the tiles of A and uses
 * the tiles of B that are in registers already. MULTIPLY_B loads the tiles of B and uses those of
 * A. MULTIPLY_BOTH loads the tiles of A and of B. Tile registers: 0 to 3 are the 2 x 2 sums, 4 and
 * 5 are A, 6 and 7 are B. Each tile is loaded right before its first use, which is 5 % faster than
 * loading all tiles first. A panel of A stays in the L1 cache. B is read once for each panel of A,
 * with TILELOADDT1, a hint not to keep B in the L1 cache.
 *
 * tall: whether there is a second tile of A; wide: whether there is a second tile of B; both are
 * constants. row: bytes between two rows of a tile of A. second: bytes from the first to the second
 * tile of A. */
#define MULTIPLY_A(i8, tall, wide, a, row, second)                                                 \
    do {                                                                                           \
        _tile_loadd(4, a, row);                                                                    \
        MULTIPLY(i8, 0, 4, 6);                                                                     \
        if (wide) MULTIPLY(i8, 1, 4, 7);                                                           \
        if (tall) _tile_loadd(5, (a) + (second), row);                                             \
        if (tall) MULTIPLY(i8, 2, 5, 6);                                                           \
        if ((tall) && (wide)) MULTIPLY(i8, 3, 5, 7);                                               \
    } while (0)
#define MULTIPLY_B(i8, tall, wide, b)                                                              \
    do {                                                                                           \
        _tile_stream_loadd(6, b, ROW);                                                             \
        MULTIPLY(i8, 0, 4, 6);                                                                     \
        if (tall) MULTIPLY(i8, 2, 5, 6);                                                           \
        if (wide) _tile_stream_loadd(7, (b) + TILE, ROW);                                          \
        if (wide) MULTIPLY(i8, 1, 4, 7);                                                           \
        if ((tall) && (wide)) MULTIPLY(i8, 3, 5, 7);                                               \
    } while (0)
#define MULTIPLY_BOTH(i8, tall, wide, a, row, second, b)                                           \
    do {                                                                                           \
        _tile_loadd(4, a, row);                                                                    \
        _tile_stream_loadd(6, b, ROW);                                                             \
        MULTIPLY(i8, 0, 4, 6);                                                                     \
        if (wide) _tile_stream_loadd(7, (b) + TILE, ROW);                                          \
        if (wide) MULTIPLY(i8, 1, 4, 7);                                                           \
        if (tall) _tile_loadd(5, (a) + (second), row);                                             \
        if (tall) MULTIPLY(i8, 2, 5, 6);                                                           \
        if ((tall) && (wide)) MULTIPLY(i8, 3, 5, 7);                                               \
    } while (0)

/* Calls an inlined function with the constants `tall` and `wide` as its last arguments. */
#define CALL_BY_TILES(tall, wide, function, ...)                                                   \
    do {                                                                                           \
        if ((tall) && (wide))                                                                      \
            function(__VA_ARGS__, true, true);                                                     \
        else if (tall)                                                                             \
            function(__VA_ARGS__, true, false);                                                    \
        else if (wide)                                                                             \
            function(__VA_ARGS__, false, true);                                                    \
        else                                                                                       \
            function(__VA_ARGS__, false, false);                                                   \
    } while (0)

/* The product of digit i of A and digit j of B has order i + j and the weight 2^(-8*(i + j)); digit
 * 0 is the highest. All products of one order are added to one sum. low*low, the only product of
 * order 4, is not computed. LONGEST_ORDER is the order with the most products. */
enum { DIGIT_ORDERS = 4, LONGEST_ORDER = 2 };

/* If C has at most this many elements (256 KB) and is overwritten, panels of 32 x 32 elements are
 * stored directly to C, not to a buffer. A product with m = n = k = 128 then takes 14 % less time.
 * With m = n = k = 512, where C has 1 MB, it would take 10 % more, because the stores wait for the
 * cache lines of C. */
enum { TO_C_MAX = 256 * 256 };

/* The sums of one panel of A times one panel of B. While the next panels are multiplied, AVX-512
 * instructions add these sums to C, a few rows of C in each step of tiles. The tile instructions
 * cannot do this addition: they treat denormal numbers of C as zero. */
typedef struct panel_sums {
    float tiles[4][TILE_ROWS][16] __attribute__((aligned(64))); /* int32 for int8 */
    float *c; /* address of row `row` of this part of C, which receives its sums next */
    int64_t ldc;
    int64_t row, rows;    /* row: index of the next row to add; rows: number of rows */
    __mmask16 columns[2]; /* valid columns of the left and the right tiles */
    bool add;             /* C += sums; else C := sums */
    bool to_c;            /* whole tiles are stored to C, not to this buffer */
} panel_sums;

static inline void add_sums_row(float *c, const float *sums, __mmask16 columns, bool add,
                                const bool is_i8)
{
    __m512 sum = _mm512_load_ps(sums);
    const __m512 old = _mm512_maskz_loadu_ps(add ? columns : 0, c);
    if (add && is_i8)
        sum = _mm512_castsi512_ps(
            _mm512_add_epi32(_mm512_castps_si512(old), _mm512_castps_si512(sum)));
    else if (add)
        sum = _mm512_add_ps(old, sum);
    _mm512_mask_storeu_ps(c, columns, sum);
}

static inline void add_sums_rows(panel_sums *x, int64_t count, const bool is_i8)
{
    for (; count > 0 && x->row < x->rows; count--, x->row++, x->c += x->ldc) {
        const int64_t tile = x->row / TILE_ROWS * 2, row = x->row % TILE_ROWS;
        add_sums_row(x->c, x->tiles[tile][row], x->columns[0], x->add, is_i8);
        if (x->columns[1] != 0)
            add_sums_row(x->c + 16, x->tiles[tile + 1][row], x->columns[1], x->add, is_i8);
    }
}

/* Bytes of a panel for one step of tiles, which is 32 or 64 steps of k: two tiles for each word or
 * digit. */
static inline int64_t step_bytes(const cpu_word_kind kind)
{
    return kind == CPU_WORDS_F32 || kind == CPU_DIGITS_F32 ? 3 * CPU_WORDS_BYTES
           : kind == CPU_WORDS_F16                         ? 2 * CPU_WORDS_BYTES
                                                           : CPU_WORDS_BYTES;
}

/* Where the tiles of A are: in packed panels, or in A itself. at: the first tile. The other members
 * are distances in bytes. row: from a row of a tile to the next row; second: from the first to the
 * second tile of a panel; step: from a tile to the next tile along k; panel: from a panel to the
 * next panel. */
typedef struct a_tiles {
    const char *at;
    int64_t row, second, step, panel;
} a_tiles;

/* Adds the products of words for one step of tiles to the sums, the largest, high*high, last.
 * cpu_words_product says which products are not computed. Exception: multiply_panels_amx() adds
 * high*high of f16 in a second loop. */
static inline __attribute__((always_inline)) void
multiply_word_steps(const a_tiles *x, const char *a, const char *b, const cpu_word_kind kind,
                    const bool tall, const bool wide)
{
    enum { HIGH = 0, MIDDLE = CPU_WORDS_BYTES, LOW = 2 * CPU_WORDS_BYTES };
    enum { LOW_F16 = CPU_WORDS_BYTES };
    switch (kind) {
    case CPU_WORDS_F32:
        MULTIPLY_BOTH(false, tall, wide, a + LOW, ROW, TILE, b + HIGH);
        MULTIPLY_A(false, tall, wide, a + MIDDLE, ROW, TILE);
        MULTIPLY_B(false, tall, wide, b + MIDDLE);
        MULTIPLY_A(false, tall, wide, a + HIGH, ROW, TILE);
        MULTIPLY_B(false, tall, wide, b + LOW);
        MULTIPLY_B(false, tall, wide, b + HIGH);
        break;
    case CPU_WORDS_F16:
        MULTIPLY_BOTH(false, tall, wide, a + LOW_F16, ROW, TILE, b + HIGH);
        MULTIPLY_B(false, tall, wide, b + LOW_F16);
        MULTIPLY_A(false, tall, wide, a + HIGH, ROW, TILE);
        break;
    default:
        MULTIPLY_BOTH(kind == CPU_WORDS_I8, tall, wide, a, x->row, x->second, b);
    }
}

/* Multiplies one panel of A, at `a`, by one panel of B, at `b`, and meanwhile adds the sums of the
 * previous panels to C. For f16, high*high is added in a second loop: the sums before it are small,
 * and so are their rounding errors. */
static inline __attribute__((always_inline)) void
multiply_panels_amx(const a_tiles *x, const char *a, const char *b, int64_t k, panel_sums *sums,
                    const cpu_word_kind kind, const bool tall, const bool wide)
{
    const int64_t steps = (k + tgl_cpu_word_steps(kind) - 1) / tgl_cpu_word_steps(kind);
    const int64_t rows = (LINES + steps - 1) / steps; /* rows of C to add in each step */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t p = 0; p < steps; p++) {
        multiply_word_steps(x, a + p * x->step, b + p * step_bytes(kind), kind, tall, wide);
        add_sums_rows(sums, rows, kind == CPU_WORDS_I8);
    }
    for (int64_t p = 0; kind == CPU_WORDS_F16 && p < steps; p++)
        MULTIPLY_BOTH(false, tall, wide, a + p * x->step, ROW, TILE, b + p * step_bytes(kind));
}

/* Stores the sums of min(m, LINES) x min(n, LINES) elements: directly to C, or to the buffer, from
 * which they are added to C while the next panels are multiplied. */
static inline void store_sums(panel_sums *x, float *c, int64_t m, int64_t n)
{
    const bool to_c = x->to_c && m >= LINES && n >= LINES;
    if (to_c) {
        const int64_t step = x->ldc * (int64_t)sizeof *c;
        float *below = c + TILE_ROWS * x->ldc;
        _tile_stored(0, c, step);
        _tile_stored(1, c + 16, step);
        _tile_stored(2, below, step);
        _tile_stored(3, below + 16, step);
    } else {
        _tile_stored(0, x->tiles[0], ROW);
        _tile_stored(1, x->tiles[1], ROW);
        _tile_stored(2, x->tiles[2], ROW);
        _tile_stored(3, x->tiles[3], ROW);
    }
    MEMORY_BARRIER();
    x->c = c;
    x->row = 0;
    x->rows = to_c ? 0 : m < LINES ? m : LINES;
    x->columns[0] = first_of_16(n);
    x->columns[1] = first_of_16(n - 16);
}

static inline __attribute__((always_inline)) void multiply_by_tiles(int64_t m, int64_t n, int64_t k,
                                                                    const a_tiles *x, const char *b,
                                                                    float *c, int64_t ldc, bool add,
                                                                    const cpu_word_kind kind)
{
    const int64_t panel =
        (k + tgl_cpu_word_steps(kind) - 1) / tgl_cpu_word_steps(kind) * step_bytes(kind);
    panel_sums sums = {.ldc = ldc, .add = add, .to_c = !add && m * n <= TO_C_MAX};
    MEMORY_BARRIER();
    const char *a = x->at;
    for (int64_t i = 0; i < m; i += LINES, a += x->panel) {
        const char *panel_b = b;
        for (int64_t j = 0; j < n; j += LINES, panel_b += panel) {
            const bool tall = m - i > TILE_ROWS, wide = n - j > TILE_ROWS;
            CALL_BY_TILES(tall, wide, multiply_panels_amx, x, a, panel_b, k, &sums, kind);
            store_sums(&sums, c + i * ldc + j, m - i, n - j);
        }
    }
    add_sums_rows(&sums, LINES, kind == CPU_WORDS_I8);
}

/* Defines two functions for each kind of words: multiply_tiles_* takes tiles of A at any distances,
 * multiply_* takes packed panels. They do not prefetch the next blocks, because that was slower. */
#define MULTIPLY_KIND(suffix, kind)                                                                \
    static __attribute__((noinline)) void multiply_tiles_##suffix(const cpu_words_product *x,      \
                                                                  const a_tiles *a)                \
    {                                                                                              \
        multiply_by_tiles(x->a.lines, x->b.lines, x->a.k, a, x->packed_b, x->c, x->ldc, x->add,    \
                          kind);                                                                   \
    }                                                                                              \
    static void multiply_##suffix(const cpu_words_product *x)                                      \
    {                                                                                              \
        const int64_t panel = tgl_ceil_div(x->a.k, tgl_cpu_word_steps(kind)) * step_bytes(kind);   \
        multiply_tiles_##suffix(x, &(a_tiles){x->packed_a, ROW, TILE, step_bytes(kind), panel});   \
    }
MULTIPLY_KIND(bf16, CPU_WORDS_BF16)
MULTIPLY_KIND(f32, CPU_WORDS_F32)
MULTIPLY_KIND(f16, CPU_WORDS_F16)
MULTIPLY_KIND(i8, CPU_WORDS_I8)

/* The tiles of an A that is not packed. element: bytes of an element of A. */
static a_tiles tiles_of(const cpu_words_source *a, int64_t element)
{
    const int64_t line = a->ld * element;
    return (a_tiles){a->from, line, TILE_ROWS * line, ROW, LINES * line};
}

static void multiply_unpacked_bf16(const cpu_words_product *x)
{
    const a_tiles tiles = tiles_of(&x->a, sizeof(uint16_t));
    multiply_tiles_bf16(x, &tiles);
}

static void multiply_unpacked_i8(const cpu_words_product *x)
{
    const a_tiles tiles = tiles_of(&x->a, 1);
    multiply_tiles_i8(x, &tiles);
}

/* ---- Digits ---------------------------------------------------------------------------------- */

/* The sums of one panel of A times one panel of B, for each order of digits. They are exact in
 * int32, and are added to C while the next panels are multiplied. */
typedef struct digit_sums {
    int32_t tiles[DIGIT_ORDERS][4][TILE_ROWS][16] __attribute__((aligned(64)));
    float *c; /* address of row `row` of this part of C, which receives its sums next */
    int64_t ldc;
    int64_t row, rows;    /* row: index of the next row to add; rows: number of rows */
    __mmask16 columns[2]; /* valid columns of the left and the right tiles */
    /* The factors 2^(16-s) of the panels' rows and columns (cpu_words.h). */
    const float *a_unscale, *b_unscale;
    bool add; /* C += sums; else C := sums */
} digit_sums;

/* 16 elements of a row of C, before they are multiplied by the factors of row and columns: sum over
 * the orders t of 2^(-8*t) * (sum of order t). */
static inline __m512 sum_of_orders(const digit_sums *x, int64_t tile, int64_t row)
{
    const __m512 base = _mm512_set1_ps(1 / 256.0F);
    __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(x->tiles[DIGIT_ORDERS - 1][tile][row]));
    UNROLL
    for (int order = DIGIT_ORDERS - 2; order >= 0; order--)
        sum = _mm512_fmadd_ps(sum, base,
                              _mm512_cvtepi32_ps(_mm512_load_si512(x->tiles[order][tile][row])));
    return sum;
}

static inline void add_digit_rows(digit_sums *x, int64_t count)
{
    for (; count > 0 && x->row < x->rows; count--, x->row++, x->c += x->ldc)
        for (int half = 0; half < 2; half++) {
            const __mmask16 columns = x->columns[half];
            float *c = x->c + 16 * half;
            const int64_t tile = x->row / TILE_ROWS * 2 + half, row = x->row % TILE_ROWS;
            if (columns == 0) continue;
            const __m512 unscale = _mm512_mul_ps(_mm512_set1_ps(x->a_unscale[x->row]),
                                                 _mm512_load_ps(x->b_unscale + 16 * half));
            const __m512 old = _mm512_maskz_loadu_ps(x->add ? columns : 0, c);
            _mm512_mask_storeu_ps(c, columns,
                                  _mm512_fmadd_ps(sum_of_orders(x, tile, row), unscale, old));
        }
}

/* Computes all products of one order and stores their sums in sums->tiles[order]: digit (order - i)
 * of A times digit i of B, for first <= i <= last. In the loop for LONGEST_ORDER the sums of the
 * previous panels are also added to C. */
static inline __attribute__((always_inline)) void
multiply_order(const char *a, const char *b, int64_t steps, digit_sums *sums, const int order,
               const int first, const int last, const bool tall, const bool wide)
{
    const int64_t rows = (LINES + steps - 1) / steps;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t p = 0; p < steps; p++) {
        const char *step_a = a + p * step_bytes(CPU_DIGITS_F32);
        const char *step_b = b + p * step_bytes(CPU_DIGITS_F32);
        UNROLL
        for (int i = first; i <= last; i++)
            MULTIPLY_BOTH(true, tall, wide, step_a + (order - i) * CPU_WORDS_BYTES, ROW, TILE,
                          step_b + i * CPU_WORDS_BYTES);
        if (order == LONGEST_ORDER) add_digit_rows(sums, rows);
    }
    _tile_stored(0, sums->tiles[order][0], ROW);
    _tile_stored(1, sums->tiles[order][1], ROW);
    _tile_stored(2, sums->tiles[order][2], ROW);
    _tile_stored(3, sums->tiles[order][3], ROW);
    MEMORY_BARRIER();
}

static inline __attribute__((always_inline)) void
multiply_digit_panels(const char *a, const char *b, int64_t steps, digit_sums *sums, bool all,
                      const bool tall, const bool wide)
{
    multiply_order(a, b, steps, sums, LONGEST_ORDER, 0, 2, tall, wide);
    if (all)
        multiply_order(a, b, steps, sums, 3, 1, 2, tall, wide);
    else
        multiply_order(a, b, steps, sums, 3, 1, 1, tall, wide);
    multiply_order(a, b, steps, sums, 1, 0, 1, tall, wide);
    multiply_order(a, b, steps, sums, 0, 0, 0, tall, wide);
}

/* Multiplies by digits. all: false omits the products (middle digit of A) * (low digit of B). */
static void multiply_all_digits(const cpu_words_product *x, bool all)
{
    const int64_t m = x->a.lines, n = x->b.lines;
    const int64_t steps = (x->a.k + CPU_WORDS_STEPS_I8 - 1) / CPU_WORDS_STEPS_I8;
    const int64_t bytes = steps * step_bytes(CPU_DIGITS_F32),
                  panel = bytes + CPU_DIGITS_UNSCALE_BYTES;
    digit_sums sums = {.ldc = x->ldc, .add = x->add};
    const char *a = x->packed_a;
    MEMORY_BARRIER();
    for (int64_t i = 0; i < m; i += LINES, a += panel) {
        const char *b = x->packed_b;
        for (int64_t j = 0; j < n; j += LINES, b += panel) {
            const bool tall = m - i > TILE_ROWS, wide = n - j > TILE_ROWS;
            CALL_BY_TILES(tall, wide, multiply_digit_panels, a, b, steps, &sums, all);
            sums.c = (float *)x->c + i * x->ldc + j;
            sums.row = 0;
            sums.rows = m - i < LINES ? m - i : LINES;
            sums.columns[0] = first_of_16(n - j);
            sums.columns[1] = first_of_16(n - j - 16);
            sums.a_unscale = (const float *)(const void *)(a + bytes);
            sums.b_unscale = (const float *)(const void *)(b + bytes);
        }
    }
    add_digit_rows(&sums, LINES);
}

static void multiply_digits(const cpu_words_product *x)
{
    multiply_all_digits(x, true);
}

static void multiply_fewer_digits(const cpu_words_product *x)
{
    multiply_all_digits(x, false);
}

/* Configures eight tile registers of 16 rows of 64 bytes (Intel SDM vol. 2, LDTILECFG). */
static void configure_tiles(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } configuration = {.palette = 1};
    for (int tile = 0; tile < 8; tile++) {
        configuration.row_bytes[tile] = ROW;
        configuration.rows[tile] = TILE_ROWS;
    }
    MEMORY_BARRIER();
    _tile_loadconfig(&configuration);
}

/* Releases the tile registers. Otherwise each context switch of the thread would save and restore
 * their 8 KB. */
static void release_tiles(void)
{
    _tile_release();
}

/* Asks Linux to permit AMX for this process. Linux requires the request because the tiles enlarge
 * signal frames (asm/prctl.h, Documentation/arch/x86/xstate.rst). */
static bool is_permitted(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

/* The cycles were measured on a Xeon, at the same clock for FMAs and tile instructions. With these
 * block sizes a panel of A takes 32 KB of the L1 cache, or 48 KB for the words or digits of f32. */
const cpu_words tgl_cpu_words_amx = {
    .name = "AMX",
    .is_permitted = is_permitted,
    .otherwise = &tgl_cpu_words_avx512_vnni,
    .steps = {512, 256, 256, 1024, 512},
    .cycles = {1 / 270.0, 1 / 55.0, 1 / 75.0, 1 / 540.0, 1 / 75.0},
    .fma_cycles = 1 / 26.0,
    .pack_a = {tgl_pack_a_bf16, tgl_pack_a_f32, tgl_pack_a_f16, tgl_pack_a_i8, tgl_pack_a_digits},
    .pack_b = {tgl_pack_b_bf16, tgl_pack_b_f32, tgl_pack_b_f16, tgl_pack_b_i8, tgl_pack_b_digits},
    .multiply = {multiply_bf16, multiply_f32, multiply_f16, multiply_i8, multiply_digits},
    .multiply_fewer = multiply_fewer_digits,
    .multiply_unpacked =
        {[CPU_WORDS_BF16] = multiply_unpacked_bf16, [CPU_WORDS_I8] = multiply_unpacked_i8},
    .exponents = tgl_exponents_bf16,
    .short_dot = {[CPU_SHORT_I8] = tgl_cpu_dot_vnni},
    .begin = configure_tiles,
    .end = release_tiles,
};
