/* SPDX-License-Identifier: Apache-2.0
 *
 * One shape, timed: Tegula and its peers in turn, in one process, on the same matrices.
 *
 * A round takes one sample of everybody, and the order turns from round to round. A sample is as
 * many calls as fill a few milliseconds, after a call that is not timed and brings caches and
 * threads back. What is compared is the median over the rounds of the ratio within each round, so
 * that a machine that becomes slower meanwhile slows all alike. On a device with memory of its own
 * the matrices change from call to call, so that none finds them in the cache.
 */
#ifndef CLI_CONTEST_H
#define CLI_CONTEST_H

#include "peers.h"
#include "timed_operands.h"

#include <stdbool.h>

typedef struct contestant {
    const peer *peer;        /* NULL: Tegula */
    cublas_product *product; /* of a peer that is cuBLAS */
    bool right;              /* it takes the problem, and its product was right: it is timed */
    int calls;               /* of a sample */
    double *samples;         /* seconds a call, one for each round */
    double seconds;          /* the median */
    double ratio;            /* its time over Tegula's, the median over the rounds */
} contestant;

typedef struct contest_settings {
    tgl_device *dev;
    const peer *peers;
    int peer_count;
    int threads;   /* of the host; 1 saves the wait for other libraries' threads to go to sleep */
    double time;   /* seconds to spend on a shape, about */
    int repeat;    /* rounds; 0: as many as fit in `time`, but at least 5 */
    bool one_shot; /* time tgl_gemm(), not a kept plan */
    tgl_plan_options plan; /* of Tegula's, but for the epilogue */
    tgl_epilogue epilogue; /* of Tegula's product; the peers' has none */
    bool cpu_time; /* by processor time, which other processes do not lengthen; one host thread */
} contest_settings;

typedef struct contest {
    const contest_settings *settings;
    tgl_problem problem;
    tgl_epilogue own_epilogue;
    const tgl_epilogue *epilogue; /* NULL: none */
    tgl_plan *plan;
    tgl_timer *timer;
    operands operands;
    contestant *all; /* [0] is Tegula; 1 + peer_count */
    int rounds;
    int64_t calls;   /* so far; chooses the operands of the next one */
    double fma;      /* FLOP/s of the FMA loop measured beside it; 0: not known */
    char error[256]; /* why Tegula's product was not right; empty: it was */
} contest;

/* Prepares, verifies and times. On failure of a call the status of that call. The contest has to be
 * released in either case. */
tgl_status contest_run(contest *t, const contest_settings *settings, const tgl_problem *problem);
void contest_release(contest *t);

/* The peer whose ratio is the least, or NULL. */
const contestant *contest_best_peer(const contest *t);

#endif
