/* SPDX-License-Identifier: Apache-2.0
 *
 * The copies of gemm/dequant.cu to a stage in shared memory: the block's weights and A for one step
 * of K, and the factors and zero points of the step's groups (of k with one factor).
 *
 * Pieces of 16 bytes are swizzled, so that the lanes that read at the same time use all banks. The
 * slot of a piece is its place in the row after the swizzle. Both swizzles are XORs: if x and y
 * have no common bits, the slot of piece x + y is the slot of x XOR the slot of y in row 0.
 */
#ifndef TGL_DEQUANT_COPIES_H
#define TGL_DEQUANT_COPIES_H

#include "lib/async_copy.h"
#include "lib/dequant_tiles.h"

/* The slot of a piece in its row of weights, as with the swizzle of 128 bytes of TMA. */
static __device__ __forceinline__ int weights_slot(int row, int piece)
{
    return piece ^ row % 8;
}

/* The slot of a piece in its row of A. 8 lanes read pieces of two rows at the same time; the pieces
 * of a row are 1, 2 or 4 apart. */
static __device__ __forceinline__ int a_slot(int row, int piece)
{
    return piece ^ (piece >> 3 & 1) ^ (row & 1) * 7;
}

/* The operands of a block. */
struct block_operands {
    const unsigned char *weights; /* the first row of weights */
    const float *factors;         /* the factors of the first row */
    const signed char *zeros;
    const element_a *A;
    long long ld_bytes; /* from row to row of the weights */
    int rows;           /* number of rows of weights, 1 to TILE */
    int k;              /* k of the product */
};

static __device__ __forceinline__ struct block_operands
operands_of(const struct tgl_gemm_args *args, int first_row)
{
    const long long batch = blockIdx.z;
    const long long factor = batch * args->stride_scale_b + first_row * FACTOR_STEP;
    struct block_operands o;
    o.ld_bytes = args->ldb * BITS / 8;
    o.weights = (const unsigned char *)args->B + batch * (args->stride_b * BITS / 8) +
                first_row * o.ld_bytes;
    o.factors = args->scale_b + factor;
    o.zeros = (const signed char *)args->zero_b + factor;
    o.A = A_OF(args, batch);
    o.rows = min(args->n - first_row, TILE);
    o.k = DEPTH_OF(args);
    return o;
}

/* ---- Where a thread copies ------------------------------------------------------------------- */

/* Each thread copies the same piece of rows of weights that are APART rows apart. */
#define APART          (COPIERS / PIECES)
#define WEIGHTS_COPIES (TILE / APART)
#define A_COPIES       ((COUNT * PIECES_A - 1) / COPIERS + 1)
#define FACTORS_COPIES ((GROUPS * TILE - 1) / COPIERS + 1)

/* The number of this thread among those that copy. */
static __device__ __forceinline__ int copier(void)
{
    return (int)threadIdx.x % COPIERS;
}

/* What this thread copies in the next step. */
struct copies {
    const unsigned char *weights[WEIGHTS_COPIES];
    const element_a *a[A_COPIES];
    const float *factors; /* of the first row of the block and the first group of the step */
    const signed char *zeros;
    int bytes; /* bytes of a row of weights from the thread's piece on; may be negative */
    int k;     /* k that exist from the step on */
};

/* In place of rows of weights beyond the last one, the thread copies the last one. Their sums are
 * not stored. */
static __device__ __forceinline__ struct copies first_copies(const struct tgl_gemm_args *args,
                                                             const struct block_operands *o, int k)
{
    const int piece = copier() % PIECES;
    const long long at = (long long)k * BITS / 8 + piece * 16;
    const long long factor = (long long)(k / (GROUP ? GROUP : 1)) * args->ld_scale_b;
    struct copies c;
#pragma unroll
    for (int i = 0; i < WEIGHTS_COPIES; i++)
        c.weights[i] =
            o->weights + at + min(copier() / PIECES + i * APART, o->rows - 1) * o->ld_bytes;
#pragma unroll
    for (int i = 0; i < A_COPIES; i++) {
        const int number = copier() + i * COPIERS;
        c.a[i] = o->A + number / PIECES_A * args->lda + k + number % PIECES_A * 8;
    }
    c.factors = o->factors + factor;
    c.zeros = o->zeros + factor;
    c.bytes = (int)(((long long)o->k * BITS + 7) / 8 - at);
    c.k = o->k - k;
    return c;
}

static __device__ __forceinline__ void advance_copies(struct copies *c,
                                                      const struct tgl_gemm_args *args)
{
#pragma unroll
    for (int i = 0; i < WEIGHTS_COPIES; i++)
        c->weights[i] += LINE;
#pragma unroll
    for (int i = 0; i < A_COPIES; i++)
        c->a[i] += STEP;
    c->factors += GROUPS * args->ld_scale_b;
    c->zeros += GROUPS * args->ld_scale_b;
    c->bytes -= LINE;
    c->k -= STEP;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Copies a piece, of which the first `valid` bytes exist; zeros follow. */
static __device__ __forceinline__ void copy_piece(char *to, const unsigned char *from, int valid)
{
#if WIDE
    async_copy_bytes(to, from, 16, valid);
#else
#pragma unroll
    for (int i = 0; i < 16; i++)
        to[i] = i < valid ? (char)from[i] : (char)0;
#endif
}

static __device__ __forceinline__ void copy_weights(char *stage, const struct copies *c)
{
    const int first = copier() / PIECES, piece = copier() % PIECES;
    const int valid = max(0, min(16, c->bytes));
    char *to = stage + first * LINE + weights_slot(first, piece) * 16;
#pragma unroll
    for (int i = 0; i < WEIGHTS_COPIES; i++)
        copy_piece(to + i * APART * LINE, c->weights[i], valid);
}

/* Sets rows of A from m on to zero in all stages. */
static __device__ __forceinline__ void clear_missing_rows(char *stages,
                                                          const struct tgl_gemm_args *args)
{
    const float4 zero = {0, 0, 0, 0};
    const int missing = (COUNT - args->m) * PIECES_A; /* pieces of a stage */
    for (int i = (int)threadIdx.x; i < missing; i += THREADS)
#pragma unroll
        for (int stage = 0; stage < STAGES; stage++)
            *(float4 *)(stages + stage * STAGE_BYTES + A_AT + args->m * (STEP * 2) + i * 16) = zero;
}

/* Copies a step of A. Elements beyond K are zeros. Rows from m on are not written. is_whole: all of
 * the step is within K. */
static __device__ __forceinline__ void copy_a(char *stage, const struct tgl_gemm_args *args,
                                              const struct copies *c, const bool is_whole)
{
#pragma unroll
    for (int i = 0; i < A_COPIES; i++) {
        const int number = copier() + i * COPIERS;
        const int row = number / PIECES_A, piece = number % PIECES_A;
        if (COUNT * PIECES_A % COPIERS != 0 && row >= COUNT) break;
        const int valid = is_whole ? 16 : 2 * max(0, min(8, c->k - piece * 8));
        if (row < args->m)
            copy_piece(stage + A_AT + row * (STEP * 2) + a_slot(row, piece) * 16,
                       (const unsigned char *)c->a[i], valid);
    }
}

/* Whether copies of 16 bytes are possible from each row of factors. */
static __device__ __forceinline__ bool has_aligned_factors(const struct tgl_gemm_args *args,
                                                           const struct copies *c)
{
    return (((unsigned long long)c->factors | (unsigned long long)args->ld_scale_b * 4) & 15) == 0;
}

/* Copies the factors of the groups of a step, four at a time. */
static __device__ __forceinline__ void
copy_aligned_factors(char *stage, const struct tgl_gemm_args *args, const struct copies *c)
{
#pragma unroll
    for (int i = 0; i < GROUPS * TILE; i += COPIERS * 4) {
        const int number = i + copier() * 4;
        if (GROUPS * TILE % (COPIERS * 4) != 0 && number >= GROUPS * TILE) break;
        async_copy_float4((float *)(stage + FACTORS_AT) + number,
                          c->factors + number / TILE * args->ld_scale_b + number % TILE, true);
    }
}

/* As copy_aligned_factors(), also if the step is partly beyond K, or if rows of the tile do not
 * exist. */
static __device__ __forceinline__ void copy_factors(char *stage, const struct tgl_gemm_args *args,
                                                    const struct block_operands *o,
                                                    const struct copies *c)
{
#pragma unroll 8
    for (int i = 0; i < FACTORS_COPIES; i++) {
        const int number = copier() + i * COPIERS;
        const int group = number / TILE, row = number % TILE;
        if (GROUPS * TILE % COPIERS != 0 && group >= GROUPS) break;
        async_copy_float_or_zero((float *)(stage + FACTORS_AT) + number,
                                 c->factors + group * args->ld_scale_b + row,
                                 row < o->rows && group * GROUP < c->k);
    }
}

static __device__ __forceinline__ bool has_aligned_zeros(const struct tgl_gemm_args *args,
                                                         const struct copies *c)
{
    return (((unsigned long long)c->zeros | (unsigned long long)args->ld_scale_b) & 15) == 0;
}

/* Copies the zero points of the groups of a step, 16 at a time. */
static __device__ __forceinline__ void
copy_aligned_zeros(char *stage, const struct tgl_gemm_args *args, const struct copies *c)
{
#pragma unroll
    for (int i = 0; i < GROUPS * TILE; i += COPIERS * 16) {
        const int number = i + copier() * 16;
        if (GROUPS * TILE % (COPIERS * 16) != 0 && number >= GROUPS * TILE) break;
        async_copy_bytes(stage + ZEROS_AT + number,
                         c->zeros + number / TILE * args->ld_scale_b + number % TILE, 16, 16);
    }
}

/* As copy_aligned_zeros(), also if the step is partly beyond K, or if rows of the tile do not
 * exist. Copies 4 bytes at a time if the rows of zero points are aligned to 4 bytes. */
static __device__ __forceinline__ void copy_zeros(char *stage, const struct tgl_gemm_args *args,
                                                  const struct block_operands *o,
                                                  const struct copies *c)
{
    const bool is_aligned =
        ((unsigned long long)c->zeros | (unsigned long long)args->ld_scale_b) % 4 == 0;
    const int width = is_aligned ? 4 : 1;
    for (int number = copier() * width; number < GROUPS * TILE; number += COPIERS * width) {
        const int group = number / TILE, row = number % TILE;
        const bool valid = row < o->rows && group * GROUP < c->k;
        const signed char *from = c->zeros + group * args->ld_scale_b + row;
        char *to = stage + ZEROS_AT + number;
        if (is_aligned)
            async_copy_bytes(to, from, 4, valid ? min(4, o->rows - row) : 0);
        else
            *to = valid ? *from : (char)0;
    }
}

/* Starts the copies of the next step. With TMA the caller starts the copy of the weights. */
static __device__ __forceinline__ void copy_step(char *stage, const struct tgl_gemm_args *args,
                                                 const struct block_operands *o, struct copies *c)
{
    const bool is_whole = c->k >= STEP;
    if (!TMA) copy_weights(stage, c);
    if (is_whole)
        copy_a(stage, args, c, true);
    else
        copy_a(stage, args, c, false);
    if (GROUP && FACTORS) {
        if (is_whole && o->rows == TILE && has_aligned_factors(args, c))
            copy_aligned_factors(stage, args, c);
        else
            copy_factors(stage, args, o, c);
    }
    if (GROUP && ZEROS) {
        if (is_whole && o->rows == TILE && has_aligned_zeros(args, c))
            copy_aligned_zeros(stage, args, c);
        else
            copy_zeros(stage, args, o, c);
    }
    advance_copies(c, args);
}

#endif
