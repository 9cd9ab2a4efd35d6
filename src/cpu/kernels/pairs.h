/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of complex elements, as lanes (re, im, re, im ...). The indices of the lanes are
 * compile-time constants, for which the compiler chooses shuffle instructions.
 */
#ifndef TGL_CPU_PAIRS_H
#define TGL_CPU_PAIRS_H

#define CPU_PASTE_TOKENS(x, y) x##y
#define CPU_PASTE(x, y)        CPU_PASTE_TOKENS(x, y)

/* z with the real and imaginary part of each complex element exchanged. n: the number of lanes of
 * z, as a literal number or a macro that expands to one, because n is pasted into a name. */
#define CPU_EXCHANGED(n, z) CPU_PASTE(CPU_EXCHANGED_, n)(z)
#define CPU_EXCHANGED_2(z)  __builtin_shufflevector(z, z, 1, 0)
#define CPU_EXCHANGED_4(z)  __builtin_shufflevector(z, z, 1, 0, 3, 2)
#define CPU_EXCHANGED_8(z)  __builtin_shufflevector(z, z, 1, 0, 3, 2, 5, 4, 7, 6)
#define CPU_EXCHANGED_16(z)                                                                        \
    __builtin_shufflevector(z, z, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)

/* A vector of n lanes: lane l is x[l] if l is even, y[l] if l is odd. */
#define CPU_PAIRS(n, x, y) CPU_PASTE(CPU_PAIRS_, n)(x, y)
#define CPU_PAIRS_2(x, y)  __builtin_shufflevector(x, y, 0, 3)
#define CPU_PAIRS_4(x, y)  __builtin_shufflevector(x, y, 0, 5, 2, 7)
#define CPU_PAIRS_8(x, y)  __builtin_shufflevector(x, y, 0, 9, 2, 11, 4, 13, 6, 15)
#define CPU_PAIRS_16(x, y)                                                                         \
    __builtin_shufflevector(x, y, 0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27, 12, 29, 14, 31)

/* n / 2 as a literal number, which can be pasted into a name. */
#define CPU_HALF(n)    CPU_PASTE(CPU_HALF_OF_, n)
#define CPU_HALF_OF_4  2
#define CPU_HALF_OF_8  4
#define CPU_HALF_OF_16 8

#endif
