/* SPDX-License-Identifier: Apache-2.0
 *
 * A progress line on stderr, rewritten in place: percentage, current step, estimated time left.
 * Nothing is written unless stderr is a terminal.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

typedef struct progress {
    bool shown;
    double total;   /* amount of work, in any unit */
    double started; /* seconds of cli_clock() */
    double printed; /* when the line was last written */
} progress;

/* Seconds of a monotonic clock. */
double cli_clock(void);

void progress_start(progress *p, double total);

/* Updates the line, at most a few times a second. done: in the unit of `total`. what: the current
 * step. */
void progress_update(progress *p, double done, const char *what);

/* Clears the line, so that other text can be printed. */
void progress_clear(progress *p);

#endif
