/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the available memory from /proc, control groups and limits of Linux.
 */
#include "host_memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The value, in bytes, of the line "NAME:  123 kB" of /proc/meminfo; negative if there is none. */
static double meminfo(const char *name)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    double kilobytes = -1;
    const size_t length = strlen(name);
    while (file != NULL && kilobytes < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ':' &&
            sscanf(line + length + 1, "%lf", &kilobytes) != 1)
            kilobytes = -1;
    if (file != NULL) fclose(file);
    return kilobytes < 0 ? -1 : 1024 * kilobytes;
}

/* The number that a file begins with; infinite if the file does not exist or begins with a word
 * such as "max". */
static double number_in(const char *path)
{
    FILE *file = fopen(path, "r");
    double value;
    const int found = file != NULL ? fscanf(file, "%lf", &value) : 0;
    if (file != NULL) fclose(file);
    return found == 1 ? value : INFINITY;
}

/* The number of bytes that the system can still provide: memory that is free or can be freed, and
 * free swap space. */
static double left_in_system(void)
{
    const double available = meminfo("MemAvailable"), swap = meminfo("SwapFree");
    return available < 0 ? INFINITY : available + (swap > 0 ? swap : 0);
}

/* The number of bytes that the memory control group still allows, read from cgroup version 2 or,
 * without it, version 1. In a container, the files at the root of the cgroup file system are those
 * of the container's own group. Infinite if there is no limit. */
static double left_in_group(void)
{
    double limit = number_in("/sys/fs/cgroup/memory.max");
    double used = number_in("/sys/fs/cgroup/memory.current");
    if (!isfinite(limit)) {
        limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
        used = number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes");
    }
    return isfinite(limit) && isfinite(used) ? limit - used : INFINITY;
}

/* The number of bytes that `ulimit -v` allows; infinite if there is no limit. Memory that is mapped
 * already is not subtracted, because it is little compared to large matrices. */
static double left_in_process(void)
{
    struct rlimit limit;
    const int error = getrlimit(RLIMIT_AS, &limit);
    return error == 0 && limit.rlim_cur != RLIM_INFINITY ? (double)limit.rlim_cur : INFINITY;
}

double host_memory_available(void)
{
    return fmin(left_in_system(), fmin(left_in_group(), left_in_process()));
}
