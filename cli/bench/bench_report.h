/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of a benchmark: a table with a line for each shape, the means below it, and a CSV file
 * with a line for each shape and library.
 */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include "contest.h"
#include "output_file.h"
#include "problem_options.h"
#include "stats.h"

enum { REPORT_TYPES = 8 }; /* maximum number of types of problems in one run */

typedef struct bench_report {
    const contest_settings *settings;
    output_file csv;
    int unstable;                      /* number of rows with a spread above the limit */
    int slow;                          /* number of rows far below the FMA rate */
    type_label types[REPORT_TYPES];    /* in order of appearance */
    geometric_mean best[REPORT_TYPES]; /* by type: mean ratio of each shape's fastest peer */
    double worst[REPORT_TYPES];        /* by type: the least of these ratios (contestant.ratio) */
    char worst_shape[REPORT_TYPES][64];
    geometric_mean peers[REPORT_TYPES][PEERS_MAX];
} bench_report;

/* Opens the CSV file, unless csv_path is NULL, and prints the heading of the table. false:
 * reported. */
bool report_start(bench_report *r, const contest_settings *settings, const char *csv_path);

/* Prints the row of a shape that was timed, and adds its ratios to the means. */
void report_add(bench_report *r, const contest *t);

/* Writes a shape as "f32 1024x1024x1024 NN", with "x8" behind it for a batch of 8. */
void report_shape(const tgl_problem *p, char *text, size_t size);

/* Prints the means and closes the CSV file; returns an exit code. */
int report_finish(bench_report *r);

#endif
