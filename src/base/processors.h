/* SPDX-License-Identifier: Apache-2.0
 *
 * The processors that this process may use, and their caches, as Linux describes them in files.
 * `root` is put before the path of each file: "" in the library, a folder in the tests.
 */
#ifndef TGL_PROCESSORS_H
#define TGL_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>

enum { CPU_MAX_PROCESSORS = 8192 }; /* CONFIG_NR_CPUS of Linux is at most 8192 on x86-64 */

/* A set of processors, by their numbers. */
typedef struct processor_set {
    unsigned char bits[CPU_MAX_PROCESSORS / 8];
} processor_set;

/* The processors in the affinity mask of the process, which is that of its first thread: other
 * threads may be bound to a processor each. *count: how many. False: not known. */
bool tgl_allowed_processors(processor_set *allowed, int *count);

/* Gives the calling thread the affinity mask of the process. Changes nothing if the thread already
 * has this mask, as in a program that binds no threads. */
void tgl_take_affinity_of_process(void);

/* The limit of CPU time of this process's cgroup, or of a cgroup that contains it, as a number of
 * processors, rounded up; 0: there is no limit. Reads cgroups of version 1 and 2. */
int tgl_cgroup_processors(const char *root);

/* The processors that the affinity mask and the cgroup leave to this process, at least 1. */
int tgl_processors(void);

/* Bytes of the data or unified caches of this level; 0: not known. all: false for the cache of one
 * processor; true for the sum of all distinct caches that the allowed processors reach. */
size_t tgl_cache_bytes(const char *root, const processor_set *allowed, int level, bool all);

/* The number of threads in a value of OMP_NUM_THREADS: its first number, as in "4,2". 0: `text` is
 * NULL, or does not begin with a positive number. */
int tgl_threads_of_text(const char *text);

/* The number of threads of a device: the number that the program asks for (0: none), else
 * OMP_NUM_THREADS but no more than the processors, else one for each processor; at most `max`. */
int tgl_count_threads(int asked, int processors, int max);

#endif
