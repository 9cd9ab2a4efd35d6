/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula check`: random problems through every kernel of a device, against a reference of more
 * precision.
 */
#include "check_accuracy.h"
#include "check_huge.h"
#include "check_run.h"
#include "cli.h"
#include "output_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: tegula check [OPTIONS]\n"
    "\n"
    "Multiplies random matrices of all sizes, orders, transposes, leading dimensions, alignments "
    "and\n"
    "batches, Inf, NaN and denormals among them, and compares with a reference of more precision.\n"
    "Errors are in units of the last place of |alpha||A||B| + |beta||C|. A check that is stopped\n"
    "(SIGINT, SIGTERM) tells what its cases have shown so far.\n"
    "\n"
    "  --cases N      random problems (1000)\n"
    "  --seed S       what they are drawn from (1)\n"
    "  --case I       only problem number I\n"
    "  --kernel NAME  only this kernel, such as skinny_4, or with options, skinny_4:splits=2; how\n"
    "                 names begin, such as simt: these and what the planner chooses; gemm: all\n"
    "                 but the ladder's; auto: only what the planner chooses (all)\n"
    "  --type TYPE    only f32, or only f64\n"
    "  --compute MODE arithmetic: default, ieee, accurate, tf32 (default)\n"
    "  --plain        only row-major products that are neither transposed nor in a batch, with\n"
    "                 no D but C and no scalars of the device: all that the ladder's kernels\n"
    "                 take\n"
    "  --epilogues    each product with a bias, an activation, a residual or an expression\n"
    "                 compiled in: every combination is a kernel of its own\n"
    "  --small        small products, for a device that is slow or watched (sim: always)\n"
    "  --accuracy     instead, the error of f32 products beside cuBLAS's and a sequential sum's\n"
    "  --huge         instead, matrices of more than 2^31 elements, in what memory the device has\n"
    "  --in-turn      each case through the planner's choice and one kernel more, in turn\n"
    "  --device NAME  auto, cpu, cuda:0, sim (auto)\n"
    "  --threads N    threads of the cpu; beside a GPU, those that check its products\n"
    "                 (OMP_NUM_THREADS, or all)\n"
    "  --csv FILE     write a line a kernel\n"
    "\n"
    "Example:\n"
    "  tegula check --cases 5000 --seed 7\n";

enum {
    OPT_CASES = OPT_COMMAND,
    OPT_SEED,
    OPT_CASE,
    OPT_KERNEL,
    OPT_PLAIN,
    OPT_EPILOGUES,
    OPT_SMALL,
    OPT_IN_TURN,
    OPT_HUGE,
    OPT_ACCURACY,
};

static const struct option option_table[] = {
    CLI_OPTION_HELP,
    CLI_OPTION_DEVICE,
    CLI_OPTION_THREADS,
    CLI_OPTION_TYPE,
    CLI_OPTION_COMPUTE,
    CLI_OPTION_CSV,
    {"cases", required_argument, NULL, OPT_CASES},
    {"seed", required_argument, NULL, OPT_SEED},
    {"case", required_argument, NULL, OPT_CASE},
    {"kernel", required_argument, NULL, OPT_KERNEL},
    {"plain", no_argument, NULL, OPT_PLAIN},
    {"epilogues", no_argument, NULL, OPT_EPILOGUES},
    {"small", no_argument, NULL, OPT_SMALL},
    {"in-turn", no_argument, NULL, OPT_IN_TURN},
    {"huge", no_argument, NULL, OPT_HUGE},
    {"accuracy", no_argument, NULL, OPT_ACCURACY},
    {0},
};

static const cli_mode modes[] = {
    {OPT_HUGE, {OPT_DEVICE, OPT_THREADS, OPT_COMPUTE, OPT_KERNEL, OPT_SMALL}},
    {OPT_ACCURACY, {OPT_DEVICE, OPT_THREADS, OPT_COMPUTE, OPT_SEED, OPT_SMALL, OPT_CSV}},
    {0},
};

typedef struct check_options {
    int64_t cases, seed, only; /* cases: 0 if not given; only: -1 for all */
    const char *kernel, *device, *csv;
    tgl_type type; /* 0: both */
    tgl_compute compute;
    bool plain, epilogues, small, in_turn, huge, accuracy;
    int threads;
} check_options;

/* One option's value; false: reported. */
static bool take_option(int option, check_options *o)
{
    switch (option) {
    case OPT_CASES:
        return cli_parse_int("--cases", optarg, 1, INT64_MAX, &o->cases);
    case OPT_SEED:
        return cli_parse_int("--seed", optarg, 0, INT64_MAX, &o->seed);
    case OPT_CASE:
        return cli_parse_int("--case", optarg, 0, INT64_MAX, &o->only);
    case OPT_PLAIN:
        return o->plain = true;
    case OPT_EPILOGUES:
        return o->epilogues = true;
    case OPT_SMALL:
        return o->small = true;
    case OPT_IN_TURN:
        return o->in_turn = true;
    case OPT_HUGE:
        return o->huge = true;
    case OPT_ACCURACY:
        return o->accuracy = true;
    case OPT_KERNEL:
        o->kernel = optarg;
        return true;
    case OPT_DEVICE:
        o->device = optarg;
        return true;
    case OPT_CSV:
        o->csv = optarg;
        return true;
    case OPT_TYPE:
        return cli_parse_type(optarg, &o->type);
    case OPT_COMPUTE:
        return cli_parse_compute(optarg, &o->compute);
    case OPT_THREADS:
        return cli_parse_threads(optarg, &o->threads);
    default:
        return false;
    }
}

static int parse(int argc, char **argv, check_options *o)
{
    *o = (check_options){.seed = 1, .only = -1, .kernel = "all", .device = "auto"};
    for (int option; (option = cli_next_option(argc, argv, "h", option_table)) != -1;) {
        if (option == OPT_HELP || option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (!take_option(option, o)) return EXIT_MISUSE;
    }
    if (optind < argc) return cli_misuse("\"%s\" is not an option", argv[optind]);
    if (o->only >= 0 && o->cases > 0) return cli_misuse("give either --cases or one by --case");
    return cli_check_modes(argc, argv, "h", option_table, modes) ? PARSED : EXIT_MISUSE;
}

/* ---- Results --------------------------------------------------------------------------------- */

static void print_subject(const check_subject *s)
{
    const int64_t seen[] = {s->split, s->tail,     s->strips,  s->batch,
                            s->ten,   s->separate, s->scalars, s->workspace};
    printf("%-24s %8" PRId64 " %8" PRId64 " %8" PRId64 " %9.3f %9.3f  %9.2e  %3d", s->name,
           s->passed, s->failed, s->unsupported, s->errors.max, error_rms(&s->errors),
           error_frobenius(&s->errors), check_cells_seen(s));
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++)
        printf(" %6" PRId64, seen[i]);
    putchar('\n');
}

/* The table, and the sum. Returns an exit code. */
static int print_results(const tgl_device *dev, const check_results *results)
{
    check_subject all = {0};
    printf("%-24s %8s %8s %8s %9s %9s  %9s  %3s %6s %6s %6s %6s %6s %6s %6s %6s\n", "kernel",
           "passed", "failed", "not for", "max error", "RMS error", "Frobenius", "lay", "split",
           "tail", "strips", "batch", "10 x", "D", "scalar", "work");
    for (int i = 0; i < results->count; i++) {
        const check_subject *s = &results->subjects[i];
        print_subject(s);
        all.passed += s->passed;
        all.failed += s->failed;
        error_merge(&all.errors, &s->errors);
    }
    printf("%" PRId64 " passed, %" PRId64 " failed on %s; max error %.3f, RMS %.3f\n", all.passed,
           all.failed, tgl_device_name(dev), all.errors.max, error_rms(&all.errors));
    if (all.passed + all.failed == 0)
        return cli_fail("nothing was checked: no kernel takes these problems");
    return all.failed == 0 ? EXIT_DONE : EXIT_FAILED;
}

static void write_subject(FILE *file, const check_settings *run, int64_t cases,
                          const check_subject *s)
{
    const int64_t seen[] = {s->split, s->tail,     s->strips,  s->batch,
                            s->ten,   s->separate, s->scalars, s->workspace};
    fprintf(file, "%s,%s,%" PRIu64 ",%" PRId64 ",", tgl_device_name(run->dev), tgl_version(),
            run->drawing.seed, cases);
    csv_put_text(file, s->name);
    fprintf(file, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.6g,%.6g,%.6g,%d", s->passed, s->failed,
            s->unsupported, s->errors.max, error_rms(&s->errors), error_frobenius(&s->errors),
            check_cells_seen(s));
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++)
        fprintf(file, ",%" PRId64, seen[i]);
    fputc('\n', file);
}

/* False: reported. */
static bool write_csv(output_file *csv, const check_settings *run, const check_results *results)
{
    if (csv->stream == NULL) return true;
    fputs("device,version,seed,cases,kernel,passed,failed,unsupported,max_error,rms_error,"
          "frobenius_error,layouts,splits,tail_splits,strips,batches,ten_runs,"
          "separate_d,device_scalars,own_workspaces\n",
          csv->stream);
    for (int i = 0; i < results->count; i++)
        write_subject(csv->stream, run, results->cases, &results->subjects[i]);
    return output_file_commit(csv);
}

/* ---- The run --------------------------------------------------------------------------------- */

static bool is_device(const tgl_device *dev, const char *kind)
{
    return strncmp(tgl_device_name(dev), kind, strlen(kind)) == 0;
}

/* Threads of the host for the references. The cpu has its own, and the simulator takes turns. */
static int count_workers(const check_options *o, const tgl_device *dev)
{
    if (cli_device_is_host(dev)) return 1;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return o->threads > 0 ? o->threads : online > 0 ? (int)online : 1;
}

static check_settings settings_for(const check_options *o, tgl_device *dev)
{
    const bool is_cpu = is_device(dev, "cpu");
    const bool is_small = o->small || is_device(dev, "sim");
    return (check_settings){
        .dev = dev,
        .drawing = {.seed = (uint64_t)o->seed,
                    .type = o->type != 0 || is_cpu ? o->type : TGL_F32,
                    .compute = o->compute,
                    .plain = o->plain,
                    .epilogues = o->epilogues,
                    .scale = is_small ? SCALE_SMALL
                             : is_cpu ? SCALE_MEDIUM
                                      : SCALE_LARGE},
        .first = o->only >= 0 ? o->only : 0,
        .count = o->only >= 0   ? 1
                 : o->cases > 0 ? o->cases
                                : 1000,
        .kernel = o->kernel,
        .in_turn = o->in_turn,
        .workers = count_workers(o, dev),
    };
}

static int check(const check_options *o, tgl_device *dev)
{
    const check_settings settings = settings_for(o, dev);
    check_results results;
    output_file csv;
    if (!output_file_open(&csv, o->csv)) return EXIT_FAILED; /* before the work */
    int code = check_run(&settings, &results);
    if (results.failed_case >= 0) puts(results.failure);
    if (code == EXIT_DONE) {
        if (results.cases > 0) code = print_results(dev, &results);
        if (!write_csv(&csv, &settings, &results)) code = EXIT_FAILED;
        if (results.cases < settings.count)
            code = cli_fail("stopped after %" PRId64 " of %" PRId64 " cases", results.cases,
                            settings.count);
    }
    output_file_close(&csv);
    check_results_free(&results);
    return code;
}

static int run(const check_options *o, tgl_device *dev)
{
    const bool is_small = o->small || is_device(dev, "sim");
    const int found = check_find_kernel(dev, o->kernel);
    if (found != EXIT_DONE) return found;
    if (o->huge) return check_huge(dev, o->kernel, o->compute, is_small);
    if (o->accuracy) return check_accuracy(dev, o->compute, o->seed, is_small, o->csv);
    return check(o, dev);
}

int command_check(int argc, char **argv)
{
    check_options options;
    int code = parse(argc, argv, &options);
    if (code != PARSED) return code;
    tgl_device *dev = cli_open_device(options.device, options.threads);
    if (dev == NULL) return EXIT_FAILED;
    code = run(&options, dev);
    tgl_device_close(dev);
    return code;
}
