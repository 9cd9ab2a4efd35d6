/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the name of the exercise in the text of a kernel, and examines its words (identifiers,
 * keywords and numbers).
 */
#include "learn_source.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The head -------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (is_word(at[length]))
        length++;
    return length;
}

static void add_head(learn_heads *heads, const char *name, size_t length)
{
    for (int i = 0; i < heads->count; i++)
        if (strncmp(heads->names[i], name, length) == 0 && heads->names[i][length] == '\0') return;
    if (heads->count < HEADS_MAX)
        snprintf(heads->names[heads->count++], HEAD_SIZE, "%.*s", (int)length, name);
}

learn_heads learn_heads_of(const char *source)
{
    static const char mark[] = "Exercise ";
    learn_heads heads = {.count = 0};
    for (const char *at = source; (at = strstr(at, mark)) != NULL;) {
        at += sizeof mark - 1;
        const size_t length = word_length(at);
        if (length > 0 && length < HEAD_SIZE && at[length] == ':') add_head(&heads, at, length);
    }
    return heads;
}

const exercise *learn_exercise_of(const char *source, char *why, size_t size)
{
    const learn_heads heads = learn_heads_of(source);
    const exercise *e = heads.count == 1 ? exercise_find(heads.names[0]) : NULL;
    if (heads.count == 0)
        snprintf(why, size, "names no exercise: keep the line \"Exercise NAME:\" of its head");
    else if (heads.count > 1)
        snprintf(why, size,
                 "has the heads of two exercises, %s and %s: a file holds the kernel of one",
                 heads.names[0], heads.names[1]);
    else if (e == NULL)
        snprintf(why, size,
                 "is for the exercise \"%s\", which does not exist; `tegula learn` lists them",
                 heads.names[0]);
    return e;
}

/* ---- Words of the kernel --------------------------------------------------------------------- */

/* The end of the comment or string literal that begins at `at`; `at` itself: none begins there. */
static const char *skip(const char *at)
{
    if (at[0] == '/' && at[1] == '/') return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        return end != NULL ? end + 2 : at + strlen(at);
    }
    if (at[0] != '"' && at[0] != '\'') return at;
    const char quote = *at++;
    for (; *at != '\0' && *at != quote && *at != '\n'; at++)
        if (at[0] == '\\' && at[1] != '\0') at++;
    return *at != '\0' ? at + 1 : at;
}

/* The next word at or after `at` that is not in a comment or string literal; NULL: there is
 * none. */
static const char *next_word(const char *at)
{
    while (*at != '\0') {
        const char *end = skip(at);
        if (end == at && is_word(*at)) return at;
        at = end == at ? at + 1 : end;
    }
    return NULL;
}

/* Whether a word hides memory accesses from the simulator: inline assembly, or an attribute that
 * turns off the instrumentation of accesses. */
static bool hides_accesses(const char *word, size_t length)
{
    static const char *const parts[] = {"no_sanitize", "sanitizer_instrumentation", "__asm"};
    char text[HEAD_SIZE];
    snprintf(text, sizeof text, "%.*s", (int)length, word);
    if (strcmp(text, "asm") == 0) return true;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(text, parts[i]) != NULL) return true;
    return false;
}

static int line_of(const char *source, const char *at)
{
    int line = 1;
    for (; source < at; source++)
        line += *source == '\n';
    return line;
}

bool learn_source_is_refused(const exercise *e, const char *source, char *why, size_t size)
{
    bool has_kernel = false;
    size_t length = 0;
    for (const char *word = source; (word = next_word(word + length)) != NULL;) {
        length = word_length(word);
        if (hides_accesses(word, length)) {
            snprintf(why, size,
                     "line %d: \"%.*s\" hides accesses to memory from the simulator, which could "
                     "not count them; lib/ has functions for the instructions of a GPU",
                     line_of(source, word), (int)length, word);
            return true;
        }
        if (length == strlen(e->name) && strncmp(word, e->name, length) == 0) has_kernel = true;
    }
    if (!has_kernel)
        snprintf(why, size, "there is no function %s: the kernel keeps its name and its parameters",
                 e->name);
    return !has_kernel;
}
