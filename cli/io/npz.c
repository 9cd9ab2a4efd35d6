/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads ZIP archives (APPNOTE.TXT of PKWARE). A record at the end of the archive has the offset of
 * the directory, whose entries have the offsets of the members. Sizes and offsets of more than 32
 * bits are in a separate record ("zip64"). All numbers are little-endian.
 */
#include "npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef TEGULA_ZLIB
#include <zlib.h>
#endif

/* Signatures of the records; sizes in bytes of their fixed parts; the maximum length of the
 * archive's comment. */
enum {
    LOCAL_HEADER = 0x04034b50,
    DIRECTORY_ENTRY = 0x02014b50,
    DIRECTORY_END = 0x06054b50,
    ZIP64_END = 0x06064b50,
    ZIP64_LOCATOR = 0x07064b50,
    LOCAL_HEADER_SIZE = 30,
    ENTRY_SIZE = 46,
    END_SIZE = 22,
    ZIP64_END_SIZE = 56,
    ZIP64_LOCATOR_SIZE = 20,
    COMMENT_MAX = 65535,
};
enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 1, ZIP64_EXTRA = 1 };
static const uint64_t in_zip64 = 0xffffffff; /* this value of a 32-bit field means that the actual
                                                value is in the zip64 record */

typedef struct archive {
    const unsigned char *bytes;
    uint64_t size;
    message_buffer message;
} archive;

/* An entry of the directory. */
typedef struct entry {
    const char *name; /* not terminated */
    unsigned name_length, method, flags;
    uint64_t crc, compressed, size, offset; /* offset: of the local header */
} entry;

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

static bool is_damaged(const archive *a)
{
    return message_refuse(a->message, "the .npz archive is damaged or cut off");
}

/* The address of `length` bytes at `offset` in the archive; NULL: the archive is too short. */
static const unsigned char *span(const archive *a, uint64_t offset, uint64_t length)
{
    return offset <= a->size && length <= a->size - offset ? a->bytes + offset : NULL;
}

/* ---- The directory --------------------------------------------------------------------------- */

/* Finds the record that ends the directory. A comment may follow it, so the search goes backwards
 * from the end of the archive. NULL: there is none. */
static const unsigned char *find_end(const archive *a)
{
    if (a->size < END_SIZE) return NULL;
    const uint64_t last = a->size - END_SIZE, first = last > COMMENT_MAX ? last - COMMENT_MAX : 0;
    for (uint64_t at = last + 1; at-- > first;)
        if (number(a->bytes + at, 4) == DIRECTORY_END) return a->bytes + at;
    return NULL;
}

/* *offset := the offset of the directory; *count := its number of entries. False: the archive is
 * damaged, and the message says so. */
static bool find_directory(const archive *a, uint64_t *offset, uint64_t *count)
{
    const unsigned char *end = find_end(a);
    if (end == NULL) return is_damaged(a);
    *count = number(end + 10, 2);
    *offset = number(end + 16, 4);
    if (*offset != in_zip64 && *count != 0xffff) return true;
    const uint64_t at = (uint64_t)(end - a->bytes);
    if (at < ZIP64_LOCATOR_SIZE) return is_damaged(a);
    const unsigned char *locator = end - ZIP64_LOCATOR_SIZE;
    if (number(locator, 4) != ZIP64_LOCATOR) return true;
    const unsigned char *end64 = span(a, number(locator + 8, 8), ZIP64_END_SIZE);
    if (end64 == NULL || number(end64, 4) != ZIP64_END) return is_damaged(a);
    *count = number(end64 + 32, 8);
    *offset = number(end64 + 48, 8);
    return true;
}

/* Replaces those values of an entry that equal in_zip64 by the 64-bit values in the entry's zip64
 * record, which is one of the `extra` fields. False: a record is too short. */
static bool read_zip64(const unsigned char *extra, uint64_t length, entry *e)
{
    uint64_t *const fields[] = {&e->size, &e->compressed, &e->offset};
    while (length >= 4) {
        const uint64_t id = number(extra, 2), size = number(extra + 2, 2);
        if (size > length - 4) return false;
        const unsigned char *at = extra + 4, *end = at + size;
        for (int i = 0; i < 3 && id == ZIP64_EXTRA; i++) {
            if (*fields[i] != in_zip64) continue;
            if (end - at < 8) return false;
            *fields[i] = number(at, 8);
            at += 8;
        }
        extra += 4 + size;
        length -= 4 + size;
    }
    return true;
}

/* Reads the directory entry at *offset, and advances *offset to the next one. False: the archive is
 * damaged, and the message says so. */
static bool read_entry(const archive *a, uint64_t *offset, entry *e)
{
    const unsigned char *at = span(a, *offset, ENTRY_SIZE);
    if (at == NULL || number(at, 4) != DIRECTORY_ENTRY) return is_damaged(a);
    const uint64_t name = number(at + 28, 2), extra = number(at + 30, 2);
    const uint64_t whole = ENTRY_SIZE + name + extra + number(at + 32, 2);
    if (span(a, *offset, whole) == NULL) return is_damaged(a);
    *e = (entry){
        .name = (const char *)at + ENTRY_SIZE,
        .name_length = (unsigned)name,
        .flags = (unsigned)number(at + 8, 2),
        .method = (unsigned)number(at + 10, 2),
        .crc = number(at + 16, 4),
        .compressed = number(at + 20, 4),
        .size = number(at + 24, 4),
        .offset = number(at + 42, 4),
    };
    *offset += whole;
    return read_zip64(at + ENTRY_SIZE + name, extra, e) || is_damaged(a);
}

/* The length of the array's name, which is the name of the member without ".npy". */
static int array_name_length(const entry *e)
{
    const unsigned length = e->name_length;
    const bool has_suffix = length > 4 && memcmp(e->name + length - 4, ".npy", 4) == 0;
    return (int)(has_suffix ? length - 4 : length);
}

static bool is_called(const entry *e, const char *name)
{
    const size_t length = strlen(name);
    return (length == (size_t)array_name_length(e) || length == e->name_length) &&
           memcmp(e->name, name, length) == 0;
}

/* Appends the name of an array to a list of names. If the name does not fit, appends "..." once
 * instead. */
static void add_name(const entry *e, char *list, size_t size)
{
    const size_t used = strlen(list);
    if (used + 50 < size)
        snprintf(list + used, size - used, "%s%.*s", used > 0 ? ", " : "",
                 array_name_length(e) < 40 ? array_name_length(e) : 40, e->name);
    else if (used + 4 < size && (used < 3 || strcmp(list + used - 3, "...") != 0))
        strcat(list, "...");
}

static bool find_entry(const archive *a, const char *name, entry *found)
{
    uint64_t offset = 0, count = 0;
    char names[160] = "";
    if (!find_directory(a, &offset, &count)) return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!read_entry(a, &offset, found)) return false;
        if (name != NULL ? is_called(found, name) : count == 1) return true;
        add_name(found, names, sizeof names);
    }
    if (count == 0) return message_refuse(a->message, "the .npz archive is empty");
    if (name == NULL)
        return message_refuse(a->message,
                              "this .npz archive has the arrays %s; name one behind a colon, as in "
                              "FILE.npz:NAME",
                              names);
    return message_refuse(a->message, "the .npz archive has no array \"%.40s\"; it has %s", name,
                          names);
}

/* ---- Members --------------------------------------------------------------------------------- */

/* The CRC-32 of the bytes (reflected polynomial 0xedb88320), computed four bits at a time. */
static uint32_t checksum(const unsigned char *bytes, uint64_t size)
{
    uint32_t table[16], crc = 0xffffffffu;
    for (uint32_t i = 0; i < 16; i++) {
        table[i] = i;
        for (int bit = 0; bit < 4; bit++)
            table[i] = (table[i] & 1) != 0 ? table[i] >> 1 ^ 0xedb88320u : table[i] >> 1;
    }
    for (uint64_t i = 0; i < size; i++) {
        crc = table[(crc ^ bytes[i]) & 15] ^ crc >> 4;
        crc = table[(crc ^ bytes[i] >> 4) & 15] ^ crc >> 4;
    }
    return ~crc;
}

#ifdef TEGULA_ZLIB
enum { DEFLATE_RATIO_MAX = 1032 }; /* maximum compression by deflate (zlib's documentation) */

/* Returns how many of the *left bytes to pass to zlib next, and subtracts that number from *left.
 * It is at most 2^30, because zlib's counters have 32 bits. */
static unsigned take_part(uint64_t *left)
{
    const unsigned part = *left < (1u << 30) ? (unsigned)*left : 1u << 30;
    *left -= part;
    return part;
}

static bool inflate_all(const unsigned char *data, uint64_t compressed, unsigned char *out,
                        uint64_t size)
{
    z_stream stream = {.next_in = (unsigned char *)data, .next_out = out};
    int status = inflateInit2(&stream, -MAX_WBITS); /* negative: the data has no zlib header */
    if (status != Z_OK) return false;
    while (status == Z_OK) {
        if (stream.avail_in == 0) stream.avail_in = take_part(&compressed);
        if (stream.avail_out == 0) stream.avail_out = take_part(&size);
        status = inflate(&stream, Z_NO_FLUSH);
    }
    const bool is_whole = status == Z_STREAM_END && size == 0 && stream.avail_out == 0;
    inflateEnd(&stream);
    return is_whole;
}

static bool inflate_member(const archive *a, const entry *e, const unsigned char *data,
                           void **inflated)
{
    if (e->size / DEFLATE_RATIO_MAX > e->compressed) return is_damaged(a);
    *inflated = malloc(e->size + 1);
    if (*inflated == NULL)
        return message_refuse(a->message, "no %llu bytes of memory", (unsigned long long)e->size);
    return inflate_all(data, e->compressed, *inflated, e->size) || is_damaged(a);
}
#else
static bool inflate_member(const archive *a, const entry *e, const unsigned char *data,
                           void **inflated)
{
    (void)e, (void)data, (void)inflated;
    return message_refuse(a->message,
                          "the array is compressed, and this program was built without zlib: save "
                          "it with numpy.savez() instead of numpy.savez_compressed()");
}
#endif

static bool read_member(const archive *a, const entry *e, const unsigned char **member,
                        void **inflated)
{
    const unsigned char *local = span(a, e->offset, LOCAL_HEADER_SIZE);
    if (local == NULL || number(local, 4) != LOCAL_HEADER) return is_damaged(a);
    if ((e->flags & ENCRYPTED) != 0)
        return message_refuse(a->message, "the array is encrypted in the .npz archive");
    const uint64_t skip = LOCAL_HEADER_SIZE + number(local + 26, 2) + number(local + 28, 2);
    const unsigned char *data = span(a, e->offset + skip, e->compressed);
    if (data == NULL) return is_damaged(a);
    if (e->method == STORED && e->compressed == e->size) {
        *member = data;
    } else if (e->method == DEFLATED) {
        if (!inflate_member(a, e, data, inflated)) return false;
        *member = *inflated;
    } else {
        return message_refuse(a->message, "the array is compressed by method %u, not by deflate",
                              e->method);
    }
    if (checksum(*member, e->size) == e->crc) return true;
    return message_refuse(a->message, "the array's checksum in the .npz archive is wrong");
}

bool npz_is_archive(const unsigned char *bytes, size_t size)
{
    return size >= 4 && (number(bytes, 4) == LOCAL_HEADER || number(bytes, 4) == DIRECTORY_END);
}

bool npz_find(const unsigned char *bytes, size_t size, const char *name,
              const unsigned char **member, size_t *member_size, void **inflated,
              message_buffer message)
{
    const archive a = {bytes, size, message};
    entry e = {.name = ""};
    *inflated = NULL;
    if (!find_entry(&a, name, &e)) return false;
    *member_size = (size_t)e.size;
    if (read_member(&a, &e, member, inflated)) return true;
    free(*inflated);
    *inflated = NULL;
    return false;
}
