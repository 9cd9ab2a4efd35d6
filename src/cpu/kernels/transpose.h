/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposes a square of vector registers by butterflies: a step with distance d exchanges the
 * off-diagonal d x d blocks of every 2d x 2d block. Steps with d = VLEN/2, ..., 2, 1 transpose the
 * square. The indices of the lanes are compile-time constants, for which the compiler chooses
 * shuffle instructions.
 */
#ifndef TGL_CPU_TRANSPOSE_H
#define TGL_CPU_TRANSPOSE_H

/* Index of the source of lane l in a butterfly step with distance d, for
 * __builtin_shufflevector(x[i], x[i + d], ...): LOW for the new x[i], HIGH for the new x[i + d]. 0
 * to n-1 are lanes of x[i], n to 2n-1 lanes of x[i + d]. */
#define CPU_LANE_LOW(l, d, n)  ((l) & (d) ? (n) + (l) - (d) : (l))
#define CPU_LANE_HIGH(l, d, n) ((l) & (d) ? (n) + (l) : (l) + (d))

#define CPU_LANES_4(f, d) f(0, d, 4), f(1, d, 4), f(2, d, 4), f(3, d, 4)
#define CPU_LANES_8(f, d)                                                                          \
    f(0, d, 8), f(1, d, 8), f(2, d, 8), f(3, d, 8), f(4, d, 8), f(5, d, 8), f(6, d, 8), f(7, d, 8)
#define CPU_LANES_16(f, d)                                                                         \
    f(0, d, 16), f(1, d, 16), f(2, d, 16), f(3, d, 16), f(4, d, 16), f(5, d, 16), f(6, d, 16),     \
        f(7, d, 16), f(8, d, 16), f(9, d, 16), f(10, d, 16), f(11, d, 16), f(12, d, 16),           \
        f(13, d, 16), f(14, d, 16), f(15, d, 16)

#define CPU_BUTTERFLY(x, n, d)                                                                     \
    UNROLL                                                                                         \
    for (int pair = 0; pair < n; pair++)                                                           \
        if ((pair & (d)) == 0) {                                                                   \
            __typeof__((x)[0]) low = (x)[pair], high = (x)[pair + (d)];                            \
            (x)[pair] = __builtin_shufflevector(low, high, CPU_LANES_##n(CPU_LANE_LOW, d));        \
            (x)[pair + (d)] = __builtin_shufflevector(low, high, CPU_LANES_##n(CPU_LANE_HIGH, d)); \
        }

#define CPU_TRANSPOSE_4(x)                                                                         \
    do {                                                                                           \
        CPU_BUTTERFLY(x, 4, 2) CPU_BUTTERFLY(x, 4, 1)                                              \
    } while (0)
#define CPU_TRANSPOSE_8(x)                                                                         \
    do {                                                                                           \
        CPU_BUTTERFLY(x, 8, 4) CPU_BUTTERFLY(x, 8, 2) CPU_BUTTERFLY(x, 8, 1)                       \
    } while (0)
#define CPU_TRANSPOSE_16(x)                                                                        \
    do {                                                                                           \
        CPU_BUTTERFLY(x, 16, 8)                                                                    \
        CPU_BUTTERFLY(x, 16, 4) CPU_BUTTERFLY(x, 16, 2) CPU_BUTTERFLY(x, 16, 1)                    \
    } while (0)

#endif
