/* SPDX-License-Identifier: Apache-2.0
 *
 * The type of A and B in kernels that multiply on CUDA cores. Both have the same type, and elements
 * of 16 bits are converted to F32 when they are multiplied.
 */
#ifndef TGL_OPERAND_TYPE_H
#define TGL_OPERAND_TYPE_H

#include "lib/element.h"
#include "lib/load_store.h"

typedef element_a element_t; /* type of A and B */

#if TYPE_A != TYPE_B
#error "TYPE_A and TYPE_B are the same"
#endif
#if (TYPE_A == TYPE_F64) != (ACCUMULATE == TYPE_F64)
#error "ACCUMULATE: F64 for F64, else F32"
#endif

#if TYPE_A == TYPE_F64
#define PACK 2 /* elements in 16 bytes */
#elif TYPE_A == TYPE_F32
#define PACK 4
#else
#define PACK 8
#endif
#define UNIT       (ACCUMULATE == TYPE_F64 ? 2 : 4) /* accumulators in 16 bytes */
#define IS_16_BITS (PACK == 8)

#if IS_16_BITS
/* Converts the two elements of a word. */
static __device__ __forceinline__ void convert_pair(accumulate_t *to, unsigned word)
{
#if TYPE_A == TYPE_BF16
    to[0] = __uint_as_float(word << 16);
    to[1] = __uint_as_float(word & 0xffff0000u);
#else
    const element_t low = {(unsigned short)word}, high = {(unsigned short)(word >> 16)};
    to[0] = from_a(low);
    to[1] = from_a(high);
#endif
}

/* Converts the eight elements of 16 bytes. */
static __device__ __forceinline__ void convert_words(accumulate_t *to, uint4 words)
{
    convert_pair(&to[0], words.x);
    convert_pair(&to[2], words.y);
    convert_pair(&to[4], words.z);
    convert_pair(&to[6], words.w);
}
#endif

/* Loads UNIT values of shared memory, which are aligned to 16 bytes. */
static __device__ __forceinline__ void load_unit(accumulate_t *to, const accumulate_t *shared)
{
#if ACCUMULATE == TYPE_F64
    const double2 v = *(const double2 *)shared;
    to[0] = v.x, to[1] = v.y;
#else
    unpack(to, *(const float4 *)shared);
#endif
}

#endif
