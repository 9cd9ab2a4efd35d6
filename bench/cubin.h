/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts FFMA instructions in the machine code of a cubin, and the cycles that they take at least.
 */
#ifndef BENCH_CUBIN_H
#define BENCH_CUBIN_H

#include <stddef.h>

/* The number of FFMA instructions with register operands in the kernel `symbol` of a cubin, for
 * sm_70 and later. 0: there are none, or the image is not a cubin (but PTX, for example). */
size_t tgl_cubin_ffmas(const void *image, size_t size, const char *symbol);

/* The cycles from the first FFMA of the kernel to FFMA number `ffmas`, if no instruction waits for
 * data. This is the sum of the instructions' stall counts, where 0 counts as 1; a stall count is
 * the number of cycles until the warp may issue its next instruction. 0: there are fewer FFMAs, or
 * the image is not a cubin. */
size_t tgl_cubin_cycles(const void *image, size_t size, const char *symbol, size_t ffmas);

#endif
