/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of a machine, and the threads of its blocks: a fiber and a stack for each.
 */
#ifndef TGL_SIM_MACHINE_THREADS_H
#define TGL_SIM_MACHINE_THREADS_H

#include "sim/machine.h"

bool tgl_machine_init(tgl_machine *machine, bool is_helper);
void tgl_machine_free(tgl_machine *machine);

/* Gives the first `count` threads of a block a stack, unless they have one. False: no memory. */
bool tgl_machine_make_threads(tgl_machine *machine, tgl_sim_block *block, unsigned count);

/* The entry function of a thread's fiber: runs the kernel. argument: a tgl_sim_thread. */
void tgl_machine_thread_main(void *argument);

/* Calls tgl_fiber_forget() for the stacks of all threads, because an error has stopped the
 * launch. */
void tgl_machine_forget_threads(const tgl_machine *machine);

#endif
