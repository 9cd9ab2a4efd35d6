/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with a file, as one line of text: what the file contains may be part of it.
 */
#ifndef CLI_MESSAGE_BUFFER_H
#define CLI_MESSAGE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct message_buffer {
    char *text; /* may be NULL */
    size_t size;
} message_buffer;

/* Writes the message with all that is not printable ASCII replaced, and returns false. */
bool message_refuse(message_buffer message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
