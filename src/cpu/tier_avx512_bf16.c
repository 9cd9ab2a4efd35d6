/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of words.h by AVX512-BF16. VDPBF16PS adds to each of 16 sums in f32 the
 * products of a pair of bf16: steps 2q and 2q + 1 of a row of op(A), copied to all lanes, and of 16
 * columns of op(B). Like AMX it treats denormal numbers as zero (Intel SDM vol. 2, AMD APM vol. 4).
 * Compiled with -mavx512f and -mavx512bf16; called only where detect.c found them.
 */
#include "cpu/tiers.h"
#include "cpu/unroll.h"

#include <immintrin.h>

enum { TILE = 1024, TILE_ROWS = 16, ROW = 64, STEPS = CPU_WORDS_STEPS, LINES = CPU_WORDS_LINES };

/* A register tile: 16 sums of 16 lanes hide the latency of VDPBF16PS, 6 cycles on Zen 4. */
enum { MR = 8 };

static inline __m512bh load_pairs(const char *from)
{
    return (__m512bh)_mm512_load_si512(from);
}

static inline __m512bh broadcast_pair(const char *from)
{
    return (__m512bh)_mm512_set1_epi32(*(const int32_t *)from);
}

/* ---- Prefetching ----------------------------------------------------------------------------- */

/* What is prefetched while blocks are multiplied, a few cache lines at each step: packing reads the
 * next blocks of A and B without arithmetic, and would wait for memory. */
typedef struct prefetcher {
    cpu_words_next next[2];
    int64_t offset; /* in the first row of next[0] */
    int64_t lines;  /* at each step */
} prefetcher;

enum { LINE = 64 };

static int64_t lines_of(const cpu_words_next *x)
{
    return x->rows * ((x->bytes + LINE - 1) / LINE);
}

static inline void prefetch_some(prefetcher *x)
{
    for (int64_t i = 0; i < x->lines; i++) {
        if (x->next[0].rows <= 0) {
            x->next[0] = x->next[1];
            x->next[1].rows = 0;
            if (x->next[0].rows <= 0) return;
        }
        __builtin_prefetch(x->next[0].at + x->offset, 0, 2);
        x->offset += LINE;
        if (x->offset < x->next[0].bytes) continue;
        x->offset = 0;
        x->next[0].at += x->next[0].step;
        x->next[0].rows--;
    }
}

/* ---- Multiplying ----------------------------------------------------------------------------- */

/* Where the sums go. */
typedef struct target {
    float *c;
    int64_t ldc, rows;
    __mmask16 columns[2]; /* of each vector */
    bool add;             /* C += sums; else C := sums */
} target;

/* Multiplies MR rows of a panel of A, which begin at a, by one or two tiles of a panel of B; `nv`
 * is a constant. The panel's rows beyond the matrix are zeros: their sums are not stored. */
static inline __attribute__((always_inline)) void tile(const int nv, int64_t k, const char *a,
                                                       const char *b, const char *ahead,
                                                       const target *to, prefetcher *beside)
{
    __m512 sums[MR][2];
    UNROLL
    for (int i = 0; i < MR; i++) {
        sums[i][0] = sums[i][1] = _mm512_setzero_ps();
        if (i < to->rows) {
            __builtin_prefetch(to->c + i * to->ldc, 1);
            __builtin_prefetch(to->c + i * to->ldc + 16, 1);
        }
    }
    for (int64_t p = 0; p < k; p += STEPS, a += CPU_WORDS_BYTES, b += CPU_WORDS_BYTES) {
        UNROLL
        for (int i = 0; i < CPU_WORDS_BYTES / 4; i += ROW)
            __builtin_prefetch(ahead + i, 0, 2);
        ahead += CPU_WORDS_BYTES;
        prefetch_some(beside);
        const int64_t pairs = k - p < STEPS ? (k - p + 1) / 2 : STEPS / 2;
        for (int64_t q = 0; q < pairs; q++) {
            __m512bh columns[2];
            UNROLL
            for (int j = 0; j < nv; j++)
                columns[j] = load_pairs(b + j * TILE + q * ROW);
            UNROLL
            for (int i = 0; i < MR; i++) {
                const __m512bh row = broadcast_pair(a + i * ROW + q * 4);
                UNROLL
                for (int j = 0; j < nv; j++)
                    sums[i][j] = _mm512_dpbf16_ps(sums[i][j], row, columns[j]);
            }
        }
    }
    UNROLL
    for (int i = 0; i < MR; i++) {
        if (i >= to->rows) break;
        UNROLL
        for (int j = 0; j < nv; j++) {
            float *c = to->c + i * to->ldc + j * 16;
            const __m512 old =
                to->add ? _mm512_maskz_loadu_ps(to->columns[j], c) : _mm512_setzero_ps();
            _mm512_mask_storeu_ps(c, to->columns[j], _mm512_add_ps(old, sums[i][j]));
        }
    }
}

static __mmask16 first_columns(int64_t n)
{
    return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

/* One panel of A times one panel of B. rows, columns: of C, at most LINES. */
static void multiply_panels(int64_t rows, int64_t columns, int64_t k, const char *a, const char *b,
                            target to, prefetcher *beside)
{
    const char *ahead = b + (k + STEPS - 1) / STEPS * CPU_WORDS_BYTES;
    to.columns[0] = first_columns(columns);
    to.columns[1] = first_columns(columns - 16);
    for (int64_t i = 0; i < rows; i += MR, to.c += MR * to.ldc) {
        const char *row = a + i / TILE_ROWS * TILE + i % TILE_ROWS * ROW;
        to.rows = rows - i < MR ? rows - i : MR;
        if (columns > 16)
            tile(2, k, row, b, ahead, &to, beside);
        else
            tile(1, k, row, b, ahead, &to, beside);
        ahead += CPU_WORDS_BYTES / 4;
    }
}

static void multiply_bf16(int64_t m, int64_t n, int64_t k, const void *packed_a,
                          const void *packed_b, void *c, int64_t ldc, bool add,
                          const cpu_words_next next[2])
{
    const int64_t panel = (k + STEPS - 1) / STEPS * CPU_WORDS_BYTES;
    const int64_t steps = (m + MR - 1) / MR * ((n + LINES - 1) / LINES) * ((k + STEPS - 1) / STEPS);
    prefetcher beside = {.next = {next[0], next[1]}};
    beside.lines = (lines_of(&next[0]) + lines_of(&next[1]) + steps - 1) / steps;
    const char *a = packed_a;
    for (int64_t i = 0; i < m; i += LINES, a += panel) {
        const char *b = packed_b;
        for (int64_t j = 0; j < n; j += LINES, b += panel) {
            const target to = {.c = (float *)c + i * ldc + j, .ldc = ldc, .add = add};
            multiply_panels(m - i < LINES ? m - i : LINES, n - j < LINES ? n - j : LINES, k, a, b,
                            to, &beside);
        }
    }
}

/* Multiply-adds: 32 a cycle by VDPBF16PS and 16 by FMAs, of which loads and packing of f32 leave 14
 * (Zen 4). Three words for f32 would take three times as long as FMAs. */
const cpu_words tgl_cpu_words_avx512_bf16 = {
    .name = "AVX512-BF16",
    .steps = {512, 0}, /* 256 were up to 4 % slower from 512 cubed on */
    .cycles = {1 / 28.0, 0},
    .fma_cycles = 1 / 14.0,
    .pack_a = {tgl_pack_a_bf16_by_line},
    .pack_b = {tgl_pack_b_bf16_by_line},
    .multiply = {multiply_bf16},
};
