/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the calling thread is in a parallel region of an OpenMP runtime. The library is not
 * linked with OpenMP: it asks each OpenMP runtime that the host program has loaded.
 */
#ifndef TGL_OPENMP_H
#define TGL_OPENMP_H

#include <stdatomic.h>
#include <stdbool.h>

enum { OPENMP_RUNTIMES_MAX = 8 };

/* The OpenMP runtimes found so far. All members are zero at first. */
typedef struct openmp_runtimes {
    int (*_Atomic in_parallel[OPENMP_RUNTIMES_MAX])(void); /* omp_in_parallel() of each runtime;
                                                              NULL ends the list */
    _Atomic unsigned long long loaded; /* number of libraries that were loaded at the last search */
} openmp_runtimes;

/* Whether one of the runtimes says that the calling thread is in a parallel region. Adds runtimes
 * that were loaded since the last call to *runtimes, except in a child process (openmp.c). */
bool tgl_in_openmp_region(openmp_runtimes *runtimes);

#endif
