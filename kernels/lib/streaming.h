/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads of `count` floats, a constant, four or two at once where count allows it; the address is on
 * as many floats.
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

/* From global memory that nobody writes and that is read once: first to go from the caches. */
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
