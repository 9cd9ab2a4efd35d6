/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes products in higher precision than the type has, and the errors of results.
 */
#include "reference.h"
#include "elements.h"

#include <math.h>

/* ---- Products -------------------------------------------------------------------------------- */

enum { STRIP = 128 }; /* number of columns, or of terms of a sum, that are computed at a time */

/* The low 32 bits, in two's complement, of x, which must be an integer. */
static uint32_t wrapped_bits(long double x)
{
    return (uint32_t)(int64_t)x;
}

static long double wrap(long double x)
{
    return (int32_t)wrapped_bits(x);
}

/* alpha*sum + beta*c modulo 2^32. It is computed in integers, because long double does not
 * represent such products exactly on every machine. */
static long double finish_integers(double alpha, long double sum, double beta, double c)
{
    return (int32_t)(wrapped_bits(alpha) * wrapped_bits(sum) +
                     wrapped_bits(beta) * wrapped_bits(c));
}

reference_element reference_finish(tgl_type type, double alpha, reference_element sum, int64_t k,
                                   double beta, double c)
{
    reference_element e = {0, 0};
    if (element_is_integer(type))
        return (reference_element){finish_integers(alpha, sum.value, beta, c), 0};
    if (alpha != 0 && k > 0) {
        e.value = alpha * sum.value;
        e.magnitude = fabs(alpha) * sum.magnitude;
    }
    if (beta != 0) {
        e.value += (long double)beta * c;
        e.magnitude += fabsl((long double)beta * c);
    }
    return e;
}

/* Computes `width` columns, at most STRIP, of a row of the product in double. */
static void sum_in_double(int64_t width, int64_t k, const double *a, const double *B, int64_t ldb,
                          reference_element *out)
{
    double sum[STRIP] = {0}, magnitude[STRIP] = {0};
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < width; j++) {
            const double product = a[p] * B[p * ldb + j];
            sum[j] += product;
            magnitude[j] += fabs(product);
        }
    for (int64_t j = 0; j < width; j++)
        out[j] = (reference_element){sum[j], magnitude[j]};
}

/* Lists the columns j < width for which neither the row a nor column j of B contains Inf or NaN.
 * Returns the number of these columns. out: the sums in double; if out[j].magnitude is finite,
 * column j has no Inf or NaN and is not searched. */
static int list_finite(int64_t width, int64_t k, const double *a, const double *B, int64_t ldb,
                       const reference_element *out, int64_t list[STRIP])
{
    int count = 0;
    for (int64_t j = 0; j < width; j++) {
        bool is_finite = isfinite(out[j].magnitude);
        if (!is_finite) { /* Inf or NaN in A or B, or an overflow of the sum */
            is_finite = true;
            for (int64_t p = 0; p < k && is_finite; p++)
                is_finite = isfinite(a[p]) && isfinite(B[p * ldb + j]);
        }
        if (is_finite) list[count++] = j;
    }
    return count;
}

/* Computes `width` columns of a row of the product in long double. Columns with Inf or NaN keep
 * their sums in double, because x87 arithmetic with such values takes some hundred cycles per
 * operation on Intel processors. */
static void sum_in_long_double(int64_t width, int64_t k, const double *a, const double *B,
                               int64_t ldb, reference_element *out)
{
    int64_t list[STRIP];
    sum_in_double(width, k, a, B, ldb, out);
    const int count = list_finite(width, k, a, B, ldb, out, list);
    reference_element sums[STRIP] = {{0, 0}};
    for (int64_t p = 0; p < k; p++)
        for (int i = 0; i < count; i++) {
            const long double product = (long double)a[p] * B[p * ldb + list[i]];
            sums[i].value += product;
            sums[i].magnitude += fabsl(product);
        }
    for (int i = 0; i < count; i++)
        out[list[i]] = sums[i];
}

void reference_row(tgl_type type, int64_t n, int64_t k, double alpha, const double *a,
                   const double *B, double beta, const double *c, reference_element *out)
{
    if (alpha == 0) k = 0; /* so that neither a nor B is read */
    for (int64_t start = 0; start < n; start += STRIP) {
        const int64_t width = n - start < STRIP ? n - start : STRIP;
        if (type != TGL_F64 && type != TGL_C128)
            sum_in_double(width, k, a, B + start, n, out + start);
        else
            sum_in_long_double(width, k, a, B + start, n, out + start);
    }
    for (int64_t j = 0; j < n; j++)
        out[j] = reference_finish(type, alpha, out[j], k, beta, beta != 0 ? c[j] : 0);
}

/* The magnitude from which a tensor core derives the exponent of a factor when it aligns products:
 * |x|, but at least `least`, except for 0. */
static double aligned_size(double x, double least)
{
    return x == 0 ? 0 : fmax(fabs(x), least);
}

void reference_align_denormals(tgl_type type, int64_t n, int64_t k, double alpha, const double *a,
                               const double *B, reference_element *row)
{
    const double least = element_least_normal(type);
    if (alpha == 0) return;
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++) {
            const double b = B[p * n + j];
            const double more = aligned_size(a[p], least) * aligned_size(b, least) - fabs(a[p] * b);
            row[j].magnitude += fabs(alpha) * more;
        }
}

reference_element reference_dot(int64_t k, tgl_type type_a, const void *a, int64_t at_a,
                                int64_t step_a, tgl_type type_b, const void *b, int64_t at_b,
                                int64_t step_b)
{
    double x[STRIP], y[STRIP], sum = 0, magnitude = 0;
    long double long_sum = 0, long_magnitude = 0;
    const bool is_long = type_a == TGL_F64 || type_a == TGL_C128;
    for (int64_t start = 0; start < k; start += STRIP) {
        const int64_t count = k - start < STRIP ? k - start : STRIP;
        element_read(type_a, a, at_a + start * step_a, step_a, count, x);
        element_read(type_b, b, at_b + start * step_b, step_b, count, y);
        for (int64_t p = 0; p < count && is_long; p++) {
            const long double product = (long double)x[p] * y[p];
            long_sum += product;
            long_magnitude += fabsl(product);
        }
        for (int64_t p = 0; p < count && !is_long; p++) {
            const double product = x[p] * y[p];
            sum += product;
            magnitude += fabs(product);
        }
    }
    if (is_long) return (reference_element){long_sum, long_magnitude};
    if (element_is_integer(type_a)) return (reference_element){wrap(sum), 0};
    return (reference_element){sum, magnitude};
}

/* x + sign*y. */
static reference_element added(reference_element x, int sign, reference_element y)
{
    return (reference_element){x.value + sign * y.value, x.magnitude + y.magnitude};
}

reference_complex reference_complex_sum(const reference_element *of, int64_t stride, bool conj_a,
                                        bool conj_b)
{
    const int sign_a = conj_a ? -1 : 1, sign_b = conj_b ? -1 : 1;
    const reference_element none = {0, 0};
    return (reference_complex){
        .re = added(of[0], -sign_a * sign_b, of[3 * stride]),
        .im = added(added(none, sign_b, of[stride]), sign_a, of[2 * stride]),
    };
}

reference_complex reference_complex_dot(int64_t k, tgl_type type, const void *a, int64_t at_a,
                                        int64_t step_a, bool conj_a, const void *b, int64_t at_b,
                                        int64_t step_b, bool conj_b)
{
    reference_element of[4]; /* [2 * part of a + part of b] */
    for (int i = 0; i < 4; i++)
        of[i] = reference_dot(k, type, a, 2 * at_a + i / 2, 2 * step_a, type, b, 2 * at_b + i % 2,
                              2 * step_b);
    return reference_complex_sum(of, 1, conj_a, conj_b);
}

/* x*y, where x is a number without error. */
static reference_element times(double x, reference_element y)
{
    return (reference_element){x * y.value, fabs(x) * y.magnitude};
}

static reference_complex complex_times(const double x[2], const reference_complex *y)
{
    reference_complex product = {times(x[0], y->re), times(x[0], y->im)};
    if (x[1] == 0) return product;
    product.re = added(product.re, -1, times(x[1], y->im));
    product.im = added(product.im, 1, times(x[1], y->re));
    return product;
}

reference_complex reference_complex_finish(const double alpha[2], const reference_complex *sum,
                                           int64_t k, const double beta[2], const double c[2])
{
    reference_complex e = {{0, 0}, {0, 0}};
    if ((alpha[0] != 0 || alpha[1] != 0) && k > 0) e = complex_times(alpha, sum);
    if (beta[0] == 0 && beta[1] == 0) return e;
    const reference_complex old = {{c[0], fabs(c[0])}, {c[1], fabs(c[1])}};
    const reference_complex scaled = complex_times(beta, &old);
    return (reference_complex){added(e.re, 1, scaled.re), added(e.im, 1, scaled.im)};
}

/* ---- Epilogues ------------------------------------------------------------------------------- */

long double reference_activation(tgl_activation activation, long double x)
{
    switch (activation) {
    case TGL_ACTIVATION_RELU:
        return x < 0 ? 0 : x;
    case TGL_ACTIVATION_GELU:
        return 0.5L * x * (1 + erfl(x * 0.707106781186547524401L)); /* 1/sqrt(2) */
    case TGL_ACTIVATION_SILU:
        return x / (1 + expl(-x));
    case TGL_ACTIVATION_NONE:
        break;
    }
    return x;
}

void reference_saturate(tgl_type accumulator, reference_element *x)
{
    if (element_is_integer(accumulator)) return; /* integer sums wrap and are never infinite */
    if (fabsl(x->value) > element_greatest(accumulator)) x->value = copysignl(INFINITY, x->value);
    if (isinf(x->value)) x->magnitude = 0;
}

/* The new magnitude covers two errors: that of the activation's argument, which an activation
 * enlarges at most by its maximum slope, below 2; and the activation's own rounding errors, which
 * are in proportion to its argument and its value. */
void reference_epilogue(tgl_type accumulator, const tgl_epilogue *epilogue, long double bias,
                        long double residual, reference_element *x)
{
    if (element_is_integer(accumulator)) {
        const long double sum = wrap(x->value + bias);
        x->value = wrap(reference_activation(epilogue->activation, sum) + residual);
        return;
    }
    x->value = reference_activation(epilogue->activation, x->value + bias);
    x->magnitude = 2 * (x->magnitude + fabsl(bias)) + fabsl(x->value) + fabsl(residual);
    x->value += residual;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

int64_t stored_index(tgl_order order, tgl_transpose trans, int64_t ld, int64_t i, int64_t j)
{
    const bool is_transposed = trans == TGL_TRANS || trans == TGL_CONJ_TRANS;
    const int64_t row = is_transposed ? j : i, col = is_transposed ? i : j;
    return order == TGL_ROW_MAJOR ? row * ld + col : row + col * ld;
}

int64_t stored_extent(tgl_order order, tgl_transpose trans, int64_t rows, int64_t cols, int64_t ld,
                      int64_t batch, int64_t stride)
{
    if (rows == 0 || cols == 0 || batch == 0) return 0;
    return stored_index(order, trans, ld, rows - 1, cols - 1) + 1 + (batch - 1) * stride;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

double error_bound(int64_t k)
{
    const double typical = 8 * sqrt((double)k);
    return ((double)k < typical ? (double)k : typical) + 4;
}

double error_of_rounded_inputs(tgl_type type, tgl_compute compute)
{
    const bool is_single = type == TGL_F32 || type == TGL_C64;
    return is_single && compute == TGL_COMPUTE_TF32 ? 0x1p14 + 4 : 0;
}

double error_of_cut_sums(tgl_type type, int64_t k)
{
    if (type != TGL_F16 && type != TGL_BF16) return 0;
    return fmax(0, (double)k / 8 + 4 - error_bound(k));
}

double error_of_f8_sums(tgl_type type, tgl_compute compute, int64_t k)
{
    /* TERMS: truncations in one tensor core instruction, which covers K elements of k. PROMOTED:
     * number of instructions after which the kernel adds their sum in FP32. */
    enum { TERMS = 34, K = 32, PROMOTED = 4 };
    if (type != TGL_F8_E4M3 && type != TGL_F8_E5M2) return 0;
    const double instructions = ceil((double)k / K);
    const double count = compute == TGL_COMPUTE_FAST ? instructions : fmin(instructions, PROMOTED);
    return count * TERMS * 0x1p-13 / 0x1p-24;
}

/* A sum of k products with random signs is about sqrt(k) times as large as one product; partial
 * sums that are more than 4 times as large as that are very rare. The magnitude (reference.h) is
 * about k times one product. Rounding a partial sum to D's type therefore causes an error of at
 * most 4*sqrt(k)/k = 4/sqrt(k) times the magnitude, times D's unit roundoff. Four such roundings
 * are allowed. */
double error_of_rounded_sums(tgl_type type_d, int64_t k)
{
    enum { ROUNDINGS = 4 };
    const tgl_type accumulator = element_accumulator(type_d);
    if (accumulator == type_d || k < 1) return 0;
    return ROUNDINGS * 4 / sqrt((double)k) * element_unit(type_d) / element_unit(accumulator);
}

double error_bound_of(const tgl_problem *p, bool cuts_sums)
{
    const int parts = element_parts(p->type_a);
    return error_bound(p->k * parts) + 2 * (parts - 1) +
           error_of_rounded_inputs(p->type_a, p->compute) +
           error_of_f8_sums(p->type_a, p->compute, p->k) +
           (cuts_sums ? error_of_cut_sums(p->type_a, p->k) : 0);
}

/* The maximum error of rounding to D's type, for a result d that should be near x. */
static long double rounding_error(tgl_type type_d, double d, long double x)
{
    if (element_accumulator(type_d) == type_d) return 0;
    return element_half_ulp(type_d, fmax(fabs(d), (double)fabsl(x)));
}

/* The error e of an element, as reference.h defines it. Near the end of the range of D's type, both
 * an infinity and the greatest number are right. */
static double element_error(tgl_type type_d, double d, const reference_element *r, double bound)
{
    if (element_is_integer(type_d)) return d == (double)r->value ? 0 : INFINITY;
    if (isnan(r->value)) return isnan(d) ? 0 : INFINITY;
    if (isinf(r->value)) return d == (double)r->value ? 0 : INFINITY;
    const tgl_type accumulator = element_accumulator(type_d);
    const long double unit =
        element_unit(accumulator) * r->magnitude + element_smallest(accumulator);
    const long double greatest = element_greatest(type_d);
    const long double overflow = greatest + element_half_ulp(type_d, (double)greatest);
    if (isinf(d)) {
        const bool has_sign = (d > 0) == (r->value > 0);
        return has_sign && fabsl(r->value) >= overflow - bound * unit ? 0 : INFINITY;
    }
    if (isnan(d) || fabsl(r->value) > overflow + bound * unit) return INFINITY;
    const long double excess = fabsl(d - r->value) - rounding_error(type_d, d, r->value);
    return excess > 0 ? (double)(excess / unit) : 0;
}

bool error_add(error_summary *summary, tgl_type type_d, double d,
               const reference_element *reference, double bound, double *error)
{
    const double e = element_error(type_d, d, reference, bound);
    *error = e;
    if (e > bound * summary->max_over_bound) summary->max_over_bound = e / bound;
    if (!(e <= bound)) {
        summary->wrong++;
        if (e > summary->max) summary->max = e;
        return false;
    }
    if (!isfinite(d)) return true;
    const long double difference = d - reference->value;
    summary->finite++;
    if (e > summary->max) summary->max = e;
    summary->sum_squares += e * e;
    summary->difference_squares += difference * difference;
    summary->reference_squares += reference->value * reference->value;
    return true;
}

void error_merge(error_summary *into, const error_summary *from)
{
    into->finite += from->finite;
    into->wrong += from->wrong;
    if (from->max > into->max) into->max = from->max;
    if (from->max_over_bound > into->max_over_bound) into->max_over_bound = from->max_over_bound;
    into->sum_squares += from->sum_squares;
    into->difference_squares += from->difference_squares;
    into->reference_squares += from->reference_squares;
}

double error_rms(const error_summary *summary)
{
    return summary->finite > 0 ? sqrt(summary->sum_squares / (double)summary->finite) : 0;
}

double error_frobenius(const error_summary *summary)
{
    return summary->reference_squares > 0
               ? (double)sqrtl(summary->difference_squares / summary->reference_squares)
               : 0;
}
