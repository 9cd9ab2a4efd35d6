/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of packed words (cpu_words.h): 16 rows of 64 bytes. Included by the files that pack or
 * multiply such tiles with AVX-512 or AMX. A line is a row of op(A) or a column of op(B).
 */
#ifndef TGL_CPU_WORD_TILES_H
#define TGL_CPU_WORD_TILES_H

#include "cpu/kernels/cpu_words.h"
#include "cpu/kernels/transpose.h"
#include "cpu/kernels/unroll.h"

#include <immintrin.h>

enum { TILE = 1024, TILE_ROWS = 16, ROW = 64, LINES = CPU_WORDS_LINES };

/* Masks of the first n lanes of 64, 32 or 16. n is clamped to the range from 0 to the number of
 * lanes. */
static inline __mmask64 first_of_64(int64_t n)
{
    return n >= 64 ? ~UINT64_C(0) : n <= 0 ? 0 : (UINT64_C(1) << n) - 1;
}

static inline __mmask32 first_of_32(int64_t n)
{
    return n >= 32 ? 0xffffffffu : n <= 0 ? 0 : (1u << n) - 1;
}

static inline __mmask16 first_of_16(int64_t n)
{
    return (__mmask16)first_of_32(n);
}

/* Stores one row of a tile. to: one step of a panel, an array [word][2][16] of rows of 64 bytes.
 * word: index of the bf16 word or of the digit. tile: 0 or 1. */
static inline void store_row(char *to, int word, int tile, int row, __m512i x)
{
    _mm512_store_si512(to + (2 * word + tile) * TILE + row * ROW, x);
}

/* Transposes each tile as a 16 x 16 matrix of 4-byte groups. Before, each row of a tile is a line;
 * afterwards each row holds some steps of k of all 16 lines; or the reverse. */
static inline void transpose_tiles(char *tiles, int64_t count)
{
    typedef int32_t int_vector __attribute__((vector_size(64)));
    for (char *tile = tiles; tile < tiles + count * TILE; tile += TILE) {
        int_vector x[TILE_ROWS];
        for (int i = 0; i < TILE_ROWS; i++)
            x[i] = (int_vector)_mm512_load_si512(tile + i * ROW);
        CPU_TRANSPOSE_16(x);
        for (int i = 0; i < TILE_ROWS; i++)
            _mm512_store_si512(tile + i * ROW, (__m512i)x[i]);
    }
}

#endif
