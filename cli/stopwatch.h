/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a plan takes on a device, with nobody to compare it with.
 */
#ifndef CLI_STOPWATCH_H
#define CLI_STOPWATCH_H

#include "timed_operands.h"

typedef struct stopwatch {
    const operands *operands;
    tgl_timer *timer;
    int64_t calls; /* so far; chooses the operands of the next one */
} stopwatch;

/* The stopwatch has to be released, on failure too. */
tgl_status stopwatch_make(stopwatch *w, const operands *o);
void stopwatch_release(stopwatch *w);

/* *seconds := of one run, the mean over runs that fill about `least` seconds, at least one, after a
 * run that is not timed. */
tgl_status stopwatch_run(stopwatch *w, const tgl_plan *plan, double least, double *seconds);

/* Likewise the median of so many samples. samples <= 31. */
tgl_status stopwatch_median(stopwatch *w, const tgl_plan *plan, double least, int samples,
                            double *seconds);

#endif
