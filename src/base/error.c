/* SPDX-License-Identifier: Apache-2.0
 *
 * The error message of each thread's latest failure. It belongs to the thread, so that concurrent
 * calls do not mix their messages. Besides the number of the process (process_number.c), it is the
 * library's only mutable global state.
 *
 * A message is allocated when a thread fails and freed at its next failure or end: a thread-local
 * array would take memory from the stack of every thread of the process, and some stacks are too
 * small for it.
 */
#include "base/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SENTENCE_SIZE = 8192, /* maximum bytes of a message; a longer compiler log is truncated */
    SPARE_SIZE = 96,
};

/* A short message, for a thread that cannot allocate memory for the message. */
static _Thread_local char spare[SPARE_SIZE];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* the thread's allocated message; NULL: the message is in `spare` */
static bool has_key;

/* The destructor is free(), not a function of this library, so that a thread can still end after
 * the library has been unloaded. */
static void make_key(void)
{
    has_key = pthread_key_create(&key, free) == 0;
}

static char *allocated_sentence(void)
{
    pthread_once(&once, make_key);
    return has_key ? pthread_getspecific(key) : NULL;
}

/* Formats a text of at most SENTENCE_SIZE bytes in allocated memory; NULL: out of memory, or the
 * format is wrong. */
static char *print_sentence(const char *format, va_list args)
{
    va_list measured;
    va_copy(measured, args);
    const int length = vsnprintf(NULL, 0, format, measured);
    va_end(measured);
    if (length < 0) return NULL;
    const size_t size = length < SENTENCE_SIZE ? (size_t)length + 1 : SENTENCE_SIZE;
    char *text = malloc(size);
    if (text != NULL) vsnprintf(text, size, format, args);
    return text;
}

/* Completes the new message before it frees the old one, because an argument may be the old
 * message. */
void tgl_set_error(const char *format, ...)
{
    char *before = allocated_sentence(), short_text[SPARE_SIZE];
    va_list args;
    va_start(args, format);
    char *text = print_sentence(format, args);
    va_end(args);
    if (text == NULL || !has_key || pthread_setspecific(key, text) != 0) {
        free(text);
        va_start(args, format);
        vsnprintf(short_text, sizeof short_text, format, args);
        va_end(args);
        snprintf(spare, sizeof spare, "%s", short_text);
        if (has_key) pthread_setspecific(key, NULL);
    }
    free(before);
}

const char *tgl_error(void)
{
    const char *allocated = allocated_sentence();
    return allocated != NULL ? allocated : spare;
}

size_t tgl_last_error(char *text, size_t size)
{
    const int length = snprintf(text, text != NULL ? size : 0, "%s", tgl_error());
    return length < 0 ? 0 : (size_t)length;
}
