/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of an instruction-set tier for one element type (cpu_kernels), and its conversions.
 * The paths of cpu/run use only these tables, so that they are compiled once for all types.
 * Pointers are void, and strides are in elements.
 */
#ifndef TGL_CPU_KERNELS_H
#define TGL_CPU_KERNELS_H

#include "problem/small_product.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CPU_MAX_MR = 8, CPU_MAX_NV = 3, CPU_MAX_SMALL_NV = 4 };

/* Types shorter than f32, which are converted to f32. The values are indices of tables. */
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

/* GEMV with a matrix of a short type: the most steps of k that one call of a kernel takes. */
enum { CPU_VECTOR_STEPS = 4096 };

/* y[i] := sum over p of M[i*ld + p] * x[p], i < rows, p < k; x contiguous. */
typedef void cpu_dot_fn(void *y, const void *M, int64_t ld, int64_t rows, int64_t k, const void *x);

/* How a register tile finds element (i, p) of its rows of op(A). */
typedef enum cpu_layout {
    CPU_A_ROWS = 0, /* a[i*a_stride + p]: A itself, not transposed */
    CPU_A_COLS = 1, /* a[p*a_stride + i]: a packed panel, or a transposed A itself */
} cpu_layout;

/* What a tile does with its panel of b. */
typedef enum cpu_use {
    CPU_B_READ = 0,  /* reads it */
    CPU_B_FETCH = 1, /* reads b, and in each step of k prefetches the same row of the next panel to
                        L2; only for CPU_A_ROWS and whole vectors, and if there is a next panel */
    CPU_B_COPY = 2,  /* reads b and copies it to cpu_beside.copy */
} cpu_use;

/* What a tile does in addition to multiplying. */
typedef struct cpu_beside {
    void *copy; /* where CPU_B_COPY writes the panel of b, in the layout of cpu_pack_fn */
    /* Memory to prefetch: ahead_rows rows of the tile's width, ahead_step bytes apart. */
    const char *ahead;
    int64_t ahead_step, ahead_rows;
    bool fetch_c;                    /* prefetch C even if k is short */
    const tgl_complex_part *complex; /* of complex types; else NULL */
} cpu_beside;

/* One register tile, C := alpha*a*b + beta*C, where b(p, j) = b[p*ldb + j] and k > 0. C is not read
 * if beta is 0. The function has a fixed number of rows and vectors. In its last vector only the
 * first `tail` lanes belong to the matrices, and no other lane of b or c is touched. */
typedef void cpu_tile_fn(int64_t k, const void *a, int64_t a_stride, const void *b, int64_t ldb,
                         void *c, int64_t ldc, int tail, double alpha, double beta,
                         const cpu_beside *beside);

/* How many lanes of the last vector of a row belong to the matrix. */
typedef enum cpu_tail {
    CPU_TAIL_WHOLE = 0,   /* all */
    CPU_TAIL_PARTIAL = 1, /* more than half of them, but not all */
    CPU_TAIL_HALF = 2,    /* at most half of them */
} cpu_tail;

/* Multiplies all rows of op(A) of a small product by a panel of op(B), b(p, j) = b[p*ldb + j]. c:
 * where the panel's columns of C begin. C := alpha*A*b + beta*C; but for real types C := A*b if
 * beta is 0, whatever alpha is. columns: the number of columns in the panel's last vector. */
typedef void cpu_small_fn(const tgl_small_product *x, const void *b, int64_t ldb, void *c,
                          int columns);

/* Packs a panel: dst[p*width + i] := X(i, p) for i < count, p < k, and 0 for count <= i < width.
 *   interleave: X(i, p) = src[i*ld + p]     (rows of A; columns of a transposed B)
 *   copy:       X(i, p) = src[p*ld + i]     (a transposed A; B itself) */
typedef void cpu_pack_fn(void *dst, int64_t width, const void *src, int64_t ld, int64_t count,
                         int64_t k);

typedef struct cpu_kernels {
    size_t element; /* bytes of an element */
    int parts;      /* real numbers in an element: 2 if it is complex, else 1 */
    int vector;     /* elements of a vector register */
    int mr, nv;     /* the largest register tile: mr rows times nv vectors */
    int small_nv;   /* the most vectors of a panel of a small product */
    int kc;         /* steps of k between two visits to a tile of C */

    /* [layout][the last vector is partial][vectors - 1][rows - 1] */
    cpu_tile_fn *tile[2][2][CPU_MAX_NV][CPU_MAX_MR];
    /* Tiles of mr rows that also prefetch or copy b: [cpu_use][layout][the last vector
     * is partial][vectors - 1] */
    cpu_tile_fn *tallest_tile[3][2][2][CPU_MAX_NV];
    /* [cpu_tail][vectors - 1] */
    cpu_small_fn *small[3][CPU_MAX_SMALL_NV];
    cpu_pack_fn *interleave, *copy;

    /* c[0..n) := beta*c, c[0..n) := 0 for beta == 0. beta_imag: 0 for real types. */
    void (*scale)(void *c, int64_t n, double beta, double beta_imag);

    /* c[0..n) := alpha * (part[0] + part[1] + ...) + beta*c, part[q] = parts + q*part_stride,
     * summed in the order of q. c_stride: elements between two results. complex: of complex types,
     * whose sums are conjugated first if complex->conj_a; else not used. */
    void (*reduce)(void *c, int64_t c_stride, int64_t n, const void *parts, int64_t part_stride,
                   int64_t count, double alpha, double beta, const tgl_complex_part *complex);

    /* c[j] := activation(c[j] + bias[j*bias_step]) + residual[j], j < n. bias_step: 1, or 0 to add
     * the same element everywhere. bias, residual: NULL for none. */
    void (*finish)(void *c, int64_t n, const void *bias, int64_t bias_step,
                   tgl_activation activation, const void *residual);

    cpu_dot_fn *dot;

    /* x[p*2 + 1] := -from[p*step*2 + 1], x[p*2] := from[p*step*2], p < k: the conjugates of a
     * vector. NULL for real types. */
    void (*conjugate)(void *x, const void *from, int64_t step, int64_t k);

    /* y[j] := sum over p of x[p] * M[p*ld + j], j < n, p < k. */
    void (*combine)(void *y, const void *M, int64_t ld, int64_t n, int64_t k, const void *x);

    /* In the table of f32: `dot` and `combine` for M of a short type, indexed by cpu_short. x and y
     * are of f32. NULL for 8-bit floating-point types. For int8 short_dot writes int32 to y and
     * takes k up to CPU_VECTOR_STEPS, and short_combine is exact for k up to 1024. */
    cpu_dot_fn *short_dot[CPU_SHORTS];
    void (*short_combine[CPU_SHORTS])(void *y, const void *M, int64_t ld, int64_t n, int64_t k,
                                      const void *x);

    /* NULL for complex types. Executes independent multiply-adds in registers and returns the
     * number of floating-point operations. Stores the sum of the results in *sink, so that the loop
     * is not removed. */
    double (*fma_loop)(int64_t rounds, double *sink);
} cpu_kernels;

/* Conversions of n elements between f32 and a shorter type, and sums of int32 modulo 2^32. */
typedef struct cpu_conversions {
    /* Indexed by cpu_short. narrow rounds to nearest, ties to even. Types of 8 bits saturate, and a
     * NaN becomes the int8 0. */
    void (*widen[CPU_SHORTS])(float *to, const void *from, int64_t n);
    void (*narrow[CPU_SHORTS])(void *to, const float *from, int64_t n);

    /* to[i] := the integer from[i]; if `add`, to[i] += from[i] */
    void (*add_integers)(int32_t *to, const float *from, int64_t n, bool add);

    /* to[i] := alpha*to[i] + beta*x[i*step]. step: 1, or 0 for the same element everywhere */
    void (*combine_i32)(int32_t *to, int64_t n, int32_t alpha, int32_t beta, const int32_t *x,
                        int64_t step);
    void (*relu_i32)(int32_t *to, int64_t n);
} cpu_conversions;

#endif
