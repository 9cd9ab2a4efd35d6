/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes the headers of NumPy's .npy files. A file is
 *
 *     "\x93NUMPY"  major  minor  length of the header (2 bytes; from version 2 on 4)  header  data
 *
 * where the header is the text of a Python dictionary with exactly three keys:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 */
#include "npy.h"
#include "message_buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- The header's text ----------------------------------------------------------------------- */

/* A position in the text of the dictionary: `at` moves towards `end`. */
typedef struct cursor {
    const char *at, *end;
    message_buffer message;
} cursor;

/* A substring of the header. */
typedef struct span {
    const char *start;
    size_t length;
} span;

enum { SHOWN = 40 }; /* maximum number of characters that a message quotes */

/* The number of characters of a substring that a message quotes, for printf's "%.*s". */
static int shown_length(span s)
{
    return s.length < SHOWN ? (int)s.length : SHOWN;
}

static bool span_is(span s, const char *text)
{
    return s.length > 0 && s.length == strlen(text) && memcmp(s.start, text, s.length) == 0;
}

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

/* Skips blanks. Returns the next character without consuming it; '\0': the end. */
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
        return message_refuse(c->message, "the header is cut off: it ends where '%c' should be",
                              wanted);
    return message_refuse(c->message, "the header is damaged: '%c' where '%c' should be", *c->at,
                          wanted);
}

static bool read_string(cursor *c, span *string)
{
    const char quote = peek(c);
    if (quote != '\'' && quote != '"')
        return message_refuse(c->message, "the header is damaged: no string where one should be");
    string->start = ++c->at;
    while (c->at < c->end && *c->at != quote && *c->at != '\\')
        c->at++;
    if (c->at == c->end) return message_refuse(c->message, "the header is cut off inside a string");
    if (*c->at == '\\')
        return message_refuse(c->message, "the header has a backslash inside a string");
    string->length = (size_t)(c->at++ - string->start);
    return true;
}

static bool read_bool(cursor *c, bool *value)
{
    const span rest = {peek(c) != '\0' ? c->at : c->end, (size_t)(c->end - c->at)};
    *value = rest.length >= 4 && memcmp(rest.start, "True", 4) == 0;
    if (!*value && (rest.length < 5 || memcmp(rest.start, "False", 5) != 0))
        return message_refuse(c->message, "the header's 'fortran_order' is neither True nor False");
    c->at += *value ? 4 : 5;
    return true;
}

static bool read_size(cursor *c, int64_t *value)
{
    const char first = peek(c);
    if (first == '-') return message_refuse(c->message, "the header's 'shape' has a negative size");
    if (first < '0' || first > '9')
        return message_refuse(c->message, "the header's 'shape' is not a tuple of whole numbers");
    int64_t size = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(size, (int64_t)10, &size) ||
            __builtin_add_overflow(size, (int64_t)(*c->at - '0'), &size))
            return message_refuse(c->message,
                                  "the header's 'shape' has a size that does not fit in 63 bits");
    if (c->at < c->end && *c->at == 'L') c->at++; /* Python 2 wrote numbers with an L at the end */
    *value = size;
    return true;
}

/* ---- The header's three values --------------------------------------------------------------- */

typedef struct fields {
    bool has_descr, has_order, has_shape;
    span descr;
    bool fortran_order;
    int dimensions;
    int64_t shape[NPY_DIMENSIONS_MAX]; /* sizes of the first NPY_DIMENSIONS_MAX dimensions, or of
                                          all if there are fewer */
} fields;

static bool read_shape(cursor *c, fields *f)
{
    if (!expect(c, '(')) return false;
    f->dimensions = 0;
    while (peek(c) != ')') {
        int64_t size = 0;
        if (!read_size(c, &size)) return false;
        if (f->dimensions < NPY_DIMENSIONS_MAX) f->shape[f->dimensions] = size;
        f->dimensions++;
        if (!take(c, ',')) {
            /* In Python "(5)" is a number, not a tuple. */
            if (f->dimensions == 1)
                return message_refuse(c->message,
                                      "the header's 'shape' is not a tuple of whole numbers");
            break;
        }
    }
    return expect(c, ')');
}

static bool read_descr(cursor *c, fields *f)
{
    if (peek(c) == '[' || peek(c) == '(')
        return message_refuse(c->message,
                              "the elements are records of several fields; save one field as an "
                              "array of numbers");
    return read_string(c, &f->descr);
}

/* Reads one "key: value" of the dictionary. False: it is invalid, and the message says why. */
static bool read_entry(cursor *c, fields *f)
{
    span key = {0};
    if (!read_string(c, &key) || !expect(c, ':')) return false;
    bool *seen = span_is(key, "descr")           ? &f->has_descr
                 : span_is(key, "fortran_order") ? &f->has_order
                 : span_is(key, "shape")         ? &f->has_shape
                                                 : NULL;
    if (seen == NULL)
        return message_refuse(c->message, "the header has a key '%.*s' that NumPy does not know",
                              shown_length(key), key.start);
    if (*seen)
        return message_refuse(c->message, "the header has the key '%.*s' twice", shown_length(key),
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
        return message_refuse(c->message, "the header goes on after its dictionary");
    const char *missing = !f->has_descr   ? "descr"
                          : !f->has_order ? "fortran_order"
                          : !f->has_shape ? "shape"
                                          : NULL;
    return missing == NULL || message_refuse(c->message, "the header lacks the key '%s'", missing);
}

/* ---- From fields to a matrix ----------------------------------------------------------------- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static const char own_mark = '<', other_mark = '>';
#else
static const char own_mark = '>', other_mark = '<';
#endif

/* NumPy's codes of the types. NumPy has no bfloat16: it writes bfloat16 arrays of the package
 * ml_dtypes as raw elements of two bytes, "V2". */
static const struct {
    const char *code, *name;
    tgl_type type;
} types[] = {
    {"f4", "float32", TGL_F32},   {"f8", "float64", TGL_F64},      {"f2", "float16", TGL_F16},
    {"V2", "bfloat16", TGL_BF16}, {"i1", "int8", TGL_I8},          {"i4", "int32", TGL_I32},
    {"c8", "complex64", TGL_C64}, {"c16", "complex128", TGL_C128},
};
enum { TYPES = sizeof types / sizeof types[0] };

const char *npy_type_name(tgl_type type)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type) return types[i].name;
    return "?";
}

/* Writes the message about an element type that the library cannot multiply. Returns false. */
static bool refuse_type(span descr, span kind, message_buffer message)
{
    const char letter = kind.length > 0 ? kind.start[0] : '\0';
    const char *advice = "";
    if (letter == 'i' || letter == 'u' || letter == 'b')
        advice = "; convert them with astype() in NumPy, to float64 where all digits count";
    return message_refuse(
        message,
        "the elements are of type '%.*s'; float32, float64, float16, bfloat16, int8, complex64 and "
        "complex128 can be multiplied%s",
        shown_length(descr), descr.start, advice);
}

static bool set_type(span descr, message_buffer message, npy_header *header)
{
    span kind = descr;
    char mark = '=';
    if (kind.length > 0 && strchr("<>=|", kind.start[0]) != NULL) {
        mark = kind.start[0];
        kind.start++;
        kind.length--;
    }
    for (int i = 0; i < TYPES; i++)
        if (span_is(kind, types[i].code)) header->type = types[i].type;
    if (header->type == 0) return refuse_type(descr, kind, message);
    if (mark == other_mark)
        return message_refuse(
            message,
            "the elements are %s-endian ('%.*s'), this machine is not: convert with "
            "A.astype('%c%.*s') in NumPy",
            other_mark == '>' ? "big" : "little", shown_length(descr), descr.start, own_mark,
            shown_length(kind), kind.start);
    return true;
}

void npy_describe_shape(const npy_header *header, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < header->dimensions; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%" PRId64, i > 0 ? " x " : "",
                 header->shape[i]);
}

static bool set_shape(const fields *f, size_t left, message_buffer message, npy_header *header)
{
    char text[80];
    if (f->dimensions < 1 || f->dimensions > NPY_DIMENSIONS_MAX)
        return message_refuse(
            message,
            "the array has %d dimensions; a vector has 1, a matrix 2 and a batch of "
            "matrices 3: save A.reshape(...) with as many",
            f->dimensions);
    header->dimensions = f->dimensions;
    size_t size = tgl_type_size(header->type);
    bool is_empty = false, fits = true;
    for (int i = 0; i < f->dimensions; i++) {
        header->shape[i] = f->shape[i];
        is_empty = is_empty || f->shape[i] == 0;
        fits = fits && !__builtin_mul_overflow(size, (size_t)f->shape[i], &size);
    }
    if (is_empty) size = 0;
    npy_describe_shape(header, text, sizeof text);
    if (!is_empty && (!fits || size > INT64_MAX))
        return message_refuse(message, "an array of %s elements has more bytes than fit in 63 bits",
                              text);
    if (size > left)
        return message_refuse(message,
                              "the file is cut off: %s elements need %zu bytes, %zu are there",
                              text, size, left);
    header->data_size = size;
    return true;
}

/* Finds the text of the dictionary. False: the bytes are no .npy file, its version is unknown, or
 * the header is cut off; the message says which. */
static bool find_dictionary(const unsigned char *bytes, size_t size, message_buffer message,
                            span *text)
{
    if (size < 6 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return message_refuse(message, "not a NumPy file: save it with numpy.save()");
    if (size < 8) return message_refuse(message, "the file is cut off inside its header");
    const unsigned version = bytes[6];
    if (version < 1 || version > 3 || bytes[7] != 0)
        return message_refuse(message,
                              "version %u.%u of the .npy format is not known; 1.0 to 3.0 are",
                              version, bytes[7]);
    const size_t start = version == 1 ? 10 : 12;
    if (size < start) return message_refuse(message, "the file is cut off inside its header");
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size - start)
        return message_refuse(
            message, "the file is cut off inside its header: %zu bytes long, %zu are there", length,
            size - start);
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
            return message_refuse(message, "the header is damaged: it holds the byte 0x%02x", byte);
    }
    cursor c = {dictionary.start, dictionary.start + dictionary.length, message};
    fields f = {0};
    if (!read_dictionary(&c, &f)) return false;
    *header = (npy_header){.fortran_order = f.fortran_order};
    header->data_offset = (size_t)(dictionary.start - (const char *)bytes) + dictionary.length;
    return set_type(f.descr, message, header) &&
           set_shape(&f, size - header->data_offset, message, header);
}

/* Writes a shape as Python does: "(3, 4)", "(5,)" or "()". */
static void format_shape(const npy_header *header, char *text, size_t size)
{
    snprintf(text, size, "(");
    for (int i = 0; i < header->dimensions; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%" PRId64, i > 0 ? ", " : "",
                 header->shape[i]);
    snprintf(text + strlen(text), size - strlen(text), "%s)", header->dimensions == 1 ? "," : "");
}

size_t npy_format(const npy_header *header, char text[NPY_HEADER_MAX])
{
    enum { PREFIX = 10, ALIGNMENT = 64 };
    char shape[80];
    const char *code = "";
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == header->type) code = types[i].code;
    format_shape(header, shape, sizeof shape);
    const int length = snprintf(text + PREFIX, NPY_HEADER_MAX - PREFIX,
                                "{'descr': '%c%s', 'fortran_order': %s, 'shape': %s, }", own_mark,
                                code, header->fortran_order ? "True" : "False", shape);
    /* Blanks and a newline pad the header, so that the elements are aligned in the file. */
    const size_t used = PREFIX + (size_t)length;
    const size_t total = (used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(text + used, ' ', total - used - 1);
    text[total - 1] = '\n';
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = (char)((total - PREFIX) & 0xff);
    text[9] = (char)((total - PREFIX) >> 8);
    return total;
}
