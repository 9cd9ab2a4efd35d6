/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a tier (an instruction set, device/tiers.h) for one element type. A tier's file
 * defines the macros below and includes this file once for each type. That makes a table of type
 * cpu_kernels (kernels.h), out of these parts:
 *
 *   template_tile.h     one register tile
 *   template_sizes.h    the functions of all sizes of tiles
 *   template_small.h    small products
 *   template_pack.h     packing
 *   template_lines.h    scaling, adding and finishing rows of C
 *   template_vector.h   matrix times vector (GEMV)
 *   template_short.h    GEMV for a matrix of a short type (f16, bf16, int8)
 *   template_peak.h     the rate of multiply-adds
 *   template_complex.h  the kernels of complex elements, whose two parts have this type
 *
 * Macros of the tier, for both types:
 *   MR, NV              the largest register tile: MR rows times NV vectors; it uses MR*NV + NV + 1
 *                       registers
 *   FOR_TILES           list of sizes (unroll.h): all tiles
 *   FOR_TALLEST_TILES   the tiles of MR rows
 *   FOR_ROWS            rows from 1 to MR
 *   FOR_VECTORS         vectors from 1 to SMALL_NV
 *   STEPS               optional: steps of k in an iteration of a tile's loop: 1 (default), 2 or 4
 *   SMALL_NV, WIDE_MR   optional: see template_small.h
 *   COMPLEX_...         the same for tiles of complex elements, which have half as many rows:
 *                       COMPLEX_MR, _TILES, _TALLEST_TILES, _ROWS and, with WIDE_MR, _WIDE_MR
 *
 * Macros of one type, which are undefined at the end:
 *   T                   element type, float or double
 *   V, VLEN             vector type, and its number of elements
 *   KC                  cpu_kernels.kc, the block size along k, found by measurement
 *   NAME(x)             x with the tier's and type's suffix
 *   COMPLEX_NAME(x)     the same for complex elements
 *   PACK_PAIRS(x)       optional: x with the suffix of the type that packs pairs of T: for float,
 *                       the suffix of double
 *   MASK                a mask type
 *   MASK_OF(lanes)      the mask in which the first `lanes` lanes, 1 to VLEN, are set
 *   LOAD(p), LOAD_MASKED(p, mask)          unaligned; lanes not set read nothing and give 0
 *   STORE(p, v), STORE_MASKED(p, mask, v)  unaligned; lanes not set write nothing
 *   BROADCAST(x), FMA(a, b, c)             a*b + c
 *   TRANSPOSE(x)        transposes V x[VLEN] in place
 *   LOAD_F16(p), LOAD_BF16(p), LOAD_I8(p)  for f32 only: V from VLEN elements of a short type
 *   ADD_PRODUCT(sum, a, b)                 optional: sum += a*b, rounded as FMA(), in a tile's loop
 *   HALF_V, HALF_LOAD, ...                 optional: half-width vectors (template_small.h)
 */
#ifndef SMALL_NV
#define SMALL_NV NV
#endif
#ifndef STEPS
#define STEPS 1
#endif
#ifndef ADD_PRODUCT
#define ADD_PRODUCT(sum, a, b) (sum) = FMA(a, b, sum)
#endif

#define INLINE static inline __attribute__((always_inline))
#define PARTS  1 /* real numbers in an element; template_complex.h defines it as 2 */

INLINE int64_t NAME(least)(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

INLINE T NAME(sum_lanes)(V x)
{
    T lanes[VLEN];
    memcpy(lanes, &x, sizeof lanes);
    for (int width = VLEN / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lanes[i] += lanes[i + width];
    return lanes[0];
}

#include "cpu/kernels/template_tile.h"

#include "cpu/kernels/template_sizes.h" /* needs template_tile.h */

#include "cpu/kernels/template_lines.h"
#include "cpu/kernels/template_pack.h"
#include "cpu/kernels/template_small.h"

#define E                      T
#define OF(x)                  NAME(x)
#define LOAD_E(p)              LOAD(p)
#define LOAD_FIRST_E(p, lanes) LOAD_MASKED(p, MASK_OF(lanes))
#include "cpu/kernels/template_vector.h"
#ifdef LOAD_BF16
#include "cpu/kernels/template_short.h"
#endif

#include "cpu/kernels/template_peak.h"

const cpu_kernels NAME(tgl_cpu_kernels) = {
    .element = sizeof(T),
    .parts = 1,
    .vector = VLEN,
    .mr = MR,
    .nv = NV,
    .small_nv = SMALL_NV,
    .kc = KC,
    FOR_TILES(TILE_ENTRIES) FOR_TALLEST_TILES(TALLEST_ENTRIES) FOR_VECTORS(SMALL_ENTRIES)
        .interleave = NAME(interleave),
    .copy = NAME(copy),
    .scale = NAME(scale),
    .reduce = NAME(reduce),
    .finish = NAME(finish),
    .dot = NAME(dot),
    .combine = NAME(combine),
#ifdef LOAD_BF16
    .short_dot = {NAME(dot_of_f16), NAME(dot_of_bf16), NAME(dot_of_i8)},
    .short_combine = {NAME(combine_of_f16), NAME(combine_of_bf16), NAME(combine_of_i8)},
#endif
    .fma_loop = NAME(fma_loop),
};

#include "cpu/kernels/template_complex.h"

#undef T
#undef V
#undef VLEN
#undef NAME
#undef COMPLEX_NAME
#undef PACK_PAIRS
#undef PARTS
#undef HALF_V
#undef HALF_LOAD
#undef HALF_STORE
#undef HALF_BROADCAST
#undef HALF_FMA
#undef HALF_OF
#undef KC
#undef MASK
#undef MASK_OF
#undef LOAD
#undef LOAD_MASKED
#undef STORE
#undef STORE_MASKED
#undef BROADCAST
#undef FMA
#undef ADD_PRODUCT
#undef TRANSPOSE
#undef LOAD_F16
#undef LOAD_BF16
#undef LOAD_I8
#undef INLINE
#undef TILE_VARIANTS
#undef TALLEST_VARIANTS
#undef TILE
#undef TILES
#undef TALLEST_TILES
#undef TILE_ENTRY
#undef TALLEST_ENTRY
#undef TILE_ENTRIES
#undef TALLEST_ENTRIES
#undef SMALL_ENTRIES
#undef SMALL_OF_HALF
