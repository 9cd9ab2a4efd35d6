/* SPDX-License-Identifier: Apache-2.0
 *
 * The residual of packed results of 16 bits (lib/wgmma_spans.h). A warp loads the residual of a
 * span in pieces of 16 bytes, while it stores the span before. It puts the pieces where the results
 * will be, and reads them back by ldmatrix, which gives each lane the pairs that belong to its
 * sums. Loads of pairs straight from memory took 5 us for a tile of 128x256 (H200, 2026-11).
 * Shortly before the end of the usual main loop (lib/wgmma_loop.h), the residual of the tile is
 * fetched into L2.
 */
#ifndef TGL_WGMMA_RESIDUAL_H
#define TGL_WGMMA_RESIDUAL_H

#include "lib/epilogue.h"
#include "lib/ldmatrix.h"

/* Whether results with a residual can be packed. */
#define RESIDUAL_HAS_PIECES (RESIDUAL && HAS_16_BITS(TYPE_RESIDUAL) && !EXCHANGED)

#if RESIDUAL_HAS_PIECES

enum {
    RESIDUAL_AHEAD = 8, /* steps of K before the end at which the residual is fetched: 3 us on an
                           H200, more than the latency of its memory */
    RESIDUAL_LINE = 64, /* elements of a line of L2, 128 bytes */
};

static __device__ __forceinline__ void prefetch_to_l2(const void *address)
{
#ifdef TGL_SIM
    (void)address;
#else
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#endif
}

/* Called by consumer number `group` in each step of K: at the right step, fetches the residual of
 * its part of the tile into L2. */
static __device__ __forceinline__ void prefetch_residual(const struct tgl_gemm_args *args,
                                                         const struct unit *u, int group, int step)
{
    enum { LINES = (BN + RESIDUAL_LINE - 1) / RESIDUAL_LINE }; /* of a row of the tile */
    const element_residual *residual =
        (const element_residual *)args->residual + u->batch * args->stride_residual;
    if (step != (u->steps > RESIDUAL_AHEAD ? u->steps - RESIDUAL_AHEAD : 0)) return;
#pragma unroll
    for (int i = (int)threadIdx.x % 128; i < WM * LINES; i += 128) {
        const int of_consumer = i / LINES; /* a row, counted over the consumer's parts */
        const int row = u->left + CONSUMER_ROW(group) + of_consumer / 64 * PART_ROWS +
                        of_consumer % 64,
                  col = u->right + i % LINES * RESIDUAL_LINE;
        if (row < args->m && col < args->n)
            prefetch_to_l2(residual + row * args->ld_residual + col);
    }
}

/* A lane's pieces of the residual in a span: pieces number lane, lane + 32, ... */
struct residual_span {
    uint4 pieces[SPAN / 16];
};

/* Whether every piece of the residual is aligned and inside of a row. */
static __device__ __forceinline__ bool is_residual_aligned(const struct tgl_gemm_args *args,
                                                           const struct epilogue_operands *with)
{
    return (unsigned long long)with->residual % 16 == 0 && args->ld_residual % 8 == 0 &&
           args->n % 8 == 0;
}

/* left, right: the row and the column of the warp's first result in the span. Pieces outside of D
 * are 0. */
static __device__ __forceinline__ struct residual_span
load_residual(const struct tgl_gemm_args *args, const struct epilogue_operands *with, int left,
              int right)
{
    struct residual_span residual;
#pragma unroll
    for (int i = 0; i < SPAN / 16; i++) {
        const int number = (int)threadIdx.x % 32 + i * 32;
        const int row = left + number / PIECES, col = right + number % PIECES * 8;
        residual.pieces[i] = make_uint4(0, 0, 0, 0);
        if (row < args->m && col < args->n)
            residual.pieces[i] = *(const uint4 *)(with->residual + row * args->ld_residual + col);
    }
    return residual;
}

/* Loads the residual of the span after span number i of a warp, whose first row and column are
 * first_left and right. */
static __device__ __forceinline__ struct residual_span
load_next_residual(const struct tgl_gemm_args *args, const struct epilogue_operands *with,
                   int first_left, int right, int i)
{
    struct residual_span none;
    if (i + 1 < M_STEPS * SPANS)
        return load_residual(args, with, first_left + (i + 1) / SPANS * PART_ROWS,
                             right + (i + 1) % SPANS * SPAN);
#pragma unroll
    for (int j = 0; j < SPAN / 16; j++)
        none.pieces[j] = make_uint4(0, 0, 0, 0);
    return none;
}

/* Puts the residual where put_span() will put the results. */
static __device__ __forceinline__ void put_residual(char *span,
                                                    const struct residual_span *residual)
{
#pragma unroll
    for (int i = 0; i < SPAN / 16; i++) {
        const int number = (int)threadIdx.x % 32 + i * 32;
        *(uint4 *)piece_of(span, number / PIECES, number % PIECES) = residual->pieces[i];
    }
    __syncwarp();
}

/* pairs := the residual for 16 columns of the span, from column `first` on, in the order of
 * put_span(). */
static __device__ __forceinline__ void take_residual(unsigned *pairs, char *span, int first)
{
    const int lane = (int)threadIdx.x % 32;
    ldmatrix_x4(pairs, piece_of(span, lane % 16, first / 8 + lane / 16));
}

/* epilogue() without C. pair: two elements of the residual, of which number `which` (0 or 1) is
 * that of D[row][col]. */
static __device__ __forceinline__ value_t epilogue_of_pair(const struct tgl_gemm_args *args,
                                                           const struct epilogue_operands *with,
                                                           accumulate_t sum, unsigned pair,
                                                           int which, int row, int col)
{
    const element_residual residual = {(unsigned short)(pair >> which * 16)};
    const value_t value = before_residual(args, with, sum, 0, row, col);
    return scaled_result(args, with, value + from_residual(residual), row, col);
}

#else

struct residual_span {
    int none;
};

#define prefetch_residual(args, u, group, step)              ((void)0)
#define is_residual_aligned(args, with)                      true
#define load_residual(args, with, left, right)               no_residual()
#define load_next_residual(args, with, first_left, right, i) no_residual()
#define put_residual(span, residual)                         ((void)(residual))
#define take_residual(pairs, span, first)                    ((void)(pairs))
#define epilogue_of_pair(args, with, sum, pair, which, row, col)                                   \
    epilogue(args, with, sum, 0, row, col)

static __device__ __forceinline__ struct residual_span no_residual(void)
{
    const struct residual_span none = {0};
    return none;
}

#endif

#endif
