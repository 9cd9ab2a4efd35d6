/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests in child processes, where a shim has not been used yet. The functions that run there make
 * no assertions.
 */
#ifndef TGL_SHIM_CHILD_H
#define TGL_SHIM_CHILD_H

#include <stdbool.h>

typedef bool child_fn(void);

/* False: a sanitizer does not allow a process with threads to fork. */
bool can_fork_threads(void);

/* Whether a child with this environment variable (NULL: none), in which fn() returned true, ended
 * with 0. */
bool is_right_in_child(const char *variable, const char *value, child_fn *fn);

/* Runs fn() in a child with this environment variable (NULL: none) and returns what it prints on
 * stderr. Valid until the next call. *status: of the child, as waitpid() gives it. */
const char *output_of_child(const char *variable, const char *value, child_fn *fn, int *status);

/* The same for a child that must end with 0. */
const char *output_of(const char *variable, const char *value, child_fn *fn);

/* Whether work(), in this many threads at once, returned NULL in each. */
bool is_right_in_threads(int count, void *(*work)(void *unused));

/* What call(data) prints on stderr. Valid until the next call. */
const char *stderr_of(void (*call)(void *data), void *data);

#endif
