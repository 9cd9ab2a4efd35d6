/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference result of products, and the errors of results. The program and the tests use it.
 * The error of an element d of D, whose reference is ref, is
 *
 *     e = (|d - ref| - r) / (u * (|alpha| |A||B| + |beta||C|) + s)
 *
 * - u is the unit roundoff of the accumulation type: 2^-24 for f32, 2^-53 for f64.
 * - s is the smallest positive number of the accumulation type, because a denormal result cannot be
 *   more precise than that.
 * - r is the error of the one rounding from the accumulation type to D's type: half a unit in the
 *   last place of D, or 0 if the two types are the same.
 *
 * Summing k products one after another gives e <= k + 2.
 *
 * Products of integers are computed modulo 2^32, in two's complement. They are exact in any order
 * of summation: e is 0 or, if the element is wrong, infinite.
 */
#ifndef CLI_REFERENCE_H
#define CLI_REFERENCE_H

#include "tegula/tegula.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- Products -------------------------------------------------------------------------------- */

/* An element of the reference: its value, and its magnitude, which is |alpha| |A||B| + |beta||C|
 * for this element. The magnitude is part of the denominator of e. Sums of products are accumulated
 * in double, which represents products of two f32, f16 or bf16 exactly. Sums of f64 are accumulated
 * in long double, which has 11 more bits of fraction on x86 and 60 more on Arm. Sums of i8 are
 * exact in double until they are reduced modulo 2^32. */
typedef struct reference_element {
    long double value, magnitude;
} reference_element;

/* Computes one row of D: out[j] := alpha * sum_p a[p]*B[p*n+j] + beta*c[j] for 0 <= j < n. By the
 * rules of BLAS, neither a nor B is read if alpha is 0, and c is not read if beta is 0. type: the
 * type of A and B. */
void reference_row(tgl_type type, int64_t n, int64_t k, double alpha, const double *a,
                   const double *B, double beta, const double *c, reference_element *out);

/* Adds to the magnitudes of a row the error that tensor cores make with denormal factors. A tensor
 * core aligns a product by the exponents of its factors, and gives a denormal factor the exponent
 * of the least normal number (docs/accuracy.md); the magnitude therefore counts a denormal factor
 * as that number. type: the type of A and B. The other arguments are those of reference_row(), and
 * must be finite. */
void reference_align_denormals(tgl_type type, int64_t n, int64_t k, double alpha, const double *a,
                               const double *B, reference_element *row);

/* One element with strided factors: the sum over p < k of a[at_a + p*step_a]*b[at_b + p*step_b],
 * where a has elements of type_a and b of type_b. */
reference_element reference_dot(int64_t k, tgl_type type_a, const void *a, int64_t at_a,
                                int64_t step_a, tgl_type type_b, const void *b, int64_t at_b,
                                int64_t step_b);

/* alpha*sum + beta*c, and its magnitude. type: the type of A and B. k: number of products in the
 * sum. */
reference_element reference_finish(tgl_type type, double alpha, reference_element sum, int64_t k,
                                   double beta, double c);

/* The two parts of a complex element of the reference. */
typedef struct reference_complex {
    reference_element re, im;
} reference_complex;

/* A complex sum of products, composed of the four real sums of products of the parts:
 * of[(2*p + q) * stride] is the sum for part p of the factors of A and part q of those of B, where
 * part 0 is real. conj_a, conj_b: use the conjugate of the factor. */
reference_complex reference_complex_sum(const reference_element *of, int64_t stride, bool conj_a,
                                        bool conj_b);

/* Like reference_dot() for complex elements; at_a, step_a, at_b and step_b count elements of two
 * numbers. The result is composed by reference_complex_sum(), and so has infinities and NaN where
 * the four real sums have them. conj_a, conj_b: use the conjugate of the factor. */
reference_complex reference_complex_dot(int64_t k, tgl_type type, const void *a, int64_t at_a,
                                        int64_t step_a, bool conj_a, const void *b, int64_t at_b,
                                        int64_t step_b, bool conj_b);

/* alpha*sum + beta*c for complex numbers; of the arrays, [0] is the real part and [1] the imaginary
 * one. An alpha or beta whose imaginary part is 0 is used as a real number. */
reference_complex reference_complex_finish(const double alpha[2], const reference_complex *sum,
                                           int64_t k, const double beta[2], const double c[2]);

/* ---- Epilogues ------------------------------------------------------------------------------- */

long double reference_activation(tgl_activation activation, long double x);

/* Prepares an element for an epilogue: a sum beyond the range of the accumulation type becomes
 * infinite, and the magnitude of an infinite sum becomes 0. If the epilogue turns an infinite sum
 * into a finite number, that number is exact; with an infinite magnitude, any result would pass. */
void reference_saturate(tgl_type accumulator, reference_element *x);

/* Applies an epilogue to *x, which is alpha*A*B + beta*C. Supports neither expressions nor, for
 * integers, activations other than RELU. */
void reference_epilogue(tgl_type accumulator, const tgl_epilogue *epilogue, long double bias,
                        long double residual, reference_element *x);

/* The maximum increase of the error e by an epilogue. */
enum { EPILOGUE_ERRORS = 8 };

/* ---- Layouts --------------------------------------------------------------------------------- */

/* stored_index(): the index of element (i, j) of op(X) in the stored matrix X; ld must not be 0.
 * stored_extent(): the number of elements from the first to the last one of a batch of X, where
 * op(X) is rows x cols. Both are written from the public header alone, to check the library's
 * layouts. */
int64_t stored_index(tgl_order order, tgl_transpose trans, int64_t ld, int64_t i, int64_t j);
int64_t stored_extent(tgl_order order, tgl_transpose trans, int64_t rows, int64_t cols, int64_t ld,
                      int64_t batch, int64_t stride);

/* ---- Errors ---------------------------------------------------------------------------------- */

/* A summary of the errors e of many elements. */
typedef struct error_summary {
    int64_t finite;        /* number of finite elements within the bound; the sums contain only
                              these */
    int64_t wrong;         /* number of elements whose e is above the bound; e may be infinite */
    double max;            /* maximum of e */
    double max_over_bound; /* maximum of e / bound */
    double sum_squares;    /* sum of e^2 */
    long double difference_squares, reference_squares; /* ||d - ref||_F^2 and ||ref||_F^2 */
} error_summary;

/* The bound of e for a sum of k products: min(k, 8*sqrt(k)) + 4. k + 4 covers any order of
 * summation. 8*sqrt(k) + 4 is not exceeded in practice, because rounding errors have both signs. */
double error_bound(int64_t k);

/* The increase of the bound if A and B, of type f32 or c64, may first be rounded to TF32 (10 bits
 * of fraction). Rounding changes each factor by up to 2^-11 and so each product by up to 2^-10,
 * relatively; the unit of e is 2^-24. */
double error_of_rounded_inputs(tgl_type type, tgl_compute compute);

/* The increase of the bound if tensor cores multiply inputs of 16 bits. Tensor cores truncate the
 * products and the sum (docs/accuracy.md). If all products have the same sign, the truncation
 * errors have the same sign too and add up, in practice to less than k / 8. The bound therefore
 * becomes k / 8 + 4 where this is larger than error_bound(k). With inputs that are uniform in (0,
 * 1) the mean error is 0.1 k. */
double error_of_cut_sums(tgl_type type, int64_t k);

/* The increase of the bound if tensor cores multiply 8-bit floating-point inputs. For each 32 of K
 * they add 33 terms (32 products and the sum so far) with 13 bits of fraction, and truncate the new
 * sum to 13 bits too (docs/accuracy.md). Unless compute mode FAST is requested, the kernel adds the
 * sums over each 128 of K in FP32. */
double error_of_f8_sums(tgl_type type, tgl_compute compute, int64_t k);

/* The increase of the bound for a library that rounds the partial sums of split-K to D's type: the
 * error of four such roundings. cuBLAS does this if D has 16 bits. 0 for f32 and f64. */
double error_of_rounded_sums(tgl_type type_d, int64_t k);

/* The bound of e for the elements of a product, with all increases above but that of
 * error_of_rounded_sums(). cuts_sums: whether tensor cores may truncate sums of 16-bit inputs. Each
 * part of a complex element is a sum of 2k products, scaled by the parts of alpha and beta. */
double error_bound_of(const tgl_problem *p, bool cuts_sums);

/* Adds an element d of a result of type type_d to the summary. *error := its e, which is infinite
 * if one of d and the reference is NaN or infinite and the other is not. But an infinite d is right
 * where the reference is at the end of the range of type_d. False: the element is wrong. */
bool error_add(error_summary *summary, tgl_type type_d, double d,
               const reference_element *reference, double bound, double *error);

void error_merge(error_summary *into, const error_summary *from);

double error_rms(const error_summary *summary);       /* square root of (sum_squares / finite) */
double error_frobenius(const error_summary *summary); /* ||d - ref||_F / ||ref||_F */

#endif
