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

/* Cycles from the first FFMA of the kernel to number `ffmas`, if nothing has to be waited for: the
 * sum of the stall counts that the compiler has given the instructions, which the warp's next one
 * has to wait. 0: there are fewer FFMAs, or it cannot be told. */
size_t tgl_cubin_cycles(const void *image, size_t size, const char *symbol, size_t ffmas);

#endif
