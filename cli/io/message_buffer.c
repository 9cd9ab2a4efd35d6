/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats messages about files.
 */
#include "message_buffer.h"

#include <stdarg.h>
#include <stdio.h>

bool message_refuse(message_buffer message, const char *format, ...)
{
    if (message.text == NULL || message.size == 0) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(message.text, message.size, format, args);
    va_end(args);
    for (char *c = message.text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    return false;
}
