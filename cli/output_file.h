/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears whole or not at all: written under a temporary name in the same folder, then
 * renamed. A failure or a signal on the way leaves what stood there before, and no litter. A table
 * that grows row by row is renamed with its first row.
 *
 * What is no regular file is written directly: a device, a pipe, a descriptor that is open already
 * (/dev/stdout, /dev/fd/3).
 */
#ifndef CLI_OUTPUT_FILE_H
#define CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct output_file {
    FILE *stream;     /* NULL: none is open, and the functions below do nothing */
    const char *name; /* as the user gave it */
    char *path;       /* where the file will stand, links followed */
    char *temporary;  /* its name until then; NULL: it stands there, or is written directly */
    bool failed;      /* something could not be written; reported */
} output_file;

/* Two at a time. path NULL: opens none. false: reported, and nothing has to be closed. */
bool output_file_open(output_file *file, const char *path);

/* Like writing to file->stream; false: reported. */
bool output_file_write(output_file *file, const void *bytes, size_t size);

/* Puts what was written so far in the file's place; more may follow. Text should be flushed as soon
 * as it is written, while errno still knows of it. false: reported. */
bool output_file_flush(output_file *file);

/* Puts the whole in the file's place, on disk, and closes it. false: reported, now or before. */
bool output_file_commit(output_file *file);

/* Closes the file. If none of it was flushed, what stood there before still does. false: something
 * could not be written, now or before; reported. */
bool output_file_close(output_file *file);

/* Removes the temporary files, from a signal handler that is about to end the program. */
void output_file_abandon(void);

/* Whether two names stand for the same file, be it there yet or not. */
bool output_file_is_same(const char *path, const char *other);

/* Writes a field of a CSV file, quoted if it has to be. */
void csv_put_text(FILE *file, const char *text);

#endif
