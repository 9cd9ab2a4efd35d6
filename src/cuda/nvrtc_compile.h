/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles a kernel description to machine code, with NVRTC or from the disk cache.
 */
#ifndef TGL_CUDA_COMPILE_H
#define TGL_CUDA_COMPILE_H

#include "base/disk_cache.h"
#include "cuda/nvrtc.h"
#include "plan/kernel_source.h"

/* The resource usage that the compiler reports. -1: not reported. */
typedef struct tgl_resources {
    int registers;    /* per thread */
    int shared_bytes; /* per block, static */
    int local_bytes;  /* per thread: spilled registers and arrays with variable indices */
    int spill_bytes;  /* spill stores plus spill loads */
    int serialises;   /* 1: the compiler serialised the wgmma instructions */
} tgl_resources;

typedef struct tgl_binary {
    void *image; /* a cubin, or PTX with its terminating zero */
    size_t size;
    tgl_resources uses;
    bool from_cache;
    bool is_kept; /* true: the image is in the disk cache or in the archive */
} tgl_binary;

/* Compiles `kernel` for `arch`. look: whether to look in the cache first. A compiled image is
 * stored in the cache in any case. The caller frees binary->image. Errors: TGL_COMPILE, with the
 * compiler's log as the error message; TGL_NO_MEMORY. */
tgl_status tgl_cuda_compile(const tgl_nvrtc *nvrtc, tgl_cache *cache, const tgl_kernel *kernel,
                            const char *arch, bool look, tgl_binary *binary);

/* Like tgl_cuda_compile() with look = true, but the image has no source line numbers, which
 * profilers show and which take two thirds of an image. */
tgl_status tgl_cuda_compile_small(const tgl_nvrtc *nvrtc, tgl_cache *cache,
                                  const tgl_kernel *kernel, const char *arch, tgl_binary *binary);

/* The hash of all inputs of a kernel's compilation except the compiler: symbol, sources, macros and
 * architecture. Errors of tgl_cuda_kernel_key(): TGL_COMPILE (the kernel's file is not embedded);
 * TGL_NO_MEMORY. */
typedef struct tgl_kernel_key {
    unsigned char digest[TGL_SHA256_BYTES];
} tgl_kernel_key;
tgl_status tgl_cuda_kernel_key(const tgl_kernel *kernel, const char *arch, tgl_kernel_key *key);

/* Whether tgl_cuda_compile() would find the kernel in the cache. */
bool tgl_cuda_is_cached(const tgl_nvrtc *nvrtc, const tgl_cache *cache, const tgl_kernel *kernel,
                        const char *arch);

#endif
