/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of gemm/simt.cu, and the sizes that follow from them. With PAIRS (see
 * lib/complex_pairs.h), op(B) is the real matrix B' of a complex B, which shared memory holds as it
 * is: a row of its tile has complex elements of one complex k, which serve two k of B'.
 */
#ifndef TGL_SIMT_TILES_H
#define TGL_SIMT_TILES_H

#include "lib/complex_pairs.h"
#include "lib/element.h"
#include "lib/gemm_args.h"

#ifndef BM
#define BM 128 /* rows of D that a block computes */
#endif
#ifndef BN
#define BN 128 /* columns */
#endif
#ifndef BK
#define BK 8 /* depth of a tile in shared memory */
#endif
#ifndef WM
#define WM 64 /* rows of D that a warp computes */
#endif
#ifndef WN
#define WN 64 /* columns */
#endif
#ifndef TM
#define TM 16 /* rows of D that a thread computes, in groups of four */
#endif
#ifndef TN
#define TN 8 /* columns, in groups of four */
#endif
#ifndef STAGES
#define STAGES 3 /* tiles in shared memory: one is multiplied while the others arrive */
#endif
#ifndef SLICES
#define SLICES 1 /* groups of warps that divide K among them, each with its own stages */
#endif
#ifndef TRANS_A
#define TRANS_A 0 /* 0: A is m x k; 1: k x m */
#endif
#ifndef TRANS_B
#define TRANS_B 0 /* 0: B is k x n; 1: n x k */
#endif
#ifndef VEC_A
#define VEC_A 1 /* floats per copy: divides A's alignment, lda and m; K-major, or with PAIRS: 1 */
#endif
#ifndef VEC_B
#define VEC_B 1 /* floats per copy: divides B's alignment, ldb and n; K-major, or with PAIRS: 1 */
#endif
#ifndef UNALIGNED_D
#define UNALIGNED_D 0 /* 1: rows of D need not be aligned; tiles are stored line by line */
#endif
#ifndef WIDE_OFFSETS
#define WIDE_OFFSETS 0 /* 1: a tile spans 4 GB or more of A or B */
#endif
#ifndef INSIDE
#define INSIDE 0 /* 1: m >= BM and n >= BN, so that no tile reaches outside */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* minimum resident blocks of an SM, which limits the registers */
#endif

/* The schedule: when copies of the next tile and loads of the next fragments are issued while a
 * tile is multiplied. The first copy is issued after COPY_FROM rows of a thread's FFMAs, then one
 * every COPY_EVERY rows (0: all at once). A row has TN FFMAs, and a step along K has TM rows. In a
 * step, the first load is issued after LOAD_FROM FFMAs, then one every LOAD_EVERY. Scalar copies
 * are many and delay the loads that follow them, so they are spread over most of a large tile. */
#define SPREADS_COPIES (TM * TN >= 64 && (VEC_A == 1 || VEC_B == 1))
#ifndef COPY_FROM
#define COPY_FROM ((SPREADS_COPIES ? 1 : TM * TN >= 128 ? 3 : 0) * TM)
#endif
#ifndef COPY_EVERY
#define COPY_EVERY (SPREADS_COPIES ? 3 * (BK - 2) * TM / (4 * (A_COPIES + B_COPIES)) : 0)
#endif
#ifndef LOAD_FROM
#define LOAD_FROM 0
#endif
#ifndef LOAD_EVERY
#define LOAD_EVERY 4
#endif
#ifndef COLUMN_ORDER
#define COLUMN_ORDER 0 /* order of FFMAs in each four columns: 0: 0 2 1 3; 1: 0 1 2 3 */
#endif

#define WARPS_M       (BM / WM)
#define SLICE_THREADS (WARPS_M * (BN / WN) * 32)
#define THREADS       (SLICE_THREADS * SLICES)
#define STEP          (BK * SLICES) /* K that all slices together multiply in an iteration */
#define LANES_M       (WM / TM)     /* the lanes of a warp, as a grid */
#define LANES_N       (WN / TN)
#define SUMS          (TM * TN)       /* sums of a thread */
#define LOADS         ((TM + TN) / 4) /* float4 loads of a thread's fragments */
#define A_ALONG_K     (!TRANS_A)
#define B_ALONG_K     TRANS_B

/* The order of an operand in memory. A line is a row of the stored matrix: its floats are adjacent.
 * MN_MAJOR: a line is one k of op(A) or op(B); K_MAJOR: a row of op(A) or a column of op(B). With
 * PAIRS, B is PAIRS_MN_MAJOR, a line is one complex k; or PAIRS_K_MAJOR, a line is a complex column
 * of op(B). A transposed A is then PARTS_MN_MAJOR: a line has the real and the imaginary parts of
 * one complex k, which are two k of op(A), in turn. */
#define MN_MAJOR       0
#define K_MAJOR        1
#define PAIRS_MN_MAJOR 2
#define PAIRS_K_MAJOR  3
#define PARTS_MN_MAJOR 4
#define A_ORDER        (A_ALONG_K ? K_MAJOR : PAIRS ? PARTS_MN_MAJOR : MN_MAJOR)
#define B_ORDER        ((B_ALONG_K ? K_MAJOR : MN_MAJOR) + (PAIRS ? PAIRS_MN_MAJOR : 0))

/* What follows from the order. LINE_K: number of k of a line of an MN-major operand; LINE_EDGE:
 * number of columns of op(B) of a line of a K-major operand. LINES, LENGTH: lines of a tile, and
 * floats of a line. B_DEPTH: rows of a tile of B in shared memory. */
#define IS_ALONG_K(order)  ((order) == K_MAJOR || (order) == PAIRS_K_MAJOR)
#define LINE_K(order)      ((order) == PAIRS_MN_MAJOR || (order) == PARTS_MN_MAJOR ? 2 : 1)
#define LINE_EDGE(order)   ((order) == PAIRS_K_MAJOR ? 2 : 1)
#define LINES(edge, order) (IS_ALONG_K(order) ? (edge) / LINE_EDGE(order) : BK / LINE_K(order))
#define LENGTH(edge, order)                                                                        \
    (IS_ALONG_K(order) ? BK : (order) == PARTS_MN_MAJOR ? 2 * (edge) : (edge))
#define B_DEPTH (PAIRS ? BK / 2 : BK)

/* Floats behind a row in shared memory, so that copies have no bank conflicts. Rows stay 16-byte
 * aligned. PARTS_MN_MAJOR: an instruction copies 16 real parts to a row and 16 imaginary parts to
 * the next row, which begins 16 banks later. */
#define PAD 4
#define PAD_OF(edge, order)                                                                        \
    ((order) == PARTS_MN_MAJOR             ? (48 - (edge) % 32) % 32                               \
     : (order) == PAIRS_K_MAJOR && BK < 16 ? 8                                                     \
                                           : PAD)
#define PITCH(edge, order) ((edge) + PAD_OF(edge, order))

/* The number of copies that a thread makes of a tile of an operand. */
#define COPIES(edge, vec, order)                                                                   \
    ((LINES(edge, order) * LENGTH(edge, order) / (vec) + SLICE_THREADS - 1) / SLICE_THREADS)
#define A_COPIES COPIES(BM, VEC_A, A_ORDER)
#define B_COPIES COPIES(BN, VEC_B, B_ORDER)

/* The slice of this thread, and its index in the slice. */
#if SLICES > 1
#define SLICE  ((int)threadIdx.x / SLICE_THREADS)
#define THREAD (threadIdx.x % SLICE_THREADS)
#else
#define SLICE  0
#define THREAD threadIdx.x
#endif

#if TYPE_A != TYPE_F32 || TYPE_B != TYPE_F32 || ACCUMULATE != TYPE_F32
#error "A, B and the sums are FP32"
#endif
#if BM % WM || BN % WN || TM % 4 || TN % 4 || WM % TM || WN % TN
#error "BM x BN: a grid of warps; WM x WN: a grid of threads; TM and TN: multiples of 4"
#endif
#if LANES_M * LANES_N != 32 || LANES_M < 2 || LANES_N < 2
#error "WM / TM x WN / TN, the threads of a warp: 2 x 16, 4 x 8, 8 x 4 or 16 x 2"
#endif
#if BK % 4 || SLICE_THREADS % BK || STAGES < 2 || SLICES < 1
#error "BK: a multiple of 4 that divides a slice's threads; STAGES: at least 2; SLICES: at least 1"
#endif
#if ((A_ALONG_K || PAIRS) && VEC_A != 1) || ((B_ALONG_K || PAIRS) && VEC_B != 1) || BM % VEC_A ||  \
    BN % VEC_B
#error "VEC_A, VEC_B: 1 for a K-major operand, and with PAIRS; else they divide BM and BN"
#endif
#if COPY_FROM + (A_COPIES + B_COPIES - 1) * COPY_EVERY >= (BK - 1) * TM
#error "COPY_FROM, COPY_EVERY: all copies must be issued before the last step of a tile"
#endif
#if LOAD_FROM + (LOADS - 1) * LOAD_EVERY >= TM * TN
#error "LOAD_FROM, LOAD_EVERY: all loads must be issued within a step"
#endif

#endif
