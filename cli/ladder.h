/* SPDX-License-Identifier: Apache-2.0
 *
 * The ladder at one size: every rung checked, then timed beside cuBLAS in the same rounds, or on
 * the simulator counted.
 *
 * A round takes one sample of everybody, and the order turns from round to round; rungs that are
 * slow take part in few rounds, spread over all. A sample is as many calls as fill two
 * milliseconds, after one that is not timed. Percentages of cuBLAS are medians of the ratio within
 * a round.
 */
#ifndef CLI_LADDER_H
#define CLI_LADDER_H

#include "cublas.h"
#include "truth.h"

#include <stdbool.h>

enum { RUNGS_MAX = 32 };

typedef struct rung {
    const char *name;        /* "naive", "reference", "cublas", "cublaslt" */
    bool is_peer;            /* cuBLAS: not a step of the ladder */
    tgl_plan *plan;          /* NULL: not a kernel of the device, or it does not take the size */
    cublas_product *product; /* NULL: not cuBLAS */
    char note[200];          /* why there are no figures; empty: there are */
    bool failed;             /* and that is a fault */
    verdict verdict;
    tgl_counters counters; /* sim; of a single run */

    int calls, repeats;          /* of a sample; samples */
    double *samples;             /* seconds a call for each round; 0: it took no part */
    double seconds, low, high;   /* the median and the quartiles; 0: not timed */
    double of_peer[CUBLAS_WAYS]; /* cuBLAS's time over its own; 0: not known */
} rung;

typedef struct ladder_settings {
    tgl_device *dev;
    cublas *cublas;    /* NULL: not there, or not asked for */
    bool timed;        /* false: each rung runs exactly once */
    bool has_counters; /* the device counts what a run does */
} ladder_settings;

typedef struct ladder_size {
    const ladder_settings *settings;
    tgl_problem problem;
    operands operands;
    truth *truth;
    tgl_timer *timer;
    rung rungs[RUNGS_MAX]; /* in their order: reference, the kernels, cuBLAS */
    int count;
    int rounds;
    int64_t calls; /* so far; chooses the operands of the next one */
} ladder_size;

/* Checks and times all rungs at one size; step(user, rung's name) is called before each part. What
 * goes wrong with one rung is noted there. On failure of everything the status; to be released in
 * either case. */
tgl_status ladder_run(ladder_size *s, const ladder_settings *settings, const tgl_problem *problem,
                      void (*step)(void *user, const char *name), void *user);
void ladder_release(ladder_size *s);

#endif
