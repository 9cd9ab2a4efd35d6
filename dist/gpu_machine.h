/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner assumes of a GPU.
 */
#ifndef GPU_MACHINE_H
#define GPU_MACHINE_H

#include "tegula/dist.h"

#include <stdbool.h>

/* The machine that the planner assumes: *given, in which members that are 0 get the values of this
 * GPU. has_several_hosts: whether messages go over a network. */
tgl_dist_machine gpu_machine_of(const tgl_device *dev, bool has_several_hosts,
                                const tgl_dist_machine *given);

#endif
