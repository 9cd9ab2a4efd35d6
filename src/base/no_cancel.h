/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps pthread_cancel() from ending a thread while it holds a lock, or does work that must be
 * completed. Reading, writing and waiting for a child process are cancellation points.
 */
#ifndef TGL_NO_CANCEL_H
#define TGL_NO_CANCEL_H

#include <pthread.h>

static inline int tgl_disable_cancel(void)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void tgl_restore_cancel(const int *state)
{
    pthread_setcancelstate(*state, NULL);
}

/* A declaration: until the end of its block, the calling thread cannot be cancelled. */
#define TGL_NO_CANCEL                                                                              \
    const int tgl_cancel_state __attribute__((cleanup(tgl_restore_cancel), unused)) =              \
        tgl_disable_cancel()

#endif
