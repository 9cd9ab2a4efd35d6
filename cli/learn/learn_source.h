/* SPDX-License-Identifier: Apache-2.0
 *
 * Examines the text of a reader's file before it is compiled: which exercise it is for, and whether
 * it can be checked.
 */
#ifndef CLI_LEARN_SOURCE_H
#define CLI_LEARN_SOURCE_H

#include "exercises.h"

enum { HEADS_MAX = 2, HEAD_SIZE = 64 };

/* The different names that occur in a text as "Exercise NAME:". */
typedef struct learn_heads {
    char names[HEADS_MAX][HEAD_SIZE];
    int count; /* number of names; HEADS_MAX: there may be more */
} learn_heads;

learn_heads learn_heads_of(const char *source);

/* The exercise that the text names. NULL: it names no exercise, several, or one that does not
 * exist; *why, of `size` bytes, says which. */
const exercise *learn_exercise_of(const char *source, char *why, size_t size);

/* Whether the text cannot be checked: it has words that hide accesses from the simulator, or the
 * name of the exercise does not occur in it. True: *why, of `size` bytes, gets the reason. Comments
 * and string literals do not count. */
bool learn_source_is_refused(const exercise *e, const char *source, char *why, size_t size);

#endif
