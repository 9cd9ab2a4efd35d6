/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which clusters, the blocks of a cluster and the warps of a block run: ascending, or
 * random if the machine has a seed.
 */
#ifndef TGL_SIM_RANDOM_ORDER_H
#define TGL_SIM_RANDOM_ORDER_H

#include "sim/machine.h"

/* Seeds the generator from the machine's seed, the number of the launch and `stream`, so that an
 * order does not depend on earlier launches. stream: 0 for the order of the clusters; c + 1 for the
 * orders within cluster c. */
void tgl_order_seed(tgl_machine *machine, uint64_t stream);

/* order := 0, 1, ..., count - 1; shuffled if the machine has a seed. */
void tgl_order_make(tgl_machine *machine, uint32_t *order, uint32_t count);

#endif
