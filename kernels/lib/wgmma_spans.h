/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the sums of wgmma as results of 16 bits, where C is not read. The epilogue is applied in
 * registers, and the packed results go through shared memory by stmatrix. A residual of 16 bits is
 * added on the way (lib/wgmma_residual.h).
 *
 * left and right are the operands of wgmma (gemm/wgmma.cu). A span is SPAN columns of a warp's 16
 * rows of sums. In shared memory it consists of lines, which are parts of rows of D: rows of the
 * tile, or with EXCHANGED its columns. The 16-byte pieces of the lines are swizzled, so that
 * stmatrix and loads of pieces use all banks. Threads store words of D_WORD bytes. With TMA_STORES
 * the spans of the four warps of a consumer are a box, which TMA stores (lib/wgmma_boxes.h). The
 * swizzle is then that of TMA, 128 or 64 bytes: the length of a line.
 *
 * The loop over spans is not unrolled if the epilogue is long, or if the block has few free
 * registers. A span is then copied to other registers first, because the loop cannot index the
 * accumulators by a variable. Such a span is small, unless TMA stores it.
 */
#ifndef TGL_WGMMA_SPANS_H
#define TGL_WGMMA_SPANS_H

#include "lib/epilogue.h"
#include "lib/ldmatrix.h"
#include "lib/wgmma_chunks.h"

/* 1: the loop over spans is not unrolled. */
#define HAS_SMALL_SPANS (ACTIVATION >= 2 || EXPRESSION || (MIN_BLOCKS > 1 && M_STEPS * ACC > 64))
#if HAS_SMALL_SPANS
#define UNROLL_SPANS _Pragma("unroll 1")
#else
#define UNROLL_SPANS _Pragma("unroll")
#endif

#if TMA_STORES
#define SPAN (BN % 64 == 0 ? 64 : 32)
#elif HAS_SMALL_SPANS || BLOCK_COLUMNS % 32 != 0
#define SPAN 16
#else
#define SPAN (BLOCK_COLUMNS % 64 == 0 && !EXCHANGED ? 64 : 32)
#endif
#define SPANS      (BN / SPAN) /* spans in the columns of a tile */
#define SPAN_LINES (EXCHANGED ? SPAN : 16)
#define PIECES     (EXCHANGED ? 2 : SPAN / 8) /* pieces of 16 bytes in a line */

/* The address of a 16-byte piece of a line in a span (SPAN columns of results), swizzled. */
static __device__ __forceinline__ char *piece_of(char *span, int line, int piece)
{
    return span + (line * PIECES + (piece ^ line / (8 / PIECES) % PIECES)) * 16;
}

#include "lib/wgmma_residual.h"

/* Whether the kernel can store results as packed 16-bit values, by this file or by
 * lib/wgmma_boxes.h. */
#define HAS_PACKED (D_HAS_16_BITS && !AMAX && (!RESIDUAL || RESIDUAL_HAS_PIECES))

#if HAS_PACKED

#if D_WORD == 16
typedef uint4 d_word;
#elif D_WORD == 8
typedef uint2 d_word;
#endif

/* Returns the results of two neighbouring sums as a 32-bit word, the first in the lower half.
 * residual: the pair of the residual for these results. Elements outside of D are not stored. They
 * take the bias of the last row or column, so that no bias outside of its array is read. */
static __device__ __forceinline__ unsigned finished_pair(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with,
                                                         const accumulate_t *sums,
                                                         unsigned residual, int left, int right)
{
    float v[2];
    (void)residual;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = EXCHANGED ? right + i : left, col = EXCHANGED ? left : right + i;
        v[i] = epilogue_of_pair(args, with, sums[i], residual, i, row < args->m ? row : args->m - 1,
                                col < args->n ? col : args->n - 1);
    }
    return to_d_pair(v[0], v[1]);
}

/* How many columns of results are computed before they are put into shared memory. With scale
 * factors of rows or columns these are all columns of a span, so that the thread waits only once
 * for its factors. */
#define COLUMNS_AT_ONCE (HAS_LINE_SCALES && !STAGED_FACTORS ? SPAN : 16)

/* Puts SPAN columns of a warp's sums into shared memory as results. left, right: the row of left
 * and the column of right of the first sum. */
static __device__ __forceinline__ void put_span(const struct tgl_gemm_args *args,
                                                const struct epilogue_operands *with, char *span,
                                                const accumulate_t *acc, int left, int right)
{
    const int lane = STORING_THREAD % 32;
#pragma unroll
    for (int first = 0; first < SPAN; first += COLUMNS_AT_ONCE) {
        unsigned matrices[COLUMNS_AT_ONCE / 4]; /* 8 x 8 results each: four for 16 columns */
        unsigned residual[COLUMNS_AT_ONCE / 4] = {0};
#pragma unroll
        for (int j = 0; j < COLUMNS_AT_ONCE / 16; j++)
            take_residual(&residual[j * 4], span, first + j * 16);
#pragma unroll
        for (int j = 0; j < COLUMNS_AT_ONCE / 4; j++)
            matrices[j] = finished_pair(args, with, &acc[first / 2 + j * 2], residual[j],
                                        left + lane / 4 + j % 2 * 8,
                                        right + first + j / 2 * 8 + lane % 4 * 2);
#pragma unroll
        for (int j = 0; j < COLUMNS_AT_ONCE / 16; j++) {
            const int i = first + j * 16;
            if (EXCHANGED)
                stmatrix_x4_trans(piece_of(span, i + lane / 16 * 8 + lane % 8, lane / 8 % 2),
                                  &matrices[j * 4]);
            else
                stmatrix_x4(piece_of(span, lane % 16, i / 8 + lane / 16), &matrices[j * 4]);
        }
    }
}

/* Whether store_span() may be used: C is not read, the residual is read in pieces, and the rows of
 * D begin at multiples of D_WORD bytes (anywhere if D_WORD is 4). */
static __device__ __forceinline__ bool is_packed(const struct tgl_gemm_args *args,
                                                 const struct epilogue_operands *with)
{
    const bool words =
        D_WORD == 4 || ((unsigned long long)with->D % D_WORD == 0 && args->ldd % (D_WORD / 2) == 0);
    return BETA(args, with) == 0 && words && is_residual_aligned(args, with);
}

#if D_WORD > 4
/* Stores a warp's span, whose first element is D[row][col]. corner: the first row and column of D
 * that the unit stores. */
static __device__ __forceinline__ void store_span(const struct tgl_gemm_args *args,
                                                  const struct corner *corner, element_d *D,
                                                  char *span, int row, int col)
{
    enum { LENGTH = D_WORD / 2, WORDS = PIECES * 8 / LENGTH /* words of a line */ };
    const int lane = STORING_THREAD % 32;
#pragma unroll
    for (int i = 0; i < SPAN_LINES * WORDS; i += 32) {
        const int line = (lane + i) / WORDS, at = (lane + i) % WORDS * LENGTH;
        const int columns = args->n - col - at;
        const char *from = piece_of(span, line, at / 8) + at % 8 * 2;
        element_d *to = D + (row + line) * args->ldd + col + at;
        if (!is_own_row(args, corner, row + line) || col + at < corner->col) continue;
        if (columns >= LENGTH)
            *(d_word *)to = *(const d_word *)from;
        else if (!TMA_STORES) /* TMA needs n to be a multiple of 8 */
            for (int j = 0; j < columns; j++)
                to[j] = ((const element_d *)from)[j];
    }
}
#else
/* Stores a warp's span if rows of D may begin at any element. A lane stores a 32-bit word. If the
 * line begins in the middle of a word, a lane takes the first half of its word from the previous
 * lane. The first and the last element of the line are then stored alone. */
static __device__ __forceinline__ void store_span(const struct tgl_gemm_args *args,
                                                  const struct corner *corner, element_d *D,
                                                  char *span, int row, int col)
{
    enum { WORDS = PIECES * 4 }; /* words of a line */
    const int lane = STORING_THREAD % 32, word = lane % WORDS;
    const int from = corner->col - col, to = args->n - col;
#pragma unroll 4
    for (int i = 0; i < SPAN_LINES; i += 32 / WORDS) {
        const int line = i + lane / WORDS;
        element_d *d = D + (row + line) * args->ldd + col;
        const int skip = (int)((unsigned long long)d / 2 % 2);
        const unsigned own = *(const unsigned *)(piece_of(span, line, word / 4) + word % 4 * 4);
        const unsigned before =
            __shfl_sync(0xffffffff, own, lane - word + (word + WORDS - 1) % WORDS);
        const unsigned pair = skip ? before >> 16 | own << 16 : own;
        const int first = (2 * word - skip) & (2 * WORDS - 1), second = 2 * word - skip + 1;
        if (!is_own_row(args, corner, row + line)) continue;
        if (first >= from && first < second && second < to) {
            *(unsigned *)(d + first) = pair;
        } else {
            if (first >= from && first < to) d[first].bits = (unsigned short)pair;
            if (second >= from && second < to) d[second].bits = (unsigned short)(pair >> 16);
        }
    }
}
#endif

#if HAS_SMALL_SPANS
/* own[] := span number `number` of a warp's sums. Registers cannot be indexed by a variable, so a
 * comparison selects the span. */
static __device__ __forceinline__ void take_span(accumulate_t *own, accumulate_t (*acc)[ACC],
                                                 int number)
{
#pragma unroll
    for (int i = 0; i < M_STEPS * SPANS; i++)
#pragma unroll
        for (int j = 0; j < SPAN / 2; j++)
            if (i == number) own[j] = acc[i / SPANS][i % SPANS * (SPAN / 2) + j];
}
#endif

/* Puts span number i of a consumer's sums into shared memory. left, right: as for put_span(). */
static __device__ __forceinline__ void put_numbered_span(const struct tgl_gemm_args *args,
                                                         const struct epilogue_operands *with,
                                                         accumulate_t (*acc)[ACC], char *span,
                                                         int i, int left, int right)
{
#if HAS_SMALL_SPANS
    accumulate_t own[SPAN / 2];
    take_span(own, acc, i);
    put_span(args, with, span, own, left, right);
#else
    put_span(args, with, span, &acc[i / SPANS][i % SPANS * (SPAN / 2)], left, right);
#endif
}

#if !TMA_STORES
/* Stores a warp's rows of a tile. results: shared memory of the consumer, where each warp has
 * CHUNK_BYTES for a span. first_left: the warp's first row of left. */
static __device__ __forceinline__ void store_spans(const struct tgl_gemm_args *args,
                                                   const struct epilogue_operands *with,
                                                   accumulate_t (*acc)[ACC], char *results,
                                                   const struct unit *u, int first_left)
{
    char *span = results + STORING_THREAD / 32 % 4 * CHUNK_BYTES;
    const struct corner corner = corner_of(u);
    struct residual_span residual = load_residual(args, with, first_left, u->right);
    UNROLL_SPANS
    for (int i = 0; i < M_STEPS * SPANS; i++) {
        const int left = first_left + i / SPANS * PART_ROWS, right = u->right + i % SPANS * SPAN;
        const bool is_stored = !is_foreign(args, u, left, 16, right, SPAN) &&
                               !IS_STORED_BY_OTHERS(i % SPANS * SPAN, u);
        if (is_stored) put_residual(span, &residual);
        residual = load_next_residual(args, with, first_left, u->right, i);
        if (!is_stored) continue;
        put_numbered_span(args, with, acc, span, i, left, right);
        __syncwarp();
        store_span(args, &corner, with->D, span, EXCHANGED ? right : left,
                   EXCHANGED ? left : right);
        __syncwarp();
    }
}
#endif

#endif

#endif
