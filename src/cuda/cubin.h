/* SPDX-License-Identifier: Apache-2.0
 *
 * What a cubin says of itself.
 */
#ifndef TGL_CUDA_CUBIN_H
#define TGL_CUDA_CUBIN_H

#include <stddef.h>

/* FFMAs of registers in the machine code of the kernel `symbol` in a cubin, for sm_70 and later; 0:
 * it has none, or it cannot be told, as in PTX. */
size_t tgl_cubin_ffmas(const void *image, size_t size, const char *symbol);

#endif
