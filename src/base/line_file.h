/* SPDX-License-Identifier: Apache-2.0
 *
 * A text file of lines that several processes read, and to which they append.
 *
 * The file is trusted only if it is a regular file, not a symbolic link, that belongs to the caller
 * or to root, and that only its owner can write. A file of more than TGL_LINES_BYTES_MAX bytes is
 * not read. A line is appended by one write() in O_APPEND mode, so lines of several processes do
 * not mix. If a full disk or a killed process has cut a line short, the next append begins with
 * '\n', which ends that line. Whoever parses the lines must recognise the short one as
 * incomplete.
 */
#ifndef TGL_LINE_FILE_H
#define TGL_LINE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TGL_LINES_BYTES_MAX = 16 << 20 };

/* A shared file. The caller sets `path`; all other members are zero at first. */
typedef struct tgl_line_file {
    char path[PATH_MAX]; /* "": there is no file; nothing is read or appended */
    uint64_t read;       /* bytes of the file that tgl_line_file_read() has returned so far */
    dev_t device;        /* device number of the file at the last read */
    ino_t inode; /* inode number at the last read; if the device or the inode number changes,
                    another file has replaced this one */
    const char *problem; /* why the file is not used, a static text; NULL: it may be used */
    bool exists;         /* whether the file could be opened at the last read */
    bool is_fixed;       /* whether it could be used, but not be written, at the last read */
} tgl_line_file;

/* Returns the complete lines that were added since the last call, or all lines if another file has
 * replaced the file or it was truncated. *size := the number of their bytes; a zero byte follows
 * them. The caller frees the array. NULL: there are none, or file->problem says why they cannot be
 * read. */
char *tgl_line_file_read(tgl_line_file *file, size_t *size);

/* Appends a line, which ends with '\n' and has at most 4096 bytes. Creates the file with mode 0600
 * if necessary. False: the line was not appended. */
bool tgl_line_file_append(const tgl_line_file *file, const char *line);

#endif
