/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles kernels to shared objects with the host's C compiler, or finds them in the disk cache.
 */
#ifndef TGL_SIM_COMPILE_H
#define TGL_SIM_COMPILE_H

#include "base/disk_cache.h"
#include "base/error.h"
#include "plan/kernel_source.h"

typedef struct tgl_host_compiler {
    char *words;      /* the command, such as "/usr/bin/gcc -m64"; its first word is a path */
    char *version;    /* first line of the --version output, a part of the cache key */
    tgl_cache *cache; /* cache for the results; NULL: none */
} tgl_host_compiler;

/* Uses $TEGULA_CC if it is set, else the first of $CC, cc, gcc and clang that runs.
 * TGL_NO_COMPILER: $TEGULA_CC does not run, or none of the others does. */
tgl_status tgl_host_compiler_find(tgl_host_compiler *compiler);
void tgl_host_compiler_free(tgl_host_compiler *compiler);

/* Compiles a kernel. *image := the shared object, *size bytes, which the caller frees. Returns
 * TGL_OK; TGL_COMPILE, with the compiler's log as the error message; TGL_NO_MEMORY; TGL_DRIVER if
 * files could not be written. */
tgl_status tgl_host_compile(const tgl_host_compiler *compiler, const tgl_kernel *kernel,
                            void **image, size_t *size);

#endif
