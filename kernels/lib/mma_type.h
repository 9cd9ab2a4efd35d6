/* SPDX-License-Identifier: Apache-2.0
 *
 * The mma.sync of kernels for several types: its depth, its fragments, and the size of an element.
 * A and B have one type (lib/element.h).
 */
#ifndef TGL_MMA_TYPE_H
#define TGL_MMA_TYPE_H

#include "lib/element.h"
#include "lib/mma.h"

#if TYPE_A != TYPE_B || (ACCUMULATE == TYPE_F64) != (TYPE_A == TYPE_F64)
#error "A and B have the same type; sums are FP32, or FP64 of FP64"
#endif

#define FRAGMENT 4 /* elements or registers of a lane's fragment of A, or of two of B */
#if TYPE_A == TYPE_F64
#define SIZE  8 /* bytes of an element */
#define MMA_K 8 /* depth of a step, in elements */
#define MMA   mma_f64
typedef double fragment_t;
#else
typedef unsigned fragment_t;
#if TYPE_A == TYPE_F32
#define SIZE  4
#define MMA_K 8
#define MMA   mma_tf32
#else
#define SIZE  2
#define MMA_K 16
#if TYPE_A == TYPE_BF16
#define MMA mma_bf16
#else
#define MMA mma_f16
#endif
#endif
#endif

#if TYPE_A == TYPE_F32
static __device__ __forceinline__ void round_fragments(fragment_t (*of)[FRAGMENT], const int count)
{
#pragma unroll
    for (int i = 0; i < count; i++)
#pragma unroll
        for (int e = 0; e < FRAGMENT; e++)
            of[i][e] = round_to_tf32(of[i][e]);
}
#else
#define round_fragments(of, count) (void)0
#endif

#endif
