/* SPDX-License-Identifier: Apache-2.0
 *
 * Times a plan on a device. Other libraries are not timed.
 */
#ifndef CLI_STOPWATCH_H
#define CLI_STOPWATCH_H

#include "timed_operands.h"

typedef struct stopwatch {
    const operands *operands;
    tgl_timer *timer;
    int64_t calls; /* number of calls so far; operands_for() selects the operands of the next call
                      by it */
} stopwatch;

/* Makes a stopwatch for plans that run on these operands. The caller must release it even after a
 * failure. */
tgl_status stopwatch_make(stopwatch *w, const operands *o);
void stopwatch_release(stopwatch *w);

/* Runs the plan once for warming up, once to estimate its time, and then as often as fits in
 * `least` seconds, but at least once and at most 4096 times. *seconds := the mean time of the last
 * group of runs. */
tgl_status stopwatch_run(stopwatch *w, const tgl_plan *plan, double least, double *seconds);

/* *seconds := the median of `samples` results of stopwatch_run(). samples is at most 31. */
tgl_status stopwatch_median(stopwatch *w, const tgl_plan *plan, double least, int samples,
                            double *seconds);

#endif
