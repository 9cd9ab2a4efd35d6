/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi_late_rank: rank 1 of 2 joins an all-gather after rank 0 has given up waiting and has reused
 * the memory of its arguments. MPI then completes the all-gather: rank 1 must still get the data
 * that rank 0 gave, and nothing may be written to rank 0's memory.
 */
#include "tegula/mpi.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BYTES = 1000, /* one round of the transport: after the first one rank 0 gives up */
    GIVEN = 10,   /* the value of each byte is GIVEN + rank */
    REUSED = 77,
    TAG = 5,
};

static char mine[BYTES], all[2 * BYTES];

static bool is_filled(const char *memory, size_t bytes, char value)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != value) return false;
    return true;
}

/* Replaces MPI's function, for libtegula_mpi too. MPI may read the data later, but Open MPI reads
 * it at once, so only the address shows whether the library passes the caller's memory. */
static bool reads_mine;

int MPI_Iallgather(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                   int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                   MPI_Request *request)
{
    reads_mine |= send == mine;
    return PMPI_Iallgather(send, send_count, send_type, receive, receive_count, receive_type, comm,
                           request);
}

static void say(int rank)
{
    MPI_Send(NULL, 0, MPI_BYTE, rank, TAG, MPI_COMM_WORLD);
}

static void hear(int rank)
{
    MPI_Recv(NULL, 0, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static bool give_up(const tgl_dist_transport *transport)
{
    if (transport->gather(transport->state, mine, all, BYTES) != TGL_COMMUNICATION) return false;
    memset(mine, REUSED, sizeof mine);
    memset(all, REUSED, sizeof all);
    say(1);
    hear(1);
    return !reads_mine && is_filled(mine, sizeof mine, REUSED) &&
           is_filled(all, sizeof all, REUSED);
}

static bool come_late(const tgl_dist_transport *transport)
{
    hear(0);
    const tgl_status status = transport->gather(transport->state, mine, all, BYTES);
    say(0);
    return status == TGL_OK && is_filled(all, BYTES, GIVEN) &&
           is_filled(all + BYTES, BYTES, GIVEN + 1);
}

int main(int argc, char **argv)
{
    int rank;
    tgl_dist_transport transport;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (tgl_dist_mpi_world(rank == 0 ? 0.2 : INFINITY, &transport) != TGL_OK) return EXIT_FAILURE;
    memset(mine, GIVEN + rank, sizeof mine);
    const bool ok = rank == 0 ? give_up(&transport) : come_late(&transport);
    if (!ok) {
        fprintf(stderr, "rank %d: memory of an all-gather that had failed was used\n", rank);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    puts("done");
    fflush(stdout);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
