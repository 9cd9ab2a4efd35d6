/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template_complex.h: operations on vectors of complex elements. Included once for whole
 * vectors and once for vectors of half the width. Macros, which are undefined at the end:
 *
 *   VECTOR, LANES   the vector type, and the number of its lanes, which have type T
 *   ON_VECTOR(x)    x with a suffix for this width
 *   SET(x), ADD(a, b, c)    all lanes x; a*b + c
 */

/* A vector whose complex elements are all (re, im). */
INLINE VECTOR ON_VECTOR(pairs)(T re, T im)
{
    const VECTOR low = SET(re), high = SET(im);
    return CPU_PAIRS(LANES, low, high);
}

/* z with the real and imaginary part of each complex element exchanged. */
INLINE VECTOR ON_VECTOR(exchanged)(VECTOR z)
{
    return CPU_EXCHANGED(LANES, z);
}

/* A vector of integers as wide as the lanes. */
typedef __typeof__((VECTOR){0} < (VECTOR){0}) ON_VECTOR(bits);

/* x with the bits inverted that are set in y. */
INLINE VECTOR ON_VECTOR(inverted)(VECTOR x, VECTOR y)
{
    return (VECTOR)((ON_VECTOR(bits))x ^ (ON_VECTOR(bits))y);
}

/* The complex elements of a*b from the sums x and y, which the head of template_complex.h
 * defines. */
INLINE VECTOR ON_VECTOR(joined)(VECTOR x, VECTOR y, VECTOR x_signs, VECTOR y_signs)
{
    return ON_VECTOR(inverted)(x, x_signs) + ON_VECTOR(inverted)(ON_VECTOR(exchanged)(y), y_signs);
}

/* (re + i*im) * z for each complex element of z. If im is 0, each part is only multiplied by re. */
INLINE VECTOR ON_VECTOR(scaled)(VECTOR z, T re, T im)
{
    const VECTOR product = SET(re) * z;
    if (im == 0) return product;
    return ADD(ON_VECTOR(pairs)(-im, im), ON_VECTOR(exchanged)(z), product);
}

#undef VECTOR
#undef LANES
#undef ON_VECTOR
#undef SET
#undef ADD
