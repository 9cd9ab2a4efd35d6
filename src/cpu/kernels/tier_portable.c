/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable tier: vectors of 16 bytes in the vector extensions of gcc and clang, which compile
 * to SSE2, NEON or scalar code. Masked loads and stores are loops. Where the target has no fused
 * multiply-add, products are rounded before they are added.
 */
#include "cpu/kernels/activate.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/pairs.h"
#include "cpu/kernels/tier_tables.h"
#include "cpu/kernels/unroll.h"

#include <string.h>

#define CONVERT_NAME(x) x##_portable
#include "cpu/kernels/template_convert.h"

#define MR                    4
#define NV                    2
#define FOR_TILES             CPU_TILES_4x2
#define FOR_TALLEST_TILES     CPU_TALLEST_4x2
#define FOR_ROWS              CPU_ROWS_4
#define COMPLEX_MR            2
#define COMPLEX_TILES         CPU_TILES_2x2
#define COMPLEX_TALLEST_TILES CPU_TALLEST_2x2
#define COMPLEX_ROWS          CPU_ROWS_2
#define FOR_VECTORS           CPU_VECTORS_2

typedef float vector_f32 __attribute__((vector_size(16)));
typedef double vector_f64 __attribute__((vector_size(16)));

/* Defines unaligned loads and stores of a vector, whole or only the first lanes. */
#define VECTORS(T, V, suffix)                                                                      \
    static inline V load_##suffix(const T *from)                                                   \
    {                                                                                              \
        V x;                                                                                       \
        memcpy(&x, from, sizeof x);                                                                \
        return x;                                                                                  \
    }                                                                                              \
    static inline void store_##suffix(T *to, V x)                                                  \
    {                                                                                              \
        memcpy(to, &x, sizeof x);                                                                  \
    }                                                                                              \
    static inline V load_some_##suffix(const T *from, int lanes)                                   \
    {                                                                                              \
        V x = {0};                                                                                 \
        if (lanes == sizeof x / sizeof *from)                                                      \
            memcpy(&x, from, sizeof x);                                                            \
        else                                                                                       \
            for (int i = 0; i < lanes; i++)                                                        \
                x[i] = from[i];                                                                    \
        return x;                                                                                  \
    }                                                                                              \
    static inline void store_some_##suffix(T *to, int lanes, V x)                                  \
    {                                                                                              \
        if (lanes == sizeof x / sizeof *to)                                                        \
            memcpy(to, &x, sizeof x);                                                              \
        else                                                                                       \
            for (int i = 0; i < lanes; i++)                                                        \
                to[i] = x[i];                                                                      \
    }                                                                                              \
    static inline void transpose_##suffix(V *x)                                                    \
    {                                                                                              \
        for (int i = 0; i < (int)(sizeof *x / sizeof(T)); i++)                                     \
            for (int j = 0; j < i; j++) {                                                          \
                const T swap = x[i][j];                                                            \
                x[i][j] = x[j][i];                                                                 \
                x[j][i] = swap;                                                                    \
            }                                                                                      \
    }

VECTORS(float, vector_f32, f32)
VECTORS(double, vector_f64, f64)

/* Not inlined: if a loop contains this conversion eight times, gcc spills registers and the loop
 * takes twice as long. */
static __attribute__((noinline)) vector_f32 widen_f16(const uint16_t *x)
{
    return (vector_f32){f16_to_f32_portable(x[0]), f16_to_f32_portable(x[1]),
                        f16_to_f32_portable(x[2]), f16_to_f32_portable(x[3])};
}

static inline vector_f32 widen_i8(const int8_t *x)
{
    return (vector_f32){x[0], x[1], x[2], x[3]};
}

static inline vector_f32 widen_bf16(const uint16_t *x)
{
    return (vector_f32){bf16_to_f32_portable(x[0]), bf16_to_f32_portable(x[1]),
                        bf16_to_f32_portable(x[2]), bf16_to_f32_portable(x[3])};
}

#define T                        float
#define LOAD_F16(p)              widen_f16(p)
#define LOAD_BF16(p)             widen_bf16(p)
#define LOAD_I8(p)               widen_i8(p)
#define V                        vector_f32
#define VLEN                     4
#define NAME(x)                  x##_portable_f32
#define COMPLEX_NAME(x)          x##_portable_c64
#define PACK_PAIRS(x)            x##_portable_f64
#define KC                       512
#define MASK                     int
#define MASK_OF(lanes)           (lanes)
#define LOAD(p)                  load_f32(p)
#define LOAD_MASKED(p, mask)     load_some_f32(p, mask)
#define STORE(p, v)              store_f32(p, v)
#define STORE_MASKED(p, mask, v) store_some_f32(p, mask, v)
#define BROADCAST(x)             ((vector_f32){0} + (float)(x))
#define FMA(a, b, c)             ((a) * (b) + (c))
#define TRANSPOSE(x)             transpose_f32(x)
#include "cpu/kernels/template.h"

#define T                        double
#define V                        vector_f64
#define VLEN                     2
#define NAME(x)                  x##_portable_f64
#define COMPLEX_NAME(x)          x##_portable_c128
#define KC                       384
#define MASK                     int
#define MASK_OF(lanes)           (lanes)
#define LOAD(p)                  load_f64(p)
#define LOAD_MASKED(p, mask)     load_some_f64(p, mask)
#define STORE(p, v)              store_f64(p, v)
#define STORE_MASKED(p, mask, v) store_some_f64(p, mask, v)
#define BROADCAST(x)             ((vector_f64){0} + (double)(x))
#define FMA(a, b, c)             ((a) * (b) + (c))
#define TRANSPOSE(x)             transpose_f64(x)
#include "cpu/kernels/template.h"
