/* SPDX-License-Identifier: Apache-2.0
 *
 * float4 (128-bit) loads and stores of F32. They fall back to scalar accesses where rows are
 * unaligned or fewer than four floats exist.
 */
#ifndef TGL_LOAD_STORE_H
#define TGL_LOAD_STORE_H

/* Whether every row of a matrix is aligned to 16 bytes, as float4 loads and stores require. */
static __device__ __forceinline__ bool rows_are_aligned(const float *matrix, long long ld)
{
    return (unsigned long long)matrix % 16 == 0 && ld % 4 == 0;
}

/* to[0..3] := v, for fragments that live in registers as plain arrays. */
static __device__ __forceinline__ void unpack(float *to, float4 v)
{
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
}

/* Loads four floats of shared memory, aligned to 16 bytes, into registers: one LDS.128. */
static __device__ __forceinline__ void load_fragment(float *fragment, const float *shared)
{
    unpack(fragment, *(const float4 *)shared);
}

/* Loads p[0..3]. Only the first `count` elements exist (count may be < 0), the others are 0. */
static __device__ __forceinline__ float4 load_float4(const float *p, int count, bool aligned)
{
    if (aligned && count >= 4) return *(const float4 *)p;
    return make_float4(count > 0 ? p[0] : 0.0f, count > 1 ? p[1] : 0.0f, count > 2 ? p[2] : 0.0f,
                       count > 3 ? p[3] : 0.0f);
}

/* Stores one element of alpha*A*B + beta*C. beta == 0 does not read C. */
static __device__ __forceinline__ void store_float(float *c, float sum, float alpha, float beta)
{
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;
}

/* As store_float(), for c[0..3], of which only the first `count` elements exist. sum: four floats
 * in registers. */
static __device__ __forceinline__ void store_float4(float *c, const float *sum, float alpha,
                                                    float beta, int count, bool aligned)
{
    if (aligned && count >= 4) {
        float4 v = make_float4(alpha * sum[0], alpha * sum[1], alpha * sum[2], alpha * sum[3]);
        if (beta != 0.0f) {
            const float4 old = *(const float4 *)c;
            v.x += beta * old.x;
            v.y += beta * old.y;
            v.z += beta * old.z;
            v.w += beta * old.w;
        }
        *(float4 *)c = v;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < count) store_float(c + i, sum[i], alpha, beta);
}

#endif
