/* SPDX-License-Identifier: Apache-2.0
 *
 * One shape, timed: Tegula and its peers in turn, in one process, on the same matrices.
 *
 * Each round takes one sample of every contestant; the order rotates from round to round. A sample
 * is enough calls to fill a few milliseconds, after one call that is not timed, which warms caches
 * and threads. The result is the median over rounds of the ratio within a round, so that a change
 * of the machine's speed affects all contestants alike. On a device with its own memory successive
 * calls use different matrices, so that none is in the cache.
 */
#ifndef CLI_CONTEST_H
#define CLI_CONTEST_H

#include "peers.h"
#include "timed_operands.h"

#include <stdbool.h>

enum { CONTEST_ROUNDS_MAX = 101, CONTEST_CHECKS = 128 };

typedef struct contestant {
    const peer *peer;        /* NULL: Tegula */
    cublas_product *product; /* set if the peer is cuBLAS */
    bool right; /* it supports the problem, and its product was right; else it is not timed */
    int calls;  /* calls in a sample */
    double samples[CONTEST_ROUNDS_MAX]; /* seconds a call, one for each round */
    double seconds;                     /* the median */
    double spread;                      /* (upper quartile - minimum) / median of the samples */
    double ratio;                       /* its time / Tegula's time, median over the rounds */
} contestant;

/* An element of the product at which the result of every contestant is checked. */
typedef struct contest_check {
    int64_t b, i, j;
    int part;                   /* part of a complex element: 0: real, 1: imaginary */
    reference_element expected; /* without an epilogue */
} contest_check;

typedef struct contest_settings {
    tgl_device *dev;
    const peer *peers;
    int peer_count;
    int threads;           /* host threads; with 1, other libraries leave no spinning threads */
    double time;           /* approximate seconds to spend on a shape */
    int repeat;            /* number of rounds; 0: as many as fit in `time`, but at least 5 */
    bool one_shot;         /* time tgl_gemm(), not a kept plan */
    bool prepares[2];      /* whether A and B are prepared once, before the timing */
    tgl_plan_options plan; /* Tegula's plan, without the epilogue */
    tgl_epilogue epilogue; /* epilogue of Tegula's product; peers compute none */
    double *best_fma;      /* the best FMA rates of this run: f32, f64 */
    kept_matrices *kept;   /* host memory of the matrices, kept from shape to shape */
    bool cpu_time;         /* measure the processor time of this process; needs one thread */
} contest_settings;

typedef struct contest {
    const contest_settings *settings;
    tgl_problem problem;
    tgl_epilogue own_epilogue;
    const tgl_epilogue *epilogue; /* NULL: none */
    tgl_plan *plan;
    tgl_timer *timer;
    operands operands;
    contest_check checks[CONTEST_CHECKS];
    contestant all[1 + PEERS_MAX]; /* [0] is Tegula; 1 + peer_count are used */
    int rounds;
    int64_t calls;   /* calls so far; selects the operands of the next call */
    double fma;      /* FLOP/s of the FMA loop, the best of the run's samples; 0: not known */
    char error[256]; /* why Tegula's product was not right; empty: it was */
} contest;

/* Prepares, verifies and times all contestants. Returns the status of the call that failed, or
 * TGL_OK. The contest must be released in either case. */
tgl_status contest_run(contest *t, const contest_settings *settings, const tgl_problem *problem);
void contest_release(contest *t);

/* contest_spread(): the greatest spread of Tegula's or a peer's samples, on a quiet machine 0.02 to
 * 0.1. If it is above CONTEST_UNSTABLE_SPREAD, the medians mean little. */
#define CONTEST_UNSTABLE_SPREAD 0.25
double contest_spread(const contest *t);

/* The fastest peer (another library): the one with the least ratio. NULL: there is none. */
const contestant *contest_best_peer(const contest *t);

#endif
