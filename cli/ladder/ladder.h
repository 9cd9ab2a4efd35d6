/* SPDX-License-Identifier: Apache-2.0
 *
 * The ladder is a series of teaching kernels, from a naive kernel up. A rung is one of these
 * kernels; a chapter is the rungs of one element type and compute mode. This file runs a chapter at
 * one size: it checks every rung, then times it together with cuBLAS; on the simulator it counts
 * the memory accesses of the rung instead.
 *
 * A round takes one sample of cuBLAS and one of each rung; the order rotates from round to round.
 * Slow rungs are sampled only in some rounds, which are spread evenly. A sample is enough calls to
 * fill two milliseconds, after a warm-up call unless a call takes 50 ms or more. A percentage of
 * cuBLAS is the median, over the rounds, of the ratio of the two times in a round.
 */
#ifndef CLI_LADDER_H
#define CLI_LADDER_H

#include "cublas.h"
#include "truth.h"

#include <stdbool.h>

enum { RUNGS_MAX = 32, LADDER_ROUNDS_MAX = 25 };

/* A chapter of the ladder: the element type and compute mode of its rungs, and their names. */
typedef struct ladder_chapter {
    int number;
    const char *prefix; /* prefix of its rungs' names; "": all names that have no other chapter's
                           prefix */
    tgl_type type;
    tgl_compute compute;
    const char *what; /* the types, for messages, as "f32" */
} ladder_chapter;

enum { CHAPTERS = 3 };

/* The chapter with this number, which is from 1 to CHAPTERS. */
const ladder_chapter *ladder_chapter_number(int number);

/* A line of the results: a rung, the reference computed on the CPU (truth.h), or cuBLAS. */
typedef struct rung {
    const char *name;        /* as "naive"; "reference", "cublas" or "cublaslt" if it is not a
                                kernel */
    int number;              /* number of the kernel in the whole ladder; 0: it is not a
                                kernel */
    bool is_peer;            /* whether this entry is cuBLAS and not a kernel of the ladder */
    tgl_plan *plan;          /* NULL: it is not a kernel, or the kernel does not support the size */
    cublas_product *product; /* NULL: it is not cuBLAS, or cuBLAS does not support the problem */
    char note[200];          /* why there are no results; empty: there are results */
    bool failed;             /* whether there are no results because of an error */
    verdict verdict;
    tgl_counters counters; /* the simulator's counts of a single run */

    int calls, repeats;                /* number of calls in a sample; number of samples */
    double samples[LADDER_ROUNDS_MAX]; /* mean seconds of a call, for each round; 0: no sample was
                                          taken */
    double seconds, low, high;         /* median and quartiles of the samples in seconds; 0: not
                                          timed */
    double of_peer[CUBLAS_WAYS];       /* time of cuBLAS / time of this rung, for each cublas_way
                                          (cublas.h); 0: not known */
} rung;

typedef struct ladder_settings {
    tgl_device *dev;
    const ladder_chapter *chapter;
    cublas *cublas;    /* NULL: not available, or not requested */
    bool timed;        /* true: the rungs are timed; false: each rung runs exactly once */
    bool has_counters; /* whether the device counts memory accesses, as the simulator does */
} ladder_settings;

typedef struct ladder_size {
    const ladder_settings *settings;
    tgl_problem problem;
    operands operands;
    truth *truth;
    tgl_timer *timer;
    rung rungs[RUNGS_MAX]; /* the reference, then the kernels, then cuBLAS */
    int count;
    int rounds;
    int64_t calls; /* number of calls so far; operands_for() selects the operands of the next call
                      by it */
} ladder_size;

/* Checks all rungs at one size and, if settings->timed, times them. Before each step it calls
 * step(user, name of the rung). The failure of a single rung is kept in its note; returns TGL_OK,
 * or the status of a failure that affects all rungs. The caller must release *s in either case. */
tgl_status ladder_run(ladder_size *s, const ladder_settings *settings, const tgl_problem *problem,
                      void (*step)(void *user, const char *name), void *user);
void ladder_release(ladder_size *s);

#endif
