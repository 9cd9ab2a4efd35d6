/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates random numbers and the inputs of accuracy tests.
 */
#include "random.h"
#include "elements.h"

#include <math.h>

/* ---- The generator --------------------------------------------------------------------------- */

uint64_t random_bits(random_state *r)
{
    uint64_t z = *r += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void random_seed(random_state *r, uint64_t seed, uint64_t stream)
{
    random_state mixed = seed;
    *r = random_bits(&mixed) ^ stream * 0xd1342543de82ef95u;
    *r = random_bits(r);
}

double random_unit(random_state *r)
{
    return ((double)(random_bits(r) >> 12) + 0.5) * 0x1p-52;
}

double random_normal(random_state *r)
{
    const double radius = sqrt(-2 * log(random_unit(r)));
    return radius * cos(6.283185307179586 * random_unit(r));
}

int64_t random_int(random_state *r, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(r) % ((uint64_t)high - (uint64_t)low + 1));
}

bool random_once_in(random_state *r, int times)
{
    return random_int(r, 1, times) == 1;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

const char *inputs_name(inputs kind)
{
    static const char *const names[] = {"uniform(0,1)", "uniform(-1,1)", "normal",
                                        "wide",         "cancellation",  "denormal",
                                        "non-finite",   "extremes",      "least"};
    return names[kind];
}

inputs random_kind(random_state *r, tgl_type type)
{
    static const inputs of_integers[] = {UNIFORM_11,   UNIFORM_11, UNIFORM_01,
                                         CANCELLATION, EXTREMES,   LEAST};
    if (element_is_integer(type)) return of_integers[random_int(r, 0, 5)];
    return (inputs)random_int(r, 0, INPUTS_END - 1);
}

static double symmetric(random_state *r)
{
    return 2 * random_unit(r) - 1;
}

static double special_or_symmetric(random_state *r, double probability)
{
    static const double specials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0};
    if (random_unit(r) < probability) return specials[random_int(r, 0, 4)];
    return symmetric(r);
}

/* Draws a number of a kind whose numbers are independent of each other. parameter: phi for WIDE,
 * the scale for DENORMAL, the probability of a special value for NON_FINITE. */
static double draw_element(random_state *r, inputs kind, double parameter)
{
    switch (kind) {
    case UNIFORM_01:
        return random_unit(r);
    case NORMAL:
        return random_normal(r);
    case WIDE:
        return (random_unit(r) - 0.5) * exp(parameter * random_normal(r));
    case DENORMAL:
        return parameter * symmetric(r);
    case NON_FINITE:
        return special_or_symmetric(r, parameter);
    case EXTREMES:
        return random_once_in(r, 2) ? -1 : 1;
    case LEAST:
        return -1;
    case UNIFORM_11:
    case CANCELLATION:
        break;
    }
    return symmetric(r);
}

/* Rounds x to the type. A finite number beyond the range becomes the greatest number with its
 * sign. */
static double fit_to_type(tgl_type type, double x)
{
    const double greatest = element_greatest(type);
    if (element_is_integer(type)) return element_round(type, x); /* limits x to the range too */
    if (isfinite(x) && fabs(x) > greatest) return copysign(greatest, x);
    return element_round(type, x);
}

static void fill(random_state *r, inputs kind, double parameter, tgl_type type, int64_t count,
                 double *X)
{
    for (int64_t i = 0; i < count; i++)
        X[i] = fit_to_type(type, element_scale(type) * draw_element(r, kind, parameter));
}

/* Makes the products of the second half of k nearly the negatives of those of the first half. */
static void pair_up(random_state *r, tgl_type type, int64_t m, int64_t n, int64_t k, double *A,
                    double *B)
{
    const int64_t distance = (k + 1) / 2;
    for (int64_t p = distance; p < k; p++) {
        for (int64_t i = 0; i < m; i++)
            A[i * k + p] = A[i * k + p - distance];
        for (int64_t j = 0; j < n; j++)
            B[p * n + j] =
                fit_to_type(type, -B[(p - distance) * n + j] * (1 + 1e-4 * random_unit(r)));
    }
}

/* Draws the scales of A and B for DENORMAL: either A is denormal but the products are not, or the
 * products are denormal. If A is denormal, B has the scale 2^room: 2^10 for f16 and e5m2, whose
 * ranges end just below 2^16, and 2^40 for the others. In e4m3 this B is 448 or -448. */
static void draw_denormal_scales(random_state *r, tgl_type type, double *of_a, double *of_b)
{
    const int least = ilogb(element_least_normal(type)), room = least == -14 ? 10 : 40;
    const bool has_denormal_inputs = random_once_in(r, 2);
    *of_a = ldexp(1, has_denormal_inputs ? least - 2 : least / 2);
    *of_b = ldexp(1, has_denormal_inputs ? room : least - least / 2 - 4);
}

void random_inputs(random_state *r, inputs kind, tgl_type type, int64_t m, int64_t n, int64_t k,
                   double *A, double *B)
{
    double of_a = 0, of_b = 0;
    if (kind == WIDE) of_a = of_b = 4 * random_unit(r);
    if (kind == NON_FINITE) of_a = of_b = 0.05 * random_unit(r) * random_unit(r);
    if (kind == DENORMAL) draw_denormal_scales(r, type, &of_a, &of_b);
    fill(r, kind, of_a, type, m * k, A);
    fill(r, kind, of_b, type, k * n, B);
    if (kind == CANCELLATION) pair_up(r, type, m, n, k, A, B);
}

void random_addends(random_state *r, inputs kind, tgl_type type, int64_t count, double *X)
{
    double parameter = 0;
    if (kind == WIDE) parameter = 1;
    if (kind == NON_FINITE) parameter = 0.05;
    if (kind == DENORMAL) parameter = element_least_normal(type);
    fill(r, kind, parameter, type, count, X);
}

void random_fill(random_state *r, tgl_type type, void *elements, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        element_set(type, elements, i, element_scale(type) * symmetric(r));
}
