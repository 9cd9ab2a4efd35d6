/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds OpenMP runtimes among the loaded libraries by their file names. It searches again whenever
 * the loader has loaded another library. dlsym(RTLD_DEFAULT) does not find all of them: Python
 * loads extension modules, and with them their runtimes, into local scopes and later than this
 * library.
 */
#include "base/openmp.h"
#include "base/process_number.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* The file names of GCC's, LLVM's and Intel's runtime begin with these words. Python wheels add a
 * hash and a version. */
static const char *const prefixes[] = {"libgomp", "libomp", "libiomp"};

typedef int in_parallel_fn(void);

/* A callback of dl_iterate_phdr(): reads the number of libraries that the loader has loaded so far.
 * The info of the first library already contains this number, so the function returns 1, which
 * stops the iteration. */
static int read_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(unsigned long long *)data = info->dlpi_adds;
    return 1;
}

typedef struct search {
    int left;   /* number of matching libraries to skip */
    char *path; /* path of the library that was found; NULL: there is none, or no memory */
} search;

/* A callback of dl_iterate_phdr(): copies the path of the library if it is the OpenMP runtime that
 * the search `data` asks for, and then returns 1 to stop. */
static int match_library(struct dl_phdr_info *info, size_t size, void *data)
{
    search *s = data;
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash != NULL ? slash + 1 : info->dlpi_name;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(file, prefixes[i], strlen(prefixes[i])) == 0 && s->left-- == 0) {
            s->path = strdup(info->dlpi_name);
            return 1;
        }
    return 0;
}

static void add(openmp_runtimes *runtimes, void *handle)
{
    in_parallel_fn *found;
    *(void **)&found = dlsym(handle, "omp_in_parallel");
    for (int i = 0; found != NULL && i < OPENMP_RUNTIMES_MAX; i++) {
        in_parallel_fn *known = NULL;
        if (atomic_compare_exchange_strong(&runtimes->in_parallel[i], &known, found)) return;
        if (known == found) return;
    }
}

/* Finds the OpenMP runtimes in this process. The handle of a runtime is not closed, so that it
 * stays loaded. match_library() must not call dlopen(), because it runs while the loader's lock is
 * held. */
static void find_runtimes(openmp_runtimes *runtimes)
{
    add(runtimes, RTLD_DEFAULT); /* the program itself may contain the runtime */
    for (int i = 0; i < OPENMP_RUNTIMES_MAX; i++) {
        search s = {.left = i};
        dl_iterate_phdr(match_library, &s);
        if (s.path == NULL) return;
        void *handle = dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD);
        free(s.path);
        if (handle != NULL) add(runtimes, handle);
    }
}

/* In a child process, dl_iterate_phdr() could deadlock: fork() copies the loader's lock, which a
 * thread of the parent may have held (glibc 2.36). The child uses the runtimes that its parent had
 * found; if the parent had not searched, it searches only the global scope. */
bool tgl_in_openmp_region(openmp_runtimes *runtimes)
{
    unsigned long long loaded = 1;
    const bool may_search = tgl_process() == 1;
    if (may_search) dl_iterate_phdr(read_loaded, &loaded);
    if (!may_search && atomic_load_explicit(&runtimes->loaded, memory_order_acquire) == 0) {
        add(runtimes, RTLD_DEFAULT);
        atomic_store_explicit(&runtimes->loaded, loaded, memory_order_release);
    }
    if (may_search && loaded != atomic_load_explicit(&runtimes->loaded, memory_order_acquire)) {
        find_runtimes(runtimes);
        atomic_store_explicit(&runtimes->loaded, loaded, memory_order_release);
    }
    for (int i = 0; i < OPENMP_RUNTIMES_MAX; i++) {
        in_parallel_fn *in_parallel = atomic_load(&runtimes->in_parallel[i]);
        if (in_parallel == NULL) return false;
        if (in_parallel() != 0) return true;
    }
    return false;
}
