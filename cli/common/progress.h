/* SPDX-License-Identifier: Apache-2.0
 *
 * A progress line on stderr, rewritten in place: percentage, current step, estimated time left.
 * Nothing is written unless stderr is a terminal that supports escape sequences.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

typedef struct progress {
    bool shown;
    double total;   /* amount of work, in an arbitrary unit */
    double started; /* cli_clock() at the start, in seconds */
    double printed; /* cli_clock() when the line was last written; 0: it is not on the screen */
} progress;

/* The time in seconds of a clock that is never set back (CLOCK_MONOTONIC). */
double cli_clock(void);

void progress_start(progress *p, double total);

/* Updates the line, at most five times a second. done: the work that is done, in the unit of
 * `total`. what: the name of the current step. */
void progress_update(progress *p, double done, const char *what);

/* Clears the line, so that other text can be printed in its place. */
void progress_clear(progress *p);

#endif
