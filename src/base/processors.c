/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the affinity mask with sched_getaffinity(), limits of CPU time from cgroups(7), and caches
 * from sysfs (/sys/devices/system/cpu/cpuN/cache; in Linux's documentation,
 * ABI/testing/sysfs-devices-system-cpu).
 */
#include "base/processors.h"

#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool contains(const processor_set *set, int processor)
{
    return (set->bits[processor / 8] >> processor % 8 & 1) != 0;
}

/* An affinity mask, in the layout of the system call: words of `unsigned long`. */
typedef union affinity {
    unsigned long words[CPU_MAX_PROCESSORS / 8 / sizeof(unsigned long)];
    cpu_set_t set;
} affinity;

/* Reads the affinity mask of a thread. thread: 0 for the calling thread, getpid() for the first
 * thread of the process. False: the system call failed. */
static bool read_affinity(pid_t thread, affinity *mask)
{
    memset(mask, 0, sizeof *mask);
    return sched_getaffinity(thread, sizeof *mask, &mask->set) == 0;
}

bool tgl_allowed_processors(processor_set *allowed, int *count)
{
    affinity mask;
    enum { WORD = 8 * sizeof(unsigned long) };
    memset(allowed, 0, sizeof *allowed);
    *count = 0;
    if (!read_affinity(getpid(), &mask)) return false;
    for (int i = 0; i < CPU_MAX_PROCESSORS; i++)
        if (mask.words[i / WORD] >> i % WORD & 1) {
            allowed->bits[i / 8] |= (unsigned char)(1u << i % 8);
            ++*count;
        }
    return *count > 0;
}

void tgl_take_affinity_of_process(void)
{
    affinity own, process;
    if (read_affinity(0, &own) && read_affinity(getpid(), &process) &&
        memcmp(own.words, process.words, sizeof own.words) != 0)
        sched_setaffinity(0, sizeof process, &process.set);
}

/* The first line of a file without its newline; NULL: it cannot be read. The caller frees it. The
 * path and the line are allocated, because they may be long and the thread's stack may be small. */
static char *read_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *read_line(const char *format, ...)
{
    char *path, *line = NULL;
    size_t size = 0;
    va_list args;
    va_start(args, format);
    const int length = vasprintf(&path, format, args);
    va_end(args);
    if (length < 0) return NULL;
    FILE *file = fopen(path, "re");
    free(path);
    if (file == NULL) return NULL;
    if (getline(&line, &size, file) >= 0) {
        line[strcspn(line, "\n")] = '\0';
    } else {
        free(line);
        line = NULL;
    }
    fclose(file);
    return line;
}

/* ---- CPU time -------------------------------------------------------------------------------- */

/* CPU limit as a number of processors: quota / period, rounded up. Both are in microseconds. 0: no
 * limit. */
static int processors_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) return 0;
    const long long processors = quota / period + (quota % period != 0);
    return processors < INT_MAX ? (int)processors : INT_MAX;
}

/* cgroup v2: the CPU limit of the cgroup in this folder, without the limits of its parents. The
 * file contains "QUOTA PERIOD", or "max PERIOD" for no limit. */
static int limit_of_v2(const char *folder)
{
    char *line = read_line("%s/cpu.max", folder);
    if (line == NULL) return 0;
    char *rest;
    const long long quota = strtoll(line, &rest, 10), period = strtoll(rest, NULL, 10);
    free(line);
    return processors_of(quota, period);
}

static int limit_of_v1(const char *folder)
{
    char *quota = read_line("%s/cpu.cfs_quota_us", folder); /* -1: no limit */
    char *period = read_line("%s/cpu.cfs_period_us", folder);
    const int limit = quota != NULL && period != NULL
                          ? processors_of(strtoll(quota, NULL, 10), strtoll(period, NULL, 10))
                          : 0;
    free(quota);
    free(period);
    return limit;
}

/* The smallest CPU limit of a cgroup and its parents; 0: none. In a container, `group` may be a
 * path of the host that does not exist there; a missing folder sets no limit. mount: folder of the
 * hierarchy below /sys/fs/cgroup; "" for cgroup v2. limit_of: reads the limit of one folder. */
static int least_limit(const char *root, const char *mount, const char *group,
                       int (*limit_of)(const char *folder))
{
    char *folder;
    const int length = asprintf(&folder, "%s/sys/fs/cgroup/%s%s", root, mount, group);
    if (length < 0) return 0;
    const char *end = folder + (size_t)length - strlen(group);
    int least = 0;
    for (;;) {
        const int limit = limit_of(folder);
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash < end) break;
        *slash = '\0';
    }
    free(folder);
    return least;
}

/* Whether `word` is an item of a comma-separated list. */
static bool is_listed(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *item = list; *item != '\0'; item += *item == ',') {
        const size_t own = strcspn(item, ",");
        if (own == length && memcmp(item, word, length) == 0) return true;
        item += own;
    }
    return false;
}

/* The CPU limit for a line of /proc/self/cgroup, "hierarchy:controllers:path". cgroup v2 has
 * hierarchy 0 and no controllers. */
static int limit_of_line(const char *root, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) return 0;
    *controllers++ = '\0';
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (strcmp(group, "/") == 0) *group = '\0';
    if (*controllers == '\0') return least_limit(root, "", group, limit_of_v2);
    if (!is_listed(controllers, "cpu")) return 0;
    const int limit = least_limit(root, controllers, group, limit_of_v1);
    return limit > 0 ? limit : least_limit(root, "cpu", group, limit_of_v1);
}

int tgl_cgroup_processors(const char *root)
{
    char *path, *line = NULL;
    size_t size = 0;
    if (asprintf(&path, "%s/proc/self/cgroup", root) < 0) return 0;
    FILE *file = fopen(path, "re");
    free(path);
    if (file == NULL) return 0;
    int least = 0;
    while (getline(&line, &size, file) >= 0) {
        const int limit = limit_of_line(root, line);
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
    }
    free(line);
    fclose(file);
    return least;
}

/* ---- Caches ---------------------------------------------------------------------------------- */

/* Removes from the set the processors in a list such as "0-3,8". */
static void remove_listed(processor_set *set, const char *list)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        const long first = strtol(list, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long i = first; i <= last && i < CPU_MAX_PROCESSORS; i++)
            set->bits[i / 8] &= (unsigned char)~(1u << i % 8);
        list = end + (*end == ',');
    }
}

/* Reads /sys/devices/system/cpu/cpuP/cache/indexI/NAME. */
static char *read_cache_file(const char *root, int processor, int index, const char *name)
{
    return read_line("%s/sys/devices/system/cpu/cpu%d/cache/index%d/%s", root, processor, index,
                     name);
}

/* Converts a size such as "512K" to bytes; 0: `text` is NULL or has no number. Frees `text`. */
static size_t take_size(char *text)
{
    if (text == NULL) return 0;
    char *unit;
    const unsigned long long size = strtoull(text, &unit, 10);
    const size_t bytes = (size_t)size << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
    free(text);
    return bytes;
}

/* Whether the cache has this level and holds data (a data or unified cache). */
static bool is_data_cache(const char *root, int processor, int index, const char *its_level,
                          int level)
{
    if (strtol(its_level, NULL, 10) != level) return false;
    char *type = read_cache_file(root, processor, index, "type");
    const bool has_data = type != NULL && strcmp(type, "Instruction") != 0;
    free(type);
    return has_data;
}

/* Bytes of a processor's data or unified cache of this level; 0: not known. *shared := a list of
 * the processors that share this cache, such as "0-3,8", which the caller frees; NULL if the
 * result is 0. */
static size_t cache_of(const char *root, int processor, int level, char **shared)
{
    char *its_level;
    *shared = NULL;
    for (int i = 0; (its_level = read_cache_file(root, processor, i, "level")) != NULL; i++) {
        const bool is_it = is_data_cache(root, processor, i, its_level, level);
        free(its_level);
        if (!is_it) continue;
        const size_t bytes = take_size(read_cache_file(root, processor, i, "size"));
        if (bytes == 0) continue;
        *shared = read_cache_file(root, processor, i, "shared_cpu_list");
        return *shared != NULL ? bytes : 0;
    }
    return 0;
}

size_t tgl_cache_bytes(const char *root, const processor_set *allowed, int level, bool all)
{
    processor_set left = *allowed; /* processors whose caches have not been counted yet */
    size_t sum = 0;
    for (int i = 0; i < CPU_MAX_PROCESSORS; i++) {
        if (!contains(&left, i)) continue;
        char *shared;
        const size_t bytes = cache_of(root, i, level, &shared);
        sum += bytes;
        if (bytes > 0) remove_listed(&left, shared);
        free(shared);
        if (!all || bytes == 0) return sum;
    }
    return sum;
}

/* ---- Threads --------------------------------------------------------------------------------- */

int tgl_processors(void)
{
    processor_set allowed;
    int count;
    tgl_allowed_processors(&allowed, &count);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int processors = count > 0 ? count : online > 0 ? (int)online : 1;
    const int limit = tgl_cgroup_processors("");
    return limit > 0 && limit < processors ? limit : processors;
}

int tgl_count_threads(int asked, int processors, int max)
{
    const int wanted = tgl_threads_of_text(getenv("OMP_NUM_THREADS"));
    int threads = wanted > 0 && wanted < processors ? wanted : processors;
    if (asked > 0) threads = asked;
    return threads < max ? threads : max;
}

int tgl_threads_of_text(const char *text)
{
    if (text == NULL) return 0;
    char *end;
    const long threads = strtol(text, &end, 10);
    end += strspn(end, " \t");
    if (threads <= 0 || (*end != '\0' && *end != ',')) return 0;
    return threads < INT_MAX ? (int)threads : INT_MAX;
}
