/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which clusters, the blocks of a cluster and the warps of a block run: ascending, or
 * random if the machine has a seed.
 */
#ifndef TGL_SIM_RANDOM_ORDER_H
#define TGL_SIM_RANDOM_ORDER_H

#include "sim/machine.h"

/* Starts the sequence of random numbers number `stream` of a launch: 0 for the order of its
 * clusters, c + 1 for orders in cluster number c. It depends on the seed, the number of the launch
 * and the stream, and not on what has run before. */
void tgl_order_seed(tgl_machine *machine, uint64_t stream);

/* order := 0, 1, ..., count - 1, shuffled if the machine has a seed. */
void tgl_order_make(tgl_machine *machine, uint32_t *order, uint32_t count);

#endif
