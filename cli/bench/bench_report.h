/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of a benchmark: a table with a line for each shape, the means below it, and a CSV file
 * with a line for each shape and library. A peer is another library that Tegula is compared
 * with.
 */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include "contest.h"
#include "output_file.h"
#include "problem_options.h"
#include "stats.h"

enum { REPORT_TYPES = 8 }; /* maximum number of element types whose means are printed */

typedef struct bench_report {
    const contest_settings *settings;
    output_file csv;
    int unstable;                      /* number of rows with a spread above
                                          CONTEST_UNSTABLE_SPREAD */
    int slow;                          /* number of rows for which is_far_below_fma() is true */
    type_label types[REPORT_TYPES];    /* element types, in the order in which they first occur */
    geometric_mean best[REPORT_TYPES]; /* for each type: geometric mean, over the shapes, of
                                          contestant.ratio of the fastest peer */
    double worst[REPORT_TYPES]; /* for each type: the least ratio in `best`, and the shape with that
                                   ratio */
    char worst_shape[REPORT_TYPES][64];
    geometric_mean peers[REPORT_TYPES][PEERS_MAX];
} bench_report;

/* Opens the CSV file, unless csv_path is NULL, and prints the heading of the table. False: the file
 * cannot be opened, and the error has been printed. */
bool report_start(bench_report *r, const contest_settings *settings, const char *csv_path);

/* Prints the row of a shape that has been timed, and adds its ratios to the means. */
void report_add(bench_report *r, const contest *t);

/* Writes a shape as "f32 1024x1024x1024 NN"; for a batch of 8 products "x8" follows. */
void report_shape(const tgl_problem *p, char *text, size_t size);

/* Prints the means and closes the CSV file. Returns an exit code. */
int report_finish(bench_report *r);

#endif
