/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves registers. The compiler keeps a value that is computed from x in a register for later uses.
 * It computes a value from opaque(x) again at each use, because it cannot know that opaque(x) is x.
 */
#ifndef TGL_OPAQUE_H
#define TGL_OPAQUE_H

/* Returns `value`, in a way that the compiler cannot see. Emits no instruction. */
static __device__ __forceinline__ int opaque(int value)
{
#ifndef TGL_SIM
    asm volatile("" : "+r"(value));
#endif
    return value;
}

#endif
