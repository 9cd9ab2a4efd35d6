/* SPDX-License-Identifier: Apache-2.0
 *
 * The ladder as a single HTML file: cli/ladder/page.html with its style and its script, and the
 * data of the script in JSON: the sources of the rungs, what the simulator counted and
 * recorded, and measured speeds.
 */
#ifndef CLI_LADDER_PAGE_H
#define CLI_LADDER_PAGE_H

#include "ladder_report.h"

typedef struct ladder_page {
    output_file file;
    const char *rest; /* the rest of page.html, not yet written */
    int rungs;        /* number of rungs written */
} ladder_page;

/* Opens the output file. false: reported. */
bool ladder_page_open(ladder_page *page, const char *path);

/* Adds the rungs of a chapter. false: reported. */
bool ladder_page_add(ladder_page *page, const ladder_report *r, const ladder_size *s);

/* Writes the rest and closes the file, which is replaced only if `code` is EXIT_DONE. Returns the
 * exit code. */
int ladder_page_finish(ladder_page *page, int code);

#endif
