/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears whole or not at all: written under a temporary name in the same folder, then
 * renamed. A failure or a signal on the way leaves what stood there before, and no litter.
 */
#ifndef CLI_OUTPUT_FILE_H
#define CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct output_file {
    int fd;
    const char *name; /* as the user gave it */
    char *path;       /* where the file will stand, links followed */
    char *temporary; /* its name until then; NULL: `path` is a device or a pipe, written directly */
} output_file;

/* One at a time. On failure writes why to message, and nothing has to be discarded. */
bool output_file_open(output_file *file, const char *path, char *message, size_t message_size);

/* false: errno says why; discard the file. */
bool output_file_write(output_file *file, const void *bytes, size_t size);

/* Puts the file in its place, on disk; false: errno says why, and it is discarded. */
bool output_file_commit(output_file *file);

void output_file_discard(output_file *file);

/* Removes the temporary file, from a signal handler that is about to end the program. */
void output_file_abandon(void);

#endif
