/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and appends lines of a file that processes share.
 */
#include "base/line_file.h"
#include "base/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAFELY = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

/* The reason why a file with this status must not be used; NULL: it may be used. */
static const char *distrust(const struct stat *info)
{
    if (!S_ISREG(info->st_mode)) return "it is no regular file";
    if (info->st_uid != geteuid() && info->st_uid != 0) return "it belongs to another user";
    if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
    if (info->st_size > TGL_LINES_BYTES_MAX) return "it is too large";
    return NULL;
}

/* Reads the bytes [first, end) of an open file, up to the last end of a line. NULL: there is no
 * complete line, or no memory. */
static char *read_lines(int file, uint64_t first, uint64_t end, size_t *size)
{
    char *text = malloc((size_t)(end - first) + 1);
    size_t got = 0;
    if (text == NULL) return NULL;
    while (got < end - first) {
        const ssize_t more =
            pread(file, text + got, (size_t)(end - first) - got, (off_t)(first + got));
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) break;
        got += (size_t)more;
    }
    while (got > 0 && text[got - 1] != '\n')
        got--;
    text[got] = '\0';
    *size = got;
    if (got > 0) return text;
    free(text);
    return NULL;
}

static char *read_open(tgl_line_file *file, int descriptor, size_t *size)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) return NULL;
    file->exists = true;
    file->problem = distrust(&info);
    if (file->problem != NULL) return NULL;
    /* The mode is tested, too, because faccessat() permits root to write to any file. */
    file->is_fixed =
        (info.st_mode & S_IWUSR) == 0 || faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS) != 0;
    const uint64_t end = (uint64_t)info.st_size;
    const bool is_same = info.st_dev == file->device && info.st_ino == file->inode;
    if (!is_same || end < file->read) file->read = 0; /* the file was replaced or truncated */
    file->device = info.st_dev;
    file->inode = info.st_ino;
    if (end == file->read) return NULL;
    char *text = read_lines(descriptor, file->read, end, size);
    if (text != NULL) file->read += *size;
    return text;
}

char *tgl_line_file_read(tgl_line_file *file, size_t *size)
{
    *size = 0;
    file->exists = file->is_fixed = false;
    file->problem = NULL;
    if (file->path[0] == '\0') return NULL;
    const int descriptor = open(file->path, O_RDONLY | SAFELY);
    if (descriptor < 0) {
        file->problem = errno == ENOENT  ? NULL
                        : errno == ELOOP ? "it is a symbolic link"
                                         : "it cannot be opened";
        return NULL;
    }
    char *text = read_open(file, descriptor, size);
    close(descriptor);
    return text;
}

/* Appends a line to the open file, after a '\n' if its last line is incomplete. */
static bool append(int descriptor, const char *line)
{
    enum { LINE_MAX_BYTES = 4096 };
    char text[LINE_MAX_BYTES + 1], last = '\n';
    struct stat info;
    const size_t length = strlen(line);
    if (length > LINE_MAX_BYTES || fstat(descriptor, &info) != 0 || distrust(&info) != NULL ||
        (info.st_mode & S_IWUSR) == 0 || info.st_size + (off_t)length >= TGL_LINES_BYTES_MAX)
        return false;
    if (info.st_size > 0 && pread(descriptor, &last, 1, info.st_size - 1) != 1) return false;
    text[0] = '\n';
    memcpy(text + 1, line, length);
    return last == '\n' ? tgl_file_write(descriptor, text + 1, length)
                        : tgl_file_write(descriptor, text, length + 1);
}

bool tgl_line_file_append(const tgl_line_file *file, const char *line)
{
    if (file->path[0] == '\0') return false;
    const int descriptor = open(file->path, O_RDWR | O_APPEND | O_CREAT | SAFELY, 0600);
    if (descriptor < 0) return false;
    const bool done = append(descriptor, line);
    return close(descriptor) == 0 && done;
}
