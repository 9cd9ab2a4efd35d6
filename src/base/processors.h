/* SPDX-License-Identifier: Apache-2.0
 *
 * The processors that this process may use, and their caches, as Linux describes them in files.
 * `root` is put before the path of each file: "" in the library, a folder in the tests.
 */
#ifndef TGL_PROCESSORS_H
#define TGL_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>

enum { CPU_MAX_PROCESSORS = 8192 }; /* CONFIG_NR_CPUS of Linux on x86-64 is at most 8192 */

/* A set of processors, by their numbers. */
typedef struct processor_set {
    unsigned char bits[CPU_MAX_PROCESSORS / 8];
} processor_set;

/* The processors in the affinity mask of the process. This is the mask of its first thread, because
 * other threads may be bound to single processors. *count := the number of processors in the mask.
 * False: the mask is not known. */
bool tgl_allowed_processors(processor_set *allowed, int *count);

/* Gives the calling thread the affinity mask of the process, if the masks differ: a program may
 * have bound the thread to one processor. */
void tgl_take_affinity_of_process(void);

/* The CPU time limit of the process's cgroup and its parents, as a number of processors, rounded
 * up; 0: no limit. Supports cgroup v1 and v2. root: prefix of all paths, "" except in tests. */
int tgl_cgroup_processors(const char *root);

/* The number of processors that the affinity mask and the cgroup leave to this process, at least
 * 1. */
int tgl_processors(void);

/* Bytes of the data or unified cache of this level; 0: not known. all: false for the cache of the
 * first allowed processor; true for the sum of all distinct caches of the allowed processors. */
size_t tgl_cache_bytes(const char *root, const processor_set *allowed, int level, bool all);

/* The number of threads in a value of OMP_NUM_THREADS: the first number of "4,2". 0: `text` is
 * NULL, or its first item is not a positive number. */
int tgl_threads_of_text(const char *text);

/* The number of threads for a device: `asked` if it is not 0, else min(OMP_NUM_THREADS, processors)
 * if the variable is set, else `processors`; at most `max`. */
int tgl_count_threads(int asked, int processors, int max);

#endif
