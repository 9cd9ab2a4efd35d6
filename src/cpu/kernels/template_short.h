/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h, for f32: a matrix of f16, bf16 or int8 times a vector of f32.
 */

/* The first lanes, by way of a buffer: there are no masks for short elements. */
INLINE V NAME(load_first_f16)(const uint16_t *from, int lanes)
{
    uint16_t buffer[VLEN] = {0};
    memcpy(buffer, from, (size_t)lanes * sizeof *buffer);
    return LOAD_F16(buffer);
}

INLINE V NAME(load_first_bf16)(const uint16_t *from, int lanes)
{
    uint16_t buffer[VLEN] = {0};
    memcpy(buffer, from, (size_t)lanes * sizeof *buffer);
    return LOAD_BF16(buffer);
}

INLINE V NAME(load_first_i8)(const int8_t *from, int lanes)
{
    int8_t buffer[VLEN] = {0};
    memcpy(buffer, from, (size_t)lanes * sizeof *buffer);
    return LOAD_I8(buffer);
}

/* Short rows reach the end of a page, where hardware prefetchers stop, sooner: FETCH_ROW. */
#define E                      uint16_t
#define OF(x)                  NAME(x##_of_f16)
#define LOAD_E(p)              LOAD_F16(p)
#define LOAD_FIRST_E(p, lanes) NAME(load_first_f16)(p, lanes)
#define FETCH_ROW(p)           __builtin_prefetch(p)
#include "cpu/kernels/template_vector.h"

#define E                      uint16_t
#define OF(x)                  NAME(x##_of_bf16)
#define LOAD_E(p)              LOAD_BF16(p)
#define LOAD_FIRST_E(p, lanes) NAME(load_first_bf16)(p, lanes)
#define FETCH_ROW(p)           __builtin_prefetch(p)
#include "cpu/kernels/template_vector.h"

/* Four dot products of int8, modulo 2^32: a loop that gcc vectorises, on x86 by VPMADDWD. */
static void NAME(dot_4_of_i8)(uint32_t y[4], const int8_t *const M[4], int64_t k, const int16_t *x)
{
    const int8_t *const a = M[0], *const b = M[1], *const c = M[2], *const d = M[3];
    uint32_t sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
    for (int64_t p = 0; p < k; p++) {
        sum_a += (uint32_t)(a[p] * x[p]);
        sum_b += (uint32_t)(b[p] * x[p]);
        sum_c += (uint32_t)(c[p] * x[p]);
        sum_d += (uint32_t)(d[p] * x[p]);
    }
    y[0] = sum_a, y[1] = sum_b, y[2] = sum_c, y[3] = sum_d;
}

static void NAME(dot_of_i8)(void *to, const void *from, int64_t ld, int64_t rows, int64_t k,
                            const void *by)
{
    uint32_t *y = to, sums[4];
    const int8_t *M = from;
    const T *x = by;
    int16_t integers[CPU_VECTOR_STEPS];
    for (int64_t p = 0; p < k; p++)
        integers[p] = (int16_t)x[p];
    for (int64_t i = 0; i < rows; i += 4) { /* behind the last row it is repeated */
        const int8_t *four[4];
        for (int q = 0; q < 4; q++)
            four[q] = M + NAME(least)(i + q, rows - 1) * ld;
        NAME(dot_4_of_i8)(sums, four, k, integers);
        memcpy(y + i, sums, (size_t)NAME(least)(4, rows - i) * sizeof *y);
    }
}

/* Sums of up to 1024 products of int8 are exact in f32: at most 2^10 * 2^14. */
#define WITHOUT_DOT
#define E                      int8_t
#define OF(x)                  NAME(x##_of_i8)
#define LOAD_E(p)              LOAD_I8(p)
#define LOAD_FIRST_E(p, lanes) NAME(load_first_i8)(p, lanes)
#include "cpu/kernels/template_vector.h"
