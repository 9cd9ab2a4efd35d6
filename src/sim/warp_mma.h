/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.sync, ldmatrix and stmatrix: instructions that all lanes of a warp execute together.
 */
#ifndef TGL_SIM_WARP_MMA_H
#define TGL_SIM_WARP_MMA_H

#include "sim/machine.h"

/* type: a tgl_type; TGL_F32 for TF32. */
void tgl_warp_mma(void *run, int type, void *acc, const void *a, const void *b, const void *pc);
void tgl_warp_ldmatrix(void *run, unsigned *to, const void *row, int count, int is_transposed,
                       const void *pc);
void tgl_warp_stmatrix(void *run, void *row, const unsigned *from, int count, int is_transposed,
                       const void *pc);

#endif
