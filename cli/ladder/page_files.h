/* SPDX-License-Identifier: Apache-2.0
 *
 * The files from which ladder_page.c makes the page of the ladder, embedded at build time
 * (cmake/embed.cmake): the template, the sources of the rungs, and measured speeds.
 */
#ifndef CLI_PAGE_FILES_H
#define CLI_PAGE_FILES_H

typedef struct page_file {
    const char *name; /* as "ladder/page.html" or "results/h200/ladder.csv"; NULL ends the table */
    const char *text; /* zero-terminated */
    unsigned long size;
} page_file;

extern const page_file page_files[];

#endif
