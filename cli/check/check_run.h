/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the cases of `tegula check` with the kernels of a device. For a GPU several host threads
 * work on different cases at the same time, because the references take longer than the products.
 */
#ifndef CLI_CHECK_RUN_H
#define CLI_CHECK_RUN_H

#include "check_case.h"

typedef struct check_settings {
    tgl_device *dev;
    check_drawing drawing;
    int64_t first, count; /* cases */
    const char *kernel;   /* "auto", a kernel string, or a group: see kernel_names.h */
    bool in_turn;         /* each case goes through the planner's choice and one kernel more */
    int workers;
} check_settings;

enum { CHECK_CELLS = 4 * 4 * 4 }; /* transposes, alignment of A, of B */

/* A kernel and its results. */
typedef struct check_subject {
    const char *name; /* a name; a kernel string; "auto": the planner's choice */
    bool has_splits, has_whole, has_depth, has_blocks, has_strips; /* options that are drawn */
    int64_t passed, failed, unsupported;
    error_summary errors;
    bool cells[CHECK_CELLS]; /* the layouts and alignments that it has been run with */
    int64_t split, tail, strips, batch, ten; /* cases: split-K; for the last tiles only; strips
                                                beside the tiles; a batch; run ten times over */
    int64_t separate, scalars, workspace;    /* a D other than C; scalars of the device; a workspace
                                                of the caller's */
} check_subject;

typedef struct check_results {
    check_subject *subjects;
    int count;
    int64_t cases; /* that went through all their kernels: fewer than asked for after SIGINT or
                      SIGTERM */
    int64_t failed_case;   /* the first; -1: none */
    char failure[1024];    /* what is wrong with it */
    char unsupported[256]; /* why some kernel does not support some case; empty if all do */
} check_results;

/* An error, and its exit code, if no kernel of the device is meant; else EXIT_DONE. */
int check_find_kernel(const tgl_device *dev, const char *asked);

int check_cells_seen(const check_subject *s);

/* Returns an exit code: EXIT_DONE if all cases were run, whatever they showed. After the first
 * SIGINT or SIGTERM no case goes on to another kernel; the second ends the program. */
int check_run(const check_settings *settings, check_results *results);
void check_results_free(check_results *results);

#endif
