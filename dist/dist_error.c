/* SPDX-License-Identifier: Apache-2.0
 *
 * The error message of each thread's latest failure in libtegula_dist. It is not that of libtegula,
 * which does not export the function that stores its message.
 */
#include "dist_error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char latest[DIST_MESSAGE_SIZE];

void dist_set_error(const char *format, ...)
{
    char text[DIST_MESSAGE_SIZE]; /* a copy, because an argument may be the old message */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(latest, sizeof latest, "%s", text);
}

const char *dist_error(void)
{
    return latest;
}

tgl_status dist_fail_local(tgl_status status)
{
    char text[DIST_MESSAGE_SIZE];
    tgl_last_error(text, sizeof text);
    dist_set_error("%s", text);
    return status;
}

void tgl_dist_set_error(const char *message)
{
    dist_set_error("%s", message);
}

size_t tgl_dist_last_error(char *text, size_t size)
{
    const int length = snprintf(text, text != NULL ? size : 0, "%s", latest);
    return length < 0 ? 0 : (size_t)length;
}
