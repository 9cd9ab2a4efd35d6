/* SPDX-License-Identifier: Apache-2.0
 *
 * The speeds of a GPU and of its links that the planner assumes.
 */
#ifndef GPU_MACHINE_H
#define GPU_MACHINE_H

#include "tegula/dist.h"

#include <stdbool.h>

/* Returns *given, in which members that are 0 are replaced by the values of this GPU.
 * has_several_hosts: messages go over a network. */
tgl_dist_machine gpu_machine_of(const tgl_device *dev, bool has_several_hosts,
                                const tgl_dist_machine *given);

#endif
