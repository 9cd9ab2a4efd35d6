/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays in files: .npy files, arrays of .npz archives, and standard input.
 */
#ifndef CLI_ARRAY_FILE_H
#define CLI_ARRAY_FILE_H

#include "npy.h"

/* An array that is open for reading. Its elements are in memory at `data`, aligned to the size of
 * an element. A batch of matrices (3 dimensions) is always in C order. */
typedef struct array_file {
    npy_header header;
    const void *data;
    void *bytes; /* the contents of the whole file */
    size_t size;
    bool mapped;  /* true: `bytes` is a mapping of the file; false: it was allocated */
    void *member; /* contents of an archive member that was compressed; NULL: none */
    void *copied; /* a copy of the elements, if they were not aligned in the file or were a batch in
                     Fortran order; NULL: none */
} array_file;

/* Opens an array. path: "A.npy", "X.npz:A", "X.npz" with a single array, or "-" for standard input.
 * A regular file is mapped, except standard input that was read in part; anything else is read to
 * its end. False: failed, message says why, and nothing has to be closed. */
bool array_open(const char *path, array_file *file, char *message, size_t message_size);
void array_close(array_file *file);

#endif
