/* SPDX-License-Identifier: Apache-2.0
 *
 * Dynamic shared memory, whose size the host sets at launch. More than 48 KB of shared memory per
 * block are available only as dynamic shared memory.
 */
#ifndef TGL_DYNAMIC_SHARED_H
#define TGL_DYNAMIC_SHARED_H

/* alignment: 16 to 1024 bytes. The kernel's static shared memory lies before the dynamic one. */
#ifdef TGL_SIM
#define DYNAMIC_SHARED_ALIGNED(alignment, type, name, count)                                       \
    __shared__ __align__(alignment)                                                                \
    type name[count]
#else
#define DYNAMIC_SHARED_ALIGNED(alignment, type, name, count)                                       \
    extern __shared__ __align__(alignment)                                                         \
    type name[]
#endif

#define DYNAMIC_SHARED(type, name, count) DYNAMIC_SHARED_ALIGNED(16, type, name, count)

#endif
