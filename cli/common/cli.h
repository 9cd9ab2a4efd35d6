/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands of the program share: exit codes, one-line errors, strict options, devices.
 */
#ifndef CLI_H
#define CLI_H

#include "tegula/tegula.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* What the program tells the shell. */
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1, /* a check failed, or the work did */
    EXIT_MISUSE = 2, /* the command line makes no sense */
};

/* What parsing a command line says: go on, or leave with an exit code. */
enum { PARSED = -1 };

/* argv[0] is the command's name. Each returns an exit code. */
int command_bench(int argc, char **argv);
int command_check(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_info(int argc, char **argv);
int command_ladder(int argc, char **argv);
int command_mm(int argc, char **argv);
int command_tune(int argc, char **argv);
int command_warm(int argc, char **argv);

/* ---- Errors: one line on stderr that says what to do ----------------------------------------- */

/* The command named in errors from now on; NULL: none. */
void cli_set_command(const char *name);

/* "tegula COMMAND: ..."; returns EXIT_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, pointing to --help; returns EXIT_MISUSE. */
int cli_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A failed call of this thread: its sentence of detail, or the text of the status. Returns
 * EXIT_FAILED. */
int cli_fail_status(tgl_status status);

/* The same, about one of several things: "tegula COMMAND: WHAT: ...". */
int cli_fail_at(const char *what, tgl_status status);

/* A failed attempt to plan: as cli_fail_at(); but arguments that no device accepts are EXIT_MISUSE,
 * and so is a kernel that the device does not have, with the names of those that it has. dev NULL:
 * of the CUDA kernels. */
int cli_fail_plan(const tgl_device *dev, const char *what, tgl_status status);

/* Says that a device has no kernel of that name, and which it has; returns EXIT_MISUSE. */
int cli_unknown_kernel(const tgl_device *dev, const char *asked);

/* "tegula 0.2.0" on stdout. */
void cli_print_version(void);

/* Flushes stdout: EXIT_FAILED with an error if what was printed did not arrive, else `code`. */
int cli_finish(int code);

/* ---- Options --------------------------------------------------------------------------------- */

/* Long options have values from here on; short ones are their own letter. Those of several commands
 * are listed here, so that no two have the same value. */
enum {
    OPT_HELP = 256,
    OPT_VERSION,
    OPT_CSV,
    OPT_SUITE,
    OPT_DEVICE, /* problem_options.h takes these */
    OPT_THREADS,
    OPT_TYPE,
    OPT_TYPE_C,
    OPT_TYPE_D,
    OPT_COMPUTE,
    OPT_TRANS_A,
    OPT_TRANS_B,
    OPT_BATCH,
    OPT_ORDER,
    OPT_LDA,
    OPT_LDB,
    OPT_LDC,
    OPT_BIAS,
    OPT_ACTIVATION,
    OPT_RESIDUAL,
    OPT_EXPRESSION,
    OPT_KERNEL,
    OPT_COMMAND, /* a command's own options count from here */
    OPTIONS_END = OPT_COMMAND + 64,
};

/* Rows for every command's table of long options; the help text's lines for them. */
// clang-format off
#define OPTIONS_COMMON                                                                             \
    {"help", no_argument, NULL, OPT_HELP}, {"version", no_argument, NULL, OPT_VERSION}
#define OPTIONS_CSV {"csv", required_argument, NULL, OPT_CSV}
#define OPTIONS_SUITE {"suite", required_argument, NULL, OPT_SUITE}
// clang-format on

/* An option that makes a command do something else, and the others that this uses, as values of its
 * table of options; 0 behind the last. */
typedef struct cli_mode {
    int option;
    int uses[16];
} cli_mode;

/* The command line of a command. */
typedef struct cli_syntax {
    const char *help;           /* its text */
    const char *letters;        /* getopt's short options, with 'h' and 'V' */
    const struct option *table; /* long options; begins with OPTIONS_COMMON */
    const cli_mode *modes;      /* up to one whose option is 0; NULL: none */
    bool has_operands;          /* words that are no options are allowed; optind tells where */
} cli_syntax;

/* Reads a command line to its end: take(option, into) takes each option, whose value is `optarg`,
 * and is false if it has reported an error. Returns PARSED; or an exit code, after an error or
 * after --help or --version. */
int cli_parse(int argc, char **argv, const cli_syntax *syntax, bool (*take)(int option, void *into),
              void *into);

/* Strict numbers: no blanks, no trailing junk, no overflow, within [least, most]. false: reported.
 * `option` is the name in the error. */
bool cli_parse_int(const char *option, const char *text, int64_t least, int64_t most,
                   int64_t *value);
bool cli_parse_real(const char *option, const char *text, double *value); /* nan and inf too */
bool cli_parse_threads(const char *text, int *threads);

const char *cli_compute_name(tgl_compute compute); /* "default", "ieee", ... */

/* ---- Devices --------------------------------------------------------------------------------- */

/* Opens a device. NULL: reported, and *code is the exit code: EXIT_MISUSE for a name that no device
 * has, EXIT_FAILED for a device that this machine lacks. threads 0: the device's own default. */
tgl_device *cli_open_device(const char *name, int threads, int *code);

/* Warns where the cpu device uses more threads than there are processors. */
void cli_warn_of_threads(const tgl_device *dev);

/* True if the device works on any host memory, so that nothing has to be copied to it. */
bool cli_device_is_host(const tgl_device *dev);

/* The value of one of the device's properties, text for people; "" if it has none. */
const char *cli_device_property(const tgl_device *dev, const char *wanted);

/* A property that is a number; 0 if the device has none, or does not know it. */
double cli_device_number(const tgl_device *dev, tgl_number number);

/* ---- Problems and plans ---------------------------------------------------------------------- */

/* What tgl_problem_init() makes. */
tgl_problem cli_problem(tgl_type type, int64_t m, int64_t n, int64_t k);

/* A copy of tgl_plan_explain()'s text; the caller frees it. NULL: no memory. */
char *cli_explain(const tgl_plan *plan);

#endif
