/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner assumes of a GPU.
 */
#ifndef GPU_MACHINE_H
#define GPU_MACHINE_H

#include "tegula/dist.h"

#include <stdbool.h>

/* has_several_hosts: messages go over a network. given: members that are 0 get the GPU's. */
tgl_dist_machine gpu_machine_of(const tgl_device *dev, bool has_several_hosts,
                                const tgl_dist_machine *given);

#endif
