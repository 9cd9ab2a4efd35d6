/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints errors in one line, the version, and lists of kernels.
 */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *command_name;

void cli_set_command(const char *name)
{
    command_name = name;
}

/* Replaces control characters except line breaks and tabs by '?'. In a file name or a log they
 * could be commands to the terminal. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if ((c < ' ' && c != '\n' && c != '\t') || c == 127) *text = '?';
    }
}

/* Prints the error, followed by `end`, as one line. A single call writes the line, so that lines of
 * concurrent processes, such as MPI ranks, do not mix. */
static void print_error(const char *end, const char *format, va_list args)
{
    const char *space = command_name != NULL ? " " : "", *name = command_name;
    char *text, *line;
    fflush(stdout);
    if (name == NULL) name = "";
    if (vasprintf(&text, format, args) < 0) text = NULL;
    if (text != NULL) make_printable(text);
    if (text == NULL || asprintf(&line, "tegula%s%s: %s%s\n", space, name, text, end) < 0)
        line = NULL;
    fputs(line != NULL ? line : "tegula: no memory for the error's text\n", stderr);
    free(line);
    free(text);
}

int cli_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error("", format, args);
    va_end(args);
    return EXIT_FAILED;
}

int cli_misuse(const char *format, ...)
{
    char end[64] = "; see `tegula --help`";
    va_list args;
    if (command_name != NULL) snprintf(end, sizeof end, "; see `tegula %s --help`", command_name);
    va_start(args, format);
    print_error(end, format, args);
    va_end(args);
    return EXIT_MISUSE;
}

int cli_misuse_call(void)
{
    char message[512];
    tgl_last_error(message, sizeof message);
    return cli_misuse("%s", message);
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
    tgl_device *sim = NULL; /* opened if dev is NULL; has the kernels of CUDA devices */
    /* All statuses up to TGL_TOO_LARGE mean that an argument is invalid. */
    const bool is_misuse = status <= TGL_TOO_LARGE || status == TGL_BAD_EPILOGUE;
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
