/* SPDX-License-Identifier: Apache-2.0
 *
 * From a row of the registry to machine code: the disk cache, else NVRTC.
 */
#ifndef TGL_CUDA_COMPILE_H
#define TGL_CUDA_COMPILE_H

#include "cache.h"
#include "cuda/nvrtc.h"
#include "plan/registry.h"

/* What the compiler says a kernel uses; -1 where it did not say. */
typedef struct tgl_resources {
    int registers;    /* of a thread */
    int shared_bytes; /* of a block, static */
    int local_bytes;  /* of a thread: spilled registers and arrays that are indexed */
    int spill_bytes;  /* stored and loaded by spills */
} tgl_resources;

typedef struct tgl_binary {
    void *image; /* a cubin, or PTX with its terminating zero */
    size_t size;
    tgl_resources uses;
    bool from_cache;
    bool is_kept; /* by the cache, now or before */
} tgl_binary;

/* Compiles `kernel` for `arch`. look: whether the cache may answer (it is told of the result in any
 * case). The caller frees binary->image. On failure (TGL_COMPILE, TGL_NO_MEMORY) *error is the
 * compiler's log or a sentence, which the caller frees; NULL if memory is exhausted. */
tgl_status tgl_cuda_compile(const tgl_nvrtc *nvrtc, const tgl_cache *cache,
                            const tgl_kernel *kernel, const char *arch, bool look,
                            tgl_binary *binary, char **error);

#endif
