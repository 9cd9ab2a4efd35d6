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
    CLI_FLAG,    /* no value; sets a bool to true */
    CLI_ONE,     /* no value; sets an int to 1 */
    CLI_TEXT,    /* any text that is not empty; sets a const char * */
    CLI_INT,     /* sets an int64_t to a number from `min` to `max` */
    CLI_THREADS, /* sets an int to a number of threads, from 1 to 65536 */
    CLI_REAL,    /* sets a double; nan and inf are allowed */
    CLI_TYPE,    /* sets a tgl_type: f32, f64, ... */
    CLI_CHOICE,  /* sets an enum: the text is one of `names` */
    CLI_TAKE,    /* the function `take` reads the text */
} cli_kind;

typedef struct cli_option {
    const char *name; /* name of the long option; NULL: there is none */
    char letter;      /* letter of the short option; '\0': there is none */
    cli_kind kind;
    size_t at;                /* offset of the member of the command's struct that gets the value */
    int64_t min, max;         /* limits of CLI_INT; with CLI_CHOICE, min is the value for the
                                    first name */
    const char *const *names; /* with CLI_CHOICE: the names, with NULL after the last one */
    bool (*take)(const char *text, void *options); /* with CLI_TAKE; false: the value is invalid,
                                                      and the error has been printed */
} cli_option;

/* Macros for rows of the table. CLI_AT() is offsetof(), but the compiler warns if the member does
 * not have the given type. */
// clang-format off
#define CLI_AT(type, options, member)                                                              \
    (offsetof(options, member) + 0 * sizeof((type *)0 == &((options *)0)->member))
#define OPTION_FLAG(options, member, text)                                                         \
    {.name = (text), .kind = CLI_FLAG, .at = CLI_AT(bool, options, member)}
#define OPTION_TEXT(options, member, text)                                                         \
    {.name = (text), .kind = CLI_TEXT, .at = CLI_AT(const char *, options, member)}
#define OPTION_INT(options, member, text, from, to)                                                \
    {.name = (text), .kind = CLI_INT, .at = CLI_AT(int64_t, options, member), .min = (from), .max = (to)}
#define OPTION_LETTER(options, member, sign, from, to)                                             \
    {.letter = (sign), .kind = CLI_INT, .at = CLI_AT(int64_t, options, member), .min = (from), .max = (to)}
#define OPTION_REAL(options, member, text)                                                         \
    {.name = (text), .kind = CLI_REAL, .at = CLI_AT(double, options, member)}
#define OPTION_TYPE(options, member, text)                                                         \
    {.name = (text), .kind = CLI_TYPE, .at = CLI_AT(tgl_type, options, member)}
#define OPTION_CHOICE(type, options, member, text, choices, first)                                 \
    {.name = (text), .kind = CLI_CHOICE, .at = CLI_AT(type, options, member), .min = (first), .names = (choices)}
#define OPTION_TAKE(text, function) {.name = (text), .kind = CLI_TAKE, .take = (function)}
#define OPTIONS_COMMON                                                                             \
    {.name = "help", .letter = 'h', .kind = CLI_HELP},                                             \
        {.name = "version", .letter = 'V', .kind = CLI_VERSION}
// clang-format on

/* A mode: an option that makes a command do something else than usual, and the other options that
 * are allowed with it. */
typedef struct cli_mode {
    const char *option;   /* name of the option, as "cliffs"; NULL ends the list of modes */
    const char *uses[16]; /* names of the options that are allowed, as "csv" or "m"; NULL ends the
                             list */
} cli_mode;

/* The syntax of the command line of a command. */
typedef struct cli_syntax {
    const char *help;        /* text that --help prints */
    const cli_option *table; /* rows of the options; OPTIONS_COMMON are the first rows */
    const cli_mode *modes;   /* the modes; NULL: there are none */
    bool has_operands;       /* whether words that are not options are allowed; they are
                                argv[optind], ... */
} cli_syntax;

/* Parses a command line and sets the members of *options. Returns PARSED, or the exit code with
 * which the command ends: after an error, which has been printed, or after --help or --version. */
int cli_parse(int argc, char **argv, const cli_syntax *syntax, void *options);

/* Parse a number strictly: no blanks, no trailing characters, no overflow; an integer must be
 * within [min, max]. option: the option's name, for the error. Return false if the text is
 * invalid, after printing the error. */
bool cli_parse_int(const char *option, const char *text, int64_t min, int64_t max, int64_t *value);
bool cli_parse_real(const char *option, const char *text, double *value);

/* Returns the index of the text in `names`, a list that ends with NULL. Returns -1 if it is not
 * there, after printing an error that names `option`. */
int cli_parse_name(const char *option, const char *text, const char *const *names);

#endif
