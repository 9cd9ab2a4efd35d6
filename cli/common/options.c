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

/* Control characters of a file's name or of a log would be commands to a terminal. */
static void print_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        fputc((c < ' ' && c != '\n' && c != '\t') || c == 127 ? '?' : c, stderr);
    }
}

static void print_error(const char *format, va_list args)
{
    char *text;
    fflush(stdout);
    if (command_name != NULL)
        fprintf(stderr, "tegula %s: ", command_name);
    else
        fputs("tegula: ", stderr);
    if (vasprintf(&text, format, args) < 0) {
        fputs("no memory for the error's text", stderr);
        return;
    }
    print_printable(text);
    free(text);
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

enum { KERNEL_NAMES_SIZE = 8192 };

static void list_kernels(const tgl_device *dev, char text[KERNEL_NAMES_SIZE])
{
    const char *name;
    text[0] = '\0';
    for (int i = 0; (name = tgl_kernel_name(dev, i)) != NULL; i++)
        snprintf(text + strlen(text), KERNEL_NAMES_SIZE - strlen(text), "%s%s", i > 0 ? ", " : "",
                 name);
}

int cli_unknown_kernel(const tgl_device *dev, const char *asked)
{
    char names[KERNEL_NAMES_SIZE];
    list_kernels(dev, names);
    return cli_misuse("the device %s has no kernel \"%s\"; its kernels are %s",
                      tgl_device_name(dev), asked, names);
}

int cli_fail_plan(const tgl_device *dev, const char *what, tgl_status status)
{
    char detail[512] = "", names[KERNEL_NAMES_SIZE] = "";
    tgl_device *sim = NULL; /* it has the kernels of the cuda device */
    const bool is_misuse = status <= TGL_TOO_LARGE || status == TGL_BAD_EPILOGUE; /* TGL_BAD_... */
    if (status != TGL_UNKNOWN_KERNEL)
        return is_misuse ? (cli_fail_at(what, status), EXIT_MISUSE) : cli_fail_at(what, status);
    tgl_last_error(detail, sizeof detail);
    if (dev == NULL && tgl_device_open("sim", NULL, &sim) == TGL_OK) dev = sim;
    if (dev != NULL) list_kernels(dev, names);
    tgl_device_close(sim);
    return cli_misuse("%s%s%s", detail, names[0] != '\0' ? "; the kernels are " : "", names);
}

void cli_print_version(void)
{
    printf("tegula %s\n", tgl_version());
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

/* The next option; -1: no more; '?': an error, reported. */
static int next_option(int argc, char **argv, const cli_syntax *syntax)
{
    char letters[32];
    snprintf(letters, sizeof letters, ":%s", syntax->letters);
    opterr = 0;
    const int option = getopt_long(argc, argv, letters, syntax->table, NULL);
    if (option != '?' && option != ':') return option;
    report_refused(argc, argv, syntax->table, option == ':');
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

/* No option has a use for an empty value, which is often a variable that is not set. */
static int report_empty(int option, const struct option *table)
{
    char name[32];
    name_option(option, table, name, sizeof name);
    return cli_misuse("%s: the value is empty", name);
}

static bool has_use(const cli_mode *mode, int option)
{
    for (const int *used = mode->uses; *used != 0; used++)
        if (*used == option) return true;
    return option == mode->option;
}

/* False: an option was given beside that of a mode which does not use it; reported. The command
 * line was read to its end before. */
static bool check_modes(int argc, char **argv, const cli_syntax *syntax)
{
    bool given[OPTIONS_END] = {false};
    const int operands = optind;
    optind = 0; /* from the start */
    for (int option;
         (option = getopt_long(argc, argv, syntax->letters, syntax->table, NULL)) != -1;)
        given[option] = true;
    optind = operands;
    for (const cli_mode *mode = syntax->modes; mode->option != 0; mode++)
        for (int option = 0; given[mode->option] && option < OPTIONS_END; option++) {
            if (!given[option] || has_use(mode, option)) continue;
            char name[32], useless[32];
            name_option(mode->option, syntax->table, name, sizeof name);
            name_option(option, syntax->table, useless, sizeof useless);
            cli_misuse("%s does not use %s", name, useless);
            return false;
        }
    return true;
}

int cli_parse(int argc, char **argv, const cli_syntax *syntax, bool (*take)(int option, void *into),
              void *into)
{
    for (int option; (option = next_option(argc, argv, syntax)) != -1;) {
        if (option == OPT_HELP || option == 'h') {
            fputs(syntax->help, stdout);
            return EXIT_DONE;
        }
        if (option == OPT_VERSION || option == 'V') {
            cli_print_version();
            return EXIT_DONE;
        }
        if (option == '?') return EXIT_MISUSE;
        if (optarg != NULL && optarg[0] == '\0') return report_empty(option, syntax->table);
        if (!take(option, into)) return EXIT_MISUSE;
    }
    if (!syntax->has_operands && optind < argc)
        return cli_misuse("\"%s\" is not an option", argv[optind]);
    return syntax->modes == NULL || check_modes(argc, argv, syntax) ? PARSED : EXIT_MISUSE;
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

bool cli_parse_threads(const char *text, int *threads)
{
    int64_t value;
    if (!cli_parse_int("--threads", text, 1, 65536, &value)) return false;
    *threads = (int)value;
    return true;
}

const char *cli_compute_name(tgl_compute compute)
{
    static const char *const names[] = {"default", "ieee", "accurate", "tf32", "fast"};
    return (unsigned)compute < sizeof names / sizeof names[0] ? names[compute] : "?";
}

/* ---- Devices --------------------------------------------------------------------------------- */

/* Whether a device could have that name: auto, cpu, sim, cuda, cuda:N. */
static bool is_device_name(const char *name)
{
    const char *const fixed[] = {"auto", "cpu", "sim", "cuda"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, fixed[i]) == 0) return true;
    return strncmp(name, "cuda:", 5) == 0 && name[5] != '\0' &&
           name[5 + strspn(name + 5, "0123456789")] == '\0';
}

tgl_device *cli_open_device(const char *name, int threads, int *code)
{
    const tgl_device_options options = {.size = sizeof options, .threads = threads};
    tgl_device *dev;
    if (!is_device_name(name)) {
        *code = cli_misuse("--device: there is no device \"%s\"; the devices are auto, cpu, cuda, "
                           "cuda:0, cuda:1 and so on, and sim",
                           name);
        return NULL;
    }
    tgl_status status = tgl_device_open(name, &options, &dev);
    if (status == TGL_OK) {
        if (threads > 0) cli_warn_of_threads(dev);
        return dev;
    }
    char detail[1024] = "";
    tgl_last_error(detail, sizeof detail);
    *code = cli_fail("cannot open the device \"%s\": %s (%s)", name,
                     detail[0] != '\0' ? detail : tgl_status_text(status), tgl_status_name(status));
    return NULL;
}

void cli_warn_of_threads(const tgl_device *dev)
{
    const double threads = cli_device_number(dev, TGL_NUMBER_THREADS);
    const double processors = cli_device_number(dev, TGL_NUMBER_PROCESSORS);
    if (strcmp(tgl_device_name(dev), "cpu") == 0 && threads > processors)
        fprintf(stderr, "note: %.0f threads on %.0f processors, which they must share\n", threads,
                processors);
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
    return "";
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
