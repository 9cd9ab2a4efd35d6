/* SPDX-License-Identifier: Apache-2.0
 *
 * The device of the process, opened by the first call of a BLAS function and never closed.
 * Environment variables:
 *
 *   TEGULA_BLAS_DEVICE     cpu (the default); cuda or cuda:N: large products run on a GPU
 *   TEGULA_BLAS_GPU_SIZE   which products are large (blas_gpu.c)
 *   TEGULA_BLAS_TRACE      1: a line on stderr for each call
 *   OPENBLAS_NUM_THREADS and the like: the number of threads (blas_threads.c)
 *
 * The cpu device also works in a child after fork(). If the fork interrupts the opening of the
 * device by another thread, pthread_once() runs again in the child, and the child opens the device
 * anew.
 */
#include "../../cli/common/unknown_settings.h"
#include "blas_shim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

blas_process blas_this_process;

/* Whether the name is "cuda" or "cuda:N" with a number N. */
static bool is_cuda(const char *name)
{
    if (strncmp(name, "cuda:", 5) != 0) return strcmp(name, "cuda") == 0;
    const char *number = name + 5;
    return *number != '\0' && number[strspn(number, "0123456789")] == '\0';
}

/* Prints the environment variables that begin with TEGULA_BLAS_ and that this library does not
 * know. They may be misspelt. */
static void report_unknown_settings(void)
{
    static const char *const known[] = {"TEGULA_BLAS_DEVICE", "TEGULA_BLAS_GPU_SIZE",
                                        "TEGULA_BLAS_TRACE", NULL};
    char **at = environ;
    const char *name;
    for (int length; (name = next_unknown_setting(&at, "TEGULA_BLAS_", known, &length)) != NULL;)
        fprintf(stderr, "tegula_blas: there is no setting %.*s. It is ignored.\n", length, name);
}

/* Opens the device and reads the environment. Prints a message for an invalid setting, and if the
 * device cannot be opened. */
static void open_device(void)
{
    const char *trace = getenv("TEGULA_BLAS_TRACE"), *name = getenv("TEGULA_BLAS_DEVICE");
    report_unknown_settings();
    blas_this_process.is_traced =
        trace != NULL && strcmp(trace, "") != 0 && strcmp(trace, "0") != 0;
    if (name == NULL || strcmp(name, "") == 0) name = "cpu";
    tgl_device *opened = NULL;
    if (tgl_device_open("cpu", NULL, &opened) != TGL_OK) {
        char reason[300];
        tgl_last_error(reason, sizeof reason);
        fprintf(stderr,
                "tegula_blas: the cpu device does not open: %s. Products are computed by the next "
                "BLAS, or by a slow loop if there is none.\n",
                reason);
    }
    if (opened != NULL) blas_set_default_threads(opened);
    blas_this_process.has_gpu = is_cuda(name);
    if (blas_this_process.has_gpu)
        blas_gpu_configure(name, opened);
    else if (strcmp(name, "cpu") != 0)
        fprintf(stderr,
                "tegula_blas: TEGULA_BLAS_DEVICE is \"%s\"; it must be cpu, cuda or cuda:N. "
                "Products run on the cpu device.\n",
                name);
    atomic_store_explicit(&blas_this_process.device, opened, memory_order_release);
}

tgl_device *blas_open_device(void)
{
    pthread_once(&once, open_device);
    return atomic_load_explicit(&blas_this_process.device, memory_order_acquire);
}
