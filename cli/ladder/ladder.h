/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a chapter of the ladder at one size: checks every rung, then times it together with cuBLAS;
 * on the simulator counts its memory accesses instead.
 *
 * Each round takes one sample of every rung and of cuBLAS; the order rotates from round to round.
 * Slow rungs are sampled in few rounds, which are spread evenly. A sample is enough calls to fill
 * two milliseconds, after a warm-up call. Percentages of cuBLAS are medians of the ratio within a
 * round.
 */
#ifndef CLI_LADDER_H
#define CLI_LADDER_H

#include "cublas.h"
#include "truth.h"

#include <stdbool.h>

enum { RUNGS_MAX = 32, LADDER_ROUNDS_MAX = 25 };

/* A chapter: its types, and the names of its rungs. */
typedef struct ladder_chapter {
    int number;
    const char *prefix; /* prefix of its rungs' names; "": the names that no other prefix matches */
    tgl_type type;
    tgl_compute compute;
    const char *what; /* the types, for messages: "f32" */
} ladder_chapter;

enum { CHAPTERS = 3 };

/* The chapter with this number, 1 to CHAPTERS. */
const ladder_chapter *ladder_chapter_number(int number);

typedef struct rung {
    const char *name;        /* "naive", "reference", "cublas", "cublaslt" */
    int number;              /* number in the whole ladder; 0: the reference or cuBLAS */
    bool is_peer;            /* cuBLAS, which is not a rung */
    tgl_plan *plan;          /* NULL: not a kernel of the device, or it does not support the size */
    cublas_product *product; /* NULL: not cuBLAS */
    char note[200];          /* why there are no results; empty: there are results */
    bool failed;             /* there are no results because of an error */
    verdict verdict;
    tgl_counters counters; /* counts of a single run on the simulator */

    int calls, repeats;                /* calls in a sample; number of samples */
    double samples[LADDER_ROUNDS_MAX]; /* seconds a call for each round; 0: not sampled */
    double seconds, low, high;         /* the median and the quartiles; 0: not timed */
    double of_peer[CUBLAS_WAYS];       /* time of cuBLAS / time of the rung; 0: not known */
} rung;

typedef struct ladder_settings {
    tgl_device *dev;
    const ladder_chapter *chapter;
    cublas *cublas;    /* NULL: not available, or not requested */
    bool timed;        /* false: each rung runs exactly once */
    bool has_counters; /* the device counts memory accesses */
} ladder_settings;

typedef struct ladder_size {
    const ladder_settings *settings;
    tgl_problem problem;
    operands operands;
    truth *truth;
    tgl_timer *timer;
    rung rungs[RUNGS_MAX]; /* the reference, the kernels, cuBLAS */
    int count;
    int rounds;
    int64_t calls; /* number of calls so far; selects the operands of the next call */
} ladder_size;

/* Checks and times all rungs at one size; calls step(user, name of the rung) before each step. The
 * failure of one rung is kept in its note. Returns the status of a failure that concerns all of
 * them. *s must be released in either case. */
tgl_status ladder_run(ladder_size *s, const ladder_settings *settings, const tgl_problem *problem,
                      void (*step)(void *user, const char *name), void *user);
void ladder_release(ladder_size *s);

#endif
