/* SPDX-License-Identifier: Apache-2.0
 *
 * One shape, timed: Tegula and its peers in turn, in one process, on the same matrices.
 *
 * A round takes one sample of everybody, and the order turns from round to round. A sample is as
 * many calls as fill a few milliseconds, after a call that is not timed and brings caches and
 * threads back. What is compared is the median over the rounds of the ratio within each round, so
 * that a machine that becomes slower meanwhile slows all alike.
 */
#ifndef CLI_CONTEST_H
#define CLI_CONTEST_H

#include "peers.h"

#include <stdbool.h>

typedef struct contestant {
    const peer *peer; /* NULL: Tegula */
    bool right;       /* it takes the problem, and its product was right: it is timed */
    int calls;        /* of a sample */
    double *samples;  /* seconds a call, one for each round */
    double seconds;   /* the median */
    double ratio;     /* its time over Tegula's, the median over the rounds */
} contestant;

typedef struct contest_settings {
    tgl_device *dev;
    const peer *peers;
    int peer_count;
    int threads;   /* of the host; 1 saves the wait for other libraries' threads to go to sleep */
    double time;   /* seconds to spend on a shape, about */
    int repeat;    /* rounds; 0: as many as fit in `time`, but at least 5 */
    bool one_shot; /* time tgl_gemm(), not a kept plan */
    bool cpu_time; /* by processor time, which other processes do not lengthen; one host thread */
} contest_settings;

typedef struct contest {
    const contest_settings *settings;
    tgl_problem problem;
    tgl_plan *plan;
    tgl_timer *timer;
    void *A, *B, *C;       /* memory of the device */
    void *host_a, *host_b; /* what was put there; the same memory on a host device */
    contestant *all;       /* [0] is Tegula; 1 + peer_count */
    int rounds;
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
