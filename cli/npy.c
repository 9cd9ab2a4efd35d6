/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing NumPy's .npy files. A file is
 *
 *     "\x93NUMPY"  major  minor  length of the header (2 bytes; from version 2 on 4)  header  data
 *
 * where the header is the text of a Python dictionary with exactly three keys:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 */
#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Messages -------------------------------------------------------------------------------- */

typedef struct message_buffer {
    char *text;
    size_t size;
} message_buffer;

/* Writes the message with everything unprintable replaced, and returns false. */
__attribute__((format(printf, 2, 3))) static bool refuse(message_buffer message, const char *format,
                                                         ...)
{
    if (message.text == NULL || message.size == 0) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(message.text, message.size, format, args);
    va_end(args);
    for (char *c = message.text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    return false;
}

/* ---- The header's text ----------------------------------------------------------------------- */

/* A reader of the dictionary; `at` moves towards `end`. */
typedef struct cursor {
    const char *at, *end;
    message_buffer message;
} cursor;

/* A piece of the header's text. */
typedef struct span {
    const char *start;
    size_t length;
} span;

enum { SHOWN = 40 }; /* characters of a piece that a message shows */

/* For printf's "%.*s". */
static int shown_length(span s)
{
    return s.length < SHOWN ? (int)s.length : SHOWN;
}

static bool span_is(span s, const char *text)
{
    return s.length == strlen(text) && memcmp(s.start, text, s.length) == 0;
}

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

/* The next character that is no blank, or '\0' at the end. */
static char peek(cursor *c)
{
    skip_blanks(c);
    return c->at < c->end ? *c->at : '\0';
}

static bool take(cursor *c, char wanted)
{
    if (peek(c) != wanted) return false;
    c->at++;
    return true;
}

static bool expect(cursor *c, char wanted)
{
    if (take(c, wanted)) return true;
    if (c->at == c->end)
        return refuse(c->message, "the header is cut off: it ends where '%c' should be", wanted);
    return refuse(c->message, "the header is damaged: '%c' where '%c' should be", *c->at, wanted);
}

static bool read_string(cursor *c, span *string)
{
    const char quote = peek(c);
    if (quote != '\'' && quote != '"')
        return refuse(c->message, "the header is damaged: no string where one should be");
    string->start = ++c->at;
    while (c->at < c->end && *c->at != quote && *c->at != '\\')
        c->at++;
    if (c->at == c->end) return refuse(c->message, "the header is cut off inside a string");
    if (*c->at == '\\') return refuse(c->message, "the header has a backslash inside a string");
    string->length = (size_t)(c->at++ - string->start);
    return true;
}

static bool read_bool(cursor *c, bool *value)
{
    const span rest = {peek(c) != '\0' ? c->at : c->end, (size_t)(c->end - c->at)};
    *value = rest.length >= 4 && memcmp(rest.start, "True", 4) == 0;
    if (!*value && (rest.length < 5 || memcmp(rest.start, "False", 5) != 0))
        return refuse(c->message, "the header's 'fortran_order' is neither True nor False");
    c->at += *value ? 4 : 5;
    return true;
}

static bool read_size(cursor *c, int64_t *value)
{
    const char first = peek(c);
    if (first == '-') return refuse(c->message, "the header's 'shape' has a negative size");
    if (first < '0' || first > '9')
        return refuse(c->message, "the header's 'shape' is not a tuple of whole numbers");
    int64_t size = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(size, (int64_t)10, &size) ||
            __builtin_add_overflow(size, (int64_t)(*c->at - '0'), &size))
            return refuse(c->message,
                          "the header's 'shape' has a size that does not fit in 63 bits");
    if (c->at < c->end && *c->at == 'L') c->at++; /* as Python 2 wrote them */
    *value = size;
    return true;
}

/* ---- The header's three values --------------------------------------------------------------- */

typedef struct fields {
    bool has_descr, has_order, has_shape;
    span descr;
    bool fortran_order;
    int dimensions;
    int64_t shape[2]; /* the first two */
} fields;

static bool read_shape(cursor *c, fields *f)
{
    if (!expect(c, '(')) return false;
    f->dimensions = 0;
    while (peek(c) != ')') {
        int64_t size = 0;
        if (!read_size(c, &size)) return false;
        if (f->dimensions < 2) f->shape[f->dimensions] = size;
        f->dimensions++;
        if (!take(c, ',')) {
            /* "(5)" is a number in Python, and no tuple. */
            if (f->dimensions == 1)
                return refuse(c->message, "the header's 'shape' is not a tuple of whole numbers");
            break;
        }
    }
    return expect(c, ')');
}

static bool read_descr(cursor *c, fields *f)
{
    if (peek(c) == '[' || peek(c) == '(')
        return refuse(c->message, "the elements are records of several fields; save one field as a "
                                  "float32 or float64 matrix");
    return read_string(c, &f->descr);
}

/* One "key: value" of the dictionary. */
static bool read_entry(cursor *c, fields *f)
{
    span key = {0};
    if (!read_string(c, &key) || !expect(c, ':')) return false;
    bool *seen = span_is(key, "descr")           ? &f->has_descr
                 : span_is(key, "fortran_order") ? &f->has_order
                 : span_is(key, "shape")         ? &f->has_shape
                                                 : NULL;
    if (seen == NULL)
        return refuse(c->message, "the header has a key '%.*s' that NumPy does not know",
                      shown_length(key), key.start);
    if (*seen)
        return refuse(c->message, "the header has the key '%.*s' twice", shown_length(key),
                      key.start);
    *seen = true;
    return seen == &f->has_descr   ? read_descr(c, f)
           : seen == &f->has_order ? read_bool(c, &f->fortran_order)
                                   : read_shape(c, f);
}

static bool read_dictionary(cursor *c, fields *f)
{
    if (!expect(c, '{')) return false;
    while (peek(c) != '}') {
        if (!read_entry(c, f)) return false;
        if (!take(c, ',')) break;
    }
    if (!expect(c, '}')) return false;
    if (peek(c) != '\0' || c->at < c->end)
        return refuse(c->message, "the header goes on after its dictionary");
    const char *missing = !f->has_descr   ? "descr"
                          : !f->has_order ? "fortran_order"
                          : !f->has_shape ? "shape"
                                          : NULL;
    return missing == NULL || refuse(c->message, "the header lacks the key '%s'", missing);
}

/* ---- From fields to a matrix ----------------------------------------------------------------- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static const char own_mark = '<', other_mark = '>';
#else
static const char own_mark = '>', other_mark = '<';
#endif

static bool set_type(span descr, message_buffer message, npy_header *header)
{
    span kind = descr;
    char mark = '=';
    if (kind.length > 0 && strchr("<>=|", kind.start[0]) != NULL) {
        mark = kind.start[0];
        kind.start++;
        kind.length--;
    }
    if (span_is(kind, "f4"))
        header->type = TGL_F32;
    else if (span_is(kind, "f8"))
        header->type = TGL_F64;
    else
        return refuse(message,
                      "the elements are of type '%.*s'; float32 and float64 can be multiplied: "
                      "convert with A.astype('float32') in NumPy",
                      shown_length(descr), descr.start);
    if (mark == other_mark)
        return refuse(message,
                      "the elements are %s-endian ('%.*s'), this machine is not: convert with "
                      "A.astype('%c%.*s') in NumPy",
                      other_mark == '>' ? "big" : "little", shown_length(descr), descr.start,
                      own_mark, shown_length(kind), kind.start);
    return true;
}

static bool set_shape(const fields *f, size_t left, message_buffer message, npy_header *header)
{
    if (f->dimensions == 1)
        return refuse(message,
                      "the array has 1 dimension of %" PRId64
                      "; a matrix has 2: save A.reshape(1, -1) for a row or A.reshape(-1, 1) for a "
                      "column",
                      f->shape[0]);
    if (f->dimensions != 2)
        return refuse(message,
                      "the array has %d dimensions; a matrix has 2: save one slice or "
                      "A.reshape(rows, columns)",
                      f->dimensions);
    header->rows = f->shape[0];
    header->columns = f->shape[1];
    size_t count, size;
    if (header->rows == 0 || header->columns == 0)
        size = 0;
    else if (__builtin_mul_overflow((size_t)header->rows, (size_t)header->columns, &count) ||
             __builtin_mul_overflow(count, tgl_type_size(header->type), &size) || size > INT64_MAX)
        return refuse(message,
                      "the shape (%" PRId64 ", %" PRId64 ") has more bytes than fit in 63 bits",
                      header->rows, header->columns);
    if (size > left)
        return refuse(message,
                      "the file is cut off: %" PRId64 " x %" PRId64
                      " elements need %zu bytes, %zu are there",
                      header->rows, header->columns, size, left);
    header->data_size = size;
    return true;
}

/* Finds the dictionary's text; false: not an .npy file that is whole. */
static bool find_dictionary(const unsigned char *bytes, size_t size, message_buffer message,
                            span *text)
{
    if (size < 6 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return refuse(message, "not a NumPy file: save it with numpy.save()");
    if (size < 8) return refuse(message, "the file is cut off inside its header");
    const unsigned version = bytes[6];
    if (version < 1 || version > 3 || bytes[7] != 0)
        return refuse(message, "version %u.%u of the .npy format is not known; 1.0 to 3.0 are",
                      version, bytes[7]);
    const size_t start = version == 1 ? 10 : 12;
    if (size < start) return refuse(message, "the file is cut off inside its header");
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size - start)
        return refuse(message,
                      "the file is cut off inside its header: %zu bytes long, %zu are there",
                      length, size - start);
    *text = (span){(const char *)bytes + start, length};
    return true;
}

bool npy_parse(const unsigned char *bytes, size_t size, npy_header *header, char *text,
               size_t text_size)
{
    const message_buffer message = {text, text_size};
    span dictionary = {0};
    if (!find_dictionary(bytes, size, message, &dictionary)) return false;
    for (size_t i = 0; i < dictionary.length; i++) {
        const unsigned char byte = (unsigned char)dictionary.start[i];
        if (byte > '~' || (byte < ' ' && strchr("\t\n\r", byte) == NULL) || byte == '\0')
            return refuse(message, "the header is damaged: it holds the byte 0x%02x", byte);
    }
    cursor c = {dictionary.start, dictionary.start + dictionary.length, message};
    fields f = {0};
    if (!read_dictionary(&c, &f)) return false;
    *header = (npy_header){.fortran_order = f.fortran_order};
    header->data_offset = (size_t)(dictionary.start - (const char *)bytes) + dictionary.length;
    return set_type(f.descr, message, header) &&
           set_shape(&f, size - header->data_offset, message, header);
}

size_t npy_format(const npy_header *header, char text[NPY_HEADER_MAX])
{
    enum { PREFIX = 10, ALIGNMENT = 64 };
    const int length =
        snprintf(text + PREFIX, NPY_HEADER_MAX - PREFIX,
                 "{'descr': '%c%s', 'fortran_order': %s, 'shape': (%" PRId64 ", %" PRId64 "), }",
                 own_mark, header->type == TGL_F32 ? "f4" : "f8",
                 header->fortran_order ? "True" : "False", header->rows, header->columns);
    /* Blanks and a newline fill up to the next multiple, so that the data is aligned. */
    const size_t used = PREFIX + (size_t)length;
    const size_t total = (used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(text + used, ' ', total - used - 1);
    text[total - 1] = '\n';
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = (char)((total - PREFIX) & 0xff);
    text[9] = (char)((total - PREFIX) >> 8);
    return total;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* Reads a pipe or the like, whose size nobody knows, to its end. */
static bool read_to_end(int fd, npy_file *file, message_buffer message)
{
    size_t capacity = 0;
    for (;;) {
        if (file->size == capacity) {
            capacity = capacity == 0 ? 1 << 16 : 2 * capacity;
            void *larger = realloc(file->bytes, capacity);
            if (larger == NULL) return refuse(message, "no %zu bytes of memory", capacity);
            file->bytes = larger;
        }
        ssize_t got = read(fd, (char *)file->bytes + file->size, capacity - file->size);
        if (got == 0) return true;
        if (got < 0 && errno != EINTR) return refuse(message, "%s", strerror(errno));
        if (got > 0) file->size += (size_t)got;
    }
}

static bool load(int fd, npy_file *file, message_buffer message)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return refuse(message, "%s", strerror(errno));
    if (S_ISDIR(info.st_mode)) return refuse(message, "this is a folder, not a file");
    if (!S_ISREG(info.st_mode)) return read_to_end(fd, file, message);
    if (info.st_size == 0) return refuse(message, "the file is empty");
    file->size = (size_t)info.st_size;
    void *mapping = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) return refuse(message, "cannot map it: %s", strerror(errno));
    file->bytes = mapping;
    file->mapped = true;
    return true;
}

/* Points file->data to the elements; copies them if the file does not align them. */
static bool align(npy_file *file, message_buffer message)
{
    const npy_header *header = &file->header;
    file->data = (const char *)file->bytes + header->data_offset;
    if ((uintptr_t)file->data % tgl_type_size(header->type) == 0 || header->data_size == 0)
        return true;
    file->copied = malloc(header->data_size);
    if (file->copied == NULL) return refuse(message, "no %zu bytes of memory", header->data_size);
    memcpy(file->copied, file->data, header->data_size);
    file->data = file->copied;
    return true;
}

bool npy_open(const char *path, npy_file *file, char *text, size_t text_size)
{
    const message_buffer message = {text, text_size};
    *file = (npy_file){0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return refuse(message, "%s", strerror(errno));
    bool ok = load(fd, file, message);
    close(fd);
    ok = ok && npy_parse(file->bytes, file->size, &file->header, text, text_size) &&
         align(file, message);
    if (!ok) npy_close(file);
    return ok;
}

void npy_close(npy_file *file)
{
    if (file->mapped)
        munmap(file->bytes, file->size);
    else
        free(file->bytes);
    free(file->copied);
    *file = (npy_file){0};
}
