/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions for all commands of the program: exit codes, one-line errors, devices, problems. A
 * problem (tgl_problem) is the shape, the types and the layout of a product; a plan (tgl_plan) is
 * the kernel and its options that a device uses for a problem. The device "sim" simulates CUDA
 * kernels on the CPU.
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

/* cli_parse() and other functions that examine a command line return this value on success; else
 * they return the exit code with which the command must end. PARSED is not an exit code. */
enum { PARSED = -1 };

/* The commands. argv[0] is the name of the command. Each returns an exit code. */
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

/* For functions that return a tgl_status: makes a call and, if it fails, returns its status. */
#define CLI_TRY(call)                                                                              \
    do {                                                                                           \
        const tgl_status tried = (call);                                                           \
        if (tried != TGL_OK) return tried;                                                         \
    } while (0)

/* ---- Errors: one line on stderr that says what to do ----------------------------------------- */

/* Sets the name of the command that error messages begin with; it is not copied. NULL: none. */
void cli_set_command(const char *name);

/* Prints the error "tegula COMMAND: ..." on stderr. Returns EXIT_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like cli_fail(), but adds a reference to --help and returns EXIT_MISUSE. */
int cli_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* cli_misuse() and cli_fail() for functions that return false after printing an error. */
#define cli_misuse_false(...) (cli_misuse(__VA_ARGS__), false)
#define cli_fail_false(...)   (cli_fail(__VA_ARGS__), false)

/* Prints the library's message about this thread's last failed call, as cli_misuse() does. Returns
 * EXIT_MISUSE. */
int cli_misuse_call(void);

/* Prints the library's message about this thread's last failed call or, if there is none, the text
 * of the status. Returns EXIT_FAILED. */
int cli_fail_status(tgl_status status);

/* Like cli_fail_status(), but names the subject of the error: "tegula COMMAND: WHAT: ...". what may
 * be NULL. */
int cli_fail_at(const char *what, tgl_status status);

/* Prints why a plan could not be made, as cli_fail_at() does. If the requested kernel does not
 * exist, the message lists the kernels of the device or, if dev is NULL, those of CUDA devices.
 * Returns EXIT_MISUSE if the kernel does not exist or the arguments are invalid for every device,
 * else EXIT_FAILED. */
int cli_fail_plan(const tgl_device *dev, const char *what, tgl_status status);

/* Prints that the device has no kernel of the name `asked`, and lists its kernels. Returns
 * EXIT_MISUSE. */
int cli_unknown_kernel(const tgl_device *dev, const char *asked);

/* Prints the program's version, as "tegula 0.2.0", on stdout. */
void cli_print_version(void);

/* Flushes stdout, and prints an error if stdout could not be written. Returns `code`, but after
 * this error EXIT_FAILED instead of EXIT_DONE. */
int cli_finish(int code);

/* ---- Devices --------------------------------------------------------------------------------- */

/* Opens a device. threads: number of host threads; 0: the device's default. Returns NULL after a
 * failure, which has been printed; *code is then EXIT_MISUSE if `name` does not have the form of a
 * device name, and EXIT_FAILED if the device could not be opened. */
tgl_device *cli_open_device(const char *name, int threads, int *code);

/* Prints a warning if the cpu device uses more threads than the machine has processors. */
void cli_warn_of_threads(const tgl_device *dev);

/* Whether the device accesses host memory directly (cpu and sim), so that nothing has to be
 * copied. */
bool cli_device_is_host(const tgl_device *dev);

/* The text of a property of the device; "" if the device does not have the property. */
const char *cli_device_property(const tgl_device *dev, const char *wanted);

/* The value of a numeric property; 0 if the device does not have the property. */
double cli_device_number(const tgl_device *dev, tgl_number number);

/* ---- Problems and plans ---------------------------------------------------------------------- */

/* A problem with the values that tgl_problem_init() sets. */
tgl_problem cli_problem(tgl_type type, int64_t m, int64_t n, int64_t k);

/* Makes a plan. kernel: a kernel string, which is the name of a kernel and optionally its options,
 * such as "simt_128x256x8:splits=4"; NULL: the library's planner chooses the kernel. */
tgl_status cli_plan(tgl_device *dev, const tgl_problem *p, const char *kernel, tgl_plan **plan);

/* Makes a plan as cli_plan() does, runs it once, and waits until the result is complete. */
tgl_status cli_multiply(tgl_device *dev, const tgl_problem *p, const char *kernel, double alpha,
                        const void *A, const void *B, double beta, void *C);

/* Returns a copy of the text of tgl_plan_explain(), which the caller frees, or NULL if memory runs
 * out. */
char *cli_explain(const tgl_plan *plan);

#endif
