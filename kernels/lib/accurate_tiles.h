/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of gemm/accurate.cu, the shared memory of a block, and how consumers (warpgroups
 * that multiply) read the operands' panel states and elements. left and right are op(A) and op(B),
 * split into f16 words by gemm/decompose.cu. A line is a row of left or a column of right. A panel
 * is a group of 64 lines: it has a state, and a list of the elements that two words cannot
 * represent.
 *
 * args.left_tables: the panels of left, then the exponents of its lines. args.right_tables: the
 * panels and exponents of right (lib/decompose_args.h).
 */
#ifndef TGL_ACCURATE_TILES_H
#define TGL_ACCURATE_TILES_H

#define WGMMA_TYPE    TYPE_F16
#define LEFT_ALONG_K  1
#define RIGHT_ALONG_K 1
#define EXCHANGED     0

#include "lib/complex_pairs.h"
#include "lib/named_barrier.h"
#include "lib/opaque.h"
#include "lib/wgmma_ring.h"
#include "lib/wgmma_store.h"
#include "lib/wgmma_turns.h"
#include "lib/wgmma_units.h"
#include "lib/words.h"

#ifndef A_ALONG_K
#define A_ALONG_K 1 /* 1: op(A) is K-major in global memory, 0: M-major */
#endif
#ifndef B_ALONG_K
#define B_ALONG_K 0
#endif

#if M_STEPS != 1
#error "BM is 64 * CONSUMERS: a consumer's FP32 sums take the registers of another 64 rows"
#endif
#if STAGES < 2
#error "STAGES: at least 2, for hi and lo of a step of K"
#endif
#if BN % 32 != 0
#error "BN: a multiple of 32, because a warp finds the single lines among 32 columns"
#endif
#if CONSUMERS < 2
#error "CONSUMERS: at least 2, because one multiplies while another one adds to its FP32 sums"
#endif

enum { WARP_CHUNK = CHUNK_LINES * CHUNK_PITCH }; /* floats */

struct accurate_shared {
    unsigned char stages[STAGES][STAGE_BYTES]; /* left, then right */
    __align__(16) float chunks[CONSUMERS * 4][WARP_CHUNK];
    int exponents[CONSUMERS][BN]; /* exponents of the scales of right's columns; later a row of
                                     op(B) as floats (add_listed()) */
    int orders[CONSUMERS][TGL_LISTED_MAX + 1]; /* see sort_list() */
    unsigned singles[CONSUMERS][8];            /* masks of right's single columns, 32 each */
    struct ring ring;
    struct turns turns;
};

/* A barrier of the threads of one consumer. */
static __device__ __forceinline__ void consumer_barrier(int group)
{
    named_barrier(2 + group, 128);
}

/* Where a thread's sums are: sum[i] belongs to row `row` + i / 2 % 2 * 8 of the tile, and to column
 * `col` + i / 4 * 8 + i % 2 (lib/wgmma.h). */
struct fragment {
    int row, col;
};

static __device__ __forceinline__ struct fragment fragment_of(int group)
{
    const int thread = opaque((int)threadIdx.x % 128);
    struct fragment f;
    f.row = group * WM + thread / 32 * 16 + thread % 32 / 4;
    f.col = thread % 4 * 2;
    return f;
}

static __device__ __forceinline__ int at_most(int x, int limit)
{
    return x < limit ? x : limit;
}

/* ---- Operands -------------------------------------------------------------------------------- */

/* The panels and the exponents of the lines of left and right, for one problem of the batch. */
struct lines {
    const struct tgl_panel *left_panels, *right_panels;
    const int *left_exponents, *right_exponents;
};

static __device__ __forceinline__ struct lines lines_of(const struct tgl_gemm_args *args, int batch)
{
    const long long lefts = args->stride_a != 0 ? args->batch : 1;
    const long long rights = args->stride_b != 0 ? args->batch : 1;
    const long long left = (args->m + TGL_PANEL_LINES - 1) / TGL_PANEL_LINES; /* panels */
    const long long right = (args->n + TGL_PANEL_LINES - 1) / TGL_PANEL_LINES;
    const long long left_number = lefts > 1 ? batch : 0, right_number = rights > 1 ? batch : 0;
    struct lines lines;
    lines.left_panels = (const struct tgl_panel *)args->left_tables;
    lines.right_panels = (const struct tgl_panel *)args->right_tables;
    lines.left_exponents = (const int *)(lines.left_panels + lefts * left);
    lines.right_exponents = (const int *)(lines.right_panels + rights * right);
    lines.left_panels += left_number * left;
    lines.right_panels += right_number * right;
    lines.left_exponents += left_number * left * TGL_PANEL_LINES;
    lines.right_exponents += right_number * right * TGL_PANEL_LINES;
    return lines;
}

/* A panel state besides those of lib/decompose_args.h: the panel has listed elements. */
#define HAS_LISTS 4u

/* The states, ORed, of the panels of lines [first, first + count), where the matrix has `extent`
 * lines. A list that overflows counts as TGL_PANEL_NOT_FINITE, too: FFMA then computes the tile. */
static __device__ __forceinline__ unsigned states_of(const struct tgl_panel *panels, int first,
                                                     int count, int extent)
{
    const int end = extent - first < count ? extent : first + count;
    unsigned state = 0;
    for (int i = first / TGL_PANEL_LINES; i * TGL_PANEL_LINES < end; i++) {
        state |= panels[i].state;
        if (panels[i].count > 0) state |= HAS_LISTS;
        if (panels[i].count > TGL_LISTED_MAX) state |= TGL_PANEL_NOT_FINITE;
    }
    return state;
}

/* The states, ORed, of all panels that contain rows or columns of the unit's tile. */
static __device__ __forceinline__ unsigned
state_of_unit(const struct tgl_gemm_args *args, const struct lines *lines, const struct unit *u)
{
    if (u->steps == 0) return 0;
    return states_of(lines->left_panels, u->left, BM, args->m) |
           states_of(lines->right_panels, u->right, BN, args->n);
}

static __device__ __forceinline__ float element_of_a(const struct tgl_gemm_args *args,
                                                     const float *A, int row, int p)
{
    return A[A_ALONG_K ? row * args->lda + p : p * args->lda + row];
}

static __device__ __forceinline__ float element_of_b(const struct tgl_gemm_args *args,
                                                     const float *B, int p, int col)
{
#if PAIRS
    const int part = pair_part(p, col);
    const float *pair =
        &B[B_ALONG_K ? col / 2 * args->ldb + p / 2 * 2 : p / 2 * args->ldb + col / 2 * 2];
    return pair_element(pair[part], p, col);
#else
    return B[B_ALONG_K ? col * args->ldb + p : p * args->ldb + col];
#endif
}

#endif
