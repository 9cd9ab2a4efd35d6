/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.sync, ldmatrix and stmatrix: instructions that all lanes of a warp execute together.
 */
#ifndef TGL_SIM_WARP_MMA_H
#define TGL_SIM_WARP_MMA_H

#include "sim/machine.h"

/* For each element of a (16 x k), b (k x 8) and the sums (16 x 8): lane + 32 * number of the
 * register that holds it. k is 16; 8 for TF32, 32 for I8. */
typedef struct tgl_fragments {
    uint32_t a[16 * 32], b[32 * 8], sums[16 * 8];
} tgl_fragments;

/* Determines the fragments of mma.sync. type: a tgl_type except TGL_F64; TGL_F32 means TF32. */
void tgl_warp_mma_fragments(int type, tgl_fragments *fragments);

/* Executes mma.sync: acc += a * b. type: a tgl_type, where TGL_F32 means TF32. */
void tgl_warp_mma(tgl_machine *machine, int type, void *acc, const void *a, const void *b,
                  const void *pc);
void tgl_warp_ldmatrix(tgl_machine *machine, unsigned *to, const void *row, int count,
                       int is_transposed, const void *pc);
void tgl_warp_stmatrix(tgl_machine *machine, void *row, const unsigned *from, int count,
                       int is_transposed, const void *pc);

#endif
