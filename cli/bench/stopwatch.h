/* SPDX-License-Identifier: Apache-2.0
 *
 * Times a plan on a device, without peers.
 */
#ifndef CLI_STOPWATCH_H
#define CLI_STOPWATCH_H

#include "timed_operands.h"

typedef struct stopwatch {
    const operands *operands;
    tgl_timer *timer;
    int64_t calls; /* calls so far; selects the operands of the next call */
} stopwatch;

/* Makes a stopwatch, which must be released even after a failure. */
tgl_status stopwatch_make(stopwatch *w, const operands *o);
void stopwatch_release(stopwatch *w);

/* *seconds := the mean time of a run, over enough runs to take about `least` seconds, after a
 * warm-up run. */
tgl_status stopwatch_run(stopwatch *w, const tgl_plan *plan, double least, double *seconds);

/* *seconds := the median of `samples` results of stopwatch_run(). samples: at most 31. */
tgl_status stopwatch_median(stopwatch *w, const tgl_plan *plan, double least, int samples,
                            double *seconds);

#endif
