/* SPDX-License-Identifier: Apache-2.0
 *
 * A product for tests of plans: f32, not transposed, rows next to each other.
 */
#ifndef PLAN_SHAPE_H
#define PLAN_SHAPE_H

#include "plan/gemm.h"

static inline tgl_gemm_shape shape_of(int64_t m, int64_t n, int64_t k)
{
    return (tgl_gemm_shape){.m = m,
                            .n = n,
                            .k = k,
                            .type_a = TGL_F32,
                            .type_b = TGL_F32,
                            .type_c = TGL_F32,
                            .lda = k,
                            .ldb = n,
                            .ldc = n,
                            .batch = 1};
}

#endif
