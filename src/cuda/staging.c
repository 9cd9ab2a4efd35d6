/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned buffers, and the copies between host and GPU through them: see staging.h.
 */
#include "cuda/staging.h"

#include "base/integers.h"
#include "base/processors.h"

#include <stdlib.h>
#include <string.h>

/* At most COPY_THREADS host threads copy; only one if a copy has fewer than PARALLEL_BYTES. One
 * thread copies about 10 GB/s between pageable and pinned memory, and a PCIe 4.0 x16 link about 25
 * GB/s. So three threads keep up with the link. These rates are estimates, not measurements. */
enum { COPY_THREADS = 4, PARALLEL_BYTES = 256 << 10 };

tgl_staging *tgl_staging_create(void)
{
    tgl_staging *staging = calloc(1, sizeof *staging);
    if (staging != NULL) pthread_mutex_init(&staging->lock, NULL);
    return staging;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void open_pool(tgl_staging *staging)
{
    processor_set allowed;
    int processors;
    if (staging->has_pool) return;
    if (!tgl_allowed_processors(&allowed, &processors)) processors = 1;
    tgl_thread_pool_open(&staging->pool, processors < COPY_THREADS ? processors : COPY_THREADS,
                         processors);
    staging->has_pool = true;
}

static CUresult make_stream(const tgl_driver *driver, CUstream *stream)
{
    return *stream != NULL ? CUDA_SUCCESS : driver->cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
}

static CUresult make_event(const tgl_driver *driver, CUevent *event)
{
    return *event != NULL ? CUDA_SUCCESS : driver->cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}

static CUresult make_streams(const tgl_driver *driver, tgl_staging *staging)
{
    CUresult result = make_stream(driver, &staging->in);
    if (result == CUDA_SUCCESS) result = make_stream(driver, &staging->work);
    if (result == CUDA_SUCCESS) result = make_stream(driver, &staging->out);
    if (result == CUDA_SUCCESS) result = make_event(driver, &staging->loaded);
    if (result == CUDA_SUCCESS) result = make_event(driver, &staging->computed);
    return result;
}

static CUresult make_chunk(const tgl_driver *driver, tgl_chunk *chunk)
{
    CUresult result = make_event(driver, &chunk->passed);
    if (result == CUDA_SUCCESS && chunk->at == NULL)
        result = driver->cuMemHostAlloc((void **)&chunk->at, TGL_CHUNK_BYTES, 0);
    return result;
}

static CUresult make_result(const tgl_driver *driver, tgl_pinned_result *made, size_t bytes)
{
    CUresult result = make_event(driver, &made->copied);
    if (result != CUDA_SUCCESS || made->bytes >= bytes) return result;
    if (made->at != NULL) result = driver->cuMemFreeHost(made->at);
    made->at = NULL, made->bytes = 0;
    if (result == CUDA_SUCCESS) result = driver->cuMemHostAlloc((void **)&made->at, bytes, 0);
    if (result == CUDA_SUCCESS) made->bytes = bytes;
    return result;
}

tgl_status tgl_staging_open(tgl_device *dev, size_t result_bytes, int slots)
{
    const tgl_cuda *cuda = dev->state;
    const tgl_driver *driver = &cuda->driver;
    tgl_staging *staging = cuda->staging;
    open_pool(staging);
    CUresult result = make_streams(driver, staging);
    for (int i = 0; i < TGL_CHUNKS && result == CUDA_SUCCESS; i++) {
        staging->chunks[i].is_used = false;
        result = make_chunk(driver, &staging->chunks[i]);
    }
    for (int i = 0; i < TGL_RESULTS && result == CUDA_SUCCESS; i++)
        result = make_result(driver, &staging->results[i], result_bytes);
    for (int i = 0; i < slots && result == CUDA_SUCCESS; i++)
        result = make_event(driver, &staging->used[i]);
    return tgl_cuda_check(dev, result, "preparing copies between the host and the device");
}

CUresult tgl_staging_free(const tgl_cuda *cuda)
{
    tgl_staging *staging = cuda->staging;
    if (staging->memory == NULL) return CUDA_SUCCESS;
    const CUresult result = cuda->driver.cuMemFree(staging->memory);
    staging->memory = NULL, staging->bytes = 0;
    return result;
}

tgl_status tgl_staging_reserve(tgl_device *dev, size_t bytes)
{
    const tgl_cuda *cuda = dev->state;
    tgl_staging *staging = cuda->staging;
    if (bytes <= staging->bytes) return TGL_OK;
    CUresult result = tgl_staging_free(cuda);
    if (result == CUDA_SUCCESS) result = cuda->driver.cuMemAlloc(&staging->memory, bytes);
    if (result == CUDA_SUCCESS) staging->bytes = bytes;
    return tgl_cuda_check(dev, result, "allocating memory for tiles of a product");
}

void tgl_staging_trim(const tgl_cuda *cuda)
{
    tgl_staging *staging = cuda->staging;
    if (pthread_mutex_trylock(&staging->lock) != 0) return;
    tgl_staging_free(cuda);
    pthread_mutex_unlock(&staging->lock);
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void destroy_event(const tgl_driver *driver, CUevent event)
{
    if (event != NULL) driver->cuEventDestroy(event);
}

static void destroy_stream(const tgl_driver *driver, CUstream stream)
{
    if (stream != NULL) driver->cuStreamDestroy(stream);
}

static void release_objects(const tgl_cuda *cuda)
{
    const tgl_driver *driver = &cuda->driver;
    tgl_staging *staging = cuda->staging;
    tgl_staging_free(cuda);
    for (int i = 0; i < TGL_CHUNKS; i++) {
        if (staging->chunks[i].at != NULL) driver->cuMemFreeHost(staging->chunks[i].at);
        destroy_event(driver, staging->chunks[i].passed);
    }
    for (int i = 0; i < TGL_RESULTS; i++) {
        if (staging->results[i].at != NULL) driver->cuMemFreeHost(staging->results[i].at);
        destroy_event(driver, staging->results[i].copied);
    }
    for (int i = 0; i < TGL_SLOTS_MAX; i++)
        destroy_event(driver, staging->used[i]);
    destroy_event(driver, staging->loaded);
    destroy_event(driver, staging->computed);
    destroy_stream(driver, staging->in);
    destroy_stream(driver, staging->work);
    destroy_stream(driver, staging->out);
}

void tgl_staging_destroy(tgl_cuda *cuda)
{
    tgl_staging *staging = cuda->staging;
    if (staging == NULL) return;
    if (!atomic_load(&cuda->is_lost)) release_objects(cuda);
    if (staging->has_pool) tgl_thread_pool_close(&staging->pool);
    pthread_mutex_destroy(&staging->lock);
    free(staging);
    cuda->staging = NULL;
}

/* ---- Copies by host threads ------------------------------------------------------------------ */

typedef struct host_copy {
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, row_bytes;
    int64_t rows;
} host_copy;

static void copy_part(void *context, int thread, int team)
{
    const host_copy *copy = context;
    const int64_t first = copy->rows * thread / team, end = copy->rows * (thread + 1) / team;
    for (int64_t i = first; i < end; i++)
        memcpy(copy->to + (size_t)i * copy->to_pitch, copy->from + (size_t)i * copy->from_pitch,
               copy->row_bytes);
}

static void copy_rows(tgl_staging *staging, host_copy *copy)
{
    const bool is_large = (size_t)copy->rows * copy->row_bytes >= PARALLEL_BYTES;
    thread_pool_task task = {.body = copy_part, .context = copy};
    tgl_thread_pool_run(&staging->pool, is_large ? staging->pool.threads : 1, &task);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Takes the next pinned buffer, after waiting until the GPU no longer reads it. */
static CUresult take_chunk(const tgl_driver *driver, tgl_staging *staging, tgl_chunk **taken)
{
    tgl_chunk *chunk = &staging->chunks[staging->next_chunk];
    staging->next_chunk = (staging->next_chunk + 1) % TGL_CHUNKS;
    *taken = chunk;
    return chunk->is_used ? driver->cuEventSynchronize(chunk->passed) : CUDA_SUCCESS;
}

/* Copies consecutive rows of a tile to the GPU, through one pinned buffer. The rows must fit into
 * the buffer. */
static CUresult upload_rows(const tgl_driver *driver, tgl_staging *staging, CUdeviceptr to,
                            const tgl_host_tile *rows)
{
    tgl_chunk *chunk;
    CUresult result = take_chunk(driver, staging, &chunk);
    if (result != CUDA_SUCCESS) return result;
    host_copy copy = {.to = chunk->at,
                      .from = rows->at,
                      .to_pitch = rows->device_pitch,
                      .from_pitch = rows->host_pitch,
                      .row_bytes = rows->row_bytes,
                      .rows = rows->rows};
    copy_rows(staging, &copy);
    result = driver->cuMemcpyHtoDAsync(to, chunk->at, (size_t)rows->rows * rows->device_pitch,
                                       staging->in);
    if (result == CUDA_SUCCESS) result = driver->cuEventRecord(chunk->passed, staging->in);
    chunk->is_used = result == CUDA_SUCCESS;
    return result;
}

tgl_status tgl_staging_upload(tgl_device *dev, CUdeviceptr to, const tgl_host_tile *from)
{
    const tgl_cuda *cuda = dev->state;
    const int64_t rows_of_chunk = TGL_CHUNK_BYTES / (int64_t)from->device_pitch;
    for (int64_t row = 0; row < from->rows; row += rows_of_chunk) {
        tgl_host_tile rows = *from;
        rows.at += (size_t)row * from->host_pitch;
        rows.rows = tgl_min64(rows_of_chunk, from->rows - row);
        TGL_TRY(tgl_cuda_check(dev,
                               upload_rows(&cuda->driver, cuda->staging,
                                           (char *)to + (size_t)row * from->device_pitch, &rows),
                               "copying a tile to the device"));
    }
    return TGL_OK;
}

tgl_status tgl_staging_download(tgl_device *dev, int i, CUdeviceptr from, const tgl_host_tile *to)
{
    const tgl_cuda *cuda = dev->state;
    const tgl_staging *staging = cuda->staging;
    const tgl_pinned_result *pinned = &staging->results[i];
    CUresult result = cuda->driver.cuMemcpyDtoHAsync(
        pinned->at, from, (size_t)to->rows * to->device_pitch, staging->out);
    if (result == CUDA_SUCCESS) result = cuda->driver.cuEventRecord(pinned->copied, staging->out);
    return tgl_cuda_check(dev, result, "copying a tile from the device");
}

tgl_status tgl_staging_deliver(tgl_device *dev, int i, const tgl_host_tile *to)
{
    const tgl_cuda *cuda = dev->state;
    const tgl_pinned_result *pinned = &cuda->staging->results[i];
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuEventSynchronize(pinned->copied),
                           "waiting for a tile of a product"));
    host_copy copy = {.to = to->at,
                      .from = pinned->at,
                      .to_pitch = to->host_pitch,
                      .from_pitch = to->device_pitch,
                      .row_bytes = to->row_bytes,
                      .rows = to->rows};
    copy_rows(cuda->staging, &copy);
    return TGL_OK;
}

void tgl_staging_settle(const tgl_cuda *cuda)
{
    const tgl_staging *staging = cuda->staging;
    if (staging->in != NULL) cuda->driver.cuStreamSynchronize(staging->in);
    if (staging->work != NULL) cuda->driver.cuStreamSynchronize(staging->work);
    if (staging->out != NULL) cuda->driver.cuStreamSynchronize(staging->out);
}
