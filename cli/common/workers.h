/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that work together.
 */
#ifndef CLI_WORKERS_H
#define CLI_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

/* Calls work(context) on this thread and on up to count - 1 other threads: at most 64, and as many
 * as can be started. Waits for all calls to return. Returns whether all of them returned NULL. */
bool run_workers(int64_t count, void *(*work)(void *context), void *context);

#endif
