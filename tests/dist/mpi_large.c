/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi_large: rank 0 of 2 sends a message of more than MESSAGE_MAX bytes (dist/transport_mpi.c),
 * which is counted in blocks.
 */
#include "tegula/mpi.h"

#include <stdio.h>
#include <stdlib.h>

static const size_t BYTES = ((size_t)1 << 30) + 3 * ((size_t)1 << 19) + 5;

static unsigned char *memory;

/* A byte that differs between neighbours, and between blocks of a power of two. */
static unsigned char value_at(size_t i)
{
    return (unsigned char)((i * 2654435761u) >> 24);
}

int main(void)
{
    tgl_dist_transport transport;
    void *group;
    if (tgl_dist_mpi_world(60, &transport) != TGL_OK) return EXIT_FAILURE;
    memory = calloc(BYTES, 1);
    if (memory == NULL) return EXIT_FAILURE;
    for (size_t i = 0; i < BYTES && transport.rank == 0; i++)
        memory[i] = value_at(i);
    const tgl_dist_message message = {.rank = 1 - transport.rank,
                                      .send = transport.rank == 0 ? memory : NULL,
                                      .receive = transport.rank == 1 ? memory : NULL,
                                      .bytes = BYTES};
    if (transport.begin(transport.state, &message, 1, &group) != TGL_OK ||
        transport.wait(transport.state, group) != TGL_OK)
        return EXIT_FAILURE;
    size_t i = 0;
    while (i < BYTES && memory[i] == value_at(i))
        i++;
    if (i < BYTES) fprintf(stderr, "rank %d: byte %zu is wrong\n", transport.rank, i);
    free(memory);
    transport.close(transport.state);
    return i == BYTES ? EXIT_SUCCESS : EXIT_FAILURE;
}
