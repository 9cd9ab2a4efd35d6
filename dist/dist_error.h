/* SPDX-License-Identifier: Apache-2.0
 *
 * The error message of each thread's latest failure in this library.
 */
#ifndef DIST_ERROR_H
#define DIST_ERROR_H

#include "tegula/dist.h"

enum { DIST_MESSAGE_SIZE = 400 }; /* bytes of a message with its terminating 0 */

void dist_set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *dist_error(void);

/* Sets libtegula_dist's error message to that of tgl_last_error(). Returns `status`. */
tgl_status dist_fail_local(tgl_status status);

/* Sets the error message and evaluates to `status`. */
#define dist_fail(status, ...) (dist_set_error(__VA_ARGS__), (status))

/* Returns from the calling function if the call fails. */
#define DIST_TRY(call)                                                                             \
    do {                                                                                           \
        tgl_status dist_try_status = (call);                                                       \
        if (dist_try_status != TGL_OK) return dist_try_status;                                     \
    } while (0)

#endif
