/* SPDX-License-Identifier: Apache-2.0
 *
 * Extracts 16 bytes at any address from the two aligned 16-byte words that contain them.
 */
#ifndef TGL_UNALIGNED_H
#define TGL_UNALIGNED_H

/* Returns bytes skip to skip + 15 of the 32 bytes low, high. skip: 0 to 15. */
static __device__ __forceinline__ uint4 join_words(uint4 low, uint4 high, int skip)
{
    unsigned w[5] = {low.x, low.y, low.z, low.w, high.x};
    unsigned v[3] = {high.y, high.z, high.w};
    const int bits = skip % 4 * 8;
    if (skip & 8) {
        w[0] = w[2], w[1] = w[3], w[2] = w[4];
        w[3] = v[0], w[4] = v[1], v[0] = v[2];
    }
    if (skip & 4) {
        w[0] = w[1], w[1] = w[2], w[2] = w[3];
        w[3] = w[4], w[4] = v[0];
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        w[i] = (unsigned)(((unsigned long long)w[i + 1] << 32 | w[i]) >> bits);
    return make_uint4(w[0], w[1], w[2], w[3]);
}

#endif
