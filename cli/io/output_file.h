/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is replaced as a whole or not at all: it is written under a temporary name in the
 * same folder, then renamed. After a failure or a signal the old file is unchanged, and the
 * temporary one is removed. A table that grows row by row is renamed with its first row.
 *
 * Devices, pipes and descriptors that are open already (/dev/stdout, /dev/fd/3) are written
 * directly.
 */
#ifndef CLI_OUTPUT_FILE_H
#define CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct output_file {
    FILE *stream;     /* NULL: no file is open, and the functions below do nothing */
    const char *name; /* as the user gave it */
    char *path;       /* the path of the file, links followed */
    char *temporary;  /* the temporary name; NULL: it is renamed, or written directly */
    bool failed;      /* a write failed, and this was reported */
} output_file;

/* Opens a file; at most two may be open. path NULL: opens none. false: reported, and nothing has to
 * be closed. */
bool output_file_open(output_file *file, const char *path);

/* Writes to file->stream; false: reported. */
bool output_file_write(output_file *file, const void *bytes, size_t size);

/* Replaces the file by what was written so far; more may follow. Must be called right after a
 * write, while errno still has the cause of a failure. false: reported. */
bool output_file_flush(output_file *file);

/* Replaces the file, writes it to disk, and closes it. false: a write failed, now or before, which
 * was reported. */
bool output_file_commit(output_file *file);

/* Closes the file. If nothing was flushed, the old file stays. false: a write failed, now or
 * before; reported. */
bool output_file_close(output_file *file);

/* Removes the temporary files. For a signal handler that is about to end the program. */
void output_file_abandon(void);

/* Whether two names refer to the same file, even if it does not exist yet. */
bool output_file_is_same(const char *path, const char *other);

#endif
