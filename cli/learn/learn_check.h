/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a reader's kernel: results at ragged sizes, then the gates of its exercise, which are
 * limits of the simulator's counts.
 */
#ifndef CLI_LEARN_CHECK_H
#define CLI_LEARN_CHECK_H

#include "exercises.h"

/* Checks the kernel in a process of its own, and prints the results unless is_quiet. Returns
 * whether the exercise is solved. file: the name of the reader's file for messages, without a
 * slash; source: the text of that file. device: "sim", or a GPU, on which the kernel is timed with
 * a product of side x side x side instead of checking the gates. */
bool learn_check(const exercise *e, const char *file, const char *source, const char *device,
                 int side, bool is_quiet);

#endif
