/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening devices by name, and the functions of a device other than products: memory, properties.
 */
#include "api/default_compute.h"
#include "api/effort.h"
#include "api/plan_cache.h"
#include "api/settings.h"
#include "backend/backend_stack.h"
#include "base/no_cancel.h"
#include "problem/struct_size.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The backends, in the order in which the device name "auto" tries them. The cpu is always
 * available. */
static const tgl_backend *const backends[] = {
    &tgl_cuda_backend,
    &tgl_cpu_backend,
#ifndef TGL_NO_SIM
    &tgl_sim_backend,
#endif
};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* The smallest accepted size of tgl_device_options: the size in its first version. */
static const size_t least_size = TGL_SIZE_UP_TO(tgl_device_options, current_context);

static tgl_status no_device(void)
{
    return tgl_fail(TGL_BAD_ARGUMENT, "the device is NULL");
}

/* ---- Open and close -------------------------------------------------------------------------- */

/* Splits a device name such as "cuda:1". Returns the index of the backend in `backends`, -1 if none
 * has this name; *index := the number behind the colon. */
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
    TGL_TRY(tgl_check_stack(backend));
    return backend->open(dev, index, options);
}

/* Opens the first backend that has a device. Skips backends that find no device, without a change
 * of the thread's error message. Returns any other failure. */
static tgl_status open_first(tgl_device *dev, const tgl_device_options *options)
{
    char *before = strdup(tgl_error());
    if (before == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a device");
    tgl_status status = TGL_NO_DEVICE;
    for (int i = 0; i < BACKENDS && status == TGL_NO_DEVICE; i++)
        status = open_backend(dev, backends[i], 0, options);
    if (status == TGL_OK) tgl_set_error("%s", before);
    free(before);
    return status;
}

static tgl_status open_by_name(tgl_device *dev, const char *name, const tgl_device_options *options)
{
    if (strcmp(name, "auto") == 0) return open_first(dev, options);
    int index, i = parse_name(name, &index);
    dev->is_numbered = strchr(name, ':') != NULL;
    if (i >= 0) return open_backend(dev, backends[i], index, options);
#ifdef TGL_NO_SIM
    if (strcmp(name, "sim") == 0)
        return tgl_fail(TGL_NO_DEVICE, "this library was built without the simulator");
#endif
    return tgl_fail(TGL_NO_DEVICE, "no device is called \"%s\"; see `tegula info`", name);
}

static tgl_status check_options(const tgl_device_options *options)
{
    if (options->threads < 0)
        return tgl_fail(TGL_BAD_ARGUMENT, "options.threads is %d; it must not be negative",
                        options->threads);
    if (options->current_context != 0 && options->current_context != 1)
        return tgl_fail(TGL_BAD_ARGUMENT, "options.current_context is %d; it is 0 or 1",
                        options->current_context);
    return TGL_OK;
}

/* Initialises dev->measuring as an error-checking mutex. A thread whose signal handler has left a
 * measurement by longjmp() still holds the lock. When this thread locks again, it gets an error
 * instead of a deadlock (tgl_effort_lock()). */
static void make_measuring_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

/* Opens the wisdom (the file of measured kernel times, plan/wisdom.h) if plans of this device can
 * be measured. If memory is exhausted, the device works without wisdom. */
static void open_wisdom(tgl_device *dev)
{
    char chip[TGL_NAME_SIZE], driver[TGL_NAME_SIZE];
    if (dev->backend->trials == NULL) return;
    dev->backend->trials->describe(dev, chip, driver);
    dev->wisdom = tgl_wisdom_open(chip, driver);
    if (dev->wisdom == NULL) return;
    make_measuring_lock(&dev->measuring);
    tgl_usual_settings_find(dev);
}

static void close_wisdom(tgl_device *dev)
{
    if (dev->wisdom != NULL) pthread_mutex_destroy(&dev->measuring);
    tgl_wisdom_close(dev->wisdom);
    free(dev->usual);
}

/* Opens the backend of a device and sets the device's members. *dev must be all zero. */
static tgl_status set_up(tgl_device *dev, const char *name, const tgl_device_options *options)
{
    tgl_compute asked;
    TGL_TRY(tgl_compute_of_environment(&asked));
    TGL_TRY(tgl_effort_of_environment(dev));
    TGL_TRY(tgl_plan_cache_create(&dev->plans));
    const tgl_status status = open_by_name(dev, name, options);
    if (status == TGL_OK) {
        const bool has_chip = dev->backend->chip != NULL;
        dev->f32_compute = tgl_compute_for(asked, has_chip ? dev->backend->chip(dev) : NULL);
        open_wisdom(dev);
        return TGL_OK;
    }
    tgl_plan_cache_destroy(dev->plans);
    return status;
}

tgl_status tgl_device_open(const char *name, const tgl_device_options *options, tgl_device **out)
{
    TGL_NO_CANCEL;
    static const tgl_device_options defaults = {.size = sizeof(tgl_device_options)};
    if (out == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the output pointer for the device is NULL");
    *out = NULL;
    tgl_device_options copy;
    const void *read = &defaults;
    if (options != NULL)
        TGL_TRY(tgl_struct_read(options, sizeof copy, least_size, "options", &copy, &read));
    if (name == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the device's name is NULL");
    TGL_TRY(check_options(read));

    tgl_device *dev = calloc(1, sizeof *dev);
    if (dev == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a device");
    const tgl_status status = set_up(dev, name, read);
    if (status != TGL_OK) {
        free(dev);
        return status;
    }
    *out = dev;
    return TGL_OK;
}

void tgl_device_close(tgl_device *dev)
{
    if (dev == NULL) return;
    tgl_plan_cache_destroy(dev->plans);
    dev->backend->close(dev);
    close_wisdom(dev);
    free(dev);
}

/* ---- Properties ------------------------------------------------------------------------------ */

const char *tgl_device_name(const tgl_device *dev)
{
    return dev != NULL ? dev->name : "";
}

tgl_status tgl_device_property(const tgl_device *dev, int index, const char **key,
                               const char **value)
{
    if (dev == NULL) return no_device();
    if (key == NULL || value == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "the output pointer for a property is NULL");
    if (index < 0)
        return tgl_fail(TGL_BAD_ARGUMENT, "the index of a property is %d; it must not be negative",
                        index);
    const int count = dev->backend->property(dev, index, key, value);
    if (index < count) return TGL_OK;
    if (index > count || dev->wisdom == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "the device %s has no property number %d", dev->name,
                        index);
    *key = "wisdom";
    *value = tgl_wisdom_describe(dev->wisdom);
    return TGL_OK;
}

tgl_status tgl_device_number(const tgl_device *dev, tgl_number number, double *value)
{
    if (dev == NULL) return no_device();
    if (value == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the output pointer for a number is NULL");
    if ((int)number < TGL_NUMBER_PROCESSORS || number > TGL_NUMBER_SHARED_BLOCK_BYTES)
        return tgl_fail(TGL_BAD_ARGUMENT, "%d is not a tgl_number", (int)number);
    const double known = dev->backend->number(dev, number);
    if (known == 0)
        return tgl_fail(TGL_UNSUPPORTED, "the device %s has no value for tgl_number %d", dev->name,
                        (int)number);
    *value = known;
    return TGL_OK;
}

tgl_status tgl_set_threads(tgl_device *dev, int threads)
{
    if (dev == NULL) return no_device();
    if (threads < 0)
        return tgl_fail(TGL_BAD_ARGUMENT, "threads is %d; it must not be negative", threads);
    if (dev->backend->set_threads == NULL)
        return tgl_fail(TGL_UNSUPPORTED, "the device %s has no number of threads that can be set",
                        dev->name);
    dev->backend->set_threads(dev, threads);
    tgl_plan_cache_clear(dev->plans);
    return TGL_OK;
}

tgl_status tgl_device_measure(tgl_device *dev, tgl_ceiling ceiling, double *value)
{
    if (dev == NULL) return no_device();
    if (value == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "the output pointer for a ceiling is NULL");
    if (ceiling != TGL_CEILING_FMA_F32 && ceiling != TGL_CEILING_FMA_F64 &&
        ceiling != TGL_CEILING_COPY)
        return tgl_fail(TGL_BAD_ARGUMENT, "%d is not a tgl_ceiling", (int)ceiling);
    return dev->backend->measure(dev, ceiling, value);
}

const char *tgl_kernel_name(const tgl_device *dev, int index)
{
    if (dev == NULL || index < 0) return NULL;
    if (dev->backend->kernel_name != NULL) return dev->backend->kernel_name(dev, index);
    tgl_choice choice;
    return tgl_configuration_at(index, &choice) ? tgl_choice_name(&choice) : NULL;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

tgl_status tgl_alloc(tgl_device *dev, size_t bytes, void **memory)
{
    if (memory == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "the output pointer for the memory is NULL");
    *memory = NULL;
    if (dev == NULL) return no_device();
    return bytes == 0 ? TGL_OK : dev->backend->alloc(dev, bytes, memory);
}

void tgl_free(tgl_device *dev, void *memory)
{
    if (dev != NULL && memory != NULL) dev->backend->free(dev, memory);
}

/* Checks the arguments of an upload or a download. */
static tgl_status check_copy(tgl_device *dev, const void *dst, const void *src, size_t bytes)
{
    if (dev == NULL) return no_device();
    if (bytes > 0 && (dst == NULL || src == NULL))
        return tgl_fail(TGL_BAD_ARGUMENT, "a copy of %zu bytes %s NULL", bytes,
                        dst == NULL ? "to" : "from");
    return TGL_OK;
}

tgl_status tgl_upload(tgl_device *dev, void *dst, const void *src, size_t bytes, void *stream)
{
    TGL_TRY(check_copy(dev, dst, src, bytes));
    return bytes == 0 ? TGL_OK : dev->backend->upload(dev, dst, src, bytes, stream);
}

tgl_status tgl_download(tgl_device *dev, void *dst, const void *src, size_t bytes, void *stream)
{
    TGL_TRY(check_copy(dev, dst, src, bytes));
    return bytes == 0 ? TGL_OK : dev->backend->download(dev, dst, src, bytes, stream);
}

tgl_status tgl_device_sync(tgl_device *dev)
{
    return dev == NULL ? no_device() : dev->backend->sync(dev);
}

tgl_status tgl_device_trim(tgl_device *dev)
{
    if (dev == NULL) return no_device();
    tgl_plan_cache_clear(dev->plans);
    if (dev->backend->trim != NULL) dev->backend->trim(dev);
    return TGL_OK;
}
