/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads of `count` floats, a constant, by float4 or float2 loads if count is a multiple of 4 or is
 * 2; the address is aligned to these.
 */
#ifndef TGL_STREAMING_H
#define TGL_STREAMING_H

/* From shared memory. */
static __device__ __forceinline__ void load_shared(float *v, const float *shared, const int count)
{
    if (count % 4 == 0) {
#pragma unroll
        for (int i = 0; i < count; i += 4) {
            const float4 x = *(const float4 *)&shared[i];
            v[i] = x.x, v[i + 1] = x.y, v[i + 2] = x.z, v[i + 3] = x.w;
        }
    } else if (count == 2) {
        const float2 x = *(const float2 *)shared;
        v[0] = x.x, v[1] = x.y;
    } else {
#pragma unroll
        for (int i = 0; i < count; i++)
            v[i] = shared[i];
    }
}

/* From global memory that is read once: the lines are evicted first (ld.global.cs). */
static __device__ __forceinline__ void load_streaming(float *v, const float *global,
                                                      const int count)
{
    if (count == 4) {
        const float4 x = __ldcs((const float4 *)global);
        v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
    } else if (count == 2) {
        const float2 x = __ldcs((const float2 *)global);
        v[0] = x.x, v[1] = x.y;
    } else {
#pragma unroll
        for (int i = 0; i < count; i++)
            v[i] = __ldcs(&global[i]);
    }
}

#endif
