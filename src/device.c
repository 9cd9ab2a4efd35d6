/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening devices by name, and everything on a device that is not a product: errors, memory,
 * properties, timers.
 */
#include "device.h"
#include "plan_cache.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The backends in the order in which "auto" tries them; the cpu is always there. */
static const tgl_backend *const backends[] = {&tgl_cuda_backend, &tgl_cpu_backend,
                                              &tgl_sim_backend};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* ---- Errors ---------------------------------------------------------------------------------- */

void tgl_keep_error(tgl_device *dev, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);

    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text != NULL) {
        va_start(args, format);
        vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
    }
    pthread_mutex_lock(&dev->error_lock);
    char *old = dev->error;
    dev->error = text; /* out of memory: tgl_last_error() says nothing, the status says all */
    pthread_mutex_unlock(&dev->error_lock);
    free(old);
}

size_t tgl_last_error(const tgl_device *dev, char *text, size_t size)
{
    if (text == NULL) size = 0;
    if (size > 0) text[0] = '\0';
    if (dev == NULL) return 0;
    /* The lock is the one thing a reader changes. */
    pthread_mutex_t *lock = (pthread_mutex_t *)&dev->error_lock;
    pthread_mutex_lock(lock);
    int length = snprintf(text, size, "%s", dev->error != NULL ? dev->error : "");
    pthread_mutex_unlock(lock);
    return length < 0 ? 0 : (size_t)length;
}

/* ---- Open and close -------------------------------------------------------------------------- */

/* Splits "cuda:1" into its backend's index in `backends` and 1. -1: no backend of that name. */
static int parse_name(const char *name, int *index)
{
    const char *colon = strchr(name, ':');
    const size_t length = colon != NULL ? (size_t)(colon - name) : strlen(name);
    *index = 0;
    if (colon != NULL) {
        char *end;
        long value = strtol(colon + 1, &end, 10);
        if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || value > INT_MAX) return -1;
        *index = (int)value;
    }
    for (int i = 0; i < BACKENDS; i++)
        if (strlen(backends[i]->name) == length && memcmp(backends[i]->name, name, length) == 0)
            return i;
    return -1;
}

static tgl_status open_backend(tgl_device *dev, const tgl_backend *backend, int index,
                               const tgl_device_options *options)
{
    dev->backend = backend;
    snprintf(dev->name, sizeof dev->name, "%s", backend->name);
    return backend->open(dev, index, options);
}

static tgl_status open_by_name(tgl_device *dev, const char *name, const tgl_device_options *options)
{
    if (strcmp(name, "auto") == 0) {
        /* No such device: the next one, in silence. Anything else the user should hear of. */
        tgl_status status = TGL_NO_DEVICE;
        for (int i = 0; i < BACKENDS && status == TGL_NO_DEVICE; i++)
            status = open_backend(dev, backends[i], 0, options);
        return status;
    }
    int index, i = parse_name(name, &index);
    if (i < 0)
        return tgl_fail(dev, TGL_NO_DEVICE, "no device is called \"%s\"; see `tegula info`", name);
    return open_backend(dev, backends[i], index, options);
}

static void destroy_device(tgl_device *dev)
{
    pthread_mutex_destroy(&dev->error_lock);
    free(dev->error);
    free(dev);
}

/* Completes a device that has nothing but its lock. */
static tgl_status set_up(tgl_device *dev, const char *name, const tgl_device_options *options)
{
    if (name == NULL) return tgl_fail(dev, TGL_BAD_ARGUMENT, "the device's name is NULL");
    if (options->threads < 0)
        return tgl_fail(dev, TGL_BAD_ARGUMENT, "options.threads is %d; it must not be negative",
                        options->threads);
    TGL_TRY(open_by_name(dev, name, options));
    tgl_status status = tgl_plan_cache_create(&dev->plans);
    if (status != TGL_OK) {
        dev->backend->close(dev);
        return tgl_fail(dev, status, "no memory for the plans of a device");
    }
    return TGL_OK;
}

tgl_status tgl_device_open(const char *name, const tgl_device_options *options, tgl_device **out)
{
    static const tgl_device_options defaults = {.size = sizeof(tgl_device_options)};
    if (out == NULL) return TGL_BAD_ARGUMENT;
    *out = NULL;
    if (options == NULL) options = &defaults;
    if (options->size != sizeof *options) return TGL_BAD_ARGUMENT;

    tgl_device *dev = calloc(1, sizeof *dev);
    if (dev == NULL) return TGL_NO_MEMORY;
    pthread_mutex_init(&dev->error_lock, NULL);
    tgl_status status = set_up(dev, name, options);
    if (status != TGL_OK) {
        tgl_last_error(dev, options->message, options->message_size);
        destroy_device(dev);
        return status;
    }
    free(dev->error); /* "auto" may have passed over a device that is not there */
    dev->error = NULL;
    *out = dev;
    return TGL_OK;
}

void tgl_device_close(tgl_device *dev)
{
    if (dev == NULL) return;
    tgl_plan_cache_destroy(dev->plans);
    dev->backend->close(dev);
    destroy_device(dev);
}

const char *tgl_device_name(const tgl_device *dev)
{
    return dev != NULL ? dev->name : "";
}

tgl_status tgl_device_property(const tgl_device *dev, int index, const char **key,
                               const char **value)
{
    if (dev == NULL || key == NULL || value == NULL || index < 0) return TGL_BAD_ARGUMENT;
    return dev->backend->property(dev, index, key, value);
}

tgl_status tgl_device_measure(tgl_device *dev, tgl_ceiling ceiling, double *value)
{
    if (dev == NULL || value == NULL) return TGL_BAD_ARGUMENT;
    if (ceiling != TGL_CEILING_FMA_F32 && ceiling != TGL_CEILING_FMA_F64 &&
        ceiling != TGL_CEILING_COPY)
        return tgl_fail(dev, TGL_BAD_ARGUMENT, "%d is not a tgl_ceiling", (int)ceiling);
    return dev->backend->measure(dev, ceiling, value);
}

const char *tgl_kernel_name(const tgl_device *dev, int index)
{
    return dev == NULL || index < 0 ? NULL : dev->backend->kernel_name(dev, index);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

tgl_status tgl_alloc(tgl_device *dev, size_t bytes, void **memory)
{
    if (memory == NULL) return TGL_BAD_ARGUMENT;
    *memory = NULL;
    if (dev == NULL) return TGL_BAD_ARGUMENT;
    return bytes == 0 ? TGL_OK : dev->backend->alloc(dev, bytes, memory);
}

void tgl_free(tgl_device *dev, void *memory)
{
    if (dev != NULL && memory != NULL) dev->backend->free(dev, memory);
}

/* Checks what upload and download have in common. */
static tgl_status check_copy(tgl_device *dev, const void *dst, const void *src, size_t bytes)
{
    if (dev == NULL) return TGL_BAD_ARGUMENT;
    if (bytes > 0 && (dst == NULL || src == NULL))
        return tgl_fail(dev, TGL_BAD_ARGUMENT, "a copy of %zu bytes %s NULL", bytes,
                        dst == NULL ? "to" : "from");
    return TGL_OK;
}

tgl_status tgl_upload(tgl_device *dev, void *dst, const void *src, size_t bytes)
{
    TGL_TRY(check_copy(dev, dst, src, bytes));
    return bytes == 0 ? TGL_OK : dev->backend->upload(dev, dst, src, bytes);
}

tgl_status tgl_download(tgl_device *dev, void *dst, const void *src, size_t bytes)
{
    TGL_TRY(check_copy(dev, dst, src, bytes));
    return bytes == 0 ? TGL_OK : dev->backend->download(dev, dst, src, bytes);
}

tgl_status tgl_device_sync(tgl_device *dev)
{
    return dev == NULL ? TGL_BAD_ARGUMENT : dev->backend->sync(dev);
}

/* ---- Timers ---------------------------------------------------------------------------------- */

double tgl_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

tgl_status tgl_timer_create(tgl_device *dev, tgl_timer **out)
{
    if (out == NULL) return TGL_BAD_ARGUMENT;
    *out = NULL;
    if (dev == NULL) return TGL_BAD_ARGUMENT;
    tgl_timer *timer = calloc(1, sizeof *timer);
    if (timer == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a timer");
    timer->dev = dev;
    if (dev->backend->timer_create != NULL) {
        tgl_status status = dev->backend->timer_create(timer);
        if (status != TGL_OK) {
            free(timer);
            return status;
        }
    }
    *out = timer;
    return TGL_OK;
}

void tgl_timer_destroy(tgl_timer *timer)
{
    if (timer == NULL) return;
    if (timer->dev->backend->timer_destroy != NULL) timer->dev->backend->timer_destroy(timer);
    free(timer);
}

tgl_status tgl_timer_start(tgl_timer *timer, void *stream)
{
    if (timer == NULL) return TGL_BAD_ARGUMENT;
    if (timer->dev->backend->timer_start != NULL)
        return timer->dev->backend->timer_start(timer, stream);
    timer->started = tgl_clock();
    return TGL_OK;
}

tgl_status tgl_timer_stop(tgl_timer *timer, void *stream, double *seconds)
{
    if (timer == NULL || seconds == NULL) return TGL_BAD_ARGUMENT;
    if (timer->dev->backend->timer_stop != NULL)
        return timer->dev->backend->timer_stop(timer, stream, seconds);
    *seconds = tgl_clock() - timer->started;
    return TGL_OK;
}
