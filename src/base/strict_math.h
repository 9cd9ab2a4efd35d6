/* SPDX-License-Identifier: Apache-2.0
 *
 * Included by the compiler into every file of the library and of the drop-in libraries in shims/
 * (-include). It stops the build if fast arithmetic is on (-ffast-math). With fast arithmetic,
 * activations would lose NaN and the terms of a sum would be added in another order. Besides, gcc
 * would link code into the library that flushes denormal numbers to zero in the whole process.
 */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||     \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "Tegula cannot be compiled with -ffast-math, -Ofast or parts of them: remove the flag"
#endif
