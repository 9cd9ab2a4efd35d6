/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference result of products, and the errors of results. The program and the tests use it.
 * The error of an element of D is
 *
 *     e = (|d - ref| - r) / (u * (|alpha| |A||B| + |beta||C|) + s)
 *
 * with u the unit roundoff of the accumulation type (2^-24 for f32, 2^-53 for f64) and s the
 * smallest positive number of that type, because denormal results cannot be nearer. r is the error
 * of the one rounding from the accumulation type to D's type, half a unit in the last place of D;
 * it is 0 if the two types are the same. Summing k products one after another gives e <= k + 2.
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

/* An element of the reference: its value, and the sum of magnitudes, which is the unit of its
 * error. Sums of products are accumulated in double, in which products of two f32, f16 or bf16 are
 * exact; sums of f64 in long double, which has 11 more bits on x86 and 60 more on Arm. Sums of i8
 * are exact in double before they wrap. */
typedef struct reference_element {
    long double value, magnitude;
} reference_element;

/* One row of D: out[j] := alpha * sum_p a[p]*B[p*n+j] + beta*c[j] for 0 <= j < n, with BLAS's
 * rules: alpha == 0 reads neither a nor B, beta == 0 does not read c. type: of A and B. */
void reference_row(tgl_type type, int64_t n, int64_t k, double alpha, const double *a,
                   const double *B, double beta, const double *c, reference_element *out);

/* Adds to the magnitudes of a row the error of tensor cores with denormal factors. A tensor core
 * aligns a product by the exponents of its factors, and a denormal factor has the exponent of the
 * least normal number (docs/accuracy.md). Such a factor therefore counts as that number. type: of A
 * and B; other arguments as above, all finite. */
void reference_align_denormals(tgl_type type, int64_t n, int64_t k, double alpha, const double *a,
                               const double *B, reference_element *row);

/* One element with strided factors: sum_p a[p*step_a]*b[p*step_b], p < k, of matrices with elements
 * of type_a and type_b. The first elements are number at_a and at_b. */
reference_element reference_dot(int64_t k, tgl_type type_a, const void *a, int64_t at_a,
                                int64_t step_a, tgl_type type_b, const void *b, int64_t at_b,
                                int64_t step_b);

/* alpha*sum + beta*c, and the sum of the magnitudes. type: of A and B. k: number of products in the
 * sum. */
reference_element reference_finish(tgl_type type, double alpha, reference_element sum, int64_t k,
                                   double beta, double c);

/* The two parts of a complex element. */
typedef struct reference_complex {
    reference_element re, im;
} reference_complex;

/* The sum of products of complex elements, the arguments of reference_dot() being elements of two
 * numbers. It is made of the sums of the four real products of their parts, so that infinities and
 * NaN give what these give. conj_a, conj_b: the factors are the conjugates. */
reference_complex reference_complex_dot(int64_t k, tgl_type type, const void *a, int64_t at_a,
                                        int64_t step_a, bool conj_a, const void *b, int64_t at_b,
                                        int64_t step_b, bool conj_b);

/* alpha*sum + beta*c of complex numbers, the real part first. If the imaginary part of alpha or
 * beta is 0, that is a real number. */
reference_complex reference_complex_finish(const double alpha[2], const reference_complex *sum,
                                           int64_t k, const double beta[2], const double c[2]);

/* ---- Epilogues ------------------------------------------------------------------------------- */

long double reference_activation(tgl_activation activation, long double x);

/* Prepares an element for an epilogue: a sum beyond the range of the accumulator becomes infinite,
 * and the magnitude of an infinite sum 0. An epilogue that turns it into a finite number is exact;
 * with an infinite magnitude any result would pass. */
void reference_saturate(tgl_type accumulator, reference_element *x);

/* Applies an epilogue to *x = alpha*A*B + beta*C. Supports neither expressions nor activations of
 * integers other than RELU. */
void reference_epilogue(tgl_type accumulator, const tgl_epilogue *epilogue, long double bias,
                        long double residual, reference_element *x);

/* Maximum error that an epilogue adds to the error e of the product. */
enum { EPILOGUE_ERRORS = 8 };

/* ---- Layouts --------------------------------------------------------------------------------- */

/* The index of element (i, j) of op(X) in the stored matrix X, and the number of elements that a
 * batch of X spans. op(X) is rows x cols; ld is not 0. They are written from the public header
 * alone, so that they check the library's layouts. */
int64_t stored_index(tgl_order order, tgl_transpose trans, int64_t ld, int64_t i, int64_t j);
int64_t stored_extent(tgl_order order, tgl_transpose trans, int64_t rows, int64_t cols, int64_t ld,
                      int64_t batch, int64_t stride);

/* ---- Errors ---------------------------------------------------------------------------------- */

/* A summary of the errors of many elements. */
typedef struct error_summary {
    int64_t finite;        /* finite elements within the bound; the sums contain only these */
    int64_t wrong;         /* elements above the bound, or not finite in the right way */
    double max;            /* maximum of e */
    double max_over_bound; /* maximum of e / bound */
    double sum_squares;    /* sum of e^2 */
    long double difference_squares, reference_squares; /* ||d - ref||_F^2 and ||ref||_F^2 */
} error_summary;

/* The bound of e for a sum of k products: that of any order of summation, or for long sums
 * 8*sqrt(k), which rounding errors of both signs do not exceed in practice. */
double error_bound(int64_t k);

/* The addition to the bound if A and B, of type f32, may be rounded to TF32 first (10 bits of
 * fraction): 2^-11 of each factor, 2^-10 of each product, in units of 2^-24. */
double error_of_rounded_inputs(tgl_type type, tgl_compute compute);

/* The addition to the bound if tensor cores multiply inputs of 16 bits. They truncate the products
 * and the sum (docs/accuracy.md). If all products have one sign, these errors have one sign too and
 * add up, in practice to less than k / 8: the bound becomes k / 8 + 4 where that is larger than
 * error_bound(k). With inputs of U(0,1) the mean error is 0.1 k. */
double error_of_cut_sums(tgl_type type, int64_t k);

/* The addition to the bound if tensor cores multiply 8-bit floating-point inputs: they add 33 terms
 * with 13 bits of fraction and cut the sum to as many, for each 32 of K (docs/accuracy.md). Unless
 * FAST is asked for, sums of 128 of K are added in FP32. */
double error_of_f8_sums(tgl_type type, tgl_compute compute, int64_t k);

/* The addition to the bound for a library that rounds the partial sums of split-K to D's type, as
 * cuBLAS does if D has 16 bits: the error of four such roundings. 0 for f32 and f64. */
double error_of_rounded_sums(tgl_type type_d, int64_t k);

/* Adds one element of a result of type D to the summary; false: it is wrong. *error := its e,
 * infinite for a NaN or an infinity that the reference does not have. */
bool error_add(error_summary *summary, tgl_type type_d, double d,
               const reference_element *reference, double bound, double *error);

void error_merge(error_summary *into, const error_summary *from);

double error_rms(const error_summary *summary);       /* root of the mean square of e */
double error_frobenius(const error_summary *summary); /* ||d - ref||_F / ||ref||_F */

#endif
