/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands of the program share: exit codes, one-line errors, devices, problems.
 */
#ifndef CLI_H
#define CLI_H

#include "tegula/tegula.h"

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

/* Returns a status other than TGL_OK to the caller. */
#define CLI_TRY(call)                                                                              \
    do {                                                                                           \
        const tgl_status tried = (call);                                                           \
        if (tried != TGL_OK) return tried;                                                         \
    } while (0)

/* ---- Errors: one line on stderr that says what to do ----------------------------------------- */

/* The command named in errors from now on; NULL: none. */
void cli_set_command(const char *name);

/* "tegula COMMAND: ..."; returns EXIT_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, pointing to --help; returns EXIT_MISUSE. */
int cli_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, where the result is false. */
#define cli_misuse_false(...) (cli_misuse(__VA_ARGS__), false)
#define cli_fail_false(...)   (cli_fail(__VA_ARGS__), false)

/* The message of a failed call of this thread, as cli_misuse(). */
int cli_misuse_call(void);

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

/* Makes a plan with a kernel string; NULL: the planner's choice. */
tgl_status cli_plan(tgl_device *dev, const tgl_problem *p, const char *kernel, tgl_plan **plan);

/* Makes such a plan, runs it once and waits for its end. */
tgl_status cli_multiply(tgl_device *dev, const tgl_problem *p, const char *kernel, double alpha,
                        const void *A, const void *B, double beta, void *C);

/* A copy of tgl_plan_explain()'s text; the caller frees it. NULL: no memory. */
char *cli_explain(const tgl_plan *plan);

#endif
