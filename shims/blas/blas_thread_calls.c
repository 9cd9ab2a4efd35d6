/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions by which a program sets and gets the number of threads. A program calls them
 * directly, or calls OpenBLAS's functions in openblas_names.c, which call them.
 */
#include "blas_shim.h"

BLAS_FUNCTION(tegula_blas_set_num_threads, (int threads))
{
    tgl_device *dev = blas_device();
    if (dev == NULL) return;
    if (threads > 0)
        tgl_set_threads(dev, threads);
    else
        blas_set_default_threads(dev);
}

__attribute__((visibility("default"))) int tegula_blas_get_num_threads(void);
int tegula_blas_get_num_threads(void)
{
    const tgl_device *dev = blas_device();
    return dev != NULL ? blas_threads_of(dev) : 1;
}
