/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is replaced as a whole or not at all: it is written under a temporary name in the
 * same folder, then renamed. After a failure or a signal the old file is unchanged, and the
 * temporary one is removed. output_file_flush() renames the temporary file before it is complete: a
 * table that grows row by row gets its final name with its first row.
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
    FILE *stream;     /* NULL: no file is open; flush, commit and close then do nothing */
    const char *name; /* the name as the user gave it; not copied */
    char *path;       /* the path of the file, with symbolic links resolved */
    char *temporary;  /* path of the temporary file; NULL: already renamed, or the file is written
                         directly */
    bool failed;      /* whether a write failed, which has been printed */
} output_file;

/* Opens a file for writing; at most two may be open at a time. path: NULL: opens none, which is no
 * error. False: failed, the error has been printed, and nothing has to be closed. */
bool output_file_open(output_file *file, const char *path);

/* Writes bytes to file->stream. False: failed, and the error has been printed. */
bool output_file_write(output_file *file, const void *bytes, size_t size);

/* Makes what was written so far the contents of the file; more may be written later. Must be called
 * right after a write, while errno still holds the cause of a failure. False: failed, and the error
 * has been printed. */
bool output_file_flush(output_file *file);

/* Writes the new file to disk, replaces the old file by it, and closes it. False: this or an
 * earlier write failed, and the error has been printed. */
bool output_file_commit(output_file *file);

/* Closes the file. If nothing was flushed, the old file stays as it was. False: this or an earlier
 * write failed, and the error has been printed. */
bool output_file_close(output_file *file);

/* Removes the temporary files. To be called in a signal handler that is about to end the
 * program. */
void output_file_abandon(void);

/* Whether two names refer to the same file, which need not exist. Hard links are not recognised. */
bool output_file_is_same(const char *path, const char *other);

#endif
