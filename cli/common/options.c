/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses command lines with getopt_long(), and their values strictly.
 */
#include "options.h"
#include "elements.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Values ---------------------------------------------------------------------------------- */

/* Whether the text is not empty and does not begin with a blank, which strtoll() and strtod() would
 * skip. */
static bool starts_like_a_number(const char *text)
{
    return *text != '\0' && strchr(" \t\n\v\f\r", *text) == NULL;
}

bool cli_parse_int(const char *option, const char *text, int64_t min, int64_t max, int64_t *value)
{
    char *end;
    errno = 0;
    const long long parsed = strtoll(text, &end, 10);
    if (!starts_like_a_number(text) || end == text || *end != '\0')
        return cli_misuse_false("%s: \"%s\" is not a whole number", option, text);
    if (errno == ERANGE || parsed < min || parsed > max) {
        if (max == INT64_MAX)
            return cli_misuse_false(
                "%s: %s is out of range: at least %lld, and it must fit in 63 bits", option, text,
                (long long)min);
        return cli_misuse_false("%s: %s is out of range: %lld to %lld", option, text,
                                (long long)min, (long long)max);
    }
    *value = parsed;
    return true;
}

bool cli_parse_real(const char *option, const char *text, double *value)
{
    char *end;
    errno = 0;
    const double parsed = strtod(text, &end);
    if (!starts_like_a_number(text) || end == text || *end != '\0')
        return cli_misuse_false("%s: \"%s\" is not a number", option, text);
    if (errno == ERANGE && fabs(parsed) > 1)
        return cli_misuse_false("%s: %s is too large for a double", option, text);
    *value = parsed;
    return true;
}

int cli_parse_name(const char *option, const char *text, const char *const *names)
{
    char known[128] = "";
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0) return i;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                 i == 0                 ? ""
                 : names[i + 1] == NULL ? " and "
                                        : ", ",
                 names[i]);
    }
    cli_misuse("%s: \"%s\" is none of %s", option, text, known);
    return -1;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* A table of cli_options in the form that getopt_long() needs. For a long option getopt_long()
 * returns FIRST_LONG plus the index of its row, for a short one its letter. */
enum { OPTIONS_MAX = 40, FIRST_LONG = 256 };
typedef struct getopt_table {
    struct option rows[OPTIONS_MAX + 1];
    char letters[2 * OPTIONS_MAX + 2];
} getopt_table;

static bool has_value(const cli_option *o)
{
    return o->kind > CLI_ONE;
}

static getopt_table table_of(const cli_option *options)
{
    /* With ':' in front, getopt_long() returns ':' for an option that lacks its value. */
    getopt_table t = {.letters = ":"};
    int rows = 0, letters = 1;
    for (int i = 0; options[i].kind != CLI_END; i++) {
        const cli_option *o = &options[i];
        if (o->name != NULL)
            t.rows[rows++] = (struct option){
                o->name, has_value(o) ? required_argument : no_argument, NULL, FIRST_LONG + i};
        if (o->letter != '\0') t.letters[letters++] = o->letter;
        if (o->letter != '\0' && has_value(o)) t.letters[letters++] = ':';
    }
    return t;
}

/* The index of the row of the option for which getopt_long() has returned `option`. */
static int row_of(const cli_option *options, int option)
{
    int row = 0;
    if (option >= FIRST_LONG) return option - FIRST_LONG;
    while (options[row].letter != option)
        row++;
    return row;
}

/* Writes the name of an option as the user writes it, such as "--seed" or "-m". Returns `text`. */
static const char *name_of(const cli_option *o, char text[32])
{
    if (o->name != NULL)
        snprintf(text, 32, "--%s", o->name);
    else
        snprintf(text, 32, "-%c", o->letter);
    return text;
}

/* ---- Refused options ------------------------------------------------------------------------- */

/* The word of the command line that contains the byte `optopt`. If that was the last byte of the
 * word, getopt() has already advanced to the next word. */
static const char *word_of_letter(int argc, char **argv)
{
    const char *now = optind < argc ? argv[optind] : "";
    return now[0] == '-' && strchr(now, optopt) != NULL ? now : argv[optind - 1];
}

/* Prints an error about the option that getopt() has just refused, as the user wrote it. Returns an
 * exit code. */
static int report_refused(int argc, char **argv, const cli_option *options, bool no_value)
{
    if (optopt < 0 || (optopt > 127 && optopt < FIRST_LONG)) /* one byte of a letter in UTF-8 */
        return cli_misuse("there is no option %s", word_of_letter(argc, argv));
    if (optopt > 0 && optopt < FIRST_LONG)
        return no_value ? cli_misuse("-%c needs a value", optopt)
                        : cli_misuse("there is no option -%c", optopt);
    if (no_value) return cli_misuse("--%s needs a value", options[optopt - FIRST_LONG].name);
    const char *written = optind > 0 && optind <= argc ? argv[optind - 1] : "?";
    if (optopt != 0) return cli_misuse("%s: this option takes no value", written);
    return cli_misuse("there is no option %s, or it is cut too short", written);
}

/* ---- Modes ----------------------------------------------------------------------------------- */

static bool is_called(const cli_option *o, const char *name)
{
    return o->name != NULL ? strcmp(o->name, name) == 0 : o->letter == name[0] && name[1] == '\0';
}

static bool has_use(const cli_mode *mode, const cli_option *o)
{
    for (const char *const *used = mode->uses; *used != NULL; used++)
        if (is_called(o, *used)) return true;
    return is_called(o, mode->option);
}

/* If the option of the mode was given, refuses all other given options that the mode does not
 * allow. Returns PARSED, or an exit code. */
static int check_mode(const cli_mode *mode, const cli_option *options, const bool *given)
{
    char name[32], useless[32];
    int row = 0;
    while (!is_called(&options[row], mode->option))
        row++;
    for (int i = 0; given[row] && options[i].kind != CLI_END; i++)
        if (given[i] && !has_use(mode, &options[i]))
            return cli_misuse("%s does not use %s", name_of(&options[row], name),
                              name_of(&options[i], useless));
    return PARSED;
}

/* ---- Command lines --------------------------------------------------------------------------- */

/* Sets the member of an option to the value in the text, which is "" for a flag. False: the value
 * is invalid, and the error has been printed. */
static bool take_value(const cli_option *o, const char *text, void *options)
{
    void *member = (char *)options + o->at;
    char name[32];
    int64_t threads;
    int index;
    switch (o->kind) {
    case CLI_FLAG:
        return *(bool *)member = true;
    case CLI_ONE:
        *(int *)member = 1;
        return true;
    case CLI_TEXT:
        *(const char **)member = text;
        return true;
    case CLI_INT:
        return cli_parse_int(name_of(o, name), text, o->min, o->max, member);
    case CLI_THREADS:
        if (!cli_parse_int(name_of(o, name), text, 1, 65536, &threads)) return false;
        *(int *)member = (int)threads;
        return true;
    case CLI_REAL:
        return cli_parse_real(name_of(o, name), text, member);
    case CLI_TYPE:
        if (element_type_of(text, member)) return true;
        return cli_misuse_false(
            "%s: \"%s\" is none of f32, f64, f16, bf16, e4m3, e5m2, i8, i32, c64 and c128",
            name_of(o, name), text);
    case CLI_CHOICE:
        index = cli_parse_name(name_of(o, name), text, o->names);
        if (index >= 0) *(int *)member = (int)o->min + index;
        return index >= 0;
    default:
        return o->take(text, options);
    }
}

int cli_parse(int argc, char **argv, const cli_syntax *syntax, void *options)
{
    const getopt_table t = table_of(syntax->table);
    bool given[OPTIONS_MAX] = {false};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, t.letters, t.rows, NULL)) != -1;) {
        if (option == '?' || option == ':')
            return report_refused(argc, argv, syntax->table, option == ':');
        const int row = row_of(syntax->table, option);
        const cli_option *o = &syntax->table[row];
        char name[32];
        given[row] = true;
        if (o->kind == CLI_HELP) fputs(syntax->help, stdout);
        if (o->kind == CLI_VERSION) cli_print_version();
        if (o->kind == CLI_HELP || o->kind == CLI_VERSION) return EXIT_DONE;
        /* Refuses empty values, which often come from shell variables that are not set. */
        if (optarg != NULL && optarg[0] == '\0')
            return cli_misuse("%s: the value is empty", name_of(o, name));
        if (!take_value(o, optarg != NULL ? optarg : "", options)) return EXIT_MISUSE;
    }
    if (!syntax->has_operands && optind < argc)
        return cli_misuse("\"%s\" is not an option", argv[optind]);
    int code = PARSED;
    for (const cli_mode *m = syntax->modes; m != NULL && m->option != NULL && code == PARSED; m++)
        code = check_mode(m, syntax->table, given);
    return code;
}
