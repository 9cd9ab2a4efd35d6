/* SPDX-License-Identifier: Apache-2.0
 *
 * A single product that may take long: prints its estimated time before it starts, if that is a
 * minute or more, and shows the progress on a terminal, if it is 2 seconds or more, as the fraction
 * of the estimated time that has passed.
 */
#ifndef CLI_LONG_WORK_H
#define CLI_LONG_WORK_H

#include "progress.h"
#include "tegula/tegula.h"

#include <pthread.h>

typedef struct long_work {
    progress line;
    double estimate; /* seconds */
    bool is_shown;   /* whether a thread shows the progress line */
    bool is_over;    /* whether the work has ended; guarded by `lock`, as `line` is */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
} long_work;

/* The estimated duration of a product on the device, in seconds; 0: short, or not known. */
double long_work_estimate(tgl_device *dev, const tgl_problem *problem);

void long_work_start(long_work *w, tgl_device *dev, const tgl_problem *problem);
void long_work_end(long_work *w);

#endif
