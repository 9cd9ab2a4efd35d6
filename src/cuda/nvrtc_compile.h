/* SPDX-License-Identifier: Apache-2.0
 *
 * From the description of a kernel to machine code: from the disk cache, or by NVRTC.
 */
#ifndef TGL_CUDA_COMPILE_H
#define TGL_CUDA_COMPILE_H

#include "base/disk_cache.h"
#include "cuda/nvrtc.h"
#include "plan/kernel_source.h"

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

/* Compiles `kernel` for `arch`. look: whether the cache may answer (it is given the result in any
 * case). The caller frees binary->image. TGL_COMPILE, with the compiler's log as the sentence;
 * TGL_NO_MEMORY. */
tgl_status tgl_cuda_compile(const tgl_nvrtc *nvrtc, const tgl_cache *cache,
                            const tgl_kernel *kernel, const char *arch, bool look,
                            tgl_binary *binary);

#endif
