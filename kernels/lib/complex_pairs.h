/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of the real matrix B', 2k x 2n, that are read from the complex matrix B: an element b of
 * op(B) is the square
 *
 *     re(b)   im(b)
 *    -im(b)   re(b)
 *
 * of B' (gemm/complex.cu). PAIRS has the conjugates: 0: the matrix is real; else 1, plus 1 if the
 * product is of the conjugates of B, plus 2 if it is of those of A, which changes the sign of the
 * second row.
 */
#ifndef TGL_COMPLEX_PAIRS_H
#define TGL_COMPLEX_PAIRS_H

#ifndef PAIRS
#define PAIRS 0
#endif

#if PAIRS < 0 || PAIRS > 4
#error "PAIRS: 0 to 4"
#endif

#define PAIRS_CONJ       (PAIRS == 2 || PAIRS == 4)
#define PAIRS_CONJ_OTHER (PAIRS >= 3)

/* The part of a complex element that is in row p and column `col` of B': 0: re; 1: im. */
static __device__ __forceinline__ int pair_part(int p, int col)
{
    return (p ^ col) & 1;
}

/* The element of B' in row p and column `col`. part: pair_part() of the complex element. */
static __device__ __forceinline__ float pair_element(float part, int p, int col)
{
    const int is_second = p & 1, is_im = pair_part(p, col);
    const int is_negative =
        (is_second & is_im) ^ (PAIRS_CONJ & is_im) ^ (PAIRS_CONJ_OTHER & is_second);
    return is_negative ? -part : part;
}

#endif
