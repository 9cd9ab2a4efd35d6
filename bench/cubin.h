/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine code in a cubin tells: FFMAs, and the cycles that they take at least.
 */
#ifndef BENCH_CUBIN_H
#define BENCH_CUBIN_H

#include <stddef.h>

/* FFMAs whose operands are registers in the machine code of the kernel `symbol` in a cubin, for
 * sm_70 and later; 0: it has none, or the image is no cubin, as PTX is. */
size_t tgl_cubin_ffmas(const void *image, size_t size, const char *symbol);

/* Cycles from the first FFMA of the kernel to number `ffmas`, if no instruction waits for data: the
 * sum of the stall counts, the cycles until the warp may issue its next instruction. 0: there are
 * fewer FFMAs, or the image is no cubin. */
size_t tgl_cubin_cycles(const void *image, size_t size, const char *symbol, size_t ffmas);

#endif
