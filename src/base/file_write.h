/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes to a file without side effects on the program that has loaded the library.
 */
#ifndef TGL_FILE_WRITE_H
#define TGL_FILE_WRITE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes all of `data` to an open file. False: errno is set. A file that would exceed RLIMIT_FSIZE
 * gives the error EFBIG; the signal SIGXFSZ, which would end the process, is suppressed. */
bool tgl_file_write(int file, const void *data, size_t size);

#endif
