/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor map: a tensor in global memory and the box that a TMA copy moves. On a GPU it is the
 * driver's CUtensorMap, 128 bytes that only the hardware reads. The simulator has a layout of its
 * own. Plain C: the host code includes it, too.
 *
 * A kernel takes it by value, as `const __grid_constant__ struct tgl_tensor_map map`, and passes
 * its address to tma_load_2d() of lib/tma.h.
 */
#ifndef TGL_TMA_MAP_H
#define TGL_TMA_MAP_H

#ifdef __CUDACC__
struct __align__(64) tgl_tensor_map
{
    unsigned long long opaque[16];
};
#else
struct tgl_tensor_map {
    const void *base;
    unsigned size[5];      /* elements; dimension 0 is contiguous */
    long long stride[5];   /* bytes */
    unsigned short box[5]; /* elements of the box in each dimension */
    unsigned char rank;    /* 1..5 */
    unsigned char element; /* bytes of an element */
    unsigned char swizzle; /* bytes of the pattern: 0, 32, 64 or 128 */
    unsigned char is_tf32; /* F32 elements are rounded to TF32 on the way */
    unsigned char unused[42];
} __attribute__((aligned(64)));
#endif

#endif
