/* SPDX-License-Identifier: Apache-2.0
 *
 * setmaxnreg (sm_90a and later architectures with an "a" in their names) sets the number of
 * registers per thread to `count`. An increase waits until other warps of the block have released
 * enough registers. All warps of the warpgroup execute it. count: a constant, 24 to 256, a multiple
 * of 8.
 */
#ifndef TGL_SET_REGISTERS_H
#define TGL_SET_REGISTERS_H

#ifdef TGL_SIM
void tgl_sim_set_registers(int count);
#define REGISTERS_DECREASE(count) tgl_sim_set_registers(count)
#define REGISTERS_INCREASE(count) tgl_sim_set_registers(count)
#else
#define REGISTERS_DECREASE(count) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count))
#define REGISTERS_INCREASE(count) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count))
#endif

#endif
