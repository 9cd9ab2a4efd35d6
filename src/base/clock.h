/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's clock.
 */
#ifndef TGL_CLOCK_H
#define TGL_CLOCK_H

#include <time.h>

/* Seconds of a monotonic clock. */
static inline double tgl_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
