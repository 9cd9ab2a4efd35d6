/* SPDX-License-Identifier: Apache-2.0
 *
 * A pack is 16 bytes of elements of A or B that a thread loads from global memory, by streaming
 * loads (__ldcs()), because the kernel reads each element only once. It takes one load, or several
 * loads of VEC elements (a macro of the kernel) if the operand is not aligned to 16 bytes. Elements
 * are converted to the accumulation type only when they are multiplied, because a conversion waits
 * for the load.
 */
#ifndef TGL_PACKS_H
#define TGL_PACKS_H

#include "lib/operand_type.h"

#if PACK % VEC
#error "VEC: a power of two; at most 16 bytes"
#endif
#define CHUNKS (PACK / VEC) /* loads of a pack */

/* The type of a load of VEC elements. */
#if TYPE_A == TYPE_F64 && VEC == 2
typedef double2 chunk_t;
#elif TYPE_A == TYPE_F32 && VEC == 4
typedef float4 chunk_t;
#elif TYPE_A == TYPE_F32 && VEC == 2
typedef float2 chunk_t;
#elif !IS_16_BITS && VEC == 1
typedef element_t chunk_t;
#elif VEC == 8
typedef uint4 chunk_t; /* elements 2i and 2i + 1 are the lower and the upper half of word i */
#elif VEC == 4
typedef uint2 chunk_t;
#elif VEC == 2
typedef unsigned chunk_t;
#else
typedef unsigned short chunk_t;
#endif

typedef struct pack {
    chunk_t chunk[CHUNKS]; /* each load has registers of its own, because code that joined two loads
                              would wait for them */
} pack_t;

/* Whether all rows of a matrix begin at multiples of 16 bytes. */
static __device__ __forceinline__ bool rows_are_packed(const element_t *matrix, long long ld)
{
    return (unsigned long long)matrix % 16 == 0 && ld % PACK == 0;
}

/* ---- Loads ----------------------------------------------------------------------------------- */

/* Loads VEC elements. */
static __device__ __forceinline__ chunk_t load_chunk(const element_t *at)
{
    return __ldcs((const chunk_t *)at);
}

#ifndef LOAD_SCALAR
#define LOAD_SCALAR(at) __ldcs(at)
#endif

/* Loads VEC elements by scalar loads: element e if first + e < left. The others are 0. */
static __device__ __forceinline__ chunk_t load_part_of_chunk(const element_t *at, int first,
                                                             int left)
{
#if IS_16_BITS
#define OR_0(e) (first + (e) < left ? (unsigned)LOAD_SCALAR(&at[e].bits) : 0u)
#define PAIR(e) (OR_0(e) | OR_0((e) + 1) << 16)
#else
#define OR_0(e) (first + (e) < left ? LOAD_SCALAR(&at[e]) : (element_t)0)
#endif
#if VEC == 1
    return (chunk_t)OR_0(0);
#elif TYPE_A == TYPE_F64
    return make_double2(OR_0(0), OR_0(1));
#elif TYPE_A == TYPE_F32 && VEC == 4
    return make_float4(OR_0(0), OR_0(1), OR_0(2), OR_0(3));
#elif TYPE_A == TYPE_F32
    return make_float2(OR_0(0), OR_0(1));
#elif VEC == 8
    return make_uint4(PAIR(0), PAIR(2), PAIR(4), PAIR(6));
#elif VEC == 4
    return make_uint2(PAIR(0), PAIR(2));
#else
    return PAIR(0);
#endif
#undef PAIR
#undef OR_0
}

/* ---- Conversion ------------------------------------------------------------------------------ */

/* Converts the VEC elements of a load. */
static __device__ __forceinline__ void convert_chunk(accumulate_t *to, chunk_t chunk)
{
#if VEC == 1 && IS_16_BITS
    const element_t x = {chunk};
    to[0] = from_a(x);
#elif VEC == 1
    to[0] = chunk;
#elif VEC == 8
    convert_words(to, chunk);
#elif IS_16_BITS && VEC == 4
    convert_pair(&to[0], chunk.x);
    convert_pair(&to[2], chunk.y);
#elif IS_16_BITS
    convert_pair(&to[0], chunk);
#elif VEC == 4
    unpack(to, chunk);
#else
    to[0] = chunk.x, to[1] = chunk.y;
#endif
}

/* Converts all elements of a pack (16 bytes of a matrix). */
static __device__ __forceinline__ void unpack_all(accumulate_t *to, const pack_t *pack)
{
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
        convert_chunk(&to[c * VEC], pack->chunk[c]);
}

/* Converts UNIT elements of a pack from number `first` on, a constant multiple of UNIT. */
static __device__ __forceinline__ void unpack_unit(accumulate_t *to, const pack_t *pack,
                                                   const int first)
{
#if VEC == 8
    convert_pair(&to[0], first == 0 ? pack->chunk[0].x : pack->chunk[0].z);
    convert_pair(&to[2], first == 0 ? pack->chunk[0].y : pack->chunk[0].w);
#else
#pragma unroll
    for (int c = 0; c < UNIT / VEC; c++)
        convert_chunk(&to[c * VEC], pack->chunk[first / VEC + c]);
#endif
}

#endif
