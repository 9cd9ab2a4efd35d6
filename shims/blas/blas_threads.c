/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of threads that the environment requests, by the variables of OpenBLAS, MKL and BLIS:
 * programs set them for the BLAS that this library replaces.
 */
#include "blas_shim.h"

#include <stdlib.h>

/* The number in an environment variable; 0: it is unset or not a positive number. */
static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    const long number = text != NULL ? strtol(text, NULL, 10) : 0;
    return number > 0 && number < INT32_MAX ? (int)number : 0;
}

int blas_threads_of(const tgl_device *dev)
{
    double threads = 1;
    tgl_device_number(dev, TGL_NUMBER_THREADS, &threads);
    return (int)threads;
}

/* Sets the device's number of threads to the smallest number in the variables of BLAS libraries. A
 * program may not know which BLAS it uses, and may have set the variable of any of them. If none is
 * set (least = 0), the device gets back the number with which it was opened, which comes from
 * OMP_NUM_THREADS. OMP_THREAD_LIMIT is an upper limit in both cases. */
void blas_set_default_threads(tgl_device *dev)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                        "BLIS_NUM_THREADS"};
    int least = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const int number = number_of(names[i]);
        if (number > 0 && (least == 0 || number < least)) least = number;
    }
    tgl_set_threads(dev, least);
    const int limit = number_of("OMP_THREAD_LIMIT");
    if (limit > 0 && limit < blas_threads_of(dev)) tgl_set_threads(dev, limit);
}
