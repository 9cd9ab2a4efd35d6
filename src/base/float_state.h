/* SPDX-License-Identifier: Apache-2.0
 *
 * The floating-point control word of a thread: rounding mode, and whether denormal numbers are
 * flushed to zero. It is the register MXCSR on x86 (Intel SDM vol. 1, 10.2.3) and FPCR on aarch64
 * (Arm ARM, C5.2.8).
 */
#ifndef TGL_FLOAT_STATE_H
#define TGL_FLOAT_STATE_H

#include <fenv.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

/* The floating-point control word of the calling thread (MXCSR, FPCR); on other processors only its
 * rounding mode. */
static inline unsigned tgl_float_control(void)
{
#if defined(__SSE__)
    return _mm_getcsr();
#elif defined(__aarch64__)
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (unsigned)control;
#else
    return (unsigned)fegetround();
#endif
}

/* Sets the calling thread's control word to `control`, a result of tgl_float_control() in
 * another thread, but clears the exception flags and disables traps. */
static inline void tgl_float_set_control(unsigned control)
{
#if defined(__SSE__)
    enum { FLAGS = 0x3f, MASKS = 0x1f80 };
    _mm_setcsr((control & ~(unsigned)FLAGS) | MASKS);
#elif defined(__aarch64__)
    enum { TRAPS = 0x9f00 };
    __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)(control & ~(unsigned)TRAPS)));
    feclearexcept(FE_ALL_EXCEPT);
#else
    fesetround((int)control);
    feclearexcept(FE_ALL_EXCEPT);
#endif
}

/* Raises the given exceptions, except those that the calling thread has already raised. */
static inline void tgl_float_raise(int exceptions)
{
    const int missing = exceptions & ~fetestexcept(FE_ALL_EXCEPT);
    if (missing != 0) feraiseexcept(missing);
}

#endif
