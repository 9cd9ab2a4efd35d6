/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h, for f32: a matrix of f16, bf16 or int8 times a vector of f32.
 */

/* dot() prefetches rows of short types by software. Hardware prefetchers stop at the end of a page,
 * and a row of fewer than 2048 elements of 16 bits is shorter than a page. */
#define E            uint16_t
#define OF(x)        NAME(x##_of_f16)
#define LOAD_E(p)    LOAD_F16(p)
#define FETCH_ROW(p) __builtin_prefetch(p)
#include "cpu/kernels/template_vector.h"

#define E            uint16_t
#define OF(x)        NAME(x##_of_bf16)
#define LOAD_E(p)    LOAD_BF16(p)
#define FETCH_ROW(p) __builtin_prefetch(p)
#include "cpu/kernels/template_vector.h"

/* Four dot products of int8, modulo 2^32. gcc vectorises this loop, on x86 with VPMADDWD. */
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
    for (int64_t i = 0; i < rows; i += 4) { /* rows beyond the last one are replaced by the last
                                               row; their sums are dropped */
        const int8_t *four[4];
        for (int q = 0; q < 4; q++)
            four[q] = M + NAME(least)(i + q, rows - 1) * ld;
        NAME(dot_4_of_i8)(sums, four, k, integers);
        memcpy(y + i, sums, (size_t)NAME(least)(4, rows - i) * sizeof *y);
    }
}

/* combine() for int8 in f32 is exact up to k = 1024: |sum| <= 2^10 * 2^14 = 2^24. */
#define WITHOUT_DOT
#define E         int8_t
#define OF(x)     NAME(x##_of_i8)
#define LOAD_E(p) LOAD_I8(p)
#include "cpu/kernels/template_vector.h"
