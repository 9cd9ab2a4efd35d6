/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that work together.
 */
#ifndef CLI_WORKERS_H
#define CLI_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

/* Calls work(context) on this thread and on at most count - 1 further ones, as many as start, and
 * waits for all. False: a call did not return NULL. */
bool run_workers(int64_t count, void *(*work)(void *context), void *context);

#endif
