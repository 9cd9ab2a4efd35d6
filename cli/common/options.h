/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a command. A table says what each is called, what its value is, and which member
 * of the command's struct gets the value.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli.h"

#include <stddef.h>

typedef enum cli_kind {
    CLI_END, /* behind the last row of a table */
    CLI_HELP,
    CLI_VERSION,
    CLI_FLAG,    /* no value; sets a bool */
    CLI_ONE,     /* no value; sets an int to 1 */
    CLI_TEXT,    /* const char * */
    CLI_INT,     /* int64_t, from `least` to `most` */
    CLI_THREADS, /* int, from 1 on */
    CLI_REAL,    /* double; nan and inf too */
    CLI_TYPE,    /* tgl_type: f32, f64, ... */
    CLI_CHOICE,  /* an enum: one of the names */
    CLI_TAKE,    /* a function takes it */
} cli_kind;

typedef struct cli_option {
    const char *name; /* of the long option; NULL: none */
    char letter;      /* of the short option; '\0': none */
    cli_kind kind;
    size_t at;                /* offset of the member */
    int64_t least, most;      /* CLI_CHOICE: least is the enum's value for the first name */
    const char *const *names; /* up to NULL */
    bool (*take)(const char *text, void *options); /* false: reported */
} cli_option;

/* Rows for such a table. CLI_AT() is offsetof(); it compiles only if the member has the type. */
// clang-format off
#define CLI_AT(type, options, member)                                                              \
    (offsetof(options, member) + 0 * sizeof((type *)0 == &((options *)0)->member))
#define OPTION_FLAG(options, member, text)                                                         \
    {.name = (text), .kind = CLI_FLAG, .at = CLI_AT(bool, options, member)}
#define OPTION_TEXT(options, member, text)                                                         \
    {.name = (text), .kind = CLI_TEXT, .at = CLI_AT(const char *, options, member)}
#define OPTION_INT(options, member, text, from, to)                                                \
    {.name = (text), .kind = CLI_INT, .at = CLI_AT(int64_t, options, member), .least = (from), .most = (to)}
#define OPTION_LETTER(options, member, sign, from, to)                                             \
    {.letter = (sign), .kind = CLI_INT, .at = CLI_AT(int64_t, options, member), .least = (from), .most = (to)}
#define OPTION_REAL(options, member, text)                                                         \
    {.name = (text), .kind = CLI_REAL, .at = CLI_AT(double, options, member)}
#define OPTION_TYPE(options, member, text)                                                         \
    {.name = (text), .kind = CLI_TYPE, .at = CLI_AT(tgl_type, options, member)}
#define OPTION_CHOICE(type, options, member, text, choices, first)                                 \
    {.name = (text), .kind = CLI_CHOICE, .at = CLI_AT(type, options, member), .least = (first), .names = (choices)}
#define OPTION_TAKE(text, function) {.name = (text), .kind = CLI_TAKE, .take = (function)}
#define OPTIONS_COMMON                                                                             \
    {.name = "help", .letter = 'h', .kind = CLI_HELP},                                             \
        {.name = "version", .letter = 'V', .kind = CLI_VERSION}
// clang-format on

/* An option that makes a command do something else, and the others that this uses: "csv", "m". */
typedef struct cli_mode {
    const char *option;   /* NULL: behind the last mode */
    const char *uses[16]; /* up to NULL */
} cli_mode;

/* The command line of a command. */
typedef struct cli_syntax {
    const char *help;        /* its text */
    const cli_option *table; /* begins with OPTIONS_COMMON */
    const cli_mode *modes;   /* NULL: none */
    bool has_operands;       /* words that are no options are allowed; optind tells where */
} cli_syntax;

/* Reads a command line to its end, and sets members of *options. Returns PARSED; or an exit code,
 * after an error or after --help or --version. */
int cli_parse(int argc, char **argv, const cli_syntax *syntax, void *options);

/* Strict numbers: no blanks, no trailing junk, no overflow, within [least, most]. false: reported.
 * `option` is the name in the error. */
bool cli_parse_int(const char *option, const char *text, int64_t least, int64_t most,
                   int64_t *value);
bool cli_parse_real(const char *option, const char *text, double *value);

/* The index of a text among names, which NULL ends; -1: reported. */
int cli_parse_name(const char *option, const char *text, const char *const *names);

#endif
