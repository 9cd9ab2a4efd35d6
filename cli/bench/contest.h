/* SPDX-License-Identifier: Apache-2.0
 *
 * Times the contestants on one shape, in turn, in one process, on the same matrices. The
 * contestants are Tegula and its peers, which are the libraries that it is compared with.
 *
 * Each round takes one sample of every contestant; the order rotates from round to round. A sample
 * is enough calls to fill a few milliseconds. Unless a call takes 0.1 s or more, calls that are not
 * timed precede it: one to warm the caches; with several threads, calls for a millisecond, so that
 * all threads are awake. The result is the median over the rounds of
 * (time of the peer / time of Tegula) within a round, so that a change of the machine's speed
 * affects all contestants alike. On a device with its own memory successive calls use different
 * matrices, so that no call finds its matrices in the cache.
 */
#ifndef CLI_CONTEST_H
#define CLI_CONTEST_H

#include "peers.h"
#include "timed_operands.h"

#include <stdbool.h>

enum { CONTEST_ROUNDS_MAX = 101, CONTEST_CHECKS = 128 };

typedef struct contestant {
    const peer *peer;        /* NULL: this contestant is Tegula */
    cublas_product *product; /* NULL: the peer is not cuBLAS, or does not support the problem */
    bool right; /* whether the contestant supports the problem, and the result of its first call was
                   right. Otherwise the contestant is not timed */
    int calls;  /* number of calls in a sample */
    double samples[CONTEST_ROUNDS_MAX]; /* mean seconds of a call, for each round */
    double seconds;                     /* median of `samples` */
    double spread;                      /* (upper quartile - minimum) / median of `samples` */
    double ratio;                       /* median over the rounds of (seconds of this contestant /
                                           seconds of Tegula) */
} contestant;

/* An element of the product that is checked in the result of every contestant: part `part` of
 * element (i, j) of product b of the batch. */
typedef struct contest_check {
    int64_t b, i, j;
    int part;                   /* 0: the real part, or the whole of a real element; 1: the
                                   imaginary part */
    reference_element expected; /* the expected value, before an epilogue */
} contest_check;

typedef struct contest_settings {
    tgl_device *dev;
    const peer *peers;
    int peer_count;
    int threads;           /* host threads of each library; if 1, no library leaves spinning threads
                              behind */
    double time;           /* approximate number of seconds to spend on a shape */
    int repeat;            /* number of rounds; 0: as many as fit in `time`, but at least ROUNDS_MIN
                              and at most CONTEST_ROUNDS_MAX */
    bool one_shot;         /* true: time tgl_gemm(), which takes no plan; false: time
                              tgl_plan_run_operands() */
    bool prepares[2];      /* whether A (index 0) and B (index 1) are prepared once, before the
                              timing */
    tgl_plan_options plan; /* options of Tegula's plan; the epilogue is in `epilogue` */
    tgl_epilogue epilogue; /* epilogue of Tegula's product; the peers compute none */
    double *best_fma;      /* two elements: the highest FMA rates measured in this run, of f32 and
                              of f64 */
    kept_matrices *kept;   /* host memory of the matrices, which is reused for the next shape */
    bool cpu_time;         /* measure processor time of this process instead of elapsed time; needs
                              threads == 1 */
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
    contestant all[1 + PEERS_MAX]; /* [0] is Tegula, [1 + i] is peer i; 1 + peer_count elements are
                                      used */
    int rounds;
    int64_t calls;   /* number of calls so far; operands_for() selects the operands of the next call
                        by it */
    double fma;      /* FLOP/s of a loop of FMA instructions on the device, the best of this run's
                        samples; 0: not known */
    char error[256]; /* what was wrong with Tegula's product; empty: it was right */
} contest;

/* Prepares, verifies and times all contestants on a problem. Returns TGL_OK or the status of the
 * call that failed. The caller must release the contest in either case. */
tgl_status contest_run(contest *t, const contest_settings *settings, const tgl_problem *problem);
void contest_release(contest *t);

/* contest_spread(): the greatest spread of the contestants' samples. On a quiet machine it is 0.02
 * to 0.1; above CONTEST_UNSTABLE_SPREAD the medians are not reliable. */
#define CONTEST_UNSTABLE_SPREAD 0.25
double contest_spread(const contest *t);

/* The fastest peer (another library), which is the one with the least ratio. NULL: no peer was
 * timed. */
const contestant *contest_best_peer(const contest *t);

#endif
