/* SPDX-License-Identifier: Apache-2.0
 *
 * Running another program, without a shell, and keeping what it prints.
 */
#ifndef TGL_SIM_PROCESS_H
#define TGL_SIM_PROCESS_H

#include <stdbool.h>

/* Runs argv[0], a path, with argv (ended by NULL), nothing to read, and both outputs in *output:
 * allocated text, the caller's to free; NULL if memory is exhausted. Waits for its end. False if it
 * could not be started or did not end with 0; *output then has why. */
bool tgl_process_run(const char *const *argv, char **output);

/* The path of a program: `name` itself if it has a slash, else where $PATH has it. Allocated; NULL
 * if no such file can be run. */
char *tgl_process_find(const char *name);

#endif
