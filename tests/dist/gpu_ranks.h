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

/* What a rank does and finds. */
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

/* Ranks of a host; 0: all are of this one. */
extern int ranks_of_host;

/* Whether the planner finds collective operations much faster than messages; else much slower. */
extern bool prefers_collectives;

extern bool uses_defaults; /* the machine of the GPU, not one with slow links */

/* Runs a function on all ranks. */
void run_ranks(rank_state *states, int ranks, tgl_nccl_engine engine, double timeout_s,
               rank_function *function);

/* A counter of the fake driver, and the messages that the fake NCCL has moved. */
int fake_number(const char *name);
int nccl_messages(void);
int nccl_number(const char *name);

/* After a test: the driver was used rightly, and nothing is left. */
int check_fakes(void **state);

#endif
