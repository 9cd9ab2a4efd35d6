/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a reader's kernel: results at ragged sizes, then the gates of its exercise.
 */
#ifndef CLI_LEARN_CHECK_H
#define CLI_LEARN_CHECK_H

#include "exercises.h"

/* Checks the kernel in a process of its own and returns whether the exercise is solved. is_quiet:
 * prints nothing. file: its name in messages, without a slash. device: "sim", or a GPU, on which
 * times of a product of side x side x side take the place of the gates. */
bool learn_check(const exercise *e, const char *file, const char *source, const char *device,
                 int side, bool is_quiet);

#endif
