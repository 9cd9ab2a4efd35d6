/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies between matrices in host memory and tiles in device memory, for products of matrices in
 * host memory (cuda_host_product.c). A copy between pageable memory and the GPU cannot overlap with
 * other work. Every tile therefore passes through pinned buffers: host threads copy between the
 * matrix and a buffer, and the GPU copies between the buffer and its own memory. A device has one
 * tgl_staging, which the first product opens. It keeps the resources that are costly to make:
 * pinned memory, streams, events. A slot is GPU memory for one tile of A or B.
 *
 * The host overwrites or reads a pinned buffer only after it has waited for the copy that uses it.
 */
#ifndef TGL_CUDA_STAGING_H
#define TGL_CUDA_STAGING_H

#include "base/thread_pool.h"
#include "cuda/cuda_state.h"

enum {
    TGL_CHUNKS = 4, /* number of pinned buffers for copies to the GPU, each of TGL_CHUNK_BYTES */
    TGL_CHUNK_BYTES = 4 << 20, /* size of each buffer, which is copied in 0.2 ms at 20 GB/s */
    TGL_RESULTS = 2, /* buffers for tiles of D: the GPU computes into one while the other is copied
                        to the host */
    TGL_SLOTS_MAX = 1024, /* maximum number of slots */
};

/* A rectangle of a row-major matrix in host memory. Its copy on the device may have another
 * pitch. */
typedef struct tgl_host_tile {
    char *at;
    int64_t rows;
    size_t row_bytes;
    size_t host_pitch, device_pitch; /* bytes from one row to the next */
} tgl_host_tile;

/* A pinned buffer of TGL_CHUNK_BYTES for copies to the GPU. */
typedef struct tgl_chunk {
    char *at;
    CUevent passed; /* recorded after the copy from the buffer */
    bool is_used;   /* `passed` has been recorded since the current product began */
} tgl_chunk;

/* A pinned buffer for a tile of D, which the GPU copies to it. */
typedef struct tgl_pinned_result {
    char *at;
    size_t bytes;
    CUevent copied; /* recorded after the copy to the buffer */
} tgl_pinned_result;

typedef struct tgl_staging {
    pthread_mutex_t lock; /* held during a product; protects all members */
    bool has_pool;
    thread_pool pool;            /* host threads that copy */
    CUstream in, work, out;      /* copies to the GPU, products, copies from the GPU */
    CUevent loaded;              /* recorded after the latest copy in `in` */
    CUevent computed;            /* recorded in `work` when a tile of D is complete */
    CUevent used[TGL_SLOTS_MAX]; /* one for each slot, recorded after the latest product that reads
                                    the slot; created when needed */
    tgl_chunk chunks[TGL_CHUNKS];
    int next_chunk;
    tgl_pinned_result results[TGL_RESULTS];
    CUdeviceptr memory; /* GPU memory of `bytes` */
    size_t bytes;
} tgl_staging;

/* Creates a tgl_staging without buffers; tgl_staging_open() adds the buffers. NULL: out of
 * memory. */
tgl_staging *tgl_staging_create(void);

/* Frees the tgl_staging. No work that uses it may be running. cuda->staging may be NULL. */
void tgl_staging_destroy(tgl_cuda *cuda);

/* Frees the GPU memory that the staging keeps, unless a product uses it. Must be called in the
 * device's context. */
void tgl_staging_trim(const tgl_cuda *cuda);

/* The functions below must be called with staging->lock held, in the device's context and in
 * relaxed capture mode. Errors: TGL_NO_MEMORY; TGL_DRIVER; TGL_DEVICE_LOST. */

/* Creates streams, events and buffers that do not exist yet, for a product with `slots` slots and
 * tiles of D of at most result_bytes. */
tgl_status tgl_staging_open(tgl_device *dev, size_t result_bytes, int slots);

/* Makes `bytes` of GPU memory available in staging->memory. The content of this memory is
 * undefined. */
tgl_status tgl_staging_reserve(tgl_device *dev, size_t bytes);

/* Frees the GPU memory. */
CUresult tgl_staging_free(const tgl_cuda *cuda);

/* Copies a tile to device memory in the stream `in`. When the call returns, the host memory has
 * been read and may change. */
tgl_status tgl_staging_upload(tgl_device *dev, CUdeviceptr to, const tgl_host_tile *from);

/* Begins to copy a tile from device memory to result buffer i, in the stream `out`. */
tgl_status tgl_staging_download(tgl_device *dev, int i, CUdeviceptr from, const tgl_host_tile *to);

/* Waits for the download to result buffer i and stores the tile in the host's matrix. */
tgl_status tgl_staging_deliver(tgl_device *dev, int i, const tgl_host_tile *to);

/* Waits for all work of the streams, so that the next product can begin. */
void tgl_staging_settle(const tgl_cuda *cuda);

#endif
