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
    int64_t first, count; /* cases */
    const char *kernel;   /* "auto", a kernel string, or a group: see kernel_names.h */
    bool in_turn;         /* each case goes through the planner's choice and one kernel more */
    int workers;
} check_settings;

typedef struct check_results {
    check_subject *subjects;
    int count;
    int64_t cases; /* that went through all their kernels: fewer than asked for after SIGINT or
                      SIGTERM */
    int64_t failed_case;   /* the first; -1: none */
    char failure[1024];    /* what is wrong with it */
    char unsupported[256]; /* why some kernel does not support some case; empty if all do */
} check_results;

/* Returns an exit code: EXIT_DONE if all cases were run, whatever they showed. After the first
 * SIGINT or SIGTERM no case goes on to another kernel; the second ends the program. */
int check_run(const check_settings *settings, check_results *results);
void check_results_free(check_results *results);

#endif
