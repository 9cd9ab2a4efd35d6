/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays in files: .npy files, arrays of .npz archives, and standard input.
 */
#ifndef CLI_ARRAY_FILE_H
#define CLI_ARRAY_FILE_H

#include "npy.h"

/* An array that is open for reading. `data` points to its elements in memory, aligned to their
 * size. A batch of matrices (3 dimensions) is always in C order. */
typedef struct array_file {
    npy_header header;
    const void *data;
    void *bytes; /* the whole file */
    size_t size;
    bool mapped;  /* `bytes` is a mapping, else allocated */
    void *member; /* bytes that were inflated from an archive; else NULL */
    void *copied; /* copied elements, if unaligned or in another order in the file; or NULL */
} array_file;

/* path: "A.npy", "X.npz:A", "X.npz" with a single array, or "-" for standard input. A regular file
 * is mapped, a pipe read to its end. On failure nothing has to be closed. */
bool array_open(const char *path, array_file *file, char *message, size_t message_size);
void array_close(array_file *file);

#endif
