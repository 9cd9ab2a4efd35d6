/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves registers. The compiler would keep a value that is computed from x in a register for later
 * uses. After another call of opaque(x) it computes the value again, because it cannot know that
 * opaque(x) is x.
 */
#ifndef TGL_OPAQUE_H
#define TGL_OPAQUE_H

/* Returns `value`; the compiler cannot know that the result is equal to it. Emits no
 * instruction. */
static __device__ __forceinline__ int opaque(int value)
{
#ifndef TGL_SIM
    asm volatile("" : "+r"(value));
#endif
    return value;
}

#endif
