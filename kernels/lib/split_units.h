/* SPDX-License-Identifier: Apache-2.0
 *
 * Split-K of persistent kernels, for gemm/wgmma.cu and gemm/dmma.cu: adds the sums of the units of
 * a tile, in the workspace. A unit is the part of a tile's K that a block sums at once
 * (lib/wgmma_units.h). SUM_THREADS threads of a block have SUMS sums each, and call
 * LAST_BLOCK_BARRIER() together. The file that includes this one defines these macros.
 */
#ifndef TGL_SPLIT_UNITS_H
#define TGL_SPLIT_UNITS_H

#include "lib/element.h"
#include "lib/last_block.h"
#include "lib/wgmma_units.h"

/* 16 bytes of sums. */
#if ACCUMULATE == TYPE_F64
enum { IN_VECTOR = 2 };
typedef double2 sum_vector;
#define MAKE_VECTOR(of)   make_double2((of)[0], (of)[1])
#define ADD_VECTOR(to, v) ((to)[0] += (v).x, (to)[1] += (v).y)
#else
enum { IN_VECTOR = 4 };
#if ACCUMULATE == TYPE_I32
typedef uint4 sum_vector;
#define MAKE_SUMS make_uint4
#else
typedef float4 sum_vector;
#define MAKE_SUMS make_float4
#endif
#define MAKE_VECTOR(of)   MAKE_SUMS((of)[0], (of)[1], (of)[2], (of)[3])
#define ADD_VECTOR(to, v) ((to)[0] += (v).x, (to)[1] += (v).y, (to)[2] += (v).z, (to)[3] += (v).w)
#endif

/* The number of units whose sums a thread loads together before it adds them. With small tiles it
 * would otherwise wait for L2 once per unit. */
#define SUM_REGISTERS (SUMS * (int)sizeof(accumulate_t) / 4)
enum { UNITS_AT_ONCE = SUM_REGISTERS <= 8 ? 4 : SUM_REGISTERS <= 16 ? 2 : 1 };
enum { VECTORS = SUMS / IN_VECTOR }; /* vectors of a thread's sums */

/* acc += the sums of UNITS_AT_ONCE units, or of `count`, at least 1, if these are fewer. from: this
 * thread's first vector of the first unit. */
static __device__ __forceinline__ void add_units(accumulate_t *acc, const sum_vector *from,
                                                 int count)
{
    /* A group of vectors is loaded before it is added. Of many sums of one unit, each vector is
     * added at once: registers for all of them would spill. */
    enum { GROUP = UNITS_AT_ONCE > 1 ? VECTORS : 1 };
#pragma unroll
    for (int group = 0; group < VECTORS; group += GROUP) {
        sum_vector loaded[UNITS_AT_ONCE][GROUP];
#pragma unroll
        for (int s = 0; s < UNITS_AT_ONCE; s++)
#pragma unroll
            for (int i = 0; i < GROUP; i++)
                if (s == 0 || s < count)
                    loaded[s][i] = __ldcg(&from[(s * VECTORS + group + i) * SUM_THREADS]);
#pragma unroll
        for (int s = 0; s < UNITS_AT_ONCE; s++)
#pragma unroll
            for (int i = 0; i < GROUP; i++)
                if (s == 0 || s < count) ADD_VECTOR(&acc[(group + i) * IN_VECTOR], loaded[s][i]);
    }
}

/* Stores the sums of unit *u in the workspace. Returns true in the tile's unit that finishes last:
 * acc is then the sum of all units of the tile, in the order of K. */
static __device__ __forceinline__ bool
sum_over_units(accumulate_t *acc, const struct tgl_gemm_args *args, const struct unit *u)
{
    sum_vector *sums = (sum_vector *)args->workspace +
                       (long long)u->tile * u->splits * (BM * BN / IN_VECTOR) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        sums[(u->split * VECTORS + i) * SUM_THREADS] = MAKE_VECTOR(&acc[i * IN_VECTOR]);
    if (!is_last_block(&args->counters[u->tile], u->splits)) return false;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        acc[i] = 0;
#pragma unroll 1
    for (int first = 0; first < u->splits; first += UNITS_AT_ONCE)
        add_units(acc, &sums[first * VECTORS * SUM_THREADS], u->splits - first);
    return true;
}

#endif
