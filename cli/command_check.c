/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula check`: runs random problems with every kernel of a device, and compares the results with
 * a reference of higher precision.
 */
#include "check_accuracy.h"
#include "check_huge.h"
#include "check_run.h"
#include "csv.h"
#include "output_file.h"
#include "problem_options.h"

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
    "A check that is stopped (SIGINT, SIGTERM) prints what its cases have shown so far.\n"
    "\n"
    "An element passes if its error is at most min(k, 8*sqrt(k)) + 4 units of\n"
    "u*(|alpha||A||B| + |beta||C|), with u = 2^-24 (f64: 2^-53), apart from the rounding to a\n"
    "16-bit type of C. On a GPU k/8 + 4 passes for inputs of 16 bits, where that is more.\n"
    "--compute tf32 adds 2^14 units, --epilogues 8. Of complex types, each part of an element is\n"
    "one such element, with 2k products. Products of i8 must be exact, modulo 2^32. "
    "The\n"
    "table's columns:\n"
    "\n"
    "  passed, failed        cases\n"
    "  not for               cases that the kernel does not support\n"
    "  max error, RMS error  of all elements, in these units\n"
    "  Frobenius             norm of the difference over that of the reference\n"
    "  lay                   operand layouts and alignments seen, of 64\n"
    "  split, tail           cases with split-K, and with split-K for the last tiles only\n"
    "  strips                cases with tiles, and strips of a few rows or columns beside them\n"
    "  batch, 10 x           cases with a batch; cases run ten times, which must give the same "
    "bits\n"
    "  D, scalar, work       cases with a D other than C, with scalars in memory of the device, "
    "with\n"
    "                        a workspace of the caller's\n"
    "  prep                  cases with prepared operands, which must not change a bit\n"
    "\n"
    "  --cases N       random problems (1000)\n"
    "  --seed S        seed of the problems (1)\n"
    "  --case I        only problem number I\n"
    "  --kernel NAME   only this kernel, such as skinny_4, or with options, skinny_4:splits=2;\n"
    "                  the beginning of names, such as simt: these kernels and the planner's\n"
    "                  choice; gemm: all but the ladder's; auto: only the planner's choice (all)\n"
    "  --type TYPE     only this type of A and B: f32, f64, f16, bf16, e4m3, e5m2, i8, c64,\n"
    "                  c128 (cpu: f32 and f64; else f32)\n"
    "  --type-c TYPE   type of C (that of A and B; i32 for i8)\n"
    "  --type-d TYPE   each result goes to another matrix than C, of this type\n"
    "  --compute MODE  arithmetic: default, ieee, accurate, tf32, fast (default)\n"
    "  --plain         only row-major products that are neither transposed nor in a batch, "
    "without\n"
    "                  D and device scalars: all that the ladder's kernels support\n"
    "  --epilogues     each product with a bias, an activation, a residual or an expression\n"
    "                  compiled in: every combination is a kernel of its own\n"
    "  --grouped       grouped products: groups of rows, or along k, of random sizes, empty ones\n"
    "                  among them\n"
    "  --small         small products, for slow devices and sanitizers (sim: always)\n"
    "  --accuracy      instead: the errors of products of one type, compared with those of cuBLAS\n"
    "                  and of a sequential sum; for f32 also classes of hard inputs, beside FFMA,\n"
    "                  and LU factors. With --kernel: only these, by this kernel\n"
    "  --huge          instead: matrices of more than 2^31 elements, as far as memory allows\n"
    "  --schedules N   on the simulator: the same cases N times, with blocks and warps in other\n"
    "                  orders (TEGULA_SIM_SEED 0, 1, ...), which must not change a result\n"
    "  --in-turn       run each case by the planner's choice and one other kernel, in turn\n"
    "  --device NAME   auto, cpu, cuda:0, sim (auto)\n"
    "  --threads N     threads of the cpu; beside a GPU, those that check its products\n"
    "                  (OMP_NUM_THREADS, or all)\n"
    "  --csv FILE      write a line for each kernel\n"
    "\n"
    "Example:\n"
    "  tegula check --cases 5000 --seed 7\n";

typedef struct check_options {
    problem_options common;
    int64_t cases, seed, only; /* cases: how many run, 0: not given; only: the number of the single
                                  case that runs, -1: all run */
    int64_t schedules;         /* number of orders that run_schedules() tries; 0: not given */
    const char *csv;
    bool plain, epilogues, grouped, small, in_turn, huge, accuracy;
} check_options;

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTIONS_RUN,
    OPTIONS_TYPES,
    OPTIONS_KERNEL,
    OPTION_TEXT(check_options, csv, "csv"),
    OPTION_INT(check_options, cases, "cases", 1, INT64_MAX),
    OPTION_INT(check_options, seed, "seed", 0, INT64_MAX),
    OPTION_INT(check_options, only, "case", 0, INT64_MAX),
    OPTION_FLAG(check_options, plain, "plain"),
    OPTION_FLAG(check_options, epilogues, "epilogues"),
    OPTION_FLAG(check_options, grouped, "grouped"),
    OPTION_FLAG(check_options, small, "small"),
    OPTION_FLAG(check_options, in_turn, "in-turn"),
    OPTION_FLAG(check_options, huge, "huge"),
    OPTION_FLAG(check_options, accuracy, "accuracy"),
    OPTION_INT(check_options, schedules, "schedules", 1, INT32_MAX),
    {0},
};

static const cli_mode modes[] = {
    {"huge", {"device", "threads", "compute", "kernel", "small"}},
    {"accuracy",
     {"device", "threads", "type", "type-c", "compute", "kernel", "seed", "small", "csv"}},
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table, .modes = modes};

/* Refuses combinations of types that the library does not support, before any case is drawn.
 * Returns PARSED, or an exit code. */
static int check_types(const problem_options *o)
{
    tgl_problem p = cli_problem(o->type != 0 ? o->type : TGL_F32, 1, 1, 1);
    problem_set_types(o, &p);
    return tgl_problem_check(&p) != TGL_BAD_TYPE ? PARSED : cli_misuse_call();
}

static int parse(int argc, char **argv, check_options *o)
{
    *o = (check_options){.common = problem_options_start(), .seed = 1, .only = -1};
    const int code = cli_parse(argc, argv, &syntax, o);
    if (code != PARSED) return code;
    if (o->only >= 0 && o->cases > 0) return cli_misuse("give either --cases or one by --case");
    if (o->plain && o->common.type_d != 0)
        return cli_misuse("--plain draws no D other than C: leave out --type-d");
    if (o->grouped && o->plain) return cli_misuse("--plain draws no groups: leave out --grouped");
    if (o->grouped && (o->common.type == TGL_C64 || o->common.type == TGL_C128))
        return cli_misuse("--grouped: grouped products are of real types only");
    if (o->schedules > 0 && (o->common.device == NULL || strcmp(o->common.device, "sim") != 0))
        return cli_misuse("--schedules is for --device sim");
    if (o->schedules > 0 && o->csv != NULL) return cli_misuse("--schedules writes no --csv");
    if (o->accuracy && o->common.type == TGL_I8)
        return cli_misuse("--accuracy: products of i8 are exact, there are no errors to compare");
    if (o->accuracy && (o->common.type == TGL_C64 || o->common.type == TGL_C128))
        return cli_misuse("--accuracy compares products of real numbers only");
    return check_types(&o->common);
}

/* ---- Results --------------------------------------------------------------------------------- */

static void print_subject(const check_subject *s)
{
    const check_tally *t = &s->tally;
    printf("%-24s %8" PRId64 " %8" PRId64 " %8" PRId64 " %9.3f %9.3f  %9.2e  %3d", s->name,
           t->passed, t->failed, t->unsupported, t->errors.max, error_rms(&t->errors),
           error_frobenius(&t->errors), check_cells_seen(t));
    for (int i = 0; i < CHECK_COUNTS; i++)
        printf(" %6" PRId64, t->counts[i]);
    putchar('\n');
}

/* Prints why no result was compared. A check without any comparison fails. Returns an exit code. */
static int fail_unchecked(const check_tally *all, const check_results *results)
{
    char empty[100] = "";
    if (all->unsupported == 0)
        return cli_fail("nothing was checked: no product has an element to compare");
    if (all->passed > 0)
        snprintf(empty, sizeof empty, "%" PRId64 " products have no elements to compare, and ",
                 all->passed);
    return cli_fail("nothing was checked: %sno kernel takes %s%s%s", empty,
                    all->passed > 0 ? "the others" : "these problems",
                    results->unsupported[0] != '\0' ? "; the last one: " : "",
                    results->unsupported);
}

/* Prints the table of results and its totals. is_stopped: a signal ended the run early. Returns an
 * exit code. */
static int print_results(const tgl_device *dev, const check_results *results, bool is_stopped)
{
    check_tally all = {0};
    printf("%-24s %8s %8s %8s %9s %9s  %9s  %3s %6s %6s %6s %6s %6s %6s %6s %6s %6s\n", "kernel",
           "passed", "failed", "not for", "max error", "RMS error", "Frobenius", "lay", "split",
           "tail", "strips", "batch", "10 x", "D", "scalar", "work", "prep");
    for (int i = 0; i < results->count; i++) {
        print_subject(&results->subjects[i]);
        check_tally_add(&all, &results->subjects[i].tally);
    }
    /* Products without elements pass with any kernel, even a wrong one. */
    if (all.errors.finite == 0 && all.failed == 0 && !is_stopped)
        return fail_unchecked(&all, results);
    printf("%" PRId64 " passed, %" PRId64
           " failed on %s; max error %.3f, RMS %.3f; at most %.0f %% "
           "of the greatest error that passes was reached\n",
           all.passed, all.failed, tgl_device_name(dev), all.errors.max, error_rms(&all.errors),
           100 * all.errors.max_over_bound);
    return all.failed == 0 ? EXIT_DONE : EXIT_FAILED;
}

static void write_subject(FILE *file, const check_settings *run, int64_t cases,
                          const check_subject *s)
{
    const check_tally *t = &s->tally;
    fprintf(file, "%s,%s,%" PRIu64 ",%" PRId64 ",", tgl_device_name(run->dev), tgl_version(),
            run->drawing.seed, cases);
    csv_put_text(file, s->name);
    fprintf(file, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.6g,%.6g,%.6g,%d", t->passed, t->failed,
            t->unsupported, t->errors.max, error_rms(&t->errors), error_frobenius(&t->errors),
            check_cells_seen(t));
    for (int i = 0; i < CHECK_COUNTS; i++)
        fprintf(file, ",%" PRId64, t->counts[i]);
    fputc('\n', file);
}

/* Writes the CSV file, if one is open. False: failed, and the error has been printed. */
static bool write_csv(output_file *csv, const check_settings *run, const check_results *results)
{
    if (csv->stream == NULL) return true;
    csv_put_origin(csv->stream, run->dev);
    fputs("device,version,seed,cases,kernel,passed,failed,unsupported,max_error,rms_error,"
          "frobenius_error,layouts,splits,tail_splits,strips,batches,ten_runs,"
          "separate_d,device_scalars,own_workspaces,prepared\n",
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

/* The number of host threads that run cases at the same time. It is 1 for the cpu device, which has
 * threads of its own, and for the simulator, which runs one plan at a time. */
static int count_workers(const check_options *o, const tgl_device *dev)
{
    if (cli_device_is_host(dev)) return 1;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return o->common.threads > 0 ? o->common.threads : online > 0 ? (int)online : 1;
}

/* The type of A and B; 0: each case draws f32 or f64. If --type was not given, it is 0 on the cpu
 * device without --type-c and --type-d, else f32. */
static tgl_type type_for(const check_options *o, bool is_cpu)
{
    if (o->common.type != 0) return o->common.type;
    return is_cpu && o->common.type_c == 0 && o->common.type_d == 0 ? (tgl_type)0 : TGL_F32;
}

static const char *kernel_for(const check_options *o)
{
    return o->common.kernel != NULL ? o->common.kernel : "all";
}

static check_settings settings_for(const check_options *o, tgl_device *dev)
{
    const bool is_cpu = is_device(dev, "cpu");
    const bool is_small = o->small || is_device(dev, "sim");
    return (check_settings){
        .dev = dev,
        .drawing = {.seed = (uint64_t)o->seed,
                    .type = type_for(o, is_cpu),
                    .type_c = o->common.type_c,
                    .type_d = o->common.type_d,
                    .compute = o->common.compute,
                    .plain = o->plain,
                    .epilogues = o->epilogues,
                    .grouped = o->grouped,
                    .cuts_sums = !is_cpu,
                    .scale = is_small ? SCALE_SMALL
                             : is_cpu ? SCALE_MEDIUM
                                      : SCALE_LARGE},
        .first = o->only >= 0 ? o->only : 0,
        .count = o->only >= 0   ? 1
                 : o->cases > 0 ? o->cases
                                : 1000,
        .kernel = kernel_for(o),
        .in_turn = o->in_turn,
        .workers = count_workers(o, dev),
    };
}

static int check_products(const check_options *o, tgl_device *dev)
{
    const check_settings settings = settings_for(o, dev);
    check_results results;
    output_file csv;
    if (!output_file_open(&csv, o->csv))
        return EXIT_FAILED; /* opened before the cases run, so that an invalid path is noticed at
                               once */
    int code = check_run(&settings, &results);
    if (results.failed_case >= 0) puts(results.failure);
    if (code == EXIT_DONE) {
        code = print_results(dev, &results, results.cases < settings.count);
        if (!write_csv(&csv, &settings, &results)) code = EXIT_FAILED;
        if (results.cases < settings.count)
            code = cli_fail("stopped after %" PRId64 " of %" PRId64 " cases", results.cases,
                            settings.count);
    }
    output_file_close(&csv);
    check_results_free(&results);
    return code;
}

static int run_cases(const check_options *o, tgl_device *dev)
{
    const bool is_small = o->small || is_device(dev, "sim");
    const problem_options *c = &o->common;
    if (o->accuracy)
        return check_accuracy(dev, c->type != 0 ? c->type : TGL_F32, c->type_c, c->compute,
                              c->kernel, o->seed, count_workers(o, dev), is_small, o->csv);
    const int found = check_find_kernel(dev, kernel_for(o));
    if (found != EXIT_DONE) return found;
    if (o->huge) return check_huge(dev, kernel_for(o), c->compute, is_small);
    return check_products(o, dev);
}

static int open_and_run(const check_options *o)
{
    int code;
    tgl_device *dev = problem_open_device(&o->common, &code);
    if (dev == NULL) return code;
    code = run_cases(o, dev);
    tgl_device_close(dev);
    return code;
}

/* Runs the same cases with several orders of blocks and warps on the simulator, up to the first
 * order with a failure. Returns an exit code. */
static int run_schedules(const check_options *o)
{
    int code = EXIT_DONE;
    for (int64_t seed = 0; seed < o->schedules && code == EXIT_DONE; seed++) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, seed);
        setenv("TEGULA_SIM_SEED", text, 1);
        printf("TEGULA_SIM_SEED=%s\n", text);
        code = open_and_run(o);
    }
    return code;
}

int command_check(int argc, char **argv)
{
    check_options options;
    const int code = parse(argc, argv, &options);
    if (code != PARSED) return code;
    return options.schedules > 0 ? run_schedules(&options) : open_and_run(&options);
}
