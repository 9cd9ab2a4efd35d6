/* SPDX-License-Identifier: Apache-2.0
 *
 * Delays address arithmetic: values derived from opaque(x) are not hoisted out of a loop, which
 * would keep registers live.
 */
#ifndef TGL_OPAQUE_H
#define TGL_OPAQUE_H

/* The same value, of which the compiler knows nothing. Emits no instruction. */
static __device__ __forceinline__ int opaque(int value)
{
#ifndef TGL_SIM
    asm volatile("" : "+r"(value));
#endif
    return value;
}

#endif
