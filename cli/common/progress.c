/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the progress line.
 */
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double cli_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Whether stderr is a terminal that supports escape sequences, unlike one with TERM=dumb. */
static bool is_capable_terminal(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && terminal != NULL && terminal[0] != '\0' &&
           strcmp(terminal, "dumb") != 0;
}

void progress_start(progress *p, double total)
{
    *p = (progress){.shown = is_capable_terminal(), .total = total, .started = cli_clock()};
}

void progress_update(progress *p, double done, const char *what)
{
    const double now = cli_clock();
    if (!p->shown || now - p->printed < 0.2) return;
    p->printed = now;
    const double elapsed = now - p->started;
    fprintf(stderr, "\r\033[K%3.0f %%  %s", p->total > 0 ? 100 * done / p->total : 0, what);
    if (done > 0 && elapsed > 1) {
        const long left = (long)(elapsed * (p->total - done) / done + 0.5);
        if (left >= 60)
            fprintf(stderr, "  %ld min %ld s left", left / 60, left % 60);
        else
            fprintf(stderr, "  %ld s left", left);
    }
    fflush(stderr);
}

void progress_clear(progress *p)
{
    if (p->shown && p->printed > 0) fputs("\r\033[K", stderr);
    p->printed = 0;
}
