/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a tier, the kernels for one instruction set (device/tiers.h). cpu_kernels has the
 * kernels for one element type, cpu_conversions the conversions between types. The functions of
 * cpu/run call kernels only through these tables, so that cpu/run is compiled once for all types.
 * Pointers are void, and strides are in elements.
 *
 * Terms: step p of k is column p of op(A) and row p of op(B). A register tile is a part of C whose
 * sums are in registers, some rows times some vectors. A panel is a strip of op(A) as high as a
 * tile, or of op(B) as wide as a tile. A short type is a type shorter than f32.
 */
#ifndef TGL_CPU_KERNELS_H
#define TGL_CPU_KERNELS_H

#include "problem/small_product.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CPU_MAX_MR = 8, CPU_MAX_NV = 3, CPU_MAX_SMALL_NV = 4 };

/* Types shorter than f32, which are converted to f32 before they are multiplied. The values are
 * array indices. */
typedef enum cpu_short {
    CPU_SHORT_F16,
    CPU_SHORT_BF16,
    CPU_SHORT_I8,
    CPU_SHORT_E4M3,
    CPU_SHORT_E5M2,
    CPU_SHORTS
} cpu_short;

static inline cpu_short cpu_short_of(tgl_type type)
{
    return type == TGL_F16       ? CPU_SHORT_F16
           : type == TGL_BF16    ? CPU_SHORT_BF16
           : type == TGL_F8_E4M3 ? CPU_SHORT_E4M3
           : type == TGL_F8_E5M2 ? CPU_SHORT_E5M2
                                 : CPU_SHORT_I8;
}

/* GEMV with a matrix of a short type: the maximum k of one call of a kernel. */
enum { CPU_VECTOR_STEPS = 4096 };

/* y[i] := sum over p of M[i*ld + p] * x[p], for i < rows and p < k. x is contiguous. */
typedef void cpu_dot_fn(void *y, const void *M, int64_t ld, int64_t rows, int64_t k, const void *x);

/* Where a register tile reads element (i, p) of op(A). */
typedef enum cpu_layout {
    CPU_A_ROWS = 0, /* a[i*a_stride + p]: A itself, not transposed */
    CPU_A_COLS = 1, /* a[p*a_stride + i]: a packed panel, or A itself if it is transposed */
} cpu_layout;

/* What a register tile does with its panel of b in addition to multiplying by it. */
typedef enum cpu_use {
    CPU_B_READ = 0,  /* nothing */
    CPU_B_FETCH = 1, /* prefetches row p of the next panel to L2 in step p. Requires CPU_A_ROWS,
                        CPU_TAIL_WHOLE and a next panel */
    CPU_B_COPY = 2,  /* copies the panel to cpu_beside.copy, packed */
} cpu_use;

/* Optional work of a register tile in addition to the multiplication. */
typedef struct cpu_beside {
    void *copy; /* where CPU_B_COPY writes the panel of b, in the layout of cpu_pack_fn */
    /* Memory to prefetch: ahead_rows rows as wide as the tile, ahead_step bytes apart. */
    const char *ahead;
    int64_t ahead_step, ahead_rows;
    bool fetch_c;                    /* if k is short, prefetch all rows of C before the first
                                        step */
    const tgl_complex_part *complex; /* for complex types: conjugation, imaginary parts of alpha and
                                        beta; else unused */
} cpu_beside;

/* Computes one register tile: c := alpha*a*b + beta*c with b(p, j) = b[p*ldb + j], k > 0. c is not
 * read if beta is 0. Each function has a fixed number of rows and of vectors per row. Only the
 * first `tail` lanes of the last vector belong to the matrices; the other lanes of b and c are
 * neither read nor written. */
typedef void cpu_tile_fn(int64_t k, const void *a, int64_t a_stride, const void *b, int64_t ldb,
                         void *c, int64_t ldc, int tail, double alpha, double beta,
                         const cpu_beside *beside);

/* How full the last vector of a row of C is. */
typedef enum cpu_tail {
    CPU_TAIL_WHOLE = 0,   /* all of its lanes */
    CPU_TAIL_PARTIAL = 1, /* more than half of its lanes, but not all */
    CPU_TAIL_HALF = 2,    /* at most half of its lanes */
} cpu_tail;

/* Multiplies all rows of op(A) of a small product by one panel of op(B), b(p, j) = b[p*ldb + j],
 * and stores alpha*op(A)*b + beta*C. Exception: real types with beta = 0 ignore alpha; the caller
 * multiplies by it afterwards. c: the panel's first column of C. columns: valid columns of the
 * panel's last vector. */
typedef void cpu_small_fn(const tgl_small_product *x, const void *b, int64_t ldb, void *c,
                          int columns);

/* Packs a panel of X, which is op(A) or the transposed op(B): dst[p*width + i] := X(i, p) for i <
 * count and p < k; 0 for count <= i < width.
 *    interleave: X(i, p) = src[i*ld + p]     (rows of A; columns of a transposed B)
 *    copy:       X(i, p) = src[p*ld + i]     (a transposed A; B itself) */
typedef void cpu_pack_fn(void *dst, int64_t width, const void *src, int64_t ld, int64_t count,
                         int64_t k);

typedef struct cpu_kernels {
    size_t element; /* bytes of an element */
    int parts;      /* real numbers in an element: 2 if it is complex, else 1 */
    int vector;     /* elements of a vector register */
    int mr, nv;     /* the largest register tile: mr rows times nv vectors */
    int small_nv;   /* the most vectors of a panel of a small product */
    int kc;         /* block size along k: a tile of C is loaded and stored once for each kc
                       steps */

    /* Indices: [cpu_layout][1 if the last vector is partial][vectors - 1][rows - 1]. */
    cpu_tile_fn *tile[2][2][CPU_MAX_NV][CPU_MAX_MR];
    /* Tiles of mr rows that also prefetch or copy b. Indices: [cpu_use][cpu_layout][1 if the last
     * vector is partial][vectors - 1]. */
    cpu_tile_fn *tallest_tile[3][2][2][CPU_MAX_NV];
    /* Indices: [cpu_tail][vectors - 1]. */
    cpu_small_fn *small[3][CPU_MAX_SMALL_NV];
    cpu_pack_fn *interleave, *copy;

    /* c[j] := beta*c[j] for j < n, without reading c if beta is 0. beta_imag: 0 for real types. */
    void (*scale)(void *c, int64_t n, double beta, double beta_imag);

    /* Adds partial sums, for j < n and q < count, in the order of q:
     *    c[j*c_stride] := alpha * sum over q of parts[q*part_stride + j] + beta*c[j*c_stride]
     * complex: used only by complex types; conj_a: the sums are conjugated before they are
     * multiplied by alpha. */
    void (*reduce)(void *c, int64_t c_stride, int64_t n, const void *parts, int64_t part_stride,
                   int64_t count, double alpha, double beta, const tgl_complex_part *complex);

    /* Epilogue: c[j] := activation(c[j] + bias[j*bias_step]) + residual[j] for j < n. bias_step: 1,
     * or 0 to add bias[0] everywhere. bias, residual: NULL if absent. */
    void (*finish)(void *c, int64_t n, const void *bias, int64_t bias_step,
                   tgl_activation activation, const void *residual);

    cpu_dot_fn *dot;

    /* Copies a vector and conjugates it: x[2p] := from[2p*step], x[2p + 1] := -from[2p*step + 1]
     * for p < k. NULL for real types. */
    void (*conjugate)(void *x, const void *from, int64_t step, int64_t k);

    /* y[j] := sum over p of x[p] * M[p*ld + j], j < n, p < k. */
    void (*combine)(void *y, const void *M, int64_t ld, int64_t n, int64_t k, const void *x);

    /* Only in the table of f32: `dot` and `combine` for M of a short type, indexed by cpu_short;
     * NULL for 8-bit floating-point types. x and y are f32. Exception: short_dot of int8 writes
     * int32 to y, and requires k <= CPU_VECTOR_STEPS. The f32 sums of short_combine of int8 are
     * exact for k <= 1024. */
    cpu_dot_fn *short_dot[CPU_SHORTS];
    void (*short_combine[CPU_SHORTS])(void *y, const void *M, int64_t ld, int64_t n, int64_t k,
                                      const void *x);

    /* Measures the FMA rate: executes independent multiply-adds in registers and returns the number
     * of floating-point operations. *sink is read, and receives the sum of the results, so that the
     * compiler cannot remove the loop. NULL for complex types. */
    double (*fma_loop)(int64_t rounds, double *sink);
} cpu_kernels;

/* Conversions of n elements between f32 and a shorter type, and sums of int32 modulo 2^32. */
typedef struct cpu_conversions {
    /* Indexed by cpu_short. widen converts to f32, narrow from f32. narrow rounds to nearest, ties
     * to even. 8-bit types saturate, and NaN becomes 0 in int8. */
    void (*widen[CPU_SHORTS])(float *to, const void *from, int64_t n);
    void (*narrow[CPU_SHORTS])(void *to, const float *from, int64_t n);

    /* to[i] := (int32)from[i], or to[i] += (int32)from[i] if `add`. The elements of `from` are
     * integers. */
    void (*add_integers)(int32_t *to, const float *from, int64_t n, bool add);

    /* to[i] := alpha*to[i] + beta*x[i*step] for i < n. step: 1, or 0 to add x[0] everywhere. */
    void (*combine_i32)(int32_t *to, int64_t n, int32_t alpha, int32_t beta, const int32_t *x,
                        int64_t step);
    void (*relu_i32)(int32_t *to, int64_t n);
} cpu_conversions;

#endif
