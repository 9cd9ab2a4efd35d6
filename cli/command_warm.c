/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula warm`: compiles the CUDA kernels ahead of time, and prints the registers and shared
 * memory of each.
 */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
    "Usage: tegula warm [OPTIONS]\n"
    "\n"
    "Compiles the CUDA kernels into the cache: the ladder's, and every configuration of the\n"
    "production families, in each layout, for large products whose matrices allow the widest\n"
    "loads. Products of other sizes or alignment, or with an epilogue, may still compile a\n"
    "kernel when they are planned for the first time. It needs NVRTC, but no GPU.\n"
    "\n"
    "Shows for each kernel the registers and bytes of local memory of a thread, spilled bytes,\n"
    "and bytes of shared memory of a block. The command fails if a kernel spills registers or\n"
    "keeps an array in local memory though it should not, or if the cache cannot keep it; with\n"
    "TEGULA_CACHE=off it only compiles.\n"
    "\n"
    "  --arch LIST    architectures: sm_80,sm_90a,...; newest; all that NVRTC knows (all)\n"
    "  --kernel NAME  only this kernel; `tegula info --device cuda` lists them; or the kernels of\n"
    "                 a family: wgmma\n"
    "  --type TYPE    element type (f32; bf16 or f64 for kernels without f32)\n"
    "  --archive FILE  the kernels that plans choose most often into one file, for one --arch,\n"
    "                 on all processors; all types, or --type; docs/environment.md says where the\n"
    "                 library finds it\n"
    "  --kernels N    the most kernels of an archive (as many as 64 MiB hold)\n"
    "\n"
    "Example:\n"
    "  tegula warm --arch sm_80,sm_90a,newest\n"
    "  tegula warm --archive sm_90a.kernels --arch sm_90a --kernels 1400\n";

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTION_TEXT(tgl_warm_options, archs, "arch"),
    OPTION_TEXT(tgl_warm_options, kernel, "kernel"),
    OPTION_TYPE(tgl_warm_options, type, "type"),
    OPTION_TEXT(tgl_warm_options, archive, "archive"),
    OPTION_INT(tgl_warm_options, archive_kernels, "kernels", 1, INT32_MAX),
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table};

typedef struct tally {
    int compiled, unclean, failed;
} tally;

static void print_count(int count)
{
    if (count >= 0)
        printf(" %9d", count);
    else
        printf(" %9s", "?");
}

static void print_report(const tgl_warm_report *report, void *user)
{
    tally *sum = user;
    if (sum->compiled + sum->failed == 0)
        printf("%-26s %-8s %9s %9s %9s %9s %8s\n", "kernel", "arch", "registers", "local",
               "spilled", "shared", "seconds");
    printf("%-26s %-8s", report->kernel, report->arch);
    if (report->status != TGL_OK) {
        sum->failed++;
        printf(" %s\n%s\n", tgl_status_name(report->status), report->message);
        return;
    }
    sum->compiled++;
    sum->unclean += !report->is_clean;
    print_count(report->registers);
    print_count(report->local_bytes);
    print_count(report->spill_bytes);
    print_count(report->shared_bytes);
    if (report->from_cache)
        printf(" %8s", "cached");
    else
        printf(" %8.2f", report->seconds);
    puts(report->is_clean           ? ""
         : report->local_bytes != 0 ? "  LOCAL MEMORY"
                                    : "  SERIALISED WGMMA");
    fflush(stdout); /* show the line now, because the next kernel takes seconds to compile */
}

/* Whether the environment variable TEGULA_CACHE turns the disk cache off (docs/environment.md). */
static bool is_cache_off(void)
{
    const char *cache = getenv("TEGULA_CACHE");
    return cache != NULL && (cache[0] == '\0' || strcmp(cache, "off") == 0);
}

/* Prints how long the compilation takes, unless --kernel or --archive was given. */
static void note_duration(const tgl_warm_options *options)
{
    if (options->kernel == NULL && options->archive == NULL)
        fprintf(stderr, "note: all kernels of an architecture take about 8 minutes of one "
                        "processor; --kernel compiles one\n");
}

/* Prints the size of the archive. Returns an exit code. Register spills are not reported here;
 * `tegula warm` without an archive reports them. */
static int print_archive(const tgl_warm_options *options, const tally *sum)
{
    struct stat info;
    if (stat(options->archive, &info) != 0) return cli_fail("%s is gone", options->archive);
    printf("%s: %d kernels, %.1f MB\n", options->archive, sum->compiled,
           1e-6 * (double)info.st_size);
    return EXIT_DONE;
}

int command_warm(int argc, char **argv)
{
    tally sum = {0};
    tgl_warm_options options = {.size = sizeof options, .report = print_report, .user = &sum};
    const int code = cli_parse(argc, argv, &syntax, &options);
    if (code != PARSED) return code;
    note_duration(&options);
    tgl_status status = tgl_warm(&options);
    if (sum.failed > 0) return cli_fail("%d kernels did not compile or were not kept", sum.failed);
    if (status == TGL_UNKNOWN_KERNEL) return cli_fail_plan(NULL, NULL, status);
    if (status == TGL_UNSUPPORTED) return cli_misuse_call();
    if (status != TGL_OK) return cli_fail_status(status);
    if (options.archive != NULL) return print_archive(&options, &sum);
    if (is_cache_off()) puts("nothing was kept: TEGULA_CACHE is off");
    if (sum.unclean > 0)
        return cli_fail("%d kernels use local memory, which they should not", sum.unclean);
    return EXIT_DONE;
}
