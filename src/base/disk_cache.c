/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk cache. The parts of this file: the folder, keys, entries, storing.
 */
#include "base/disk_cache.h"
#include "base/disk_cache_limit.h"
#include "base/error.h"
#include "base/file_write.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct tgl_cache {
    int folder;            /* file descriptor of the cache's folder; -1: the cache is off */
    bool is_wanted;        /* false: TEGULA_CACHE turns the cache off */
    uint64_t size_max;     /* limit of the total bytes of all entries */
    _Atomic uint64_t left; /* bytes that may be stored before the folder is read again */
    char description[PATH_MAX];
};

/* The header of an entry's file. Numbers are in the byte order of the machine, because the cache is
 * not shared between machines. */
typedef struct entry_header {
    char magic[8];
    uint64_t size;     /* bytes of content that follow the header */
    uint64_t checksum; /* checksum of the content */
    unsigned char key[TGL_SHA256_BYTES];
} entry_header;

static const char magic[8] = TGL_CACHE_WRITER "2";

enum { LARGEST_ENTRY = 1 << 28 }; /* maximum bytes of an entry; compiled kernels are much smaller */

static const uint64_t size_max_default = 256 << 20;

/* ---- The folder ------------------------------------------------------------------------------ */

static bool turn_off(tgl_cache *cache, const char *format, ...) TGL_PRINTF(2, 3);
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

/* The path of the cache's folder. text[0..own): the folder that TEGULA_CACHE, XDG_CACHE_HOME or
 * HOME names. text[0..existing): a folder that must exist and is never created, such as the home
 * directory, because service accounts have none on purpose. */
typedef struct cache_path {
    /* 128 bytes shorter than tgl_cache.description, in which a remark may follow the path. */
    char text[sizeof(((tgl_cache *)0)->description) - 128];
    size_t own, existing;
    bool makes_folders; /* the folders are created if they do not exist */
    bool is_missing;    /* the folder does not exist, and was not to be created */
} cache_path;

/* Chooses the folder, or turns the cache off. The entries are always in a sub-folder of their own,
 * because the folder that TEGULA_CACHE names may also contain files of the user. */
static bool choose_folder(tgl_cache *cache, cache_path *path)
{
    const char *own = secure_getenv("TEGULA_CACHE"), *xdg = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME"), *folder = "tegula";
    cache->is_wanted = own == NULL || (own[0] != '\0' && strcmp(own, "off") != 0);
    if (!cache->is_wanted) return turn_off(cache, "TEGULA_CACHE says so");
    if (own != NULL && own[0] != '/')
        return turn_off(cache, "TEGULA_CACHE is \"%.200s\", which is not an absolute path", own);
    if (own == NULL && xdg != NULL &&
        xdg[0] == '/') { /* the XDG standard requires relative paths to be ignored */
        own = xdg;
        path->existing = (size_t)(strrchr(xdg, '/') - xdg);
    } else if (own == NULL && home != NULL && home[0] == '/') {
        own = home;
        folder = ".cache/tegula";
        path->existing = strlen(home);
    } else if (own == NULL) {
        return turn_off(cache, "HOME is not an absolute path; TEGULA_CACHE can name a folder");
    }
    path->own = strlen(own);
    const int length = snprintf(path->text, sizeof path->text, "%s/%s", own, folder);
    return length < (int)sizeof path->text || turn_off(cache, "the folder's path is too long");
}

/* Whether a folder, and a symbolic link to it, belong to the caller or to root, so that no other
 * user can replace the folder. */
static bool has_trusted_owner(const char *path)
{
    struct stat link, folder;
    if (lstat(path, &link) != 0 || stat(path, &folder) != 0) return false;
    return (link.st_uid == geteuid() || link.st_uid == 0) &&
           (folder.st_uid == geteuid() || folder.st_uid == 0);
}

/* Creates a folder with mode 0700, whatever the umask is. It is no error if another process has
 * just created it. */
static bool make_folder(const char *path)
{
    return mkdir(path, 0700) == 0 ? chmod(path, 0700) == 0 : errno == EEXIST;
}

/* Creates the folders of the path like `mkdir -p`. Turns the cache off if a folder is missing that
 * cannot or must not be created. The owners of folders turn it off, too, in two cases: a folder
 * would have to be created in another user's folder; or another user owns the folder that the
 * environment names, or one of the folders below it. Example: root, with the HOME of the user who
 * called sudo. */
static bool make_folders(tgl_cache *cache, cache_path *path)
{
    char *const text = path->text;
    const size_t length = strlen(text);
    bool is_trusted = true; /* whether the containing folder's owner is the caller or root */
    for (size_t at = path->existing; at <= length; at++) {
        struct stat info;
        at += strcspn(text + at, "/");
        if (at == 0) continue;
        text[at] = '\0';
        const bool exists = stat(text, &info) == 0, may_be_made = at > path->existing;
        path->is_missing = !exists && may_be_made && !path->makes_folders;
        if (exists) is_trusted = has_trusted_owner(text);
        if (!is_trusted && (!exists || at >= path->own))
            return turn_off(cache, "%s belongs to another user", text);
        if (path->is_missing) {
            if (at < length) text[at] = '/';
            return turn_off(cache, "%s does not exist yet", text);
        }
        if (!exists && (!may_be_made || !make_folder(text)))
            return turn_off(cache, "%s: %s", text, strerror(errno));
        if (at < length) text[at] = '/';
    }
    return true;
}

/* Reads TEGULA_CACHE_SIZE, such as "64M". False: it is invalid. */
static bool read_size_max(uint64_t *size)
{
    const char *setting = secure_getenv("TEGULA_CACHE_SIZE");
    *size = size_max_default;
    if (setting == NULL) return true;
    if (!isdigit((unsigned char)setting[0])) return false;
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(setting, &end, 10);
    const int unit = toupper((unsigned char)*end);
    const int shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
    if (shift > 0) end++;
    if (errno != 0 || *end != '\0' || number > UINT64_MAX >> shift) return false;
    *size = (uint64_t)number << shift;
    return true;
}

static bool open_folder(tgl_cache *cache, cache_path *path)
{
    static const char remark[] = " (TEGULA_CACHE_SIZE is not understood: 256M)";
    path->own = path->existing = 0;
    if (!choose_folder(cache, path) || !make_folders(cache, path)) return false;
    cache->folder = open(path->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache->folder < 0) return turn_off(cache, "%s: %s", path->text, strerror(errno));

    struct stat info;
    if (fstat(cache->folder, &info) != 0)
        return turn_off(cache, "%s: %s", path->text, strerror(errno));
    if (info.st_uid != geteuid()) return turn_off(cache, "%s belongs to another user", path->text);
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return turn_off(cache, "%s: others may write to it; chmod 700 it", path->text);
    snprintf(cache->description, sizeof cache->description, "%s%s", path->text,
             read_size_max(&cache->size_max) ? "" : remark);
    return true;
}

/* Opens a cache. makes_folders: creates its folder if necessary. *path := the path of the
 * folder. */
static tgl_cache *open_cache(bool makes_folders, cache_path *path)
{
    tgl_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) return NULL;
    cache->folder = -1;
    path->makes_folders = makes_folders;
    path->is_missing = false;
    if (!open_folder(cache, path) && cache->folder >= 0) {
        close(cache->folder);
        cache->folder = -1;
    }
    return cache;
}

tgl_cache *tgl_cache_open(void)
{
    cache_path path;
    return open_cache(true, &path);
}

void tgl_cache_close(tgl_cache *cache)
{
    if (cache == NULL) return;
    if (cache->folder >= 0) close(cache->folder);
    free(cache);
}

bool tgl_cache_path(const char *file, bool makes_folder, char *path, size_t size)
{
    cache_path folder;
    tgl_cache *cache = open_cache(makes_folder, &folder);
    const bool is_on = tgl_cache_state_of(cache) == TGL_CACHE_ON;
    const bool may_be = cache != NULL && folder.is_missing;
    tgl_cache_close(cache);
    return (is_on || may_be) && snprintf(path, size, "%s/%s", folder.text, file) < (int)size;
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
    entry_name name = {.text = ""};
    tgl_sha256 hash = key->hash;
    tgl_sha256_finish(&hash, name.digest);
    tgl_sha256_text(name.digest, TGL_SHA256_BYTES, name.text);
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

enum { LANES = 4 };
static const uint64_t golden = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */

static void add_words(uint64_t lane[LANES], const uint64_t words[LANES])
{
    for (int i = 0; i < LANES; i++) {
        lane[i] = (lane[i] ^ words[i]) * golden;
        lane[i] ^= lane[i] >> 29;
    }
}

/* Checksum of an entry's content. It detects damage, not attacks: only the owner can write to
 * the folder. Four independent multiplicative sums, as in xxHash, run at memory speed. SHA-256
 * would take 2 ms for a kernel of 300 KB. */
static uint64_t checksum(const void *data, size_t size)
{
    uint64_t words[LANES], lane[LANES] = {size, 1, 2, 3}, sum = 0;
    const char *at = data;
    for (; size >= sizeof words; size -= sizeof words, at += sizeof words) {
        memcpy(words, at, sizeof words);
        add_words(lane, words);
    }
    if (size > 0) {
        memset(words, 0, sizeof words);
        memcpy(words, at, size);
        add_words(lane, words);
    }
    for (int i = 0; i < LANES; i++)
        sum = (sum ^ lane[i]) * golden + (sum >> 32);
    return sum;
}

/* Reads and verifies an open entry. The caller frees the result. NULL: invalid, or no memory. */
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
    const bool is_whole = read_all(file, data, (size_t)header.size);
    if (!is_whole || checksum(data, (size_t)header.size) != header.checksum) {
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
    if (*data != NULL) futimens(file, NULL); /* marks the entry as the most recently used one */
    close(file);
    return *data != NULL;
}

bool tgl_cache_has(const tgl_cache *cache, const tgl_cache_key *key)
{
    if (cache == NULL || cache->folder < 0) return false;
    const entry_name name = name_of(key);
    return faccessat(cache->folder, name.text, R_OK, AT_EACCESS) == 0;
}

/* ---- Storing --------------------------------------------------------------------------------- */

/* Makes a file name that no other writer uses at the same time. */
static void make_temporary_name(char *name, size_t size)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (uint64_t)getpid() << 32 ^ (uintptr_t)name;
    snprintf(name, size, "%s%0*llx", TGL_CACHE_TEMPORARY, TGL_CACHE_TEMPORARY_DIGITS,
             (unsigned long long)number);
}

/* Bounds the folder's size after an entry of `size` bytes was stored. Reading the folder takes as
 * long as storing an entry if it has some thousand entries. Therefore it is read only at the first
 * store, after this process has added a 64th of the limit, or when the entries that were there and
 * its own exceed the limit. */
static void bound_size(tgl_cache *cache, uint64_t size, const char *newest)
{
    uint64_t left = atomic_load(&cache->left);
    while (size <= left)
        if (atomic_compare_exchange_weak(&cache->left, &left, left - size)) return;
    left = tgl_cache_bound_size(cache->folder, cache->size_max, newest);
    atomic_store(&cache->left, left < cache->size_max / 64 ? left : cache->size_max / 64);
}

bool tgl_cache_store(tgl_cache *cache, const tgl_cache_key *key, const void *data, size_t size)
{
    if (cache == NULL || cache->folder < 0 || size > LARGEST_ENTRY) return false;
    const entry_name name = name_of(key);
    entry_header header = {.size = size};
    memcpy(header.magic, magic, sizeof magic);
    memcpy(header.key, name.digest, sizeof header.key);
    header.checksum = checksum(data, size);

    char temporary[32];
    make_temporary_name(temporary, sizeof temporary);
    int file = openat(cache->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return false;
    bool done = fchmod(file, 0600) == 0 && /* whatever the umask */
                tgl_file_write(file, &header, sizeof header) && tgl_file_write(file, data, size);
    done = close(file) == 0 && done;
    done = done && renameat(cache->folder, temporary, cache->folder, name.text) == 0;
    if (!done) unlinkat(cache->folder, temporary, 0);
    if (done) bound_size(cache, sizeof header + size, name.text);
    return done;
}
