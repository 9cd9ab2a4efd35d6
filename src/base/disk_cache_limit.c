/* SPDX-License-Identifier: Apache-2.0 */
#include "base/disk_cache_limit.h"
#include "base/sha256.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A file in the cache's folder that has the name of an entry. used: its modification time, which
 * each load of the entry updates. */
typedef struct file_fact {
    char name[2 * TGL_SHA256_BYTES + 1];
    struct timespec used;
    uint64_t size;
} file_fact;

/* Whether a name consists of `prefix` and exactly `digits` hexadecimal digits. */
static bool is_name(const char *name, const char *prefix, size_t digits)
{
    const size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0) return false;
    return strspn(name + length, "0123456789abcdef") == digits && name[length + digits] == '\0';
}

/* Whether the cache has written this file: it begins with TGL_CACHE_WRITER, or with a part of it if
 * the writing process was killed. */
static bool is_written_here(int folder, const char *name)
{
    char start[sizeof TGL_CACHE_WRITER - 1];
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t got = read(file, start, sizeof start);
    close(file);
    return got >= 0 && memcmp(start, TGL_CACHE_WRITER, (size_t)got) == 0;
}

/* Removes a temporary file older than a day, whose writer must have been killed. */
static void remove_if_stale(int folder, const char *name, const struct stat *info)
{
    enum { DAY = 24 * 60 * 60 };
    if (is_name(name, TGL_CACHE_TEMPORARY, TGL_CACHE_TEMPORARY_DIGITS) &&
        time(NULL) - info->st_mtime > DAY && is_written_here(folder, name))
        unlinkat(folder, name, 0);
}

/* Lists the files of an open folder that have the name of an entry, and removes stale temporary
 * files on the way. The caller frees the array. NULL: there are none, or no memory. */
static file_fact *list_entries(DIR *folder, size_t *count)
{
    file_fact *files = NULL;
    size_t room = 0;
    const struct dirent *entry;
    *count = 0;
    while ((entry = readdir(folder)) != NULL) {
        struct stat info;
        if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (!is_name(entry->d_name, "", 2 * TGL_SHA256_BYTES)) {
            remove_if_stale(dirfd(folder), entry->d_name, &info);
            continue;
        }
        if (*count == room) {
            room = 2 * room + 64;
            file_fact *more = realloc(files, room * sizeof *files);
            if (more == NULL) break; /* the remaining files are found at a later store */
            files = more;
        }
        file_fact *file = &files[(*count)++];
        memcpy(file->name, entry->d_name, sizeof file->name);
        file->used = info.st_mtim;
        file->size = (uint64_t)info.st_size;
    }
    return files;
}

/* Comparison for qsort(): the least recently used file comes first. */
static int by_time(const void *x, const void *y)
{
    const file_fact *a = x, *b = y;
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec) return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

static uint64_t sum_sizes(const file_fact *files, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += files[i].size;
    return total;
}

/* Removes from the list the files that the cache did not write. Returns the number of remaining
 * files. It opens every file, so it is called only if the size limit is exceeded. */
static size_t keep_written_here(int folder, file_fact *files, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (is_written_here(folder, files[i].name)) files[kept++] = files[i];
    return kept;
}

/* If the total size is above size_max, removes the least recently used entries, but not `newest`. A
 * 64th of size_max becomes free, so that the next stores need not read the folder again. Returns
 * the bytes that are left of size_max. */
static uint64_t remove_oldest(DIR *folder, uint64_t size_max, const char *newest)
{
    size_t count;
    file_fact *files = list_entries(folder, &count);
    uint64_t total = sum_sizes(files, count);
    const uint64_t target = total > size_max ? size_max - size_max / 64 : size_max;
    if (total > size_max) {
        count = keep_written_here(dirfd(folder), files, count);
        total = sum_sizes(files, count);
        qsort(files, count, sizeof *files, by_time);
    }
    for (size_t i = 0; i < count && total > target; i++) {
        if (strcmp(files[i].name, newest) == 0) continue;
        unlinkat(dirfd(folder), files[i].name, 0);
        total -= files[i].size;
    }
    free(files);
    return total < size_max ? size_max - total : 0;
}

uint64_t tgl_cache_bound_size(int folder, uint64_t size_max, const char *newest)
{
    const int file = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return 0;
    DIR *files = fdopendir(file);
    if (files == NULL) {
        close(file);
        return 0;
    }
    const uint64_t left = remove_oldest(files, size_max, newest);
    closedir(files);
    return left;
}
