/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves registers: the compiler does not keep values that are derived from opaque(x), neither from
 * before a loop nor from an earlier use, but computes them again.
 */
#ifndef TGL_OPAQUE_H
#define TGL_OPAQUE_H

/* Returns `value`. The compiler knows nothing about the result. Emits no instruction. */
static __device__ __forceinline__ int opaque(int value)
{
#ifndef TGL_SIM
    asm volatile("" : "+r"(value));
#endif
    return value;
}

#endif
