/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for dlopen() that uses OpenMP: calls a function in a parallel region of two threads.
 */
#include <omp.h>

void call_in_region(void (*body)(void *), void *argument);

void call_in_region(void (*body)(void *), void *argument)
{
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) body(argument);
}
