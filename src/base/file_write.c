/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls write() until all bytes are written. Meanwhile the calling thread blocks SIGXFSZ. Linux
 * sends this signal to the thread that writes, so other threads, and the process's handler of the
 * signal, are not affected.
 */
#include "base/file_write.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static bool write_all(int file, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        const ssize_t put = write(file, at, size);
        if (put < 0 && errno == EINTR) continue;
        if (put == 0) errno = EIO;
        if (put <= 0) return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

bool tgl_file_write(int file, const void *data, size_t size)
{
    sigset_t too_large, before, pending;
    const struct timespec now = {0};
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &too_large, &before);
    const bool done = write_all(file, data, size);
    const int error = errno;
    /* Discards the SIGXFSZ that write() has raised, but not one that was pending before. */
    if (!done && error == EFBIG && !sigismember(&pending, SIGXFSZ))
        while (sigtimedwait(&too_large, NULL, &now) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return done;
}
