/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers of a thread that wgmma instructions use: a wgmma_fence() must follow the last access to
 * an accumulator, or the last write to a left operand, before the next wgmma; and a left operand
 * must not be written while a wgmma may read it.
 */
#ifndef TGL_SIM_WGMMA_REGISTERS_H
#define TGL_SIM_WGMMA_REGISTERS_H

#include "sim/machine.h"

enum { TGL_WGMMA_FRAGMENT = 4 /* registers of a left operand */ };

/* Reports an error unless a wgmma_fence() follows the latest access to the accumulator.
 * Accumulators are tracked from their first wgmma on. */
void tgl_wgmma_check_fence(tgl_machine *machine, tgl_sim_thread *thread, const float *acc, int n,
                           const void *pc);

/* Records an access to registers from `address` up to, but excluding, `end`. */
void tgl_wgmma_touch_accumulators(tgl_sim_wgmma_thread *w, const char *address, const char *end);

/* Reports an error unless a wgmma_fence() follows the latest write to the left operand `fragment`.
 * Records that the group that is being issued reads it. Fragments are tracked from their first
 * wgmma on. */
void tgl_wgmma_use_fragment(tgl_machine *machine, tgl_sim_thread *thread, const unsigned *fragment,
                            const void *pc);

/* Checks a write of the current thread to a register that may belong to a left operand. */
void tgl_wgmma_check_fragments(tgl_machine *machine, const char *address, const char *end,
                               const void *pc);

/* The hook of wgmma_fence(). */
void tgl_wgmma_fence(tgl_machine *machine);

#endif
