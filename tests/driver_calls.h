/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests on a real GPU: functions of the CUDA driver, which the tests call as an application
 * does.
 */
#ifndef DRIVER_CALLS_H
#define DRIVER_CALLS_H

#include "support.h"

#include <dlfcn.h>

static inline void *driver_function(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
    assert_non_null(library);
    void *function = dlsym(library, name);
    if (function == NULL) fail_msg("libcuda has no %s", name);
    dlclose(library);
    return function;
}

/* Declares a pointer to a driver function and looks the function up. The function returns 0 on
 * success. */
#define DRIVER(variable, name, ...)                                                                \
    int (*variable)(__VA_ARGS__);                                                                  \
    *(void **)&variable = driver_function(name)

/* Fails the test with the library's error message unless status is TGL_OK. */
static inline void assert_ok(tgl_status status)
{
    char text[2048];
    tgl_last_error(text, sizeof text);
    if (status != TGL_OK) fail_msg("%s: %s", tgl_status_name(status), text);
}

#endif
