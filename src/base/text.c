/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends to a text buffer of fixed size, and reads decimal numbers.
 */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

bool tgl_read_decimal(const char *text, int decimals, int64_t *value)
{
    enum { DIGITS_MAX = 15 };
    static const char digit[] = "0123456789";
    const size_t whole = strspn(text, digit);
    const char *rest = text + whole + (text[whole] == '.');
    const size_t given = strspn(rest, digit);
    *value = 0;
    if (whole + given == 0 || whole + (size_t)decimals > DIGITS_MAX) return false;
    for (size_t i = 0; i < whole; i++)
        *value = 10 * *value + (text[i] - '0');
    for (int i = 0; i < decimals; i++)
        *value = 10 * *value + (*rest >= '0' && *rest <= '9' ? *rest++ - '0' : 0);
    return *rest == '\0';
}
