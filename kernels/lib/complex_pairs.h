/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of the real matrix B', 2k x 2n, computed from the complex matrix B: an element b of
 * op(B) becomes 2 x 2 elements of B' (gemm/complex.cu):
 *
 *     re(b)   im(b)
 *    -im(b)   re(b)
 *
 * PAIRS, a macro of the kernel. 0: the kernel reads only real matrices and does not use this file.
 * 1 to 4: it reads the complex B, and the product is A*B (1), A*conj(B) (2), conj(A)*B (3) or
 * conj(A)*conj(B) (4). conj(A) changes the sign of the second row above.
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

/* Returns which part of a complex element B'[p][col] is, apart from its sign: 0: re; 1: im. */
static __device__ __forceinline__ int pair_part(int p, int col)
{
    return (p ^ col) & 1;
}

/* Returns 1 if B'[p][col] is the negative of the part, else 0. */
static __device__ __forceinline__ int pair_is_negative(int p, int col)
{
    const int is_second = p & 1, is_im = pair_part(p, col);
    return (is_second & is_im) ^ (PAIRS_CONJ & is_im) ^ (PAIRS_CONJ_OTHER & is_second);
}

/* Returns B'[p][col]. part: the real or the imaginary part of the complex element, whichever
 * pair_part(p, col) says. */
static __device__ __forceinline__ float pair_element(float part, int p, int col)
{
    return pair_is_negative(p, col) ? -part : part;
}

#endif
