/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts threads and waits for their end.
 */
#include "workers.h"

#include <pthread.h>
#include <stddef.h>

enum { THREADS_MAX = 64 };

bool run_workers(int64_t count, void *(*work)(void *context), void *context)
{
    pthread_t threads[THREADS_MAX];
    int started = 0;
    while (started < count - 1 && started < THREADS_MAX &&
           pthread_create(&threads[started], NULL, work, context) == 0)
        started++;
    bool is_done = work(context) == NULL;
    while (started > 0) {
        void *failure;
        pthread_join(threads[--started], &failure);
        is_done = is_done && failure == NULL;
    }
    return is_done;
}
