/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's .npy files: matrices of float32 and float64 in C or Fortran order, versions 1 to 3 of the
 * format. The header is text from an untrusted file, so every step of reading it is checked.
 */
#ifndef CLI_NPY_H
#define CLI_NPY_H

#include "tegula/tegula.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct npy_header {
    tgl_type type;      /* TGL_F32 or TGL_F64, in the host's byte order */
    bool fortran_order; /* columns lie one behind the other; else rows */
    int64_t rows, columns;
    size_t data_offset; /* of the first element, from the start of the file */
    size_t data_size;   /* bytes of all elements */
} npy_header;

/* Reads the header of the file whose bytes are given, and checks that its data is all there.
 * On failure writes what is wrong, in one line of printable ASCII, to message. */
bool npy_parse(const unsigned char *bytes, size_t size, npy_header *header, char *message,
               size_t message_size);

/* The longest header that npy_format() writes. */
enum { NPY_HEADER_MAX = 192 };

/* Writes a version 1.0 header for `header` (data_offset and data_size are not used), the same bytes
 * as NumPy's own, and returns its length. */
size_t npy_format(const npy_header *header, char text[NPY_HEADER_MAX]);

/* A file opened for reading; its elements stand in memory at `data`, aligned to their size. */
typedef struct npy_file {
    npy_header header;
    const void *data;
    void *bytes; /* the whole file */
    size_t size;
    bool mapped;  /* `bytes` is a mapping, else allocated */
    void *copied; /* the elements, where the file does not align them; else NULL */
} npy_file;

/* Maps a regular file, or reads a pipe to its end. On failure nothing has to be closed. */
bool npy_open(const char *path, npy_file *file, char *message, size_t message_size);
void npy_close(npy_file *file);

#endif
