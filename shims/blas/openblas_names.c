/* SPDX-License-Identifier: Apache-2.0
 *
 * libopenblas_tegula.so: OpenBLAS's functions for the number of threads. The Python package
 * threadpoolctl recognises an OpenBLAS by these functions and by the beginning of its file name.
 * They are therefore in a library of their own, which libtegula_blas.so loads as a dependency.
 * A program that calls OpenBLAS's functions finds the ones of this library first. They also pass
 * the number of threads on to the OpenBLAS that follows in the search order, because it computes
 * the products that Tegula does not compute.
 */
#include <dlfcn.h>
#include <stddef.h>

/* defined in blas_thread_calls.c, in libtegula_blas.so */
void tegula_blas_set_num_threads(int threads);
int tegula_blas_get_num_threads(void);

#define EXPORT __attribute__((visibility("default")))

#define NAMES(prefix, suffix)                                                                      \
    EXPORT void prefix##openblas_set_num_threads##suffix(int threads);                             \
    EXPORT int prefix##openblas_get_num_threads##suffix(void);                                     \
    EXPORT int prefix##openblas_get_parallel##suffix(void);                                        \
    void prefix##openblas_set_num_threads##suffix(int threads)                                     \
    {                                                                                              \
        void (*next)(int);                                                                         \
        *(void **)&next = dlsym(RTLD_NEXT, #prefix "openblas_set_num_threads" #suffix);            \
        tegula_blas_set_num_threads(threads);                                                      \
        if (next != NULL) next(threads);                                                           \
    }                                                                                              \
    int prefix##openblas_get_num_threads##suffix(void)                                             \
    {                                                                                              \
        return tegula_blas_get_num_threads();                                                      \
    }                                                                                              \
    int prefix##openblas_get_parallel##suffix(void)                                                \
    {                                                                                              \
        return 1; /* OpenBLAS's OPENBLAS_THREAD: threads of the library, not of OpenMP */          \
    }

NAMES(, )
NAMES(, 64_)
NAMES(scipy_, )
NAMES(scipy_, 64_)
