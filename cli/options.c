/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors in one line, options by getopt_long with strict values, and opening devices.
 */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Errors ---------------------------------------------------------------------------------- */

static const char *command_name;

void cli_set_command(const char *name)
{
    command_name = name;
}

static void print_error(const char *format, va_list args)
{
    fflush(stdout);
    if (command_name != NULL)
        fprintf(stderr, "tegula %s: ", command_name);
    else
        fputs("tegula: ", stderr);
    vfprintf(stderr, format, args);
}

int cli_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error(format, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_FAILED;
}

int cli_misuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error(format, args);
    va_end(args);
    if (command_name != NULL)
        fprintf(stderr, "; see `tegula %s --help`\n", command_name);
    else
        fputs("; see `tegula --help`\n", stderr);
    return EXIT_MISUSE;
}

int cli_fail_status(tgl_status status)
{
    return cli_fail_at(NULL, status);
}

int cli_fail_at(const char *what, tgl_status status)
{
    char detail[1024];
    const char *colon = what != NULL ? ": " : "";
    if (what == NULL) what = "";
    if (tgl_last_error(detail, sizeof detail) == 0)
        return cli_fail("%s%s%s", what, colon, tgl_status_text(status));
    return cli_fail("%s%s%s (%s)", what, colon, detail, tgl_status_name(status));
}

int cli_finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    cli_fail("cannot write to standard output: %s", strerror(errno));
    return code == EXIT_DONE ? EXIT_FAILED : code;
}

/* ---- Options --------------------------------------------------------------------------------- */

/* The word of the command line that has the byte `optopt`: getopt() goes on to the next word with a
 * word's last byte. */
static const char *word_of_letter(int argc, char **argv)
{
    const char *now = optind < argc ? argv[optind] : "";
    return now[0] == '-' && strchr(now, optopt) != NULL ? now : argv[optind - 1];
}

/* The option that getopt has just refused, as the user wrote it. */
static void report_refused(int argc, char **argv, const struct option *table, bool no_value)
{
    if (optopt < 0 || (optopt > 127 && optopt < OPT_HELP)) { /* one byte of a letter in UTF-8 */
        cli_misuse("there is no option %s", word_of_letter(argc, argv));
        return;
    }
    if (optopt > 0 && optopt < OPT_HELP) {
        if (no_value)
            cli_misuse("-%c needs a value", optopt);
        else
            cli_misuse("there is no option -%c", optopt);
        return;
    }
    const char *written = optind > 0 && optind <= argc ? argv[optind - 1] : "?";
    if (no_value) {
        for (; table->name != NULL; table++)
            if (table->val == optopt) written = table->name;
        cli_misuse("--%s needs a value", written);
    } else if (optopt != 0) {
        cli_misuse("%s: this option takes no value", written);
    } else {
        cli_misuse("there is no option %s, or it is cut too short", written);
    }
}

int cli_next_option(int argc, char **argv, const char *letters, const struct option *table)
{
    char short_options[32];
    snprintf(short_options, sizeof short_options, ":%s", letters);
    opterr = 0;
    int option = getopt_long(argc, argv, short_options, table, NULL);
    if (option != '?' && option != ':') return option;
    report_refused(argc, argv, table, option == ':');
    return '?';
}

/* "--seed", "-m" */
static void name_option(int option, const struct option *table, char *text, size_t size)
{
    while (table->name != NULL && table->val != option)
        table++;
    if (table->name != NULL)
        snprintf(text, size, "--%s", table->name);
    else
        snprintf(text, size, "-%c", option);
}

static bool has_use(const cli_mode *mode, int option)
{
    for (const int *used = mode->uses; *used != 0; used++)
        if (*used == option) return true;
    return option == mode->option;
}

bool cli_check_modes(int argc, char **argv, const char *letters, const struct option *table,
                     const cli_mode *modes)
{
    bool given[OPTIONS_END] = {false};
    optind = 0; /* from the start */
    for (int option; (option = getopt_long(argc, argv, letters, table, NULL)) != -1;)
        given[option] = true;
    for (; modes->option != 0; modes++)
        for (int option = 0; given[modes->option] && option < OPTIONS_END; option++) {
            if (!given[option] || has_use(modes, option)) continue;
            char mode[32], useless[32];
            name_option(modes->option, table, mode, sizeof mode);
            name_option(option, table, useless, sizeof useless);
            cli_misuse("%s has no use for %s", mode, useless);
            return false;
        }
    return true;
}

/* True if text could be a number at all: strtoll() and strtod() would skip blanks. */
static bool starts_like_a_number(const char *text)
{
    return *text != '\0' && strchr(" \t\n\v\f\r", *text) == NULL;
}

bool cli_parse_int(const char *option, const char *text, int64_t least, int64_t most,
                   int64_t *value)
{
    char *end;
    errno = 0;
    const long long parsed = strtoll(text, &end, 10);
    if (!starts_like_a_number(text) || end == text || *end != '\0') {
        cli_misuse("%s: \"%s\" is not a whole number", option, text);
        return false;
    }
    if (errno == ERANGE || parsed < least || parsed > most) {
        if (most == INT64_MAX)
            cli_misuse("%s: %s is out of range: at least %lld, and it must fit in 63 bits", option,
                       text, (long long)least);
        else
            cli_misuse("%s: %s is out of range: %lld to %lld", option, text, (long long)least,
                       (long long)most);
        return false;
    }
    *value = parsed;
    return true;
}

bool cli_parse_real(const char *option, const char *text, double *value)
{
    char *end;
    errno = 0;
    const double parsed = strtod(text, &end);
    if (!starts_like_a_number(text) || end == text || *end != '\0') {
        cli_misuse("%s: \"%s\" is not a number", option, text);
        return false;
    }
    if (errno == ERANGE && fabs(parsed) > 1) {
        cli_misuse("%s: %s is too large for a double", option, text);
        return false;
    }
    *value = parsed;
    return true;
}

bool cli_parse_type(const char *text, tgl_type *type)
{
    for (tgl_type known = TGL_F32; known <= TGL_F64; known++)
        if (strcmp(text, cli_type_name(known)) == 0) {
            *type = known;
            return true;
        }
    cli_misuse("--type: \"%s\" is not a type; the types are f32 and f64", text);
    return false;
}

bool cli_parse_compute(const char *text, tgl_compute *compute)
{
    for (tgl_compute known = TGL_COMPUTE_DEFAULT; known <= TGL_COMPUTE_TF32; known++)
        if (strcmp(text, cli_compute_name(known)) == 0) {
            *compute = known;
            return true;
        }
    cli_misuse("--compute: \"%s\" is none of default, ieee, accurate and tf32", text);
    return false;
}

bool cli_parse_threads(const char *text, int *threads)
{
    int64_t value;
    if (!cli_parse_int("--threads", text, 1, 65536, &value)) return false;
    *threads = (int)value;
    return true;
}

const char *cli_type_name(tgl_type type)
{
    return type == TGL_F32 ? "f32" : type == TGL_F64 ? "f64" : "?";
}

const char *cli_compute_name(tgl_compute compute)
{
    static const char *const names[] = {"default", "ieee", "accurate", "tf32", "fast"};
    return (unsigned)compute < sizeof names / sizeof names[0] ? names[compute] : "?";
}

/* ---- Devices --------------------------------------------------------------------------------- */

tgl_device *cli_open_device(const char *name, int threads)
{
    const tgl_device_options options = {.size = sizeof options, .threads = threads};
    tgl_device *dev;
    tgl_status status = tgl_device_open(name, &options, &dev);
    if (status == TGL_OK) return dev;
    char detail[1024] = "";
    tgl_last_error(detail, sizeof detail);
    cli_fail("cannot open the device \"%s\": %s (%s)", name,
             detail[0] != '\0' ? detail : tgl_status_text(status), tgl_status_name(status));
    return NULL;
}

bool cli_device_is_host(const tgl_device *dev)
{
    const char *name = tgl_device_name(dev);
    return strcmp(name, "cpu") == 0 || strcmp(name, "sim") == 0;
}

const char *cli_device_property(const tgl_device *dev, const char *wanted)
{
    const char *key, *value;
    for (int i = 0; tgl_device_property(dev, i, &key, &value) == TGL_OK; i++)
        if (strcmp(key, wanted) == 0) return value;
    return NULL;
}

double cli_device_number(const tgl_device *dev, tgl_number number)
{
    double value = 0;
    return tgl_device_number(dev, number, &value) == TGL_OK ? value : 0;
}

/* ---- Problems and plans ---------------------------------------------------------------------- */

tgl_problem cli_problem(tgl_type type, int64_t m, int64_t n, int64_t k)
{
    tgl_problem problem;
    tgl_problem_init(&problem, sizeof problem, type, m, n, k);
    return problem;
}

char *cli_explain(const tgl_plan *plan)
{
    const size_t size = tgl_plan_explain(plan, NULL, 0) + 1;
    char *text = malloc(size);
    if (text != NULL) tgl_plan_explain(plan, text, size);
    return text;
}
