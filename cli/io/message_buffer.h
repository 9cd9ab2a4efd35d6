/* SPDX-License-Identifier: Apache-2.0
 *
 * An error message about a file in one line. It may quote the contents of the file.
 */
#ifndef CLI_MESSAGE_BUFFER_H
#define CLI_MESSAGE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct message_buffer {
    char *text; /* NULL: no message is wanted */
    size_t size;
} message_buffer;

/* Writes the message; characters other than printable ASCII are replaced. Always returns false, so
 * that a caller can return its result. */
bool message_refuse(message_buffer message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
