/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula check`: random problems through every kernel of a device, against a reference of more
 * precision. The first case that fails is printed as a command that runs it alone.
 */
#include "check_case.h"
#include "cli.h"
#include "progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: tegula check [OPTIONS]\n"
    "\n"
    "Multiplies random matrices of all sizes, orders, transposes, leading dimensions, alignments "
    "and\n"
    "batches, Inf, NaN and denormals among them, and compares with a reference of more precision.\n"
    "Errors are in units of the last place of |alpha||A||B| + |beta||C|.\n"
    "\n"
    "  --cases N      random problems (1000)\n"
    "  --seed S       what they are drawn from (1)\n"
    "  --case I       only problem number I\n"
    "  --kernel NAME  only this kernel; auto: only what the planner chooses (all)\n"
    "  --type TYPE    only f32, or only f64\n"
    "  --plain        only row-major products that are neither transposed nor in a batch: all "
    "that\n"
    "                 the ladder's kernels take\n"
    "  --device NAME  auto, cpu, cuda:0, sim (auto)\n"
    "  --threads N    threads of the cpu (OMP_NUM_THREADS, or all)\n"
    "  --csv FILE     write a line a kernel\n"
    "\n"
    "Example:\n"
    "  tegula check --cases 5000 --seed 7\n";

enum { OPT_CASES = OPT_COMMAND, OPT_SEED, OPT_CASE, OPT_KERNEL, OPT_PLAIN };

static const struct option option_table[] = {
    CLI_OPTION_HELP,
    CLI_OPTION_DEVICE,
    CLI_OPTION_THREADS,
    CLI_OPTION_TYPE,
    CLI_OPTION_CSV,
    {"cases", required_argument, NULL, OPT_CASES},
    {"seed", required_argument, NULL, OPT_SEED},
    {"case", required_argument, NULL, OPT_CASE},
    {"kernel", required_argument, NULL, OPT_KERNEL},
    {"plain", no_argument, NULL, OPT_PLAIN},
    {0},
};

typedef struct check_options {
    int64_t cases, seed, only; /* only: -1 for all */
    const char *kernel, *device, *csv;
    tgl_type type; /* 0: both */
    bool plain;
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
    case OPT_THREADS:
        return cli_parse_threads(optarg, &o->threads);
    default:
        return false;
    }
}

static int parse(int argc, char **argv, check_options *o)
{
    *o = (check_options){.cases = 1000, .seed = 1, .only = -1, .kernel = "all", .device = "auto"};
    for (int option; (option = cli_next_option(argc, argv, "h", option_table)) != -1;) {
        if (option == OPT_HELP || option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (!take_option(option, o)) return EXIT_MISUSE;
    }
    if (optind < argc) return cli_misuse("\"%s\" is not an option", argv[optind]);
    return PARSED;
}

/* ---- The kernels under test ------------------------------------------------------------------ */

/* A kernel and how it has done. */
typedef struct subject {
    const char *name; /* "auto" runs tgl_gemm(), which plans for itself */
    int64_t passed, failed, unsupported;
    error_summary errors;
} subject;

typedef struct check_run {
    const check_options *options;
    tgl_device *dev;
    subject *subjects;
    int subject_count;
    bool failure_shown;
} check_run;

static bool wants(const check_options *o, const char *name)
{
    return strcmp(o->kernel, "all") == 0 || strcmp(o->kernel, name) == 0;
}

/* Lists the planner's choice and the kernels that were asked for. Returns an exit code or PARSED.
 */
static int list_subjects(check_run *run)
{
    int count = 1;
    while (tgl_kernel_name(run->dev, count - 1) != NULL)
        count++;
    run->subjects = calloc((size_t)count, sizeof *run->subjects);
    if (run->subjects == NULL) return cli_fail("no memory for %d kernels", count);
    for (int i = 0; i < count; i++) {
        const char *name = i == 0 ? "auto" : tgl_kernel_name(run->dev, i - 1);
        if (wants(run->options, name)) run->subjects[run->subject_count++].name = name;
    }
    if (run->subject_count > 0) return PARSED;
    return cli_misuse("%s has no kernel \"%s\"; `tegula info` lists them",
                      tgl_device_name(run->dev), run->options->kernel);
}

/* ---- One case -------------------------------------------------------------------------------- */

/* A case's buffers in memory of the device, and room on the host for what comes back. */
typedef struct case_memory {
    void *A, *B, *C;
    unsigned char *back;
} case_memory;

static size_t bytes_of(const check_case *c, const check_buffer *buffer)
{
    return (size_t)buffer->size * tgl_type_size(c->problem.type_c);
}

static size_t greatest_bytes(const check_case *c)
{
    const size_t a = bytes_of(c, &c->a), b = bytes_of(c, &c->b), of_c = bytes_of(c, &c->c);
    const size_t greater = a > b ? a : b;
    return greater > of_c ? greater : of_c;
}

static tgl_status place(tgl_device *dev, const check_case *c, case_memory *memory)
{
    const check_buffer *buffers[] = {&c->a, &c->b, &c->c};
    void **places[] = {&memory->A, &memory->B, &memory->C};
    memory->back = malloc(greatest_bytes(c));
    if (memory->back == NULL) return TGL_NO_MEMORY;
    for (int i = 0; i < 3; i++) {
        tgl_status status = tgl_alloc(dev, bytes_of(c, buffers[i]), places[i]);
        if (status == TGL_OK)
            status = tgl_upload(dev, *places[i], buffers[i]->image, bytes_of(c, buffers[i]));
        if (status != TGL_OK) return status;
    }
    return TGL_OK;
}

static void release(tgl_device *dev, case_memory *memory)
{
    tgl_free(dev, memory->A);
    tgl_free(dev, memory->B);
    tgl_free(dev, memory->C);
    free(memory->back);
}

/* The pointer that a product is given for a buffer. */
static void *base(const check_case *c, const check_buffer *buffer, void *memory)
{
    if (buffer->null) return NULL;
    return (char *)memory + (size_t)buffer->view.offset * tgl_type_size(c->problem.type_c);
}

static tgl_status multiply(tgl_device *dev, const check_case *c, const char *kernel,
                           const case_memory *memory)
{
    const void *A = base(c, &c->a, memory->A), *B = base(c, &c->b, memory->B);
    void *C = base(c, &c->c, memory->C);
    if (strcmp(kernel, "auto") == 0)
        return tgl_gemm(dev, &c->problem, c->alpha, A, B, c->beta, C, NULL);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_plan *plan;
    tgl_status status = tgl_plan_create(dev, &c->problem, &options, &plan);
    if (status != TGL_OK) return status;
    status = tgl_plan_run(plan, c->alpha, A, B, c->beta, C, NULL);
    tgl_plan_destroy(plan);
    return status;
}

/* Notes it if an input is not what it was. */
static tgl_status compare_input(tgl_device *dev, const check_case *c, const check_buffer *buffer,
                                const void *memory, const char *name, const case_memory *room,
                                check_verdict *verdict)
{
    tgl_status status = tgl_download(dev, room->back, memory, bytes_of(c, buffer));
    if (status == TGL_OK && verdict->text[0] == '\0' &&
        memcmp(room->back, buffer->image, bytes_of(c, buffer)) != 0)
        snprintf(verdict->text, sizeof verdict->text, "%s was written, and is an input", name);
    return status;
}

/* Runs one kernel and judges it. */
static tgl_status judge(tgl_device *dev, const check_case *c, subject *s, const case_memory *memory,
                        check_verdict *verdict)
{
    verdict->text[0] = '\0';
    tgl_status status = tgl_upload(dev, memory->C, c->c.image, bytes_of(c, &c->c));
    if (status == TGL_OK) status = multiply(dev, c, s->name, memory);
    if (status == TGL_OK) status = tgl_download(dev, memory->back, memory->C, bytes_of(c, &c->c));
    if (status != TGL_OK) return status;
    check_case_compare(c, memory->back, &s->errors, verdict);
    status = compare_input(dev, c, &c->a, memory->A, "A", memory, verdict);
    if (status == TGL_OK) status = compare_input(dev, c, &c->b, memory->B, "B", memory, verdict);
    return status;
}

/* Says what failed, and how to run it alone. */
static void show_failure(check_run *run, const check_case *c, const subject *s, const char *what)
{
    if (run->failure_shown) return;
    run->failure_shown = true;
    const check_options *o = run->options;
    char problem[512];
    check_case_describe(c, problem, sizeof problem);
    printf("case %" PRId64 " failed in kernel %s: %s\n  %s\n  rerun: tegula check --seed %" PRId64
           " --case %" PRId64 " --kernel %s --device %s",
           c->number, s->name, what, problem, o->seed, c->number, s->name,
           tgl_device_name(run->dev));
    if (o->type != 0) printf(" --type %s", cli_type_name(o->type));
    if (o->plain) fputs(" --plain", stdout);
    if (o->threads != 0) printf(" --threads %d", o->threads);
    putchar('\n');
}

/* Takes one case through one kernel. */
static void try_subject(check_run *run, const check_case *c, subject *s, const case_memory *memory)
{
    check_verdict verdict;
    tgl_status status = judge(run->dev, c, s, memory, &verdict);
    if (status == TGL_UNSUPPORTED) {
        s->unsupported++;
        return;
    }
    if (status != TGL_OK) {
        char detail[200] = "";
        tgl_last_error(run->dev, detail, sizeof detail);
        snprintf(verdict.text, sizeof verdict.text, "%s, %s", tgl_status_name(status), detail);
    }
    if (verdict.text[0] == '\0') {
        s->passed++;
        return;
    }
    s->failed++;
    show_failure(run, c, s, verdict.text);
}

static int try_case(check_run *run, int64_t number)
{
    check_case c;
    if (!check_case_make(&c, (uint64_t)run->options->seed, number, run->options->type,
                         run->options->plain))
        return cli_fail("no memory for case %" PRId64, number);
    case_memory memory = {0};
    tgl_status status = place(run->dev, &c, &memory);
    for (int i = 0; status == TGL_OK && i < run->subject_count; i++)
        try_subject(run, &c, &run->subjects[i], &memory);
    release(run->dev, &memory);
    check_case_free(&c);
    return status == TGL_OK ? EXIT_DONE : cli_fail_status(run->dev, status);
}

/* ---- All cases ------------------------------------------------------------------------------- */

static int try_cases(check_run *run)
{
    const check_options *o = run->options;
    const int64_t first = o->only >= 0 ? o->only : 0;
    const int64_t count = o->only >= 0 ? 1 : o->cases;
    progress line;
    progress_start(&line, (double)count);
    int code = EXIT_DONE;
    for (int64_t i = 0; code == EXIT_DONE && i < count; i++) {
        char what[64];
        snprintf(what, sizeof what, "case %" PRId64 " of %" PRId64, i + 1, count);
        progress_update(&line, (double)i, what);
        code = try_case(run, first + i);
    }
    progress_clear(&line);
    return code;
}

static void print_subject(const subject *s)
{
    printf("%-24s %8" PRId64 " %8" PRId64 " %8" PRId64 " %9.3f %9.3f  %9.2e\n", s->name, s->passed,
           s->failed, s->unsupported, s->errors.max, error_rms(&s->errors),
           error_frobenius(&s->errors));
}

/* The table, and the sum. Returns an exit code. */
static int print_results(const check_run *run)
{
    subject all = {0};
    printf("%-24s %8s %8s %8s %9s %9s  %9s\n", "kernel", "passed", "failed", "not for", "max error",
           "RMS error", "Frobenius");
    for (int i = 0; i < run->subject_count; i++) {
        const subject *s = &run->subjects[i];
        print_subject(s);
        all.passed += s->passed;
        all.failed += s->failed;
        error_merge(&all.errors, &s->errors);
    }
    printf("%" PRId64 " passed, %" PRId64 " failed on %s; max error %.3f, RMS %.3f\n", all.passed,
           all.failed, tgl_device_name(run->dev), all.errors.max, error_rms(&all.errors));
    if (all.passed + all.failed == 0)
        return cli_fail("nothing was checked: no kernel takes these problems");
    return all.failed == 0 ? EXIT_DONE : EXIT_FAILED;
}

static int write_csv(const check_run *run)
{
    const check_options *o = run->options;
    FILE *file = fopen(o->csv, "w");
    if (file == NULL) return cli_fail("cannot write %s: %s", o->csv, strerror(errno));
    fprintf(file, "device,version,seed,cases,kernel,passed,failed,unsupported,max_error,rms_error,"
                  "frobenius_error\n");
    for (int i = 0; i < run->subject_count; i++) {
        const subject *s = &run->subjects[i];
        fprintf(file,
                "%s,%s,%" PRId64 ",%" PRId64 ",%s,%" PRId64 ",%" PRId64 ",%" PRId64
                ",%.6g,%.6g,%.6g\n",
                tgl_device_name(run->dev), tgl_version(), o->seed, o->cases, s->name, s->passed,
                s->failed, s->unsupported, s->errors.max, error_rms(&s->errors),
                error_frobenius(&s->errors));
    }
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed)
        return cli_fail("cannot write %s: %s", o->csv, strerror(errno));
    return EXIT_DONE;
}

static int check(const check_options *options, tgl_device *dev)
{
    check_run run = {.options = options, .dev = dev};
    int code = list_subjects(&run);
    if (code == PARSED) code = try_cases(&run);
    if (code == EXIT_DONE) {
        code = print_results(&run);
        if (options->csv != NULL && write_csv(&run) != EXIT_DONE) code = EXIT_FAILED;
    }
    free(run.subjects);
    return code;
}

int command_check(int argc, char **argv)
{
    check_options options;
    int code = parse(argc, argv, &options);
    if (code != PARSED) return code;
    tgl_device *dev = cli_open_device(options.device, options.threads);
    if (dev == NULL) return EXIT_FAILED;
    code = check(&options, dev);
    tgl_device_close(dev);
    return code;
}
