/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the cases of `tegula check`, which are random problems, with the kernels of a device. For a
 * GPU several host threads work on different cases at the same time, because the references take
 * longer than the products.
 */
#ifndef CLI_CHECK_RUN_H
#define CLI_CHECK_RUN_H

#include "check_subjects.h"

typedef struct check_settings {
    tgl_device *dev;
    check_drawing drawing;
    int64_t first, count; /* number of the first case, and how many cases are run */
    const char *kernel;   /* "auto", a kernel string, or a group of kernels; see kernel_names.h */
    bool in_turn;         /* each case runs with the planner's choice and only one of the other
                             kernels */
    int workers;
} check_settings;

typedef struct check_results {
    check_subject *subjects;
    int count;
    int64_t cases;         /* number of complete cases; below settings.count after SIGINT or
                              SIGTERM */
    int64_t failed_case;   /* number of the first case that failed; -1: no case has failed */
    char failure[1024];    /* what is wrong with case failed_case, and how to reproduce it */
    char unsupported[256]; /* why some kernel does not support some case; empty: all kernels support
                              all cases */
} check_results;

/* Runs the cases. Returns EXIT_DONE, even if results are wrong or a signal has stopped the run;
 * another exit code if memory or the device failed. The first SIGINT or SIGTERM makes each running
 * case end after its current kernel, and no other case start; a second SIGINT ends the program. */
int check_run(const check_settings *settings, check_results *results);
void check_results_free(check_results *results);

#endif
