/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs another program without a shell and captures its output.
 */
#ifndef TGL_SIM_PROCESS_H
#define TGL_SIM_PROCESS_H

#include <stdbool.h>

/* Runs argv[0], a path, with argv (ends with NULL) and empty input, and waits for its end. *output
 * := its standard output and error, allocated; the caller frees it; NULL if memory is exhausted.
 * False if it could not be started or did not exit with 0; *output is then the reason. */
bool tgl_process_run(const char *const *argv, char **output);

/* The path of a program: `name` itself if it contains a slash, else the file that $PATH finds.
 * Allocated; NULL if no such file can be executed. */
char *tgl_process_find(const char *name);

#endif
