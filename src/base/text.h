/* SPDX-License-Identifier: Apache-2.0
 *
 * Text in a buffer of fixed size. As with snprintf(), text that does not fit is dropped, but
 * still counts in the length.
 */
#ifndef TGL_TEXT_H
#define TGL_TEXT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tgl_text {
    char *at;
    size_t size;   /* bytes of the buffer; if it is 0, `at` may be NULL */
    size_t length; /* length of the whole text, including what did not fit */
} tgl_text;

/* Parses a decimal number such as "0.25" or ".5", whatever the locale is. *value := number *
 * 10^decimals. False: the text is no such number, has more than `decimals` decimals, or is not
 * below 10^(15-decimals). */
bool tgl_read_decimal(const char *text, int decimals, int64_t *value);

/* Appends a text. format: as of printf(). */
void tgl_text_add(tgl_text *text, const char *format, ...) TGL_PRINTF(2, 3);

#endif
