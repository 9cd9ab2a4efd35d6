/* SPDX-License-Identifier: Apache-2.0
 *
 * The ladder (ladder.h) as a single HTML file: cli/ladder/page.html with its style and its script,
 * and the data of the script in JSON: the sources of the rungs, what the simulator counted and
 * recorded, and measured speeds.
 */
#ifndef CLI_LADDER_PAGE_H
#define CLI_LADDER_PAGE_H

#include "ladder_report.h"

typedef struct ladder_page {
    output_file file;
    const char *rest; /* the part of page.html that is not written yet */
    int rungs;        /* number of rungs that have been written */
} ladder_page;

/* Opens the output file. False: failed, and the error has been printed. */
bool ladder_page_open(ladder_page *page, const char *path);

/* Writes the results of the rungs in *s that have a plan, which belong to one chapter (the rungs of
 * one element type and compute mode, ladder.h). *r: the report of that chapter. False: failed, and
 * the error has been printed. */
bool ladder_page_add(ladder_page *page, const ladder_report *r, const ladder_size *s);

/* Writes the rest of the page and closes the file. The old file is replaced only if `code` is
 * EXIT_DONE. Returns `code`, or another exit code if the file could not be written. */
int ladder_page_finish(ladder_page *page, int code);

#endif
