/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the functions of cuBLAS. The library that the program uses is loaded already when the
 * program calls a function of it. But dlsym(RTLD_NEXT) does not see it if it was loaded with
 * RTLD_LOCAL, as Python loads the libraries of a module. dlopen() with RTLD_NOLOAD finds it by its
 * SONAME. A process is expected to have one version of cuBLAS.
 *
 * cuBLAS calls functions that this library replaces: cublasSgemm() may call cublasLtMatmul(). While
 * a thread is within cuBLAS, its calls are passed on unchanged.
 */
#include "cublas_shim.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static const char *const cublas_names[] = {"libcublas.so.13", "libcublas.so.12"};
static const char *const cublaslt_names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
enum { VERSIONS = 2 };

static void *look_up(const char *name)
{
    const bool is_lt = strncmp(name, "cublasLt", strlen("cublasLt")) == 0;
    for (int i = 0; i < VERSIONS; i++) {
        /* The library is not closed, so that the function's address stays valid. */
        void *library =
            dlopen(is_lt ? cublaslt_names[i] : cublas_names[i], RTLD_LAZY | RTLD_NOLOAD);
        void *address = library != NULL ? dlsym(library, name) : NULL;
        if (address != NULL) return address;
    }
    return dlsym(RTLD_NEXT, name);
}

void *cublas_find(cublas_function *function)
{
    void *address = atomic_load_explicit(&function->address, memory_order_acquire);
    if (address != NULL) return address;
    address = look_up(function->name);
    atomic_store_explicit(&function->address, address, memory_order_release);
    return address;
}

static _Thread_local int depth; /* number of cuBLAS calls on this thread's stack */

void cublas_enter_real(void)
{
    depth++;
}

void cublas_leave_real(void)
{
    depth--;
}

bool cublas_is_inside(void)
{
    return depth > 0;
}
