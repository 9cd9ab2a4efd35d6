/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared memory whose size the host gives at launch, the only way to more than 48 KB.
 */
#ifndef TGL_DYNAMIC_SHARED_H
#define TGL_DYNAMIC_SHARED_H

#ifdef TGL_SIM
#define DYNAMIC_SHARED(type, name, count) __shared__ __align__(16) type name[count]
#else
#define DYNAMIC_SHARED(type, name, count) extern __shared__ __align__(16) type name[]
#endif

#endif
