/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of gemm/simt.cu, and the sizes that follow from them.
 */
#ifndef TGL_SIMT_TILES_H
#define TGL_SIMT_TILES_H

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
#define VEC_A 1 /* floats per copy: divides A's alignment, lda and m; 1 without TRANS_A */
#endif
#ifndef VEC_B
#define VEC_B 1 /* floats per copy: divides B's alignment, ldb and n; 1 with TRANS_B */
#endif
#ifndef UNALIGNED_D
#define UNALIGNED_D 0 /* 1: ldd is not a multiple of 4; tiles are stored line by line */
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
#define PAD           4 /* floats behind a row: no bank conflicts; rows stay 16-byte aligned */
#define SUMS          (TM * TN)       /* sums of a thread */
#define LOADS         ((TM + TN) / 4) /* float4 loads of a thread's fragments */
#define A_ALONG_K     (!TRANS_A)
#define B_ALONG_K     TRANS_B

/* The number of copies that a thread makes of a tile of an operand. */
#define COPIES(edge, vec) ((BK * (edge) / (vec) + SLICE_THREADS - 1) / SLICE_THREADS)
#define A_COPIES          COPIES(BM, VEC_A)
#define B_COPIES          COPIES(BN, VEC_B)

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
#if (A_ALONG_K && VEC_A != 1) || (B_ALONG_K && VEC_B != 1) || BM % VEC_A || BN % VEC_B
#error "VEC_A, VEC_B: 1 for a K-major operand; else they divide BM and BN"
#endif
#if COPY_FROM + (A_COPIES + B_COPIES - 1) * COPY_EVERY >= (BK - 1) * TM
#error "COPY_FROM, COPY_EVERY: all copies must be issued before the last step of a tile"
#endif
#if LOAD_FROM + (LOADS - 1) * LOAD_EVERY >= TM * TN
#error "LOAD_FROM, LOAD_EVERY: all loads must be issued within a step"
#endif

#endif
