/* SPDX-License-Identifier: Apache-2.0
 *
 * Split-K of persistent kernels, for gemm/wgmma.cu and gemm/dmma.cu: adds the sums of the units of
 * a tile, in the workspace. A unit is the part of a tile's K that a block sums at once
 * (lib/wgmma_units.h). SUM_THREADS threads of a block have SUMS sums each. SUM_SLICES groups of as
 * many threads add them, and call LAST_BLOCK_BARRIER() together. The file that includes this one
 * defines these macros.
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

/* SUM_ROOM: registers that a thread with sums may have. By default those at launch: a scheduler has
 * 512 for each lane, which its warps share, in multiples of 8. */
#ifndef SUM_ROOM
#define SCHEDULER_WARPS ((THREADS / 32 * MIN_BLOCKS + 3) / 4)
#define SUM_ROOM        (SCHEDULER_WARPS <= 2 ? 255 : 512 / SCHEDULER_WARPS / 8 * 8)
#endif
#define SUM_REGISTERS (SUMS * (int)sizeof(accumulate_t) / 4)
#ifndef OTHER_REGISTERS
#define OTHER_REGISTERS 40 /* of a thread, beside its sums and loaded sums */
#endif
#define HAS_ROOM_FOR(units) (SUM_REGISTERS * ((units) + 1) + OTHER_REGISTERS <= SUM_ROOM)

/* The number of units whose sums a thread loads together before it adds them. With small tiles it
 * would otherwise wait for L2 once per unit. With tiles of SATURATING bytes or more the loads of
 * one unit suffice: an SM gets about 64 bytes a clock from L2, with a latency of about 600 clocks,
 * so that 38 KB in flight reach this rate. */
enum { SATURATING = 1 << 16, TILE_SUM_BYTES = BM * BN * (int)sizeof(accumulate_t) };
enum {
    UNITS_AT_ONCE = TILE_SUM_BYTES >= SATURATING ? 1
                    : HAS_ROOM_FOR(4)            ? 4
                    : HAS_ROOM_FOR(3)            ? 3
                    : HAS_ROOM_FOR(2)            ? 2
                                                 : 1
};
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

/* Stores the sums of unit *u, which slice 0 has, in the workspace. Returns true in the tile's unit
 * that finishes last: acc of slice s is then the sum of the s'th part of the tile's units, in the
 * order of K. */
static __device__ __forceinline__ bool
sum_over_units(accumulate_t *acc, const struct tgl_gemm_args *args, const struct unit *u, int slice)
{
    sum_vector *sums = (sum_vector *)args->workspace +
                       (long long)u->tile * u->splits * (BM * BN / IN_VECTOR) +
                       threadIdx.x % SUM_THREADS;
    if (slice == 0)
#pragma unroll
        for (int i = 0; i < VECTORS; i++)
            sums[(u->split * VECTORS + i) * SUM_THREADS] = MAKE_VECTOR(&acc[i * IN_VECTOR]);
    if (!is_last_block(&args->counters[u->tile], u->splits)) return false;
    const int part = (u->splits + SUM_SLICES - 1) / SUM_SLICES, begin = slice * part;
    const int end = begin + part < u->splits ? begin + part : u->splits;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        acc[i] = 0;
#pragma unroll 1
    for (int first = begin; first < end; first += UNITS_AT_ONCE)
        add_units(acc, &sums[first * VECTORS * SUM_THREADS], end - first);
    return true;
}

#endif
