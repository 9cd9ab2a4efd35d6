/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of the ladder (ladder.h): a table for each size, a CSV file with a line for each rung
 * and size, and a chart.
 */
#ifndef CLI_LADDER_REPORT_H
#define CLI_LADDER_REPORT_H

#include "ladder.h"
#include "output_file.h"
#include "svg.h"

typedef struct ladder_report {
    const ladder_settings *settings;
    double ffma; /* peak f32 FLOP/s of the device, measured with a loop of FFMA instructions; 0: not
                    known */
    output_file csv, plot;
    char date[32];
    char title[160];
    svg_chart chart;
} ladder_report;

/* The names of the columns of the CSV file if it has the simulator's counts, separated by commas:
 * date to max_error, then the counts. The page has the same columns. */
extern const char ladder_counted_columns[];

/* Opens the files whose paths are not NULL, and prints the heading. no_cublas: why cuBLAS is
 * missing, which is printed; "": no message. False: a file cannot be opened, and the error has been
 * printed. */
bool ladder_report_start(ladder_report *r, const char *csv_path, const char *plot_path,
                         const char *no_cublas);

/* Prints the table of a size, and adds it to the CSV file and the chart. The names of its rungs
 * must stay valid until ladder_report_finish(). */
void ladder_report_add(ladder_report *r, const ladder_size *s);

/* Writes the values of ladder_counted_columns for a rung that has counts, without the end of the
 * line. */
void ladder_report_put_counts(const ladder_report *r, const ladder_size *s, const rung *x,
                              FILE *to);

/* Writes the chart and closes the files. Returns an exit code. */
int ladder_report_finish(ladder_report *r);

#endif
