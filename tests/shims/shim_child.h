/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs functions of tests in child processes, in which the shim (the drop-in library for BLAS or
 * cuBLAS) has not been used yet. These functions must make no assertions.
 */
#ifndef TGL_SHIM_CHILD_H
#define TGL_SHIM_CHILD_H

#include <stdbool.h>

typedef bool child_fn(void);

/* Whether a process with threads can fork. False with sanitizers that do not support it. */
bool can_fork_threads(void);

/* Runs fn() in a child process with this environment variable (NULL: none). Returns whether fn()
 * returned true and the child ended with 0. */
bool is_right_in_child(const char *variable, const char *value, child_fn *fn);

/* Runs fn() in a child process with this environment variable (NULL: none), and returns what it
 * prints on stderr, which is valid until the next call. *status := the child's status, as of
 * waitpid(). */
const char *output_of_child(const char *variable, const char *value, child_fn *fn, int *status);

/* Like output_of_child(), but the child must end with 0. */
const char *output_of(const char *variable, const char *value, child_fn *fn);

/* Calls work() in `count` threads at the same time. Returns whether all calls returned NULL. */
bool is_right_in_threads(int count, void *(*work)(void *unused));

/* Calls call(data), and returns what it prints on stderr, which is valid until the next call. */
const char *stderr_of(void (*call)(void *data), void *data);

#endif
