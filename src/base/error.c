/* SPDX-License-Identifier: Apache-2.0
 *
 * The error message of each thread's latest failure. It is thread-local, so that concurrent calls
 * do not mix their messages. It is the library's only global state.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

enum { SENTENCE_SIZE = 8192 }; /* bytes; a longer compiler log is truncated */

static _Thread_local char sentence[SENTENCE_SIZE];

void tgl_set_error(const char *format, ...)
{
    char text[SENTENCE_SIZE]; /* a buffer of its own, because an argument may be the current message
                               */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(sentence, sizeof sentence, "%s", text);
}

const char *tgl_error(void)
{
    return sentence;
}

size_t tgl_last_error(char *text, size_t size)
{
    const int length = snprintf(text, text != NULL ? size : 0, "%s", sentence);
    return length < 0 ? 0 : (size_t)length;
}
