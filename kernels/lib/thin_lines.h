/* SPDX-License-Identifier: Apache-2.0
 *
 * What gemm/skinny.cu and gemm/gemv.cu have in common: a big operand with many lines (rows of A if
 * BIG_A, else columns of B), times a small one with few. A result has a line of the big operand,
 * `at`, and one of the small operand, `s`. PAIRS (lib/complex_pairs.h): the product computes a
 * complex one, and both operands are read as complex matrices. D has the two parts of a result side
 * by side.
 *
 * If the big operand is K-major, one of its lines is a complex row or column: 2k numbers for 2k of
 * K, as in a real product. The small operand is expanded: its lines 2i and 2i + 1 are both computed
 * from its complex line i, and have the two parts of results.
 *
 * If the big operand is MN-major, it is expanded: its lines 2i and 2i + 1 are its complex line i.
 * In memory, the numbers of one complex k are contiguous, and serve two k. The small operand has
 * the lines of the complex one.
 *
 * Of conj(A) and conj(B), the host exchanges those in PAIRS if the expanded operand is A, because
 * lib/complex_pairs.h expands B.
 */
#ifndef TGL_THIN_LINES_H
#define TGL_THIN_LINES_H

#include "lib/complex_pairs.h"

#define SMALL_PARTS (PAIRS && ALONG_K ? 2 : 1)  /* lines from one stored line: small operand, */
#define BIG_PARTS   (PAIRS && !ALONG_K ? 2 : 1) /* and big operand, where it is also k from one */

/* Numbers of lines of both operands. args: struct tgl_gemm_args, whose m and n are those of D. With
 * PAIRS, m counts complex rows once and n counts complex columns twice. An operand of columns has n
 * lines if it is expanded (PARTS 2), else n / 2: it is divided by 3 - PARTS. The host refuses more
 * than TGL_EXTENT_MAX lines (families/thin.h). */
#define BIG_LINES(args) (BIG_A ? (args)->m * BIG_PARTS : (args)->n / (PAIRS ? 3 - BIG_PARTS : 1))
#define SMALL_LINES(args)                                                                          \
    (BIG_A ? (args)->n / (PAIRS ? 3 - SMALL_PARTS : 1) : (args)->m * SMALL_PARTS)

/* The row and column of a result in D. */
#define ROW_OF(at, s) (BIG_A ? (at) / BIG_PARTS : (s) / SMALL_PARTS)
#define COLUMN_OF(at, s)                                                                           \
    (BIG_A ? (s)*BIG_PARTS + (at) % BIG_PARTS : (at)*SMALL_PARTS + (s) % SMALL_PARTS)

/* A number of the expanded operand: it is a part of a complex element, with or without a minus
 * sign. p: 1 if its k is odd, else 0; line: 1 if its line is odd, else 0. part: the real part if p
 * and line are equal, else the imaginary part. Without PAIRS there is no minus sign. */
#define SIGNED_PART(part, p, line) (PAIRS && pair_is_negative(p, line) ? -(part) : (part))

/* Elements of a pack (lib/packs.h) that are adjacent in memory: both parts of an element are. */
#define ADJACENT (PAIRS && VEC == 1 ? 2 : VEC)

#endif
