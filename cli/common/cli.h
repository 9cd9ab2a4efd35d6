/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions for all commands of the program: exit codes, one-line errors, devices, problems.
 */
#ifndef CLI_H
#define CLI_H

#include "tegula/tegula.h"

#include <stdbool.h>
#include <stdint.h>

/* Exit codes. */
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1, /* a check or an operation failed */
    EXIT_MISUSE = 2, /* the command line is invalid */
};

/* Result of a function that parses: the command goes on. Other results are exit codes. */
enum { PARSED = -1 };

/* argv[0] is the command's name. Each returns an exit code. */
int command_bench(int argc, char **argv);
int command_check(int argc, char **argv);
int command_dist(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_info(int argc, char **argv);
int command_ladder(int argc, char **argv);
int command_learn(int argc, char **argv);
int command_mm(int argc, char **argv);
int command_tune(int argc, char **argv);
int command_warm(int argc, char **argv);

/* In a function that returns a tgl_status: returns the status of a failed call. */
#define CLI_TRY(call)                                                                              \
    do {                                                                                           \
        const tgl_status tried = (call);                                                           \
        if (tried != TGL_OK) return tried;                                                         \
    } while (0)

/* ---- Errors: one line on stderr that says what to do ----------------------------------------- */

/* Sets the name of the command in later errors; NULL: none. */
void cli_set_command(const char *name);

/* Prints "tegula COMMAND: ..." on stderr. Returns EXIT_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like cli_fail(), with a reference to --help. Returns EXIT_MISUSE. */
int cli_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* cli_misuse() and cli_fail() for functions that return false after an error. */
#define cli_misuse_false(...) (cli_misuse(__VA_ARGS__), false)
#define cli_fail_false(...)   (cli_fail(__VA_ARGS__), false)

/* Prints the message of this thread's last failed call as cli_misuse() does. */
int cli_misuse_call(void);

/* Prints the error message of this thread's last failed call, or else the text of the status.
 * Returns EXIT_FAILED. */
int cli_fail_status(tgl_status status);

/* Like cli_fail_status(), with the subject of the error: "tegula COMMAND: WHAT: ...". */
int cli_fail_at(const char *what, tgl_status status);

/* Prints why a plan could not be made, as cli_fail_at() does. Returns EXIT_MISUSE for arguments
 * that no device accepts and for a kernel that the device does not have; the message then lists its
 * kernels. dev NULL: the CUDA kernels. */
int cli_fail_plan(const tgl_device *dev, const char *what, tgl_status status);

/* Prints that the device has no kernel of that name, and the names of its kernels. Returns
 * EXIT_MISUSE. */
int cli_unknown_kernel(const tgl_device *dev, const char *asked);

/* Prints "tegula 0.2.0" on stdout. */
void cli_print_version(void);

/* Flushes stdout. Returns EXIT_FAILED after a write error, which it reports; else `code`. */
int cli_finish(int code);

/* ---- Devices --------------------------------------------------------------------------------- */

/* Opens a device. NULL: reported, and *code := EXIT_MISUSE for a name that no device has,
 * EXIT_FAILED for a device that this machine does not have. threads: 0: the default of the
 * device. */
tgl_device *cli_open_device(const char *name, int threads, int *code);

/* Warns if the cpu device uses more threads than there are processors. */
void cli_warn_of_threads(const tgl_device *dev);

/* True if the device works on any host memory, so that nothing has to be copied to it. */
bool cli_device_is_host(const tgl_device *dev);

/* The text of a property of the device; "" if it does not have the property. */
const char *cli_device_property(const tgl_device *dev, const char *wanted);

/* The value of a numeric property; 0 if the device does not have it. */
double cli_device_number(const tgl_device *dev, tgl_number number);

/* ---- Problems and plans ---------------------------------------------------------------------- */

/* A problem as tgl_problem_init() makes it. */
tgl_problem cli_problem(tgl_type type, int64_t m, int64_t n, int64_t k);

/* Makes a plan with a kernel string; NULL: the planner's choice. */
tgl_status cli_plan(tgl_device *dev, const tgl_problem *p, const char *kernel, tgl_plan **plan);

/* Makes a plan as cli_plan() does, runs it once and waits for its end. */
tgl_status cli_multiply(tgl_device *dev, const tgl_problem *p, const char *kernel, double alpha,
                        const void *A, const void *B, double beta, void *C);

/* A copy of tgl_plan_explain()'s text; the caller frees it. NULL: no memory. */
char *cli_explain(const tgl_plan *plan);

#endif
