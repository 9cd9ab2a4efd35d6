/* SPDX-License-Identifier: Apache-2.0
 *
 * The format of NumPy's .npy files: arrays of up to 3 dimensions of float32, float64, float16,
 * bfloat16, int8, int32, complex64 and complex128, in C or Fortran order, versions 1 to 3 of the
 * format. The header is text from an untrusted file, so every step of reading it is checked.
 */
#ifndef CLI_NPY_H
#define CLI_NPY_H

#include "tegula/tegula.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPY_DIMENSIONS_MAX = 3 };

typedef struct npy_header {
    tgl_type type;      /* type of the elements, which have the host's byte order */
    bool fortran_order; /* true: the first index varies fastest in memory; false: the last one does
                           (C order) */
    int dimensions;     /* number of dimensions, 0 to NPY_DIMENSIONS_MAX; npy_parse() gives at least
                           1 */
    int64_t shape[NPY_DIMENSIONS_MAX];
    size_t data_offset; /* distance in bytes from the start of the file to the first element */
    size_t data_size;   /* size in bytes of all elements */
} npy_header;

/* NumPy's name of a type, such as "float32" or "bfloat16". */
const char *npy_type_name(tgl_type type);

/* Writes the shape as "2 x 3 x 4"; empty for an array without dimensions. */
void npy_describe_shape(const npy_header *header, char *text, size_t size);

/* Reads the header of an .npy file that is in memory, and checks that all elements are there.
 * False: failed, and message says why in one line of printable ASCII. */
bool npy_parse(const unsigned char *bytes, size_t size, npy_header *header, char *message,
               size_t message_size);

/* The maximum length in bytes of a header that npy_format() writes. */
enum { NPY_HEADER_MAX = 192 };

/* Writes the version 1.0 header of an array, with the same bytes as NumPy would; data_offset and
 * data_size of *header are ignored. Returns its length. bfloat16 becomes '<V2', as NumPy writes it
 * for the package ml_dtypes. */
size_t npy_format(const npy_header *header, char text[NPY_HEADER_MAX]);

#endif
