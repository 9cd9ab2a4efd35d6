/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the code of a reader (the user who solves an exercise) in a process of its own, with limits
 * of time and memory.
 */
#ifndef CLI_LEARN_PROCESS_H
#define CLI_LEARN_PROCESS_H

#include <stdbool.h>

/* Runs check(context) in a process of its own, with limited time, and returns its result. If the
 * process ends before check() has returned, prints why, unless is_quiet, and returns false. file:
 * the name of the reader's file, for messages. limits_memory: whether the process's address space
 * is limited too; must be false with CUDA, which reserves more addresses than a machine has memory.
 * is_quiet: the process prints nothing on stdout. */
bool learn_run(const char *file, bool limits_memory, bool is_quiet, bool (*check)(const void *),
               const void *context);

#endif
