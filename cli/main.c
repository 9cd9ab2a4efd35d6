/* SPDX-License-Identifier: Apache-2.0
 *
 * The program `tegula`: finds the command and runs it.
 */
#include "cli.h"
#include "csv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command;

static const command commands[] = {
    {"mm", command_mm, "multiply NumPy arrays in files"},
    {"bench", command_bench, "time Tegula beside other libraries"},
    {"check", command_check, "compare random products with a reference"},
    {"dist", command_dist, "multiply over several processes, with MPI"},
    {"explain", command_explain, "say which kernel would run, and why"},
    {"ladder", command_ladder, "run the kernels from the naive one up"},
    {"learn", command_learn, "exercises in writing kernels, checked without a GPU"},
    {"info", command_info, "list the devices and what they can do"},
    {"tune", command_tune, "measure what is fastest on this GPU"},
    {"warm", command_warm, "compile the CUDA kernels ahead"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(void)
{
    puts("Usage: tegula COMMAND [OPTIONS]\n"
         "\n"
         "Multiplies matrices, C := alpha*op(A)*op(B) + beta*C, on CPUs and NVIDIA GPUs.\n"
         "\n"
         "Commands:");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    puts("\n"
         "Options:\n"
         "  -h, --help     this text; `tegula COMMAND --help` describes each command\n"
         "  -V, --version  the version of the library\n"
         "\n"
         "Example:\n"
         "  tegula mm A.npy B.npy -o C.npy\n"
         "\n"
         "Exit codes: 0 success; 1 a check or the work failed; 2 the command line is wrong.");
}

/* Opens /dev/null for each standard stream that the caller of the program has closed. Otherwise the
 * next file to be opened would get the number of the stream, and would receive what is printed.
 * Reading from or writing to these streams still fails, because /dev/null is opened for the
 * opposite direction. False: failed. */
static bool fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    if (!fill_standard_streams())
        return cli_fail("cannot open /dev/null in place of a closed stream: %s", strerror(errno));
    signal(SIGXFSZ, SIG_IGN); /* so that write() returns an error, and no signal ends the program,
                                 when a file reaches its size limit */
    csv_set_command(argv + 1);
    if (argc < 2) return cli_misuse("no command given");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help();
        return cli_finish(EXIT_DONE);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        cli_print_version();
        return cli_finish(EXIT_DONE);
    }
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) {
            cli_set_command(name);
            return cli_finish(commands[i].run(argc - 1, argv + 1));
        }
    return cli_misuse("there is no command \"%s\"", name);
}
