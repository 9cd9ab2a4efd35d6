/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs another program without a shell and captures its output.
 */
#ifndef TGL_SIM_PROCESS_H
#define TGL_SIM_PROCESS_H

#include <stdbool.h>

/* Runs a program without input, and waits for its end. argv: ends with NULL; argv[0] is a path.
 * *output := the program's standard output and standard error, as a string that the caller frees;
 * NULL if memory is exhausted. Returns false if the program could not be started or did not exit
 * with 0; if it did not start, *output says why. Any exit status counts as 0 if this process
 * ignores SIGCHLD. */
bool tgl_process_run(const char *const *argv, char **output);

/* The path of a program: `name` itself if it contains a slash, else the first match in $PATH.
 * Allocated; NULL if no such file can be executed. */
char *tgl_process_find(const char *name);

#endif
