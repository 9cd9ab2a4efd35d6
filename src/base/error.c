/* SPDX-License-Identifier: Apache-2.0
 *
 * The sentence of a thread's latest failure. It is per thread, so that concurrent calls do not mix
 * their sentences; it is the library's only state outside its objects.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

enum { SENTENCE_SIZE = 8192 }; /* bytes; a longer log of a compiler is cut */

static _Thread_local char sentence[SENTENCE_SIZE];

void tgl_set_error(const char *format, ...)
{
    char text[SENTENCE_SIZE]; /* an argument may be the sentence itself */
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
