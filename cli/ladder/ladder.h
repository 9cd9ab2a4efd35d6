/* SPDX-License-Identifier: Apache-2.0
 *
 * A chapter of the ladder at one size: every rung is checked, then timed together with cuBLAS, or
 * on the simulator counted.
 *
 * Each round takes one sample of every rung and of cuBLAS; the order rotates from round to round.
 * Slow rungs take part in few rounds, spread evenly. A sample is enough calls to fill two
 * milliseconds, after a warm-up call. Percentages of cuBLAS are medians of the ratio within a
 * round.
 */
#ifndef CLI_LADDER_H
#define CLI_LADDER_H

#include "cublas.h"
#include "truth.h"

#include <stdbool.h>

enum { RUNGS_MAX = 32 };

/* What a chapter multiplies, and the names of its rungs. */
typedef struct ladder_chapter {
    int number;
    const char *prefix; /* of its rungs' names; "": those with no other chapter's prefix */
    tgl_type type;
    tgl_compute compute;
    const char *what; /* "f32" */
} ladder_chapter;

enum { CHAPTERS = 3 };

/* number: 1 to CHAPTERS. */
const ladder_chapter *ladder_chapter_number(int number);

typedef struct rung {
    const char *name;        /* "naive", "reference", "cublas", "cublaslt" */
    int number;              /* in the whole ladder; 0: the reference, or cuBLAS */
    bool is_peer;            /* cuBLAS, which is not a rung */
    tgl_plan *plan;          /* NULL: not a kernel of the device, or it does not support the size */
    cublas_product *product; /* NULL: not cuBLAS */
    char note[200];          /* why there are no results; empty: there are some */
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
    const ladder_chapter *chapter;
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

/* Checks and times all rungs at one size; calls step(user, name of the rung) before each step. The
 * failure of one rung is kept in its note. Returns the status of a failure that concerns all of
 * them. *s must be released in either case. */
tgl_status ladder_run(ladder_size *s, const ladder_settings *settings, const tgl_problem *problem,
                      void (*step)(void *user, const char *name), void *user);
void ladder_release(ladder_size *s);

#endif
