/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV files: the comment in the first line of a file of results, and fields of text.
 */
#ifndef CLI_CSV_H
#define CLI_CSV_H

#include "tegula/tegula.h"

#include <stdio.h>

/* The words of the command line behind the program's name, up to NULL. Only the pointer is kept. */
void csv_set_command(char **words);

/* Writes the first line of a file of results, a comment with the keys of bench/results/README.md:
 * "# commit: 2f7b3ea; date: 2026-11-26; processor: AMD EPYC; ..." */
void csv_put_origin(FILE *file, const tgl_device *dev);

/* The commit that the program was built from, or "unknown". */
const char *csv_commit(void);

/* Writes a field, quoted if it has to be. */
void csv_put_text(FILE *file, const char *text);

extern const char tegula_commit[]; /* cmake/commit.cmake writes it; "" without git */

#endif
