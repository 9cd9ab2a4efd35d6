/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends to a text buffer of fixed size.
 */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void tgl_text_add(tgl_text *text, const char *format, ...)
{
    const size_t used = text->length < text->size ? text->length : text->size;
    va_list args;
    va_start(args, format);
    const int length =
        vsnprintf(text->size > 0 ? text->at + used : NULL, text->size - used, format, args);
    va_end(args);
    if (length > 0) text->length += (size_t)length;
}
