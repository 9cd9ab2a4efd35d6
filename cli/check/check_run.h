/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the cases of `tegula check` with the kernels of a device. For a GPU several host threads
 * work on different cases at the same time, because the references take longer than the products.
 */
#ifndef CLI_CHECK_RUN_H
#define CLI_CHECK_RUN_H

#include "check_subjects.h"

typedef struct check_settings {
    tgl_device *dev;
    check_drawing drawing;
    int64_t first, count; /* number of the first case, and the number of cases */
    const char *kernel;   /* "auto", a kernel string, or a group: see kernel_names.h */
    bool in_turn;         /* each case runs with the planner's choice and one other kernel */
    int workers;
} check_settings;

typedef struct check_results {
    check_subject *subjects;
    int count;
    int64_t cases;         /* complete cases; fewer than settings.count after SIGINT or SIGTERM */
    int64_t failed_case;   /* number of the first case that failed; -1: none */
    char failure[1024];    /* what is wrong with the case failed_case */
    char unsupported[256]; /* why some kernel does not support some case; empty: all do */
} check_results;

/* Runs the cases. Returns EXIT_DONE if all were run, whatever their results. The first SIGINT or
 * SIGTERM ends each case after its current kernel; the second ends the program. */
int check_run(const check_settings *settings, check_results *results);
void check_results_free(check_results *results);

#endif
