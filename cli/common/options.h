/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a command. A row of a table names an option, the kind of its value, and the
 * member of the command's struct that gets the value.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli.h"

#include <stddef.h>

typedef enum cli_kind {
    CLI_END, /* ends a table */
    CLI_HELP,
    CLI_VERSION,
    CLI_FLAG,    /* no value; sets a bool */
    CLI_ONE,     /* no value; sets an int to 1 */
    CLI_TEXT,    /* any text; sets a const char * */
    CLI_INT,     /* int64_t, from `least` to `most` */
    CLI_THREADS, /* int, from 1 on */
    CLI_REAL,    /* double; nan and inf too */
    CLI_TYPE,    /* tgl_type: f32, f64, ... */
    CLI_CHOICE,  /* an enum: one of the names */
    CLI_TAKE,    /* a function reads the value */
} cli_kind;

typedef struct cli_option {
    const char *name; /* name of the long option; NULL: none */
    char letter;      /* letter of the short option; '\0': none */
    cli_kind kind;
    size_t at;                /* offset of the member that gets the value */
    int64_t least, most;      /* limits; CLI_CHOICE: least is the enum's value for the first name */
    const char *const *names; /* ends with NULL */
    bool (*take)(const char *text, void *options); /* false: reported */
} cli_option;

/* Macros for the rows of a table. CLI_AT() is an offsetof() that compiles only if the member has
 * the given type. */
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

/* A mode: an option that makes a command do something else, and the options that this mode uses:
 * "csv", "m". */
typedef struct cli_mode {
    const char *option;   /* NULL ends the list */
    const char *uses[16]; /* ends with NULL */
} cli_mode;

/* The syntax of a command line. */
typedef struct cli_syntax {
    const char *help;        /* text of --help */
    const cli_option *table; /* begins with OPTIONS_COMMON */
    const cli_mode *modes;   /* NULL: none */
    bool has_operands;       /* words that are not options are allowed, and start at optind */
} cli_syntax;

/* Parses a command line and sets members of *options. Returns PARSED; or an exit code after an
 * error, --help or --version. */
int cli_parse(int argc, char **argv, const cli_syntax *syntax, void *options);

/* Parses a number strictly: no blanks, no trailing characters, no overflow, within [least, most].
 * false: reported. option: its name in the error. */
bool cli_parse_int(const char *option, const char *text, int64_t least, int64_t most,
                   int64_t *value);
bool cli_parse_real(const char *option, const char *text, double *value);

/* The index of a text in a list of names that NULL ends; -1: reported. */
int cli_parse_name(const char *option, const char *text, const char *const *names);

#endif
