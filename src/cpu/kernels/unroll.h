/* SPDX-License-Identifier: Apache-2.0
 *
 * UNROLL before a loop with constant bounds unrolls it completely (gcc: up to 16 iterations), so
 * that the arrays that it indexes stay in registers. The other macros list the register tiles of a
 * tier. */
#ifndef TGL_CPU_UNROLL_H
#define TGL_CPU_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* CPU_ROWS_r(f, nv) expands to f(1, nv) f(2, nv) ... f(r, nv). */
#define CPU_ROWS_2(f, nv) f(1, nv) f(2, nv)
#define CPU_ROWS_3(f, nv) CPU_ROWS_2(f, nv) f(3, nv)
#define CPU_ROWS_4(f, nv) CPU_ROWS_3(f, nv) f(4, nv)
#define CPU_ROWS_6(f, nv) CPU_ROWS_4(f, nv) f(5, nv) f(6, nv)
#define CPU_ROWS_8(f, nv) CPU_ROWS_6(f, nv) f(7, nv) f(8, nv)

/* CPU_VECTORS_v(f) expands to f(1) f(2) ... f(v). */
#define CPU_VECTORS_2(f) f(1) f(2)
#define CPU_VECTORS_3(f) f(1) f(2) f(3)
#define CPU_VECTORS_4(f) f(1) f(2) f(3) f(4)

/* CPU_TILES_rxv(f) expands to f(rows, nv) for all tiles of up to r rows and v vectors;
 * CPU_TALLEST_rxv(f) for those of r rows only. */
#define CPU_TILES_2x2(f) CPU_ROWS_2(f, 1) CPU_ROWS_2(f, 2)
#define CPU_TILES_3x2(f) CPU_ROWS_3(f, 1) CPU_ROWS_3(f, 2)
#define CPU_TILES_3x3(f) CPU_ROWS_3(f, 1) CPU_ROWS_3(f, 2) CPU_ROWS_3(f, 3)
#define CPU_TILES_4x2(f) CPU_ROWS_4(f, 1) CPU_ROWS_4(f, 2)
#define CPU_TILES_4x3(f) CPU_ROWS_4(f, 1) CPU_ROWS_4(f, 2) CPU_ROWS_4(f, 3)
#define CPU_TILES_6x2(f) CPU_ROWS_6(f, 1) CPU_ROWS_6(f, 2)
#define CPU_TILES_6x3(f) CPU_ROWS_6(f, 1) CPU_ROWS_6(f, 2) CPU_ROWS_6(f, 3)
#define CPU_TILES_8x3(f) CPU_ROWS_8(f, 1) CPU_ROWS_8(f, 2) CPU_ROWS_8(f, 3)

#define CPU_TALLEST_2x2(f) f(2, 1) f(2, 2)
#define CPU_TALLEST_3x2(f) f(3, 1) f(3, 2)
#define CPU_TALLEST_3x3(f) f(3, 1) f(3, 2) f(3, 3)
#define CPU_TALLEST_4x2(f) f(4, 1) f(4, 2)
#define CPU_TALLEST_4x3(f) f(4, 1) f(4, 2) f(4, 3)
#define CPU_TALLEST_6x2(f) f(6, 1) f(6, 2)
#define CPU_TALLEST_6x3(f) f(6, 1) f(6, 2) f(6, 3)
#define CPU_TALLEST_8x3(f) f(8, 1) f(8, 2) f(8, 3)

#endif
