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

/* Flushes stdout: EXIT_FAILED with an error if what was printed did not arrive, else `code`. */
int cli_finish(int code);

/* ---- Options --------------------------------------------------------------------------------- */

/* Long options have values from here on; short ones are their own letter. */
enum {
    OPT_HELP = 256,
    OPT_DEVICE,
    OPT_THREADS,
    OPT_TYPE,
    OPT_COMPUTE,
    OPT_TRANS_A,
    OPT_TRANS_B,
    OPT_CSV,
    OPT_COMMAND, /* a command's own options count from here */
    OPTIONS_END = OPT_COMMAND + 64,
};

/* Rows for every command's table of long options. */
#define CLI_OPTION_HELP                                                                            \
    {                                                                                              \
        "help", no_argument, NULL, OPT_HELP                                                        \
    }
#define CLI_OPTION_DEVICE                                                                          \
    {                                                                                              \
        "device", required_argument, NULL, OPT_DEVICE                                              \
    }
#define CLI_OPTION_THREADS                                                                         \
    {                                                                                              \
        "threads", required_argument, NULL, OPT_THREADS                                            \
    }
#define CLI_OPTION_TYPE                                                                            \
    {                                                                                              \
        "type", required_argument, NULL, OPT_TYPE                                                  \
    }
#define CLI_OPTION_COMPUTE                                                                         \
    {                                                                                              \
        "compute", required_argument, NULL, OPT_COMPUTE                                            \
    }
#define CLI_OPTION_TRANS_A                                                                         \
    {                                                                                              \
        "trans-a", no_argument, NULL, OPT_TRANS_A                                                  \
    }
#define CLI_OPTION_TRANS_B                                                                         \
    {                                                                                              \
        "trans-b", no_argument, NULL, OPT_TRANS_B                                                  \
    }
#define CLI_OPTION_CSV                                                                             \
    {                                                                                              \
        "csv", required_argument, NULL, OPT_CSV                                                    \
    }

/* getopt_long() with errors of our own. -1: no more; '?': reported, leave with EXIT_MISUSE.
 * `letters`: getopt's short options, without the leading colon. */
int cli_next_option(int argc, char **argv, const char *letters, const struct option *table);

/* An option that makes a command do something else, and those of the others that this takes notice
 * of, as values of its table of options; 0 behind the last. */
typedef struct cli_mode {
    int option;
    int uses[16];
} cli_mode;

/* For options that cli_next_option() has read to the end. False: one was given beside that of a
 * mode which does not use it; reported. modes: up to one whose option is 0. */
bool cli_check_modes(int argc, char **argv, const char *letters, const struct option *table,
                     const cli_mode *modes);

/* Strict numbers: no blanks, no trailing junk, no overflow, within [least, most]. false: reported.
 * `option` is the name in the error. */
bool cli_parse_int(const char *option, const char *text, int64_t least, int64_t most,
                   int64_t *value);
bool cli_parse_real(const char *option, const char *text, double *value); /* nan and inf too */
bool cli_parse_type(const char *text, tgl_type *type);                    /* "f32", "f64" */
bool cli_parse_threads(const char *text, int *threads);
bool cli_parse_compute(const char *text, tgl_compute *compute); /* "default", "ieee", ... */

const char *cli_type_name(tgl_type type);
const char *cli_compute_name(tgl_compute compute);

/* ---- Devices --------------------------------------------------------------------------------- */

/* Opens a device or reports why not (NULL). threads 0: the device's own default. */
tgl_device *cli_open_device(const char *name, int threads);

/* True if the device works on any host memory, so that nothing has to be copied to it. */
bool cli_device_is_host(const tgl_device *dev);

/* The value of one of the device's properties, text for people, or NULL. */
const char *cli_device_property(const tgl_device *dev, const char *wanted);

/* A property that is a number; 0 if the device has none, or does not know it. */
double cli_device_number(const tgl_device *dev, tgl_number number);

/* ---- Problems and plans ---------------------------------------------------------------------- */

/* What tgl_problem_init() makes. */
tgl_problem cli_problem(tgl_type type, int64_t m, int64_t n, int64_t k);

/* A copy of tgl_plan_explain()'s text; the caller frees it. NULL: no memory. */
char *cli_explain(const tgl_plan *plan);

#endif
