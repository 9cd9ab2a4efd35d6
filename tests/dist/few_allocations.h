/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations that fail in the libraries for distributed products. One file of a program includes
 * it. With OWN_ALLOCATOR (sanitizers have their own) none fails.
 */
#ifndef TGL_FEW_ALLOCATIONS_H
#define TGL_FEW_ALLOCATIONS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How many allocations the libraries may still make in this thread; -1: no limit. */
static _Thread_local int allocations_left = -1;

#ifndef OWN_ALLOCATOR
/* Whether an allocation fails. caller: an address in the function that allocates. */
static bool is_exhausted(const void *caller)
{
    Dl_info info;
    if (allocations_left < 0 || dladdr(caller, &info) == 0 || info.dli_fname == NULL ||
        (strstr(info.dli_fname, "libtegula_dist") == NULL &&
         strstr(info.dli_fname, "libtegula_mpi") == NULL))
        return false;
    return allocations_left == 0 || allocations_left-- == 0;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    return is_exhausted(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}
__attribute__((visibility("default"))) void *calloc(size_t nmemb, size_t size)
{
    return is_exhausted(__builtin_return_address(0)) ? NULL : __libc_calloc(nmemb, size);
}
__attribute__((visibility("default"))) void *realloc(void *ptr, size_t size)
{
    return is_exhausted(__builtin_return_address(0)) ? NULL : __libc_realloc(ptr, size);
}
#endif

#endif
