/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that grows in a buffer of fixed size and counts on when the buffer is full, as snprintf
 * does.
 */
#ifndef TGL_TEXT_H
#define TGL_TEXT_H

#include "base/error.h"

#include <stddef.h>

typedef struct tgl_text {
    char *at;
    size_t size;   /* bytes there; 0: `at` may be NULL */
    size_t length; /* of the whole text */
} tgl_text;

void tgl_text_add(tgl_text *text, const char *format, ...) TGL_PRINTF(2, 3);

#endif
