/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens arrays.
 */
#include "array_file.h"
#include "message_buffer.h"
#include "npz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* Reads a file of unknown size, such as a pipe, to its end into file->bytes. False: failed, and
 * message says why. */
static bool read_to_end(int fd, array_file *file, message_buffer message)
{
    size_t capacity = 0;
    for (;;) {
        if (file->size == capacity) {
            capacity = capacity == 0 ? 1 << 16 : 2 * capacity;
            void *larger = realloc(file->bytes, capacity);
            if (larger == NULL) return message_refuse(message, "no %zu bytes of memory", capacity);
            file->bytes = larger;
        }
        ssize_t got = read(fd, (char *)file->bytes + file->size, capacity - file->size);
        if (got == 0) return true;
        if (got < 0 && errno != EINTR) return message_refuse(message, "%s", strerror(errno));
        if (got > 0) file->size += (size_t)got;
    }
}

static bool load_bytes(int fd, array_file *file, message_buffer message)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return message_refuse(message, "%s", strerror(errno));
    if (S_ISDIR(info.st_mode)) return message_refuse(message, "this is a folder, not a file");
    if (!S_ISREG(info.st_mode) || lseek(fd, 0, SEEK_CUR) != 0)
        return read_to_end(fd, file, message);
    if (info.st_size == 0) return message_refuse(message, "the file is empty");
    file->size = (size_t)info.st_size;
    void *mapping = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) return message_refuse(message, "cannot map it: %s", strerror(errno));
    file->bytes = mapping;
    file->mapped = true;
    return true;
}

/* The part NAME of a path "X.npz:NAME", which means the array NAME of the archive X.npz. NULL: the
 * path has no such part, or a file with the whole path as its name exists. *path_length := the
 * length of the part of the path that names the file. */
static const char *array_of(const char *path, size_t *path_length)
{
    *path_length = strlen(path);
    const char *found = NULL;
    for (const char *at = path; (at = strstr(at, ".npz:")) != NULL; at++)
        found = at;
    if (found == NULL || access(path, F_OK) == 0) return NULL;
    *path_length = (size_t)(found - path) + 4;
    return found + 5;
}

static int open_path(const char *path, size_t length)
{
    if (strcmp(path, "-") == 0) return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    char *name = strndup(path, length);
    const int fd = name != NULL ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    const int error = errno;
    free(name);
    errno = error;
    return fd;
}

/* ---- Elements -------------------------------------------------------------------------------- */

static bool copy_elements(array_file *file, message_buffer message)
{
    const size_t size = file->header.data_size;
    file->copied = malloc(size + 1);
    if (file->copied == NULL) return message_refuse(message, "no %zu bytes of memory", size);
    return true;
}

/* Copies a batch in Fortran order to file->copied in C order. With B matrices of R rows, element
 * (b, i, j) of the batch has the index b + B*(i + R*j). No leading dimension describes this order
 * if B > 1, because neighbouring elements of a matrix are then B elements apart. */
static bool reorder(array_file *file, message_buffer message)
{
    npy_header *h = &file->header;
    const size_t element = tgl_type_size(h->type);
    const int64_t B = h->shape[0], R = h->shape[1], C = h->shape[2];
    if (!copy_elements(file, message)) return false;
    char *to = file->copied;
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < R; i++)
            for (int64_t j = 0; j < C; j++, to += element)
                memcpy(to, (const char *)file->data + (size_t)(b + B * (i + R * j)) * element,
                       element);
    file->data = file->copied;
    h->fortran_order = false;
    return true;
}

/* Points file->data to the elements. Copies them first if they are not aligned in the file, or if
 * they are a batch in Fortran order. */
static bool place_elements(array_file *file, const unsigned char *start, message_buffer message)
{
    const npy_header *h = &file->header;
    file->data = start + h->data_offset;
    if (h->data_size == 0) return true;
    if (h->dimensions == 3 && h->fortran_order) return reorder(file, message);
    if ((uintptr_t)file->data % tgl_type_size(h->type) == 0) return true;
    if (!copy_elements(file, message)) return false;
    memcpy(file->copied, file->data, h->data_size);
    file->data = file->copied;
    return true;
}

/* Finds the array in the bytes of the file and reads its header. array: the name of the array in an
 * archive; NULL: not given. False: failed, and message says why. */
static bool read_array(array_file *file, const char *array, message_buffer message)
{
    const unsigned char *start = file->bytes;
    size_t size = file->size;
    if (size > 0 && npz_is_archive(file->bytes, file->size)) {
        if (!npz_find(file->bytes, file->size, array, &start, &size, &file->member, message))
            return false;
    } else if (array != NULL) {
        return message_refuse(message, "not an .npz archive");
    }
    return npy_parse(start, size, &file->header, message.text, message.size) &&
           place_elements(file, start, message);
}

bool array_open(const char *path, array_file *file, char *text, size_t text_size)
{
    const message_buffer message = {text, text_size};
    *file = (array_file){0};
    size_t length;
    const char *array = array_of(path, &length);
    const int fd = open_path(path, length);
    if (fd < 0) return message_refuse(message, "%s", strerror(errno));
    bool ok = load_bytes(fd, file, message);
    close(fd);
    ok = ok && read_array(file, array, message);
    if (!ok) array_close(file);
    return ok;
}

void array_close(array_file *file)
{
    if (file->mapped)
        munmap(file->bytes, file->size);
    else
        free(file->bytes);
    free(file->member);
    free(file->copied);
    *file = (array_file){0};
}
