/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that are threads, each with a device of the fake driver and a communicator of
 * tegula/nccl.h.
 */
#ifndef GPU_RANKS_H
#define GPU_RANKS_H

#include "tegula/nccl.h"

#include <stdbool.h>

enum { RANKS = 4, TIMEOUT = 20 };

typedef struct rank_state rank_state;
typedef void rank_function(rank_state *s);

/* The arguments and results of a rank. */
struct rank_state {
    int rank, ranks;
    unsigned char id[TGL_NCCL_ID_BYTES];
    double timeout_s;
    tgl_nccl_engine engine;
    rank_function *function;
    tgl_device *dev;
    tgl_dist *dist;
    tgl_status status;
    char error[400];
    bool ok;
    double seconds;
    int64_t panels;
};

/* Number of ranks for which communicators are opened, if the ranks above those of run_ranks() are
 * absent; 0: none is absent. */
extern int ranks_in_id;

/* Number of ranks that appear to be on the same host; 0: all are. */
extern int ranks_of_host;

/* true: collective operations look much faster than messages to the planner; false: much slower. */
extern bool prefers_collectives;

extern bool
    uses_defaults; /* plan for the GPU's own tgl_dist_machine, not for one with slow links */

/* Links are fast, and products take waves of this many elements of C; 0: slow links. */
extern double wave_elements;

/* Number of allocations by which libtegula_dist may still get host memory on rank 1, from the
 * opening of the communicator on; -1: no limit. Not with a sanitizer, which has its own allocator.
 */
extern int spare_allocations;

/* Runs a function on all ranks. */
void run_ranks(rank_state *states, int ranks, tgl_nccl_engine engine, double timeout_s,
               rank_function *function);

/* fake_number(): a counter of the fake driver. nccl_messages(): number of messages of the fake
 * NCCL. nccl_number(): another counter of the fake NCCL. */
int fake_number(const char *name);
int nccl_messages(void);
int nccl_number(const char *name);

/* For the teardown of a test: fails if the driver was misused, or if an object of the driver is
 * left. */
int check_fakes(void **state);

#endif
