/* SPDX-License-Identifier: Apache-2.0
 *
 * Shuffles with a generator of its own, so that an order is the same on every host.
 */
#include "sim/random_order.h"

/* A random number from 0 to count - 1, by SplitMix64 (Steele, Lea and Flood, "Fast splittable
 * pseudorandom number generators", 2014). */
static uint32_t random_below(tgl_machine *machine, uint32_t count)
{
    uint64_t z = machine->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % count);
}

void tgl_order_seed(tgl_machine *machine, uint64_t stream)
{
    machine->random =
        (machine->seed * 0x9e3779b97f4a7c15u + machine->number) ^ stream * 0xd1342543de82ef95u;
}

/* Fisher-Yates shuffle. */
void tgl_order_make(tgl_machine *machine, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; machine->is_shuffled && i > 1; i--) {
        const uint32_t j = random_below(machine, i), swapped = order[j];
        order[j] = order[i - 1];
        order[i - 1] = swapped;
    }
}
