/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of text files embedded at build time (cmake/embed.cmake), sorted by name.
 */
#ifndef TGL_SOURCES_H
#define TGL_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tgl_source_file {
    const char *name; /* "ladder/01_naive.cu"; NULL ends the table */
    const char *text; /* zero-terminated */
    unsigned long size;
    const char *digest; /* SHA-256 of the text, in hexadecimal */
} tgl_source_file;

extern const tgl_source_file tgl_source_files[];

/* Whether NVRTC gets this file as a header with every kernel. The keys of compiled kernels and of
 * measurements contain the digests of all these headers. */
bool tgl_source_is_header(const tgl_source_file *file);

#endif
