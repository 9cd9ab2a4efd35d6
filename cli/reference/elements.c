/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts elements. f32, f64 and the integers are types of C; the others are converted bit by bit,
 * so that the compiler and the processor need not support them. The code of a number is its bit
 * pattern.
 */
#include "elements.h"

#include <math.h>
#include <string.h>

/* Columns: name; bytes of a number; bits of the fraction; exponent of the smallest normal number.
 * The exponent of the greatest number is 1 minus that of the smallest one. Fraction and exponent
 * are 0 for integer types. has_no_inf: the type has no infinities, and only its greatest code is
 * NaN, so the exponent of its greatest number is 1 higher than that rule says. saturates: numbers
 * beyond the greatest one are rounded to it. */
static const struct format {
    const char *name;
    int size, fraction, least;
    bool has_no_inf, saturates;
} formats[] = {
    [TGL_F32] = {"f32", 4, 23, -126, false, false},
    [TGL_F64] = {"f64", 8, 52, -1022, false, false},
    [TGL_F16] = {"f16", 2, 10, -14, false, false},
    [TGL_BF16] = {"bf16", 2, 7, -126, false, false},
    [TGL_F8_E4M3] = {"e4m3", 1, 3, -6, true, true},
    [TGL_F8_E5M2] = {"e5m2", 1, 2, -14, false, true},
    [TGL_I8] = {"i8", 1, 0, 0, false, false},
    [TGL_I32] = {"i32", 4, 0, 0, false, false},
    [TGL_C64] = {"c64", 4, 23, -126, false, false},
    [TGL_C128] = {"c128", 8, 52, -1022, false, false},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* The format of a double: 11 bits of exponent with a bias of 1023, 52 bits of fraction. */
enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023, DOUBLE_SPECIAL = 0x7ff };
static const uint64_t hidden_bit = UINT64_C(1) << DOUBLE_FRACTION;

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^exponent, for exponents of doubles. ldexp() takes much longer, and tests compare millions of
 * elements. */
static double power_of_two(int exponent)
{
    if (exponent <= -DOUBLE_BIAS) return ldexp(1, exponent); /* denormal */
    return double_of((uint64_t)(exponent + DOUBLE_BIAS) << DOUBLE_FRACTION);
}

/* ---- Names and limits ------------------------------------------------------------------------ */

bool element_is_known(tgl_type type)
{
    return (unsigned)type < FORMATS && formats[type].name != NULL;
}

const char *element_type_name(tgl_type type)
{
    return element_is_known(type) ? formats[type].name : "?";
}

bool element_type_of(const char *name, tgl_type *type)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].name != NULL && strcmp(name, formats[i].name) == 0) {
            *type = (tgl_type)i;
            return true;
        }
    return false;
}

int element_parts(tgl_type type)
{
    return type == TGL_C64 || type == TGL_C128 ? 2 : 1;
}

bool element_is_integer(tgl_type type)
{
    return type == TGL_I8 || type == TGL_I32;
}

tgl_type element_accumulator(tgl_type type)
{
    if (element_is_integer(type)) return TGL_I32;
    if (element_parts(type) == 2) return type;
    return type == TGL_F64 ? TGL_F64 : TGL_F32;
}

double element_unit(tgl_type type)
{
    return element_is_integer(type) ? 0 : power_of_two(-formats[type].fraction - 1);
}

double element_scale(tgl_type type)
{
    return element_is_integer(type) ? (double)(UINT64_C(1) << (8 * formats[type].size - 1)) : 1;
}

double element_smallest(tgl_type type)
{
    return power_of_two(formats[type].least - formats[type].fraction);
}

double element_least_normal(tgl_type type)
{
    return power_of_two(formats[type].least);
}

double element_greatest(tgl_type type)
{
    if (element_is_integer(type)) return element_scale(type) - 1;
    const struct format *f = &formats[type];
    if (f->has_no_inf) return (2 - power_of_two(1 - f->fraction)) * power_of_two(2 - f->least);
    return (2 - power_of_two(-f->fraction)) * power_of_two(1 - f->least);
}

double element_half_ulp(tgl_type type, double x)
{
    const struct format *f = &formats[type];
    int exponent = f->least;
    if (element_is_integer(type)) return 0.5;
    if (fabs(x) >= power_of_two(f->least)) exponent = ilogb(x);
    const int greatest = 1 - f->least + f->has_no_inf;
    if (exponent > greatest) exponent = greatest;
    return power_of_two(exponent - f->fraction - 1);
}

/* ---- Formats of 16 and 8 bits -----------------------------------------------------------------
 */

/* significand * 2^-shift, rounded to the nearest integer, ties to even. shift is at least 1. */
static uint64_t shift_rounded(uint64_t significand, int shift)
{
    if (shift > DOUBLE_FRACTION + 1) return 0; /* less than half a unit in the last place */
    const uint64_t half = UINT64_C(1) << (shift - 1), rest = significand & (2 * half - 1);
    const uint64_t kept = significand >> shift;
    return kept + (rest > half || (rest == half && (kept & 1) != 0));
}

/* The code of infinity, whose exponent is one above that of the greatest number; for a type without
 * infinities, the code of NaN. */
static uint64_t infinity_code(const struct format *f)
{
    if (f->has_no_inf) return (UINT64_C(1) << (8 * f->size - 1)) - 1;
    return (uint64_t)(3 - 2 * f->least) << f->fraction;
}

/* The code of |x| for a finite double x, given its bits without the sign. A carry out of the
 * fraction correctly adds 1 to the exponent. */
static uint64_t encode_finite(const struct format *f, uint64_t magnitude)
{
    const int exponent = (int)(magnitude >> DOUBLE_FRACTION) - DOUBLE_BIAS;
    const int shift = DOUBLE_FRACTION - f->fraction;
    const uint64_t significand = (magnitude & (hidden_bit - 1)) | hidden_bit;
    if (exponent == -DOUBLE_BIAS) return 0; /* zero, or a denormal double */
    if (exponent < f->least) return shift_rounded(significand, shift + f->least - exponent);
    const uint64_t code =
        ((uint64_t)(exponent - f->least) << f->fraction) + shift_rounded(significand, shift);
    return code < infinity_code(f) ? code : infinity_code(f) - f->saturates;
}

static uint16_t encode(const struct format *f, double x)
{
    const uint64_t bits = bits_of(x), magnitude = bits << 1 >> 1;
    uint64_t code;
    if (isnan(x))
        code = infinity_code(f) | UINT64_C(1) << (f->fraction - 1);
    else if (isinf(x))
        code = infinity_code(f) - f->saturates;
    else
        code = encode_finite(f, magnitude);
    return (uint16_t)(bits >> 63 << (8 * f->size - 1) | code);
}

static inline double decode(const struct format *f, uint16_t code)
{
    const int sign_bit = 8 * f->size - 1;
    const uint64_t sign = (uint64_t)(code >> sign_bit) << 63;
    const uint64_t magnitude = code & ((UINT64_C(1) << sign_bit) - 1);
    const uint64_t exponent = magnitude >> f->fraction;
    const uint64_t fraction = magnitude & ((UINT64_C(1) << f->fraction) - 1);
    if (exponent == 0)
        return double_of(sign | bits_of((double)fraction * power_of_two(f->least - f->fraction)));
    const uint64_t wide = magnitude >= infinity_code(f)
                              ? DOUBLE_SPECIAL
                              : exponent + (uint64_t)(DOUBLE_BIAS + f->least - 1);
    return double_of(sign | wide << DOUBLE_FRACTION | fraction << (DOUBLE_FRACTION - f->fraction));
}

/* ---- Elements -------------------------------------------------------------------------------- */

double element_get(tgl_type type, const void *elements, int64_t at)
{
    switch (type) {
    case TGL_F32:
    case TGL_C64:
        return (double)((const float *)elements)[at];
    case TGL_F64:
    case TGL_C128:
        return ((const double *)elements)[at];
    case TGL_I8:
        return ((const int8_t *)elements)[at];
    case TGL_I32:
        return ((const int32_t *)elements)[at];
    case TGL_F8_E4M3:
    case TGL_F8_E5M2:
        return decode(&formats[type], ((const uint8_t *)elements)[at]);
    default:
        return decode(&formats[type], ((const uint16_t *)elements)[at]);
    }
}

void element_set(tgl_type type, void *elements, int64_t at, double x)
{
    switch (type) {
    case TGL_F32:
    case TGL_C64:
        ((float *)elements)[at] = (float)x;
        break;
    case TGL_F64:
    case TGL_C128:
        ((double *)elements)[at] = x;
        break;
    case TGL_I8:
        ((int8_t *)elements)[at] = (int8_t)element_round(type, x);
        break;
    case TGL_I32:
        ((int32_t *)elements)[at] = (int32_t)element_round(type, x);
        break;
    case TGL_F8_E4M3:
    case TGL_F8_E5M2:
        ((uint8_t *)elements)[at] = (uint8_t)encode(&formats[type], x);
        break;
    default:
        ((uint16_t *)elements)[at] = encode(&formats[type], x);
    }
}

/* Rounds x to the nearest integer of the type. If x is NaN, the result is the least integer of the
 * type. */
static double round_to_integer(tgl_type type, double x)
{
    const double least = -element_scale(type), greatest = element_greatest(type);
    if (!(x > least)) return least;
    return x < greatest ? nearbyint(x) : greatest;
}

double element_round(tgl_type type, double x)
{
    if (type == TGL_F32 || type == TGL_C64) return (double)(float)x;
    if (type == TGL_F64 || type == TGL_C128) return x;
    if (element_is_integer(type)) return round_to_integer(type, x);
    return decode(&formats[type], encode(&formats[type], x));
}

enum { BLOCK_WORDS = 512 }; /* number of 64-bit words that are searched at a time */

/* Whether all elements of a block are finite. A word of 64 bits holds one or several elements.
 * Their sign bits are cleared first. The exponent bits of an infinity or NaN are all ones, so
 * adding 1 to the exponent carries into the sign bit. */
static bool block_is_finite(tgl_type type, const char *block)
{
    const uint64_t element = UINT64_MAX >> (64 - 8 * formats[type].size);
    const uint64_t each = UINT64_MAX / element; /* the integer 1 in every element of a word */
    const uint64_t signs = each * (element / 2 + 1), step = each << formats[type].fraction;
    uint64_t carries = 0;
    for (int i = 0; i < BLOCK_WORDS; i++) {
        uint64_t word;
        memcpy(&word, block + i * sizeof word, sizeof word);
        carries |= (word & ~signs) + step;
    }
    return (carries & signs) == 0;
}

int64_t element_find_non_finite(tgl_type type, const void *elements, int64_t count)
{
    const int64_t size = formats[type].size;
    const int64_t block = BLOCK_WORDS * (int64_t)sizeof(uint64_t) / size;
    int64_t at = 0;
    if (element_is_integer(type)) return count;
    while (!formats[type].has_no_inf && count - at >= block &&
           block_is_finite(type, (const char *)elements + at * size))
        at += block;
    while (at < count && isfinite(element_get(type, elements, at)))
        at++;
    return at;
}

/* Common types have loops of their own, because tests read every row and column of a product many
 * times. */
void element_read(tgl_type type, const void *elements, int64_t first, int64_t step, int64_t count,
                  double *out)
{
    switch (type) {
    case TGL_F32:
        for (int64_t i = 0; i < count; i++)
            out[i] = (double)((const float *)elements)[first + i * step];
        break;
    case TGL_I8:
        for (int64_t i = 0; i < count; i++)
            out[i] = ((const int8_t *)elements)[first + i * step];
        break;
    case TGL_F16:
    case TGL_BF16: {
        const struct format f = formats[type];
        for (int64_t i = 0; i < count; i++)
            out[i] = decode(&f, ((const uint16_t *)elements)[first + i * step]);
        break;
    }
    default:
        for (int64_t i = 0; i < count; i++)
            out[i] = element_get(type, elements, first + i * step);
    }
}
