/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula tune`: measures products for the wisdom (tune_plans.c), the file of measured times from
 * which the library chooses the fastest plan. With --output it measures the configurations of all
 * kernels except the ladder's on shapes of a suite, and writes the fastest one for each shape as a
 * row of the planner's tuned table, src/plan/tuned_CHIP.inc. On the cpu device --output measures
 * block sizes (tune_cpu.c) and writes the fastest ones, for the table of processor models.
 */
#include "csv.h"
#include "kernel_names.h"
#include "output_file.h"
#include "problem_options.h"
#include "progress.h"
#include "stopwatch.h"
#include "suite.h"
#include "trace_file.h"
#include "tune_cpu.h"
#include "tune_plans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
    "Usage: tegula tune [--suite FILE | --trace FILE] [--minutes N] [--seconds N] [OPTIONS]\n"
    "       tegula tune --output FILE [--suite FILE] [--minutes N] [OPTIONS]\n"
    "\n"
    "Measures the candidates of the planner for each shape, and writes their times to the wisdom,\n"
    "from which all programs of this user then take the fastest; `tegula info` says where it is. "
    "A\n"
    "shape that was measured is left out, so that a run that was stopped goes on where it ended.\n"
    "On the cpu device the candidates are values of the planner for other processors, and\n"
    "blockings; those that are fastest in the mean over at least 8 shapes of a type serve all "
    "other\n"
    "products of the type, too.\n"
    "With --output: every kernel, the faster ones with several numbers of splits of k and other\n"
    "options, too, and the fastest becomes a row of the library's table, src/plan/tuned_CHIP.inc.\n"
    "On the cpu device: the blocking that is fastest on all shapes together, if it is faster than\n"
    "the planner's own, for the row of this model of processor in src/cpu/plan/cpu_models.c.\n"
    "\n"
    "  --suite FILE      shapes, a line each: type,m,n,k,layout,batch (a few squares); those of\n"
    "                    one type are measured\n" HELP_TYPES
    "  --trace FILE      the products that a program computed with libtegula_cublas.so: what it\n"
    "                    printed on stderr with TEGULA_CUBLAS_TRACE=1\n"
    "  --minutes N       begin no new shape after that time (60)\n"
    "  --seconds N       how long candidates of a shape run (3); on a GPU from 2 on the fastest "
    "are\n"
    "                    measured at the power limit, too\n"
    "  --peer            time cuBLAS, too, and write its time to the wisdom: TEGULA_CUBLAS_SERVE=\n"
    "                    measured then leaves to it only what it computes faster\n"
    "  --output FILE     the table\n"
    "  --device NAME     cuda:0 and so on, or cpu (cuda)\n"
    "  --threads N       threads of the cpu device (OMP_NUM_THREADS, or all)\n"
    "\n"
    "Example:\n"
    "  tegula tune --suite bench/suites/squares.csv --minutes 10\n"
    "  TEGULA_CUBLAS_TRACE=1 LD_PRELOAD=libtegula_cublas.so python3 train.py 2>trace.txt\n"
    "  tegula tune --trace trace.txt\n";

enum { CANDIDATES_MAX = 2048, KERNEL_SIZE = 160, FINALISTS = 4, FINAL_SAMPLES = 7 };

static const double screen_seconds = 1e-3, final_seconds = 4e-3;

typedef struct tune_options {
    problem_options common;
    const char *suite, *trace, *output;
    double minutes, seconds;
    bool has_peer;
} tune_options;

static bool take_minutes(const char *text, void *options)
{
    double *minutes = &((tune_options *)options)->minutes;
    if (!cli_parse_real("--minutes", text, minutes)) return false;
    return *minutes > 0 || cli_misuse_false("--minutes: %s is not above 0", text);
}

static bool take_seconds(const char *text, void *options)
{
    double *seconds = &((tune_options *)options)->seconds;
    if (!cli_parse_real("--seconds", text, seconds)) return false;
    return (*seconds > 0 && *seconds <= 3600) ||
           cli_misuse_false("--seconds: %s is not above 0 and up to 3600", text);
}

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTION_TEXT(tune_options, suite, "suite"),
    OPTION_TEXT(tune_options, trace, "trace"),
    OPTIONS_TYPES,
    OPTIONS_RUN,
    OPTION_TAKE("minutes", take_minutes),
    OPTION_TAKE("seconds", take_seconds),
    OPTION_FLAG(tune_options, has_peer, "peer"),
    OPTION_TEXT(tune_options, output, "output"),
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table};

static int parse(int argc, char **argv, tune_options *o)
{
    *o = (tune_options){.common = problem_options_start(), .minutes = 60, .seconds = 3};
    const int code = cli_parse(argc, argv, &syntax, o);
    if (code != PARSED) return code;
    if (o->common.compute == TGL_COMPUTE_ACCURATE)
        return cli_misuse("--compute accurate: the table has rows for ieee and tf32");
    if (o->trace != NULL && (o->suite != NULL || o->output != NULL))
        return cli_misuse("--trace: leave out --suite and --output");
    if (o->suite != NULL && o->output != NULL && output_file_is_same(o->output, o->suite))
        return cli_misuse("--output: %s is the suite", o->output);
    return PARSED;
}

/* ---- The table ------------------------------------------------------------------------------- */

typedef struct tuning {
    tgl_device *dev;
    const char *chip; /* the planner's name of the chip; on the cpu device, the processor model */
    const char *path;
    FILE *file;
} tuning;

/* Writes the beginning of a table row, the columns that identify chip and problem. */
static void write_key(char *text, size_t size, const char *chip, const tgl_problem *p)
{
    snprintf(text, size,
             "{\"%s\", \"%s\", \"%s\", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", ", chip,
             problem_type_label(p).text, problem_layout(p), p->m, p->n, p->k, p->batch);
}

/* Whether a line of the file begins with `key`. */
static bool has_row(const tuning *t, const char *key)
{
    char line[512];
    bool found = false;
    FILE *file = fopen(t->path, "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, key, strlen(key)) == 0;
    if (file != NULL) fclose(file);
    return found;
}

/* Whether the file has a row for the shape already. */
static bool is_done(const tuning *t, const tgl_problem *p)
{
    char key[160];
    write_key(key, sizeof key, t->chip, p);
    return has_row(t, key);
}

static bool fail_to_write(const tuning *t)
{
    return cli_fail_false("cannot write %s: %s", t->path, strerror(errno));
}

/* Checks that rows can be appended to the file. After an incomplete last line, which a full disk
 * may leave, a new row would become part of that line. False: they cannot, and the error has been
 * printed. */
static bool check_table(const tuning *t)
{
    struct stat info;
    if (fstat(fileno(t->file), &info) != 0) return fail_to_write(t);
    if (!S_ISREG(info.st_mode))
        return cli_fail_false("cannot write %s: it is no regular file", t->path);
    if (info.st_size > 0 && (fseek(t->file, -1, SEEK_END) != 0 || fgetc(t->file) != '\n'))
        return cli_fail_false("the last line of %s is cut short: complete it or take it out",
                              t->path);
    return fseek(t->file, 0, SEEK_END) == 0 || fail_to_write(t);
}

static bool open_table(tuning *t)
{
    t->file = fopen(t->path, "a+");
    if (t->file == NULL) return fail_to_write(t);
    if (!check_table(t)) {
        fclose(t->file);
        return false;
    }
    if (ftell(t->file) == 0)
        fprintf(t->file,
                "/* SPDX-License-Identifier: Apache-2.0\n *\n * What is fastest on %s, "
                "written by `tegula tune` of commit %s.\n */\n",
                t->chip, csv_commit());
    return true;
}

/* ---- One shape ------------------------------------------------------------------------------- */

/* A kernel with options, and its measured time. */
typedef struct candidate {
    char kernel[KERNEL_SIZE]; /* the kernel string of the plan */
    double seconds;
} candidate;

typedef struct candidate_list {
    candidate *items;
    int count;
} candidate_list;

static int by_seconds(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    return a->seconds < b->seconds ? -1 : a->seconds > b->seconds;
}

static bool is_listed(const candidate_list *list, const char *kernel)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].kernel, kernel) == 0) return true;
    return false;
}

static tgl_status make_plan(const operands *o, const char *kernel, tgl_plan **plan)
{
    return cli_plan(o->dev, &o->problem, kernel, plan);
}

/* Makes a plan by the kernel string `request`, measures it, and adds it to the list. Does nothing
 * if the kernel does not support the shape with these options, or if the list has the same plan or
 * is full. */
static tgl_status add_candidate(stopwatch *watch, const char *request, candidate_list *list)
{
    candidate c;
    tgl_plan *plan;
    if (list->count == CANDIDATES_MAX) return TGL_OK;
    tgl_status status = make_plan(watch->operands, request, &plan);
    if (status == TGL_UNSUPPORTED || status == TGL_GRID_TOO_LARGE) return TGL_OK;
    if (status != TGL_OK) return status;
    snprintf(c.kernel, sizeof c.kernel, "%s", tgl_plan_kernel(plan));
    if (!is_listed(list, c.kernel)) {
        status = stopwatch_median(watch, plan, screen_seconds, 1, &c.seconds);
        if (status == TGL_OK) list->items[list->count++] = c;
    }
    tgl_plan_destroy(plan);
    return status;
}

/* Adds a kernel with the options that the planner chooses. If the kernel has the option strips
 * (separate launches for the last rows and columns), also adds it without strips and with them. */
static tgl_status add_kernel(stopwatch *watch, const char *name, candidate_list *list)
{
    char request[KERNEL_SIZE];
    for (int strips = 0; strips < 2 && kernel_has_option(name, "strips=1"); strips++) {
        snprintf(request, sizeof request, "%s:strips=%d", name, strips);
        CLI_TRY(add_candidate(watch, request, list));
    }
    return add_candidate(watch, name, list);
}

/* Whether the text begins with "NAME=". */
static bool is_option(const char *text, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == '=';
}

/* Writes the kernel string with `option` set to `value`. The option `whole` is dropped, because it
 * is a number of tiles that depends on the other options. */
static void with_option(const char *kernel, const char *option, int value, char text[KERNEL_SIZE])
{
    const size_t name = strcspn(kernel, ":");
    size_t end =
        (size_t)snprintf(text, KERNEL_SIZE, "%.*s:%s=%d", (int)name, kernel, option, value);
    for (const char *other = kernel + name; *other != '\0' && end < KERNEL_SIZE;) {
        other++; /* skips the colon or comma */
        const int length = (int)strcspn(other, ",");
        if (!is_option(other, option) && !is_option(other, "whole"))
            end += (size_t)snprintf(text + end, KERNEL_SIZE - end, ",%.*s", length, other);
        other += length;
    }
}

/* Adds variants of a kernel string, each of which differs from it in the value of one option. */
static tgl_status add_variants(stopwatch *watch, const char *kernel, candidate_list *list)
{
    static const struct {
        const char *option, *has;
        int count, values[16];
    } varied[] = {
        {"splits", "splits=2", 16, {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 120, 128}},
        {"exchanged", "exchanged=1", 2, {0, 1}},
        {"cluster", "cluster=2", 3, {1, 2, 4}},
        {"columns", "columns=2", 3, {1, 2, 4}},
        {"in_cluster", "in_cluster=1", 2, {0, 1}},
    };
    enum { DEPTH_MIN = 64 /* minimum K of a split */ };
    const int64_t k = watch->operands->problem.k;
    char of[KERNEL_SIZE], request[KERNEL_SIZE];
    snprintf(of, sizeof of, "%s", kernel);
    for (size_t i = 0; i < sizeof varied / sizeof varied[0]; i++) {
        if (!kernel_has_option(of, varied[i].has)) continue;
        for (int j = 0; j < varied[i].count; j++) {
            const int value = varied[i].values[j];
            if (i == 0 && value > 1 && value * DEPTH_MIN > k) break;
            with_option(of, varied[i].option, value, request);
            CLI_TRY(add_candidate(watch, request, list));
        }
    }
    return TGL_OK;
}

/* Sorts the list by time, and adds variants of its `first` fastest candidates. */
static tgl_status vary(stopwatch *watch, int first, candidate_list *list)
{
    qsort(list->items, (size_t)list->count, sizeof *list->items, by_seconds);
    const int count = first < list->count ? first : list->count;
    for (int i = 0; i < count; i++)
        CLI_TRY(add_variants(watch, list->items[i].kernel, list));
    return TGL_OK;
}

/* Measures every kernel except the ladder's, then variants of the faster half, then variants of the
 * FINALISTS fastest candidates. Sorts the list by time. */
static tgl_status screen(stopwatch *watch, candidate_list *list)
{
    const tgl_device *dev = watch->operands->dev;
    const char *name;
    for (int i = 0; (name = tgl_kernel_name(dev, i)) != NULL; i++)
        if (!kernel_is_rung(name)) CLI_TRY(add_kernel(watch, name, list));
    CLI_TRY(vary(watch, (list->count + 1) / 2, list));
    CLI_TRY(vary(watch, FINALISTS, list));
    qsort(list->items, (size_t)list->count, sizeof *list->items, by_seconds);
    return TGL_OK;
}

/* Measures a candidate again, for longer than screen() does. */
static tgl_status measure_again(stopwatch *watch, candidate *c)
{
    tgl_plan *plan;
    CLI_TRY(make_plan(watch->operands, c->kernel, &plan));
    const tgl_status status =
        stopwatch_median(watch, plan, final_seconds, FINAL_SAMPLES, &c->seconds);
    tgl_plan_destroy(plan);
    return status;
}

static tgl_status find_best(stopwatch *watch, candidate *best)
{
    candidate_list list = {.items = calloc(CANDIDATES_MAX, sizeof *list.items)};
    if (list.items == NULL) return TGL_NO_MEMORY;
    tgl_status status = screen(watch, &list);
    if (status == TGL_OK && list.count == 0) status = TGL_UNSUPPORTED;
    const int finalists = list.count < FINALISTS ? list.count : FINALISTS;
    for (int i = 0; i < finalists && status == TGL_OK; i++)
        status = measure_again(watch, &list.items[i]);
    qsort(list.items, (size_t)finalists, sizeof *list.items, by_seconds);
    *best = list.items[0];
    free(list.items);
    return status;
}

static tgl_status tune_shape(const tuning *t, const tgl_problem *p, candidate *best)
{
    operands matrices;
    stopwatch watch = {0};
    tgl_status status = operands_make(&matrices, t->dev, p, true);
    if (status == TGL_OK) status = stopwatch_make(&watch, &matrices);
    if (status == TGL_OK) status = find_best(&watch, best);
    stopwatch_release(&watch);
    operands_release(&matrices);
    return status;
}

/* Writes the row of the fastest candidate to the file and prints it. False: failed, and the error
 * has been printed. */
static bool write_row(const tuning *t, const tgl_problem *p, const candidate *best)
{
    char key[160];
    write_key(key, sizeof key, t->chip, p);
    const double us = 1e6 * best->seconds, tflops = 1e-12 * problem_flops(p) / best->seconds;
    printf("%s batch %" PRId64 ": %s, %.2f us, %.2f TFLOP/s\n", problem_shape_label(p).text,
           p->batch, best->kernel, us, tflops);
    fflush(stdout);
    fprintf(t->file, "%s\"%s\"}, /* %.2f us, %.2f TFLOP/s */\n", key, best->kernel, us, tflops);
    return fflush(t->file) == 0 || fail_to_write(t);
}

/* ---- The suite ------------------------------------------------------------------------------- */

static int tune_suite(const tuning *t, const suite *s, double minutes)
{
    const double end = cli_clock() + 60 * minutes;
    int code = EXIT_DONE, left = 0;
    progress line;
    progress_start(&line, s->count);
    for (int i = 0; i < s->count; i++) {
        const tgl_problem *p = &s->problems[i];
        if (is_done(t, p)) continue;
        if (cli_clock() > end) {
            left++;
            continue;
        }
        const shape_label what = problem_shape_label(p);
        progress_update(&line, i, what.text);
        candidate best;
        const tgl_status status = tune_shape(t, p, &best);
        progress_clear(&line);
        const bool is_lost = status == TGL_OK ? !write_row(t, p, &best) : status == TGL_DEVICE_LOST;
        if (status != TGL_OK) cli_fail_at(what.text, status);
        if (status != TGL_OK || is_lost) code = EXIT_FAILED;
        if (is_lost) break; /* the device is lost, or the file cannot be written */
    }
    progress_clear(&line);
    if (left > 0)
        printf("time is up: %d shapes are left; the same command goes on with them\n", left);
    return code;
}

/* Measures blockings (tune_cpu.c) of the cpu device for its processor model. */
static int tune_blocking(const tune_options *o, tgl_device *dev, const suite *s)
{
    char row[TUNE_CPU_ROW];
    const tgl_type type = s->problems[0].type_a;
    tuning t = {.dev = dev, .chip = cli_device_property(dev, "model"), .path = o->output};
    if (t.chip[0] == '\0') return cli_fail("the model of this processor is not known");
    if (type != TGL_F32 && type != TGL_F64)
        return cli_misuse("--type: the blocking of the cpu device is measured for f32 or f64");
    if (!open_table(&t)) return EXIT_FAILED;
    tune_cpu_key(dev, t.chip, type, row);
    int code = EXIT_DONE;
    if (has_row(&t, row)) {
        printf("%s has a row for this processor, tier and type\n", t.path);
    } else {
        code = tune_cpu(dev, t.chip, s, o->minutes, row);
        if (row[0] != '\0') printf("%s", row);
        if (fputs(row, t.file) < 0) code = EXIT_FAILED;
    }
    return fclose(t.file) == 0 || fail_to_write(&t) ? code : EXIT_FAILED;
}

static int tune(const tune_options *o, tgl_device *dev, const suite *s)
{
    const bool is_cpu = strcmp(tgl_device_name(dev), "cpu") == 0;
    if (is_cpu && o->output != NULL) return tune_blocking(o, dev, s);
    tuning t = {.dev = dev, .chip = cli_device_property(dev, "planned as"), .path = o->output};
    if (t.chip[0] == '\0' && !is_cpu)
        return cli_misuse("--device: only CUDA devices and cpu have anything to choose");
    if (is_cpu && o->has_peer) return cli_misuse("--peer: the device is cpu; cuBLAS needs a GPU");
    const tune_settings settings = {o->minutes, o->seconds, o->has_peer};
    if (t.path == NULL) return tune_plans(dev, s, &settings);
    if (strcmp(t.chip, "unknown") == 0)
        return cli_fail("the planner does not know this chip: add it to src/plan/chips.c");
    if (!open_table(&t)) return EXIT_FAILED;
    const int code = tune_suite(&t, s, o->minutes);
    return fclose(t.file) == 0 || fail_to_write(&t) ? code : EXIT_FAILED;
}

/* Makes the suite: the products of the trace, or the shapes of one type, which is f32 unless
 * another was requested. False: failed, and the error has been printed. */
static bool make_suite(const tune_options *o, suite *s)
{
    if (o->trace != NULL) return trace_read(s, o->trace);
    const tgl_type type = o->common.type != 0 ? o->common.type : TGL_F32;
    const char *device = o->common.device != NULL ? o->common.device : "cuda";
    const bool takes_default = strcmp(device, "cpu") == 0 && o->output == NULL;
    if (!(o->suite != NULL ? suite_read(s, o->suite, type) : suite_add_default(s, type)))
        return false;
    for (int i = 0; i < s->count; i++) {
        problem_set_types(&o->common, &s->problems[i]);
        /* f32 is measured in mode ieee, because TGL_COMPUTE_DEFAULT may mean ACCURATE, for which
         * the tuned table has no rows. If the cpu device is tuned for the wisdom (takes_default),
         * the mode stays DEFAULT, because plans find their times in the wisdom by their compute
         * mode. */
        if (type == TGL_F32 && !takes_default && s->problems[i].compute == TGL_COMPUTE_DEFAULT)
            s->problems[i].compute = TGL_COMPUTE_IEEE;
    }
    return true;
}

int command_tune(int argc, char **argv)
{
    tune_options options;
    int code = parse(argc, argv, &options);
    if (code != PARSED) return code;
    suite s = {0};
    code = EXIT_FAILED;
    if (make_suite(&options, &s)) {
        const char *name = options.common.device != NULL ? options.common.device : "cuda";
        tgl_device *dev = cli_open_device(name, options.common.threads, &code);
        if (dev != NULL) code = tune(&options, dev, &s);
        tgl_device_close(dev);
    }
    suite_free(&s);
    return code;
}
