/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps address arithmetic in a loop: the compiler does not move values that are derived from
 * opaque(x) out of the loop, where they would take registers.
 */
#ifndef TGL_OPAQUE_H
#define TGL_OPAQUE_H

/* The same value, about which the compiler knows nothing. Emits no instruction. */
static __device__ __forceinline__ int opaque(int value)
{
#ifndef TGL_SIM
    asm volatile("" : "+r"(value));
#endif
    return value;
}

#endif
