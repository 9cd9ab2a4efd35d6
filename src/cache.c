/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk cache: the folder first, then keys, then entries.
 */
#include "cache.h"
#include "tegula/tegula.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct tgl_cache {
    int folder;     /* its file descriptor; -1: the cache is off */
    bool is_wanted; /* not turned off by TEGULA_CACHE */
    char description[PATH_MAX];
};

/* What an entry's file begins with. Numbers are the machine's own: a cache is not carried about. */
typedef struct entry_header {
    char magic[8];
    uint64_t size; /* bytes that follow */
    unsigned char key[TGL_SHA256_BYTES], checksum[TGL_SHA256_BYTES];
} entry_header;

static const char magic[8] = "tegula1";

enum { LARGEST_ENTRY = 1 << 28 }; /* bytes; no kernel comes near it */

/* ---- The folder ------------------------------------------------------------------------------ */

static bool turn_off(tgl_cache *cache, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool turn_off(tgl_cache *cache, const char *format, ...)
{
    char reason[sizeof cache->description - sizeof "off ()"];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    snprintf(cache->description, sizeof cache->description, "off (%s)", reason);
    return false;
}

/* Writes the folder's path to `path`, or turns the cache off. */
static bool choose_folder(tgl_cache *cache, char *path, size_t size)
{
    const char *own = secure_getenv("TEGULA_CACHE"), *xdg = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    int length;
    cache->is_wanted = own == NULL || (own[0] != '\0' && strcmp(own, "off") != 0);
    if (!cache->is_wanted) return turn_off(cache, "TEGULA_CACHE says so");
    if (own != NULL) {
        length = snprintf(path, size, "%s", own);
    } else if (xdg != NULL && xdg[0] == '/') { /* the standard says to ignore relative paths */
        length = snprintf(path, size, "%s/tegula", xdg);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(path, size, "%s/.cache/tegula", home);
    } else {
        return turn_off(cache, "HOME is not set; TEGULA_CACHE can name a folder");
    }
    return length < (int)size || turn_off(cache, "the folder's path is too long");
}

/* mkdir -p with mode 0700. What cannot be made shows when the folder is opened. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
}

static bool open_folder(tgl_cache *cache)
{
    char path[sizeof cache->description - sizeof "off ()" - 64];
    if (!choose_folder(cache, path, sizeof path)) return false;
    make_folders(path);
    cache->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache->folder < 0) return turn_off(cache, "%s: %s", path, strerror(errno));

    struct stat info;
    if (fstat(cache->folder, &info) != 0) return turn_off(cache, "%s: %s", path, strerror(errno));
    if (info.st_uid != geteuid()) return turn_off(cache, "%s belongs to another user", path);
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return turn_off(cache, "%s: others may write to it; chmod 700 it", path);
    snprintf(cache->description, sizeof cache->description, "%s", path);
    return true;
}

tgl_cache *tgl_cache_open(void)
{
    tgl_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) return NULL;
    cache->folder = -1;
    if (!open_folder(cache) && cache->folder >= 0) {
        close(cache->folder);
        cache->folder = -1;
    }
    return cache;
}

void tgl_cache_close(tgl_cache *cache)
{
    if (cache == NULL) return;
    if (cache->folder >= 0) close(cache->folder);
    free(cache);
}

const char *tgl_cache_describe(const tgl_cache *cache)
{
    return cache != NULL ? cache->description : "off (out of memory)";
}

tgl_cache_state tgl_cache_state_of(const tgl_cache *cache)
{
    if (cache == NULL) return TGL_CACHE_UNUSABLE;
    if (cache->folder >= 0) return TGL_CACHE_ON;
    return cache->is_wanted ? TGL_CACHE_UNUSABLE : TGL_CACHE_OFF;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

void tgl_cache_key_start(tgl_cache_key *key, const char *kind)
{
    tgl_sha256_start(&key->hash);
    tgl_cache_key_add(key, magic, sizeof magic);
    tgl_cache_key_add_text(key, tgl_version());
    tgl_cache_key_add_text(key, kind);
}

void tgl_cache_key_add(tgl_cache_key *key, const void *data, size_t size)
{
    const uint64_t length = size;
    tgl_sha256_add(&key->hash, &length, sizeof length);
    tgl_sha256_add(&key->hash, data, size);
}

void tgl_cache_key_add_text(tgl_cache_key *key, const char *text)
{
    tgl_cache_key_add(key, text, strlen(text));
}

typedef struct entry_name {
    unsigned char digest[TGL_SHA256_BYTES];
    char text[2 * TGL_SHA256_BYTES + 1]; /* in hexadecimal */
} entry_name;

static entry_name name_of(const tgl_cache_key *key)
{
    entry_name name;
    tgl_sha256 hash = key->hash;
    tgl_sha256_finish(&hash, name.digest);
    for (int i = 0; i < TGL_SHA256_BYTES; i++)
        snprintf(name.text + 2 * i, 3, "%02x", name.digest[i]);
    return name;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static bool read_all(int file, void *data, size_t size)
{
    char *at = data;
    while (size > 0) {
        ssize_t got = read(file, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int file, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t put = write(file, at, size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

static void checksum(const void *data, size_t size, unsigned char digest[TGL_SHA256_BYTES])
{
    tgl_sha256 hash;
    tgl_sha256_start(&hash);
    tgl_sha256_add(&hash, data, size);
    tgl_sha256_finish(&hash, digest);
}

/* Reads and verifies an open entry. NULL: it is not what it says. */
static void *read_entry(int file, const entry_name *name, size_t *size)
{
    struct stat info;
    entry_header header;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        !read_all(file, &header, sizeof header) || memcmp(header.magic, magic, sizeof magic) != 0 ||
        header.size > LARGEST_ENTRY || (uint64_t)info.st_size != sizeof header + header.size ||
        memcmp(header.key, name->digest, sizeof header.key) != 0)
        return NULL;

    char *data = malloc((size_t)header.size + 1);
    if (data == NULL) return NULL;
    unsigned char digest[TGL_SHA256_BYTES];
    bool is_whole = read_all(file, data, (size_t)header.size);
    if (is_whole) checksum(data, (size_t)header.size, digest);
    if (!is_whole || memcmp(digest, header.checksum, sizeof digest) != 0) {
        free(data);
        return NULL;
    }
    data[header.size] = '\0';
    *size = (size_t)header.size;
    return data;
}

bool tgl_cache_load(const tgl_cache *cache, const tgl_cache_key *key, void **data, size_t *size)
{
    if (cache == NULL || cache->folder < 0) return false;
    const entry_name name = name_of(key);
    int file = openat(cache->folder, name.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return false;
    *data = read_entry(file, &name, size);
    close(file);
    return *data != NULL;
}

/* A name that no other writer uses at the same time. */
static void make_temporary_name(char *name, size_t size)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (uint64_t)getpid() << 32 ^ (uintptr_t)name;
    snprintf(name, size, "new-%016llx", (unsigned long long)number);
}

bool tgl_cache_store(const tgl_cache *cache, const tgl_cache_key *key, const void *data,
                     size_t size)
{
    if (cache == NULL || cache->folder < 0 || size > LARGEST_ENTRY) return false;
    const entry_name name = name_of(key);
    entry_header header = {.size = size};
    memcpy(header.magic, magic, sizeof magic);
    memcpy(header.key, name.digest, sizeof header.key);
    checksum(data, size, header.checksum);

    char temporary[32];
    make_temporary_name(temporary, sizeof temporary);
    int file = openat(cache->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return false;
    bool done = write_all(file, &header, sizeof header) && write_all(file, data, size);
    done = close(file) == 0 && done;
    done = done && renameat(cache->folder, temporary, cache->folder, name.text) == 0;
    if (!done) unlinkat(cache->folder, temporary, 0);
    return done;
}
