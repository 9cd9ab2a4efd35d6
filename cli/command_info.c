/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula info`: prints the properties of each device that can be opened, and why cpu, cuda:0 or
 * sim cannot.
 */
#include "problem_options.h"
#include "unknown_settings.h"

#include <stdio.h>
#include <unistd.h>

static const char help[] =
    "Usage: tegula info [OPTIONS]\n"
    "\n"
    "Lists the devices of this machine, their properties and kernels, and why others are missing.\n"
    "\n"
    "  --device NAME  only this device: cpu, cuda:0, sim\n"
    "  --threads N    threads of the cpu (OMP_NUM_THREADS, or all)\n"
    "  --measure      also measure the ceilings: FMA rate and copy bandwidth\n"
    "\n"
    "Example:\n"
    "  tegula info --measure\n";

typedef struct info_options {
    problem_options common; /* only `device` and `threads` are used */
    bool measure;
} info_options;

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTIONS_RUN,
    OPTION_FLAG(info_options, measure, "measure"),
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table};

static void print_kernels(const tgl_device *dev)
{
    enum { WIDTH = 76 };
    const char *name;
    int column = 0;
    for (int i = 0; (name = tgl_kernel_name(dev, i)) != NULL; i++) {
        if (i == 0) column = printf("  %-18s", "kernels");
        if (column > WIDTH) column = printf("\n  %-18s", "") - 1;
        column += printf(" %s", name);
    }
    if (column > 0) putchar('\n');
}

static int print_ceilings(tgl_device *dev)
{
    static const struct {
        tgl_ceiling ceiling;
        const char *name, *unit;
    } rows[] = {{TGL_CEILING_FMA_F32, "measured f32 FMA", "GFLOP/s"},
                {TGL_CEILING_FMA_F64, "measured f64 FMA", "GFLOP/s"},
                {TGL_CEILING_COPY, "measured copy", "GB/s"}};
    for (int i = 0; i < 3; i++) {
        double value;
        tgl_status status = tgl_device_measure(dev, rows[i].ceiling, &value);
        if (status == TGL_UNSUPPORTED)
            printf("  %-18s not measured on this device\n", rows[i].name);
        else if (status != TGL_OK)
            return cli_fail_status(status);
        else
            printf("  %-18s %.1f %s\n", rows[i].name, value * 1e-9, rows[i].unit);
    }
    return EXIT_DONE;
}

static int print_device(tgl_device *dev, bool measure)
{
    printf("%s\n", tgl_device_name(dev));
    const char *key, *value;
    for (int i = 0; tgl_device_property(dev, i, &key, &value) == TGL_OK; i++)
        printf("  %-18s %s\n", key, value);
    print_kernels(dev);
    return measure ? print_ceilings(dev) : EXIT_DONE;
}

static int print_one(const info_options *o)
{
    int code;
    tgl_device *dev = cli_open_device(o->common.device, o->common.threads, &code);
    if (dev == NULL) return code;
    code = print_device(dev, o->measure);
    tgl_device_close(dev);
    return code;
}

/* Prints the properties of a device or, unless quiet, why it cannot be opened. *present := whether
 * it was opened. Returns an exit code. */
static int print_if_present(const char *name, const info_options *o, bool quiet, bool *present)
{
    const tgl_device_options options = {.size = sizeof options, .threads = o->common.threads};
    tgl_device *dev;
    tgl_status status = tgl_device_open(name, &options, &dev);
    *present = status == TGL_OK;
    int code = EXIT_DONE;
    if (*present) {
        putchar('\n');
        code = print_device(dev, o->measure);
        tgl_device_close(dev);
    } else if (!quiet) {
        char why[1024] = "";
        tgl_last_error(why, sizeof why);
        printf("\n%s\n  not available: %s\n", name, why[0] != '\0' ? why : tgl_status_text(status));
    }
    return code;
}

static int print_all(const info_options *o)
{
    int code = EXIT_DONE;
    bool present;
    code |= print_if_present("cpu", o, false, &present);
    code |= print_if_present("cuda:0", o, false, &present);
    for (int i = 1; present; i++) {
        char name[32];
        snprintf(name, sizeof name, "cuda:%d", i);
        code |= print_if_present(name, o, true, &present);
    }
    code |= print_if_present("sim", o, false, &present);
    return code;
}

/* Prints the environment variables TEGULA_... that no part of Tegula reads (the library, the
 * drop-in libraries, the program, the Python package, the tests). Their names may be misspelt. */
static void print_unknown_settings(void)
{
    static const char *const known[] = {"TEGULA_ARCHIVE",
                                        "TEGULA_BLAS_DEVICE",
                                        "TEGULA_BLAS_GPU_SIZE",
                                        "TEGULA_BLAS_TESTERS",
                                        "TEGULA_BLAS_TRACE",
                                        "TEGULA_CACHE",
                                        "TEGULA_CACHE_SIZE",
                                        "TEGULA_CC",
                                        "TEGULA_COMMIT",
                                        "TEGULA_COMPUTE",
                                        "TEGULA_CPU",
                                        "TEGULA_CUBLAS",
                                        "TEGULA_CUBLAS_SERVE",
                                        "TEGULA_CUBLAS_TRACE",
                                        "TEGULA_CUBLAS_WORKSPACE",
                                        "TEGULA_EFFORT",
                                        "TEGULA_LIBCUDA",
                                        "TEGULA_LIBNCCL",
                                        "TEGULA_LIBRARY",
                                        "TEGULA_NVRTC",
                                        "TEGULA_SCALAPACK_TRACE",
                                        "TEGULA_SIM_SEED",
                                        "TEGULA_TEST_DEVICE",
                                        "TEGULA_WISDOM",
                                        NULL};
    char **at = environ;
    const char *name;
    for (int length; (name = next_unknown_setting(&at, "TEGULA_", known, &length)) != NULL;)
        printf("unknown setting: %.*s, which nothing reads\n", length, name);
}

int command_info(int argc, char **argv)
{
    info_options options = {.common = problem_options_start()};
    const int code = cli_parse(argc, argv, &syntax, &options);
    if (code != PARSED) return code;
    if (options.common.device != NULL) return print_one(&options);
    printf("tegula %s\n", tgl_version());
    print_unknown_settings();
    return print_all(&options);
}
