/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma: instructions of a warpgroup, their groups (wgmma.commit_group), and the accumulator
 * registers whose results have not arrived.
 */
#ifndef TGL_SIM_WGMMA_GROUPS_H
#define TGL_SIM_WGMMA_GROUPS_H

#include "sim/machine.h"

/* Hooks of kernels/sim/hooks.h for wgmma and setmaxnreg (the others of wgmma: wgmma_registers.h,
 * wgmma_matrix.h). */
void tgl_wgmma(tgl_machine *machine, float *acc, const unsigned *left_fragment,
               unsigned long long left, unsigned long long right, int type, int right_type, int n,
               int left_k_major, int right_k_major, int scale_d, const void *pc);
void tgl_wgmma_commit(tgl_machine *machine);
void tgl_wgmma_wait(tgl_machine *machine, int pending);
void tgl_set_registers(tgl_machine *machine, int count, const void *pc);

/* Checks an access of the current thread to a register that may belong to an accumulator or a left
 * operand of wgmma. */
void tgl_wgmma_check_register(tgl_machine *machine, const char *address, unsigned bytes,
                              bool is_write, const void *pc);

void tgl_wgmma_start_block(tgl_machine *machine);
void tgl_wgmma_check_end(tgl_machine *machine);
void tgl_wgmma_free_block(tgl_sim_block *block);

#endif
