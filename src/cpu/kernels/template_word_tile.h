/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of packed words (cpu_words.h) by VDPBF16PS or VPDPBUSD. These AVX-512 instructions add
 * the products of a group to each of 16 sums; a group is 4 bytes: 2 bf16 or 4 int8 that follow each
 * other along k. A tier's file defines these macros, which are undefined at the end, and includes
 * this header once:
 *
 *   WORDS_NAME(x)           x with the instruction's suffix
 *   STEPS, GROUP            steps of k in a row of a packed tile, and in a group
 *   ELEMENT, SUM            the type of a sum, and of a vector of 16 sums
 *   FIRST_SUMS(offsets, j)  initial sums of vector j, 0 or 1, of a panel of B. offsets: the data
 *                           that packing may have put behind this panel
 *   OFFSETS                 bytes of the data at `offsets`
 *   DOT(sum, row, columns)  in each lane, sum + the products of a group of the row and of a column.
 *                           row: the same group in all lanes; columns: a column in each lane
 *   ADD, LOAD_C, STORE_C    add, load and store a SUM, the latter two with a mask
 */
#include "cpu/kernels/word_tiles.h"

/* Rows of the register tile. Its 16 vectors of sums, MR x 2, are independent chains that hide the
 * latency of the instructions: on Zen 4, 6 cycles of VDPBF16PS and 4 of VPDPBUSD. */
enum { MR = 8 };

static inline __m512i load_groups(const char *from)
{
    return _mm512_load_si512(from);
}

static inline __m512i broadcast_group(const char *from)
{
    return _mm512_set1_epi32(*(const int32_t *)from);
}

/* ---- Prefetching ----------------------------------------------------------------------------- */

/* Prefetches the next blocks of A and B while the present ones are multiplied, a few cache lines in
 * each step. Otherwise packing them, which has little arithmetic, would wait for memory. */
typedef struct prefetcher {
    cpu_words_next next[2];
    int64_t offset; /* offset in bytes of the next cache line to prefetch, from next[0].at */
    int64_t lines;  /* number of cache lines to prefetch in each step */
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

/* The part of C that receives the sums of a register tile. */
typedef struct target {
    ELEMENT *c;
    int64_t ldc, rows;
    __mmask16 columns[2]; /* the valid lanes of each vector */
    bool add;             /* C += sums; else C := sums */
    const char *offsets;  /* data that packing put behind the panel of B; argument of FIRST_SUMS */
} target;

/* Computes a register tile: MR rows of a panel of A, from `a` on, times `nv` tiles (1 or 2, a
 * constant) of a panel of B. Rows beyond the matrix are zeros; their sums are not stored. ahead: a
 * part of the next panel of B, which is prefetched. */
static inline __attribute__((always_inline)) void
multiply_word_tile(const int nv, int64_t k, const char *a, const char *b, const char *ahead,
                   const target *to, prefetcher *beside)
{
    SUM sums[MR][2];
    UNROLL
    for (int i = 0; i < MR; i++) {
        sums[i][0] = FIRST_SUMS(to->offsets, 0);
        sums[i][1] = FIRST_SUMS(to->offsets, 1);
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
        const int64_t groups = k - p < STEPS ? (k - p + GROUP - 1) / GROUP : STEPS / GROUP;
        for (int64_t q = 0; q < groups; q++) {
            __m512i columns[2];
            UNROLL
            for (int j = 0; j < nv; j++)
                columns[j] = load_groups(b + j * TILE + q * ROW);
            UNROLL
            for (int i = 0; i < MR; i++) {
                const __m512i row = broadcast_group(a + i * ROW + q * 4);
                UNROLL
                for (int j = 0; j < nv; j++)
                    sums[i][j] = DOT(sums[i][j], row, columns[j]);
            }
        }
    }
    UNROLL
    for (int i = 0; i < MR; i++) {
        if (i >= to->rows) break;
        UNROLL
        for (int j = 0; j < nv; j++) {
            ELEMENT *c = to->c + i * to->ldc + j * 16;
            const SUM old = LOAD_C(to->add ? to->columns[j] : 0, c);
            STORE_C(c, to->columns[j], ADD(old, sums[i][j]));
        }
    }
}

/* Multiplies one panel of A by one panel of B. rows, columns: valid rows and columns of this part
 * of C, at most LINES. */
static void multiply_word_panels(int64_t rows, int64_t columns, int64_t k, const char *a,
                                 const char *b, target to, prefetcher *beside)
{
    const char *ahead = b + (k + STEPS - 1) / STEPS * CPU_WORDS_BYTES;
    to.offsets = ahead;
    to.columns[0] = first_of_16(columns);
    to.columns[1] = first_of_16(columns - 16);
    for (int64_t i = 0; i < rows; i += MR, to.c += MR * to.ldc) {
        const char *row = a + i / TILE_ROWS * TILE + i % TILE_ROWS * ROW;
        to.rows = rows - i < MR ? rows - i : MR;
        if (columns > 16)
            multiply_word_tile(2, k, row, b, ahead, &to, beside);
        else
            multiply_word_tile(1, k, row, b, ahead, &to, beside);
        ahead += CPU_WORDS_BYTES / 4;
    }
}

static void WORDS_NAME(multiply)(const cpu_words_product *x)
{
    const int64_t m = x->a.lines, n = x->b.lines, k = x->a.k;
    const int64_t panel = (k + STEPS - 1) / STEPS * CPU_WORDS_BYTES;
    const int64_t steps = (m + MR - 1) / MR * ((n + LINES - 1) / LINES) * ((k + STEPS - 1) / STEPS);
    prefetcher beside = {.next = {x->next[0], x->next[1]}};
    beside.lines = (lines_of(&x->next[0]) + lines_of(&x->next[1]) + steps - 1) / steps;
    const char *a = x->packed_a;
    for (int64_t i = 0; i < m; i += LINES, a += panel) {
        const char *b = x->packed_b;
        for (int64_t j = 0; j < n; j += LINES, b += panel + OFFSETS) {
            const target to = {.c = (ELEMENT *)x->c + i * x->ldc + j, .ldc = x->ldc, .add = x->add};
            multiply_word_panels(m - i < LINES ? m - i : LINES, n - j < LINES ? n - j : LINES, k, a,
                                 b, to, &beside);
        }
    }
}

#undef WORDS_NAME
#undef STEPS
#undef GROUP
#undef ELEMENT
#undef SUM
#undef FIRST_SUMS
#undef OFFSETS
#undef DOT
#undef ADD
#undef LOAD_C
#undef STORE_C
