/* SPDX-License-Identifier: Apache-2.0
 *
 * The one way to carry an error: a function that fails returns a tgl_status, and has left one
 * sentence of detail with tgl_fail(), for its thread. tgl_last_error() reads it. No function takes
 * a buffer for messages.
 */
#ifndef TGL_ERROR_H
#define TGL_ERROR_H

#include "tegula/tegula.h"

#ifdef __GNUC__
#define TGL_PRINTF(index, first) __attribute__((format(printf, index, first)))
#else
#define TGL_PRINTF(index, first)
#endif

/* Keeps the sentence of the calling thread, formatted as printf does, in place of the one before.
 */
void tgl_set_error(const char *format, ...) TGL_PRINTF(1, 2);

/* The calling thread's sentence; "" if there is none. Valid until its next failure. */
const char *tgl_error(void);

/* Keeps the sentence and yields `status`. A macro, so that a reader and an analyser of the caller
 * see which status that is. */
#define tgl_fail(status, ...) (tgl_set_error(__VA_ARGS__), (status))

/* Forwards a failure to the caller. */
#define TGL_TRY(call)                                                                              \
    do {                                                                                           \
        tgl_status tgl_try_status = (call);                                                        \
        if (tgl_try_status != TGL_OK) return tgl_try_status;                                       \
    } while (0)

#endif
