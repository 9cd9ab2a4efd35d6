/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a reader's code in a process of its own, with limits of time and memory.
 */
#ifndef CLI_LEARN_PROCESS_H
#define CLI_LEARN_PROCESS_H

#include <stdbool.h>

/* Returns what check(context) returns in a process of its own; false if the process ends otherwise,
 * and prints why. file: its name in messages. limits_memory: whether the process's address space is
 * limited; false with CUDA, which reserves more addresses than a machine has memory. is_quiet:
 * prints nothing. */
bool learn_run(const char *file, bool limits_memory, bool is_quiet, bool (*check)(const void *),
               const void *context);

#endif
