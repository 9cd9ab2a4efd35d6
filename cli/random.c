/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers and the inputs of which accuracy is judged.
 */
#include "random.h"

#include <math.h>

/* ---- The generator --------------------------------------------------------------------------- */

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void random_seed(random_state *r, uint64_t seed, uint64_t stream)
{
    uint64_t state = seed;
    state = splitmix64(&state) ^ stream * 0xd1342543de82ef95u;
    for (int i = 0; i < 4; i++)
        r->word[i] = splitmix64(&state);
}

static uint64_t rotate_left(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

uint64_t random_bits(random_state *r)
{
    uint64_t *w = r->word;
    const uint64_t result = rotate_left(w[1] * 5, 7) * 9, shifted = w[1] << 17;
    w[2] ^= w[0];
    w[3] ^= w[1];
    w[1] ^= w[2];
    w[0] ^= w[3];
    w[2] ^= shifted;
    w[3] = rotate_left(w[3], 45);
    return result;
}

double random_unit(random_state *r)
{
    return (double)(random_bits(r) >> 11) * 0x1p-53;
}

double random_normal(random_state *r)
{
    const double radius = sqrt(-2 * log(1 - random_unit(r)));
    return radius * cos(6.283185307179586 * random_unit(r));
}

int64_t random_between(random_state *r, int64_t least, int64_t most)
{
    return least + (int64_t)(random_bits(r) % (uint64_t)(most - least + 1));
}

bool random_once_in(random_state *r, int times)
{
    return random_between(r, 1, times) == 1;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

const char *input_kind_name(input_kind kind)
{
    static const char *const names[INPUT_KINDS] = {"positive", "symmetric", "normal", "wide",
                                                   "cancel",   "denormal",  "special"};
    return names[kind];
}

static double round_to(tgl_type type, double x)
{
    return type == TGL_F32 ? (double)(float)x : x;
}

static double symmetric(random_state *r)
{
    return 2 * random_unit(r) - 1;
}

/* One element of a kind whose elements do not depend on one another. */
static double draw(random_state *r, input_kind kind, double parameter)
{
    switch (kind) {
    case INPUT_POSITIVE:
        return random_unit(r);
    case INPUT_NORMAL:
        return random_normal(r);
    case INPUT_WIDE:
        return (random_unit(r) - 0.5) * exp(parameter * random_normal(r));
    case INPUT_DENORMAL:
        return parameter * symmetric(r);
    case INPUT_SPECIAL: {
        static const double specials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0};
        if (random_unit(r) < parameter) return specials[random_between(r, 0, 4)];
        return symmetric(r);
    }
    default:
        return symmetric(r);
    }
}

static void fill(random_state *r, input_kind kind, double parameter, tgl_type type, int64_t count,
                 double *X)
{
    for (int64_t i = 0; i < count; i++)
        X[i] = round_to(type, draw(r, kind, parameter));
}

/* Makes every second product of a sum nearly the negative of the one before. */
static void pair_up(random_state *r, tgl_type type, int64_t m, int64_t n, int64_t k, double *A,
                    double *B)
{
    for (int64_t p = 1; p < k; p += 2) {
        for (int64_t i = 0; i < m; i++)
            A[i * k + p] = A[i * k + p - 1];
        for (int64_t j = 0; j < n; j++)
            B[p * n + j] = round_to(type, -B[(p - 1) * n + j] * (1 + 1e-4 * random_unit(r)));
    }
}

void random_inputs(random_state *r, input_kind kind, tgl_type type, int64_t m, int64_t n, int64_t k,
                   double *A, double *B)
{
    double of_a = 0, of_b = 0;
    if (kind == INPUT_WIDE) of_a = of_b = 4 * random_unit(r);
    if (kind == INPUT_SPECIAL) of_a = of_b = 0.05 * random_unit(r) * random_unit(r);
    if (kind == INPUT_DENORMAL) {
        /* Either A itself is denormal and the products are not, or the products are. */
        const bool denormal_inputs = random_once_in(r, 2);
        const int least = type == TGL_F32 ? -126 : -1022;
        of_a = ldexp(1, denormal_inputs ? least - 2 : least / 2);
        of_b = ldexp(1, denormal_inputs ? 40 : least - least / 2 - 4);
    }
    fill(r, kind, of_a, type, m * k, A);
    fill(r, kind, of_b, type, k * n, B);
    if (kind == INPUT_CANCEL) pair_up(r, type, m, n, k, A, B);
}

void random_fill(random_state *r, tgl_type type, void *elements, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (type == TGL_F32)
            ((float *)elements)[i] = (float)symmetric(r);
        else
            ((double *)elements)[i] = symmetric(r);
}
