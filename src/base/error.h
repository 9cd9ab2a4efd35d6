/* SPDX-License-Identifier: Apache-2.0
 *
 * Error reporting: a function that fails returns a tgl_status and has stored an error message for
 * its thread with tgl_fail(). tgl_last_error() returns the message. No function has a parameter for
 * messages.
 */
#ifndef TGL_ERROR_H
#define TGL_ERROR_H

#include "tegula/tegula.h"

#ifdef __GNUC__
#define TGL_PRINTF(index, first) __attribute__((format(printf, index, first)))
#else
#define TGL_PRINTF(index, first)
#endif

/* Replaces the calling thread's error message. format: as of printf(). */
void tgl_set_error(const char *format, ...) TGL_PRINTF(1, 2);

/* The calling thread's error message; "": none. Valid until the thread's next failure. */
const char *tgl_error(void);

/* Sets the error message and evaluates to `status`. It is a macro, so that readers and static
 * analysers see the status in the calling function. */
#define tgl_fail(status, ...) (tgl_set_error(__VA_ARGS__), (status))

/* Returns from the calling function if the call fails. */
#define TGL_TRY(call)                                                                              \
    do {                                                                                           \
        tgl_status tgl_try_status = (call);                                                        \
        if (tgl_try_status != TGL_OK) return tgl_try_status;                                       \
    } while (0)

#endif
