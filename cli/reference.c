/* SPDX-License-Identifier: Apache-2.0
 *
 * Products in more precision than the type has, and the error of results against them.
 */
#include "reference.h"

#include <float.h>
#include <math.h>

/* ---- Products -------------------------------------------------------------------------------- */

enum { STRIP = 128 }; /* columns that are summed side by side */

/* alpha*sum + beta*c, and their magnitudes. */
static reference_element finish(double alpha, long double sum, long double sum_of_magnitudes,
                                double beta, double c)
{
    reference_element e = {0, 0};
    if (alpha != 0) {
        e.value = alpha * sum;
        e.magnitude = fabs(alpha) * sum_of_magnitudes;
    }
    if (beta != 0) {
        e.value += (long double)beta * c;
        e.magnitude += fabsl((long double)beta * c);
    }
    return e;
}

/* Sums of f32 products, which are exact in double. width <= STRIP. */
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

static void sum_in_long_double(int64_t width, int64_t k, const double *a, const double *B,
                               int64_t ldb, reference_element *out)
{
    for (int64_t j = 0; j < width; j++)
        out[j] = (reference_element){0, 0};
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < width; j++) {
            const long double product = (long double)a[p] * B[p * ldb + j];
            out[j].value += product;
            out[j].magnitude += fabsl(product);
        }
}

void reference_row(tgl_type type, int64_t n, int64_t k, double alpha, const double *a,
                   const double *B, double beta, const double *c, reference_element *out)
{
    if (alpha == 0) k = 0; /* neither a nor B is read */
    if (k == 0) alpha = 0; /* and a sum of nothing is 0, whatever alpha */
    for (int64_t start = 0; start < n; start += STRIP) {
        const int64_t width = n - start < STRIP ? n - start : STRIP;
        if (type == TGL_F32)
            sum_in_double(width, k, a, B + start, n, out + start);
        else
            sum_in_long_double(width, k, a, B + start, n, out + start);
    }
    for (int64_t j = 0; j < n; j++)
        out[j] = finish(alpha, out[j].value, out[j].magnitude, beta, beta != 0 ? c[j] : 0);
}

reference_element reference_dot(tgl_type type, int64_t k, const void *a, int64_t step_a,
                                const void *b, int64_t step_b)
{
    reference_element e = {0, 0};
    for (int64_t p = 0; p < k; p++) {
        const long double product =
            type == TGL_F32
                ? (long double)((const float *)a)[p * step_a] * ((const float *)b)[p * step_b]
                : (long double)((const double *)a)[p * step_a] * ((const double *)b)[p * step_b];
        e.value += product;
        e.magnitude += fabsl(product);
    }
    return e;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

double error_bound(int64_t k)
{
    const double typical = 8 * sqrt((double)k);
    return ((double)k < typical ? (double)k : typical) + 4;
}

/* e of one element; infinite if NaN or Inf is not where the reference has it. */
static double element_error(tgl_type type, double c, const reference_element *r)
{
    const long double greatest = type == TGL_F32 ? FLT_MAX : DBL_MAX;
    if (isnan(r->value)) return isnan(c) ? 0 : INFINITY;
    if (fabsl(r->value) > greatest) return isinf(c) && (c > 0) == (r->value > 0) ? 0 : INFINITY;
    if (!isfinite(c)) return INFINITY;
    const long double unit = type == TGL_F32 ? 0x1p-24L : 0x1p-53L;
    const long double smallest = type == TGL_F32 ? 0x1p-149L : 0x1p-1074L;
    return (double)(fabsl(c - r->value) / (unit * r->magnitude + smallest));
}

bool error_add(error_summary *summary, tgl_type type, double c, const reference_element *reference,
               double bound, double *error)
{
    const double e = element_error(type, c, reference);
    *error = e;
    if (!(e <= bound)) {
        summary->wrong++;
        if (e > summary->max) summary->max = e;
        return false;
    }
    if (!isfinite(c)) return true;
    const long double difference = c - reference->value;
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
